// SPDX-License-Identifier: Apache-2.0
// Random numbers of a generator whose state is a variable: what tf.random.Generator draws.
#include <cstdint>
#include <utility>

#include "weft/kernel/op_spec.h"
#include "weft/ops/index_values.h"
#include "weft/ops/random/fill_kernel.h"
#include "weft/ops/random/generator_state_kernel.h"
#include "weft/ops/random/stateless_kernel.h"

namespace weft::ops::random::generator_state {
namespace {

// What a kernel does with its place in the generator.
struct Words {
  static Status Fill(KernelContext& c, const Philox& start, Tensor& out) {
    return FillWords(c, start, out);
  }
};
template <typename Distribution>
struct RealNumbers {
  static Status Fill(KernelContext& c, const Philox& start, Tensor& out) {
    return FillReals<Distribution>(c, start, out);
  }
};

template <typename Filler>
class FillKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_RETURN_IF_ERROR(CheckAlgorithm(c.input(1)));
    WEFT_ASSIGN_OR_RETURN(const Shape shape, ShapeFromValues(c.input(2), "shape"));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    WEFT_ASSIGN_OR_RETURN(const Philox start,
                          ReserveOfState(c, static_cast<uint64_t>(shape.num_elements())));
    return Filler::Fill(c, start, *out);
  }
};

template <typename T>
class IntegersKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_RETURN_IF_ERROR(CheckAlgorithm(c.input(1)));
    WEFT_ASSIGN_OR_RETURN(const Shape shape, ShapeFromValues(c.input(2), "shape"));
    for (int i = 3; i <= 4; ++i) {
      if (c.input(i).rank() == 0) continue;
      return InvalidArgument(i == 3 ? "minval" : "maxval", " must be 0-D, got shape ",
                             c.input(i).shape().ToString());
    }
    const T low = c.input(3).scalar<T>(), high = c.input(4).scalar<T>();
    if (low >= high) return InvalidArgument("Need minval < maxval, got ", low, " >= ", high);
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    WEFT_ASSIGN_OR_RETURN(const Philox start,
                          ReserveOfState(c, static_cast<uint64_t>(shape.num_elements())));
    using U = std::make_unsigned_t<T>;
    return FillIntegers<T>(c, start, low,
                           static_cast<U>(static_cast<U>(high) - static_cast<U>(low)), *out);
  }
};

// RngSkip moves the state on; RngReadAndSkip also gives it as it was.
class SkipKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_RETURN_IF_ERROR(CheckAlgorithm(c.input(1)));
    if (c.input(2).rank() != 0) {
      return InvalidArgument("delta must be of shape [], not ", c.input(2).shape().ToString());
    }
    const auto delta = static_cast<uint64_t>(IndexAt(c.input(2), 0));
    WEFT_ASSIGN_OR_RETURN(Ref<Variable> variable, c.input_resource_variable(0));
    Tensor* before = nullptr;
    if (c.num_outputs() > 0) {
      WEFT_ASSIGN_OR_RETURN(before, c.AllocateOutput(0, Shape{kStateSize}));
    }
    return variable->Update([&](Tensor& state) -> Status {
      WEFT_RETURN_IF_ERROR(GeneratorOfState(state).status());
      if (before != nullptr)
        std::copy_n(state.data<int64_t>(), kStateSize, before->data<int64_t>());
      AdvanceState(delta, &state);
      return absl::OkStatus();
    });
  }
};

// The old form, whose state begins with the number of the algorithm.
class OldNormalKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Shape shape, ShapeFromValues(c.input(1), "shape"));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    WEFT_ASSIGN_OR_RETURN(Ref<Variable> variable, c.input_resource_variable(0));
    Philox start;
    WEFT_RETURN_IF_ERROR(variable->Update([&](Tensor& state) -> Status {
      if (state.dtype() != DType::kInt64 || state.rank() != 1 || state.dim(0) < 1) {
        return InvalidArgument("RNG state must be a vector of int64, not ",
                               DTypeName(state.dtype()), " ", state.shape().ToString());
      }
      if (state.data<int64_t>()[0] != kPhiloxAlgorithm) {
        return InvalidArgument("Unsupported algorithm id: ", state.data<int64_t>()[0]);
      }
      Tensor rest = state.SliceRows(1, state.dim(0));
      WEFT_ASSIGN_OR_RETURN(start, GeneratorOfState(rest));
      AdvanceState(static_cast<uint64_t>(shape.num_elements()), &rest);
      return absl::OkStatus();
    }));
    return FillReals<Normal>(c, start, *out);
  }
};

Status ShapeFromThird(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.ShapeFromInput(2));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

