// SPDX-License-Identifier: Apache-2.0
// The parts of functions that a program has cut by devices: what one device does of a call.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"

#include "base/cancellation.h"
#include "base/status.h"
#include "proto/tensorflow/eager.pb.h"
#include "weft/graph/graph.h"
#include "weft/graph/node_def.h"
#include "weft/rendezvous/step_rendezvous.h"
#include "weft/worker/worker.h"

namespace weft::eager {

// Thread-safe. A part is compiled when it is first run.
class ComponentFunctions {
 public:
  using Done = absl::AnyInvocable<void(StatusOr<std::vector<Tensor>>)>;
  struct Call {
    std::string function;
    std::string device;  // for nodes that name none
    AttrMap attrs;
    int64_t step = 0;  // that all parts of the function's call share
    std::vector<Tensor> arguments;
    std::shared_ptr<Cancellation> cancellation;  // shared with who cancels late
  };

  // `session` begins the names of the parts' sessions at the worker. Both pointers must outlive
  // this.
  ComponentFunctions(worker::Worker* worker, rendezvous::TensorSource* source, std::string session);
  ~ComponentFunctions();
  ComponentFunctions(const ComponentFunctions&) = delete;
  ComponentFunctions& operator=(const ComponentFunctions&) = delete;

  // Takes a part and what it calls, instead of an earlier one of its name. InvalidArgument names a
  // function that is malformed.
  Status Add(tensorflow::eager::RegisterFunctionOp function);
  // `done` runs once, maybe before this returns, with the results in their order. NotFound if there
  // is no such part; other errors name the node.
  void Run(Call call, Done done);

 private:
  struct Part {
    FunctionDef function;
    Graph library;
    std::string session;                     // of its own
    std::map<std::string, uint32_t> graphs;  // of the worker, by device
  };
  StatusOr<uint32_t> GraphOf(const Call& call);

  worker::Worker* const worker_;
  rendezvous::TensorSource* const source_;
  const std::string session_;
  absl::Mutex mutex_;
  std::map<std::string, Part> parts_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> sessions_ ABSL_GUARDED_BY(mutex_);  // of all parts there have been
};

}  // namespace weft::eager
