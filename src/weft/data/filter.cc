// SPDX-License-Identifier: Apache-2.0
// Some of the elements: those that a predicate chooses, or those before the first that it does not.
#include <utility>

#include "weft/data/transform.h"

namespace weft::data::filter {
namespace {

enum class Rule { kFilter, kTakeWhile };

class Chosen final : public TransformDataset {
 public:
  Chosen(const DatasetRef& input, CapturedFunction predicate, Rule rule)
      : TransformDataset(input), predicate_(std::move(predicate)), rule_(rule) {}
  int64_t Cardinality() const override { return kUnknown; }
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return Started<Iterator>(this, context);
  }

 private:
  class Iterator final : public TransformIterator<Chosen> {
   public:
    using TransformIterator::TransformIterator;
    StatusOr<bool> Next(Element* element) override {
      while (input() != nullptr) {
        WEFT_ASSIGN_OR_RETURN(const bool found, input()->Next(element));
        if (!found) break;
        WEFT_ASSIGN_OR_RETURN(const bool is_chosen,
                              context()->CallForScalar<bool>(dataset().predicate_, *element));
        if (is_chosen) return true;
        if (dataset().rule_ == Rule::kTakeWhile) break;
      }
      input().reset();
      return false;
    }
  };

  const CapturedFunction predicate_;
  const Rule rule_;
};

// Chooses by the last component, a boolean, which the elements then lack.
class ByLast final : public TransformDataset {
 public:
  ByLast(ElementSpec spec, DatasetRef input)
      : TransformDataset(std::move(spec), std::move(input)) {}
  int64_t Cardinality() const override { return kUnknown; }
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return Started<Iterator>(this, context);
  }

 private:
  class Iterator final : public TransformIterator<ByLast> {
   public:
    using TransformIterator::TransformIterator;
    StatusOr<bool> Next(Element* element) override {
      while (true) {
        WEFT_ASSIGN_OR_RETURN(const bool found, input()->Next(element));
        if (!found) return false;
        const Tensor last = std::move(element->back());
        element->pop_back();
        if (last.dtype() != DType::kBool || !last.shape().IsScalar()) {
          return InvalidArgument("Last component of the element must be a scalar bool");
        }
        if (last.scalar<bool>()) return true;
      }
    }
  };
};

template <Rule rule>
StatusOr<DatasetRef> Make(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(const DatasetRef input, DatasetInput(c));
  WEFT_ASSIGN_OR_RETURN(CapturedFunction function,
                        FunctionInput(c, "predicate", "other_arguments"));
  return DatasetRef(MakeRef<Chosen>(input, std::move(function), rule));
}

StatusOr<DatasetRef> MakeByLast(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(DatasetRef input, DatasetInput(c));
  ElementSpec spec = input->spec();
  if (spec.types.empty() || spec.types.back() != DType::kBool) {
    return InvalidArgument("Last component of the dataset must be boolean");
  }
  spec.types.pop_back();
  if (spec.shapes.size() > spec.types.size()) spec.shapes.pop_back();
  return DatasetRef(MakeRef<ByLast>(std::move(spec), std::move(input)));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddDataset(catalogue, {.name = "FilterDataset",
                         .doc = "A dataset of the elements for which `predicate` is true.",
                         .inputs = {"input_dataset: variant", "other_arguments: Targuments"},
                         .attrs = {"predicate: func", "Targuments: list(type) >= 0",
                                   "output_types: list(type) >= 1",
                                   "output_shapes: list(shape) >= 1", "metadata: string = ''"},
                         .make = Make<Rule::kFilter>});
  AddDataset(catalogue,
             {.name = "ParallelFilterDataset",
              .doc = "A dataset of the elements for which `predicate` is true, in order.",
              .inputs = {"input_dataset: variant", "other_arguments: Targuments",
                         "num_parallel_calls: int64"},
              .attrs = {"predicate: func", "deterministic: string = 'default'",
                        "Targuments: list(type) >= 0", "output_types: list(type) >= 1",
                        "output_shapes: list(shape) >= 1", "metadata: string = ''"},
              .make = Make<Rule::kFilter>});
  AddDataset(catalogue,
             {.name = "FilterByLastComponentDataset",
              .doc = "A dataset of the elements whose last component is true, without it.",
              .inputs = {"input_dataset: variant"},
              .attrs = {"output_types: list(type) >= 1", "output_shapes: list(shape) >= 1"},
              .output = "output: variant",
              .make = MakeByLast});
  AddDataset(
      catalogue,
      {.name = "TakeWhileDataset",
       .doc = "A dataset of the elements before the first for which `predicate` is false.",
       .inputs = {"input_dataset: variant", "other_arguments: Targuments"},
       .attrs = {"predicate: func", "Targuments: list(type) >= 0", "output_types: list(type) >= 1",
                 "output_shapes: list(shape) >= 1", "metadata: string = ''"},
       .make = Make<Rule::kTakeWhile>});
  AddDataset(catalogue,
             {.name = "ExperimentalTakeWhileDataset",
              .doc = "TakeWhileDataset under its first name.",
              .inputs = {"input_dataset: variant", "other_arguments: Targuments"},
              .attrs = {"predicate: func", "Targuments: list(type) >= 0",
                        "output_types: list(type) >= 1", "output_shapes: list(shape) >= 1"},
              .make = Make<Rule::kTakeWhile>});
}

}  // namespace weft::data::filter
