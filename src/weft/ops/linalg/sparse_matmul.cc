// SPDX-License-Identifier: Apache-2.0
// Products of matrices that hold many zeros, without being sparse tensors.
#include <algorithm>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/gradients.h"

namespace weft::ops::linalg::sparse_matmul {
namespace {

using Elements = TypeList<float, Bfloat16>;

// A matrix as it is multiplied, in float.
class Side {
 public:
  Side(const Tensor& matrix, bool transposed)
      : rows_(matrix.dim(transposed ? 1 : 0)), columns_(matrix.dim(transposed ? 0 : 1)) {
    values_.resize(static_cast<size_t>(matrix.num_elements()));
    VisitDType(matrix.dtype(), Elements(), [&]<typename T>() {
      const T* from = matrix.data<T>();
      for (int64_t i = 0; i < rows_; ++i) {
        for (int64_t j = 0; j < columns_; ++j) {
          values_[static_cast<size_t>(i * columns_ + j)] =
              static_cast<float>(from[transposed ? j * rows_ + i : i * columns_ + j]);
        }
      }
    });
  }
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  const float* row(int64_t i) const { return values_.data() + i * columns_; }

 private:
  const int64_t rows_;
  const int64_t columns_;
  std::vector<float> values_;
};

class SparseMatMulKernel final : public OpKernel {
 public:
  explicit SparseMatMulKernel(KernelConstruction& c)
      : transpose_a_(c.AttrOr<bool>("transpose_a", false)),
        transpose_b_(c.AttrOr<bool>("transpose_b", false)) {}

  Status Compute(KernelContext& c) override {
    for (int i = 0; i < 2; ++i) {
      if (c.input(i).rank() != 2) {
        return InvalidArgument(i == 0 ? "a" : "b", " is not a matrix, its shape is ",
                               c.input(i).shape().ToString());
      }
    }
    const Side a(c.input(0), transpose_a_), b(c.input(1), transpose_b_);
    if (a.columns() != b.rows()) {
      return InvalidArgument("Matrix size incompatible: a: ", c.input(0).shape().ToString(),
                             ", b: ", c.input(1).shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape{a.rows(), b.columns()}));
    const int64_t n = b.columns();
    c.ParallelFor(a.rows(), std::max<int64_t>(1, (1 << 16) / std::max<int64_t>(1, n)),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) {
                      float* to = out->data<float>() + i * n;
                      std::fill_n(to, n, 0.0f);
                      for (int64_t k = 0; k < a.columns(); ++k) {
                        const float factor = a.row(i)[k];
                        if (factor == 0) continue;
                        const float* from = b.row(k);
                        for (int64_t j = 0; j < n; ++j) to[j] += factor * from[j];
                      }
                    }
                  });
    return absl::OkStatus();
  }

 private:
  const bool transpose_a_;
  const bool transpose_b_;
};

Status Shapes(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape a, c.WithRank(0, 2));
  WEFT_ASSIGN_OR_RETURN(const PartialShape b, c.WithRank(1, 2));
  WEFT_ASSIGN_OR_RETURN(const bool transpose_a, c.Attr<bool>("transpose_a"));
  WEFT_ASSIGN_OR_RETURN(const bool transpose_b, c.Attr<bool>("transpose_b"));
  const int64_t inner_a = a.dim(transpose_a ? 0 : 1), inner_b = b.dim(transpose_b ? 1 : 0);
  if (inner_a >= 0 && inner_b >= 0 && inner_a != inner_b) {
    return InvalidArgument("Dimensions must be equal, but are ", inner_a, " and ", inner_b);
  }
  c.set_output(0, PartialShape({a.dim(transpose_a ? 1 : 0), b.dim(transpose_b ? 0 : 1)}));
  return absl::OkStatus();
}

Status Gradient(GradientContext& c) {
  WEFT_ASSIGN_OR_RETURN(const bool ta, c.Attr<bool>("transpose_a"));
  WEFT_ASSIGN_OR_RETURN(const bool tb, c.Attr<bool>("transpose_b"));
  const auto product = [&](Endpoint x, bool tx, Endpoint y, bool ty, DType dtype) {
    const Endpoint made = c.Op("SparseMatMul", {x, y}, {{"transpose_a", tx}, {"transpose_b", ty}});
    return dtype == DType::kFloat ? made : c.Op("Cast", {made}, {{"DstT", dtype}});
  };
  const Endpoint a = c.input(0), b = c.input(1), dy = c.gradient();
  c.set_input(0, ta ? product(b, tb, dy, true, TypeOf(a)) : product(dy, false, b, !tb, TypeOf(a)));
  c.set_input(1, tb ? product(dy, true, a, ta, TypeOf(b)) : product(a, !ta, dy, false, TypeOf(b)));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  const std::vector<DType> types = DTypesOf(Elements());
  catalogue.Add(OpSpec("SparseMatMul")
                    .Doc("The product of two matrices, of which zeros in the first cost nothing.")
                    .Input("a: Ta")
                    .Input("b: Tb")
                    .Output("product: float")
                    .Attr("transpose_a: bool = false")
                    .Attr("transpose_b: bool = false")
                    .Attr("a_is_sparse: bool = false")
                    .Attr("b_is_sparse: bool = false")
                    .Attr("Ta: {float, bfloat16} = DT_FLOAT")
                    .Attr("Tb: {float, bfloat16} = DT_FLOAT")
                    .Shape(Shapes)
                    .Gradient(Gradient)
                    .Kernel({.types = {{"Ta", types}, {"Tb", types}},
                             .factory = MakeKernel<SparseMatMulKernel>()}));
}

}  // namespace weft::ops::linalg::sparse_matmul
