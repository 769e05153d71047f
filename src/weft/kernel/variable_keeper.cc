// SPDX-License-Identifier: Apache-2.0
#include "weft/kernel/variable_keeper.h"

#include "weft/kernel/device_offer.h"

namespace weft {
namespace {

constexpr char kKeeperContainer[] = " keeper";

}  // namespace

void OfferKeeper(Device* device, VariableKeeper* keeper) {
  DeviceOffer<VariableKeeper>::Make(device, kKeeperContainer, "who keeps the variables", keeper);
}

VariableKeeper* KeeperOf(Device* device) {
  return DeviceOffer<VariableKeeper>::Find(device, kKeeperContainer);
}

Status UpdateRows(Device* device, Variable& variable, const Tensor& rows,
                  absl::FunctionRef<Status(Tensor&)> update) {
  VariableKeeper* const keeper = KeeperOf(device);
  if (keeper == nullptr) return variable.Update(update);
  absl::MutexLock lock(&variable.mutex());
  const Tensor& value = variable.ValueLocked();
  if (value.IsInitialized() && keeper->MayWriteRows(value, rows)) {
    Tensor own = value;  // the variable's bytes
    const Status updated = update(own);
    keeper->RowsWritten(value);
    return updated;
  }
  WEFT_ASSIGN_OR_RETURN(Tensor * copied, variable.MutableLocked());
  return update(*copied);
}

}  // namespace weft
