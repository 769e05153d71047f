// SPDX-License-Identifier: Apache-2.0
// What a kernel that creates a lookup table gives: the handle of one that nodes share, or of one of
// its own.
#pragma once

#include <string>
#include <utility>

#include "weft/ops/state/lookup_table_kernel.h"
#include "weft/ops/state/resource_handle_kernel.h"

namespace weft::ops::state {

inline constexpr char kTableTypeName[] = "tensorflow::lookup::LookupInterface";

// Thread-safe; belongs to one kernel.
class TableOutput {
 public:
  explicit TableOutput(const KernelConstruction& c) : output_(c, kTableTypeName) {}
  const std::string& name() const { return output_.name(); }

  Status Give(KernelContext& c, const TableOptions& options) {
    return output_.Give(
        c, [&]() -> StatusOr<Ref<LookupTable>> { return MakeRef<LookupTable>(options); },
        [&](const LookupTable& table) { return CheckSame(table.options(), options); });
  }

 private:
  static Status CheckSame(const TableOptions& shared, const TableOptions& wanted) {
    if (shared.key == wanted.key && shared.value == wanted.value &&
        shared.key_shape == wanted.key_shape && shared.value_shape == wanted.value_shape) {
      return absl::OkStatus();
    }
    return InvalidArgument("Conflicting key/value dtypes ", DTypeName(wanted.key), "->",
                           DTypeName(wanted.value), " with ", DTypeName(shared.key), "-",
                           DTypeName(shared.value), " for table ", wanted.name);
  }

  HandleOutput<LookupTable> output_;
};

// A table that nobody else finds: it lives as long as a handle of it.
inline void GiveOwnTable(KernelContext& c, TableOptions options) {
  auto table = MakeRef<LookupTable>(std::move(options));
  c.SetOutput(0, Tensor::Scalar(ResourceHandle{.device = c.device().name(),
                                               .container = c.default_container(),
                                               .name = "anonymous",
                                               .type_name = kTableTypeName,
                                               .object = table}));
}

}  // namespace weft::ops::state
