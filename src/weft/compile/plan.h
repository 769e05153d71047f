// SPDX-License-Identifier: Apache-2.0
// The Plan: one device's part of a step as a flat array of instructions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"

#include "base/status.h"
#include "weft/compile/frames.h"
#include "weft/graph/graph.h"
#include "weft/kernel/kernel_registry.h"

namespace weft::compile {

class Plan;

using weft::InstructionKind;

// Tells apart the functions of a library with the attributes they are called with: calls with the
// same share the state of the body.
std::string ScopeOf(const FunctionRef& function);

// A read of a variable through a reference edge that ends in a plain input: the snapshot is put
// into scratch slot `scratch` before the kernel runs.
struct ReferenceRead {
  int input = 0;
  int slot = 0;
  int scratch = 0;
};

struct Instruction {
  InstructionKind kind = InstructionKind::kKernel;
  KernelCost cost = KernelCost::kInline;
  bool is_async = false;
  bool changes_variable = false;
  const Node* node = nullptr;
  OpKernel* kernel = nullptr;
  int index = 0;            // of a kArgument or kResult
  std::vector<int> inputs;  // slots
  int first_output = 0;     // slots first_output .. + num_outputs
  int num_outputs = 0;
  int num_dependencies = 0;  // producers of inputs and control inputs, each edge once
  int num_controls = 0;      // those of them that are control inputs
  int frame = 0;             // of Plan::frames(): the one that the outputs of an Enter are in
  // Instructions that wait for this one: (instruction, its input or kControlPort, our port).
  struct Dependent {
    int instruction = 0;
    int input = 0;
    int port = 0;
  };
  std::vector<Dependent> dependents;
  std::vector<ReferenceRead> reference_reads;
  std::vector<int> releases;  // slots whose last reader this is, in instruction order
  std::vector<const Plan*> children;
};

// Kernels of stateful nodes, shared by the signatures of one session so that a random generator or
// a cached resource goes on from step to step. Thread-safe.
class KernelCache {
 public:
  // The kernel made before for the node of this name in `scope`, or `make`'s.
  StatusOr<std::shared_ptr<OpKernel>> GetOrMake(
      const std::string& scope, const Node& node,
      absl::FunctionRef<StatusOr<std::unique_ptr<OpKernel>>()> make);

 private:
  absl::Mutex mutex_;
  // By scope and name.
  absl::flat_hash_map<std::pair<std::string, std::string>, std::shared_ptr<OpKernel>> kernels_
      ABSL_GUARDED_BY(mutex_);
};

struct PlanOptions {
  const KernelRegistry* kernels = nullptr;
  Device* device = nullptr;
  KernelCache* cache = nullptr;  // null: every kernel is the plan's own
  std::string scope;             // the function whose body this is: names are unique in it only
  bool results_on_host = false;  // of a function on a device with a memory of its own
  bool fold = true;
  bool fuse = true;
};

// Immutable once made; shared by the steps that run it. Owns its graph and kernels; devices and
// registries must outlive it.
class Plan {
 public:
  // Compiles all nodes of `graph`, whose arguments and results are `_Arg` and `_Retval` nodes.
  // Errors name the node: no kernel, bad attributes, a cycle.
  static StatusOr<std::unique_ptr<Plan>> Compile(Graph graph, const PlanOptions& options);

  // The plan of a function of this graph's library, compiled as this plan was. Errors name it.
  StatusOr<std::unique_ptr<Plan>> CompileFunction(const FunctionRef& function,
                                                  bool results_on_host = false) const;

  // A plan that computes nothing and has the same library of functions. What it compiles shares no
  // kernels with anybody.
  std::shared_ptr<const Plan> LibraryAlone() const { return LibraryAlone(graph_); }
  // The same with the library of `other`.
  std::shared_ptr<const Plan> LibraryAlone(const Graph& other) const;

  const std::vector<Instruction>& instructions() const { return instructions_; }
  int num_slots() const { return num_slots_; }
  int num_scratch() const { return num_scratch_; }
  const std::vector<int>& uses() const { return uses_; }  // readers of each slot
  const std::vector<DType>& argument_types() const { return argument_types_; }
  const std::vector<DType>& result_types() const { return result_types_; }
  // No instruction waits or branches: running them in order is a step.
  bool is_straight_line() const { return is_straight_line_; }
  // Some kernel is given a function by its name.
  bool calls_functions() const { return calls_functions_; }
  // The graph itself and its loops of Enter and Exit nodes.
  const std::vector<LoopFrame>& frames() const { return frames_; }
  const Graph& graph() const { return graph_; }
  Device* device() const { return options_.device; }
  // The step ends when its device has done what it was given: true of whole steps (not of the
  // functions they call) on a device with a memory of its own.
  bool ends_with_sync() const { return ends_with_sync_; }

 private:
  friend class PlanBuilder;
  Plan(Graph graph, const PlanOptions& options) : graph_(std::move(graph)), options_(options) {}

  Graph graph_;
  const PlanOptions options_;
  std::vector<Instruction> instructions_;
  std::vector<std::shared_ptr<OpKernel>> kernels_;  // shared with the session's KernelCache
  std::vector<std::unique_ptr<Plan>> children_;
  std::vector<int> uses_;
  std::vector<DType> argument_types_;
  std::vector<DType> result_types_;
  int num_slots_ = 0;
  int num_scratch_ = 0;
  bool is_straight_line_ = true;
  bool ends_with_sync_ = false;
  bool calls_functions_ = false;
  std::vector<LoopFrame> frames_;
};

}  // namespace weft::compile
