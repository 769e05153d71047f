// SPDX-License-Identifier: Apache-2.0
// Reading rows of a resource variable without copying the rest.
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_join.h"

#include "weft/kernel/op_spec.h"
#include "weft/ops/array/gather_kernel.h"
#include "weft/ops/elements.h"
#include "weft/ops/state/variable_kernel.h"

namespace weft::ops::state::resource_gather {
namespace {

class GatherKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(DType dtype, c.Attr<DType>("dtype"));
    const int64_t batch_dims = c.AttrOr<int64_t>("batch_dims", 0);
    if (batch_dims < 0) return InvalidArgument("batch_dims is negative (", batch_dims, ")");
    return std::make_unique<GatherKernel>(dtype, batch_dims);
  }
  GatherKernel(DType dtype, int64_t batch_dims) : dtype_(dtype), batch_dims_(batch_dims) {}

  // The snapshot keeps the rows as they are while later updates copy.
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<Variable> variable, TargetVariable(c, 0, dtype_));
    WEFT_ASSIGN_OR_RETURN(Tensor params, variable->Read());
    return array::Gather(c, params, c.input(1), batch_dims_, batch_dims_, 0);
  }

 private:
  const DType dtype_;
  const int64_t batch_dims_;
};

template <typename Index>
Status GatherNd(KernelContext& c, const Tensor& params, const Tensor& indices) {
  if (params.rank() < 1) return InvalidArgument("params must be at least a vector");
  if (indices.rank() < 1) return InvalidArgument("indices must be at least a vector");
  const int last = indices.rank() - 1;
  const int64_t depth = indices.dim(last);
  if (depth > params.rank()) {
    return InvalidArgument("index innermost dimension length must be <= params rank; saw: ", depth,
                           " vs. ", params.rank());
  }
  Shape shape;
  for (int i = 0; i < last; ++i) shape.AddDim(indices.dim(i));
  const int64_t count = shape.num_elements();
  int64_t slice_size = 1;
  for (int i = static_cast<int>(depth); i < params.rank(); ++i) {
    shape.AddDim(params.dim(i));
    slice_size *= params.dim(i);
  }
  if (params.num_elements() == 0 && count > 0) {
    return InvalidArgument("Requested more than 0 entries, but params is empty.  Params shape: ",
                           params.shape().ToString());
  }
  WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, shape));
  const Index* index = indices.data<Index>();
  for (int64_t i = 0; i < count; ++i, index += depth) {
    int64_t slice = 0;
    for (int d = 0; d < depth; ++d) {
      if (index[d] < 0 || static_cast<int64_t>(index[d]) >= params.dim(d)) {
        return InvalidArgument("indices[", i, "] = [",
                               absl::StrJoin(absl::MakeConstSpan(index, depth), ", "),
                               "] does not index into param shape ", params.shape().ToString());
      }
      slice = slice * params.dim(d) + static_cast<int64_t>(index[d]);
    }
    CopyElements(params, slice * slice_size, slice_size, output, i * slice_size);
  }
  return absl::OkStatus();
}

class GatherNdKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(DType dtype, c.Attr<DType>("dtype"));
    return std::make_unique<GatherNdKernel>(dtype);
  }
  explicit GatherNdKernel(DType dtype) : dtype_(dtype) {}

  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<Variable> variable, TargetVariable(c, 0, dtype_));
    WEFT_ASSIGN_OR_RETURN(Tensor params, variable->Read());
    return c.input(1).dtype() == DType::kInt32 ? GatherNd<int32_t>(c, params, c.input(1))
                                               : GatherNd<int64_t>(c, params, c.input(1));
  }

 private:
  const DType dtype_;
};

// Batch dimensions are left to the kernel.
Status GatherShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const int64_t batch_dims, c.Attr<int64_t>("batch_dims"));
  const PartialShape variable = c.variable(0);
  if (batch_dims != 0 || !variable.known_rank() || !c.input(1).known_rank()) {
    return shapes::Unknown(c);
  }
  if (variable.rank() < 1) return InvalidArgument("The variable is a scalar: it has no rows");
  PartialShape out = c.input(1);
  for (int d = 1; d < variable.rank(); ++d) out.AddDim(variable.dim(d));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

// The gradient is as many rows as there are indices: values reshaped to [number of indices] + row.
Status GatherGradient(GradientContext& c) {
  WEFT_ASSIGN_OR_RETURN(int64_t batch_dims, c.Attr<int64_t>("batch_dims"));
  if (batch_dims != 0)
    return Unimplemented("Gradient of ResourceGather with batch_dims ", batch_dims);
  GraphBuilder& builder = c.builder();
  const Endpoint shape = c.Op("VariableShape", {c.input(0)});
  const Endpoint zero = builder.Scalar<int32_t>(0);
  const Endpoint count = c.Op("ExpandDims", {c.Op("Size", {c.input(1)}), zero});
  const Endpoint row = c.Op("StridedSlice",
                            {shape, builder.Constant(Tensor::Vector<int32_t>({1})),
                             builder.Constant(Tensor::Vector<int32_t>({0})),
                             builder.Constant(Tensor::Vector<int32_t>({1}))},
                            {{"end_mask", 1}});
  const Endpoint values_shape = c.Op("ConcatV2", {std::vector<Endpoint>{count, row}, zero});
  c.set_input_slices(0, {.values = c.Op("Reshape", {c.gradient(), values_shape}),
                         .indices = c.Op("Reshape", {c.input(1), count}),
                         .dense_shape = shape});
  return absl::OkStatus();
}

Status GatherNdGradient(GradientContext& c) {
  WEFT_ASSIGN_OR_RETURN(DType index_type, c.Attr<DType>("Tindices"));
  const Endpoint shape = c.Op("VariableShape", {c.input(0)}, {{"out_type", index_type}});
  c.set_input(0, c.Op("ScatterNd", {c.input(1), c.gradient(), shape}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("ResourceGather")
                    .Doc("Rows of the variable: output[i, ...] = variable[indices[i], ...]. With "
                         "batch_dims, that many leading dimensions of both go together.\n"
                         "InvalidArgument for an index out of range.")
                    .Input("resource: resource")
                    .Input("indices: Tindices")
                    .Output("output: dtype")
                    .Attr("batch_dims: int = 0")
                    .Attr("validate_indices: bool = true")
                    .Attr("dtype: type")
                    .Attr("Tindices: {int32, int64}")
                    .Stateful()
                    .Shape(GatherShape)
                    .Gradient(GatherGradient)
                    .Kernel(MakeKernel<GatherKernel>()));
  catalogue.Add(
      OpSpec("ResourceGatherNd")
          .Doc("Elements or slices of the variable: output[i] = variable[indices[i]], where "
               "the last dimension of indices holds one index each.\n"
               "InvalidArgument for an index out of range.")
          .Input("resource: resource")
          .Input("indices: Tindices")
          .Output("output: dtype")
          .Attr("dtype: type")
          .Attr("Tindices: {int32, int64}")
          .Stateful()
          .Shape(shapes::Unknown)
          .Gradient(GatherNdGradient)
          .Kernel(MakeKernel<GatherNdKernel>()));
}

}  // namespace weft::ops::state::resource_gather
