// SPDX-License-Identifier: Apache-2.0
// Amounts of resources by number instead of by name, so that a decision compares integers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"

#include "base/status.h"
#include "net/json.h"

namespace weft::platform {

inline constexpr size_t kCpu = 0;       // in thousandths
inline constexpr size_t kMemory = 1;    // in bytes
inline constexpr size_t kPodSlots = 2;  // pods that a node may hold

// By the number of the resource. What is not there is 0.
using Amounts = absl::InlinedVector<int64_t, 4>;

inline int64_t AmountOf(const Amounts& amounts, size_t resource) {
  return resource < amounts.size() ? amounts[resource] : 0;
}
void SetAmount(Amounts* amounts, size_t resource, int64_t value);
void RaiseAmounts(const Amounts& at_least, Amounts* to);
// These are asked for each node that is looked at, and for each pod that comes or goes.
inline void AddAmounts(const Amounts& more, Amounts* to) {
  if (to->size() < more.size()) to->resize(more.size(), 0);
  int64_t* const sums = to->data();
  for (const int64_t& amount : more) sums[&amount - more.data()] += amount;
}
inline void SubtractAmounts(const Amounts& less, Amounts* from) {
  if (from->size() < less.size()) from->resize(less.size(), 0);
  int64_t* const sums = from->data();
  for (const int64_t& amount : less) sums[&amount - less.data()] -= amount;
}
// What is needed is free; a resource that is not needed does not count.
inline bool AmountsFit(const Amounts& needed, const Amounts& free) {
  const int64_t* const there = free.data();
  const size_t known = free.size();
  size_t resource = 0;
  for (const int64_t amount : needed) {
    if (amount > 0 && amount > (resource < known ? there[resource] : 0)) return false;
    ++resource;
  }
  return true;
}

// The numbers of the names that one cluster uses. Not thread-safe.
class ResourceNames {
 public:
  ResourceNames() : names_{"cpu", "memory", "pods"} {}

  // The number of the name, a new one when it was not known.
  size_t NumberOf(absl::string_view name);
  const std::string& NameOf(size_t number) const { return names_[number]; }
  size_t size() const { return names_.size(); }

 private:
  std::vector<std::string> names_;
};

// Of a mapping such as {"cpu": "500m", "memory": "1Gi"}. The names of GPUs and of shares of them
// are left out: GpuNeeds and NodeDescription hold those. InvalidArgument names the resource.
StatusOr<Amounts> ReadAmounts(const Json* mapping, ResourceNames* names);

// True for the names under which GPUs and parts of them are asked for.
bool IsGpuResource(absl::string_view name);

// For people: "500m" of cpu, "3Gi" of memory, "2" of the rest.
std::string FormatAmount(size_t resource, int64_t amount);

}  // namespace weft::platform
