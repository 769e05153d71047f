// SPDX-License-Identifier: Apache-2.0
// Random numbers that a seed, given as a tensor, says: what initializers of Keras layers draw.
#include <utility>

#include "weft/kernel/op_spec.h"
#include "weft/ops/index_values.h"
#include "weft/ops/random/fill_kernel.h"

namespace weft::ops::random::stateless {
namespace {

constexpr int32_t kPhilox = 1, kAutomatic = 3;

uint64_t WordPair(uint32_t low, uint32_t high) { return uint64_t{high} << 32 | low; }

// The generator that a key of one number and a counter of two name.
StatusOr<Philox> GeneratorOf(const Tensor& key, const Tensor& counter, const Tensor& algorithm) {
  if (algorithm.rank() != 0) {
    return InvalidArgument("algorithm must be of shape [], not ", algorithm.shape().ToString());
  }
  const int32_t chosen = algorithm.scalar<int32_t>();
  if (chosen != kPhilox && chosen != kAutomatic) {
    return InvalidArgument("Unsupported algorithm id: ", chosen, ", expected ", kPhilox,
                           " (Philox) or ", kAutomatic, " (any)");
  }
  if (key.rank() != 1 || key.dim(0) != 1) {
    return InvalidArgument("key must have shape [1], got ", key.shape().ToString());
  }
  if (counter.rank() != 1 || counter.dim(0) < 2) {
    return InvalidArgument("counter must be a vector of at least 2 elements, got shape ",
                           counter.shape().ToString());
  }
  const auto low = [](uint64_t x) { return static_cast<uint32_t>(x); };
  const auto high = [](uint64_t x) { return static_cast<uint32_t>(x >> 32); };
  const uint64_t k = key.data<uint64_t>()[0];
  const uint64_t* c = counter.data<uint64_t>();
  return Philox({low(c[0]), high(c[0]), low(c[1]), high(c[1])}, {low(k), high(k)});
}

class KeyCounterKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& seed = c.input(0);
    if (seed.rank() != 1 || seed.dim(0) != 2) {
      return InvalidArgument("seed must have shape [2], not ", seed.shape().ToString());
    }
    const auto first = static_cast<uint64_t>(IndexAt(seed, 0));
    const auto second = static_cast<uint64_t>(IndexAt(seed, 1));
    // One step under TensorFlow's own key mixes the seeds.
    Philox mixer({static_cast<uint32_t>(first), static_cast<uint32_t>(first >> 32),
                  static_cast<uint32_t>(second), static_cast<uint32_t>(second >> 32)},
                 {0x3ec8f720, 0x02461e29});
    const Philox::Words mixed = mixer.Next();
    WEFT_ASSIGN_OR_RETURN(Tensor * key, c.AllocateOutput(0, Shape{1}));
    WEFT_ASSIGN_OR_RETURN(Tensor * counter, c.AllocateOutput(1, Shape{2}));
    key->data<uint64_t>()[0] = WordPair(mixed[0], mixed[1]);
    counter->data<uint64_t>()[0] = 0;
    counter->data<uint64_t>()[1] = WordPair(mixed[2], mixed[3]);
    return absl::OkStatus();
  }
};

class AlgorithmKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    c.SetOutput(0, Tensor::Scalar<int32_t>(kPhilox));
    return absl::OkStatus();
  }
};

template <typename Distribution>
class RealsKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(c.input(0)));
    WEFT_ASSIGN_OR_RETURN(const Philox start, GeneratorOf(c.input(1), c.input(2), c.input(3)));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    FillReals<Distribution>(c, start, *out);
    return absl::OkStatus();
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
    WEFT_ASSIGN_OR_RETURN(const Philox start, GeneratorOf(c.input(1), c.input(2), c.input(3)));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    using U = std::make_unsigned_t<T>;
    FillIntegers<T>(c, start, low, static_cast<U>(high) - static_cast<U>(low), *out);
    return absl::OkStatus();
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
