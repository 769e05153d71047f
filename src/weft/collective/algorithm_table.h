// SPDX-License-Identifier: Apache-2.0
// Which algorithm was measured to be the fastest for a reduction: by tasks, hosts and bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "base/status.h"
#include "weft/collective/network.h"
#include "weft/collective/schedule.h"

namespace weft::collective {

struct AlgorithmTable {
  struct Row {
    int tasks = 0;
    int hosts = 0;
    int64_t most_bytes = 0;  // that each rank gives; the row with the least that is enough counts
    Algorithm algorithm = Algorithm::kNone;
  };
  std::vector<Row> rows;

  // One line a row, "tasks hosts bytes algorithm", after a line that says so; "#" begins a comment.
  // DataLoss, with the number of the line, for anything else.
  static StatusOr<AlgorithmTable> Parse(absl::string_view text);
  std::string ToText() const;

  // The rows for groups of so many tasks, into the news of one; and what a task takes from it.
  void Tell(int tasks, CollectiveMessage* group) const;
  static std::vector<MeasuredChoice> Told(const CollectiveMessage& group, const Topology& topology);
};

}  // namespace weft::collective
