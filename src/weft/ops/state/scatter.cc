// SPDX-License-Identifier: Apache-2.0
// Updates of rows of a variable, by reference or by handle.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/state/scatter_kernel.h"
#include "weft/ops/state/variable_kernel.h"

namespace weft::ops::state::scatter {
namespace {

template <typename Index>
StatusOr<std::vector<int64_t>> CheckedRows(const Tensor& indices, int64_t num_rows) {
  std::vector<int64_t> rows;
  rows.reserve(static_cast<size_t>(indices.num_elements()));
  for (const Index row : indices.span<Index>()) {
    if (row < 0 || static_cast<int64_t>(row) >= num_rows) {
      return InvalidArgument("indices[", rows.size(), "] = ", row, " is not in [0, ", num_rows,
                             ")");
    }
    rows.push_back(static_cast<int64_t>(row));
  }
  return rows;
}

Status CheckShapes(const Shape& params, const Shape& indices, const Shape& updates) {
  if (params.rank() < 1) {
    return InvalidArgument("params must be at least 1-D, got shape ", params.ToString());
  }
  if (updates.IsScalar()) return absl::OkStatus();
  Shape expected = indices;
  for (int i = 1; i < params.rank(); ++i) expected.AddDim(params.dim(i));
  if (updates == expected) return absl::OkStatus();
  return InvalidArgument(
      "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got "
      "updates.shape ",
      updates.ToString(), ", indices.shape ", indices.ToString(), ", params.shape ",
      params.ToString());
}

class ScatterKernel final : public OpKernel {
 public:
  ScatterKernel(ScatterRule rule, DType dtype) : rule_(rule), dtype_(dtype) {}

  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<Variable> variable, TargetVariable(c, 0, dtype_));
    const Tensor& indices = c.input(1);
    const Tensor& updates = c.input(2);
    const Status updated =
        UpdateRows(&c.device(), *variable, indices, [&](Tensor& value) -> Status {
          WEFT_RETURN_IF_ERROR(CheckShapes(value.shape(), indices.shape(), updates.shape()));
          const int64_t num_rows = value.dim(0);
          WEFT_ASSIGN_OR_RETURN(std::vector<int64_t> rows,
                                indices.dtype() == DType::kInt32
                                    ? CheckedRows<int32_t>(indices, num_rows)
                                    : CheckedRows<int64_t>(indices, num_rows));
          if (rows.empty()) return absl::OkStatus();
          return CombineSlices(c, rule_, rows, value.num_elements() / num_rows, updates, value);
        });
    if (updated.ok()) ForwardTarget(c, 0, 0);
    return updated;
  }

 private:
  const ScatterRule rule_;
  const DType dtype_;
};

Status ReferenceShape(ShapeContext& c) {
  if (c.num_outputs() > 0) c.set_output(0, c.input(0));
  return absl::OkStatus();
}

KernelDef KernelOf(ScatterRule rule, const std::string& type_attr) {
  return {
      .types = {{type_attr, TypesOf(rule)}},
      .factory = [rule, type_attr](KernelConstruction& c) -> StatusOr<std::unique_ptr<OpKernel>> {
        WEFT_ASSIGN_OR_RETURN(DType dtype, c.Attr<DType>(type_attr));
        return std::make_unique<ScatterKernel>(rule, dtype);
      }};
}

std::string Documentation(const std::string& formula) {
  return absl::StrCat(
      formula,
      "\nupdates.shape is indices.shape + variable.shape[1:], or []. Repeated indices "
      "apply one after the other.\nInvalidArgument for an index out of range; nothing "
      "is changed then.");
}

void RegisterRule(Catalogue& catalogue, const std::string& name, ScatterRule rule,
                  const std::string& formula) {
  const bool is_update = rule == ScatterRule::kUpdate;
  const bool is_limit = rule == ScatterRule::kMinimum || rule == ScatterRule::kMaximum;
  const char* types =
      is_update ? "type"
                : (is_limit ? "{half, bfloat16, float, double, int32, int64}" : "numbertype");
  catalogue.Add(OpSpec(absl::StrCat("Scatter", name))
                    .Doc(Documentation(formula))
                    .Input("ref: Ref(T)")
                    .Input("indices: Tindices")
                    .Input("updates: T")
                    .Output("output_ref: Ref(T)")
                    .Attr(absl::StrCat("T: ", types))
                    .Attr("Tindices: {int32, int64}")
                    .Attr(absl::StrCat("use_locking: bool = ", is_update ? "true" : "false"))
                    .Shape(ReferenceShape)
                    .NoGradient()
                    .Kernel(KernelOf(rule, "T")));
  catalogue.Add(OpSpec(absl::StrCat("ResourceScatter", name))
                    .Doc(Documentation(formula))
                    .Input("resource: resource")
                    .Input("indices: Tindices")
                    .Input("updates: dtype")
                    .Attr(absl::StrCat("dtype: ", is_update ? "type" : "numbertype"))
                    .Attr("Tindices: {int32, int64}")
                    .Stateful()
                    .Traits({.changes_variable = true})
                    .Shape(shapes::NoOutputs)
                    .NoGradient()
                    .Kernel(KernelOf(rule, "dtype")));
}

}  // namespace

void Register(Catalogue& catalogue) {
  RegisterRule(catalogue, "Update", ScatterRule::kUpdate, "variable[indices, ...] = updates[...].");
  RegisterRule(catalogue, "Add", ScatterRule::kAdd, "variable[indices, ...] += updates[...].");
  RegisterRule(catalogue, "Sub", ScatterRule::kSubtract, "variable[indices, ...] -= updates[...].");
  RegisterRule(catalogue, "Mul", ScatterRule::kMultiply, "variable[indices, ...] *= updates[...].");
  RegisterRule(catalogue, "Div", ScatterRule::kDivide,
               "variable[indices, ...] /= updates[...]; integers round towards zero.");
  RegisterRule(catalogue, "Min", ScatterRule::kMinimum,
               "variable[indices, ...] = min(variable[indices, ...], updates[...]).");
  RegisterRule(catalogue, "Max", ScatterRule::kMaximum,
               "variable[indices, ...] = max(variable[indices, ...], updates[...]).");
}

}  // namespace weft::ops::state::scatter
