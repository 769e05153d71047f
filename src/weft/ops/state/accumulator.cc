// SPDX-License-Identifier: Apache-2.0
// Conditional accumulators: what synchronous training gathers gradients in.
#include <memory>
#include <string>
#include <utility>

#include "weft/kernel/op_spec.h"
#include "weft/ops/state/accumulator_kernel.h"
#include "weft/ops/state/resource_handle_kernel.h"

namespace weft::ops::state::accumulator {
namespace {

class CreateKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Make(KernelConstruction& c, bool is_sparse) {
    AccumulatorOptions options;
    options.name = c.AttrOr<std::string>("shared_name", "");
    if (options.name.empty()) options.name = c.name();
    WEFT_ASSIGN_OR_RETURN(options.dtype, c.Attr<DType>("dtype"));
    WEFT_ASSIGN_OR_RETURN(options.shape, c.Attr<PartialShape>("shape"));
    options.is_mean = c.AttrOr<std::string>("reduction_type", "MEAN") == "MEAN";
    options.is_sparse = is_sparse;
    return std::make_unique<CreateKernel>(c, std::move(options));
  }
  CreateKernel(KernelConstruction& c, AccumulatorOptions options)
      : options_(std::move(options)), output_(c, "tensorflow::ConditionalAccumulatorBase") {}

  Status Compute(KernelContext& c) override {
    return output_.Give(
        c, [&]() -> StatusOr<Ref<Accumulator>> { return MakeAccumulator(options_); },
        [](const Accumulator&) { return absl::OkStatus(); });
  }

 private:
  const AccumulatorOptions options_;
  HandleOutput<Accumulator> output_;
};

StatusOr<int64_t> ScalarInput(const KernelContext& c, int i, const char* name) {
  const Tensor& tensor = c.input(i);
  if (!tensor.shape().IsScalar()) {
    return InvalidArgument("Argument ", name, " must be scalar, but had bad shape ",
                           tensor.shape().ToString());
  }
  return tensor.dtype() == DType::kInt32 ? tensor.scalar<int32_t>() : tensor.scalar<int64_t>();
}

// The accumulator of input 0, which must be of this kind and type.
StatusOr<Ref<Accumulator>> AccumulatorOf(const KernelContext& c, bool is_sparse, DType dtype) {
  WEFT_ASSIGN_OR_RETURN(Ref<Accumulator> found, ResourceOfInput<Accumulator>(c));
  const AccumulatorOptions& options = found->options();
  if (options.is_sparse != is_sparse) {
    return InvalidArgument("Accumulator ", options.name, " is for ",
                           options.is_sparse ? "sparse" : "dense", " gradients, expected ",
                           is_sparse ? "sparse" : "dense");
  }
  if (options.dtype != dtype) {
    return InvalidArgument("Expected gradients to be of type ", DTypeName(options.dtype),
                           "; got type ", DTypeName(dtype));
  }
  return found;
}

template <bool is_sparse>
class ApplyKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(DType dtype, c.Attr<DType>("dtype"));
    return std::make_unique<ApplyKernel>(dtype, c.AttrOr("has_known_shape", false));
  }
  ApplyKernel(DType dtype, bool has_known_shape)
      : dtype_(dtype), has_known_shape_(has_known_shape) {}

  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<Accumulator> accumulator, AccumulatorOf(c, is_sparse, dtype_));
    WEFT_ASSIGN_OR_RETURN(int64_t local_step, ScalarInput(c, 1, "local_step"));
    AccumulatedGradient gradient;
    if constexpr (is_sparse) {
      gradient.indices = c.input(2);
      gradient.values = c.input(3);
      if (has_known_shape_) {
        gradient.dense_shape = c.input(4);
        if (!gradient.dense_shape.shape().IsVector()) {
          return InvalidArgument("Input shape should be vector but received shape: ",
                                 gradient.dense_shape.shape().ToString());
        }
      }
    } else {
      gradient.values = c.input(2);
    }
    return accumulator->Apply(local_step, gradient);
  }

 private:
  const DType dtype_;
  const bool has_known_shape_;
};

template <bool is_sparse>
class TakeKernel final : public AsyncOpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(DType dtype, c.Attr<DType>("dtype"));
    return std::make_unique<TakeKernel>(dtype);
  }
  explicit TakeKernel(DType dtype) : dtype_(dtype) {}

  void ComputeAsync(KernelContext& c, Done done) override {
    StatusOr<Ref<Accumulator>> accumulator = AccumulatorOf(c, is_sparse, dtype_);
    if (!accumulator.ok()) return done(accumulator.status());
    StatusOr<int64_t> num_required = ScalarInput(c, 1, "num_required");
    if (!num_required.ok()) return done(num_required.status());
    if (*num_required <= 0) {
      return done(
          InvalidArgument("Argument num_required must be positive, but was ", *num_required));
    }
    (*accumulator)
        ->Take(Caller::Of(c), *num_required,
               [&c, done = std::move(done)](StatusOr<AccumulatedGradient> gradient) mutable {
                 if (!gradient.ok()) return done(gradient.status());
                 if constexpr (is_sparse) {
                   c.SetOutput(0, std::move(gradient->indices));
                   c.SetOutput(1, std::move(gradient->values));
                   c.SetOutput(2, std::move(gradient->dense_shape));
                 } else {
                   c.SetOutput(0, std::move(gradient->values));
                 }
                 done(absl::OkStatus());
               });
  }

 private:
  const DType dtype_;
};

class NumAccumulatedKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<Accumulator> accumulator, ResourceOfInput<Accumulator>(c));
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, Shape()));
    *output->data<int32_t>() = static_cast<int32_t>(accumulator->num_accumulated());
    return absl::OkStatus();
  }
};

class SetGlobalStepKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<Accumulator> accumulator, ResourceOfInput<Accumulator>(c));
    WEFT_ASSIGN_OR_RETURN(int64_t step, ScalarInput(c, 1, "new_global_step"));
    accumulator->SetGlobalStep(step);
    return absl::OkStatus();
  }
};

Status NamesShape(ShapeContext& c) {
  c.set_output(0, Shape{2});
  return absl::OkStatus();
}

Status SparseShapes(ShapeContext& c) {
  c.set_output(0, PartialShape::UnknownOfRank(1));
  c.set_output(2, PartialShape::UnknownOfRank(1));
  return absl::OkStatus();
}

void RegisterAccumulator(Catalogue& catalogue, const std::string& name, bool is_sparse,
                         bool is_resource) {
  catalogue.Add(OpSpec(name)
                    .Doc(absl::StrCat(
                        "Gathers ", is_sparse ? "sparse " : "",
                        "gradients and gives their mean or sum once there are enough. Gradients "
                        "of steps before its own are dropped; its step starts at 0.",
                        is_sparse ? " The mean is taken for each row." : ""))
                    .Output(is_resource ? "handle: resource" : "handle: Ref(string)")
                    .Attr("dtype: numbertype")
                    .Attr("shape: shape")
                    .Attr("container: string = ''")
                    .Attr("shared_name: string = ''")
                    .Attr("reduction_type: {'MEAN', 'SUM'} = 'MEAN'")
                    .Stateful()
                    .Shape(is_resource ? ShapeFunction(shapes::Scalar) : ShapeFunction(NamesShape))
                    .NoGradient()
                    .Kernel({.types = {{"dtype", DTypesOf(RealFloats{})}},
                             .factory =
                                 [is_sparse](KernelConstruction& c) {
                                   return CreateKernel::Make(c, is_sparse);
                                 },
                             .cost = KernelCost::kInline}));
}

// The ops on an accumulator whose names start with `prefix`.
void RegisterUses(Catalogue& catalogue, const std::string& prefix, bool is_resource) {
  const std::string handle = is_resource ? "handle: resource" : "handle: Ref(string)";
  const auto add = [&](OpSpec& spec) {
    if (is_resource) spec.Stateful();
    catalogue.Add(std::move(spec.NoGradient()));
  };
  add(OpSpec(prefix + "AccumulatorApplyGradient")
          .Doc("Gives a gradient to the accumulator; one of an earlier step than its own is "
               "dropped.\n"
               "InvalidArgument if the shape does not fit.")
          .Input(handle)
          .Input("local_step: int64")
          .Input("gradient: dtype")
          .Attr("dtype: numbertype")
          .Shape(shapes::NoOutputs)
          .Kernel(MakeKernel<ApplyKernel<false>>()));
  add(OpSpec(prefix + "AccumulatorTakeGradient")
          .Doc("Waits for num_required gradients and gives their mean or sum; the accumulator's "
               "step "
               "goes up by one.")
          .Input(handle)
          .Input("num_required: int32")
          .Output("average: dtype")
          .Attr("dtype: numbertype")
          .Shape(shapes::Unknown)
          .Kernel(MakeKernel<TakeKernel<false>>(), KernelCost::kInline));
  add(OpSpec(prefix + "AccumulatorNumAccumulated")
          .Doc("How many gradients are in.")
          .Input(handle)
          .Output("num_accumulated: int32")
          .Shape(shapes::Scalar)
          .Kernel(MakeKernel<NumAccumulatedKernel>(), KernelCost::kInline));
  add(OpSpec(prefix + "AccumulatorSetGlobalStep")
          .Doc("Sets the accumulator's step.")
          .Input(handle)
          .Input("new_global_step: int64")
          .Shape(shapes::NoOutputs)
          .Kernel(MakeKernel<SetGlobalStepKernel>(), KernelCost::kInline));
}

void RegisterSparseUses(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("SparseAccumulatorApplyGradient")
          .Doc("Gives rows of a gradient to the accumulator; one of an earlier step than its "
               "own is dropped.\nInvalidArgument if rows or shape do not fit.")
          .Input("handle: Ref(string)")
          .Input("local_step: int64")
          .Input("gradient_indices: int64")
          .Input("gradient_values: dtype")
          .Input("gradient_shape: int64")
          .Attr("dtype: numbertype")
          .Attr("has_known_shape: bool")
          .Shape(shapes::NoOutputs)
          .NoGradient()
          .Kernel(MakeKernel<ApplyKernel<true>>()));
  catalogue.Add(
      OpSpec("SparseAccumulatorTakeGradient")
          .Doc("Waits for num_required gradients and gives the mean or sum of each row; the "
               "accumulator's step goes up by one.")
          .Input("handle: Ref(string)")
          .Input("num_required: int32")
          .Output("indices: int64")
          .Output("values: dtype")
          .Output("shape: int64")
          .Attr("dtype: numbertype")
          .Shape(SparseShapes)
          .NoGradient()
          .Kernel(MakeKernel<TakeKernel<true>>(), KernelCost::kInline));
}

}  // namespace

void Register(Catalogue& catalogue) {
  RegisterAccumulator(catalogue, "ConditionalAccumulator", false, false);
  RegisterAccumulator(catalogue, "ResourceConditionalAccumulator", false, true);
  RegisterAccumulator(catalogue, "SparseConditionalAccumulator", true, false);
  RegisterUses(catalogue, "", false);
  RegisterUses(catalogue, "Resource", true);
  RegisterSparseUses(catalogue);
}

}  // namespace weft::ops::state::accumulator
