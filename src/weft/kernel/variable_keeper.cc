// SPDX-License-Identifier: Apache-2.0
#include "weft/kernel/variable_keeper.h"

#include <cstring>
#include <utility>

#include "weft/kernel/device_offer.h"

namespace weft {
namespace {

constexpr char kKeeperContainer[] = " keeper";
constexpr int64_t kLeastCopied = int64_t{1} << 20;  // bytes that are worth another thread

}  // namespace

void OfferKeeper(Device* device, VariableKeeper* keeper) {
  DeviceOffer<VariableKeeper>::Make(device, kKeeperContainer, "who keeps the variables", keeper);
}

VariableKeeper* KeeperOf(Device* device) {
  return DeviceOffer<VariableKeeper>::Find(device, kKeeperContainer);
}

StatusOr<Tensor*> MutableLocked(Device* device, Variable& variable) {
  const Tensor& value = variable.ValueLocked();
  if (!value.IsInitialized() || static_cast<int64_t>(value.size_bytes()) < 2 * kLeastCopied ||
      value.memory() != nullptr || !IsPlain(value.dtype()) || value.HasOneRef()) {
    return variable.MutableLocked();
  }
  WEFT_ASSIGN_OR_RETURN(Tensor copy, Tensor::Allocate(value.dtype(), value.shape()));
  device->threads().ParallelFor(
      static_cast<int64_t>(value.size_bytes()), kLeastCopied, [&](int64_t begin, int64_t end) {
        std::memcpy(copy.bytes() + begin, value.bytes() + begin, static_cast<size_t>(end - begin));
      });
  variable.AssignLocked(std::move(copy));
  return variable.MutableLocked();
}

Status UpdateRows(Device* device, Variable& variable, const Tensor& rows,
                  absl::FunctionRef<Status(Tensor&)> update) {
  VariableKeeper* const keeper = KeeperOf(device);
  absl::MutexLock lock(&variable.mutex());
  const Tensor& value = variable.ValueLocked();
  if (keeper != nullptr && value.IsInitialized() && keeper->MayWriteRows(value, rows)) {
    Tensor own = value;  // the variable's bytes
    const Status updated = update(own);
    keeper->RowsWritten(value);
    return updated;
  }
  WEFT_ASSIGN_OR_RETURN(Tensor * copied, MutableLocked(device, variable));
  return update(*copied);
}

}  // namespace weft
