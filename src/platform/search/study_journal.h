// SPDX-License-Identifier: Apache-2.0
// What a study on this machine asked and was told, a JSON object a line, so that it goes on after
// its process was killed.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "base/files.h"
#include "net/json.h"
#include "platform/search/study.h"

namespace weft::platform {

// Metrics of a trial by name.
using TrialMetrics = std::map<std::string, double>;

// Appends; each line is with the system before the call returns, and on disk within the next ones:
// what a killed process asked and was told is kept, of a machine without power all but the end.
class StudyJournal {
 public:
  // Opens `path` or begins it with `header`, which says what the study is. What stands there
  // already is told to `study`, and the metrics of its ended trials put into `metrics`; a torn last
  // line is dropped. Of another study none of whose trials has succeeded nothing is kept;
  // FailedPrecondition when some have, naming what differs; InvalidArgument when it is no journal.
  static StatusOr<std::unique_ptr<StudyJournal>> Open(FileSystem& files, const std::string& path,
                                                      const Json& header, Study* study,
                                                      std::map<int64_t, TrialMetrics>* metrics);

  Status Started(const SearchSpace& space, const SearchTrial& trial);
  // `failure` is empty for one that succeeded.
  Status Ended(const SearchTrial& trial, const TrialMetrics& metrics, const std::string& failure);

 private:
  explicit StudyJournal(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {}
  Status Write(const Json& line);
  const std::unique_ptr<WritableFile> file_;
  absl::Time synced_ = absl::InfinitePast();
};

}  // namespace weft::platform
