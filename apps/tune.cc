// SPDX-License-Identifier: Apache-2.0
// `weft tune`: a search for the best parameters of a program, with trials on this machine.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "absl/strings/str_join.h"

#include "apps/command.h"
#include "base/files.h"
#include "base/posix_file.h"
#include "platform/search/local_trials.h"
#include "platform/search/trial_table.h"

namespace weft::apps {
namespace {

struct TuneFlags {
  std::string space;
  std::string maximize;
  std::string minimize;
  platform::StudyOptions study;
  platform::LocalTrialsOptions trials;
  double trial_limit_s = 0;
  std::string table = "text";
  std::string out = "weft-tune";
};

// Readable when the user wants us to stop.
StatusOr<OwnedFd> StopSignals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&signals, signal);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  OwnedFd fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.is_open()) return Unavailable("cannot wait for signals");
  return fd;
}

std::string DescribeTrial(const platform::Study& study, const platform::SearchTrial& trial) {
  std::string text;
  for (size_t i = 0; i < trial.values.size(); ++i) {
    const platform::SearchParameter& p = study.space().parameters[i];
    absl::StrAppend(&text, " ", p.name, "=", p.Format(trial.values[i]));
  }
  return text;
}

// One line a trial, as it ends.
void Tell(const platform::Study& study, const platform::LocalTrialsOptions& options,
          const platform::SearchTrial& trial, const std::string& failure) {
  const std::string what = failure.empty() ? absl::StrCat(options.objective, "=", trial.objective)
                                           : absl::StrCat(failure, " (", options.folder, "/trial-",
                                                          trial.number, ".log)");
  const platform::SearchTrial* const best = study.best();
  const std::string so_far =
      best == nullptr ? std::string()
                      : absl::StrCat("   best ", best->objective, " of trial-", best->number);
  std::fprintf(stderr, "trial-%ld %s %s%s\n", static_cast<long>(trial.number), what.c_str(),
               DescribeTrial(study, trial).c_str(), so_far.c_str());
}

StatusOr<platform::TableForm> FormOf(const std::string& name) {
  if (name == "text") return platform::TableForm::kText;
  if (name == "csv") return platform::TableForm::kCsv;
  if (name == "json") return platform::TableForm::kJson;
  return InvalidArgument("--output ", name, ": expected text, csv or json");
}

// What must be the same when a search goes on.
Json Header(const TuneFlags& flags, const platform::LocalTrialsOptions& options) {
  Json header = Json::MakeObject();
  header.Set("space", flags.space);
  header.Set("algorithm", flags.study.algorithm);
  header.Set("seed", static_cast<int64_t>(flags.study.seed));
  header.Set(options.maximize ? "maximize" : "minimize", options.objective);
  Json program = Json::MakeArray();
  for (const std::string& word : options.program) program.Append(word);
  header.Set("program", std::move(program));
  return header;
}

Status Tune(TuneFlags flags, const std::vector<std::string>& program) {
  if (program.empty()) {
    return InvalidArgument(
        "no program: write it after two dashes, as in\n  weft tune --space 'lr=log(1e-4,1e-1)' "
        "--maximize accuracy -- ./train");
  }
  if (flags.maximize.empty() == flags.minimize.empty()) {
    return InvalidArgument("expected one of --maximize METRIC and --minimize METRIC");
  }
  WEFT_ASSIGN_OR_RETURN(const platform::TableForm form, FormOf(flags.table));
  platform::LocalTrialsOptions& options = flags.trials;
  options.program = program;
  options.maximize = !flags.maximize.empty();
  options.objective = options.maximize ? flags.maximize : flags.minimize;
  options.folder = flags.out;
  if (flags.trial_limit_s > 0) options.trial_limit = absl::Seconds(flags.trial_limit_s);
  flags.study.maximize = options.maximize;
  WEFT_ASSIGN_OR_RETURN(platform::SearchSpace space, platform::ParseSearchSpace(flags.space));
  WEFT_ASSIGN_OR_RETURN(const auto study, platform::Study::Create(std::move(space), flags.study));
  RealFileSystem files;
  WEFT_RETURN_IF_ERROR(files.MakeDirectories(flags.out));
  std::map<int64_t, platform::TrialMetrics> metrics;
  WEFT_ASSIGN_OR_RETURN(const auto journal, platform::StudyJournal::Open(
                                                files, flags.out + "/study.jsonl",
                                                Header(flags, options), study.get(), &metrics));
  if (!study->trials().empty()) {
    std::fprintf(stderr, "goes on after %zu trials of %s/study.jsonl\n", study->trials().size(),
                 flags.out.c_str());
  }
  WEFT_ASSIGN_OR_RETURN(const OwnedFd stop, StopSignals());
  platform::LocalTrials trials(options, files, study.get(), journal.get(), &metrics,
                               [&](const platform::SearchTrial& trial, const std::string& failure) {
                                 Tell(*study, options, trial, failure);
                               });
  const Status status = trials.Run(stop.get());
  std::vector<std::string> names = {options.objective};
  names.insert(names.end(), options.additional.begin(), options.additional.end());
  std::printf("%s", platform::FormatTrials(*study, metrics, names, options.maximize, form).c_str());
  if (absl::IsCancelled(status)) {
    return absl::CancelledError("stopped; the same command goes on where this one ended");
  }
  return status;
}

}  // namespace

void AddTune(CLI::App& app, const CommandLine& line, Action* action) {
  CLI::App* const command = app.add_subcommand(
      "tune", "Search for the best parameters of a program, which stands after --");
  const auto flags = std::make_shared<TuneFlags>();  // shared with the action
  command
      ->add_option("--space", flags->space,
                   "Parameters: 'lr=log(1e-4,1e-1) layers=2..5 width=16..128/16 "
                   "optimizer={sgd,adam,ftrl}'")
      ->required();
  command->add_option("--maximize", flags->maximize, "Metric that the program prints as name=1.5");
  command->add_option("--minimize", flags->minimize, "The same, where less is better");
  command->add_option("--metric", flags->trials.additional,
                      "Another metric for the table; may be given again");
  command
      ->add_option("--algorithm", flags->study.algorithm,
                   absl::StrJoin(platform::SamplerNames(), ", "))
      ->capture_default_str()
      ->check(CLI::IsMember(platform::SamplerNames()));
  command->add_option("--trials", flags->trials.trials, "How many at most")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1000000}));
  command->add_option("--parallel", flags->trials.parallel, "How many at a time")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1024}));
  command->add_option("--max_failed", flags->trials.most_failed, "The search ends when more fail")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{0}, int64_t{1000000}));
  command->add_option("--trial_seconds", flags->trial_limit_s, "A trial that lasts longer fails")
      ->check(CLI::PositiveNumber);
  command->add_option("--seed", flags->study.seed, "Of random choices")->capture_default_str();
  command->add_option("--out", flags->out, "Folder of the journal and of the trials' output")
      ->capture_default_str();
  command->add_option("--output", flags->table, "The table as text, csv or json")
      ->capture_default_str();
  SetAction(command, action, [flags, program = line.program] { return Tune(*flags, program); });
}

}  // namespace weft::apps
