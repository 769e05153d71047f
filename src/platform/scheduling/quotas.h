// SPDX-License-Identifier: Apache-2.0
// Queues, what each may use, and what those of one cohort lend each other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "net/json.h"
#include "platform/scheduling/workload.h"

namespace weft::platform {

struct QueueSpec {
  std::string name;
  std::string cohort;  // empty: it neither lends nor borrows
  double weight = 1;
  std::array<int64_t, 3> quota = {-1, -1, -1};  // as in Usage; -1: no bound
  // How much more than its quota it may have of what others of the cohort leave; -1: no bound.
  std::array<int64_t, 3> borrowing = {-1, -1, -1};
};

// A list of {name, cohort, weight, quota, borrowingLimit}, the last two of {cpu, memory,
// nvidia.com/gpu}. InvalidArgument names the file, the line and the field of each mistake.
StatusOr<std::vector<QueueSpec>> ReadQueues(const Json& list, const std::string& file);

// Thread-compatible. Queue 0 is for all that name no queue or one that is not known; it has no
// quota unless a spec with the name "default" says so.
class Quotas {
 public:
  explicit Quotas(std::vector<QueueSpec> queues = {});

  int NumberOf(absl::string_view name) const;
  bool Knows(absl::string_view name) const;
  // The number of the queue, a new one without a quota where it was not known.
  int Add(const std::string& name);
  const QueueSpec& spec(int queue) const { return queues_[static_cast<size_t>(queue)].spec; }
  const Usage& used(int queue) const { return queues_[static_cast<size_t>(queue)].used; }
  int count() const { return static_cast<int>(queues_.size()); }

  enum class Verdict {
    kWithin,    // its own quota
    kBorrows,   // what others of the cohort leave
    kMustWait,  // others of the cohort have borrowed what is its own
    kOver,
  };
  Verdict Check(int queue, const Usage& more) const;
  // The cohort and the queue have something that makes `queue` wait, and `other` has borrowed.
  bool MayReclaim(int queue, int other) const;
  void Charge(int queue, const Usage& usage, int64_t sign);

  // The greatest part of any resource of `capacity` that the queue has, by its weight.
  double DominantShare(int queue, const Usage& capacity) const;

 private:
  struct Queue {
    QueueSpec spec;
    Usage used;
  };
  bool IsWithin(const Queue& queue, const Usage& more) const;
  bool MayBorrow(const Queue& queue, const Usage& more) const;
  bool CohortHas(const std::string& cohort, const Usage& more) const;

  std::vector<Queue> queues_;
};

}  // namespace weft::platform
