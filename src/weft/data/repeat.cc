// SPDX-License-Identifier: Apache-2.0
// The elements again and again, and parts of them: take, skip, shard.
#include <algorithm>
#include <utility>

#include "weft/data/transform.h"

namespace weft::data::repeat {
namespace {

class Repeat final : public TransformDataset {
 public:
  Repeat(const DatasetRef& input, int64_t count) : TransformDataset(input), count_(count) {}
  int64_t Cardinality() const override {
    const int64_t n = input()->Cardinality();
    if (count_ == 0 || n == 0) return 0;
    if (count_ < 0) return n == kUnknown ? kUnknown : kInfinite;
    int64_t all;
    return n < 0 ? n : __builtin_mul_overflow(n, count_, &all) ? kUnknown : all;
  }
  bool HasRandomAccess() const override {
    return input()->HasRandomAccess() && input()->Cardinality() > 0;
  }
  Status CheckRandomOrder() const override {
    if (count_ > 0) return Dataset::CheckRandomOrder();
    return FailedPrecondition("`repeat(", count_,
                              ")` does not support random access of tf.data datasets.");
  }
  StatusOr<Element> At(const ContextPtr& context, int64_t index) const override {
    const int64_t n = input()->Cardinality();
    if (n <= 0) return Dataset::At(context, index);
    if (index < 0 || (count_ >= 0 && index >= Cardinality())) {
      return OutOfRange("Index out of range [0, ", Cardinality(), "):", index);
    }
    return input()->At(context, index % n);
  }
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return Started<Iterator>(this, context);
  }

 private:
  class Iterator final : public TransformIterator<Repeat> {
   public:
    using TransformIterator::TransformIterator;
    StatusOr<bool> Next(Element* element) override {
      bool is_new = false;
      while (dataset().count_ < 0 || epoch_ < dataset().count_) {
        WEFT_RETURN_IF_ERROR(context()->Check());
        if (input() == nullptr) {
          WEFT_RETURN_IF_ERROR(Start());
          is_new = true;
        }
        WEFT_ASSIGN_OR_RETURN(const bool found, input()->Next(element));
        if (found) {
          any_ = true;
          return true;
        }
        input().reset();
        ++epoch_;
        // Empty for ever.
        if (dataset().count_ < 0 && (is_new || !any_)) break;
      }
      epoch_ = std::max<int64_t>(dataset().count_, epoch_);
      return false;
    }

   private:
    int64_t epoch_ = 0;
    bool any_ = false;
  };

  const int64_t count_;
};

class Take final : public TransformDataset {
 public:
  Take(const DatasetRef& input, int64_t count) : TransformDataset(input), count_(count) {}
  int64_t Cardinality() const override {
    const int64_t n = input()->Cardinality();
    if (count_ < 0) return n;
    if (n == kInfinite) return count_;
    return n == kUnknown ? (count_ == 0 ? 0 : kUnknown) : std::min(n, count_);
  }
  bool HasRandomAccess() const override { return input()->HasRandomAccess(); }
  StatusOr<Element> At(const ContextPtr& context, int64_t index) const override {
    if (count_ >= 0 && index >= count_) {
      return OutOfRange("Index out of range [0, ", count_, "):", index);
    }
    return input()->At(context, index);
  }
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return Started<Iterator>(this, context);
  }

 private:
  class Iterator final : public TransformIterator<Take> {
   public:
    using TransformIterator::TransformIterator;
    StatusOr<bool> Next(Element* element) override {
      if (input() == nullptr) return false;
      if (dataset().count_ < 0 || taken_ < dataset().count_) {
        WEFT_ASSIGN_OR_RETURN(const bool found, input()->Next(element));
        if (found) {
          ++taken_;
          return true;
        }
      }
      input().reset();
      return false;
    }

   private:
    int64_t taken_ = 0;
  };

  const int64_t count_;
};

