// SPDX-License-Identifier: Apache-2.0
// What functions of a dataset make of it, all the same: the first one is taken.
#include <utility>

#include "weft/data/transform.h"

namespace weft::data::fastest_branch {
namespace {

class Branch final : public TransformDataset {
 public:
  Branch(ElementSpec spec, DatasetRef input, CapturedFunction function)
      : TransformDataset(std::move(spec), std::move(input)), function_(std::move(function)) {}
  int64_t Cardinality() const override { return kUnknown; }
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    WEFT_ASSIGN_OR_RETURN(
        const Element results,
        context->CallAndWait(function_, {VariantOf(DatasetRef(const_cast<Dataset*>(input())))}));
    if (results.size() != 1) {
      return InvalidArgument("A branch must give one dataset, got ", results.size(), " values");
    }
    WEFT_ASSIGN_OR_RETURN(const DatasetRef made, DatasetOf(results[0]));
    return made->MakeIterator(context);
  }

 private:
  const CapturedFunction function_;
};

StatusOr<DatasetRef> Make(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(DatasetRef input, DatasetInput(c));
  WEFT_ASSIGN_OR_RETURN(const int64_t above, ScalarInput<int64_t>(c, "ratio_numerator"));
  WEFT_ASSIGN_OR_RETURN(const int64_t below, ScalarInput<int64_t>(c, "ratio_denominator"));
  if (above <= 0) return InvalidArgument("`ratio_numerator` must be greater than zero.");
  if (below <= 0) return InvalidArgument("`ratio_denominator` must be greater than zero.");
  WEFT_ASSIGN_OR_RETURN(const auto branches, c.call().Attr<AttrValue::FunctionList>("branches"));
  WEFT_ASSIGN_OR_RETURN(const auto lengths,
                        c.call().Attr<AttrValue::IntList>("other_arguments_lengths"));
  WEFT_ASSIGN_OR_RETURN(Element captured, ListInput(c, "other_arguments"));
  WEFT_ASSIGN_OR_RETURN(const auto per_branch, c.call().Attr<int64_t>("num_elements_per_branch"));
  if (per_branch % below != 0) {
    return InvalidArgument("`num_elements_per_branch` must be divisible by `ratio_denominator`.");
  }
  if (branches.empty() || lengths.size() != branches.size()) {
    return InvalidArgument("`other_arguments_lengths` must have an entry for each of ",
                           branches.size(), " branches, got ", lengths.size());
  }
  if (lengths[0] < 0 || lengths[0] > static_cast<int64_t>(captured.size())) {
    return InvalidArgument("The first branch wants ", lengths[0], " of ", captured.size(),
                           " other arguments");
  }
  auto* const functions = dynamic_cast<LibraryOwner*>(c.environment().functions);
  if (functions == nullptr) {
    return FailedPrecondition(c.call().op(), " cannot be called where there is no graph");
  }
  captured.resize(static_cast<size_t>(lengths[0]));
  CapturedFunction first{branches[0], std::move(captured), functions->Library()};
  WEFT_ASSIGN_OR_RETURN(ElementSpec spec, DeclaredSpec(c));
  return DatasetRef(MakeRef<Branch>(std::move(spec), std::move(input), std::move(first)));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddDataset(catalogue,
             {.name = "ChooseFastestBranchDataset",
              .doc = "What the first of `branches`, functions of a dataset that all give the same "
                     "elements, makes of it.",
              .inputs = {"input_dataset: variant", "ratio_numerator: int64",
                         "ratio_denominator: int64", "other_arguments: Targuments"},
              .attrs = {"Targuments: list(type) >= 0", "num_elements_per_branch: int >= 1",
                        "branches: list(func) >= 1", "other_arguments_lengths: list(int) >= 1",
                        "output_types: list(type) >= 1", "output_shapes: list(shape) >= 1"},
              .make = Make});
}

}  // namespace weft::data::fastest_branch
