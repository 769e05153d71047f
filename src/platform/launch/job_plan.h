// SPDX-License-Identifier: Apache-2.0
// From a TFJob as a person wrote it to the one that runs on this machine. Pure: touches nothing but
// its arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "base/status.h"
#include "net/json.h"
#include "platform/object/tfjob.h"

namespace weft::platform {

struct LocalTask {
  std::string name;     // "worker-0"
  std::string program;  // the first word of its command
  ReplicaType type = ReplicaType::kWorker;
  RestartPolicy restart_policy = RestartPolicy::kNever;
  bool decides = false;  // the job has succeeded when all of these have exited with 0
  bool serves = false;   // runs `weft server`, which never ends by itself
};

struct LocalJob {
  std::string name;
  // For the store: one container a pod, no limits that the run itself holds it to, no clean-up
  // before it says so.
  Json object;
  std::vector<LocalTask> tasks;
  std::vector<Json> objects;  // what the job needs beside: config maps, secrets, claims
  std::optional<int64_t> backoff_limit;
  std::optional<absl::Duration> deadline;
  std::vector<std::string> notes;  // what of the file has no meaning here, a line each
};

struct LocalSettings {
  std::string file;                      // for messages
  std::vector<std::string> environment;  // where variables come from that are not on this machine
  std::optional<RestartPolicy> restart_policy;  // instead of the job's own
  std::optional<int64_t> backoff_limit;
  std::string working_directory;  // instead of the job's own
  std::vector<Json> documents;    // all of the file
  std::string claim_folder;       // where claims have their data, for a note
  absl::Duration grace = absl::Seconds(10);
};

// InvalidArgument lists what cannot run here and how to write it, with the place in the file.
StatusOr<LocalJob> PlanLocalJob(const TfJob& job, const LocalSettings& settings);

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
