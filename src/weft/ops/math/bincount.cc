// SPDX-License-Identifier: Apache-2.0
// How often each small number occurs.
#include "weft/kernel/op_spec.h"
#include "weft/ops/gradients.h"

namespace weft::ops::math::bincount {
namespace {

using Weights = TypeList<int32_t, int64_t, float, double>;

int64_t ValueAt(const Tensor& t, int64_t i) {
  return t.dtype() == DType::kInt32 ? t.data<int32_t>()[i] : t.data<int64_t>()[i];
}

// Adds each number's weight (1 without weights) to its bin; numbers beyond the last bin are left
// out.
template <typename T>
Status Count(const Tensor& numbers, int64_t begin, int64_t end, const Tensor& weights, bool binary,
             int64_t size, T* bins) {
  std::fill_n(bins, size, T(0));
  for (int64_t i = begin; i < end; ++i) {
    const int64_t value = ValueAt(numbers, i);
    if (value < 0) return InvalidArgument("Input arr must be non-negative!");
    if (value >= size) continue;
    if (binary) {
      bins[value] = T(1);
    } else {
      bins[value] += weights.num_elements() > 0 ? weights.data<T>()[i] : T(1);
    }
  }
  return absl::OkStatus();
}

class BincountKernel final : public OpKernel {
 public:
  explicit BincountKernel(KernelConstruction& k)
      : is_dense_(k.op() == "DenseBincount"), binary_(k.AttrOr<bool>("binary_output", false)) {}

  Status Compute(KernelContext& c) override {
    const Tensor& numbers = c.input(0);
    const Tensor& weights = c.input(2);
    if (c.input(1).rank() != 0)
      return InvalidArgument("Shape must be rank 0 but is rank ", c.input(1).rank());
    const int64_t size = ValueAt(c.input(1), 0);
    if (size < 0) return InvalidArgument("size (", size, ") must be non-negative");
    if (weights.num_elements() > 0 && weights.num_elements() != numbers.num_elements()) {
      return is_dense_ ? InvalidArgument(
                             "`weights` must be the same shape as `arr` or a length-0 `Tensor`, in "
                             "which case it acts as all weights equal to 1. Received ",
                             weights.shape().ToString())
                       : InvalidArgument("Input indices and weights must have the same size.");
    }
    if (is_dense_ && numbers.rank() > 2) {
      return InvalidArgument("Shape must be at most rank 2 but is rank ", numbers.rank());
    }
    const bool by_row = is_dense_ && numbers.rank() == 2;
    const int64_t rows = by_row ? numbers.dim(0) : 1;
    Dims dims = by_row ? Dims{rows, size} : Dims{size};
    WEFT_ASSIGN_OR_RETURN(Shape shape, Shape::Make(dims));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    const int64_t columns = rows == 0 ? 0 : numbers.num_elements() / rows;
    Status status;
    VisitDType(out->dtype(), Weights(), [&]<typename T>() {
      for (int64_t r = 0; r < rows && status.ok(); ++r) {
        status = Count<T>(numbers, r * columns, (r + 1) * columns, weights, binary_, size,
                          out->data<T>() + r * size);
      }
    });
    return status;
  }

 private:
  const bool is_dense_;
  const bool binary_;
};

Status BinsShape(ShapeContext& c) {
  WEFT_RETURN_IF_ERROR(c.WithRank(1, 0).status());
  const int64_t size = c.constant(1) != nullptr ? ValueAt(*c.constant(1), 0) : -1;
  if (c.constant(1) != nullptr && size < 0) {
    return InvalidArgument("size (", size, ") must be non-negative");
  }
  const bool is_dense = c.attrs().contains("binary_output");
  if (!is_dense) {
    c.set_output(0, PartialShape{size});
  } else if (c.input(0).known_rank()) {
    if (c.input(0).rank() > 2) {
      return InvalidArgument("Shape must be at most rank 2 but is rank ", c.input(0).rank());
    }
    c.set_output(
        0, c.input(0).rank() == 2 ? PartialShape{c.input(0).dim(0), size} : PartialShape{size});
  }
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("Bincount")
          .Doc("How often each number below size occurs in arr, or the sum of its weights.")
          .Input("arr: int32")
          .Input("size: int32")
          .HostInput("size")
          .Input("weights: T")
          .Output("bins: T")
          .Attr("T: {int32, int64, float, double}")
          .Shape(BinsShape)
          .NoGradient()
          .Kernel(MakeKernel<BincountKernel>()));
  catalogue.Add(
      OpSpec("DenseBincount")
          .Doc("How often each number below size occurs in the input, or in each of its rows, or "
               "the sum of its weights; with binary_output only whether it does.")
          .Input("input: Tidx")
          .Input("size: Tidx")
          .HostInput("size")
          .Input("weights: T")
          .Output("output: T")
          .Attr("Tidx: {int32, int64}")
          .Attr("T: {int32, int64, float, double}")
          .Attr("binary_output: bool = false")
          .Shape(BinsShape)
          .NoGradient()
          .Kernel(MakeKernel<BincountKernel>()));
}

}  // namespace weft::ops::math::bincount
