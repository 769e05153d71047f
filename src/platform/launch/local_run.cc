// SPDX-License-Identifier: Apache-2.0
#include "platform/launch/local_run.h"

#include <cstdio>
#include <memory>

#include "absl/strings/str_format.h"

namespace weft::platform {

StatusOr<int> RunLocally(const LocalJob& job, const LocalRunOptions& options) {
  AdoptOrphans();
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<ProcessGuard> guard, ProcessGuard::Start());
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<LocalProcesses> processes,
                        LocalProcesses::Create(&job, options.output, guard.get()));
  for (const std::string& note : job.notes) processes->Say(note);
  processes->Say(absl::StrCat("job '", job.name, "': starting ", job.tasks.size(), " tasks"));
  RealClock clock;
  JobRun run(job, options.run, &clock, processes.get(),
             [&](const std::string& line) { processes->Say(line); });
  const JobOutcome outcome = run.Run();
  // What left its task's group, if anything did.
  KillDescendants(guard->pid());
  switch (outcome.kind) {
    case JobOutcome::Kind::kSucceeded:
      processes->Say(absl::StrFormat("job '%s' succeeded after %.1f s", job.name,
                                     absl::ToDoubleSeconds(outcome.elapsed)));
      break;
    case JobOutcome::Kind::kInterrupted:
      processes->Say(absl::StrFormat("job '%s' %s after %.1f s; nothing of it is left running",
                                     job.name, outcome.reason,
                                     absl::ToDoubleSeconds(outcome.elapsed)));
      break;
    case JobOutcome::Kind::kFailed:
      std::fputs(FailureScreen(job, outcome, options.screen).c_str(), stderr);
      break;
  }
  return outcome.exit_code;
}

}  // namespace weft::platform
