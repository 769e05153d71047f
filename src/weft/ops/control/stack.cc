// SPDX-License-Identifier: Apache-2.0
// Stacks of a step: what the loops of gradients keep from the forward loop.
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"

#include "weft/kernel/op_spec.h"
#include "weft/ops/control/step_resource_kernel.h"

namespace weft::ops::control::stack {
namespace {

// Thread-safe.
class Stack : public Resource {
 public:
  // At most `max_size` elements; any number if it is negative.
  Stack(std::string name, DType dtype, int32_t max_size)
      : name_(std::move(name)), dtype_(dtype), max_size_(max_size) {}

  Status Push(const Tensor& element) {
    absl::MutexLock lock(&mutex_);
    if (closed_) return AlreadyClosed();
    if (element.dtype() != dtype_) {
      return InvalidArgument("Must have type ", DTypeName(dtype_), " but got ",
                             DTypeName(element.dtype()));
    }
    if (max_size_ >= 0 && elements_.size() >= static_cast<size_t>(max_size_)) {
      return InvalidArgument("Stack[", name_, "] overflowed its max_size (", max_size_, ")");
    }
    elements_.push_back(element);
    return absl::OkStatus();
  }

  StatusOr<Tensor> Pop() {
    absl::MutexLock lock(&mutex_);
    if (closed_) return AlreadyClosed();
    if (elements_.empty()) {
      return InvalidArgument("Stack[", name_, "] is empty when calling Pop().");
    }
    Tensor last = std::move(elements_.back());
    elements_.pop_back();
    return last;
  }

  void CloseForGood() {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    elements_.clear();
  }

  DType dtype() const { return dtype_; }
  std::string DebugString() const override { return absl::StrCat("Stack[", name_, "]"); }

 private:
  Status AlreadyClosed() const {
    return InvalidArgument("Stack[", name_, "] has already been closed.");
  }

  const std::string name_;
  const DType dtype_;
  const int32_t max_size_;
  absl::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Tensor> elements_ ABSL_GUARDED_BY(mutex_);
};

class CreateKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(DType dtype, c.Attr<DType>("elem_type"));
    std::string name = c.AttrOr<std::string>("stack_name", "");
    return std::make_unique<CreateKernel>(name.empty() ? c.name() : std::move(name), dtype);
  }
  CreateKernel(std::string name, DType dtype) : name_(std::move(name)), dtype_(dtype) {}

  Status Compute(KernelContext& c) override {
    int32_t max_size = -1;  // the older op has none
    if (c.num_inputs() > 0) {
      if (!c.input(0).shape().IsScalar()) {
        return InvalidArgument("Stack size must be a scalar, but had shape: ",
                               c.input(0).shape().ToString());
      }
      max_size = c.input(0).scalar<int32_t>();
    }
    const std::string name = UniqueStepName(name_);
    const auto make = [&]() -> StatusOr<Ref<Stack>> {
      return MakeRef<Stack>(name, dtype_, max_size);
    };
    return GiveStepResource<Stack>(c, name, "Stack", make);
  }

 private:
  const std::string name_;
  const DType dtype_;
};

class PushKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<Stack> stack, StepResourceOfInput<Stack>(c));
    WEFT_RETURN_IF_ERROR(stack->Push(c.input(1)));
    c.SetOutput(0, c.input(1));
    return absl::OkStatus();
  }
};

class PopKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<Stack> stack, StepResourceOfInput<Stack>(c));
    if (stack->dtype() != c.output_dtype(0)) {
      return InvalidArgument("Stack holds ", DTypeName(stack->dtype()), ", not ",
                             DTypeName(c.output_dtype(0)));
    }
    WEFT_ASSIGN_OR_RETURN(Tensor element, stack->Pop());
    c.SetOutput(0, std::move(element));
    return absl::OkStatus();
  }
};

class CloseKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<Stack> stack, StepResourceOfInput<Stack>(c));
    stack->CloseForGood();
    return absl::OkStatus();
  }
};

Status SameAsElement(ShapeContext& c) {
  c.set_output(0, c.input(1));
  return absl::OkStatus();
}

Status NamesShape(ShapeContext& c) {
  c.set_output(0, Shape{2});
  return absl::OkStatus();
}

// An op on a stack, in one of the forms of its handle.
OpSpec Use(const std::string& name, bool is_resource, const char* documentation) {
  OpSpec spec(is_resource ? name + "V2" : name);
  spec.Doc(documentation)
      .Input(is_resource ? "handle: resource" : "handle: Ref(string)")
      .NoGradient();
  if (is_resource) spec.Stateful();
  return spec;
}

void RegisterUses(Catalogue& catalogue, bool is_resource) {
  catalogue.Add(
      std::move(Use("StackPush", is_resource,
                    "Puts an element on top of a stack and passes it on.\nInvalidArgument if "
                    "the stack is full or closed or of another type.")
                    .Input("elem: T")
                    .Output("output: T")
                    .Attr("T: type")
                    .Attr("swap_memory: bool = false")
                    .Shape(SameAsElement)
                    .Kernel(MakeKernel<PushKernel>(), KernelCost::kInline)));
  catalogue.Add(
      std::move(Use("StackPop", is_resource,
                    "Takes the element on top of a stack.\nInvalidArgument if the stack is "
                    "empty or closed or of another type.")
                    .Output("elem: elem_type")
                    .Attr("elem_type: type")
                    .Shape(shapes::Unknown)
                    .Kernel(MakeKernel<PopKernel>(), KernelCost::kInline)));
  catalogue.Add(
      std::move(Use("StackClose", is_resource, "Empties a stack; its other ops fail from then on.")
                    .Shape(shapes::NoOutputs)
                    .Kernel(MakeKernel<CloseKernel>(), KernelCost::kInline)));
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("StackV2")
                    .Doc("Makes a stack of tensors that lives as long as the step, of at most "
                         "`max_size` elements (any number if negative).")
                    .Input("max_size: int32")
                    .HostInput("max_size")
                    .Output("handle: resource")
                    .Attr("elem_type: type")
                    .Attr("stack_name: string = ''")
                    .Stateful()
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<CreateKernel>(), KernelCost::kInline));
  catalogue.Add(OpSpec("Stack")
                    .Doc("Makes a stack of tensors that lives as long as the step.")
                    .Output("handle: Ref(string)")
                    .Attr("elem_type: type")
                    .Attr("stack_name: string = ''")
                    .Stateful()
                    .Shape(NamesShape)
                    .NoGradient()
                    .Kernel(MakeKernel<CreateKernel>(), KernelCost::kInline));
  for (const bool is_resource : {false, true}) RegisterUses(catalogue, is_resource);
}

}  // namespace weft::ops::control::stack
