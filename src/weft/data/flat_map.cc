// SPDX-License-Identifier: Apache-2.0
// The elements of a dataset for each element: one after another, or interleaved.
#include <utility>

#include "weft/data/prefetch.h"

namespace weft::data::flat_map {
namespace {

StatusOr<DatasetRef> InnerDataset(const ContextPtr& context, const CapturedFunction& function,
                                  Element argument) {
  WEFT_ASSIGN_OR_RETURN(const Element results, context->CallAndWait(function, std::move(argument)));
  if (results.size() != 1 || results[0].dtype() != DType::kVariant ||
      !results[0].shape().IsScalar()) {
    return InvalidArgument("Function must return a single scalar of dtype DT_VARIANT.");
  }
  return DatasetOf(results[0]);
}

class FlatMap final : public TransformDataset {
 public:
  FlatMap(ElementSpec spec, DatasetRef input, CapturedFunction function)
      : TransformDataset(std::move(spec), std::move(input)), function_(std::move(function)) {}
  int64_t Cardinality() const override { return kUnknown; }
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return Started<Iterator>(this, context);
  }

 private:
  class Iterator final : public TransformIterator<FlatMap> {
   public:
    using TransformIterator::TransformIterator;
    StatusOr<bool> Next(Element* element) override {
      while (input() != nullptr) {
        WEFT_RETURN_IF_ERROR(context()->Check());
        if (inner_ == nullptr) {
          Element argument;
          WEFT_ASSIGN_OR_RETURN(const bool found, input()->Next(&argument));
          if (!found) break;
          WEFT_ASSIGN_OR_RETURN(const DatasetRef inner,
                                InnerDataset(context(), dataset().function_, std::move(argument)));
          WEFT_ASSIGN_OR_RETURN(inner_, inner->MakeIterator(context()));
        }
        WEFT_ASSIGN_OR_RETURN(const bool found, inner_->Next(element));
        if (found) return true;
        inner_.reset();
      }
      input().reset();
      return false;
    }

   private:
    IteratorPtr inner_;
  };

  const CapturedFunction function_;
};

// Takes `block` elements in turn from each of `cycle` datasets.
class Interleave final : public TransformDataset {
 public:
  struct Plan {
    int64_t cycle = 1;
    int64_t block = 1;
    int64_t ahead = 0;  // elements of each that are made ahead of time
  };
  Interleave(ElementSpec spec, DatasetRef input, CapturedFunction function, const Plan& plan)
      : TransformDataset(std::move(spec), std::move(input)),
        function_(std::move(function)),
        plan_(plan) {}
  int64_t Cardinality() const override {
    return input()->Cardinality() == kInfinite ? kInfinite : kUnknown;
  }
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return Started<Iterator>(this, context);
  }

 private:
  class Iterator final : public TransformIterator<Interleave> {
   public:
    using TransformIterator::TransformIterator;
    StatusOr<bool> Next(Element* element) override {
      const Plan& plan = dataset().plan_;
      // Places come to be as datasets do: the number that was asked for may be beyond all memory.
      while (true) {
        WEFT_RETURN_IF_ERROR(context()->Check());
        if (at_ == places_.size()) {
          if (static_cast<int64_t>(at_) < plan.cycle && !is_over_) {
            places_.emplace_back();
          } else {
            at_ = 0;
          }
        }
        if (places_.empty()) return false;
        IteratorPtr& place = places_[at_];
        if (place == nullptr && !is_over_) {
          WEFT_RETURN_IF_ERROR(Open(&place));
          if (place != nullptr) ++open_;
        }
        if (place == nullptr) {
          if (is_over_ && open_ == 0) return false;
          Advance();
          continue;
        }
        WEFT_ASSIGN_OR_RETURN(const bool found, place->Next(element));
        if (found) {
          if (++taken_ == plan.block) Advance();
          return true;
        }
        place.reset();
        --open_;
        Advance();
      }
    }

   private:
    void Advance() {
      ++at_;
      taken_ = 0;
    }
    // The next dataset of the input; none at the end.
    Status Open(IteratorPtr* place) {
      Element argument;
      WEFT_ASSIGN_OR_RETURN(const bool found, input()->Next(&argument));
      if (!found) {
        is_over_ = true;
        return absl::OkStatus();
      }
      WEFT_ASSIGN_OR_RETURN(const DatasetRef inner,
                            InnerDataset(context(), dataset().function_, std::move(argument)));
      const int64_t ahead = dataset().plan_.ahead;
      WEFT_ASSIGN_OR_RETURN(
          *place, ahead > 0 ? MakeAhead(*inner, context(), ahead) : inner->MakeIterator(context()));
      return absl::OkStatus();
    }

