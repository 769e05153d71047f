// SPDX-License-Identifier: Apache-2.0
// Random numbers of normal distributions that are cut off at both sides, with their parameters.
#include <algorithm>
#include <array>
#include <limits>

#include "weft/kernel/op_spec.h"
#include "weft/ops/broadcast.h"
#include "weft/ops/gradients.h"
#include "weft/ops/random/fill_kernel.h"
#include "weft/ops/random/stateless_kernel.h"
#include "weft/ops/rounded.h"

namespace weft::ops::random::truncated_parameters {
namespace {

using E = Endpoint;
using G = GradientContext&;
using Types = TypeList<float, double, Half>;

constexpr int kMostTries = 1000;

// Draws of one generator, group by group, with arithmetic that rounds to T at each step.
template <typename T>
class Sampler {
 public:
  using R = std::conditional_t<std::is_same_v<T, Half>, rules::Rounded<Half>, T>;
  explicit Sampler(const Philox& start) : generator_(start) {}

  // Calls put(i, value) for `count` numbers of one distribution.
  template <typename Put>
  Status Draw(T mean, T deviation, T low, T high, int64_t count, const Put& put) {
    using rules::exp;
    using rules::isfinite;
    using rules::sqrt;
    R m(mean), s(deviation), a(low), b(high);
    if (!(s > R(0)) || !(a < b) || !(isfinite(a) || isfinite(b))) {
      return InvalidArgument("Invalid parameters");
    }
    // Turned round, so that a bound on one side is the lower one, or both are positive.
    if ((!isfinite(a) && a < R(0)) || b < m) {
      std::swap(a, b);
      s = -s;
    }
    const R least = (a - m) / s, most = (b - m) / s;
    const R root = sqrt((least * least) + R(4));
    const R cutoff = R(2) * exp(R(0.5) + (least * (least - root)) / R(4)) / (least + root);
    const R range = most - least;
    const R enough(1.3);
    const auto place = [&](int64_t i, R z) { put(i, static_cast<T>(z * s + m)); };
    if ((least < -enough && !(most < R(0))) || (most > enough && !(least > R(0)))) {
      return FromNormal(least, most, count, place);
    }
    if (range < cutoff) return FromUniform(least, range, count, place);
    return FromExponential(least, most, count, place);
  }

 private:
  static constexpr int kGroup = kPerStep<T>;
  using Group = std::array<T, kGroup>;

  Group NextUniform() {
    Group group;
    Uniform::Group<T>(generator_, group.data());
    generator_.Skip(1);
    return group;
  }
  Group NextNormal() {
    Group group;
    Normal::Group<T>(generator_, group.data());
    generator_.Skip(1);
    return group;
  }
  static Status GaveUp() {
    return Internal("No number between the bounds was found in ", kMostTries, " draws");
  }

  template <typename Place>
  Status FromNormal(R least, R most, int64_t count, const Place& place) {
    int tries = 0;
    for (int64_t made = 0; made < count;) {
      for (const T drawn : NextNormal()) {
        const R z(drawn);
        if (!(z < least) && !(z > most)) {
          place(made++, z);
          if (made >= count) break;
          tries = 0;
        } else if (++tries > kMostTries) {
          return GaveUp();
        }
      }
    }
    return absl::OkStatus();
  }

  template <typename Place>
  Status FromUniform(R least, R range, int64_t count, const Place& place) {
    using rules::exp;
    const R plus = least < R(0) ? R(0) : least * least;
    int tries = 0;
    for (int64_t made = 0; made < count;) {
      const Group drawn = NextUniform(), wanted = NextUniform();
      for (int i = 0; i < kGroup; ++i) {
        const R z = R(drawn[i]) * range + least;
        if (!(R(wanted[i]) > exp((plus - z * z) / R(2)))) {
          place(made++, z);
          if (made >= count) break;
          tries = 0;
        } else if (++tries >= kMostTries) {
          return GaveUp();
        }
      }
    }
    return absl::OkStatus();
  }

  // Of the exponential distribution that is accepted most often.
  template <typename Place>
  Status FromExponential(R least, R most, int64_t count, const Place& place) {
    using rules::exp;
    using rules::log;
    using rules::sqrt;
    const R alpha = (least + sqrt((least * least) + R(4))) / R(2);
    int tries = 0;
    for (int64_t made = 0; made < count;) {
      const Group drawn = NextUniform();
      for (int i = 0; i < kGroup; i += 2) {
        const R z = -log(R(drawn[i])) / alpha + least;
        const R x = least < alpha ? alpha - z : least - alpha;
        const R g = exp(-x * x / R(2));
        if (!(R(drawn[i + 1]) > g) && z < most) {
          place(made++, z);
          if (made >= count) break;
          tries = 0;
        } else if (++tries >= kMostTries) {
          return GaveUp();
        }
      }
    }
    return absl::OkStatus();
  }

