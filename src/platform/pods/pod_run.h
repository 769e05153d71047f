// SPDX-License-Identifier: Apache-2.0
// One pod as processes of this machine: what starts when, when it is over, what its status says.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <signal.h>

#include "absl/time/time.h"

#include "platform/pods/container_hooks.h"
#include "platform/pods/container_probes.h"
#include "platform/pods/container_run.h"
#include "platform/pods/container_standing.h"
#include "platform/pods/pod_volumes.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// Makes the command of one container of the pod.
using CommandMaker =
    std::function<StatusOr<ContainerCommand>(const Json& pod, const Json& container)>;

// What a pod gets beside its commands. Borrowed; each may be null.
struct PodKeeping {
  ThreadPool* probe_pool = nullptr;  // null: no probes are tried
  ThreadPool* hook_pool = nullptr;   // null: nothing is done after a start and before an end
  Confiner* confiner = nullptr;      // null: nothing holds it to its resources
  PodVolumes* volumes = nullptr;     // null: its containers mount nothing
  // What is not there yet may come: containers wait for it. Else they have failed.
  bool waits = true;
  // Something that its owner may want to read in its events; `type` is "Normal" or "Warning".
  std::function<void(const Json& pod, const char* type, const char* reason,
                     const std::string& message)>
      tell;
};

// Not thread-safe. Its destructor kills what runs.
class PodRun {
 public:
  using Fate = ContainerFate;

  // The log folder in `output` is the pod's own. What the pod's status says ran before is lost
  // (exit code 137).
  PodRun(ObjectPtr pod, const ContainerOutput& output, const RestartPacing& pacing, absl::Time now,
         const PodKeeping& keeping = {});

  // Starts what may start now, ends what must end. To be called when something happened and at
  // NextDue.
  void Step(const CommandMaker& maker, ProcessGuard* guard, absl::Duration monotonic_now,
            absl::Time now);
  // It shall end: `signal` now, SIGKILL after `grace`.
  void Terminate(absl::Duration grace, absl::Time now, int signal = SIGTERM);
  // To all that runs.
  void Signal(int signal);
  // A newer version of the object, for its metadata.
  void SetPod(ObjectPtr pod) { pod_ = std::move(pod); }

  const ObjectPtr& pod() const { return pod_; }
  bool is_terminating() const { return is_terminating_; }
  // No process is left and none will come.
  bool IsOver() const;
  // Init containers first.
  const std::vector<std::unique_ptr<ContainerRun>>& containers() const { return containers_; }
  Fate FateOf(const ContainerRun& container) const;
  // When Step has something to do on its own (wall clock); InfiniteFuture: never.
  absl::Time NextDue() const;
  absl::Duration OutputDue() const;
  std::vector<int> Descriptors() const;
  bool Owns(pid_t pid) const;
  // The whole of the pod's status.
  Json MakeStatus() const;

 private:
  // The signal comes when what comes before an end is done.
  void AskToEnd(ContainerRun* container, int signal, absl::Time now);
  void StepHooks(absl::Time now);
  void Tell(const ContainerRun& container, const char* reason, const std::string& message);
  // Why it could not start, and that it waits before it is started again.
  void TellOfEnd(const ContainerRun& container, absl::Time now);
  void StepProbes(ContainerRun* container, ProcessGuard* guard, absl::Time now);
  void StartDue(const CommandMaker& maker, ProcessGuard* guard, absl::Time now);
  bool WillRestart(const ContainerRun& container) const;
  ContainerStandings Standings() const;
  void WindDown(absl::Time now);
  std::string Phase() const;
  const Json* SpecOf(const ContainerRun& container) const;
  void StartContainer(ContainerRun* container, const CommandMaker& maker, ProcessGuard* guard,
                      absl::Time now);
  // It cannot start: for now, if that may change.
  void Hinder(ContainerRun* container, const char* reason, const char* event, const Status& why,
              absl::Time now);

  ObjectPtr pod_;
  std::vector<std::unique_ptr<ContainerRun>> containers_;  // init containers first
  absl::Time started_;
  bool is_terminating_ = false;
  bool is_overdue_ = false;              // it has run for longer than it may
  bool is_winding_down_ = false;         // the main ones have ended, the sidecars shall
  const ContainerRun* asked_ = nullptr;  // the sidecar that was asked to end
  absl::Time kill_time_ = absl::InfiniteFuture();
  const PodKeeping keeping_;
  // Of those that run, where they have any.
  std::map<const ContainerRun*, std::unique_ptr<ContainerProbes>> probes_;
  std::map<const ContainerRun*, std::unique_ptr<ContainerHooks>> hooks_;
  // Of a container that waits for what it needs to start.
  struct Obstacle {
    absl::Time next_try;
    absl::Duration pause;
    std::string told;
  };
  std::map<const ContainerRun*, Obstacle> obstacles_;
};

}  // namespace weft::platform
