// SPDX-License-Identifier: Apache-2.0
// Random numbers that two seeds, given as a tensor, say.
#include <utility>

#include "weft/kernel/op_spec.h"
#include "weft/ops/random/fill_kernel.h"
#include "weft/ops/random/stateless_kernel.h"

namespace weft::ops::random::stateless_seeded {
namespace {

template <typename Distribution>
class RealsKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(c.input(0)));
    WEFT_ASSIGN_OR_RETURN(const Philox start, GeneratorOfSeed(c.input(1)));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    return FillReals<Distribution>(c, start, *out);
  }
};

template <typename T>
class IntegersKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(c.input(0)));
    WEFT_ASSIGN_OR_RETURN(const Philox start, GeneratorOfSeed(c.input(1)));
    for (int i = 2; i <= 3; ++i) {
      if (c.input(i).rank() == 0) continue;
      return InvalidArgument(i == 2 ? "minval" : "maxval", " must be 0-D, got shape ",
                             c.input(i).shape().ToString());
    }
    const T low = c.input(2).scalar<T>(), high = c.input(3).scalar<T>();
    if (low >= high) return InvalidArgument("Need minval < maxval, got ", low, " >= ", high);
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    using U = std::make_unsigned_t<T>;
    return FillIntegers<T>(c, start, low, static_cast<U>(high) - static_cast<U>(low), *out);
  }
};

// The generator is a seed or a key, a counter and an algorithm.
class AllIntegersKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(c.input(0)));
    StatusOr<Philox> start = c.num_inputs() == 2
                                 ? GeneratorOfSeed(c.input(1))
                                 : GeneratorOfKey(c.input(1), c.input(2), c.input(3));
    if (!start.ok()) return start.status();
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    return FillWords(c, *start, *out);
  }
};

Status ShapeFromFirst(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.ShapeFromInput(0));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

OpSpec Seeded(const char* name, const char* doc) {
  OpSpec spec(name);
  spec.Doc(absl::StrCat(doc, "\nThe same numbers for equal seeds, of which there are two."))
      .Input("shape: T")
      .HostInput("shape")
      .Input("seed: Tseed")
      .HostInput("seed")
      .Shape(ShapeFromFirst)
      .NoGradient();
  return spec;
}

template <typename Distribution>
void AddReals(Catalogue& catalogue, const char* name, const char* doc) {
  catalogue.Add(Seeded(name, doc)
                    .Output("output: dtype")
                    .Attr("dtype: {half, bfloat16, float, double} = DT_FLOAT")
                    .Attr("T: {int32, int64} = DT_INT32")
                    .Attr("Tseed: {int32, int64} = DT_INT64")
                    .Kernel(MakeKernel<RealsKernel<Distribution>>()));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddReals<Uniform>(catalogue, "StatelessRandomUniform", "Uniform numbers of [0, 1).");
  AddReals<Normal>(catalogue, "StatelessRandomNormal", "Normal numbers, mean 0 and deviation 1.");
  AddReals<Truncated>(catalogue, "StatelessTruncatedNormal",
                      "Normal numbers, mean 0 and deviation 1, drawn again beyond 2 deviations.");
  OpSpec integers = Seeded("StatelessRandomUniformInt", "Uniform integers of [minval, maxval).");
  integers.Input("minval: dtype")
      .HostInput("minval")
      .Input("maxval: dtype")
      .HostInput("maxval")
      .Output("output: dtype")
      .Attr("dtype: {int32, int64}")
      .Attr("T: {int32, int64}")
      .Attr("Tseed: {int32, int64} = DT_INT64")
      .Kernel({.types = {{"dtype", DTypesOf<int32_t>()}},
               .factory = MakeKernel<IntegersKernel<int32_t>>()})
      .Kernel({.types = {{"dtype", DTypesOf<int64_t>()}},
               .factory = MakeKernel<IntegersKernel<int64_t>>()});
  catalogue.Add(std::move(integers));
  catalogue.Add(Seeded("StatelessRandomUniformFullInt", "Uniform integers of the whole type.")
                    .Output("output: dtype")
                    .Attr("dtype: {int32, int64, uint32, uint64} = DT_UINT64")
                    .Attr("T: {int32, int64} = DT_INT32")
                    .Attr("Tseed: {int32, int64, uint32, uint64} = DT_INT64")
                    .Kernel(MakeKernel<AllIntegersKernel>()));
  catalogue.Add(OpSpec("StatelessRandomUniformFullIntV2")
                    .Doc("Uniform integers of the whole type.\n"
                         "The same for equal keys and counters. alg: 1 (Philox) or 3 (any).")
                    .Input("shape: Tshape")
                    .HostInput("shape")
                    .Input("key: uint64")
                    .Input("counter: uint64")
                    .Input("alg: int32")
                    .HostInput("alg")
                    .Output("output: dtype")
                    .Attr("dtype: {int32, int64, uint32, uint64} = DT_UINT64")
                    .Attr("Tshape: {int32, int64} = DT_INT32")
                    .Shape(ShapeFromFirst)
                    .NoGradient()
                    .Kernel(MakeKernel<AllIntegersKernel>()));
}

}  // namespace weft::ops::random::stateless_seeded
