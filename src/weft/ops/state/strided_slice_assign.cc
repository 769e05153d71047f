// SPDX-License-Identifier: Apache-2.0
// Writing to a slice of a variable: Python's v[a:b:c, ..., newaxis].assign(x).
#include <memory>

#include "weft/kernel/op_spec.h"
#include "weft/ops/array/strided_slice_kernel.h"
#include "weft/ops/state/variable_kernel.h"

namespace weft::ops::state::strided_slice_assign {
namespace {

using array::SliceMasks;
using array::SlicePlan;

class AssignKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const SliceMasks masks, SliceMasks::FromAttrs(c.call().attrs()));
    WEFT_ASSIGN_OR_RETURN(const DType dtype, c.Attr<DType>("T"));
    return std::make_unique<AssignKernel>(masks, dtype);
  }
  AssignKernel(const SliceMasks& masks, DType dtype) : masks_(masks), dtype_(dtype) {}

  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<Variable> variable, TargetVariable(c, 0, dtype_));
    const Tensor& value = c.input(4);
    WEFT_RETURN_IF_ERROR(variable->Update([&](Tensor& whole) -> Status {
      const Shape shape = whole.shape();
      WEFT_ASSIGN_OR_RETURN(const SlicePlan plan,
                            array::PlanSlice(shape, &c.input(1), &c.input(2), c.input(3), masks_));
      WEFT_ASSIGN_OR_RETURN(const Tensor filled, array::FillSlice(c, value, plan));
      array::Copy(c, plan.CopyInto(shape), filled, &whole);
      return absl::OkStatus();
    }));
    ForwardTarget(c, 0, 0);
    return absl::OkStatus();
  }

 private:
  const SliceMasks masks_;
  const DType dtype_;
};

}  // namespace

void Register(Catalogue& catalogue) {
  for (const bool is_resource : {false, true}) {
    OpSpec assign(is_resource ? "ResourceStridedSliceAssign" : "StridedSliceAssign");
    assign.Doc("Writes `value` into a variable where StridedSlice would read.");
    assign.Input(is_resource ? "ref: resource" : "ref: Ref(T)")
        .Input("begin: Index")
        .HostInput("begin")
        .Input("end: Index")
        .HostInput("end")
        .Input("strides: Index")
        .HostInput("strides")
        .Input("value: T");
    if (!is_resource) assign.Output("output_ref: Ref(T)");
    assign.Attr("T: type").Attr("Index: {int32, int64}");
    if (is_resource) assign.Stateful().Traits({.changes_variable = true});
    catalogue.Add(array::AddMasks(assign)
                      .Shape(is_resource ? shapes::NoOutputs : shapes::SameAsInput)
                      .NoGradient()
                      .Kernel(MakeKernel<AssignKernel>()));
  }
}

}  // namespace weft::ops::state::strided_slice_assign
