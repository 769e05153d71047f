// SPDX-License-Identifier: Apache-2.0
// Updates of reference variables.
#include <memory>

#include "weft/kernel/op_spec.h"
#include "weft/ops/state/variable_kernel.h"

namespace weft::ops::state::assign {
namespace {

class AssignKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(DType dtype, c.Attr<DType>("T"));
    return std::make_unique<AssignKernel>(dtype, c.AttrOr("validate_shape", true));
  }
  AssignKernel(DType dtype, bool validate_shape) : dtype_(dtype), validate_shape_(validate_shape) {}

  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<Variable> variable, TargetVariable(c, 0, dtype_));
    const Tensor& value = c.input(1);
    if (validate_shape_) {
      const PartialShape expected = CurrentShape(*variable);
      if (!expected.IsCompatibleWith(value.shape())) {
        return InvalidArgument("Assign requires shapes of both tensors to match. lhs shape= ",
                               expected.ToString(), " rhs shape= ", value.shape().ToString());
      }
    }
    AssignValue(c, *variable, 1);
    c.SetOutputVariable(0, std::move(variable));
    return absl::OkStatus();
  }

 private:
  static PartialShape CurrentShape(const Variable& variable) {
    absl::MutexLock lock(&variable.mutex());
    const Tensor& value = variable.ValueLocked();
    return value.IsInitialized() ? PartialShape(value.shape()) : variable.declared_shape();
  }

  const DType dtype_;
  const bool validate_shape_;
};

template <Combine combine>
class UpdateKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(DType dtype, c.Attr<DType>("T"));
    return std::make_unique<UpdateKernel>(dtype);
  }
  explicit UpdateKernel(DType dtype) : dtype_(dtype) {}

  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<Variable> variable, TargetVariable(c, 0, dtype_));
    const Tensor& delta = c.input(1);
    WEFT_RETURN_IF_ERROR(variable->Update([&](Tensor& value) -> Status {
      if (value.shape() != delta.shape()) {
        return InvalidArgument("Parameters and update must be the same size, got ",
                               value.shape().ToString(), " and ", delta.shape().ToString());
      }
      CombineInPlace(c, combine, value, delta);
      return absl::OkStatus();
    }));
    c.SetOutputVariable(0, std::move(variable));
    return absl::OkStatus();
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

Status AssignShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(bool validate_shape, c.Attr<bool>("validate_shape"));
  if (validate_shape) return shapes::MergeInputs(c);
  c.set_output(0, c.input(1));
  return absl::OkStatus();
}

template <Combine combine>
void RegisterUpdate(Catalogue& catalogue, const char* name, const char* documentation) {
  catalogue.Add(OpSpec(name)
                    .Doc(documentation)
                    .Input("ref: Ref(T)")
                    .Input("value: T")
                    .Output("output_ref: Ref(T)")
                    .Attr("T: numbertype")
                    .Attr("use_locking: bool = false")
                    .Shape(shapes::MergeInputs)
                    .NoGradient()
                    .Kernel({.types = {{"T", DTypesOf(Numbers{})}},
                             .factory = MakeKernel<UpdateKernel<combine>>()}));
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("Assign")
                    .AnyDevice()
                    .Doc("Gives the variable a value; the output is the variable.\n"
                         "InvalidArgument if shapes differ, unless validate_shape is false.")
                    .Input("ref: Ref(T)")
                    .Input("value: T")
                    .Output("output_ref: Ref(T)")
                    .Attr("T: type")
                    .Attr("validate_shape: bool = true")
                    .Attr("use_locking: bool = true")
                    .AllowsUninitializedInput()
                    .Shape(AssignShape)
                    .NoGradient()
                    .Kernel(MakeKernel<AssignKernel>()));
  RegisterUpdate<Combine::kAdd>(catalogue, "AssignAdd",
                                "Adds the value to the variable, which is of the same shape.");
  RegisterUpdate<Combine::kSubtract>(catalogue, "AssignSub",
                                     "Subtracts the value from the variable, which is of the same "
                                     "shape.");
  catalogue.Add(OpSpec("CountUpTo")
                    .Doc("Adds 1 to a scalar variable and gives what it was before.\n"
                         "OutOfRange once the limit is reached.")
                    .Input("ref: Ref(T)")
                    .Output("output: T")
                    .Attr("limit: int")
                    .Attr("T: {int32, int64}")
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<CountUpToKernel>(), KernelCost::kInline));
}

}  // namespace weft::ops::state::assign
