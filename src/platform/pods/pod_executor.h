// SPDX-License-Identifier: Apache-2.0
// Runs the pods of a store as processes of this machine.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"

#include "base/clock.h"
#include "base/posix_file.h"
#include "base/subprocess.h"
#include "base/threads.h"
#include "net/socket_address.h"
#include "platform/pods/confinement.h"
#include "platform/pods/pod_run.h"
#include "platform/pods/pod_volumes.h"
#include "platform/pods/service_addresses.h"
#include "platform/reconcile/event_recorder.h"
#include "platform/reconcile/informer.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// One thread that joins the store as a node, or as several: starts the containers of the pods that
// are bound there, keeps their logs and writes their status. When it ends so do the processes.
// Borrows store, clock and guard.
class PodExecutor {
 public:
  struct Options {
    ObjectStore* store = nullptr;
    const Clock* clock = nullptr;
    ProcessGuard* guard = nullptr;
    std::string node_name = "local";
    // Several nodes in place of that one: Node objects, of which labels, annotations, taints and
    // allocatable amounts are shown beside what this machine has.
    std::vector<Json> nodes;
    ProcessorTopology topology;   // of this machine's processors
    bool takes_all_pods = false;  // there is one node and no scheduler: what has none is ours
    // The nodes as they are now, asked for every few seconds; null: they stay as they are.
    std::function<std::vector<Json>()> look_at_machine;
    bool has_heartbeat = false;  // a cluster takes nodes that say nothing for dead
    std::string
        log_folder;  // <folder>/<pod's uid>/<container>/<restart>.log; empty: no logs are kept
    // What else happens to what containers print; its log_folder is not used. Called on the
    // executor's thread.
    ContainerOutput output;
    std::function<void(const Json& pod, int descriptor, const std::vector<std::string>& lines)>
        listener;
    RestartPacing pacing;
    std::vector<std::string> environment;  // what every container inherits
    std::string working_directory;         // of containers that name none
    std::string volume_folder;             // of pods that run; empty: nothing is mounted
    std::string claim_folder;              // of PersistentVolumeClaims; empty: they are a cluster's
    bool waits = true;  // for objects that a pod needs and that are not there yet
  };
  explicit PodExecutor(Options options);
  ~PodExecutor();
  PodExecutor(const PodExecutor&) = delete;
  PodExecutor& operator=(const PodExecutor&) = delete;

  void Start();

  // As the executor last saw it, without a call: NotFound when it has not. From any thread.
  StatusOr<ObjectPtr> FindPod(const ObjectName& name) const;

  // A container that runs now, for programs beside it and for what it uses.
  struct Running {
    ObjectPtr pod;
    std::string container;
    pid_t pid = 0;
    ContainerCommand command;
    std::vector<int> processors;  // empty: all
    OwnedFd control_group;        // as in SpawnOptions; closed: none
  };
  // Of one pod, or of all without their commands (null). From any thread: the executor's own
  // answers, Unavailable when it does not come to it.
  StatusOr<std::vector<Running>> ListRunning(const ObjectName* pod);
  // Streams of a container that runs: those of ContainerRun::Attach. From any thread, as above.
  StatusOr<ContainerStreams> Attach(const ObjectName& pod, const std::string& container,
                                    bool takes_input);
  // Whether pods of that node run here.
  bool IsOwnNode(const std::string& node) const;
  // Where what listens on this port of the pod is reached on this machine: its own, or the one that
  // its service got. From any thread, as above.
  StatusOr<SocketAddress> LocalPortOf(const ObjectName& pod, int port);

  // Where the log of a pod's container is. FailedPrecondition while it has not begun.
  static StatusOr<std::string> LogPath(const std::string& log_folder, const Json& pod,
                                       const std::string& container, bool is_previous);

 private:
  using Key = std::pair<std::string, std::string>;
  // On the executor's thread.
  Status Ask(absl::AnyInvocable<void()> question);
  void AnswerQuestions();
  std::vector<Running> FindRunning(const ObjectName* pod) const;
  int FindLocalPort(const Json& pod, int port) const;
  void Run();
  void Join();
  void LookAtMachine();
  void TellOfLostDevices();
  std::set<Key> TakeChanged();
  void DropLogs();
  void ComeAgain(const Json& pod);
  void Look(const Key& key);
  void Bind(const Json& pod);
  Status Show(const Json& node);
  void Begin(const ObjectPtr& pod);
  void KeepVolumes();
  void StepAll();
  void WriteStatus(const std::string& uid);
  void Remove(const std::string& uid);
  void FinishDeletion(const Json& pod);
  void WaitForNews();
  void Wake();

  const Options options_;
  ObjectStore* const store_;
  std::map<std::string, Json> nodes_;  // that this machine is, by name; of the thread
  EventRecorder events_;
  const absl::Time begun_;
  ServiceAddresses services_;
  ThreadPool probes_;
  ThreadPool hooks_;
  Confiner confiner_;
  std::unique_ptr<PodVolumes> volumes_;  // null: nothing is mounted; before the runs, which use it
  bool has_swept_ = false;
  bool is_behind_ = false;  // some pods have not had their turn
  const OwnedFd wake_;
  std::atomic<bool> stopping_{false};
  absl::Mutex mutex_;
  std::set<Key> changed_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> gone_ ABSL_GUARDED_BY(mutex_);  // uids whose logs go
  std::vector<absl::AnyInvocable<void()>> questions_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::unique_ptr<PodRun>> runs_;  // by uid; of the thread
  std::map<Key, std::string> uids_;                      // of runs_, by namespace and name
  // Of thousands of pods few have something to do at once: those are stirred, and all have their
  // turn a few times a second.
  struct Turn {
    absl::Time due;
    absl::Duration output_due;
  };
  std::map<const PodRun*, Turn> turns_;
  std::set<std::string> stirred_;  // uids
  absl::Duration next_sweep_ = -absl::InfiniteDuration();
  std::map<std::string, Json> written_;  // the status that the store has, by uid
  // Devices that pods had and have lost, and since when, by uid.
  std::map<std::string, std::pair<std::vector<std::string>, absl::Time>> lost_;
  absl::Duration next_look_ = -absl::InfiniteDuration();
  absl::Duration next_join_ = -absl::InfiniteDuration();
  Informer pods_;
  std::unique_ptr<Thread> thread_;  // last: it uses all of the above
};

}  // namespace weft::platform
