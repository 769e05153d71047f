// SPDX-License-Identifier: Apache-2.0
#include "weft/lease/lease_queue.h"

#include <algorithm>
#include <random>

#include "absl/strings/ascii.h"

namespace weft::lease {

Status QueueSpec::Check() const {
  constexpr size_t kLongestName = 200;
  const bool is_name = !name.empty() && name.size() <= kLongestName &&
                       std::all_of(name.begin(), name.end(), [](char c) {
                         return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' ||
                                c == '_' || c == '.';
                       });
  if (!is_name) {
    return InvalidArgument("The name of a queue is 1 to ", kLongestName,
                           " letters, digits, '-', '_' and '.', got '", name, "'");
  }
  if (records < 1) return InvalidArgument("Queue ", name, ": records is ", records, ", expected 1");
  if (per_lease < 1 || per_lease > records) {
    return InvalidArgument("Queue ", name, ": per_lease is ", per_lease, ", expected 1 to ",
                           records, ", the records");
  }
  if ((records - 1) / per_lease >= LeaseQueue::kMostRanges) {
    return InvalidArgument("Queue ", name, ": ", records, " records in ranges of ", per_lease,
                           " are more than ", LeaseQueue::kMostRanges, " ranges");
  }
  constexpr int64_t kMostEpochs = int64_t{1} << 31;
  if (epochs < 1 || epochs > kMostEpochs)
    return InvalidArgument("Queue ", name, ": epochs is ", epochs, ", expected 1 at least");
  if (lease_seconds < 1) {
    return InvalidArgument("Queue ", name, ": lease_seconds is ", lease_seconds,
                           ", expected 1 at least");
  }
  return absl::OkStatus();
}

int64_t LeaseQueue::RecordsOf(int64_t index) const {
  return std::min(spec_.per_lease, spec_.records - index * spec_.per_lease);
}

bool LeaseQueue::BeginEpoch() {
  if (next_epoch_ >= spec_.epochs) return false;
  Epoch& epoch = epochs_[next_epoch_];
  const int64_t count = spec_.num_ranges();
  epoch.done.resize(static_cast<size_t>(count));
  std::vector<int64_t> order(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) order[static_cast<size_t>(i)] = i;
  if (spec_.seed != 0) {
    // Not std::shuffle: a process of another library must come to the same order.
    std::mt19937_64 random(spec_.seed * 0x9E3779B97F4A7C15u + static_cast<uint64_t>(next_epoch_));
    for (size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[random() % (i + 1)]);
  }
  epoch.to_do.assign(order.begin(), order.end());
  ++next_epoch_;
  return true;
}

LeaseQueue::Taken LeaseQueue::Take(const std::string& worker, absl::Duration now, Lease* lease) {
  Release([&](const Held& held) { return now >= held.until; });
  while (true) {
    for (auto& [number, epoch] : epochs_) {
      if (epoch.to_do.empty()) continue;
      const int64_t index = epoch.to_do.front();
      epoch.to_do.pop_front();
      *lease = {.epoch = number,
                .index = index,
                .begin = index * spec_.per_lease,
                .end = index * spec_.per_lease + RecordsOf(index),
                .number = next_number_++};
      held_[{number, index}] = {.worker = worker,
                                .number = lease->number,
                                .until = now + absl::Seconds(spec_.lease_seconds)};
      return Taken::kLease;
    }
    if (!BeginEpoch()) return held_.empty() ? Taken::kOver : Taken::kWait;
  }
}

StatusOr<bool> LeaseQueue::Finish(const std::string& worker, int64_t epoch, int64_t index,
                                  uint64_t number) {
  if (epoch < 0 || index < 0 || epoch >= next_epoch_ || index >= spec_.num_ranges())
    return NotFound("Queue ", spec_.name, " has no range ", index, " of epoch ", epoch);
  const auto found = epochs_.find(epoch);
  if (found == epochs_.end() || found->second.done[static_cast<size_t>(index)]) return false;
  const auto held = held_.find({epoch, index});
  if (held != held_.end() && (held->second.number != number || held->second.worker != worker)) {
    return FailedPrecondition("Range ", index, " of epoch ", epoch, " of queue ", spec_.name,
                              " is ", held->second.worker, "'s now: ", worker,
                              " was late, or was taken for lost");
  }
  // One that nobody holds was given up, or this process has forgotten: the first who says so did
  // it.
  if (held == held_.end()) {
    std::deque<int64_t>& to_do = found->second.to_do;
    to_do.erase(std::find(to_do.begin(), to_do.end(), index));
  } else {
    held_.erase(held);
  }
  Count({epoch, index});
  return true;
}

void LeaseQueue::Count(const Place& place) {
  const auto [number, index] = place;
  Epoch& epoch = epochs_.at(number);
  epoch.done[static_cast<size_t>(index)] = true;
  ++epoch.num_done;
  records_done_ += RecordsOf(index);
  while (!epochs_.empty() && epochs_.begin()->second.num_done == spec_.num_ranges()) {
    first_epoch_ = epochs_.begin()->first + 1;
    epochs_.erase(epochs_.begin());
  }
}

void LeaseQueue::GiveBack(int64_t epoch, int64_t index, uint64_t number) {
  const auto held = held_.find({epoch, index});
  if (held == held_.end() || held->second.number != number) return;
  Release([&](const Held& each) { return each.number == number; });
}

QueueCounts LeaseQueue::Counts() const {
  QueueCounts counts{.epoch = next_epoch_,
                     .held = static_cast<int64_t>(held_.size()),
                     .records_done = records_done_,
                     .leased_again = leased_again_,
                     .is_over = first_epoch_ >= spec_.epochs};
  for (const auto& [number, epoch] : epochs_)
    counts.to_do += static_cast<int64_t>(epoch.to_do.size());
  return counts;
}

std::vector<std::pair<int64_t, int64_t>> LeaseQueue::Done() const {
  std::vector<Place> done;
  for (const auto& [number, epoch] : epochs_) {
    for (size_t i = 0; i < epoch.done.size(); ++i) {
      if (epoch.done[i]) done.emplace_back(number, static_cast<int64_t>(i));
    }
  }
  return done;
}

Status LeaseQueue::RestoreEpochs(int64_t over) {
  if (over < 0 || over > spec_.epochs || next_epoch_ != 0) {
    return DataLoss("Queue ", spec_.name, " has ", spec_.epochs, " epochs, of which ", over,
                    " cannot be over");
  }
  first_epoch_ = next_epoch_ = over;
  records_done_ = over * spec_.records;
  return absl::OkStatus();
}

Status LeaseQueue::RestoreDone(int64_t epoch, int64_t index) {
  // So many epochs are never under way at once, whatever a file says.
  constexpr int64_t kMostBegun = 64;
  if (epoch < 0 || epoch >= std::min(spec_.epochs, next_epoch_ + kMostBegun) || index < 0 ||
      index >= spec_.num_ranges()) {
    return DataLoss("Queue ", spec_.name, " has no range ", index, " of epoch ", epoch);
  }
  while (next_epoch_ <= epoch) BeginEpoch();
  const auto found = epochs_.find(epoch);
  if (found == epochs_.end() || found->second.done[static_cast<size_t>(index)])
    return absl::OkStatus();
  std::deque<int64_t>& to_do = found->second.to_do;
  to_do.erase(std::find(to_do.begin(), to_do.end(), index));
  Count({epoch, index});
  return absl::OkStatus();
}

}  // namespace weft::lease
