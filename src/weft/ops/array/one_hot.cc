// SPDX-License-Identifier: Apache-2.0
// OneHot: class numbers as rows with one element on.
#include <memory>

#include "weft/kernel/op_spec.h"
#include "weft/ops/elements.h"
#include "weft/ops/index_values.h"

namespace weft::ops::array::one_hot {
namespace {

constexpr int64_t kGrain = 16384;  // elements of the output that one thread should at least get

class OneHotKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const int64_t axis, c.Attr<int64_t>("axis"));
    return std::make_unique<OneHotKernel>(axis);
  }
  explicit OneHotKernel(int64_t axis) : axis_(axis) {}

  Status Compute(KernelContext& c) override {
    const Tensor& indices = c.input(0);
    const int rank = indices.rank() + 1;
    if (axis_ != -1 && (axis_ < 0 || axis_ >= rank)) {
      return InvalidArgument("Expected axis to be -1 or between [0, ", rank,
                             ").  But received: ", axis_);
    }
    constexpr const char* kNames[] = {"depth", "on_value", "off_value"};
    for (int i = 1; i <= 3; ++i) {
      if (c.input(i).shape().IsScalar()) continue;
      return InvalidArgument(kNames[i - 1],
                             " must be a scalar, but got: ", c.input(i).shape().ToString());
    }
    const int64_t depth = *c.input(1).data<int32_t>();
    if (depth < 0) return InvalidArgument("depth must be non-negative, got: ", depth);
    const int axis = static_cast<int>(axis_ == -1 ? rank - 1 : axis_);
    Dims sizes(indices.shape().dims().begin(), indices.shape().dims().end());
    sizes.insert(sizes.begin() + axis, depth);
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(sizes));
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    int64_t prefix = 1;
    for (int i = 0; i < axis; ++i) prefix *= indices.dim(i);
    const int64_t suffix = indices.num_elements() / prefix;
    VisitElement(output->dtype(), [&]<typename T>() {
      T* out = output->bits<T>();
      const T& on = *c.input(2).bits<T>();
      const T& off = *c.input(3).bits<T>();
      const int64_t block = depth * suffix;
      const int64_t rows = std::max<int64_t>(1, kGrain / block);
      c.ParallelFor(prefix, rows, [&](int64_t begin, int64_t end) {
        FillElements(off, (end - begin) * block, out + begin * block);
        for (int64_t i = begin * suffix; i < end * suffix; ++i) {
          const int64_t hot = IndexAt(indices, i);
          if (hot < 0 || hot >= depth) continue;
          out[(i / suffix * depth + hot) * suffix + i % suffix] = on;
        }
      });
    });
    return absl::OkStatus();
  }

 private:
  const int64_t axis_;
};

Status OneHotShape(ShapeContext& c) {
  const PartialShape& indices = c.input(0);
  WEFT_ASSIGN_OR_RETURN(const int64_t value, c.Attr<int64_t>("axis"));
  if (value < -1) return InvalidArgument("axis must be >= -1");
  if (!indices.known_rank()) return absl::OkStatus();
  if (value > indices.rank()) {
    return InvalidArgument("axis must be between [0, ", indices.rank() + 1, "), got ", value);
  }
  int64_t depth = -1;
  if (c.constant(1) != nullptr) {
    WEFT_ASSIGN_OR_RETURN(depth, IndexScalar(*c.constant(1), "depth"));
    if (depth < 0) return InvalidArgument("depth must be non-negative, got: ", depth);
  }
  Dims sizes(indices.dims().begin(), indices.dims().end());
  sizes.insert(value == -1 ? sizes.end() : sizes.begin() + value, depth);
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, PartialShape::Make(sizes));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("OneHot")
          .Doc(
              "Inserts a dimension `axis` of size `depth`: `on_value` where its index is the class "
              "number, `off_value` elsewhere.\n"
              "A number that is no class turns nothing on. Axis -1 is the last.")
          .Input("indices: TI")
          .Input("depth: int32")
          .HostInput("depth")
          .Input("on_value: T")
          .Input("off_value: T")
          .Output("output: T")
          .Attr("axis: int = -1")
          .Attr("T: type")
          .Attr("TI: {uint8, int8, int32, int64} = DT_INT64")
          .Shape(OneHotShape)
          .NoGradient()
          .Kernel(MakeKernel<OneHotKernel>()));
}

}  // namespace weft::ops::array::one_hot
