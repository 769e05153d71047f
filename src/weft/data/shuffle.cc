// SPDX-License-Identifier: Apache-2.0
// Elements in random order, as far as a buffer of them allows, in TensorFlow's own order for its
// seeds.
#include <deque>
#include <utility>

#include "weft/data/seed_generator.h"
#include "weft/data/transform.h"

namespace weft::data::shuffle {
namespace {

class Shuffle final : public TransformDataset {
 public:
  // `count` epochs, -1 without end; a buffer of `size` elements, kUnknown for all of an epoch.
  Shuffle(const DatasetRef& input, int64_t size, int64_t count, SeedSource seeds)
      : TransformDataset(input), size_(size), count_(count), seeds_(std::move(seeds)) {}
  int64_t Cardinality() const override {
    const int64_t n = input()->Cardinality();
    if (count_ == 1 || n == 0) return n;
    if (count_ < 0) return n == kUnknown ? kUnknown : kInfinite;
    int64_t all;
    return n < 0 ? n : __builtin_mul_overflow(n, count_, &all) ? kUnknown : all;
  }
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    auto iterator = std::make_unique<Iterator>(this, context);
    iterator->BeginOrder();
    return IteratorPtr(std::move(iterator));
  }

 private:
  // The buffer is a ring; each slice of it holds what is left of one epoch.
  class Iterator final : public TransformIterator<Shuffle> {
   public:
    Iterator(const Shuffle* dataset, ContextPtr context)
        : TransformIterator(dataset, std::move(context)),
          seeds_(dataset->seeds_.For(this->context())) {}

    void BeginOrder() { words_ = RandomWords(seeds_->Next()); }

    StatusOr<bool> Next(Element* element) override {
      WEFT_RETURN_IF_ERROR(Fill());
      if (held_ == 0) return false;
      while (slices_.front().start == slices_.front().end) {
        slices_.pop_front();
        BeginOrder();
      }
      Slice& slice = slices_.front();
      const int64_t offset = static_cast<int64_t>(words_.Next()) % (slice.end - slice.start);
      Element& chosen = At(slice.start + offset);
      *element = std::move(chosen);
      if (offset != 0) chosen = std::move(At(slice.start));
      At(slice.start).clear();
      ++slice.start;
      --held_;
      return true;
    }

   private:
    struct Slice {
      int64_t start;
      int64_t end;
    };
    static constexpr size_t kMostEpochs = 3;  // in the buffer

    Element& At(int64_t index) { return ring_[static_cast<size_t>(index) % ring_.size()]; }

    bool WantsMore() const {
      if (input_is_over_ && dataset().count_ != -1 && epochs_ >= dataset().count_) return false;
      if (slices_.size() > kMostEpochs && held_ > 0) return false;
      return dataset().size_ < 0 ? !(input_is_over_ && held_ > 0) : held_ < dataset().size_;
    }

    Status Fill() {
      while (WantsMore()) {
        WEFT_RETURN_IF_ERROR(context()->Check());
        if (input_is_over_) WEFT_RETURN_IF_ERROR(BeginEpoch());
        Element element;
        WEFT_ASSIGN_OR_RETURN(const bool found, input()->Next(&element));
        if (!found) {
          input().reset();
          input_is_over_ = true;
          if (!produced_ && dataset().count_ == -1) return absl::OkStatus();
          continue;
        }
        produced_ = true;
        Put(std::move(element));
      }
      return absl::OkStatus();
    }

    Status BeginEpoch() {
      WEFT_RETURN_IF_ERROR(Start());
      input_is_over_ = false;
      const int64_t end = slices_.empty() ? 0 : slices_.back().end;
      slices_.push_back({end, end});
      ++epochs_;
      return absl::OkStatus();
    }

    // The ring grows with what is in it: the size that was asked for may be beyond all memory.
    void Put(Element element) {
      if (held_ == static_cast<int64_t>(ring_.size())) Grow();
      At(slices_.back().end) = std::move(element);
      ++slices_.back().end;
      ++held_;
    }
    void Grow() {
      std::vector<Element> larger(std::max<size_t>(16, ring_.size() * 2));
      for (const Slice& slice : slices_) {
        for (int64_t i = slice.start; i < slice.end; ++i) {
          larger[static_cast<size_t>(i) % larger.size()] = std::move(At(i));
        }
      }
      ring_ = std::move(larger);
    }

