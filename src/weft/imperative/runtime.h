// SPDX-License-Identifier: Apache-2.0
// Runs ops one at a time on values, as soon as they are called.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"

#include "base/cancellation.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/status.h"
#include "base/threads.h"
#include "base/waits.h"
#include "weft/graph/builder.h"
#include "weft/imperative/array.h"
#include "weft/imperative/op_kind.h"
#include "weft/kernel/kernel_context.h"
#include "weft/kernel/op_spec.h"
#include "weft/step/part_run.h"

namespace weft::imperative {

class Tape;
class Tracing;
class GraphCall;

// An argument of an op: one array, or a list of them.
class Input {
 public:
  Input(Array one) { arrays_.push_back(std::move(one)); }  // NOLINT(google-explicit-constructor)
  Input(const std::vector<Array>& list)                    // NOLINT(google-explicit-constructor)
      : arrays_(list.begin(), list.end()), is_list_(true) {}
  absl::Span<const Array> arrays() const { return arrays_; }
  bool is_list() const { return is_list_; }

 private:
  absl::InlinedVector<Array, 1> arrays_;  // most inputs are one: a call allocates nothing for them
  bool is_list_ = false;
};

struct RuntimeOptions {
  const Catalogue* catalogue = nullptr;  // required; outlives the runtime
  DeviceFactory* devices = nullptr;      // required; devices that work in the host's memory
  int num_threads = 0;                   // 0: the cores
};

// Not thread-safe: a thread makes one of its own. The first error sticks, as with GraphBuilder:
// calls behind it give nothing, and status() tells it.
//   Array y = run.Op("MatMul", {x, w}, {{"transpose_b", true}});
class Runtime {
 public:
  // InvalidArgument without devices, Unimplemented for devices with a memory of their own.
  static StatusOr<std::unique_ptr<Runtime>> Make(const RuntimeOptions& options);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // Output 0. Type attributes and counts are taken from the inputs where `attrs` does not say.
  Array Op(absl::string_view op, absl::Span<const Input> inputs, Attrs attrs = {});
  // All outputs.
  std::vector<Array> Outputs(absl::string_view op, absl::Span<const Input> inputs,
                             Attrs attrs = {});

  const Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }
  void Fail(Status status);
  // The error, and none from now on.
  Status TakeStatus() { return std::exchange(status_, absl::OkStatus()); }

  // Later ops run there: "/device:CPU:1", or "" for the first device. InvalidArgument names those
  // that there are.
  Status SetDevice(const std::string& device);
  std::vector<std::string> Devices() const;

 private:
  friend class Tape;
  friend class GraphCall;
  friend class Backward;
  friend class TracedFunction;
  friend class Tracing;
  friend class Variable;

  explicit Runtime(const RuntimeOptions& options);
  Status MakeDevices(DeviceFactory& factory);
  StatusOr<const OpKind*> KindOf(absl::string_view op, absl::Span<const Input> inputs, Attrs attrs);
  StatusOr<const OpKind*> MakeKind(std::string key, absl::string_view op,
                                   absl::Span<const Input> inputs, Attrs attrs);
  StatusOr<const OpKind*> KindOfCall(const OpCall& call);
  StatusOr<const OpKind*> AddKind(std::string key, OpCall call);
  // Runs it, or adds it to what is traced, and tells the tapes.
  StatusOr<std::vector<Array>> Call(const OpKind& kind, absl::Span<const Array> inputs);
  StatusOr<std::vector<Tensor>> Compute(const OpKind& kind, absl::Span<const Array> inputs);
  int64_t NextName() { return next_name_++; }

  const Catalogue& catalogue_;
  ComputePool pool_;
  RealClock clock_;
  WaitRegistry waits_;
  RealFileSystem files_;
  Cancellation cancellation_;
  ResourceManager step_resources_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<StepEnvironment> environments_;  // by device
  step::TaskEnvironment task_;
  step::SessionDevices session_devices_;
  size_t device_ = 0;
  Status status_;
  absl::flat_hash_map<std::string, std::unique_ptr<OpKind>> kinds_;
  std::string key_;  // of the call that is looked up now
  std::vector<Tape*> tapes_;
  Tracing* tracing_ = nullptr;
  int64_t next_step_ = 1;
  int64_t next_name_ = 0;
};

}  // namespace weft::imperative