OpSpec Drawing(const char* name, const char* doc) {
  OpSpec spec(name);
  spec.Doc(absl::StrCat(doc,
                        "\nThe generator's state is the variable `resource`, which moves on. "
                        "algorithm: 1 (Philox)."))
      .Input("resource: resource")
      .Input("algorithm: int64")
      .HostInput("algorithm")
      .Input("shape: shape_dtype")
      .HostInput("shape")
      .Stateful()
      .Traits({.changes_variable = true})
      .Shape(ShapeFromThird)
      .NoGradient();
  return spec;
}

template <typename Distribution>
void AddReals(Catalogue& catalogue, const char* name, const char* doc) {
  catalogue.Add(Drawing(name, doc)
                    .Output("output: dtype")
                    .Attr("dtype: type = DT_FLOAT")
                    .Attr("shape_dtype: type = DT_INT64")
                    .Kernel({.types = {{"dtype", DTypesOf(RealFloats())},
                                       {"shape_dtype", DTypesOf<int32_t, int64_t>()}},
                             .factory = MakeKernel<FillKernel<RealNumbers<Distribution>>>()}));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddReals<Uniform>(catalogue, "StatefulUniform", "Uniform numbers of [0, 1).");
  AddReals<Normal>(catalogue, "StatefulStandardNormalV2", "Normal numbers.");
  AddReals<Truncated>(catalogue, "StatefulTruncatedNormal",
                      "Normal numbers, drawn again beyond 2 deviations.");
  const std::map<std::string, std::vector<DType>> all = {
      {"dtype", DTypesOf<int32_t, int64_t, uint32_t, uint64_t>()},
      {"shape_dtype", DTypesOf<int32_t, int64_t>()}};
  catalogue.Add(Drawing("StatefulUniformFullInt", "Uniform integers of the whole type.")
                    .Output("output: dtype")
                    .Attr("dtype: type = DT_UINT64")
                    .Attr("shape_dtype: type = DT_INT64")
                    .Kernel({.types = all, .factory = MakeKernel<FillKernel<Words>>()}));
  OpSpec integers = Drawing("StatefulUniformInt", "Uniform integers of [minval, maxval).");
  integers.Input("minval: dtype")
      .Input("maxval: dtype")
      .Output("output: dtype")
      .Attr("dtype: type = DT_INT64")
      .Attr("shape_dtype: type = DT_INT64");
  const auto add = [&]<typename T>() {
    integers.Kernel({.types = {{"dtype", DTypesOf<T>()}, {"shape_dtype", all.at("shape_dtype")}},
                     .factory = MakeKernel<IntegersKernel<T>>()});
  };
  add.operator()<int32_t>();
  add.operator()<int64_t>();
  add.operator()<uint32_t>();
  add.operator()<uint64_t>();
  catalogue.Add(std::move(integers));
  catalogue.Add(OpSpec("RngSkip")
                    .Doc("Moves the generator's state on by what `delta` numbers use.")
                    .Input("resource: resource")
                    .Input("algorithm: int64")
                    .HostInput("algorithm")
                    .Input("delta: int64")
                    .HostInput("delta")
                    .Stateful()
                    .Traits({.changes_variable = true})
                    .Shape(shapes::NoOutputs)
                    .NoGradient()
                    .Kernel(MakeKernel<SkipKernel>()));
  catalogue.Add(OpSpec("RngReadAndSkip")
                    .Doc("The generator's state; moves it on by what `delta` numbers use.")
                    .Input("resource: resource")
                    .Input("alg: int32")
                    .HostInput("alg")
                    .Input("delta: uint64")
                    .HostInput("delta")
                    .Output("value: int64")
                    .Stateful()
                    .Traits({.changes_variable = true})
                    .Shape([](ShapeContext& c) {
                      c.set_output(0, PartialShape({kStateSize}));
                      return absl::OkStatus();
                    })
                    .NoGradient()
                    .Kernel(MakeKernel<SkipKernel>()));
  catalogue.Add(OpSpec("StatefulStandardNormal")
                    .Doc("StatefulStandardNormalV2 with a state that says its algorithm first.")
                    .Input("resource: resource")
                    .Input("shape: shape_dtype")
                    .HostInput("shape")
                    .Output("output: dtype")
                    .Attr("dtype: type = DT_FLOAT")
                    .Attr("shape_dtype: type = DT_INT64")
                    .Stateful()
                    .Traits({.changes_variable = true})
                    .Deprecated(29, "Use StatefulStandardNormalV2 instead")
                    .Shape([](ShapeContext& c) -> Status {
                      WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.ShapeFromInput(1));
                      c.set_output(0, std::move(shape));
                      return absl::OkStatus();
                    })
                    .NoGradient()
                    .Kernel({.types = {{"dtype", DTypesOf(RealFloats())},
                                       {"shape_dtype", DTypesOf<int32_t, int64_t>()}},
                             .factory = MakeKernel<OldNormalKernel>()}));
}

}  // namespace weft::ops::random::generator_state