    const Ref<SeedGenerator> seeds_;
    RandomWords words_;
    std::vector<Element> ring_;
    std::deque<Slice> slices_;
    int64_t held_ = 0;
    int64_t epochs_ = 0;
    bool produced_ = false;
    bool input_is_over_ = true;
  };

  const int64_t size_;
  const int64_t count_;
  const SeedSource seeds_;
};

StatusOr<DatasetRef> MakeWith(KernelContext& c, int64_t count) {
  WEFT_ASSIGN_OR_RETURN(const DatasetRef input, DatasetInput(c));
  WEFT_ASSIGN_OR_RETURN(const int64_t size, ScalarInput<int64_t>(c, "buffer_size"));
  if (size <= 0 && size != kUnknown) {
    return InvalidArgument("`buffer_size` must be greater than zero or UNKNOWN_CARDINALITY");
  }
  const bool reshuffles = FindAttrOr<bool>(c.call().attrs(), "reshuffle_each_iteration", true);
  WEFT_ASSIGN_OR_RETURN(SeedSource seeds, SeedSource::OfKernel(c, reshuffles));
  return DatasetRef(MakeRef<Shuffle>(input, size, count, std::move(seeds)));
}

StatusOr<DatasetRef> Make(KernelContext& c) { return MakeWith(c, 1); }

StatusOr<DatasetRef> MakeRepeated(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(const int64_t count, ScalarInput<int64_t>(c, "count"));
  if (count < -1 || count == 0) {
    return InvalidArgument("`count` must be greater than zero or -1 for an infinite repetition");
  }
  return MakeWith(c, count);
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddDataset(
      catalogue,
      {.name = "ShuffleDataset",
       .doc = "A dataset of the elements in random order: each is drawn from a buffer of "
              "`buffer_size` that are next.",
       .inputs = {"input_dataset: variant", "buffer_size: int64", "seed: int64", "seed2: int64"},
       .attrs = {"reshuffle_each_iteration: bool = true", "output_types: list(type) >= 1",
                 "output_shapes: list(shape) >= 1", "metadata: string = ''"},
       .make = Make});
  AddDataset(catalogue, {.name = "ShuffleDatasetV2",
                         .doc = "ShuffleDataset with seeds of a generator.",
                         .inputs = {"input_dataset: variant", "buffer_size: int64",
                                    "seed_generator: resource"},
                         .attrs = {"output_types: list(type) >= 1",
                                   "output_shapes: list(shape) >= 1", "metadata: string = ''"},
                         .is_stateful = true,
                         .make = Make});
  AddDataset(catalogue,
             {.name = "ShuffleDatasetV3",
              .doc = "ShuffleDataset with seeds of a generator, if its handle leads to one.",
              .inputs = {"input_dataset: variant", "buffer_size: int64", "seed: int64",
                         "seed2: int64", "seed_generator: resource"},
              .attrs = {"reshuffle_each_iteration: bool = true", "output_types: list(type) >= 1",
                        "output_shapes: list(shape) >= 1", "metadata: string = ''"},
              .is_stateful = true,
              .make = Make});
  AddDataset(
      catalogue,
      {.name = "ShuffleAndRepeatDataset",
       .doc =
           "ShuffleDataset repeated `count` times, -1 without end; the buffer fills across epochs.",
       .inputs = {"input_dataset: variant", "buffer_size: int64", "seed: int64", "seed2: int64",
                  "count: int64"},
       .attrs = {"output_types: list(type) >= 1", "output_shapes: list(shape) >= 1",
                 "reshuffle_each_iteration: bool = true", "metadata: string = ''"},
       .make = MakeRepeated});
  AddDataset(
      catalogue,
      {.name = "ShuffleAndRepeatDatasetV2",
       .doc = "ShuffleAndRepeatDataset with seeds of a generator, if its handle leads to one.",
       .inputs = {"input_dataset: variant", "buffer_size: int64", "seed: int64", "seed2: int64",
                  "count: int64", "seed_generator: resource"},
       .attrs = {"reshuffle_each_iteration: bool = true", "output_types: list(type) >= 1",
                 "output_shapes: list(shape) >= 1", "metadata: string = ''"},
       .is_stateful = true,
       .make = MakeRepeated});
}

}  // namespace weft::data::shuffle
