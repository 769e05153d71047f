// SPDX-License-Identifier: Apache-2.0
// Random numbers of gamma and Poisson distributions, one parameter a number.
#include <limits>
#include <utility>

#include "weft/kernel/op_spec.h"
#include "weft/ops/random/rejection_kernel.h"
#include "weft/ops/random/stateless_kernel.h"

namespace weft::ops::random::gamma_poisson {
namespace {

using Reals = TypeList<float, double, Half>;
using Rates = TypeList<float, double, Half, int32_t, int64_t>;

template <typename T>
double AsDouble(T value) {
  if constexpr (std::is_same_v<T, Half>) return static_cast<float>(value);
  return static_cast<double>(value);
}

void FillGamma(const KernelContext& c, const Tensor& alphas, const Philox& start, Tensor* out) {
  VisitDType(out->dtype(), Reals(), [&]<typename T>() {
    FillSamples<T>(c, alphas.num_elements(), start, out, [&](int64_t i, const Philox& generator) {
      return DrawGamma(AsDouble(alphas.data<T>()[i]), generator);
    });
  });
}

// The largest number of the output's type.
template <typename T>
double Most() {
  if constexpr (std::is_same_v<T, Half>) return 65504;
  return static_cast<double>(std::numeric_limits<T>::max());
}

void FillPoisson(const KernelContext& c, const Tensor& rates, const Philox& start, Tensor* out) {
  VisitDType(rates.dtype(), Rates(), [&]<typename R>() {
    VisitDType(out->dtype(), Rates(), [&]<typename T>() {
      FillSamples<T>(c, rates.num_elements(), start, out, [&](int64_t i, const Philox& generator) {
        const double drawn = DrawPoisson(AsDouble(rates.data<R>()[i]), Most<T>(), generator);
        // The largest integers have no double of their own.
        if constexpr (std::is_integral_v<T>) {
          if (drawn >= Most<T>()) return std::numeric_limits<T>::max();
        }
        return static_cast<T>(drawn);
      });
    });
  });
}

using Fill = void (*)(const KernelContext&, const Tensor&, const Philox&, Tensor*);

// `shape` says how many numbers each parameter gets: the output has the parameters' shape behind
// it.
template <Fill fill>
class StatefulKernel final : public OpKernel {
 public:
  explicit StatefulKernel(KernelConstruction& k) : generator_(k) {}
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Shape each, ShapeOf(c.input(0)));
    const Tensor parameters = c.input(1);
    Dims dims(each.dims().begin(), each.dims().end());
    dims.insert(dims.end(), parameters.shape().dims().begin(), parameters.shape().dims().end());
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    if (out->num_elements() == 0) return absl::OkStatus();
    const auto count = static_cast<uint64_t>(out->num_elements());
    fill(c, parameters, generator_.Reserve(count * kReservedPerOutput), out);
    return absl::OkStatus();
  }

 private:
  GuardedPhilox generator_;
};

// `shape` is that of the output, which ends in the parameters' shape. The generator is a seed, or a
// key, a counter and an algorithm; the parameters come last.
template <Fill fill>
class StatelessKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(c.input(0)));
    const Tensor parameters = c.input(c.num_inputs() - 1);
    const auto all = shape.dims(), end = parameters.shape().dims();
    if (all.size() < end.size() || !std::equal(end.begin(), end.end(), all.end() - end.size())) {
      return InvalidArgument("Shape passed in must end with broadcasted shape: ", shape.ToString(),
                             " does not end with ", parameters.shape().ToString());
    }
    StatusOr<Philox> start = c.num_inputs() == 3
                                 ? GeneratorOfSeed(c.input(1))
                                 : GeneratorOfKey(c.input(1), c.input(2), c.input(3));
    if (!start.ok()) return start.status();
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    if (out->num_elements() > 0) fill(c, parameters, *start, out);
    return absl::OkStatus();
  }
};

Status JoinedShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.ShapeFromInput(0));
  if (!shape.known_rank() || !c.input(1).known_rank()) return shapes::Unknown(c);
  for (const int64_t size : c.input(1).dims()) shape.AddDim(size);
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

Status ShapeFromFirst(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.ShapeFromInput(0));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// Of alpha: each sample's own derivative (Figurnov et al., 2018), summed over the samples of each
// parameter. `more` is how many dimensions the output has in front of those of alpha.
void SetAlphaGradient(GradientContext& c, int input, Endpoint more) {
  const Endpoint slopes = c.Op("RandomGammaGrad", {c.input(input), c.output(0)});
  const Endpoint axes =
      c.Op("Range", {c.builder().Scalar<int32_t>(0), more, c.builder().Scalar<int32_t>(1)});
  c.set_input(input, c.Op("Sum", {c.Op("Mul", {c.gradient(), slopes}), axes}));
}