class Skip final : public TransformDataset {
 public:
  Skip(const DatasetRef& input, int64_t count) : TransformDataset(input), count_(count) {}
  int64_t Cardinality() const override {
    const int64_t n = input()->Cardinality();
    if (count_ < 0) return 0;
    return n < 0 ? n : std::max<int64_t>(0, n - count_);
  }
  bool HasRandomAccess() const override { return input()->HasRandomAccess(); }
  Status CheckRandomOrder() const override {
    if (count_ >= 0) return Dataset::CheckRandomOrder();
    return FailedPrecondition("`skip(", count_,
                              ")` does not support random access of tf.data datasets.");
  }
  StatusOr<Element> At(const ContextPtr& context, int64_t index) const override {
    int64_t at;
    if (count_ < 0 || index < 0 || __builtin_add_overflow(index, count_, &at)) {
      return OutOfRange("Index out of range [0, ", Cardinality(), "):", index);
    }
    return input()->At(context, at);
  }
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return Started<Iterator>(this, context);
  }

 private:
  class Iterator final : public TransformIterator<Skip> {
   public:
    using TransformIterator::TransformIterator;
    StatusOr<bool> Next(Element* element) override {
      if (dataset().count_ < 0 || input() == nullptr) return false;
      while (true) {
        WEFT_ASSIGN_OR_RETURN(const bool found, input()->Next(element));
        if (!found) {
          input().reset();
          return false;
        }
        if (skipped_ == dataset().count_) return true;
        ++skipped_;
      }
    }

   private:
    int64_t skipped_ = 0;
  };

  const int64_t count_;
};

class Shard final : public TransformDataset {
 public:
  Shard(const DatasetRef& input, int64_t shards, int64_t index, bool requires_elements)
      : TransformDataset(input),
        shards_(shards),
        index_(index),
        requires_elements_(requires_elements) {}
  int64_t Cardinality() const override {
    const int64_t n = input()->Cardinality();
    return n < 0 ? n : n / shards_ + (index_ < n % shards_ ? 1 : 0);
  }
  bool HasRandomAccess() const override { return input()->HasRandomAccess(); }
  StatusOr<Element> At(const ContextPtr& context, int64_t index) const override {
    int64_t at;
    if (index < 0 || __builtin_mul_overflow(index, shards_, &at) ||
        __builtin_add_overflow(at, index_, &at)) {
      return OutOfRange("Index out of range [0, ", Cardinality(), "):", index);
    }
    return input()->At(context, at);
  }
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return Started<Iterator>(this, context);
  }

 private:
  class Iterator final : public TransformIterator<Shard> {
   public:
    using TransformIterator::TransformIterator;
    StatusOr<bool> Next(Element* element) override {
      while (input() != nullptr) {
        WEFT_ASSIGN_OR_RETURN(const bool found, input()->Next(element));
        if (!found) break;
        if (seen_++ % dataset().shards_ != dataset().index_) continue;
        if (!dataset().requires_elements_ || seen_ > dataset().shards_) return true;
        return CheckAllHaveOne(std::move(*element), element);
      }
      input().reset();
      return false;
    }

   private:
    // Whether the shards that follow find an element as well shows only in the input.
    StatusOr<bool> CheckAllHaveOne(Element own, Element* element) {
      while (seen_ < dataset().shards_) {
        Element other;
        WEFT_ASSIGN_OR_RETURN(const bool found, input()->Next(&other));
        if (!found) {
          return InvalidArgument("Could not apply FILE based sharding: the dataset has ", seen_,
                                 " elements, which is not enough for ", dataset().shards_,
                                 " shards");
        }
        ++seen_;
      }
      *element = std::move(own);
      return true;
    }
    int64_t seen_ = 0;
  };

  const int64_t shards_;
  const int64_t index_;
  const bool requires_elements_;
};

template <typename D>
StatusOr<DatasetRef> MakeCounted(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(const DatasetRef input, DatasetInput(c));
  WEFT_ASSIGN_OR_RETURN(const int64_t count, ScalarInput<int64_t>(c, "count"));
  return DatasetRef(MakeRef<D>(input, count));
}

