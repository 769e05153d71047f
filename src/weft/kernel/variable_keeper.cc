// SPDX-License-Identifier: Apache-2.0
#include "weft/kernel/variable_keeper.h"

#include <string>

namespace weft {
namespace {

constexpr char kKeeperContainer[] =
    " keeper";  // clients' containers begin with a letter or a digit

class KeeperOffer final : public Resource {
 public:
  explicit KeeperOffer(VariableKeeper* keeper) : keeper_(keeper) {}
  std::string DebugString() const override { return "who keeps the variables"; }
  VariableKeeper* keeper() const { return keeper_; }

 private:
  VariableKeeper* const keeper_;
};

}  // namespace

void OfferKeeper(Device* device, VariableKeeper* keeper) {
  device->resources()
      .LookupOrCreate<KeeperOffer>(
          kKeeperContainer, "",
          [&]() -> StatusOr<Ref<KeeperOffer>> { return MakeRef<KeeperOffer>(keeper); })
      .IgnoreError();
}

VariableKeeper* KeeperOf(Device* device) {
  StatusOr<Ref<KeeperOffer>> found = device->resources().Lookup<KeeperOffer>(kKeeperContainer, "");
  return found.ok() ? (*found)->keeper() : nullptr;
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
