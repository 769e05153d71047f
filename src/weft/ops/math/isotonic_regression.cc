// SPDX-License-Identifier: Apache-2.0
// The non-increasing sequence that is nearest to each row.
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/gradients.h"
#include "weft/ops/math/functors.h"

namespace weft::ops::math::isotonic_regression {
namespace {

// Neighbours that rise are put together and get their mean (pool adjacent violators: Best and
// Chakravarti, 1990).
template <typename Out>
struct Pool {
  Out sum = 0;
  int64_t count = 0;
  int64_t begin = 0;
  Out mean() const { return sum / static_cast<Out>(count); }
};

class IsotonicKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& input = c.input(0);
    if (input.rank() < 1) return InvalidArgument("input must have at least one dimension");
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, input.shape()));
    WEFT_ASSIGN_OR_RETURN(Tensor * segments, c.AllocateOutput(1, input.shape()));
    const int64_t columns = input.dim(input.rank() - 1);
    if (input.num_elements() == 0) return absl::OkStatus();
    VisitDType(input.dtype(), RealNumbers(), [&]<typename T>() {
      VisitDType(output->dtype(), RealFloats(), [&]<typename Out>() {
        c.ParallelFor(input.num_elements() / columns, std::max<int64_t>(1, 4096 / columns),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t row = begin; row < end; ++row) {
                          Fit(input.data<T>() + row * columns, columns,
                              output->data<Out>() + row * columns,
                              segments->data<int32_t>() + row * columns);
                        }
                      });
      });
    });
    return absl::OkStatus();
  }

 private:
  template <typename T, typename Out>
  static void Fit(const T* row, int64_t columns, Out* out, int32_t* segments) {
    using Sum = std::conditional_t<std::is_same_v<Out, double>, double, float>;
    std::vector<Pool<Sum>> pools;
    for (int64_t i = 0; i < columns; ++i) {
      pools.push_back({static_cast<Sum>(row[i]), 1, i});
      while (pools.size() > 1 && pools[pools.size() - 2].mean() < pools.back().mean()) {
        const Pool<Sum> last = pools.back();
        pools.pop_back();
        pools.back().sum += last.sum;
        pools.back().count += last.count;
      }
    }
    for (size_t p = 0; p < pools.size(); ++p) {
      const int64_t begin = pools[p].begin, end = begin + pools[p].count;
      std::fill(out + begin, out + end, static_cast<Out>(pools[p].mean()));
      std::fill(segments + begin, segments + end, static_cast<int32_t>(p));
    }
  }
};

Status IsotonicShape(ShapeContext& c) {
  c.set_output(0, c.input(0));
  c.set_output(1, c.input(0));
  return absl::OkStatus();
}

// Each element of a run of equal values moves all of them by its share.
Status IsotonicGradient(GradientContext& c) {
  const auto scalar = [&](int32_t value) { return c.builder().Scalar<int32_t>(value); };
  const auto vector = [&](int32_t value) {
    return c.builder().Constant(Tensor::Vector<int32_t>({value}));
  };
  const DType dtype = TypeOf(c.input(0));
  if (!IsFloating(dtype)) return absl::OkStatus();
  const Endpoint shape = c.Op("Shape", {c.input(0)}), size = c.Op("Size", {c.input(0)});
  const Endpoint columns =
      c.Op("GatherV2", {shape, c.Op("Sub", {c.Op("Size", {shape}), scalar(1)}), scalar(0)});
  // Runs of different rows get different numbers: row r has those from r * columns on.
  const Endpoint rows =
      c.Op("Reshape", {c.output(1), c.Op("Pack", {std::vector<Endpoint>{scalar(-1), columns}})});
  const Endpoint starts = c.Op("Range", {scalar(0), size, columns});
  const Endpoint runs = c.Op(
      "Reshape", {c.Op("AddV2", {rows, c.Op("ExpandDims", {starts, scalar(-1)})}), vector(-1)});
  const Endpoint gradient = c.Op("Reshape", {c.gradient(), vector(-1)});
  const auto sum = [&](Endpoint x) { return c.Op("UnsortedSegmentSum", {x, runs, size}); };
  const Endpoint mean = c.Op("DivNoNan", {sum(gradient), sum(c.Op("OnesLike", {gradient}))});
  const Endpoint spread = c.Op("Reshape", {c.Op("GatherV2", {mean, runs, scalar(0)}), shape});
  c.set_input(0, TypeOf(spread) == dtype ? spread : c.Op("Cast", {spread}, {{"DstT", dtype}}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("IsotonicRegression")
                    .Doc("Of each row the non-increasing sequence with the least squared distance "
                         "to it.\nsegments: for each element which of the runs of equal values it "
                         "belongs to.")
                    .Input("input: T")
                    .Output("output: output_dtype")
                    .Output("segments: int32")
                    .Attr("T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, "
                          "half, uint32, uint64}")
                    .Attr("output_dtype: {half, bfloat16, float, double} = DT_FLOAT")
                    .Shape(IsotonicShape)
                    .Gradient(IsotonicGradient)
                    .Kernel(MakeKernel<IsotonicKernel>()));
}

}  // namespace weft::ops::math::isotonic_regression
