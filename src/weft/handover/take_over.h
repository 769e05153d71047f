// SPDX-License-Identifier: Apache-2.0
// A task as its next process: what the variables of the one before hold comes here, then the task.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "base/cancellation.h"
#include "base/status.h"
#include "weft/handover/byte_stream.h"
#include "weft/kernel/device.h"

namespace weft::handover {

struct TakeOverOptions {
  StreamOptions stream;
  std::string from;        // "host:port" where the process answers that has the task now
  bool has_begun = false;  // it has, so that it has ended where nobody listens there
  std::string address;     // the same of this one
  std::optional<JobIdentity> identity;
  std::vector<Device*> devices;
  Cancellation* stopping = nullptr;
  // The variables are here, and no step has come yet; with the incarnations that the task had
  // before, and the leases that it keeps, as HandoverSourceOptions::leaves gave them.
  std::function<Status(const std::vector<uint64_t>& incarnations, const std::string& leases)>
      have_all;
  // Whether a master has come here, which only the old process can have sent.
  std::function<bool()> is_known;
};

struct TakenOver {
  int64_t variables = 0;
  uint64_t bytes = 0;       // of what they hold
  uint64_t last_bytes = 0;  // of what went over while steps were held
  int rounds = 0;
  absl::Duration pause;  // while steps were held
};

// Blocks; this process must answer calls already. An error leaves the task where it was, but for
// the case that the old process falls silent in the very moment when it gives the task away, and
// no master comes here either.
StatusOr<TakenOver> TakeOver(const TakeOverOptions& options);

// Whether a process answers at `options.from`. Blocks, for seconds at most.
bool IsSourceThere(const TakeOverOptions& options);

}  // namespace weft::handover
