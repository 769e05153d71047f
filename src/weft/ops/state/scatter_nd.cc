// SPDX-License-Identifier: Apache-2.0
// Updates of elements or slices of a variable, each named by a vector of indices.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"

#include "weft/kernel/op_spec.h"
#include "weft/kernel/scratch.h"
#include "weft/ops/state/scatter_kernel.h"
#include "weft/ops/state/variable_kernel.h"

namespace weft::ops::state::scatter_nd {
namespace {

// How indices, updates and the variable lie to each other.
struct Layout {
  int64_t num_updates = 1;
  int depth = 1;  // dimensions that an index fixes
  int64_t slice_size = 1;
};

std::string Dimensions(int begin, int end, const char* what, const Shape& shape) {
  return absl::StrCat("[", begin, ",", end, ") of ", what, "[shape=", shape.ToString(), "]");
}

StatusOr<Layout> CheckShapes(const Shape& params, const Shape& indices, const Shape& updates) {
  if (params.rank() < 1) {
    return InvalidArgument("Output must be at least 1-D, got shape: ", params.ToString());
  }
  const bool none = indices.num_elements() == 0 && updates.num_elements() == 0;
  const bool all =
      params.num_elements() > 0 && indices.num_elements() > 0 && updates.num_elements() > 0;
  if (!none && !all) {
    return InvalidArgument("Indices and updates specified for empty output.  indices shape: ",
                           indices.ToString());
  }
  if (indices.rank() < 1) return InvalidArgument("indices must be at least a vector");
  Layout layout;
  const int outer = indices.rank() - 1;
  layout.depth =
      indices.rank() > 1 ? static_cast<int>(std::min<int64_t>(indices.dim(outer), kMaxRank)) : 1;
  // A vector of indices names rows, one each.
  const int batch = indices.rank() > 1 ? outer : 1;
  for (int i = 0; i < batch; ++i) {
    if (updates.rank() <= i || updates.dim(i) != indices.dim(i)) {
      return InvalidArgument("Dimensions ", Dimensions(0, batch, "indices", indices),
                             " must match dimensions ", Dimensions(0, batch, "updates", updates));
    }
    layout.num_updates *= indices.dim(i);
  }
  bool fits =
      layout.depth <= params.rank() && updates.rank() - batch == params.rank() - layout.depth;
  for (int i = layout.depth; fits && i < params.rank(); ++i) {
    fits = updates.dim(batch + i - layout.depth) == params.dim(i);
    layout.slice_size *= params.dim(i);
  }
  if (fits) return layout;
  return InvalidArgument("Dimensions ", Dimensions(layout.depth, params.rank(), "input", params),
                         " must match dimensions ",
                         Dimensions(layout.depth, updates.rank(), "updates", updates));
}

template <typename Index>
StatusOr<std::vector<int64_t>> CheckedSlices(const Layout& layout, const Shape& params,
                                             const Tensor& indices, bool ignore_bad) {
  std::vector<int64_t> slices;
  WEFT_RETURN_IF_ERROR(CheckRoomFor(layout.num_updates, sizeof(int64_t), "updates"));
  slices.reserve(static_cast<size_t>(layout.num_updates));
  const Index* index = indices.data<Index>();
  for (int64_t i = 0; i < layout.num_updates; ++i, index += layout.depth) {
    int64_t slice = 0;
    for (int d = 0; d < layout.depth && slice >= 0; ++d) {
      const bool inside = index[d] >= 0 && static_cast<int64_t>(index[d]) < params.dim(d);
      slice = inside ? slice * params.dim(d) + static_cast<int64_t>(index[d]) : -1;
    }
    if (slice < 0 && !ignore_bad) {
      return InvalidArgument("indices[", i, "] = [",
                             absl::StrJoin(absl::MakeConstSpan(index, layout.depth), ", "),
                             "] does not index into shape ", params.ToString());
    }
    slices.push_back(slice);
  }
  return slices;
}

class ScatterNdKernel final : public OpKernel {
 public:
  ScatterNdKernel(ScatterRule rule, DType dtype, bool ignore_bad)
      : rule_(rule), dtype_(dtype), ignore_bad_(ignore_bad) {}

  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<Variable> variable, TargetVariable(c, 0, dtype_));
    const Tensor& indices = c.input(1);
    const Tensor& updates = c.input(2);
    const Status updated = variable->Update([&](Tensor& value) -> Status {
      const Shape& params = value.shape();
      WEFT_ASSIGN_OR_RETURN(Layout layout, CheckShapes(params, indices.shape(), updates.shape()));
      WEFT_ASSIGN_OR_RETURN(std::vector<int64_t> slices,
                            indices.dtype() == DType::kInt32
                                ? CheckedSlices<int32_t>(layout, params, indices, ignore_bad_)
                                : CheckedSlices<int64_t>(layout, params, indices, ignore_bad_));
      return CombineSlices(c, rule_, slices, layout.slice_size, updates, value);
    });
    if (updated.ok()) ForwardTarget(c, 0, 0);
    return updated;
  }

