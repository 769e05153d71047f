// SPDX-License-Identifier: Apache-2.0
// Resource variables: named by a handle that travels on ordinary edges.
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"

#include "weft/kernel/named_resource.h"
#include "weft/kernel/op_spec.h"
#include "weft/ops/state/variable_kernel.h"

namespace weft::ops::state::resource_variable {
namespace {

constexpr char kTypeName[] = "tensorflow::Var";

// Makes the variable, still without a value, so that its handle leads straight to it.
class VarHandleKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(DType dtype, c.Attr<DType>("dtype"));
    WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.Attr<PartialShape>("shape"));
    return std::make_unique<VarHandleKernel>(c, dtype, std::move(shape));
  }
  VarHandleKernel(KernelConstruction& c, DType dtype, PartialShape shape)
      : resource_(c), dtype_(dtype), shape_(std::move(shape)) {}

  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<Variable> variable,
                          resource_.Get(c, [&]() -> StatusOr<Ref<Variable>> {
                            return MakeRef<Variable>(resource_.name(), dtype_, shape_);
                          }));
    absl::MutexLock lock(&mutex_);
    if (variable.get() != last_) {
      last_ = variable.get();
      ResourceHandle handle{.device = c.device().name(),
                            .container = resource_.container(c),
                            .name = resource_.name(),
                            .type_name = kTypeName,
                            .dtypes_and_shapes = {{dtype_, shape_}},
                            .object = variable};
      handle_ = Tensor::Scalar(std::move(handle));
    }
    c.SetOutput(0, handle_);
    return absl::OkStatus();
  }

 private:
  NamedResource<Variable> resource_;
  const DType dtype_;
  const PartialShape shape_;
  absl::Mutex mutex_;
  Tensor handle_ ABSL_GUARDED_BY(mutex_);
  const Variable* last_ ABSL_GUARDED_BY(mutex_) =
      nullptr;  // what handle_ leads to, and keeps alive
};

// Clients tell "not yet initialised" from other failures by the word "uninitialized".
Status Missing(const KernelContext& c, const std::string& name) {
  return FailedPrecondition(
      "Could not find variable ", name,
      ". This could mean that the variable has been deleted. In TF1, it can also mean the variable "
      "is uninitialized. Debug info: device=",
      c.device().name());
}

StatusOr<Tensor> ReadHandle(const KernelContext& c, int i, DType dtype) {
  StatusOr<Ref<Variable>> variable = c.input_resource_variable(i);
  if (absl::IsNotFound(variable.status())) {
    WEFT_ASSIGN_OR_RETURN(const ResourceHandle* handle, c.input_handle(i));
    return Missing(c, handle->name);
  }
  WEFT_RETURN_IF_ERROR(variable.status());
  StatusOr<Tensor> value = (*variable)->Read();
  if (!value.ok()) return Missing(c, (*variable)->name());
  if (value->dtype() != dtype) {
    return InvalidArgument("Trying to read variable ", (*variable)->name(),
                           " with wrong dtype. Expected ", DTypeName(dtype), " got ",
                           DTypeName(value->dtype()));
  }
  return value;
}

class ReadKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    for (int i = 0; i < c.num_outputs(); ++i) {
      WEFT_ASSIGN_OR_RETURN(Tensor value, ReadHandle(c, i, c.output_dtype(i)));
      c.SetOutput(i, std::move(value));
    }
    return absl::OkStatus();
  }
};

class IsInitializedKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    StatusOr<Ref<Variable>> variable = c.input_resource_variable(0);
    if (!variable.ok() && !absl::IsNotFound(variable.status())) return variable.status();
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, Shape()));
    *output->data<bool>() = variable.ok() && (*variable)->IsInitialized();
    return absl::OkStatus();
  }
};

class ShapeKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<Variable> variable, InitializedVariable(c, 0));
    WEFT_ASSIGN_OR_RETURN(Tensor value, variable->Read());
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, Shape{value.rank()}));
    for (int i = 0; i < value.rank(); ++i) {
      if (output->dtype() == DType::kInt64) {
        output->data<int64_t>()[i] = value.dim(i);
      } else if (value.dim(i) > std::numeric_limits<int32_t>::max()) {
        return InvalidArgument("Shape output type is 32-bit, but dim ", i, " is ", value.dim(i));
      } else {
        output->data<int32_t>()[i] = static_cast<int32_t>(value.dim(i));
      }
    }
    return absl::OkStatus();
  }
};

