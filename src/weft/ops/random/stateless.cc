// SPDX-License-Identifier: Apache-2.0
// Random numbers that a seed, given as a tensor, says: what initializers of Keras layers draw.
#include <algorithm>
#include <utility>

#include "weft/kernel/op_spec.h"
#include "weft/ops/random/fill_kernel.h"
#include "weft/ops/random/stateless_kernel.h"

namespace weft::ops::random::stateless {
namespace {

class KeyCounterKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const KeyAndCounter mixed, MixSeeds(c.input(0)));
    WEFT_ASSIGN_OR_RETURN(Tensor * key, c.AllocateOutput(0, Shape{1}));
    WEFT_ASSIGN_OR_RETURN(Tensor * counter, c.AllocateOutput(1, Shape{2}));
    key->data<uint64_t>()[0] = mixed.key;
    std::copy_n(mixed.counter, 2, counter->data<uint64_t>());
    if (c.num_outputs() > 2) c.SetOutput(2, Tensor::Scalar<int32_t>(kPhiloxAlgorithm));
    return absl::OkStatus();
  }
};

class AlgorithmKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    c.SetOutput(0, Tensor::Scalar<int32_t>(kPhiloxAlgorithm));
    return absl::OkStatus();
  }
};

template <typename Distribution>
class RealsKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(c.input(0)));
    WEFT_ASSIGN_OR_RETURN(const Philox start, GeneratorOfKey(c.input(1), c.input(2), c.input(3)));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    return FillReals<Distribution>(c, start, *out);
  }
};

template <typename T>
class IntegersKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(c.input(0)));
    for (int i = 4; i <= 5; ++i) {
      if (c.input(i).rank() == 0) continue;
      return InvalidArgument(i == 4 ? "minval" : "maxval", " must be 0-D, got shape ",
                             c.input(i).shape().ToString());
    }
    const T low = c.input(4).scalar<T>(), high = c.input(5).scalar<T>();
    if (low >= high) return InvalidArgument("Need minval < maxval, got ", low, " >= ", high);
    WEFT_ASSIGN_OR_RETURN(const Philox start, GeneratorOfKey(c.input(1), c.input(2), c.input(3)));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    using U = std::make_unsigned_t<T>;
    return FillIntegers<T>(c, start, low, static_cast<U>(high) - static_cast<U>(low), *out);
  }
};

Status ShapeFromFirst(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.ShapeFromInput(0));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

OpSpec& AddGenerator(OpSpec& spec) {
  return spec.Input("shape: Tshape")
      .HostInput("shape")
      .Input("key: uint64")
      .Input("counter: uint64")
      .Input("alg: int32")
      .HostInput("alg");
}

template <typename Distribution>
void AddReals(Catalogue& catalogue, const char* name, const char* doc) {
  OpSpec spec(name);
  spec.Doc(
      absl::StrCat(doc, "\nThe same for equal keys and counters. alg: 1 (Philox) or 3 (any)."));
  catalogue.Add(AddGenerator(spec)
                    .Output("output: dtype")
                    .Attr("dtype: {half, bfloat16, float, double} = DT_FLOAT")
                    .Attr("Tshape: {int32, int64} = DT_INT32")
                    .Shape(ShapeFromFirst)
                    .NoGradient()
                    .Kernel(MakeKernel<RealsKernel<Distribution>>()));
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("StatelessRandomGetKeyCounter")
                    .Doc("The key and the counter of a generator that two seeds name.")
                    .Input("seed: Tseed")
                    .HostInput("seed")
                    .Output("key: uint64")
                    .Output("counter: uint64")
                    .Attr("Tseed: {int32, int64} = DT_INT64")
                    .Shape([](ShapeContext& c) {
                      c.set_output(0, PartialShape({1}));
                      c.set_output(1, PartialShape({2}));
                      return absl::OkStatus();
                    })
                    .NoGradient()
                    .Kernel(MakeKernel<KeyCounterKernel>()));
  catalogue.Add(OpSpec("StatelessRandomGetKeyCounterAlg")
                    .Doc("The key, the counter and the algorithm (1, Philox) of a generator that "
                         "two seeds name.")
                    .Input("seed: Tseed")
                    .HostInput("seed")
                    .Output("key: uint64")
                    .Output("counter: uint64")
                    .Output("alg: int32")
                    .HostOutput("alg")
                    .Attr("Tseed: {int32, int64} = DT_INT64")
                    .Shape([](ShapeContext& c) {
                      c.set_output(0, PartialShape({1}));
                      c.set_output(1, PartialShape({2}));
                      c.set_output(2, Shape());
                      return absl::OkStatus();
                    })
                    .NoGradient()
                    .Kernel(MakeKernel<KeyCounterKernel>()));
  catalogue.Add(OpSpec("StatelessRandomGetAlg")
                    .Doc("Which generator the device has: 1, Philox.")
                    .Output("alg: int32")
                    .HostOutput("alg")
                    .Stateful()
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<AlgorithmKernel>()));
  AddReals<Uniform>(catalogue, "StatelessRandomUniformV2", "Uniform numbers of [0, 1).");
  AddReals<Normal>(catalogue, "StatelessRandomNormalV2", "Normal numbers, mean 0 and deviation 1.");
  AddReals<Truncated>(catalogue, "StatelessTruncatedNormalV2",
                      "Normal numbers, mean 0 and deviation 1, drawn again beyond 2 deviations.");
  OpSpec integers("StatelessRandomUniformIntV2");
  integers.Doc("Uniform integers of [minval, maxval).");
  AddGenerator(integers)
      .Input("minval: dtype")
      .HostInput("minval")
      .Input("maxval: dtype")
      .HostInput("maxval")
      .Output("output: dtype")
      .Attr("dtype: {int32, int64, uint32, uint64}")
      .Attr("Tshape: {int32, int64} = DT_INT32")
      .Shape(ShapeFromFirst)
      .NoGradient();
  const auto add = [&]<typename T>() {
    integers.Kernel(
        {.types = {{"dtype", DTypesOf<T>()}}, .factory = MakeKernel<IntegersKernel<T>>()});
  };
  add.operator()<int32_t>();
  add.operator()<int64_t>();
  add.operator()<uint32_t>();
  add.operator()<uint64_t>();
  catalogue.Add(std::move(integers));
}

}  // namespace weft::ops::random::stateless
