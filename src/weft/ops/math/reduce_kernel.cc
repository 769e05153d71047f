// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/math/reduce_kernel.h"

#include <algorithm>

#include "weft/ops/broadcast.h"

namespace weft::ops {
namespace {

constexpr int64_t kGrain = 16384;  // elements that one thread should at least get

class ReductionKernel final : public OpKernel {
 public:
  ReductionKernel(const Reduction& reduction, bool keep_dims)
      : r_(reduction), size_(DTypeSize(reduction.accumulator)), keep_dims_(keep_dims) {}

  Status Compute(KernelContext& c) override {
    const Tensor& in = c.input(0);
    WEFT_ASSIGN_OR_RETURN(std::vector<bool> is_reduced, ReducedAxes(c.input(1), in.rank()));
    Shape out_shape, kept_shape;
    int64_t reduced = 1;
    for (int i = 0; i < in.rank(); ++i) {
      if (is_reduced[i]) reduced *= in.dim(i);
      kept_shape.AddDim(is_reduced[i] ? 1 : in.dim(i));
      if (!is_reduced[i] || keep_dims_) out_shape.AddDim(is_reduced[i] ? 1 : in.dim(i));
    }
    if (reduced == 1 && r_.is_identity_alone) {
      WEFT_ASSIGN_OR_RETURN(Tensor same, in.Reshaped(out_shape));
      c.SetOutput(0, std::move(same));
      return absl::OkStatus();
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, out_shape));
    const int64_t n = out->num_elements();
    if (n == 1) {  // nearly always a loss
      alignas(16) std::byte accumulator[16];
      r_.start(accumulator, 1);
      WEFT_RETURN_IF_ERROR(ReduceAll(c, in, accumulator));
      r_.finish(accumulator, 1, reduced, out->bytes());
      return absl::OkStatus();
    }
    // Accumulators of the output's own type are built in place.
    Tensor wide = *out;
    if (r_.accumulator != out->dtype()) {
      WEFT_ASSIGN_OR_RETURN(wide, c.AllocateTemporary(r_.accumulator, out_shape));
    }
    r_.start(wide.bytes(), n);
    if (in.num_elements() > 0) ReduceSome(c, in, kept_shape, wide.bytes());
    r_.finish(wide.bytes(), n, reduced, out->bytes());
    return absl::OkStatus();
  }

