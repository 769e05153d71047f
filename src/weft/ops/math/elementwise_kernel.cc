// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/math/elementwise_kernel.h"

#include <algorithm>
#include <memory>

#include "weft/ops/broadcast.h"

namespace weft::ops {
namespace {

class UnaryKernel final : public OpKernel {
 public:
  UnaryKernel(const TileBody& tile, int64_t grain)
      : run_(tile.run),
        in_size_(DTypeSize(tile.input)),
        out_size_(DTypeSize(tile.output)),
        grain_(grain) {}

  Status Compute(KernelContext& c) override {
    const Tensor& in = c.input(0);
    const std::byte* a = in.bytes();
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.ForwardOrAllocateOutput(0, 0, in.shape()));
    std::byte* out = output->bytes();
    const int64_t n = output->num_elements();
    if (n <= grain_) {
      if (n > 0) run_(a, 1, nullptr, 0, out, n);
      return absl::OkStatus();
    }
    c.ParallelFor(n, grain_, [&](int64_t begin, int64_t end) {
      run_(a + begin * in_size_, 1, nullptr, 0, out + begin * out_size_, end - begin);
    });
    return absl::OkStatus();
  }

 private:
  const TileFunction run_;
  const size_t in_size_;
  const size_t out_size_;
  const int64_t grain_;
};

class BinaryKernel final : public OpKernel {
 public:
  BinaryKernel(const TileBody& tile, const Elementwise& e, bool allows_incompatible)
      : run_(tile.run),
        check_(e.check),
        in_size_(DTypeSize(tile.input)),
        out_size_(DTypeSize(tile.output)),
        grain_(e.grain),
        allows_incompatible_(allows_incompatible),
        incompatible_value_(e.incompatible_value) {}

  Status Compute(KernelContext& c) override {
    const Tensor& a = c.input(0);
    const Tensor& b = c.input(1);
    if (check_ != nullptr) WEFT_RETURN_IF_ERROR(check_(a, b));
    if (a.shape() == b.shape()) return Flat(c, a, 1, b, 1, a.shape());
    if (b.num_elements() == 1 && b.rank() <= a.rank()) return Flat(c, a, 1, b, 0, a.shape());
    if (a.num_elements() == 1 && a.rank() <= b.rank()) return Flat(c, a, 0, b, 1, b.shape());
    return Broadcast(c, a, b);
  }

 private:
  Status Flat(KernelContext& c, const Tensor& a, int a_step, const Tensor& b, int b_step,
              const Shape& shape) {
    const std::byte* pa = a.bytes();
    const std::byte* pb = b.bytes();
    WEFT_ASSIGN_OR_RETURN(Tensor * output,
                          a_step != 0 && b_step != 0
                              ? c.ForwardOrAllocateOutput(0, 1, 0, shape)
                              : c.ForwardOrAllocateOutput(a_step != 0 ? 0 : 1, 0, shape));
    std::byte* out = output->bytes();
    const int64_t n = output->num_elements();
    if (n <= grain_) {
      if (n > 0) run_(pa, a_step, pb, b_step, out, n);
      return absl::OkStatus();
    }
    c.ParallelFor(n, grain_, [&](int64_t begin, int64_t end) {
      run_(pa + begin * a_step * in_size_, a_step, pb + begin * b_step * in_size_, b_step,
           out + begin * out_size_, end - begin);
    });
    return absl::OkStatus();
  }

  Status Broadcast(KernelContext& c, const Tensor& a, const Tensor& b) {
    StatusOr<Shape> shape = BroadcastShapes(a.shape(), b.shape());
    if (!shape.ok()) {
      if (!allows_incompatible_) return shape.status();
      WEFT_ASSIGN_OR_RETURN(Tensor * scalar, c.AllocateOutput(0, Shape()));
      *scalar->data<bool>() = incompatible_value_;
      return absl::OkStatus();
    }
    const std::byte* pa = a.bytes();
    const std::byte* pb = b.bytes();
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.ForwardOrAllocateOutput(0, 1, 0, *shape));
    std::byte* out = output->bytes();
    if (output->num_elements() == 0) return absl::OkStatus();
    const auto loops = MakeBroadcastLoops<2>(*shape, {&a.shape(), &b.shape()});
    const int64_t n = loops.inner.size;
    const int a_step = static_cast<int>(loops.inner.stride[0]);
    const int b_step = static_cast<int>(loops.inner.stride[1]);
    c.ParallelFor(
        loops.num_rows(), std::max<int64_t>(1, grain_ / n), [&](int64_t begin, int64_t end) {
          loops.ForEachRow(begin, end, [&](const std::array<int64_t, 2>& offsets, int64_t at) {
            run_(pa + offsets[0] * in_size_, a_step, pb + offsets[1] * in_size_, b_step,
                 out + at * out_size_, n);
          });
        });
    return absl::OkStatus();
  }

  const TileFunction run_;
  Status (*const check_)(const Tensor&, const Tensor&);
  const size_t in_size_;
  const size_t out_size_;
  const int64_t grain_;
  const bool allows_incompatible_;
  const bool incompatible_value_;
};

}  // namespace

void AddElementwise(OpSpec& spec, Elementwise elementwise) {
  KernelDef def;
  for (const TileBody& tile : elementwise.tiles) {
    if (elementwise.type_attr[0] != '\0') def.types[elementwise.type_attr].push_back(tile.input);
    if (elementwise.check == nullptr && IsPlain(tile.input)) spec.Tile(tile);
  }
  def.factory = [elementwise](KernelConstruction& k) -> StatusOr<std::unique_ptr<OpKernel>> {
    for (const TileBody& tile : elementwise.tiles) {
      if (tile.input != k.input_dtype(0) || tile.output != k.output_dtype(0)) continue;
      if (tile.num_inputs == 1) return std::make_unique<UnaryKernel>(tile, elementwise.grain);
      const bool allows =
          elementwise.has_incompatible_value && !k.AttrOr<bool>("incompatible_shape_error", true);
      return std::make_unique<BinaryKernel>(tile, elementwise, allows);
    }
    return InvalidArgument("No kernel of ", k.op(), " makes ", DTypeName(k.output_dtype(0)), " of ",
                           DTypeName(k.input_dtype(0)));
  };
  spec.Kernel(std::move(def));
}

Status RefuseZeroDivisor(const Tensor& a, const Tensor& b) {
  bool has_zero = false;
  if (a.num_elements() > 0) {
    VisitDType(b.dtype(), Integers(), [&]<typename T>() {
      for (const T value : b.span<T>()) has_zero |= value == 0;
    });
  }
  return has_zero ? InvalidArgument("Integer division by zero") : absl::OkStatus();
}

}  // namespace weft::ops
