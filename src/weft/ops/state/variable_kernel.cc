// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/state/variable_kernel.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

namespace weft::ops::state {
namespace {
constexpr int64_t kMinCopy = int64_t{1} << 20;  // bytes: less is not worth a second thread
constexpr int64_t kMinBlock = 32 << 10;         // elements a thread should get at least
constexpr int64_t kTakenBytes = 256 << 10;      // a copy of less costs next to nothing

// Whether the bytes of input `i` are free after this call: it is their last use, nobody holds them.
bool IsFreeAfter(KernelContext& c, int i) {
  const KernelContext::Binding& binding = c.binding();
  const Tensor& held = binding.input_values[i]->tensor;
  return binding.input_is_last_use[i] && &held == binding.inputs[i] && held.HasOneRef();
}
}  // namespace

StatusOr<Ref<Variable>> InitializedVariable(const KernelContext& c, int i) {
  WEFT_ASSIGN_OR_RETURN(Ref<Variable> variable, c.input_resource_variable(i));
  if (variable->IsInitialized()) return variable;
  return NotFound("Could not find variable ", variable->name(),
                  ". This could mean that the variable has been deleted or is uninitialized.");
}

StatusOr<Ref<Variable>> TargetVariable(const KernelContext& c, int i, DType dtype) {
  Ref<Variable> variable;
  if (c.call().input_type(i).is_ref) {
    WEFT_ASSIGN_OR_RETURN(Variable * found, c.input_variable(i));
    variable = Ref<Variable>(found);
  } else {
    WEFT_ASSIGN_OR_RETURN(variable, InitializedVariable(c, i));
  }
  if (variable->dtype() != dtype) {
    return InvalidArgument("Variable ", variable->name(), " holds ", DTypeName(variable->dtype()),
                           ", but ", c.call().op(), " was made for ", DTypeName(dtype));
  }
  return variable;
}

void ForwardTarget(KernelContext& c, int input, int output) {
  if (!c.call().input_type(input).is_ref || c.num_outputs() <= output) return;
  StatusOr<Variable*> variable = c.input_variable(input);
  if (variable.ok()) c.SetOutputVariable(output, Ref<Variable>(*variable));
}

void AssignValue(KernelContext& c, Variable& variable, int input) {
  const Tensor& value = c.input(input);
  absl::MutexLock lock(&variable.mutex());
  if (static_cast<int64_t>(value.size_bytes()) >= kTakenBytes && IsFreeAfter(c, input)) {
    return variable.AssignLocked(std::exchange(c.binding().input_values[input]->tensor, Tensor()));
  }
  const Tensor& old = variable.ValueLocked();
  if (value.memory() == nullptr && old.memory() == nullptr && old.dtype() == value.dtype() &&
      old.shape() == value.shape() && IsPlain(value.dtype()) && old.HasOneRef()) {
    Tensor own = old;  // the same bytes: the variable is their only other owner, and is locked
    c.ParallelFor(
        static_cast<int64_t>(value.size_bytes()), kMinCopy, [&](int64_t begin, int64_t end) {
          std::memcpy(own.bytes() + begin, value.bytes() + begin, static_cast<size_t>(end - begin));
        });
    return;
  }
  variable.AssignLocked(value);
}

void CombineInPlace(const KernelContext& c, Combine combine, Tensor& value, const Tensor& delta) {
  VisitDType(value.dtype(), Numbers{}, [&]<typename T>() {
    T* const out = value.data<T>();
    const T* const in = delta.data<T>();
    c.ParallelFor(value.num_elements(), kMinBlock, [&](int64_t begin, int64_t end) {
      if (combine == Combine::kAdd) {
        for (int64_t i = begin; i < end; ++i) out[i] = WrappingAdd(out[i], in[i]);
      } else {
        for (int64_t i = begin; i < end; ++i) out[i] = WrappingSubtract(out[i], in[i]);
      }
    });
  });
}

Status CountUp(KernelContext& c, DType dtype, int64_t limit) {
  WEFT_ASSIGN_OR_RETURN(Ref<Variable> variable, TargetVariable(c, 0, dtype));
  WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, Shape()));
  return variable->Update([&](Tensor& value) -> Status {
    if (!value.shape().IsScalar()) {
      return InvalidArgument("input is not a scalar: ", value.shape().ToString());
    }
    const auto count = [&]<typename T>() -> Status {
      T& now = *value.data<T>();
      if (static_cast<int64_t>(now) >= limit) return OutOfRange("Reached limit of ", limit);
      *output->data<T>() = now++;
      return absl::OkStatus();
    };
    return dtype == DType::kInt32 ? count.operator()<int32_t>() : count.operator()<int64_t>();
  });
}

Status LockedVariables::Open(Device* device, const Tensor* rows) {
  VariableKeeper* const keeper = rows != nullptr ? KeeperOf(device) : nullptr;
  keeper_ = keeper;
  in_place_.reserve(variables_.size());  // values_ points into it
  for (const Ref<Variable>& variable : variables_) {
    variable->mutex().AssertHeld();
    if (!variable->ValueLocked().IsInitialized()) {
      return FailedPrecondition("Attempting to use uninitialized variables: ", variable->name());
    }
    if (keeper != nullptr && keeper->MayWriteRows(variable->ValueLocked(), *rows)) {
      in_place_.push_back(variable->ValueLocked());
      values_.push_back(&in_place_.back());
      continue;
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * value, MutableLocked(device, *variable));
    values_.push_back(value);
  }
  return absl::OkStatus();
}

StatusOr<LockedVariables> LockedVariables::Lock(const KernelContext& c, int num_variables,
                                                DType dtype,
                                                const Tensor* rows) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  LockedVariables set;
  for (int i = 0; i < num_variables; ++i) {
    StatusOr<Ref<Variable>> variable = TargetVariable(c, i, dtype);
    // TensorFlow's code for a handle without a variable behind it, whatever one thinks of it.
    if (absl::IsNotFound(variable.status())) {
      return Internal("Invalid variable reference. ", variable.status().message());
    }
    WEFT_RETURN_IF_ERROR(variable.status());
    set.variables_.push_back(*std::move(variable));
  }
  absl::InlinedVector<Variable*, 4> order;
  for (const Ref<Variable>& variable : set.variables_) order.push_back(variable.get());
  std::sort(order.begin(), order.end(), std::less<Variable*>());
  order.erase(std::unique(order.begin(), order.end()), order.end());
  for (Variable* variable : order) variable->mutex().Lock();
  set.locked_ = std::move(order);
  WEFT_RETURN_IF_ERROR(set.Open(&c.device(), rows));
  return set;
}

LockedVariables::~LockedVariables() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  for (const Tensor& value : in_place_) keeper_->RowsWritten(value);
  for (Variable* variable : locked_) variable->mutex().Unlock();
}

}  // namespace weft::ops::state
