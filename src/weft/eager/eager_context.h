// SPDX-License-Identifier: Apache-2.0
// All that one program of TensorFlow 2 holds at a task: tensors, functions, and what it has called.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

#include "base/cancellation.h"
#include "base/status.h"
#include "proto/tensorflow/eager.pb.h"
#include "weft/eager/component_functions.h"
#include "weft/eager/program_tasks.h"
#include "weft/graph/graph.h"
#include "weft/graph/node_def.h"
#include "weft/master/master.h"
#include "weft/rendezvous/step_rendezvous.h"
#include "weft/worker/worker.h"

namespace weft::eager {

// What the contexts of a task share; all must outlive them.
struct EagerEnvironment {
  master::Master* master = nullptr;
  worker::Worker* worker = nullptr;
  ProgramTasks* tasks = nullptr;
};

// Where a call's outputs go; none: they come back and are not kept.
inline constexpr int64_t kNotKept = -1;

// Thread-safe. Calls block until they have run; those of one program come one after the other.
class EagerContext {
 public:
  EagerContext(const EagerEnvironment& environment, uint64_t id, absl::Duration keep_alive);
  ~EagerContext();
  EagerContext(const EagerContext&) = delete;
  EagerContext& operator=(const EagerContext&) = delete;

  // Opens its session.
  Status Open();
  // Where tensors lie that the program or other tasks ask for.
  const Ref<rendezvous::StepRendezvous>& rendezvous() const { return rendezvous_; }

  // Runs an op or a function and answers with the shapes of its outputs. NotFound or
  // InvalidArgument names the op, the function or the tensor that is not here.
  Status Run(const tensorflow::eager::Operation& operation, Cancellation* caller,
             tensorflow::eager::QueueResponse* response);
  // Runs a part of a function that the program has cut by devices: `done` runs once, maybe before
  // this returns. `caller` may be gone by then. Holds no thread while it waits for other parts.
  using ComponentDone =
      absl::AnyInvocable<void(StatusOr<tensorflow::eager::RunComponentFunctionResponse>)>;
  void RunComponent(const tensorflow::eager::RunComponentFunctionRequest& request,
                    Cancellation* caller, ComponentDone done);
  // The step of such parts is over.
  void CleanUp(int64_t step);
  // Keeps tensors as the outputs of `op_id`.
  Status Put(const tensorflow::eager::SendTensorOp& sent);
  Status Release(int64_t op_id, int output);
  // The function and those that come with it. InvalidArgument names one that is malformed or
  // differs from the one of its name.
  Status AddFunctions(const tensorflow::eager::RegisterFunctionOp& functions);

  // The program's tasks are others now: what runs over tasks that are gone or elsewhere ends, and
  // calls of it are compiled again.
  void FollowTasks();
  // Someone spoke of it.
  void Touch();
  bool IsExpired() const;
  void set_view(uint64_t view) { view_ = view; }
  uint64_t view() const { return view_; }
  // Ends what runs.
  void Cancel(const Status& why) { cancellation_.Cancel(why); }

 private:
  using Addresses = std::map<cluster::TaskId, std::string>;
  // A call of one kind, as nodes of a session.
  struct Compiled {
    std::shared_ptr<master::MasterSession> session;
    Addresses addresses;   // of its other tasks
    std::vector<int> fed;  // the inputs that are; others are nodes
    std::vector<std::string> feeds, fetches, targets;
  };
  // A session over this task and some others.
  struct Session {
    std::string handle;
    std::shared_ptr<master::MasterSession> session;  // shared with the master's table
    Addresses addresses;                             // of its other tasks
    int64_t version = 0;                             // of its graph
    size_t functions = 0;                            // of those known, that it has
  };
  struct Call {
    std::string op, device;
    AttrMap attrs;
    std::string key;  // tells kinds apart
    bool is_function = false;
    std::vector<Tensor> inputs;
    std::vector<std::string> places;  // of resources at other tasks; empty for all else
  };

  StatusOr<Call> Read(const tensorflow::eager::Operation& operation, Cancellation* caller);
  // Asks the task where it lies, if that is another one.
  StatusOr<Tensor> Find(const tensorflow::eager::RemoteTensorHandle& handle, Cancellation* caller);
  StatusOr<std::shared_ptr<const Compiled>> Compile(const Call& call, Cancellation* caller);
  // The session over this task and those of `devices` that the program has, opened when first
  // needed.
  StatusOr<Session*> SessionOver(const std::set<std::string>& devices, Cancellation* caller)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Where the call's inputs are and what its functions ask for.
  std::set<std::string> DevicesOf(const Call& call, const NodeDef& node) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StatusOr<NodeDef> MakeNode(const Call& call, const std::string& name, int* num_outputs)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StatusOr<std::vector<Tensor>> RunCompiled(const Compiled& compiled, std::vector<Tensor> inputs,
                                            Cancellation* caller);
  Status Send(const Call& call);
  StatusOr<Tensor> Receive(const Call& call, Cancellation* caller);
  StatusOr<tensorflow::eager::RunComponentFunctionResponse> AnswerComponent(
      int64_t op_id, const std::vector<int>& ports, std::vector<Tensor> results);
  // Says it where `error`, of a call, comes of the program's tasks having changed meanwhile; else
  // OK.
  Status WhyGone(const Compiled& compiled, const Status& error) const;
  Status Answer(int64_t op_id, const std::string& device, std::vector<Tensor> outputs,
                tensorflow::eager::QueueResponse* response);

  const EagerEnvironment environment_;
  const uint64_t id_;
  const absl::Duration keep_alive_;
  std::atomic<uint64_t> view_{0};
  Cancellation cancellation_;
  const Ref<rendezvous::StepRendezvous> rendezvous_;
  mutable absl::Mutex mutex_;
  std::map<std::string, Session> sessions_ ABSL_GUARDED_BY(mutex_);  // by their tasks
  Graph library_ ABSL_GUARDED_BY(mutex_);                            // the functions, and no nodes
  std::vector<FunctionDef> functions_ ABSL_GUARDED_BY(mutex_);       // the same, in order
  int64_t next_call_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<std::string, std::shared_ptr<const Compiled>> compiled_
      ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::pair<int64_t, int>, Tensor> tensors_ ABSL_GUARDED_BY(mutex_);
  // Handles of variables of other tasks, once they were asked for.
  absl::flat_hash_map<std::pair<int64_t, int>, Tensor> elsewhere_ ABSL_GUARDED_BY(mutex_);
  absl::Time last_used_ ABSL_GUARDED_BY(mutex_);
  ComponentFunctions components_;
};

}  // namespace weft::eager