    std::vector<IteratorPtr> places_;
    size_t at_ = 0;
    int64_t taken_ = 0;
    int64_t open_ = 0;
    bool is_over_ = false;
  };

  const CapturedFunction function_;
  const Plan plan_;
};

StatusOr<DatasetRef> MakeFlatMap(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(DatasetRef input, DatasetInput(c));
  WEFT_ASSIGN_OR_RETURN(CapturedFunction function, FunctionInput(c, "f", "other_arguments"));
  WEFT_ASSIGN_OR_RETURN(ElementSpec spec, DeclaredSpec(c));
  return DatasetRef(MakeRef<FlatMap>(std::move(spec), std::move(input), std::move(function)));
}

enum class Form { kPlain, kParallel, kBuffered, kLegacy };

template <Form form>
StatusOr<DatasetRef> MakeInterleave(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(DatasetRef input, DatasetInput(c));
  WEFT_ASSIGN_OR_RETURN(CapturedFunction function, FunctionInput(c, "f", "other_arguments"));
  WEFT_ASSIGN_OR_RETURN(ElementSpec spec, DeclaredSpec(c));
  Interleave::Plan plan;
  WEFT_ASSIGN_OR_RETURN(plan.cycle, ScalarInput<int64_t>(c, "cycle_length"));
  WEFT_ASSIGN_OR_RETURN(plan.block, ScalarInput<int64_t>(c, "block_length"));
  if (plan.cycle == -1 && form != Form::kLegacy) {
    WEFT_ASSIGN_OR_RETURN(plan.cycle, ParallelCalls(-1));
  }
  if (plan.cycle < 1) return InvalidArgument("cycle_length must be greater than zero.");
  if (plan.block < 1) return InvalidArgument("block_length must be greater than zero.");
  if (form == Form::kParallel || form == Form::kBuffered) {
    WEFT_ASSIGN_OR_RETURN(const int64_t asked, ScalarInput<int64_t>(c, "num_parallel_calls"));
    if (asked != -1 && asked < 1) {
      return InvalidArgument("num_parallel_calls must be greater than zero.");
    }
    if (asked > plan.cycle) {
      return InvalidArgument("num_parallel_calls must less than or equal to cycle_length.");
    }
    // A thread each: not more of them than make sense.
    if (plan.cycle <= 64) plan.ahead = 2;
  }
  if (form == Form::kLegacy || form == Form::kBuffered) {
    WEFT_ASSIGN_OR_RETURN(const int64_t ahead, ScalarInput<int64_t>(c, "buffer_output_elements"));
    WEFT_ASSIGN_OR_RETURN(const int64_t next, ScalarInput<int64_t>(c, "prefetch_input_elements"));
    if (form == Form::kLegacy ? ahead < -1 || ahead == 0 : ahead < -2) {
      return InvalidArgument("`buffer_output_elements` must be -1 or greater than 0 but is ",
                             ahead);
    }
    if (next < (form == Form::kLegacy ? -1 : -2)) {
      return InvalidArgument("`prefetch_input_elements` must be at least -1 but is ", next);
    }
    if (plan.cycle <= 64) plan.ahead = ahead > 0 ? ahead : 2;
  }
  return DatasetRef(
      MakeRef<Interleave>(std::move(spec), std::move(input), std::move(function), plan));
}

void RegisterSerial(Catalogue& catalogue) {
  AddDataset(catalogue,
             {.name = "FlatMapDataset",
              .doc = "A dataset of the elements of `f` of each element, one after another.",
              .inputs = {"input_dataset: variant", "other_arguments: Targuments"},
              .attrs = {"f: func", "Targuments: list(type) >= 0", "output_types: list(type) >= 1",
                        "output_shapes: list(shape) >= 1", "metadata: string = ''"},
              .make = MakeFlatMap});
  AddDataset(catalogue,
             {.name = "InterleaveDataset",
              .doc = "A dataset of the elements of `f` of each element: `block_length` in turn of "
                     "each of `cycle_length` datasets.",
              .inputs = {"input_dataset: variant", "other_arguments: Targuments",
                         "cycle_length: int64", "block_length: int64"},
              .attrs = {"f: func", "Targuments: list(type) >= 0", "output_types: list(type) >= 1",
                        "output_shapes: list(shape) >= 1", "metadata: string = ''"},
              .make = MakeInterleave<Form::kPlain>});
}

