// SPDX-License-Identifier: Apache-2.0
// All elements of a dataset in a random order, without a buffer of them; and two datasets of which
// each element is found by its number.
#include <algorithm>
#include <limits>
#include <utility>

#include "weft/data/index_permutation.h"
#include "weft/data/seed_generator.h"
#include "weft/data/transform.h"

namespace weft::data::global_shuffle {
namespace {

class GlobalShuffle final : public TransformDataset {
 public:
  GlobalShuffle(const DatasetRef& input, SeedSource seeds)
      : TransformDataset(input), seeds_(std::move(seeds)) {}
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    const Ref<SeedGenerator> generator = seeds_.For(context);
    const Seeds first = generator->Next(), second = generator->Next();
    const IndexPermutation::Key key = {static_cast<uint32_t>(first.first),
                                       static_cast<uint32_t>(first.second),
                                       static_cast<uint32_t>(second.first)};
    return std::make_unique<Iterator>(Ref<const GlobalShuffle>(this), context, key);
  }

 private:
  class Iterator final : public DatasetIterator {
   public:
    Iterator(Ref<const GlobalShuffle> dataset, ContextPtr context, const IndexPermutation::Key& key)
        : dataset_(std::move(dataset)),
          context_(std::move(context)),
          count_(dataset_->Cardinality()),
          order_(key, static_cast<uint64_t>(count_ - 1), kRounds) {}
    StatusOr<bool> Next(Element* element) override {
      WEFT_RETURN_IF_ERROR(context_->Check());
      if (next_ >= count_) return false;
      const auto index = static_cast<int64_t>(order_(static_cast<uint64_t>(next_++)));
      WEFT_ASSIGN_OR_RETURN(*element, dataset_->input()->At(context_, index));
      return true;
    }

   private:
    static constexpr int64_t kRounds = 8;
    const Ref<const GlobalShuffle> dataset_;
    const ContextPtr context_;
    const int64_t count_;
    const IndexPermutation order_;
    int64_t next_ = 0;
  };

  const SeedSource seeds_;
};

// Element `offset` of the function of the input's element `index`, where another function gives
// these two for each number.
class IndexFlatMap final : public TransformDataset {
 public:
  IndexFlatMap(ElementSpec spec, DatasetRef input, CapturedFunction map, CapturedFunction place,
               int64_t cardinality)
      : TransformDataset(std::move(spec), std::move(input)),
        map_(std::move(map)),
        place_(std::move(place)),
        cardinality_(cardinality) {}
  int64_t Cardinality() const override { return cardinality_; }
  bool HasRandomAccess() const override { return input()->HasRandomAccess(); }
  StatusOr<Element> At(const ContextPtr& context, int64_t index) const override {
    WEFT_ASSIGN_OR_RETURN(const Place place, PlaceOf(context, index));
    WEFT_ASSIGN_OR_RETURN(Element element, input()->At(context, place.index));
    WEFT_ASSIGN_OR_RETURN(const Element mapped, context->CallAndWait(map_, std::move(element)));
    return SliceOf(mapped, place.offset);
  }
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return Started<Iterator>(this, context);
  }

 private:
  struct Place {
    int64_t index;
    int64_t offset;
  };

  class Iterator final : public TransformIterator<IndexFlatMap> {
   public:
    using TransformIterator::TransformIterator;
    // The input is read in order: its next element comes where the place says another one.
    StatusOr<bool> Next(Element* element) override {
      WEFT_ASSIGN_OR_RETURN(const Place place, dataset().PlaceOf(context(), next_));
      if (mapped_.empty() || place.index > index_) {
        Element argument;
        WEFT_ASSIGN_OR_RETURN(const bool found, input()->Next(&argument));
        if (!found) return false;
        WEFT_ASSIGN_OR_RETURN(mapped_, context()->CallAndWait(dataset().map_, std::move(argument)));
        index_ = place.index;
      }
      WEFT_ASSIGN_OR_RETURN(*element, SliceOf(mapped_, place.offset));
      ++next_;
      return true;
    }

   private:
    Element mapped_;
    int64_t index_ = 0;
    int64_t next_ = 0;
  };

