// SPDX-License-Identifier: Apache-2.0
// What the ops that make datasets have in common: how they read their inputs, how they register.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "weft/data/dataset.h"
#include "weft/data/iterator_context.h"
#include "weft/kernel/op_spec.h"

namespace weft::data {

using DatasetMaker = StatusOr<DatasetRef> (*)(KernelContext& c);

// An op whose one output is a dataset.
struct DatasetOpSpec {
  std::string name;
  std::string doc;
  std::vector<std::string> inputs;
  std::vector<std::string> attrs;
  bool is_stateful = false;
  std::string output = "handle: variant";
  DatasetMaker make = nullptr;
};
void AddDataset(Catalogue& catalogue, DatasetOpSpec spec);
// Under its name, with `newer` attributes, and without them under the name that it had at first:
// ExperimentalX for X.
void AddUnderBothNames(Catalogue& catalogue, DatasetOpSpec spec,
                       const std::vector<std::string>& newer = {});

// The inputs that belong to argument `name` of the op.
struct InputRange {
  int first = 0;
  int count = 0;
};
StatusOr<InputRange> InputsNamed(const KernelContext& c, absl::string_view name);
StatusOr<Element> ListInput(const KernelContext& c, absl::string_view name);
StatusOr<Tensor> OneInput(const KernelContext& c, absl::string_view name);

// InvalidArgument, naming the input, where it is not a scalar of T.
template <typename T>
StatusOr<T> ScalarInput(const KernelContext& c, absl::string_view name) {
  WEFT_ASSIGN_OR_RETURN(const Tensor value, OneInput(c, name));
  if (!value.shape().IsScalar()) return InvalidArgument(name, " must be a scalar");
  if (value.dtype() != DTypeOf<T>) {
    return InvalidArgument(name, " must be of ", DTypeName(DTypeOf<T>), ", got ",
                           DTypeName(value.dtype()));
  }
  return value.scalar<T>();
}
// The same for a scalar or vector.
template <typename T>
StatusOr<std::vector<T>> VectorInput(const KernelContext& c, absl::string_view name) {
  WEFT_ASSIGN_OR_RETURN(const Tensor value, OneInput(c, name));
  if (value.rank() > 1 || value.dtype() != DTypeOf<T>) {
    return InvalidArgument("`", name, "` must be a scalar or a vector.");
  }
  return std::vector<T>(value.span<T>().begin(), value.span<T>().end());
}
StatusOr<DatasetRef> DatasetInput(const KernelContext& c, absl::string_view name = "input_dataset");
StatusOr<std::vector<DatasetRef>> DatasetListInput(const KernelContext& c, absl::string_view name);
// Seeds as inputs `seed` and `seed2`.
StatusOr<Seeds> SeedsInput(const KernelContext& c);
// The function of attribute `attr` with what argument `captured` gives it.
StatusOr<CapturedFunction> FunctionInput(const KernelContext& c, absl::string_view attr,
                                         absl::string_view captured);
// output_types and output_shapes.
StatusOr<ElementSpec> DeclaredSpec(const KernelContext& c);
// How many calls run at once where `asked` may be -1 for as many as there are cores.
StatusOr<int64_t> ParallelCalls(int64_t asked);

}  // namespace weft::data