void RegisterParallel(Catalogue& catalogue) {
  AddDataset(
      catalogue,
      {.name = "ParallelInterleaveDataset",
       .doc =
           "InterleaveDataset whose datasets are read ahead of time, each by a thread; in order.",
       .inputs = {"input_dataset: variant", "other_arguments: Targuments", "cycle_length: int64",
                  "block_length: int64", "sloppy: bool", "buffer_output_elements: int64",
                  "prefetch_input_elements: int64"},
       .attrs = {"f: func", "Targuments: list(type) >= 0", "output_types: list(type) >= 1",
                 "output_shapes: list(shape) >= 1", "metadata: string = ''"},
       .make = MakeInterleave<Form::kLegacy>});
  AddDataset(catalogue,
             {.name = "ExperimentalParallelInterleaveDataset",
              .doc = "ParallelInterleaveDataset under its first name.",
              .inputs = {"input_dataset: variant", "other_arguments: Targuments",
                         "cycle_length: int64", "block_length: int64", "sloppy: bool",
                         "buffer_output_elements: int64", "prefetch_input_elements: int64"},
              .attrs = {"f: func", "Targuments: list(type) >= 0", "output_types: list(type) >= 1",
                        "output_shapes: list(shape) >= 1"},
              .make = MakeInterleave<Form::kLegacy>});
  AddDataset(
      catalogue,
      {.name = "LegacyParallelInterleaveDatasetV2",
       .doc =
           "InterleaveDataset whose datasets are read ahead of time, each by a thread; in order.",
       .inputs = {"input_dataset: variant", "other_arguments: Targuments", "cycle_length: int64",
                  "block_length: int64", "buffer_output_elements: int64",
                  "prefetch_input_elements: int64"},
       .attrs = {"f: func", "deterministic: string = 'default'", "Targuments: list(type) >= 0",
                 "output_types: list(type) >= 1", "output_shapes: list(shape) >= 1",
                 "metadata: string = ''"},
       .make = MakeInterleave<Form::kLegacy>});
  AddDataset(
      catalogue,
      {.name = "ParallelInterleaveDatasetV2",
       .doc =
           "InterleaveDataset whose datasets are read ahead of time, each by a thread; in order.",
       .inputs = {"input_dataset: variant", "other_arguments: Targuments", "cycle_length: int64",
                  "block_length: int64", "num_parallel_calls: int64"},
       .attrs = {"f: func", "Targuments: list(type) >= 0", "output_types: list(type) >= 1",
                 "output_shapes: list(shape) >= 1", "sloppy: bool = false",
                 "metadata: string = ''"},
       .make = MakeInterleave<Form::kParallel>});
  AddDataset(
      catalogue,
      {.name = "ParallelInterleaveDatasetV3",
       .doc =
           "InterleaveDataset whose datasets are read ahead of time, each by a thread; in order.",
       .inputs = {"input_dataset: variant", "other_arguments: Targuments", "cycle_length: int64",
                  "block_length: int64", "num_parallel_calls: int64"},
       .attrs = {"f: func", "deterministic: string = 'default'", "Targuments: list(type) >= 0",
                 "output_types: list(type) >= 1", "output_shapes: list(shape) >= 1",
                 "metadata: string = ''"},
       .make = MakeInterleave<Form::kParallel>});
  AddDataset(
      catalogue,
      {.name = "ParallelInterleaveDatasetV4",
       .doc =
           "InterleaveDataset whose datasets are read ahead of time, each by a thread; in order.",
       .inputs = {"input_dataset: variant", "other_arguments: Targuments", "cycle_length: int64",
                  "block_length: int64", "buffer_output_elements: int64",
                  "prefetch_input_elements: int64", "num_parallel_calls: int64"},
       .attrs = {"f: func", "deterministic: string = 'default'", "Targuments: list(type) >= 0",
                 "output_types: list(type) >= 1", "output_shapes: list(shape) >= 1",
                 "metadata: string = ''"},
       .make = MakeInterleave<Form::kBuffered>});
}

}  // namespace

void Register(Catalogue& catalogue) {
  RegisterSerial(catalogue);
  RegisterParallel(catalogue);
}

}  // namespace weft::data::flat_map