  Philox generator_;
};

// One distribution for each row of the output, or one for all.
class StatefulKernel final : public OpKernel {
 public:
  explicit StatefulKernel(KernelConstruction& k) : generator_(k) {}

  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(c.input(0)));
    if (shape.rank() == 0) return InvalidArgument("Shape tensor must not be empty");
    int64_t rows = shape.dim(0);
    bool differ = false;
    for (int i = 1; i <= 4; ++i) {
      const Tensor& t = c.input(i);
      if (t.rank() > 1) {
        return InvalidArgument("Input ", kNames[i - 1],
                               " should be a scalar or vector, got shape: ", t.shape().ToString());
      }
      differ |= i <= 2 ? t.num_elements() != 1 : t.rank() != 0;
    }
    for (int i = 1; differ && i <= 4; ++i) {
      const Tensor& t = c.input(i);
      if (t.num_elements() == 1 || t.dim(0) == rows) continue;
      return InvalidArgument(
          "Input ", kNames[i - 1],
          " should have length 1 or shape[0], got shape: ", t.shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    int64_t each = rows == 0 ? 0 : shape.num_elements() / rows;
    if (!differ) {
      // TensorFlow then makes batches of a size of its own.
      each = 100;
      rows = (shape.num_elements() + each - 1) / each;
    }
    const Philox start = generator_.Reserve(static_cast<uint64_t>(rows) * 2 * kMostTries *
                                            static_cast<uint64_t>(each + 3) / 4);
    Status status;
    VisitDType(out->dtype(), Types(), [&]<typename T>() {
      Sampler<T> sampler(start);
      const auto parameter = [&](int i, int64_t row) {
        return c.input(i).data<T>()[c.input(i).num_elements() == 1 ? 0 : row];
      };
      for (int64_t row = 0; row < rows && status.ok(); ++row) {
        T* to = out->data<T>() + row * each;
        const int64_t count = std::min(each, shape.num_elements() - row * each);
        status = sampler.Draw(parameter(1, row), parameter(2, row), parameter(3, row),
                              parameter(4, row), count, [to](int64_t i, T x) { to[i] = x; });
      }
    });
    return status;
  }

 private:
  static constexpr const char* kNames[] = {"means", "stddevs", "minvals", "maxvals"};
  GuardedPhilox generator_;
};

// The four parameters broadcast; the output is [samples, parameters].
class StatelessKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Philox start, GeneratorOfSeed(c.input(1)));
    Shape each;
    for (int i = 2; i <= 5; ++i) {
      WEFT_ASSIGN_OR_RETURN(each, BroadcastShapes(each, c.input(i).shape()));
    }
    WEFT_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(c.input(0)));
    const auto all = shape.dims(), end = each.dims();
    if (all.size() < end.size() || !std::equal(end.begin(), end.end(), all.end() - end.size())) {
      return InvalidArgument("Shape passed in must end with broadcasted shape: ", shape.ToString(),
                             " does not end with ", each.ToString());
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    if (out->num_elements() == 0) return absl::OkStatus();
    Status status;
    VisitDType(out->dtype(), Types(), [&]<typename T>() { status = Fill<T>(c, each, start, out); });
    return status;
  }

 private:
  template <typename T>
  static Status Fill(const KernelContext& c, const Shape& each, const Philox& start, Tensor* out) {
    const int64_t batch = each.num_elements(), samples = out->num_elements() / batch;
    const auto loops = MakeBroadcastLoops<4>(
        each, {&c.input(2).shape(), &c.input(3).shape(), &c.input(4).shape(), &c.input(5).shape()});
    Philox own = start;
    own.Skip((kPerStep<T> - 1) / kPerStep<T>);
    Sampler<T> sampler(own);
    Status status;
    loops.ForEachRow(0, loops.num_rows(), [&](const std::array<int64_t, 4>& at, int64_t row) {
      for (int64_t i = 0; i < loops.inner.size && status.ok(); ++i) {
        const auto parameter = [&](int k) {
          return c.input(k + 2).data<T>()[at[k] + i * loops.inner.stride[k]];
        };
        T* to = out->data<T>() + row + i;
        status = sampler.Draw(parameter(0), parameter(1), parameter(2), parameter(3), samples,
                              [to, batch](int64_t sample, T x) { to[sample * batch] = x; });
      }
    });
    return status;
  }
};