// Creates the variable where the handle came from elsewhere and names one that is gone.
class AssignKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(DType dtype, c.Attr<DType>("dtype"));
    return std::make_unique<AssignKernel>(dtype, c.AttrOr("validate_shape", false));
  }
  AssignKernel(DType dtype, bool validate_shape) : dtype_(dtype), validate_shape_(validate_shape) {}

  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const ResourceHandle* handle, c.input_handle(0));
    StatusOr<Ref<Variable>> variable = c.input_resource_variable(0);
    if (absl::IsNotFound(variable.status())) {
      variable = c.resources().LookupOrCreate<Variable>(
          handle->container, handle->name,
          [&]() -> StatusOr<Ref<Variable>> { return MakeRef<Variable>(handle->name, dtype_); });
    }
    WEFT_RETURN_IF_ERROR(variable.status());
    if ((*variable)->dtype() != dtype_) {
      return InvalidArgument("Trying to assign variable with wrong dtype. Expected ",
                             DTypeName((*variable)->dtype()), " got ", DTypeName(dtype_));
    }
    const Tensor& value = c.input(1);
    if (validate_shape_) WEFT_RETURN_IF_ERROR(CheckShape(**variable, value.shape()));
    AssignValue(c, **variable, 1);
    return absl::OkStatus();
  }

 private:
  static Status CheckShape(const Variable& variable, const Shape& shape) {
    absl::MutexLock lock(&variable.mutex());
    const Tensor& value = variable.ValueLocked();
    if (!value.IsInitialized() || value.shape() == shape) return absl::OkStatus();
    return InvalidArgument("Trying to assign to variable with tensor with wrong shape. Expected ",
                           value.shape().ToString(), " got ", shape.ToString());
  }

  const DType dtype_;
  const bool validate_shape_;
};

template <Combine combine>
class UpdateKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(DType dtype, c.Attr<DType>("dtype"));
    return std::make_unique<UpdateKernel>(dtype);
  }
  explicit UpdateKernel(DType dtype) : dtype_(dtype) {}

  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<Variable> variable, TargetVariable(c, 0, dtype_));
    const Tensor& delta = c.input(1);
    return variable->Update([&](Tensor& value) -> Status {
      if (value.shape() != delta.shape()) {
        return InvalidArgument("Cannot update variable with shape ", value.shape().ToString(),
                               " using a Tensor with shape ", delta.shape().ToString(),
                               ", shapes must be equal.");
      }
      CombineInPlace(c, combine, value, delta);
      return absl::OkStatus();
    });
  }

 private:
  const DType dtype_;
};

class CountUpToKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(DType dtype, c.Attr<DType>("T"));
    WEFT_ASSIGN_OR_RETURN(int64_t limit, c.Attr<int64_t>("limit"));
    return std::make_unique<CountUpToKernel>(dtype, limit);
  }
  CountUpToKernel(DType dtype, int64_t limit) : dtype_(dtype), limit_(limit) {}
  Status Compute(KernelContext& c) override { return CountUp(c, dtype_, limit_); }

 private:
  const DType dtype_;
  const int64_t limit_;
};

// A variable without a value counts as missing, as its handle alone does not create it.
class DestroyKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    return std::make_unique<DestroyKernel>(c.AttrOr("ignore_lookup_error", true));
  }
  explicit DestroyKernel(bool ignore_missing) : ignore_missing_(ignore_missing) {}

  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const ResourceHandle* handle, c.input_handle(0));
    bool without_value = false;
    if (StatusOr<Ref<Variable>> variable = c.input_resource_variable(0); variable.ok()) {
      without_value = !(*variable)->IsInitialized();
      (*variable)->Clear();
    }
    Status removed = c.resources().RemoveByName(handle->container, handle->name);
    if (without_value) {
      removed = NotFound("Resource ", handle->container, "/", handle->name, " does not exist.");
    }
    return ignore_missing_ && absl::IsNotFound(removed) ? absl::OkStatus() : removed;
  }

 private:
  const bool ignore_missing_;
};

// Reads share bytes until a write needs them, so there is nothing to switch off.
class CheckHandleKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override { return InitializedVariable(c, 0).status(); }
};

Status VectorOfRank(ShapeContext& c) {
  const PartialShape variable = c.variable(0);
  c.set_output(0, PartialShape({variable.known_rank() ? variable.rank() : -1}));
  return absl::OkStatus();
}

Status ShapesOfVariables(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, c.variable(i));
  return absl::OkStatus();
}

Status SameAsVariable(ShapeContext& c) { return c.variable(0).MergeWith(c.input(1)).status(); }

template <Combine combine>
void RegisterUpdate(Catalogue& catalogue, const char* name, const char* documentation) {
  catalogue.Add(OpSpec(name)
                    .Doc(documentation)
                    .Input("resource: resource")
                    .Input("value: dtype")
                    .Attr("dtype: type")
                    .Stateful()
                    .Traits({.changes_variable = true})
                    .Shape(SameAsVariable)
                    .NoGradient()
                    .Kernel({.types = {{"dtype", DTypesOf(Numbers{})}},
                             .factory = MakeKernel<UpdateKernel<combine>>()}));
}