  static StatusOr<int64_t> NumberOf(const Tensor& tensor) {
    int64_t value = -1;
    const bool is_number =
        tensor.num_elements() == 1 &&
        VisitDType(tensor.dtype(), TypeList<int32_t, uint32_t, int64_t, uint64_t>(),
                   [&]<typename T>() { value = static_cast<int64_t>(*tensor.data<T>()); });
    if (is_number) return value;
    return InvalidArgument(
        "The `index_map_fn` for `index_flat_map` is expected to return two int values "
        "representing the element index and an offset within the element. Got: ",
        DTypeName(tensor.dtype()), tensor.shape().ToString());
  }
  StatusOr<Place> PlaceOf(const ContextPtr& context, int64_t index) const {
    WEFT_ASSIGN_OR_RETURN(const Element found,
                          context->CallAndWait(place_, {Tensor::Scalar(index)}));
    if (found.size() != 2) {
      return InvalidArgument(
          "The `index_map_fn` for `index_flat_map` is expected to return two int values "
          "representing the element index and an offset within the element. Got ",
          found.size(), " of them.");
    }
    Place place;
    WEFT_ASSIGN_OR_RETURN(place.index, NumberOf(found[0]));
    WEFT_ASSIGN_OR_RETURN(place.offset, NumberOf(found[1]));
    return place;
  }
  static StatusOr<Element> SliceOf(const Element& tensors, int64_t offset) {
    Element slice;
    for (const Tensor& tensor : tensors) {
      if (tensor.rank() == 0) {
        slice.push_back(tensor);
        continue;
      }
      if (offset < 0 || offset >= tensor.dim(0)) {
        return InvalidArgument(
            "The `index_flat_map` got an invalid `index_map_func` which returns ", "offset ",
            offset, " for a value of ", tensor.dim(0), " elements.");
      }
      WEFT_ASSIGN_OR_RETURN(slice.emplace_back(), RowOf(tensor, offset));
    }
    return slice;
  }

  const CapturedFunction map_;
  const CapturedFunction place_;
  const int64_t cardinality_;
};

// The first elements of several datasets, one dataset after the other; how many of each is in the
// proportion of their weights.
class WeightedFlatMap final : public Dataset {
 public:
  WeightedFlatMap(ElementSpec spec, std::vector<DatasetRef> inputs, std::vector<int64_t> counts)
      : Dataset(std::move(spec)), inputs_(std::move(inputs)), counts_(std::move(counts)) {}
  int64_t Cardinality() const override {
    int64_t all = 0;
    for (const int64_t count : counts_) all = AddCardinalities(all, count);
    return all;
  }
  bool HasRandomAccess() const override {
    return std::all_of(inputs_.begin(), inputs_.end(),
                       [](const DatasetRef& input) { return input->HasRandomAccess(); });
  }
  StatusOr<Element> At(const ContextPtr& context, int64_t index) const override {
    int64_t rest = index;
    for (size_t i = 0; rest >= 0 && i < inputs_.size(); ++i) {
      if (rest < counts_[i]) return inputs_[i]->At(context, rest);
      rest -= counts_[i];
    }
    return OutOfRange("Index out of range [0, ", Cardinality(), "):", index);
  }
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return std::make_unique<Iterator>(Ref<const WeightedFlatMap>(this), context);
  }

 private:
  class Iterator final : public DatasetIterator {
   public:
    Iterator(Ref<const WeightedFlatMap> dataset, ContextPtr context)
        : dataset_(std::move(dataset)), context_(std::move(context)) {}
    StatusOr<bool> Next(Element* element) override {
      WEFT_RETURN_IF_ERROR(context_->Check());
      for (; at_ < dataset_->inputs_.size(); ++at_, given_ = 0, input_.reset()) {
        if (given_ == dataset_->counts_[at_]) continue;
        if (input_ == nullptr) {
          WEFT_ASSIGN_OR_RETURN(input_, dataset_->inputs_[at_]->MakeIterator(context_));
        }
        ++given_;
        return input_->Next(element);
      }
      return false;
    }

   private:
    const Ref<const WeightedFlatMap> dataset_;
    const ContextPtr context_;
    IteratorPtr input_;
    size_t at_ = 0;
    int64_t given_ = 0;
  };

  const std::vector<DatasetRef> inputs_;
  const std::vector<int64_t> counts_;
};

StatusOr<DatasetRef> Make(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(const DatasetRef input, DatasetInput(c));
  if (const Status status = input->CheckRandomOrder(); !status.ok()) {
    return FailedPrecondition(
        "`global_shuffle` requires all upstream transformations be compatible with random access. "
        "Got: ",
        status.message());
  }
  if (const int64_t count = input->Cardinality(); count <= 0) {
    return InvalidArgument(
        "`global_shuffle` requires the input dataset to have a non-empty finite cardinality. Got "
        "cardinality ",
        count, " for dataset ", input->origin() == nullptr ? "input" : input->origin()->op);
  }
  const bool reshuffles = FindAttrOr<bool>(c.call().attrs(), "reshuffle_each_iteration", true);
  WEFT_ASSIGN_OR_RETURN(SeedSource seeds, SeedSource::OfKernel(c, reshuffles));
  return DatasetRef(MakeRef<GlobalShuffle>(input, std::move(seeds)));
}

