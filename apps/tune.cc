// SPDX-License-Identifier: Apache-2.0
// `weft tune`: a search for the best parameters of a program, with trials on this machine.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "apps/command.h"
#include "apps/live_table.h"
#include "apps/tune_experiment.h"
#include "apps/tune_serve.h"
#include "base/files.h"
#include "base/posix_file.h"
#include "platform/search/earlier_trials.h"
#include "platform/search/local_trials.h"
#include "platform/search/sampler.h"
#include "platform/search/trial_table.h"

namespace weft::apps {
namespace {

struct TuneFlags {
  std::string file;
  std::string space;
  std::vector<std::string> maximize;
  std::vector<std::string> minimize;
  std::vector<std::string> metrics;
  std::vector<std::string> constraints;
  std::vector<std::string> settings;
  std::string transfer;
  platform::StudyOptions study;
  std::string algorithm;
  platform::LocalTrialsOptions trials;
  std::optional<int64_t> most, parallel, most_failed;
  double trial_limit_s = 0;
  std::string table = "text";
  std::string out = "weft-tune";
  bool serves = false;
};

// While it is open, no other search has the folder.
StatusOr<OwnedFd> LockFolder(const std::string& folder) {
  OwnedFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Not all file systems know locks.
  if (!fd.is_open() || ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return fd;
  return FailedPrecondition("Another weft tune works in ", folder,
                            ": wait for its end, stop it, or give another folder with --out");
}

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
  for (const auto& [name, value] : study.space().Assign(trial.values))
    absl::StrAppend(&text, " ", name, "=", value);
  return text;
}

// One line a trial, as it ends.
void Tell(const platform::Study& study, const platform::LocalTrialsOptions& options,
          const platform::SearchTrial& trial, const std::string& failure) {
  const std::string what =
      failure.empty()
          ? absl::StrCat(options.objective.metric, "=", trial.objective)
          : absl::StrCat(failure, " (", options.folder, "/trial-", trial.number, ".log)");
  const platform::SearchTrial* const best = study.best();
  const std::string so_far =
      best == nullptr ? std::string()
                      : absl::StrCat("   best ", best->objective, " of trial-", best->number);
  std::fprintf(stderr, "trial-%ld %s %s%s\n", static_cast<long>(trial.number), what.c_str(),
               DescribeTrial(study, trial).c_str(), so_far.c_str());
}

// `latency<=10` or `accuracy>=0.9`.
StatusOr<platform::LocalTrialsOptions::Constraint> ParseConstraint(const std::string& text) {
  for (const char* sign : {"<=", ">="}) {
    const size_t at = text.find(sign);
    if (at == text.npos || at == 0) continue;
    platform::LocalTrialsOptions::Constraint constraint;
    constraint.metric = text.substr(0, at);
    constraint.is_upper = sign[0] == '<';
    if (absl::SimpleAtod(text.substr(at + 2), &constraint.bound)) return constraint;
  }
  return InvalidArgument("--constraint '", text, "': expected METRIC<=NUMBER or METRIC>=NUMBER");
}

// From words of the command line.
StatusOr<LocalExperiment> ReadFlags(const TuneFlags& flags,
                                    const std::vector<std::string>& program) {
  if (program.empty() && !flags.serves) {
    return InvalidArgument(
        "no program: write it after two dashes, as in\n  weft tune --space 'lr=log(1e-4,1e-1)' "
        "--maximize accuracy -- ./train\nor give the file of an Experiment");
  }
  std::vector<std::pair<std::string, bool>> objectives;
  for (const std::string& name : flags.maximize) objectives.emplace_back(name, true);
  for (const std::string& name : flags.minimize) objectives.emplace_back(name, false);
  if (objectives.empty())
    return InvalidArgument("expected one of --maximize METRIC and --minimize METRIC");
  LocalExperiment local;
  WEFT_ASSIGN_OR_RETURN(local.space, platform::ParseSearchSpace(flags.space));
  WEFT_RETURN_IF_ERROR(platform::CheckPlaces(program, local.space));
  local.study = flags.study;
  local.study.maximize = objectives[0].second;
  platform::ExperimentObjective& objective = local.trials.objective;
  objective.metric = objectives[0].first;
  objective.maximize = objectives[0].second;
  Json more = Json::MakeArray();
  for (size_t i = 1; i < objectives.size(); ++i) {
    const auto& [name, maximizes] = objectives[i];
    local.study.also_maximize.push_back(maximizes);
    local.trials.more_objectives.push_back(name);
    objective.additional.push_back(name);
    objective.strategies.emplace_back(
        name, maximizes ? platform::MetricStrategy::kMax : platform::MetricStrategy::kMin);
    more.Append(absl::StrCat(maximizes ? "maximize " : "minimize ", name));
  }
  for (const std::string& text : flags.constraints) {
    WEFT_ASSIGN_OR_RETURN(auto constraint, ParseConstraint(text));
    if (!absl::c_linear_search(objective.Metrics(), constraint.metric))
      objective.additional.push_back(constraint.metric);
    local.trials.constraints.push_back(std::move(constraint));
  }
  for (const std::string& name : flags.metrics) {
    if (!absl::c_linear_search(objective.Metrics(), name)) objective.additional.push_back(name);
    objective.strategies.emplace_back(name, platform::MetricStrategy::kLatest);
  }
  local.trials.program = program;
  local.header.Set("space", flags.space);
  local.header.Set(objective.maximize ? "maximize" : "minimize", objective.metric);
  if (more.size() > 0) local.header.Set("objectives", std::move(more));
  Json words = Json::MakeArray();
  for (const std::string& word : program) words.Append(word);
  local.header.Set("program", std::move(words));
  return local;
}

// What the algorithm does not know is a mistake; in files, which others' algorithms read too, it is
// none.
Status CheckSettings(const TuneFlags& flags, const LocalExperiment& local) {
  std::set<std::string> known;
  WEFT_RETURN_IF_ERROR(
      platform::MakeSampler(local.study.algorithm, local.space, {1, local.study.settings, &known})
          .status());
  for (const std::string& text : flags.settings) {
    const std::string name = text.substr(0, text.find('='));
    if (known.contains(name)) continue;
    return InvalidArgument("--setting '", text, "': ", local.study.algorithm, " has ",
                           known.empty() ? "no settings" : absl::StrJoin(known, ", "));
  }
  return absl::OkStatus();
}

Status AddSettings(const TuneFlags& flags, LocalExperiment* local) {
  for (const std::string& text : flags.settings) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
    if (parts.first.empty() || text.find('=') == text.npos)
      return InvalidArgument("--setting '", text, "': expected NAME=VALUE");
    local->study.settings[parts.first] = parts.second;
  }
  if (!flags.algorithm.empty()) {
    local->study.algorithm = flags.algorithm;
  } else if (!local->study.also_maximize.empty()) {
    local->study.algorithm = "nsga2";
  }
  if (!flags.settings.empty()) WEFT_RETURN_IF_ERROR(CheckSettings(flags, *local));
  if (flags.study.seed != 0) local->study.seed = flags.study.seed;
  local->header.Set("algorithm", local->study.algorithm);
  local->header.Set("seed", static_cast<int64_t>(local->study.seed));
  if (flags.transfer.empty()) return absl::OkStatus();
  constexpr size_t kTransferred = 5;
  RealFileSystem files;
  WEFT_ASSIGN_OR_RETURN(
      local->study.first_points,
      platform::ReadBestPoints(files, flags.transfer + "/study.jsonl", local->space,
                               local->study.maximize, kTransferred));
  return absl::OkStatus();
}

void TellFront(const platform::Study& study, const platform::LocalTrialsOptions& options) {
  if (options.more_objectives.empty()) return;
  std::vector<std::string> names;
  for (const int64_t number : study.ParetoFront()) names.push_back(absl::StrCat("trial-", number));
  if (names.empty()) return;
  std::fprintf(stderr, "no other trial beats %s\n", absl::StrJoin(names, ", ").c_str());
}

Status Tune(TuneFlags flags, const std::vector<std::string>& program) {
  WEFT_ASSIGN_OR_RETURN(const platform::TableForm form, platform::ParseTableForm(flags.table));
  LocalExperiment local;
  if (flags.file.empty()) {
    WEFT_ASSIGN_OR_RETURN(local, ReadFlags(flags, program));
  } else {
    WEFT_ASSIGN_OR_RETURN(local, ReadLocalExperiment(flags.file, flags.out));
  }
  WEFT_RETURN_IF_ERROR(AddSettings(flags, &local));
  platform::LocalTrialsOptions& options = local.trials;
  options.folder = flags.out;
  options.trials = flags.most.value_or(options.trials);
  options.parallel = flags.parallel.value_or(options.parallel);
  options.most_failed = flags.most_failed.value_or(options.most_failed);
  if (flags.trial_limit_s > 0) options.trial_limit = absl::Seconds(flags.trial_limit_s);
  WEFT_ASSIGN_OR_RETURN(const auto study, platform::Study::Create(local.space, local.study));
  RealFileSystem files;
  WEFT_RETURN_IF_ERROR(files.MakeDirectories(flags.out));
  WEFT_ASSIGN_OR_RETURN(const OwnedFd lock, LockFolder(flags.out));
  std::map<int64_t, platform::TrialMetrics> metrics;
  WEFT_ASSIGN_OR_RETURN(const auto journal,
                        platform::StudyJournal::Open(files, flags.out + "/study.jsonl",
                                                     local.header, study.get(), &metrics));
  if (flags.serves) return ServeStudy(study.get(), journal.get());
  if (!study->trials().empty()) {
    std::fprintf(stderr, "goes on after %zu trials of %s/study.jsonl\n", study->trials().size(),
                 flags.out.c_str());
  }
  WEFT_ASSIGN_OR_RETURN(const OwnedFd stop, StopSignals());
  LiveTable table(stderr, *study, options);
  platform::LocalTrials trials(options, files, study.get(), journal.get(), &metrics,
                               [&](const platform::SearchTrial& trial, const std::string& failure) {
                                 table.Clear();
                                 Tell(*study, options, trial, failure);
                               });
  trials.SetTick([&] { table.Show(trials.running()); });
  const Status status = trials.Run(stop.get());
  table.Clear();
  std::printf("%s", platform::FormatTrials(*study, metrics, options.objective.Metrics(),
                                           options.objective.maximize, form)
                        .c_str());
  TellFront(*study, options);
  if (absl::IsCancelled(status)) {
    return absl::CancelledError("stopped; the same command goes on where this one ended");
  }
  WEFT_RETURN_IF_ERROR(status);
  if (study->best() != nullptr || study->trials().empty()) return absl::OkStatus();
  return FailedPrecondition("no trial has succeeded; what they printed lies in ", flags.out,
                            "/trial-N.log");
}

}  // namespace