 private:
  const ScatterRule rule_;
  const DType dtype_;
  const bool ignore_bad_;
};

StatusOr<bool> IgnoresBadIndices(const std::string& policy) {
  if (policy.empty() || policy == "DEFAULT" || policy == "ERROR") return false;
  if (policy == "IGNORE") return true;
  return InvalidArgument("bad_indices_policy must be '', 'DEFAULT', 'ERROR' or 'IGNORE', got '",
                         policy, "'");
}

Status ReferenceShape(ShapeContext& c) {
  if (c.num_outputs() > 0) c.set_output(0, c.input(0));
  return absl::OkStatus();
}

void RegisterRule(Catalogue& catalogue, const std::string& name, ScatterRule rule,
                  const std::string& formula) {
  const bool is_update = rule == ScatterRule::kUpdate;
  const std::string documentation = absl::StrCat(
      formula,
      "\nThe last dimension of indices holds one index each; updates.shape is "
      "indices.shape[:-1] + variable.shape[indices.shape[-1]:]. Repeated indices apply one after "
      "the "
      "other.\nInvalidArgument for an index out of range, unless bad_indices_policy is 'IGNORE'.");
  std::vector<DType> types = TypesOf(rule);
  if (rule == ScatterRule::kAdd || rule == ScatterRule::kSubtract) types.push_back(DType::kBool);
  const KernelDef kernel = {
      .types = {{"T", types}},
      .factory = [rule](KernelConstruction& c) -> StatusOr<std::unique_ptr<OpKernel>> {
        WEFT_ASSIGN_OR_RETURN(DType dtype, c.Attr<DType>("T"));
        WEFT_ASSIGN_OR_RETURN(bool ignore,
                              IgnoresBadIndices(c.AttrOr<std::string>("bad_indices_policy", "")));
        return std::make_unique<ScatterNdKernel>(rule, dtype, ignore);
      }};
  catalogue.Add(OpSpec(absl::StrCat("ScatterNd", name))
                    .Doc(documentation)
                    .Input("ref: Ref(T)")
                    .Input("indices: Tindices")
                    .Input("updates: T")
                    .Output("output_ref: Ref(T)")
                    .Attr(is_update ? "T: type" : "T: numbertype")
                    .Attr("Tindices: {int32, int64}")
                    .Attr(absl::StrCat("use_locking: bool = ", is_update ? "true" : "false"))
                    .Attr("bad_indices_policy: string = ''")
                    .Shape(ReferenceShape)
                    .NoGradient()
                    .Kernel(kernel));
  catalogue.Add(OpSpec(absl::StrCat("ResourceScatterNd", name))
                    .Doc(documentation)
                    .Input("ref: resource")
                    .Input("indices: Tindices")
                    .Input("updates: T")
                    .Attr("T: type")
                    .Attr("Tindices: {int32, int64}")
                    .Attr("use_locking: bool = true")
                    .Attr("bad_indices_policy: string = ''")
                    .Stateful()
                    .Traits({.changes_variable = true})
                    .Shape(shapes::NoOutputs)
                    .NoGradient()
                    .Kernel(kernel));
}

}  // namespace

void Register(Catalogue& catalogue) {
  RegisterRule(catalogue, "Update", ScatterRule::kUpdate, "variable[indices[i]] = updates[i].");
  RegisterRule(catalogue, "Add", ScatterRule::kAdd, "variable[indices[i]] += updates[i].");
  RegisterRule(catalogue, "Sub", ScatterRule::kSubtract, "variable[indices[i]] -= updates[i].");
  RegisterRule(catalogue, "Min", ScatterRule::kMinimum,
               "variable[indices[i]] = min(variable[indices[i]], updates[i]).");
  RegisterRule(catalogue, "Max", ScatterRule::kMaximum,
               "variable[indices[i]] = max(variable[indices[i]], updates[i]).");
}

}  // namespace weft::ops::state::scatter_nd
