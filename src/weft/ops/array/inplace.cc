// SPDX-License-Identifier: Apache-2.0
// Rows written or added to in a tensor; tensors that are not filled; rows put one below another.
#include <algorithm>
#include <memory>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/elements.h"
#include "weft/ops/index_values.h"
#include "weft/ops/math/functors.h"

namespace weft::ops::array::inplace {
namespace {

enum class Change { kUpdate, kAdd, kSub };

// Row numbers wrap round, as TensorFlow's do.
template <Change change>
class InplaceKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor x = c.input(0), rows = c.input(1), v = c.input(2);
    if (rows.rank() != 1) {
      return InvalidArgument("i must be a vector. ", rows.shape().ToString());
    }
    if (x.rank() < 1 || x.rank() != v.rank()) {
      return InvalidArgument("x and v shape doesn't match (ranks differ): ", x.shape().ToString(),
                             " vs. ", v.shape().ToString());
    }
    for (int d = 1; d < x.rank(); ++d) {
      if (x.dim(d) == v.dim(d)) continue;
      return InvalidArgument("x and v shape doesn't match at index ", d, " : ",
                             x.shape().ToString(), " vs. ", v.shape().ToString());
    }
    if (rows.dim(0) != v.dim(0)) {
      return InvalidArgument("i and v must have the same first size: ", rows.shape().ToString(),
                             " vs. ", v.shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, x.shape()));
    CopyElements(x, 0, x.num_elements(), out, 0);
    if (v.num_elements() == 0 || x.num_elements() == 0) return absl::OkStatus();
    const int64_t width = x.num_elements() / x.dim(0);
    for (int64_t k = 0; k < rows.dim(0); ++k) {
      const int64_t given = IndexAt(rows, k) % x.dim(0);
      const int64_t row = given < 0 ? given + x.dim(0) : given;
      if constexpr (change == Change::kUpdate) {
        CopyElements(v, k * width, width, out, row * width);
      } else {
        const bool known = VisitDType(x.dtype(), Numbers(), [&]<typename T>() {
          const T* from = v.data<T>() + k * width;
          T* to = out->data<T>() + row * width;
          for (int64_t i = 0; i < width; ++i) {
            to[i] = change == Change::kAdd ? AddOf::Apply<T>(to[i], from[i])
                                           : SubOf::Apply<T>(to[i], from[i]);
          }
        });
        if (!known) return InvalidArgument("Unsupported data type: ", DTypeName(x.dtype()));
      }
    }
    return absl::OkStatus();
  }
};

class EmptyKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    if (c.input(0).rank() != 1) {
      return InvalidArgument("shape must be a vector of int32, got shape ",
                             c.input(0).shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(const Shape shape, ShapeFromValues(c.input(0), "shape"));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    ClearElements(out, 0, out->num_elements());
    return absl::OkStatus();
  }
};

class ParallelConcatKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor first = c.input(0);
    Shape shape = first.shape();
    for (int i = 0; i < c.num_inputs(); ++i) {
      const Tensor& part = c.input(i);
      if (part.shape() == shape && part.rank() >= 1 && part.dim(0) == 1) continue;
      return InvalidArgument("Inputs must have size 1 in the 0th dimension and one shape, but ",
                             "input ", i, " has shape ", part.shape().ToString());
    }
    shape.SetDim(0, c.num_inputs());
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    const int64_t width = first.num_elements();
    for (int i = 0; i < c.num_inputs(); ++i) CopyElements(c.input(i), 0, width, out, i * width);
    return absl::OkStatus();
  }
};

Status ShapeFromFirst(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.ShapeFromInput(0));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

Status ParallelConcatShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.Attr<PartialShape>("shape"));
  if (!shape.IsFullyDefined() || shape.rank() < 1) {
    return InvalidArgument("shape attr must be fully defined, not ", shape.ToString());
  }
  if (shape.dim(0) != c.num_inputs()) {
    return InvalidArgument("Every input must have size 1 in the 0th dimension; shape says ",
                           shape.dim(0), " rows of ", c.num_inputs());
  }
  PartialShape part = shape;
  part.SetDim(0, 1);
  for (int i = 0; i < c.num_inputs(); ++i) {
    WEFT_RETURN_IF_ERROR(c.input(i).MergeWith(part).status());
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// The rows keep the gradient that is theirs.
Status ParallelConcatGradient(GradientContext& c) {
  const Endpoint axis = c.builder().Scalar<int32_t>(0);
  Node* parts =
      c.builder().AddNode("Split", {axis, c.gradient()}, {{"num_split", c.node().num_inputs()}});
  if (parts == nullptr) return c.builder().status();
  for (int i = 0; i < c.node().num_inputs(); ++i) c.set_input(i, {parts, i});
  return absl::OkStatus();
}

template <Change change>
void AddInplace(Catalogue& catalogue, const char* name, const char* doc) {
  OpSpec spec(name);
  catalogue.Add(spec.Doc(doc)
                    .Input("x: T")
                    .Input("i: int32")
                    .Input("v: T")
                    .Output("y: T")
                    .Attr("T: type")
                    .Shape(shapes::SameAsInput)
                    .NoGradient()
                    .Kernel(MakeKernel<InplaceKernel<change>>()));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddInplace<Change::kUpdate>(catalogue, "InplaceUpdate", "x with v in the rows i.");
  AddInplace<Change::kAdd>(catalogue, "InplaceAdd", "x with v added to the rows i.");
  AddInplace<Change::kSub>(catalogue, "InplaceSub", "x with v taken from the rows i.");
  catalogue.Add(OpSpec("Empty")
                    .Doc("A tensor of this shape; its elements are zeros.")
                    .Input("shape: int32")
                    .HostInput("shape")
                    .Output("output: dtype")
                    .Attr("dtype: type")
                    .Attr("init: bool = false")
                    .Stateful()
                    .Shape(ShapeFromFirst)
                    .NoGradient()
                    .Kernel(MakeKernel<EmptyKernel>()));
  catalogue.Add(OpSpec("ParallelConcat")
                    .Doc("The values, each of size 1 in dimension 0, one below another.")
                    .Input("values: N * T")
                    .Output("output: T")
                    .Attr("N: int >= 1")
                    .Attr("T: type")
                    .Attr("shape: shape")
                    .Shape(ParallelConcatShape)
                    .Gradient(ParallelConcatGradient)
                    .Kernel(MakeKernel<ParallelConcatKernel>()));
}

}  // namespace weft::ops::array::inplace
