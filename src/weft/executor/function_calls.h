// SPDX-License-Identifier: Apache-2.0
// Functions that kernels call by name: compiled when they are first called, and kept with the plan
// whose kernels call them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"

#include "base/threads.h"
#include "weft/compile/plan.h"
#include "weft/executor/plan_runner.h"
#include "weft/kernel/function_library.h"

namespace weft::executor {

// The functions of one plan's library on the plan's device, by name and attributes. Thread-safe;
// outlives the steps that call them.
class FunctionTable {
 public:
  FunctionTable(const compile::Plan* plan, ThreadPool* pool, const ScheduleOptions& options)
      : plan_(plan), pool_(pool), options_(options) {}

  // Errors name the function: NotFound, or what is wrong with its body.
  StatusOr<PlanRunner*> Find(const FunctionRef& function);
  // What is left of the functions when plan and step are gone. The same for every call.
  std::shared_ptr<const FunctionLibrary> Library(const StepEnvironment& environment);

 private:
  struct Compiled {
    std::unique_ptr<compile::Plan> plan;
    std::unique_ptr<PlanRunner> runner;
  };

  const compile::Plan* const plan_;
  ThreadPool* const pool_;
  const ScheduleOptions options_;
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Compiled> compiled_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const FunctionLibrary> library_ ABSL_GUARDED_BY(mutex_);
};

// What the kernels of one step see. A call has the step's environment but for its rendezvous, and
// ends when the step, or whoever asked for it, is cancelled; its failure cancels nothing but
// itself.
class StepFunctions final : public FunctionRunner, public LibraryOwner {
 public:
  // Both must outlive it; `environment` is the step's.
  StepFunctions(FunctionTable* table, const StepEnvironment* environment, StepTrace* trace)
      : table_(table), environment_(environment), trace_(trace) {}

  void Run(const FunctionRef& function, std::vector<Tensor> arguments, Cancellation* cancellation,
           Done done) override;
  std::shared_ptr<const FunctionLibrary> Library() override {
    return table_->Library(*environment_);
  }

 private:
  FunctionTable* const table_;
  const StepEnvironment* const environment_;
  StepTrace* const trace_;
};

}  // namespace weft::executor