void AddTune(CLI::App& app, const CommandLine& line, Action* action) {
  CLI::App* const command = app.add_subcommand(
      "tune",
      "Search for the best parameters: of a program, which stands after --, or of an Experiment");
  const auto flags = std::make_shared<TuneFlags>();  // shared with the action
  command->add_option("file", flags->file, "Of an Experiment, whose trials then run here");
  command->add_option("--space", flags->space,
                      "Parameters: 'lr=log(1e-4,1e-1) layers=2..5 width=16..128/16 "
                      "optimizer={sgd,adam,ftrl} momentum=0.0..0.99?optimizer=sgd'");
  command->add_option("--maximize", flags->maximize,
                      "Metric that the program prints as name=1.5; several are objectives at once");
  command->add_option("--minimize", flags->minimize, "The same, where less is better");
  command->add_option("--metric", flags->metrics,
                      "Another metric for the table; may be given again");
  command->add_option("--constraint", flags->constraints,
                      "What a good trial keeps: 'latency<=10'; may be given again");
  command
      ->add_option("--algorithm", flags->algorithm,
                   absl::StrCat(absl::StrJoin(platform::SamplerNames(), ", "),
                                " (default: tpe, with several objectives nsga2)"))
      ->check(CLI::IsMember(platform::SamplerNames()));
  command->add_option("--setting", flags->settings,
                      "NAME=VALUE of the algorithm, as resource_name=epochs; may be given again");
  command->add_option("--transfer", flags->transfer,
                      "Folder of an earlier search, whose best points are tried first");
  command->add_option("--trials", flags->most, "How many at most (default: 20)")
      ->check(CLI::Range(int64_t{1}, int64_t{1000000}));
  command->add_option("--parallel", flags->parallel, "How many at a time (default: 1)")
      ->check(CLI::Range(int64_t{1}, int64_t{1024}));
  command
      ->add_option("--max_failed", flags->most_failed,
                   "The search ends when more fail (default: 3)")
      ->check(CLI::Range(int64_t{0}, int64_t{1000000}));
  command->add_option("--trial_seconds", flags->trial_limit_s, "A trial that lasts longer fails")
      ->check(CLI::PositiveNumber);
  command->add_option("--seed", flags->study.seed, "Of random choices")->capture_default_str();
  command->add_option("--out", flags->out, "Folder of the journal and of the trials' output")
      ->capture_default_str();
  command->add_option("--output", flags->table, "The table as text, csv or json")
      ->capture_default_str();
  command->add_flag(
      "--serve", flags->serves,
      "Run nothing: answer questions on stdin, a JSON object a line (docs/search.md)");
  SetAction(command, action, [flags, program = line.program] { return Tune(*flags, program); });
}

}  // namespace weft::apps
