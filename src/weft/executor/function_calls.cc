// SPDX-License-Identifier: Apache-2.0
#include "weft/executor/function_calls.h"

#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"

namespace weft::executor {

using compile::Instruction;
using compile::InstructionKind;
using compile::Plan;

StatusOr<PlanRunner*> FunctionTable::Find(const FunctionRef& function) {
  const std::string key = compile::ScopeOf(function);
  absl::MutexLock lock(&mutex_);
  const auto found = compiled_.find(key);
  if (found != compiled_.end()) return found->second.runner.get();
  Compiled compiled;
  WEFT_ASSIGN_OR_RETURN(compiled.plan, plan_->CompileFunction(function));
  compiled.runner = std::make_unique<PlanRunner>(compiled.plan.get(), pool_, options_);
  return compiled_.emplace(key, std::move(compiled)).first->second.runner.get();
}

namespace {

// Calls `function` in `environment`, which may end before the call does. `more` is kept until then.
template <typename More>
void Call(FunctionTable* table, const FunctionRef& function, StepEnvironment environment,
          std::vector<Tensor> arguments, Cancellation* cancellation, StepTrace* trace, More more,
          FunctionRunner::Done done) {
  const StatusOr<PlanRunner*> runner = table->Find(function);
  if (!runner.ok()) {
    done(runner.status());
    return;
  }
  const size_t wanted = (*runner)->plan().argument_types().size();
  if (arguments.size() < wanted) {
    done(InvalidArgument("Function '", function.name, "' takes ", wanted, " arguments, got ",
                         arguments.size()));
    return;
  }
  // Lives until the call has ended, which may be after this returns.
  auto own = std::make_unique<Cancellation>(cancellation);
  RunRequest request{.environment = environment, .arguments = std::move(arguments), .trace = trace};
  request.environment.cancellation = own.get();
  request.environment.rendezvous = nullptr;
  (*runner)->Run(std::move(request),
                 [name = function.name, own = std::move(own), more = std::move(more),
                  done = std::move(done)](Status status, std::vector<Tensor> results) mutable {
                   own.reset();
                   more = More{};
                   if (status.ok()) {
                     done(std::move(results));
                   } else {
                     done(Annotate(status, absl::StrCat("Function '", name, "'")));
                   }
                 });
}

// What ends with one call: as a step's own resources end with the step.
struct CallResources {
  ResourceManager resources;
  ~CallResources() { resources.CleanupAll(); }
};

// Where the calls of a library run: all of a step's environment that is still there afterwards.
struct LibraryPlace {
  std::shared_ptr<const Plan> plan;
  ThreadPool* pool;
  ScheduleOptions options;
  StepEnvironment environment;
  SessionScope session;
};

class LibraryRunner final : public FunctionRunner {
 public:
  explicit LibraryRunner(std::shared_ptr<const LibraryPlace> place)
      : place_(std::move(place)), table_(place_->plan.get(), place_->pool, place_->options) {}

  void Run(const FunctionRef& function, std::vector<Tensor> arguments, Cancellation* cancellation,
           Done done) override {
    auto resources = std::make_unique<CallResources>();
    StepEnvironment environment = place_->environment;
    environment.step_resources = &resources->resources;
    environment.session = &place_->session;
    environment.step_id = next_step_.fetch_sub(1, std::memory_order_relaxed);
    Call(&table_, function, environment, std::move(arguments), cancellation, nullptr,
         std::move(resources), std::move(done));
  }

 private:
  // Below those of steps that people see.
  static inline std::atomic<int64_t> next_step_{-2};
  const std::shared_ptr<const LibraryPlace> place_;
  FunctionTable table_;
};

class PlanLibrary final : public FunctionLibrary, public std::enable_shared_from_this<PlanLibrary> {
 public:
  explicit PlanLibrary(std::shared_ptr<const LibraryPlace> place) : place_(std::move(place)) {}
  std::unique_ptr<FunctionRunner> NewRunner() const override {
    return std::make_unique<LibraryRunner>(place_);
  }
  const FunctionDef* Definition(absl::string_view name) const override {
    return place_->plan->graph().FindFunction(name);
  }
  std::shared_ptr<const FunctionLibrary> WithFunctionsOf(const Graph& graph) const override {
    auto place = std::make_shared<LibraryPlace>(*place_);
    place->plan = place_->plan->LibraryAlone(graph);
    return std::make_shared<PlanLibrary>(std::move(place));
  }

 private:
  const std::shared_ptr<const LibraryPlace> place_;
};

}  // namespace

std::shared_ptr<const FunctionLibrary> FunctionTable::Library(const StepEnvironment& environment) {
  absl::MutexLock lock(&mutex_);
  if (library_ == nullptr) {
    auto place = std::make_shared<LibraryPlace>();
    place->plan = plan_->LibraryAlone();
    place->pool = pool_;
    place->options = options_;
    place->environment = {.device = environment.device,
                          .waits = environment.waits,
                          .files = environment.files,
                          .deterministic = environment.deterministic,
                          .single_threaded = environment.single_threaded};
    // Its calls may come after the session's own resources have gone.
    if (environment.session != nullptr) {
      place->session.container = environment.session->container;
    }
    library_ = std::make_shared<PlanLibrary>(std::move(place));
  }
  return library_;
}

void StepFunctions::Run(const FunctionRef& function, std::vector<Tensor> arguments,
                        Cancellation* cancellation, Done done) {
  Call(table_, function, *environment_, std::move(arguments), cancellation, trace_, nullptr,
       std::move(done));
}

}  // namespace weft::executor
