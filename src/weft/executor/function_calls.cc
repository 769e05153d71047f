// SPDX-License-Identifier: Apache-2.0
#include "weft/executor/function_calls.h"

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

void StepFunctions::Run(const FunctionRef& function, std::vector<Tensor> arguments,
                        Cancellation* cancellation, Done done) {
  const StatusOr<PlanRunner*> runner = table_->Find(function);
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
  RunRequest request{
      .environment = *environment_, .arguments = std::move(arguments), .trace = trace_};
  request.environment.cancellation = own.get();
  request.environment.rendezvous = nullptr;
  (*runner)->Run(std::move(request),
                 [name = function.name, own = std::move(own), done = std::move(done)](
                     Status status, std::vector<Tensor> results) mutable {
                   own.reset();
                   if (status.ok()) {
                     done(std::move(results));
                   } else {
                     done(Annotate(status, absl::StrCat("Function '", name, "'")));
                   }
                 });
}

}  // namespace weft::executor