 private:
  // One output. Chunks do not depend on the number of threads, so neither does the rounding.
  Status ReduceAll(KernelContext& c, const Tensor& in, std::byte* accumulator) const {
    const int64_t n = in.num_elements();
    const size_t in_size = DTypeSize(in.dtype());
    if (n <= 2 * kGrain) {
      r_.loops.row(in.bytes(), n, accumulator);
      return absl::OkStatus();
    }
    const int64_t chunks = (n + kGrain - 1) / kGrain;
    WEFT_ASSIGN_OR_RETURN(Tensor partial, c.AllocateTemporary(r_.accumulator, Shape{chunks}));
    r_.start(partial.bytes(), chunks);
    c.ParallelFor(chunks, 2, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        r_.loops.row(in.bytes() + i * kGrain * in_size, std::min(kGrain, n - i * kGrain),
                     partial.bytes() + i * size_);
      }
    });
    r_.join(partial.bytes(), chunks, accumulator);
    return absl::OkStatus();
  }

  void ReduceSome(KernelContext& c, const Tensor& in, const Shape& kept_shape,
                  std::byte* accumulators) const {
    const auto loops = MakeBroadcastLoops<2>(in.shape(), {&in.shape(), &kept_shape});
    const size_t in_size = DTypeSize(in.dtype());
    const bool is_row = loops.inner.stride[1] == 0;
    const int64_t n = loops.inner.size;
    const auto run = [&](int64_t begin_row, int64_t end_row, int64_t from, int64_t to) {
      loops.ForEachRow(begin_row, end_row, [&](const std::array<int64_t, 2>& offsets, int64_t) {
        const std::byte* row = in.bytes() + (offsets[0] + from) * in_size;
        if (is_row) {
          r_.loops.row(row, to - from, accumulators + offsets[1] * size_);
        } else {
          r_.loops.column(row, to - from, accumulators + (offsets[1] + from) * size_);
        }
      });
    };
    const int64_t rows = loops.num_rows();
    const auto* last = loops.outer.empty() ? nullptr : &loops.outer.back();
    if (is_row && loops.outer.size() == 1 && last->stride[1] == 1) {
      const int64_t stride = last->stride[0];
      c.ParallelFor(last->size, std::max<int64_t>(1, kGrain / n), [&](int64_t begin, int64_t end) {
        r_.loops.rows(in.bytes() + begin * stride * in_size, n, end - begin, stride,
                      accumulators + begin * size_);
      });
    } else if (last != nullptr && last->stride[1] != 0) {
      // The outermost dimension is kept: its parts write to places of their own.
      const int64_t step = rows / last->size;
      c.ParallelFor(last->size, std::max<int64_t>(1, kGrain / (step * n)),
                    [&](int64_t begin, int64_t end) { run(begin * step, end * step, 0, n); });
    } else if (!is_row) {
      // Columns are shared out in whole cache lines.
      constexpr int64_t kColumns = 16;
      const int64_t blocks = (n + kColumns - 1) / kColumns;
      c.ParallelFor(blocks, std::max<int64_t>(1, kGrain / (rows * kColumns)),
                    [&](int64_t begin, int64_t end) {
                      run(0, rows, begin * kColumns, std::min(n, end * kColumns));
                    });
    } else {
      run(0, rows, 0, n);
    }
  }

  const Reduction r_;
  const size_t size_;
  const bool keep_dims_;
};

}  // namespace

StatusOr<std::vector<bool>> ReducedAxes(const Tensor& axes, int rank) {
  std::vector<bool> is_reduced(rank, false);
  for (int64_t i = 0; i < axes.num_elements(); ++i) {
    const int64_t axis =
        axes.dtype() == DType::kInt32 ? axes.data<int32_t>()[i] : axes.data<int64_t>()[i];
    if (axis < -rank || axis >= rank) {
      return InvalidArgument("Invalid reduction dimension (", axis, " for input with ", rank,
                             " dimension(s)");
    }
    const int64_t at = (axis + rank) % rank;
    if (is_reduced[at]) {
      return InvalidArgument("Invalid reduction arguments: Axes contains duplicate dimension: ",
                             axis);
    }
    is_reduced[at] = true;
  }
  return is_reduced;
}

Status ReductionShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  const bool keep_dims = FindAttrOr<bool>(c.attrs(), "keep_dims", false);
  if (!in.known_rank()) return absl::OkStatus();
  const Tensor* axes = c.constant(1);
  if (axes == nullptr) {
    if (keep_dims) {
      c.set_output(0, PartialShape::UnknownOfRank(in.rank()));
    } else if (c.input(1).IsFullyDefined() && c.input(1).num_elements() == 0) {
      c.set_output(0, in);
    }
    return absl::OkStatus();
  }
  WEFT_ASSIGN_OR_RETURN(std::vector<bool> is_reduced, ReducedAxes(*axes, in.rank()));
  PartialShape out = PartialShape::UnknownOfRank(0);
  for (int i = 0; i < in.rank(); ++i) {
    if (!is_reduced[i]) out.AddDim(in.dim(i));
    if (is_reduced[i] && keep_dims) out.AddDim(1);
  }
  c.set_output(0, out);
  return absl::OkStatus();
}

std::unique_ptr<OpKernel> MakeReductionKernel(const Reduction& reduction, bool keep_dims) {
  return std::make_unique<ReductionKernel>(reduction, keep_dims);
}

}  // namespace weft::ops
