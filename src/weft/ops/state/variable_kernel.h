// SPDX-License-Identifier: Apache-2.0
// What kernels share that read and update variables, by reference or by resource handle.
#pragma once

#include <initializer_list>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/inlined_vector.h"

#include "weft/kernel/op_kernel.h"
#include "weft/kernel/variable.h"
#include "weft/kernel/variable_keeper.h"

namespace weft::ops::state {

// The variable that handle input i names: NotFound if there is none or it has no value.
StatusOr<Ref<Variable>> InitializedVariable(const KernelContext& c, int i);

// The variable that input i refers to, which must hold elements of `dtype`. NotFound if a handle
// names none with a value; behind a reference it may be uninitialised.
StatusOr<Ref<Variable>> TargetVariable(const KernelContext& c, int i, DType dtype);

// Passes a reference input on to the reference output `output`; nothing for resource handles.
void ForwardTarget(KernelContext& c, int input, int output);

// Several variables held for writing, locked in order of address; unlocked by the destructor.
class LockedVariables {
 public:
  // FailedPrecondition "Attempting to use uninitialized variables: w" before the first assignment.
  // `rows`, if any (int32 or int64), are the only ones of each that will be written; those that a
  // variable has not are the caller's to refuse.
  static StatusOr<LockedVariables> Lock(const KernelContext& c, int num_variables, DType dtype,
                                        const Tensor* rows = nullptr);
  LockedVariables(LockedVariables&& other) noexcept = default;
  LockedVariables& operator=(LockedVariables&&) = delete;
  ~LockedVariables();

  // The value of variable input i, with bytes of its own.
  Tensor& value(int i) { return *values_[i]; }

 private:
  LockedVariables() = default;
  Status Open(Device* device, const Tensor* rows);
  absl::InlinedVector<Ref<Variable>, 4> variables_;  // as the inputs name them
  absl::InlinedVector<Variable*, 4> locked_;         // without repetition, by address
  absl::InlinedVector<Tensor*, 4> values_;
  VariableKeeper* keeper_ = nullptr;
  std::vector<Tensor> in_place_;  // handles of what the keeper lets us write
};

// Gives `variable` the value of an input: the bytes of a large one that nobody reads after this, a
// copy in its own where those fit and nobody reads them, else a share of the value's.
void AssignValue(KernelContext& c, Variable& variable, int input);

enum class Combine { kAdd, kSubtract };
// value = value + delta or value - delta, element by element, for tensors of one shape and of a
// type in Numbers.
void CombineInPlace(const KernelContext& c, Combine combine, Tensor& value, const Tensor& delta);

// Counts a scalar int32 or int64 variable up and gives what it was: OutOfRange at the limit.
Status CountUp(KernelContext& c, DType dtype, int64_t limit);

// Element-wise arithmetic without undefined overflow: integers wrap.
template <typename T>
T WrappingAdd(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return static_cast<T>(a + b);
  }
}
template <typename T>
T WrappingSubtract(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  } else {
    return static_cast<T>(a - b);
  }
}
template <typename T>
T WrappingMultiply(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else {
    return static_cast<T>(a * b);
  }
}

}  // namespace weft::ops::state