Status GammaGradient(GradientContext& c) {
  SetAlphaGradient(c, 1, c.Op("Size", {c.input(0)}));
  return absl::OkStatus();
}

// Here `shape` has the dimensions of alpha as well.
Status StatelessGammaGradient(GradientContext& c) {
  const int input = c.node().num_inputs() - 1;
  SetAlphaGradient(c, input,
                   c.Op("Sub", {c.Op("Size", {c.input(0)}), c.Op("Rank", {c.input(input)})}));
  return absl::OkStatus();
}

void RegisterStateless(Catalogue& catalogue) {
  OpSpec seeded("StatelessRandomGammaV2"), keyed("StatelessRandomGammaV3");
  seeded.Input("shape: T").Input("seed: Tseed");
  keyed.Input("shape: shape_dtype")
      .Input("key: uint64")
      .Input("counter: uint64")
      .Input("alg: int32");
  for (OpSpec* spec : {&seeded, &keyed}) {
    spec->Doc(
            "Numbers of gamma distributions with scale 1; `shape` ends in the shape of alpha.\n"
            "The same for the same generator.")
        .HostInput("shape")
        .Input("alpha: dtype")
        .Output("output: dtype")
        .Attr("dtype: {half, float, double}")
        .Shape(ShapeFromFirst)
        .Gradient(StatelessGammaGradient)
        .Kernel({.types = {{"dtype", DTypesOf(Reals())}},
                 .factory = MakeKernel<StatelessKernel<FillGamma>>()});
  }
  seeded.Attr("T: {int32, int64}").Attr("Tseed: {int32, int64} = DT_INT64");
  keyed.Attr("shape_dtype: {int32, int64} = DT_INT32");
  catalogue.Add(std::move(seeded));
  catalogue.Add(std::move(keyed));
  catalogue.Add(OpSpec("StatelessRandomPoisson")
                    .Doc("Numbers of Poisson distributions; `shape` ends in the shape of lam.\n"
                         "The same for the same seeds.")
                    .Input("shape: T")
                    .HostInput("shape")
                    .Input("seed: Tseed")
                    .HostInput("seed")
                    .Input("lam: Rtype")
                    .Output("output: dtype")
                    .Attr("Rtype: {half, float, double, int32, int64}")
                    .Attr("dtype: {half, float, double, int32, int64}")
                    .Attr("T: {int32, int64}")
                    .Attr("Tseed: {int32, int64} = DT_INT64")
                    .Shape(ShapeFromFirst)
                    .NoGradient()
                    .Kernel(MakeKernel<StatelessKernel<FillPoisson>>()));
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("RandomGamma")
                    .Doc("Numbers of gamma distributions with scale 1, `shape` of them for each "
                         "alpha.\nThe output has the shape of alpha behind `shape`.")
                    .Input("shape: S")
                    .HostInput("shape")
                    .Input("alpha: T")
                    .Output("output: T")
                    .Attr("seed: int = 0")
                    .Attr("seed2: int = 0")
                    .Attr("S: {int32, int64}")
                    .Attr("T: {half, float, double}")
                    .Stateful()
                    .Shape(JoinedShape)
                    .Gradient(GammaGradient)
                    .Kernel({.types = {{"T", DTypesOf(Reals())}},
                             .factory = MakeKernel<StatefulKernel<FillGamma>>()}));
  catalogue.Add(OpSpec("RandomPoissonV2")
                    .Doc("Numbers of Poisson distributions, `shape` of them for each rate.\n"
                         "The output has the shape of rate behind `shape`.")
                    .Input("shape: S")
                    .HostInput("shape")
                    .Input("rate: R")
                    .Output("output: dtype")
                    .Attr("seed: int = 0")
                    .Attr("seed2: int = 0")
                    .Attr("S: {int32, int64}")
                    .Attr("R: {half, float, double, int32, int64} = DT_DOUBLE")
                    .Attr("dtype: {half, float, double, int32, int64} = DT_INT64")
                    .Stateful()
                    .Shape(JoinedShape)
                    .NoGradient()
                    .Kernel(MakeKernel<StatefulKernel<FillPoisson>>()));
  catalogue.Add(OpSpec("RandomPoisson")
                    .Doc("RandomPoissonV2, whose output has the type of the rates.")
                    .Input("shape: S")
                    .HostInput("shape")
                    .Input("rate: dtype")
                    .Output("output: dtype")
                    .Attr("seed: int = 0")
                    .Attr("seed2: int = 0")
                    .Attr("S: {int32, int64}")
                    .Attr("dtype: {half, float, double}")
                    .Stateful()
                    .Deprecated(25, "Replaced by RandomPoissonV2")
                    .Shape(JoinedShape)
                    .NoGradient()
                    .Kernel(MakeKernel<StatefulKernel<FillPoisson>>()));
  RegisterStateless(catalogue);
}

}  // namespace weft::ops::random::gamma_poisson