Status ShapeFromFirst(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.ShapeFromInput(0));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

E Minus(G c, E a, E b) { return c.Op("Sub", {a, b}); }
E Times(G c, E a, E b) { return c.Op("Mul", {a, b}); }

// The part of the normal distribution below x.
E Below(G c, E x) {
  const DType dtype = TypeOf(x);
  const E rest = c.Op("Erfc", {Times(c, x, ScalarOf(c, dtype, -M_SQRT1_2))});
  return Times(c, rest, ScalarOf(c, dtype, 0.5));
}

// By implicit differentiation (Figurnov et al., 2018): the bounds move what is near them.
Status StatelessGradient(G c) {
  const DType dtype = TypeOf(c.output(0));
  const auto number = [&](double x) { return ScalarOf(c, dtype, x); };
  const auto standard = [&](E x) { return c.Op("RealDiv", {Minus(c, x, c.input(2)), c.input(3)}); };
  const E least = standard(c.input(4)), most = standard(c.input(5)), z = standard(c.output(0));
  const E below = Below(c, least);
  const E ratio = c.Op("RealDiv", {Minus(c, Below(c, z), below), Minus(c, Below(c, most), below)});
  const bool is_double = dtype == DType::kDouble;
  const double tiny = is_double                ? std::numeric_limits<double>::min()
                      : dtype == DType::kFloat ? std::numeric_limits<float>::min()
                                               : 6.104e-5;
  const double epsilon = is_double                ? std::numeric_limits<double>::epsilon()
                         : dtype == DType::kFloat ? std::numeric_limits<float>::epsilon()
                                                  : 9.77e-4;
  const E cdf = c.Op("ClipByValue", {ratio, number(tiny), number(1 - epsilon)});
  const auto moved = [&](E bound, E weight) {
    const E squares = Minus(c, c.Op("Square", {z}), c.Op("Square", {bound}));
    return c.Op("Exp", {c.Op("AddV2", {Times(c, number(0.5), squares), weight})});
  };
  const std::array<E, 4> slopes = {c.Op("OnesLike", {z}), z,
                                   moved(least, c.Op("Log1p", {c.Op("Neg", {cdf})})),
                                   moved(most, c.Op("Log", {cdf}))};
  for (int i = 0; i < 4; ++i) {
    const E whole = Times(c, c.gradient(), slopes[static_cast<size_t>(i)]);
    const E own = c.Op("Shape", {c.input(i + 2)});
    const E axes = c.Op("BroadcastGradientArgs", {own, c.Op("Shape", {whole})});
    c.set_input(i + 2, c.Op("Reshape", {c.Op("Sum", {whole, axes}), own}));
  }
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("ParameterizedTruncatedNormal")
                    .Doc("Normal numbers between minvals and maxvals; the parameters are scalars, "
                         "or one for each row of the output.\nInvalidArgument for bounds that "
                         "leave nothing and deviations that are not positive.")
                    .Input("shape: T")
                    .HostInput("shape")
                    .Input("means: dtype")
                    .Input("stdevs: dtype")
                    .Input("minvals: dtype")
                    .Input("maxvals: dtype")
                    .Output("output: dtype")
                    .Attr("seed: int = 0")
                    .Attr("seed2: int = 0")
                    .Attr("dtype: {half, bfloat16, float, double}")
                    .Attr("T: {int32, int64}")
                    .Stateful()
                    .Shape(ShapeFromFirst)
                    .NoGradient()
                    .Kernel({.types = {{"dtype", DTypesOf(Types())}},
                             .factory = MakeKernel<StatefulKernel>()}));
  catalogue.Add(OpSpec("StatelessParameterizedTruncatedNormal")
                    .Doc("Normal numbers between minvals and maxvals; `shape` ends in the shape "
                         "that the parameters broadcast to.\nThe same numbers for equal seeds.")
                    .Input("shape: S")
                    .HostInput("shape")
                    .Input("seed: Tseed")
                    .HostInput("seed")
                    .Input("means: dtype")
                    .Input("stddevs: dtype")
                    .Input("minvals: dtype")
                    .Input("maxvals: dtype")
                    .Output("output: dtype")
                    .Attr("S: {int32, int64}")
                    .Attr("Tseed: {int32, int64} = DT_INT64")
                    .Attr("dtype: {half, float, double}")
                    .Shape(ShapeFromFirst)
                    .Gradient(StatelessGradient)
                    .Kernel({.types = {{"dtype", DTypesOf(Types())}},
                             .factory = MakeKernel<StatelessKernel>()}));
}

}  // namespace weft::ops::random::truncated_parameters
