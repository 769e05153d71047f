// SPDX-License-Identifier: Apache-2.0
// Tensors of random numbers. The same seeds give TensorFlow's numbers, run after run.
#include "weft/kernel/op_spec.h"
#include "weft/ops/random/fill_kernel.h"

namespace weft::ops::random::random {
namespace {

template <typename Distribution>
class RandomKernel final : public OpKernel {
 public:
  explicit RandomKernel(KernelConstruction& k) : generator_(k) {}

  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Shape shape, ShapeOf(c.input(0)));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    const Philox start = generator_.Reserve(shape.num_elements() * kReservedPerOutput);
    return FillReals<Distribution>(c, start, *out);
  }

 private:
  GuardedPhilox generator_;
};

template <typename T>
class UniformIntKernel final : public OpKernel {
 public:
  explicit UniformIntKernel(KernelConstruction& k) : generator_(k) {}

  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Shape shape, ShapeOf(c.input(0)));
    for (int i = 1; i <= 2; ++i) {
      if (c.input(i).rank() == 0) continue;
      return InvalidArgument(i == 1 ? "minval" : "maxval", " must be 0-D, got shape ",
                             c.input(i).shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    const T low = c.input(1).scalar<T>();
    const T high = c.input(2).scalar<T>();
    if (low >= high) return InvalidArgument("Need minval < maxval, got ", low, " >= ", high);
    const Philox start = generator_.Reserve(shape.num_elements() * kReservedPerOutput);
    using U = std::make_unsigned_t<T>;
    const U range = static_cast<U>(high) - static_cast<U>(low);
    return FillIntegers<T>(c, start, low, range, *out);
  }

 private:
  GuardedPhilox generator_;
};

Status ShapeFromFirst(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.ShapeFromInput(0));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

template <typename Distribution>
void AddRandom(Catalogue& catalogue, const char* name, const char* doc) {
  catalogue.Add(OpSpec(name)
                    .Doc(doc)
                    .Input("shape: T")
                    .HostInput("shape")
                    .Output("output: dtype")
                    .Attr("seed: int = 0")
                    .Attr("seed2: int = 0")
                    .Attr("dtype: {half, bfloat16, float, double}")
                    .Attr("T: {int32, int64}")
                    .Stateful()
                    .Shape(ShapeFromFirst)
                    .NoGradient()
                    .Kernel(MakeKernel<RandomKernel<Distribution>>()));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddRandom<Uniform>(catalogue, "RandomUniform", "Uniform numbers of [0, 1).");
  AddRandom<Normal>(catalogue, "RandomStandardNormal", "Normal numbers, mean 0 and deviation 1.");
  AddRandom<Truncated>(catalogue, "TruncatedNormal",
                       "Normal numbers, mean 0 and deviation 1, drawn again beyond 2 deviations.");
  catalogue.Add(OpSpec("RandomUniformInt")
                    .Doc("Uniform integers of [minval, maxval).")
                    .Input("shape: T")
                    .HostInput("shape")
                    .Input("minval: Tout")
                    .HostInput("minval")
                    .Input("maxval: Tout")
                    .HostInput("maxval")
                    .Output("output: Tout")
                    .Attr("seed: int = 0")
                    .Attr("seed2: int = 0")
                    .Attr("Tout: {int32, int64}")
                    .Attr("T: {int32, int64}")
                    .Stateful()
                    .Shape(ShapeFromFirst)
                    .NoGradient()
                    .Kernel({.types = {{"Tout", {DType::kInt32}}},
                             .factory = MakeKernel<UniformIntKernel<int32_t>>()})
                    .Kernel({.types = {{"Tout", {DType::kInt64}}},
                             .factory = MakeKernel<UniformIntKernel<int64_t>>()}));
}

}  // namespace weft::ops::random::random
