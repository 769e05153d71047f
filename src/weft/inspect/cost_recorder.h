// SPDX-License-Identifier: Apache-2.0
// Collects the traces of a session's steps into a cost file, and tells of one now and then.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

#include "base/files.h"
#include "weft/executor/step_trace.h"
#include "weft/graph/node_def.h"
#include "weft/inspect/cost_file.h"
#include "weft/tensor/tensor.h"

namespace weft::inspect {

// Sums the traced steps of one kind: a session also initialises, evaluates and saves. Merges what
// is traced more than once a step (loops) and joins what a tensor left as with what it came as.
class StepKind {
 public:
  // `nodes` are those of the step's graphs, as far as they are known, by name.
  void Add(const std::vector<executor::NodeTrace>& trace, absl::Duration step,
           const std::map<std::string, NodeDef>& nodes);
  double seconds() const { return step_seconds_; }
  int64_t steps() const { return steps_; }
  StepCosts Costs() const;

 private:
  struct Times {
    OpCost op;
    double sum = 0;
    double least = -1;
  };
  int64_t steps_ = 0;
  double step_seconds_ = 0;
  double least_seconds_ = -1;
  std::vector<std::string> order_;
  std::map<std::string, Times> ops_;
  std::map<std::pair<std::string, std::string>, LinkCost> links_;  // sums
};

// Whether WEFT_SHOW_STEPS is set: then a recorder tells of one of its steps in the log
// (step_line.h), of the fifth, of one a second later, and then after pauses that double up to half
// a minute.
bool ShowsSteps();

// Thread-safe. Writes the file now and then and when it goes, none where its path is empty; of the
// kinds of steps that ran more than once, that which took the most time is in it. A file that
// cannot be written is a line in the log: it must end no step.
class CostRecorder {
 public:
  explicit CostRecorder(std::string path, bool shows_steps = ShowsSteps());
  ~CostRecorder();
  // Whether the next step shall be traced: not the first ones, which still lay out their memory,
  // and not for ever.
  bool Wants();
  // Whether its graphs shall come with it: they tell which output of an op is read and how large
  // variables are.
  bool WantsGraphs();
  void Add(const std::vector<executor::NodeTrace>& trace, const std::vector<GraphDef>& graphs,
           absl::Duration step);

 private:
  void Write() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool ShallShow() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  const bool shows_steps_;
  RealFileSystem files_;
  absl::Mutex mutex_;
  absl::Time shown_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Duration period_ ABSL_GUARDED_BY(mutex_);
  int64_t asked_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t traced_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t written_ ABSL_GUARDED_BY(mutex_) = 0;                   // traced_ at that time
  std::map<std::string, NodeDef> nodes_ ABSL_GUARDED_BY(mutex_);  // of graphs, without values
  std::map<uint64_t, StepKind> kinds_ ABSL_GUARDED_BY(mutex_);
};

// What is fed to a step, as if an op had made it: traces know only who reads it. "x:0" is fed to
// what the graph then calls "_arg_x_0".
std::vector<executor::NodeTrace> TracesOfFeeds(
    const std::vector<std::pair<std::string, Tensor>>& feeds);

// `path` for one task of several, so that they do not write over each other: "costs.json" becomes
// "costs-worker-0.json".
std::string CostPathOfTask(const std::string& path, const std::string& job, int index);

}  // namespace weft::inspect
