// SPDX-License-Identifier: Apache-2.0
// What runs now and what was best, kept up to date at the end of a terminal.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "platform/search/local_trials.h"
#include "platform/search/study.h"

namespace weft::apps {

// Shows nothing where the stream is no terminal. Not thread-safe; borrows its arguments.
class LiveTable {
 public:
  LiveTable(std::FILE* stream, const platform::Study& study,
            const platform::LocalTrialsOptions& options);
  ~LiveTable() { Clear(); }
  LiveTable(const LiveTable&) = delete;
  LiveTable& operator=(const LiveTable&) = delete;

  // In place of what it showed before; at most five times a second.
  void Show(const std::vector<platform::LocalTrials::Running>& running);
  // Before anybody else writes there.
  void Clear();

 private:
  std::FILE* const stream_;
  const platform::Study& study_;
  const platform::LocalTrialsOptions& options_;
  const bool is_terminal_;
  int lines_ = 0;  // that it shows
  absl::Time last_ = absl::InfinitePast();
};

// The lines, for a terminal of so many columns.
std::vector<std::string> LiveLines(const platform::Study& study,
                                   const platform::LocalTrialsOptions& options,
                                   const std::vector<platform::LocalTrials::Running>& running,
                                   absl::Time now, size_t columns);

}  // namespace weft::apps
