// SPDX-License-Identifier: Apache-2.0
#include "weft/kernel/kernel_context.h"

#include <utility>

namespace weft {
namespace {
// Below this, keeping each slot's own bytes is cheaper than passing them on.
constexpr size_t kForwardBytes = 16 << 10;
// No element is larger, so fewer elements than this cannot be that many bytes.
constexpr int64_t kForwardElements = kForwardBytes / sizeof(Complex128);

}  // namespace

KernelContext::KernelContext(Binding binding) : binding_(std::move(binding)) {
  for (int i = 0; i < binding_.call->num_outputs(); ++i) {
    output_dtypes_.push_back(binding_.call->output_type(i).dtype);
  }
}

const std::string& KernelContext::default_container() const {
  static const std::string* const standard = new std::string(kDefaultContainer);
  return environment_->session != nullptr ? environment_->session->container : *standard;
}

StatusOr<Variable*> KernelContext::input_variable(int i) const {
  Variable* variable = binding_.input_values[i]->variable.get();
  if (variable != nullptr) return variable;
  return FailedPrecondition("Input ", i, " of '", name(), "' is not a reference to a variable");
}

StatusOr<const ResourceHandle*> KernelContext::input_handle(int i) const {
  const Tensor& tensor = input(i);
  if (tensor.dtype() != DType::kResource || tensor.num_elements() != 1) {
    return InvalidArgument("Input ", i, " of '", name(), "' must be one resource handle, got ",
                           DTypeName(tensor.dtype()), " ", tensor.shape().ToString());
  }
  return tensor.data<ResourceHandle>();
}

StatusOr<Ref<Variable>> KernelContext::input_resource_variable(int i) const {
  WEFT_ASSIGN_OR_RETURN(const ResourceHandle* handle, input_handle(i));
  if (auto* variable = dynamic_cast<Variable*>(handle->object.get()))
    return Ref<Variable>(variable);
  StatusOr<Ref<Variable>> found = resources().Lookup<Variable>(handle->container, handle->name);
  if (found.ok()) return found;
  return NotFound("Could not find variable ", handle->name,
                  ". This could mean that the variable has been deleted or is uninitialized. "
                  "(container ",
                  handle->container, ", device ", device().name(), ")");
}

// Attributes of a node may disagree: a kernel that counts by one of them may believe in outputs
// that the node does not have.
StatusOr<Tensor*> KernelContext::AllocateOutput(int i, const Shape& shape) {
  if (static_cast<size_t>(i) >= binding_.outputs.size()) [[unlikely]] {
    return InvalidArgument("'", name(), "' has no output ", i, ": its attributes disagree");
  }
  Value& value = *binding_.outputs[i];
  const DType dtype = output_dtypes_[i];
  if (value.tensor.dtype() == dtype && value.tensor.shape() == shape && value.tensor.HasOneRef() &&
      !value.is_shared) [[likely]] {
    return &value.tensor;
  }
  Allocator& from = binding_.call->output_type(i).on_host ? HostAllocator() : device().allocator();
  StatusOr<Tensor> made = Tensor::Allocate(dtype, shape, from);
  if (!made.ok()) return OutOfMemory(i, made.status());
  value.tensor = *std::move(made);
  value.is_shared = false;
  return &value.tensor;
}

Status KernelContext::OutOfMemory(int i, const Status& status) const {
  return Annotate(status, absl::StrCat("Output ", i, " of '", name(), "' on ", device().name()));
}

bool KernelContext::TryForward(int from, int i, const Shape& shape) {
  if (shape.num_elements() < kForwardElements || static_cast<size_t>(i) >= output_dtypes_.size())
    return false;
  if (!binding_.input_is_last_use[from]) return false;
  Value& source = *binding_.input_values[from];
  if (&source.tensor != binding_.inputs[from] || source.tensor.size_bytes() < kForwardBytes ||
      source.tensor.dtype() != output_dtypes_[i] ||
      source.tensor.num_elements() != shape.num_elements() || !source.tensor.HasOneRef()) {
    return false;
  }
  StatusOr<Tensor> reshaped = source.tensor.Reshaped(shape);
  if (!reshaped.ok()) return false;
  Value& value = *binding_.outputs[i];
  value.tensor = *std::move(reshaped);
  value.is_shared = true;
  return true;
}

StatusOr<Tensor*> KernelContext::ForwardOrAllocateOutput(int from, int i, const Shape& shape) {
  if (TryForward(from, i, shape)) return &binding_.outputs[i]->tensor;
  return AllocateOutput(i, shape);
}

StatusOr<Tensor*> KernelContext::ForwardOrAllocateOutput(int a, int b, int i, const Shape& shape) {
  if (TryForward(a, i, shape) || TryForward(b, i, shape)) return &binding_.outputs[i]->tensor;
  return AllocateOutput(i, shape);
}

void KernelContext::SetOutput(int i, Tensor value) {
  if (static_cast<size_t>(i) >= binding_.outputs.size()) return;
  binding_.outputs[i]->tensor = std::move(value);
  binding_.outputs[i]->is_shared = true;
}

void KernelContext::SetOutputVariable(int i, Ref<Variable> variable) {
  binding_.outputs[i]->variable = std::move(variable);
}

void KernelContext::SetOutputDead(int i) { binding_.outputs[i]->is_dead = true; }

StatusOr<Tensor> KernelContext::AllocateTemporary(DType dtype, const Shape& shape) const {
  return Tensor::Allocate(dtype, shape, device().allocator());
}

void KernelContext::ParallelFor(int64_t total, int64_t min_block,
                                absl::FunctionRef<void(int64_t, int64_t)> body) const {
  if (environment_->single_threaded || total <= min_block) {
    if (total > 0) body(0, total);
    return;
  }
  device().threads().ParallelFor(total, min_block, body);
}

}  // namespace weft
