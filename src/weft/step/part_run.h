// SPDX-License-Identifier: Apache-2.0
// One task's part of one step, from its arguments to its report.
#pragma once

#include <memory>
#include <vector>

#include "absl/functional/any_invocable.h"

#include "base/cancellation.h"
#include "base/status.h"
#include "weft/kernel/rendezvous.h"
#include "weft/step/signature.h"
#include "weft/step/task_part.h"

namespace weft::step {

// What all steps of a task share. Borrowed: must outlive them.
struct TaskEnvironment {
  ThreadPool* pool = nullptr;
  FileSystem* files = nullptr;
  WaitRegistry* waits = nullptr;
  bool single_threaded = false;  // kernels must not share work over threads
};

struct PartCall {
  std::shared_ptr<const TaskPart> part;  // shared: it may be dropped while it runs
  int64_t step = 0;
  std::vector<Tensor> arguments;
  // Required; must live until `done` is called. Cancelled with the part's first failure.
  Cancellation* cancellation = nullptr;
  Ref<Rendezvous> rendezvous;  // required where the part exchanges tensors
  bool trace = false;
  bool partition_graphs = false;
};

struct PartReport {
  Status status;
  std::vector<Tensor> results;
  RunMetadata metadata;
};
using PartDone = absl::AnyInvocable<void(PartReport)>;

// Runs the pieces of all devices beside each other. `done` runs once, maybe before this returns,
// when nothing of the part runs any more.
void RunTaskPart(const TaskEnvironment& environment, PartCall call, PartDone done);

}  // namespace weft::step
