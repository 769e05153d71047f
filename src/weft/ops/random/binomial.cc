// SPDX-License-Identifier: Apache-2.0
// Random numbers of binomial distributions.
#include <array>
#include <cmath>
#include <limits>

#include "weft/kernel/op_spec.h"
#include "weft/ops/broadcast.h"
#include "weft/ops/random/fill_kernel.h"
#include "weft/ops/random/generator_state_kernel.h"
#include "weft/ops/random/rejection_kernel.h"
#include "weft/ops/rounded.h"

namespace weft::ops::random::binomial {
namespace {

using Parameters = TypeList<float, double, Half>;
using Outputs = TypeList<float, double, Half, int32_t, int64_t>;

// Small means: sums of geometric numbers until they exceed the count.
double DrawByInversion(double count, double probability, Philox generator) {
  UniformPairs uniform(&generator);
  double sum = 0;
  for (int found = 0;; ++found) {
    sum += std::ceil(std::log(uniform.Next()) / std::log1p(-probability));
    if (!(sum <= count)) return found;
  }
}

// The rest of Stirling's series for log(k!).
double StirlingTail(double k) {
  constexpr double kTails[] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983,
                               0.02079067210376509, 0.0166446911898211, 0.0138761288230707,
                               0.0118967099458917,  0.0104112652619720, 0.00925546218271273,
                               0.00833056343336287};
  if (k <= 9) return kTails[static_cast<int>(k)];
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

// Large means: transformed rejection (Hoermann, 1993).
double DrawByRejection(double count, double p, Philox generator) {
  const double deviation = std::sqrt(count * p * (1 - p));
  const double b = 1.15 + 2.53 * deviation;
  const double a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double c = count * p + 0.5;
  const double sure = 0.92 - 4.2 / b;
  const double odds = p / (1 - p);
  const double alpha = (2.83 + 5.1 / b) * deviation;
  const double mode = std::floor((count + 1) * p);
  UniformPairs uniform(&generator);
  for (;;) {
    const double u = uniform.Next() - 0.5;
    double v = uniform.Next();
    const double shifted = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / shifted + b) * u + c);
    if (shifted >= 0.07 && v <= sure) return k;
    if (!(k >= 0) || k > count) continue;
    v = std::log(v * alpha / (a / (shifted * shifted) + b));
    const double bound = (mode + 0.5) * std::log((mode + 1) / (odds * (count - mode + 1))) +
                         (count + 1) * std::log((count - mode + 1) / (count - k + 1)) +
                         (k + 0.5) * std::log(odds * (count - k + 1) / (k + 1)) +
                         StirlingTail(mode) + StirlingTail(count - mode) - StirlingTail(k) -
                         StirlingTail(count - k);
    if (v <= bound) return k;
  }
}

// Arithmetic on parameters as their type rounds it.
template <typename T>
using Real = std::conditional_t<std::is_same_v<T, Half>, rules::Rounded<Half>, T>;

// `number` is that of the output element, which has draws of its own.
template <typename T>
double Draw(T count, T probability, int64_t number, Philox start) {
  using R = Real<T>;
  const double n = static_cast<double>(static_cast<float>(count));
  const double wide_n = std::is_same_v<T, double> ? static_cast<double>(count) : n;
  const R p(probability);
  if (!(wide_n > 0) || p == R(0) || p < R(0)) {
    return std::isnan(static_cast<double>(p)) ? std::numeric_limits<double>::quiet_NaN() : 0;
  }
  if (p == R(1) || p > R(1)) return wide_n;
  if (std::isnan(static_cast<double>(p))) return std::numeric_limits<double>::quiet_NaN();
  const bool is_small = !(p > R(0.5));
  const R part = is_small ? p : R(1) - p;
  const bool rejects = !(R(count) * part < R(10));
  // What either way is expected to use at most.
  start.Skip(static_cast<uint64_t>(number) * (rejects ? kReservedPerOutput : 42));
  const double q = static_cast<double>(part);
  const double drawn =
      rejects ? DrawByRejection(wide_n, q, start) : DrawByInversion(wide_n, q, start);
  return is_small ? drawn : wide_n - drawn;
}

template <typename U>
U AsOutput(double x) {
  if constexpr (std::is_integral_v<U>) {
    constexpr double kLimit = static_cast<double>(std::numeric_limits<U>::max());
    return x >= -kLimit && x < kLimit ? static_cast<U>(x) : std::numeric_limits<U>::min();
  } else {
    return static_cast<U>(x);
  }
}

// `shape` ends in what counts and probabilities broadcast to; the output is [samples, parameters].
class BinomialKernel final : public OpKernel {
 public:
  explicit BinomialKernel(KernelConstruction& c) : is_stateful_(c.num_inputs() == 5) {}

