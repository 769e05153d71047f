// SPDX-License-Identifier: Apache-2.0
// Tensors of random numbers. The same seeds give TensorFlow's numbers, run after run.
#include "weft/kernel/op_spec.h"
#include "weft/ops/random/distribution_kernel.h"

namespace weft::ops::random::random {
namespace {

constexpr uint64_t kReservedPerOutput =
    256;                          // steps, and words that a rejecting distribution may use
constexpr int64_t kGrain = 2048;  // groups of numbers that one thread should at least make

StatusOr<Shape> ShapeOf(const Tensor& t) {
  if (t.rank() != 1) {
    return InvalidArgument("shape must be a vector of {int32,int64}, got shape ",
                           t.shape().ToString());
  }
  Dims dims;
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    dims.push_back(t.dtype() == DType::kInt32 ? t.data<int32_t>()[i] : t.data<int64_t>()[i]);
  }
  return Shape::Make(dims);
}

// Groups of numbers: group i starts i * kStepsPerGroup steps into the reservation, so that threads
// do not change the result.
struct Uniform {
  template <typename T>
  static constexpr uint64_t kStepsPerGroup = 1;
  template <typename T>
  static void Group(const Philox& start, T* out) {
    Philox generator = start;
    const Philox::Words words = generator.Next();
    for (int i = 0; i < kPerStep<T>; ++i) out[i] = UniformFrom<T>(&words[i * (4 / kPerStep<T>)]);
  }
};
struct Normal {
  template <typename T>
  static constexpr uint64_t kStepsPerGroup = 1;
  template <typename T>
  static void Group(const Philox& start, T* out) {
    using N = NormalType<T>;
    Philox generator = start;
    const Philox::Words words = generator.Next();
    N pair[2];
    for (int i = 0; i < kPerStep<T>; i += 2) {
      NormalPair<N>(&words[i], pair);
      out[i] = T(pair[0]);
      out[i + 1] = T(pair[1]);
    }
  }
};
struct Truncated {
  template <typename T>
  static constexpr uint64_t kStepsPerGroup = kPerStep<T>* kReservedPerOutput / 4;
  template <typename T>
  static void Group(const Philox& start, T* out) {
    using N = NormalType<T>;
    PhiloxWords words(start);
    constexpr int kWords = sizeof(N) == 8 ? 4 : 2;
    for (int made = 0; made < kPerStep<T>;) {
      uint32_t drawn[kWords];
      for (uint32_t& word : drawn) word = words.Next();
      N pair[2];
      NormalPair<N>(drawn, pair);
      for (const N value : pair) {
        if (std::abs(value) < N(2) && made < kPerStep<T>) out[made++] = T(value);
      }
    }
  }
};

template <typename T, typename MakeGroup>
void FillGroups(KernelContext& c, Tensor& out, MakeGroup make_group) {
  const int64_t n = out.num_elements();
  T* values = out.data<T>();
  constexpr int kGroup = kPerStep<T>;
  c.ParallelFor((n + kGroup - 1) / kGroup, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group) {
      const int64_t at = group * kGroup;
      if (at + kGroup <= n) {
        make_group(group, values + at);
      } else {
        T rest[kGroup];
        make_group(group, rest);
        std::copy_n(rest, n - at, values + at);
      }
    }
  });
}

template <typename Distribution>
class RandomKernel final : public OpKernel {
 public:
  explicit RandomKernel(KernelConstruction& k) : generator_(k) {}

  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Shape shape, ShapeOf(c.input(0)));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    const Philox start = generator_.Reserve(shape.num_elements() * kReservedPerOutput);
    VisitDType(out->dtype(), RealFloats(), [&]<typename T>() {
      FillGroups<T>(c, *out, [&](int64_t group, T* to) {
        Philox generator = start;
        generator.Skip(group * Distribution::template kStepsPerGroup<T>);
        Distribution::template Group<T>(generator, to);
      });
    });
    return absl::OkStatus();
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
    FillGroups<T>(c, *out, [&](int64_t group, T* to) {
      Philox generator = start;
      generator.Skip(group);
      const Philox::Words words = generator.Next();
      for (int i = 0; i < kPerStep<T>; ++i) {
        U word = words[i];
        if constexpr (sizeof(T) == 8) word = words[2 * i] | uint64_t{words[2 * i + 1]} << 32;
        to[i] = static_cast<T>(static_cast<U>(low) + word % range);
      }
    });
    return absl::OkStatus();
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
                    .Input("minval: Tout")
                    .Input("maxval: Tout")
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
