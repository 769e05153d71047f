// SPDX-License-Identifier: Apache-2.0
// Who keeps what a device's variables hold for a process that comes after this one.
#pragma once

#include "absl/functional/function_ref.h"

#include "base/status.h"
#include "weft/kernel/device.h"
#include "weft/kernel/variable.h"
#include "weft/tensor/tensor.h"

namespace weft {

// A keeper owns the bytes that it keeps, so that an update copies them first. Of a large table of
// which an update writes a few rows that would cost more than all else: those are noted instead.
// Thread-safe.
class VariableKeeper {
 public:
  virtual ~VariableKeeper() = default;
  // Whether these rows (int32 or int64) of the first dimension of `value`, a variable's own handle,
  // may be written in place. The variable's mutex is held. True: RowsWritten follows, on the same
  // thread and under the same mutex.
  virtual bool MayWriteRows(const Tensor& value, const Tensor& rows) = 0;
  virtual void RowsWritten(const Tensor& value) = 0;
};

// Kernels find it among the resources of their device, in a container that no client can name.
// `keeper` must outlive the device's last step.
void OfferKeeper(Device* device, VariableKeeper* keeper);
// Null where nothing is kept.
VariableKeeper* KeeperOf(Device* device);

// As Variable::MutableLocked, where a large value that somebody else reads is copied by the threads
// that the device's kernels share.
StatusOr<Tensor*> MutableLocked(Device* device, Variable& variable)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(variable.mutex());

// As Variable::Update, of an update that writes to these rows (int32 or int64) of the value's first
// dimension alone. Rows that it has not are the update's to refuse.
Status UpdateRows(Device* device, Variable& variable, const Tensor& rows,
                  absl::FunctionRef<Status(Tensor& value)> update);

}  // namespace weft