  Status Compute(KernelContext& c) override {
    const int first = c.num_inputs() - 2;
    const Tensor counts = c.input(first), probabilities = c.input(first + 1);
    WEFT_ASSIGN_OR_RETURN(const Shape each, BroadcastShapes(counts.shape(), probabilities.shape()));
    WEFT_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(c.input(is_stateful_ ? 2 : 0)));
    const auto all = shape.dims(), end = each.dims();
    if (all.size() < end.size() || !std::equal(end.begin(), end.end(), all.end() - end.size())) {
      return InvalidArgument("Shape passed in must end with broadcasted shape: ", shape.ToString(),
                             " does not end with ", each.ToString());
    }
    if (is_stateful_) WEFT_RETURN_IF_ERROR(CheckAlgorithm(c.input(1)));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    const int64_t batch = each.num_elements();
    const int64_t samples = batch == 0 ? 0 : shape.num_elements() / batch;
    StatusOr<Philox> start = Philox();
    if (is_stateful_) {
      start = ReserveOfState(
          c, static_cast<uint64_t>(batch) * 2 * 100 * static_cast<uint64_t>(samples + 3) / 4);
    } else {
      start = GeneratorOfSeed(c.input(1));
    }
    if (!start.ok()) return start.status();
    if (out->num_elements() == 0) return absl::OkStatus();
    VisitDType(counts.dtype(), Parameters(), [&]<typename T>() {
      VisitDType(out->dtype(), Outputs(),
                 [&]<typename U>() { Fill<T, U>(c, each, counts, probabilities, *start, out); });
    });
    return absl::OkStatus();
  }

 private:
  template <typename T, typename U>
  static void Fill(const KernelContext& c, const Shape& each, const Tensor& counts,
                   const Tensor& probabilities, const Philox& start, Tensor* out) {
    const auto loops = MakeBroadcastLoops<2>(each, {&counts.shape(), &probabilities.shape()});
    const int64_t batch = each.num_elements(), samples = out->num_elements() / batch;
    U* to = out->data<U>();
    c.ParallelFor(loops.num_rows(), 1, [&](int64_t begin, int64_t end) {
      loops.ForEachRow(begin, end, [&](const std::array<int64_t, 2>& at, int64_t row) {
        for (int64_t i = 0; i < loops.inner.size; ++i) {
          const T n = counts.data<T>()[at[0] + i * loops.inner.stride[0]];
          const T p = probabilities.data<T>()[at[1] + i * loops.inner.stride[1]];
          for (int64_t sample = 0; sample < samples; ++sample) {
            const int64_t number = (row + i) * samples + sample;
            to[sample * batch + row + i] = AsOutput<U>(Draw<T>(n, p, number, start));
          }
        }
      });
    });
  }

  const bool is_stateful_;
};

Status BinomialShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.ShapeFromInput(c.num_inputs() == 5 ? 2 : 0));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

OpSpec& Finish(OpSpec& spec) {
  return spec.Input("counts: T")
      .Input("probs: T")
      .Output("output: dtype")
      .Attr("S: {int32, int64}")
      .Attr("T: {half, float, double, int32, int64} = DT_DOUBLE")
      .Attr("dtype: {half, float, double, int32, int64} = DT_INT64")
      .Shape(BinomialShape)
      .NoGradient()
      .Kernel({.types = {{"T", DTypesOf(Parameters())}, {"dtype", DTypesOf(Outputs())}},
               .factory = MakeKernel<BinomialKernel>()});
}

}  // namespace

void Register(Catalogue& catalogue) {
  OpSpec stateless("StatelessRandomBinomial"), stateful("StatefulRandomBinomial");
  stateless
      .Doc(
          "Numbers of binomial distributions; `shape` ends in the shape that counts and probs "
          "broadcast to.\nThe same numbers for equal seeds, of which there are two.")
      .Input("shape: S")
      .HostInput("shape")
      .Input("seed: Tseed")
      .HostInput("seed")
      .Attr("Tseed: {int32, int64} = DT_INT64");
  stateful
      .Doc(
          "Numbers of binomial distributions; `shape` ends in the shape that counts and probs "
          "broadcast to.\nThe generator's state is the variable `resource`, which moves on.")
      .Input("resource: resource")
      .Input("algorithm: int64")
      .HostInput("algorithm")
      .Input("shape: S")
      .HostInput("shape")
      .Stateful()
      .Traits({.changes_variable = true});
  catalogue.Add(Finish(stateless));
  catalogue.Add(Finish(stateful));
}

}  // namespace weft::ops::random::binomial
