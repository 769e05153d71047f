// SPDX-License-Identifier: Apache-2.0
// What this process is in a job, as TF_CONFIG says, and the life of one task.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"

#include "base/status.h"
#include "weft/cluster/cluster_spec.h"
#include "weft/kernel/op_spec.h"
#include "weft/session/session.h"
#include "weft/train/variable.h"

namespace weft::train {

// A process alone, or one task of a job. Chief, master and workers train; the chief (else worker 0)
// leads.
struct Task {
  cluster::ClusterSpec cluster;  // empty without a job
  cluster::TaskId id;
  int num_ps = 0;
  int num_workers = 1;  // the chief among them
  int worker = 0;       // this one's number among them
  bool distributed = false;
  bool is_ps = false;
  bool is_chief = true;
  bool is_evaluator = false;
  std::string target;  // of sessions: empty, or this task's own server
  // Whether others wait to come into the open group of this key; empty without a server.
  std::function<bool(int32_t group_key)> group_changed;
  const Catalogue* catalogue = nullptr;
  DeviceFactory* devices = nullptr;

  // "/job:worker/task:1"; empty without a job.
  std::string Device() const { return distributed ? id.ToString() : ""; }
  // The device of the n-th of those that train.
  std::string WorkerDevice(int n) const;
  // A session that needs the parameter servers and this task only, so that other workers may come
  // and go.
  StatusOr<std::unique_ptr<session::Session>> NewSession() const;
  // A session over all tasks of the job.
  StatusOr<std::unique_ptr<session::Session>> NewClusterSession() const;
  // Whether the task that leads answers: Unavailable names it and its address. OK for itself and
  // without a job.
  Status CheckChief(absl::Duration timeout = absl::Seconds(5)) const;
  // Variables in turn on the parameter servers; null without any.
  std::unique_ptr<VariablePlacement> Placement() const;
};

// Reads TF_CONFIG; without it the process is alone. InvalidArgument tells what of it is wrong.
StatusOr<Task> TaskFromEnvironment();

struct TaskOptions {
  // Only the chief trains; other workers lend it their devices until they are told to end.
  bool only_chief_trains = false;
  // For programs with ops of their own; null: the standard catalogue. Must outlive the call.
  const Catalogue* catalogue = nullptr;
  // For programs that choose their devices; null: one CPU device. Must outlive the call.
  DeviceFactory* devices = nullptr;
};

// Does this task's part of a job and returns when it is over: starts its server if there is a job,
// then calls `train`; a parameter server waits for SIGTERM or SIGINT instead, an evaluator returns
// at once. WEFT_MEMBERSHIP, WEFT_ELASTIC, WEFT_LEASE_FOLDER and WEFT_SUPERVISED mean for the server
// what they mean for `weft server`. Call it from main, before there are threads.
Status RunTask(const std::function<Status(const Task&)>& train, const TaskOptions& options = {});

}  // namespace weft::train
