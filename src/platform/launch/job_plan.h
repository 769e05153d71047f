// SPDX-License-Identifier: Apache-2.0
// From a TFJob to the processes that it means on this machine. Pure: touches nothing but its
// arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "base/status.h"
#include "platform/object/tfjob.h"

namespace weft::platform {

struct LocalTask {
  std::string name;  // "worker-0"
  ReplicaType type = ReplicaType::kWorker;
  int64_t index = 0;
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // "NAME=value", all of it
  std::string working_directory;         // empty: ours
  RestartPolicy restart_policy = RestartPolicy::kNever;
};

struct LocalJob {
  std::string name;
  TfJobVersion version = TfJobVersion::kV1;
  std::vector<LocalTask> tasks;
  std::vector<size_t> deciding_tasks;  // the job succeeds when all of these have exited with 0
  std::optional<int64_t> backoff_limit;
  std::optional<absl::Duration> deadline;
  std::vector<std::string> notes;  // what of the file has no meaning here, a line each
};

struct LocalSettings {
  std::string file;                             // for messages
  std::vector<std::string> environment;         // what tasks inherit
  std::string program_folder;                   // goes to the front of their PATH; may be empty
  std::optional<RestartPolicy> restart_policy;  // instead of the job's own
  std::optional<int64_t> backoff_limit;
  std::string working_directory;  // instead of the job's own
};

// How many ports PlanLocalJob wants: one a task of the cluster, evaluators have none.
int CountPorts(const TfJob& job);

// InvalidArgument lists what cannot run here and how to write it, with the place in the file.
StatusOr<LocalJob> PlanLocalJob(const TfJob& job, const LocalSettings& settings,
                                const std::vector<int>& ports);

// A job of one program, as `weft run --ps 1 --workers 2 -- program` describes it: ExitCode
// restarts.
struct ProgramJob {
  int64_t ps = 0;
  int64_t workers = 0;
  bool chief = false;
  bool evaluator = false;
  std::vector<std::string> command;
};
StatusOr<TfJob> MakeProgramJob(const ProgramJob& program);

}  // namespace weft::platform
