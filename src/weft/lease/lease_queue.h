// SPDX-License-Identifier: Apache-2.0
// The ranges of one data set: to do, held by a worker, or done.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"

#include "base/status.h"

namespace weft::lease {

struct QueueSpec {
  std::string name;             // letters, digits, '-', '_', '.'
  int64_t records = 0;          // of the data set
  int64_t per_lease = 0;        // records of one range; the last may have fewer
  int64_t epochs = 1;           // how often each record is used
  uint64_t seed = 0;            // of the order of ranges, another one in each epoch; 0: as they lie
  int64_t lease_seconds = 600;  // a worker that has not reported by then has lost the range

  bool operator==(const QueueSpec&) const = default;
  // InvalidArgument that names the field.
  Status Check() const;
  int64_t num_ranges() const { return (records + per_lease - 1) / per_lease; }
};

// A range of records, [begin, end), for one worker.
struct Lease {
  int64_t epoch = 0;
  int64_t index = 0;  // of the range
  int64_t begin = 0;
  int64_t end = 0;
  uint64_t number = 0;  // no two leases have the same
};

struct QueueCounts {
  int64_t epoch = 0;  // that begins now, or epochs when all have begun
  int64_t to_do = 0;  // ranges of the epochs that have begun
  int64_t held = 0;
  int64_t records_done = 0;  // of all epochs
  int64_t leased_again = 0;  // ranges that a worker did not finish
  bool is_over = false;
};

// Not thread-safe. `now` is of a clock that does not go back.
class LeaseQueue {
 public:
  static constexpr int64_t kMostRanges = int64_t{1} << 22;

  // `spec` is one that Check allows.
  explicit LeaseQueue(QueueSpec spec) : spec_(std::move(spec)) {}

  const QueueSpec& spec() const { return spec_; }
  enum class Taken { kLease, kWait, kOver };
  // A range for the worker; kWait: all are held, one may come back; kOver: every record is done.
  Taken Take(const std::string& worker, absl::Duration now, Lease* lease);
  // True if the range counts as done from now on, false if it did already. FailedPrecondition if it
  // is another worker's now, NotFound if there is no such range.
  StatusOr<bool> Finish(const std::string& worker, int64_t epoch, int64_t index, uint64_t number);
  // The range is to do again. Without effect if it is not the worker's.
  void GiveBack(int64_t epoch, int64_t index, uint64_t number);
  // All that `is_lost` names hold.
  template <typename Predicate>
  int WorkersLost(Predicate is_lost) {
    return Release([&](const Held& held) { return is_lost(held.worker); });
  }
  // The same of what they took before `taken_before`.
  template <typename Predicate>
  int WorkersGone(absl::Duration taken_before, Predicate is_gone) {
    return Release([&](const Held& held) {
      return held.until - absl::Seconds(spec_.lease_seconds) < taken_before && is_gone(held.worker);
    });
  }
  QueueCounts Counts() const;
  // Ranges of epochs that have begun and are not over, (epoch, index), that are done; and how many
  // epochs are over.
  std::vector<std::pair<int64_t, int64_t>> Done() const;
  int64_t epochs_over() const { return first_epoch_; }
  // From a journal: the first epochs are over, or a range is done.
  Status RestoreEpochs(int64_t over);
  Status RestoreDone(int64_t epoch, int64_t index);

 private:
  struct Held {
    std::string worker;
    uint64_t number = 0;
    absl::Duration until;
  };
  struct Epoch {
    std::vector<bool> done;
    int64_t num_done = 0;
    std::deque<int64_t> to_do;
  };
  using Place = std::pair<int64_t, int64_t>;  // epoch and range

  template <typename Predicate>
  int Release(Predicate is_released) {
    int count = 0;
    for (auto it = held_.begin(); it != held_.end();) {
      if (is_released(it->second)) {
        epochs_.at(it->first.first).to_do.push_front(it->first.second);
        it = held_.erase(it);
        ++count;
      } else {
        ++it;
      }
    }
    leased_again_ += count;
    return count;
  }
  bool BeginEpoch();
  void Count(const Place& place);
  int64_t RecordsOf(int64_t index) const;

  const QueueSpec spec_;
  int64_t first_epoch_ = 0;  // all before are over
  int64_t next_epoch_ = 0;
  std::map<int64_t, Epoch> epochs_;  // that have begun and are not over
  std::map<Place, Held> held_;
  uint64_t next_number_ = 1;
  int64_t records_done_ = 0;
  int64_t leased_again_ = 0;
};

}  // namespace weft::lease