StatusOr<DatasetRef> MakeShard(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(const DatasetRef input, DatasetInput(c));
  WEFT_ASSIGN_OR_RETURN(const int64_t shards, ScalarInput<int64_t>(c, "num_shards"));
  WEFT_ASSIGN_OR_RETURN(const int64_t index, ScalarInput<int64_t>(c, "index"));
  if (shards <= 0) {
    return InvalidArgument(
        "Number of shards must be greater than zero (currently num_shards = ", shards, ").");
  }
  if (index < 0 || index >= shards) {
    return InvalidArgument("Index must be between 0 and ", shards - 1,
                           " (currently index = ", index, ").");
  }
  return DatasetRef(MakeRef<Shard>(input, shards, index,
                                   FindAttrOr<bool>(c.call().attrs(), "require_non_empty", false)));
}

// By data: by file would need another graph.
StatusOr<DatasetRef> MakeAutoShard(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(const DatasetRef input, DatasetInput(c));
  WEFT_ASSIGN_OR_RETURN(const int64_t shards, ScalarInput<int64_t>(c, "num_workers"));
  WEFT_ASSIGN_OR_RETURN(const int64_t index, ScalarInput<int64_t>(c, "index"));
  if (shards <= 0 || index < 0 || index >= shards) {
    return InvalidArgument("index must be between 0 and ", shards - 1, ", but is ", index);
  }
  if (FindAttrOr<int64_t>(c.call().attrs(), "auto_shard_policy", 0) == -1 || shards == 1) {
    return input;
  }
  return DatasetRef(MakeRef<Shard>(input, shards, index, false));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddDataset(catalogue, {.name = "RepeatDataset",
                         .doc = "A dataset of the elements `count` times over, -1 without end.",
                         .inputs = {"input_dataset: variant", "count: int64"},
                         .attrs = {"output_types: list(type) >= 1",
                                   "output_shapes: list(shape) >= 1", "metadata: string = ''"},
                         .make = MakeCounted<Repeat>});
  AddDataset(catalogue, {.name = "TakeDataset",
                         .doc = "A dataset of the first `count` elements, -1 for all.",
                         .inputs = {"input_dataset: variant", "count: int64"},
                         .attrs = {"output_types: list(type) >= 1",
                                   "output_shapes: list(shape) >= 1", "metadata: string = ''"},
                         .make = MakeCounted<Take>});
  AddDataset(catalogue,
             {.name = "SkipDataset",
              .doc = "A dataset of what follows the first `count` elements, -1 to skip all.",
              .inputs = {"input_dataset: variant", "count: int64"},
              .attrs = {"output_types: list(type) >= 1", "output_shapes: list(shape) >= 1",
                        "metadata: string = ''"},
              .make = MakeCounted<Skip>});
  AddDataset(catalogue,
             {.name = "ShardDataset",
              .doc = "A dataset of every `num_shards`-th element, from `index` on.",
              .inputs = {"input_dataset: variant", "num_shards: int64", "index: int64"},
              .attrs = {"require_non_empty: bool = false", "output_types: list(type) >= 1",
                        "output_shapes: list(shape) >= 1", "metadata: string = ''"},
              .make = MakeShard});
  AddDataset(catalogue, {.name = "AutoShardDataset",
                         .doc = "A dataset of the elements that one of `num_workers` workers "
                                "takes: every `num_workers`-th.",
                         .inputs = {"input_dataset: variant", "num_workers: int64", "index: int64"},
                         .attrs = {"auto_shard_policy: int = 0", "output_types: list(type) >= 1",
                                   "output_shapes: list(shape) >= 1", "num_replicas: int = 0"},
                         .make = MakeAutoShard});
  AddDataset(catalogue, {.name = "ExperimentalAutoShardDataset",
                         .doc = "AutoShardDataset under its first name.",
                         .inputs = {"input_dataset: variant", "num_workers: int64", "index: int64"},
                         .attrs = {"auto_shard_policy: int = 0", "output_types: list(type) >= 1",
                                   "output_shapes: list(shape) >= 1"},
                         .make = MakeAutoShard});
}

}  // namespace weft::data::repeat
