// SPDX-License-Identifier: Apache-2.0
// Reference variables: their output is the variable itself, which other ops read or write in place.
#include "weft/kernel/variable.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/synchronization/mutex.h"

#include "weft/kernel/named_resource.h"
#include "weft/kernel/op_spec.h"

namespace weft::ops::state::variable {
namespace {

class VariableKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(DType dtype, c.Attr<DType>("dtype"));
    WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.Attr<PartialShape>("shape"));
    return std::make_unique<VariableKernel>(c, dtype, std::move(shape));
  }
  VariableKernel(KernelConstruction& c, DType dtype, PartialShape shape)
      : resource_(c), dtype_(dtype), shape_(std::move(shape)) {}

  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<Variable> variable,
                          resource_.Get(c, [&]() -> StatusOr<Ref<Variable>> {
                            return MakeRef<Variable>(resource_.name(), dtype_, shape_);
                          }));
    if (variable->dtype() != dtype_) {
      return InvalidArgument("Variable ", resource_.name(), " is shared with a variable of type ",
                             DTypeName(variable->dtype()), ", expected ", DTypeName(dtype_));
    }
    c.SetOutputVariable(0, std::move(variable));
    return absl::OkStatus();
  }

 private:
  NamedResource<Variable> resource_;
  const DType dtype_;
  const PartialShape shape_;
};

class IsInitializedKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Variable * variable, c.input_variable(0));
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, Shape()));
    *output->data<bool>() = variable->IsInitialized();
    return absl::OkStatus();
  }
};

// A variable of one step, created by the first op and taken apart by the second.
class TemporaryVariableKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(DType dtype, c.Attr<DType>("dtype"));
    WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.Attr<PartialShape>("shape"));
    WEFT_ASSIGN_OR_RETURN(Shape full, shape.ToShape());
    std::string name = c.AttrOr<std::string>("var_name", "");
    if (name.empty()) name = c.name();
    return std::make_unique<TemporaryVariableKernel>(std::move(name), dtype, full);
  }
  TemporaryVariableKernel(std::string name, DType dtype, const Shape& shape)
      : name_(std::move(name)), dtype_(dtype), shape_(shape) {}

  Status Compute(KernelContext& c) override {
    if (c.environment().step_resources == nullptr) return Internal("The step keeps no resources");
    bool created = false;
    WEFT_ASSIGN_OR_RETURN(Ref<Variable> variable,
                          c.environment().step_resources->LookupOrCreate<Variable>(
                              kDefaultContainer, name_, [&]() -> StatusOr<Ref<Variable>> {
                                WEFT_ASSIGN_OR_RETURN(Tensor value,
                                                      c.AllocateTemporary(dtype_, shape_));
                                created = true;
                                auto made = MakeRef<Variable>(name_, dtype_, shape_);
                                made->Assign(std::move(value));
                                return made;
                              }));
    if (!created)
      return AlreadyExists("Temporary variable ", name_, " already exists in this step");
    c.SetOutputVariable(0, std::move(variable));
    return absl::OkStatus();
  }

 private:
  const std::string name_;
  const DType dtype_;
  const Shape shape_;
};

class DestroyTemporaryVariableKernel final : public OpKernel {
 public:
  explicit DestroyTemporaryVariableKernel(KernelConstruction& c)
      : name_(c.AttrOr<std::string>("var_name", "")) {}

  Status Compute(KernelContext& c) override {
    if (c.environment().step_resources == nullptr) return Internal("The step keeps no resources");
    WEFT_ASSIGN_OR_RETURN(Variable * variable, c.input_variable(0));
    WEFT_ASSIGN_OR_RETURN(Tensor value, variable->Read());
    WEFT_RETURN_IF_ERROR(
        c.environment().step_resources->Remove<Variable>(kDefaultContainer, name_));
    c.SetOutput(0, std::move(value));
    return absl::OkStatus();
  }

 private:
  const std::string name_;
};

Status DeclaredShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.Attr<PartialShape>("shape"));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// The old op could not tell a scalar from an unknown shape.
Status DeclaredShapeUnlessScalar(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.Attr<PartialShape>("shape"));
  if (shape.rank() != 0) c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("VariableV2")
          .AnyDevice()
          .Doc("A tensor that outlives the step, shared by all nodes of its container and "
               "shared name.")
          .Output("ref: Ref(dtype)")
          .Attr("shape: shape")
          .Attr("dtype: type")
          .Attr("container: string = ''")
          .Attr("shared_name: string = ''")
          .Stateful()
          .Traits({.source = ValueSource::kVariable})
          .Shape(DeclaredShape)
          .NoGradient()
          .Kernel(MakeKernel<VariableKernel>(), KernelCost::kInline));
  catalogue.Add(OpSpec("Variable")
                    .AnyDevice()
                    .Doc("As VariableV2; an empty shape means an unknown one.")
                    .Output("ref: Ref(dtype)")
                    .Attr("shape: shape")
                    .Attr("dtype: type")
                    .Attr("container: string = ''")
                    .Attr("shared_name: string = ''")
                    .Stateful()
                    .Traits({.source = ValueSource::kVariable})
                    .Shape(DeclaredShapeUnlessScalar)
                    .NoGradient()
                    .Kernel(MakeKernel<VariableKernel>(), KernelCost::kInline));
  catalogue.Add(OpSpec("IsVariableInitialized")
                    .AnyDevice()
                    .Doc("Whether the variable was assigned a value.")
                    .Input("ref: Ref(dtype)")
                    .Output("is_initialized: bool")
                    .HostOutput("is_initialized")
                    .Attr("dtype: type")
                    .AllowsUninitializedInput()
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<IsInitializedKernel>(), KernelCost::kInline));
  catalogue.Add(OpSpec("TemporaryVariable")
                    .AnyDevice()
                    .Doc("A variable of this step alone; contents are arbitrary until assigned.\n"
                         "AlreadyExists if the step has one of this name.")
                    .Output("ref: Ref(dtype)")
                    .Attr("shape: shape")
                    .Attr("dtype: type")
                    .Attr("var_name: string = ''")
                    .Stateful()
                    .Traits({.source = ValueSource::kVariable})
                    .Shape(DeclaredShape)
                    .NoGradient()
                    .Kernel(MakeKernel<TemporaryVariableKernel>(), KernelCost::kInline));
  catalogue.Add(
      OpSpec("DestroyTemporaryVariable")
          .AnyDevice()
          .Doc("Ends a temporary variable and gives its last value.\nNotFound if the step "
               "has none of this name.")
          .Input("ref: Ref(T)")
          .Output("value: T")
          .Attr("T: type")
          .Attr("var_name: string")
          .Shape(shapes::SameAsInput)
          .NoGradient()
          .Kernel(MakeKernel<DestroyTemporaryVariableKernel>(), KernelCost::kInline));
}

}  // namespace weft::ops::state::variable
