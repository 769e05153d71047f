// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/linalg/batch_kernel.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"

namespace weft::ops::linalg {

StatusOr<int64_t> CountMatrices(const Tensor& tensor, int i) {
  if (tensor.rank() < 2) {
    return InvalidArgument("Input tensor ", i, " must have rank >= 2, got shape ",
                           tensor.shape().ToString());
  }
  int64_t count = 1;
  for (int d = 0; d + 2 < tensor.rank(); ++d) count *= tensor.dim(d);
  return count;
}

StatusOr<int64_t> CountSquareMatrices(const Tensor& tensor, int i) {
  WEFT_ASSIGN_OR_RETURN(const int64_t count, CountMatrices(tensor, i));
  if (tensor.dim(tensor.rank() - 2) == tensor.dim(tensor.rank() - 1)) return count;
  return InvalidArgument("Input matrix must be square, got shape ", tensor.shape().ToString());
}

Status CheckSolvable(const Tensor& matrix, const Tensor& rhs) {
  WEFT_RETURN_IF_ERROR(CountMatrices(rhs, 1).status());
  const auto a = matrix.shape().dims(), b = rhs.shape().dims();
  const bool fits = a.size() == b.size() && std::equal(a.begin(), a.end() - 1, b.begin());
  if (fits) return absl::OkStatus();
  return InvalidArgument("Input matrix and rhs are incompatible: ", matrix.shape().ToString(),
                         " and ", rhs.shape().ToString());
}

Shape WithInner(const Shape& shape, std::initializer_list<int64_t> inner) {
  Shape result;
  for (int d = 0; d + 2 < shape.rank(); ++d) result.AddDim(shape.dim(d));
  for (const int64_t size : inner) result.AddDim(size);
  return result;
}

Status ForEachMatrix(const KernelContext& c, int64_t count, int64_t work,
                     absl::FunctionRef<Status(int64_t)> body) {
  if (count == 1) return body(0);
  absl::Mutex mutex;
  Status failure;
  c.ParallelFor(count, std::max<int64_t>(1, (1 << 16) / work), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Status status = body(i);
      if (status.ok()) continue;
      absl::MutexLock lock(&mutex);
      failure.Update(status);
      return;
    }
  });
  return failure;
}

OpSpec OldName(const char* name, const char* now, int since) {
  OpSpec spec(name);
  spec.Doc(absl::StrCat("The old name of ", now, "."))
      .Deprecated(since, absl::StrCat("Use ", now, " instead."));
  return spec;
}

PartialShape ReplaceInner(const PartialShape& shape, int n, std::initializer_list<int64_t> inner) {
  if (!shape.known_rank()) return shape;
  PartialShape result{Shape()};
  for (int d = 0; d + n < shape.rank(); ++d) result.AddDim(shape.dim(d));
  for (const int64_t size : inner) result.AddDim(size);
  return result;
}

namespace {

// The shape of input `i` with its last two sizes found equal.
StatusOr<PartialShape> Square(ShapeContext& c, int i) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.WithRankAtLeast(i, 2));
  if (!shape.known_rank()) return shape;
  const int64_t rows = shape.dim(shape.rank() - 2), columns = shape.dim(shape.rank() - 1);
  if (rows >= 0 && columns >= 0 && rows != columns) {
    return InvalidArgument("Dimensions must be equal, but are ", rows, " and ", columns);
  }
  const int64_t size = std::max(rows, columns);
  return ReplaceInner(shape, 2, {size, size});
}

}  // namespace

Status SquareShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, Square(c, 0));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

Status SquareToScalarShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape shape, Square(c, 0));
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, ReplaceInner(shape, 2, {}));
  return absl::OkStatus();
}

Status SolveShape(ShapeContext& c, bool square) {
  PartialShape matrix;
  if (square) {
    WEFT_ASSIGN_OR_RETURN(matrix, Square(c, 0));
  } else {
    WEFT_ASSIGN_OR_RETURN(matrix, c.WithRankAtLeast(0, 2));
  }
  WEFT_ASSIGN_OR_RETURN(const PartialShape rhs, c.WithRankAtLeast(1, 2));
  if (!matrix.known_rank() || !rhs.known_rank()) return shapes::Unknown(c);
  WEFT_ASSIGN_OR_RETURN(const PartialShape batch,
                        ReplaceInner(matrix, 1, {}).MergeWith(ReplaceInner(rhs, 1, {})));
  c.set_output(0, ReplaceInner(batch, 1, {matrix.dim(matrix.rank() - 1), rhs.dim(rhs.rank() - 1)}));
  return absl::OkStatus();
}

Endpoint Product(GradientContext& c, Endpoint a, Endpoint b, bool adjoint_a, bool adjoint_b) {
  return c.Op("BatchMatMulV2", {a, b}, {{"adj_x", adjoint_a}, {"adj_y", adjoint_b}});
}

}  // namespace weft::ops::linalg