StatusOr<DatasetRef> MakeIndexFlatMap(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(DatasetRef input, DatasetInput(c));
  WEFT_ASSIGN_OR_RETURN(CapturedFunction map, FunctionInput(c, "map_func", "map_func_other_args"));
  WEFT_ASSIGN_OR_RETURN(CapturedFunction place,
                        FunctionInput(c, "index_map_func", "index_map_func_other_args"));
  WEFT_ASSIGN_OR_RETURN(const int64_t count, ScalarInput<int64_t>(c, "output_cardinality"));
  if (count < kUnknown) return InvalidArgument("output_cardinality must be at least -2: ", count);
  WEFT_ASSIGN_OR_RETURN(ElementSpec spec, DeclaredSpec(c));
  return DatasetRef(MakeRef<IndexFlatMap>(std::move(spec), std::move(input), std::move(map),
                                          std::move(place), count));
}

// As many of each as their weights allow until one of the inputs ends.
StatusOr<std::vector<int64_t>> CountsOf(const std::vector<DatasetRef>& inputs,
                                        const std::vector<double>& weights) {
  const double most = *std::max_element(weights.begin(), weights.end());
  double least = std::numeric_limits<double>::max();
  size_t scarce = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const double count = static_cast<double>(inputs[i]->Cardinality()) * weights[i] / most;
    if (count < least) {
      least = count;
      scarce = i;
    }
  }
  std::vector<int64_t> counts;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const double count = least * weights[i] / weights[scarce];
    const int64_t has = inputs[i]->Cardinality();
    if (!(count < static_cast<double>(has) + 1)) {
      return InvalidArgument("Input ", i, " needs to have at least ", count,
                             " elements. It only has ", has, " elements.");
    }
    counts.push_back(static_cast<int64_t>(count));
  }
  return counts;
}

StatusOr<DatasetRef> MakeWeightedFlatMap(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(std::vector<DatasetRef> inputs, DatasetListInput(c, "input_datasets"));
  WEFT_ASSIGN_OR_RETURN(const Element numbers, ListInput(c, "weights"));
  if (inputs.empty() || numbers.size() != inputs.size()) {
    return InvalidArgument("The number of `weights` must be that of the inputs, ", inputs.size(),
                           ", got ", numbers.size());
  }
  std::vector<double> weights;
  for (const Tensor& number : numbers) {
    if (number.dtype() != DType::kDouble || number.num_elements() != 1 ||
        !(number.data<double>()[0] > 0)) {
      return InvalidArgument("`weights` must be greater than 0.0");
    }
    weights.push_back(number.data<double>()[0]);
  }
  for (const DatasetRef& input : inputs) {
    if (input->Cardinality() == kUnknown || input->Cardinality() == kInfinite) {
      return InvalidArgument("Cardinalities of the inputs must be known.");
    }
  }
  WEFT_ASSIGN_OR_RETURN(std::vector<int64_t> counts, CountsOf(inputs, weights));
  WEFT_ASSIGN_OR_RETURN(ElementSpec spec, DeclaredSpec(c));
  return DatasetRef(
      MakeRef<WeightedFlatMap>(std::move(spec), std::move(inputs), std::move(counts)));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddDataset(
      catalogue,
      {.name = "GlobalShuffleDataset",
       .doc = "A dataset of all elements in a random order, each found by its number.\n"
              "InvalidArgument where their number is not known, FailedPrecondition where they "
              "cannot be found so.",
       .inputs = {"input_dataset: variant", "seed: int64", "seed2: int64",
                  "seed_generator: resource"},
       .attrs = {"reshuffle_each_iteration: bool = true", "output_types: list(type) >= 1",
                 "output_shapes: list(shape) >= 1", "metadata: string = ''"},
       .is_stateful = true,
       .make = Make});
  AddDataset(
      catalogue,
      {.name = "IndexFlatMapDataset",
       .doc = "A dataset whose element i is element `offset` of `map_func` of element `index` of "
              "`input_dataset`, where `index_map_func` of i gives index and offset.",
       .inputs = {"input_dataset: variant", "map_func_other_args: Tmap_func_args",
                  "index_map_func_other_args: Tindex_map_func_args", "output_cardinality: int64"},
       .attrs = {"map_func: func", "index_map_func: func", "Tmap_func_args: list(type) >= 0",
                 "Tindex_map_func_args: list(type) >= 0", "output_types: list(type) >= 1",
                 "output_shapes: list(shape) >= 1", "metadata: string = ''"},
       .make = MakeIndexFlatMap});
  AddDataset(catalogue,
             {.name = "WeightedFlatMapDataset",
              .doc = "A dataset of the first elements of each of `input_datasets`, in the "
                     "proportion of `weights`; at least one of them wholly.",
              .inputs = {"input_datasets: N * variant", "weights: M * double"},
              .attrs = {"N: int >= 2", "M: int >= 2", "output_types: list(type) >= 1",
                        "output_shapes: list(shape) >= 1", "metadata: string = ''"},
              .make = MakeWeightedFlatMap});
}

}  // namespace weft::data::global_shuffle