void RegisterHandles(Catalogue& catalogue) {
  catalogue.Add(OpSpec("VarHandleOp")
                    .AnyDevice()
                    .Doc("A handle to the variable of this container and shared name.")
                    .Output("resource: resource")
                    .Attr("container: string = ''")
                    .Attr("shared_name: string = ''")
                    .Attr("debug_name: string = ''")
                    .Attr("dtype: type")
                    .Attr("shape: shape")
                    .Attr("allowed_devices: list(string) = []")
                    .Stateful()
                    .Traits({.source = ValueSource::kVariable})
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<VarHandleKernel>(), KernelCost::kInline));
  catalogue.Add(OpSpec("VarIsInitializedOp")
                    .AnyDevice()
                    .Doc("Whether the variable was assigned a value.")
                    .Input("resource: resource")
                    .Output("is_initialized: bool")
                    .HostOutput("is_initialized")
                    .Stateful()
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<IsInitializedKernel>(), KernelCost::kInline));
  catalogue.Add(OpSpec("VariableShape")
                    .AnyDevice()
                    .HostOutput("output")
                    .Doc("The shape of the variable's value.")
                    .Input("input: resource")
                    .Output("output: out_type")
                    .Attr("out_type: {int32, int64} = DT_INT32")
                    .Stateful()
                    .Shape(VectorOfRank)
                    .NoGradient()
                    .Kernel(MakeKernel<ShapeKernel>(), KernelCost::kInline));
  catalogue.Add(OpSpec("DestroyResourceOp")
                    .AnyDevice()
                    .Doc("Removes the resource from its device.\nNotFound if there is none, unless "
                         "ignore_lookup_error is true.")
                    .Input("resource: resource")
                    .Attr("ignore_lookup_error: bool = true")
                    .Stateful()
                    .Shape(shapes::NoOutputs)
                    .NoGradient()
                    .Kernel(MakeKernel<DestroyKernel>(), KernelCost::kInline));
  catalogue.Add(OpSpec("DisableCopyOnRead")
                    .AnyDevice()
                    .Doc("Says that reads need not copy the variable; here they never do.")
                    .Input("resource: resource")
                    .Stateful()
                    .Shape(shapes::NoOutputs)
                    .NoGradient()
                    .Kernel(MakeKernel<CheckHandleKernel>(), KernelCost::kInline));
}

}  // namespace

void Register(Catalogue& catalogue) {
  RegisterHandles(catalogue);
  catalogue.Add(OpSpec("ReadVariableOp")
                    .AnyDevice()
                    .Doc("The variable's value as of now; later updates do not show in it.\n"
                         "FailedPrecondition before the first assignment.")
                    .Input("resource: resource")
                    .Output("value: dtype")
                    .Attr("dtype: type")
                    .Stateful()
                    .Shape(ShapesOfVariables)
                    .Gradient([](GradientContext& c) {
                      c.set_input(0, c.gradient());
                      return absl::OkStatus();
                    })
                    .Kernel(MakeKernel<ReadKernel>(), KernelCost::kInline));
  catalogue.Add(OpSpec("_ReadVariablesOp")
                    .AnyDevice()
                    .Doc("The values of several variables, each as of some moment of the call.")
                    .Attr("N: int >= 0")
                    .Input("resources: N * resource")
                    .Output("values: dtypes")
                    .Attr("dtypes: list(type) >= 1")
                    .Stateful()
                    .Shape(ShapesOfVariables)
                    .NoGradient()
                    .Kernel(MakeKernel<ReadKernel>(), KernelCost::kInline));
  catalogue.Add(
      OpSpec("AssignVariableOp")
          .AnyDevice()
          .Doc("Gives the variable a value.\nInvalidArgument if the type differs, or, with "
               "validate_shape, the shape.")
          .Input("resource: resource")
          .Input("value: dtype")
          .Attr("dtype: type")
          .Attr("validate_shape: bool = false")
          .Stateful()
          .Traits({.changes_variable = true})
          .Shape(SameAsVariable)
          .NoGradient()
          .Kernel(MakeKernel<AssignKernel>()));
  RegisterUpdate<Combine::kAdd>(catalogue, "AssignAddVariableOp",
                                "Adds the value to the variable, which is of the same shape.");
  RegisterUpdate<Combine::kSubtract>(catalogue, "AssignSubVariableOp",
                                     "Subtracts the value from the variable, which is of the same "
                                     "shape.");
  catalogue.Add(OpSpec("ResourceCountUpTo")
                    .Doc("Adds 1 to a scalar variable and gives what it was before.\n"
                         "OutOfRange once the limit is reached.")
                    .Input("resource: resource")
                    .Output("output: T")
                    .Attr("limit: int")
                    .Attr("T: {int32, int64}")
                    .Stateful()
                    .Traits({.changes_variable = true})
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<CountUpToKernel>(), KernelCost::kInline));
}

}  // namespace weft::ops::state::resource_variable
