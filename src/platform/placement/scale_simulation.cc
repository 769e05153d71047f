// SPDX-License-Identifier: Apache-2.0
#include "platform/placement/scale_simulation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "net/json.h"
#include "platform/placement/price_file.h"

namespace weft::platform {
namespace {

constexpr int64_t kScalingVersion = 1;
constexpr char kScalingFormat[] = "weft.dev/scaling";
// Trainings of more decisions than this are given up.
constexpr int64_t kMostDecisions = 10'000'000;

// Of two counts that are not what is wanted, whether the first is nearer: the most below, else the
// least.
bool IsNearer(int one, int other, int wanted) {
  return other > wanted ? one < other : one <= wanted && one > other;
}

// The option with so many workers, or the nearest, and of those that with so many servers.
size_t OptionWith(const ScaleJob& job, int workers, int servers) {
  size_t best = 0;
  for (size_t i = 1; i < job.options.size(); ++i) {
    const ScaleOption &mine = job.options[i], &other = job.options[best];
    if (mine.workers == other.workers ? IsNearer(mine.servers, other.servers, servers)
                                      : IsNearer(mine.workers, other.workers, workers))
      best = i;
  }
  return best;
}

// A number of an object; `otherwise` if it is not there.
StatusOr<double> NumberIn(const Json& object, const char* name, double otherwise,
                          const std::string& where) {
  const Json* const value = object.Find(name);
  if (value == nullptr) return otherwise;
  const StatusOr<double> number = value->AsDouble();
  if (number.ok() && std::isfinite(*number) && *number >= 0) return *number;
  return InvalidArgument(where, ".", name, ": expected a number from 0 on");
}

StatusOr<double> PositiveIn(const Json& object, const char* name, const std::string& where) {
  WEFT_ASSIGN_OR_RETURN(const double number, NumberIn(object, name, 0, where));
  if (number > 0) return number;
  return InvalidArgument(where, ".", name, ": expected a number above 0");
}

StatusOr<std::string> TextIn(const Json& object, const char* name, const std::string& where) {
  const Json* const value = object.Find(name);
  const StatusOr<std::string> text =
      value == nullptr ? StatusOr<std::string>(NotFound("none")) : value->AsString();
  if (text.ok() && !text->empty()) return text;
  return InvalidArgument(where, ".", name, ": expected a name");
}

Status ReadOption(const Json& json, const std::map<std::string, double>& prices,
                  const std::string& where, ScaleJob* job) {
  if (!json.is_object()) return InvalidArgument(where, ": expected an object");
  ScaleOption option;
  WEFT_ASSIGN_OR_RETURN(option.kind, TextIn(json, "kind", where));
  const auto price = prices.find(option.kind);
  if (price == prices.end())
    return InvalidArgument(where, ".kind: there is no price of '", option.kind, "'");
  WEFT_ASSIGN_OR_RETURN(const double workers, PositiveIn(json, "workers", where));
  WEFT_ASSIGN_OR_RETURN(const double servers, NumberIn(json, "servers", 0, where));
  if (workers > 1e6 || servers > 1e6) return InvalidArgument(where, ": more than a million tasks");
  option.workers = static_cast<int>(workers);
  option.servers = static_cast<int>(servers);
  auto server_price = price;
  if (json.Find("server_kind") != nullptr) {
    WEFT_ASSIGN_OR_RETURN(const std::string kind, TextIn(json, "server_kind", where));
    server_price = prices.find(kind);
    if (server_price == prices.end())
      return InvalidArgument(where, ".server_kind: there is no price of '", kind, "'");
  }
  option.dollars_per_hour = price->second * option.workers + server_price->second * option.servers;
  WEFT_ASSIGN_OR_RETURN(const double rate, PositiveIn(json, "rate", where));
  WEFT_ASSIGN_OR_RETURN(option.predicted, NumberIn(json, "predicted", rate, where));
  if (option.predicted == 0) option.predicted = rate;
  job->options.push_back(option);
  job->rates.push_back(rate);
  return absl::OkStatus();
}

StatusOr<ScaleJob> ReadJob(const Json& json, const std::map<std::string, double>& prices,
                           const std::string& where) {
  if (!json.is_object()) return InvalidArgument(where, ": expected an object");
  ScaleJob job;
  WEFT_ASSIGN_OR_RETURN(job.name, TextIn(json, "name", where));
  WEFT_ASSIGN_OR_RETURN(job.goal.examples, PositiveIn(json, "examples", where));
  WEFT_ASSIGN_OR_RETURN(job.goal.seconds, NumberIn(json, "deadline", ScaleGoal::kNone, where));
  WEFT_ASSIGN_OR_RETURN(job.goal.dollars, NumberIn(json, "budget", ScaleGoal::kNone, where));
  const Json* const options = json.Find("options");
  if (options == nullptr || !options->is_array() || options->size() == 0)
    return InvalidArgument(where, ".options: expected at least one count");
  for (size_t i = 0; i < options->size(); ++i) {
    WEFT_RETURN_IF_ERROR(
        ReadOption(options->items()[i], prices, absl::StrCat(where, ".options[", i, "]"), &job));
  }
  return job;
}

}  // namespace

ScaledJob RunFixed(const ScaleJob& job, size_t option) {
  ScaledJob run;
  run.seconds = job.goal.examples / job.rates[option];
  run.dollars = run.seconds * job.options[option].dollars_per_hour / kSecondsAnHour;
  run.in_time = run.seconds <= job.goal.seconds;
  run.in_budget = run.dollars <= job.goal.dollars;
  return run;
}

StatusOr<ScaledJob> RunScaled(const ScaleJob& job, const ScaleSimulationOptions& options) {
  std::mt19937_64 random(options.seed);
  std::uniform_real_distribution<double> noise(1 - options.noise, 1 + options.noise);
  std::vector<ScaleOption> known = job.options;
  ScaledJob run;
  ScaleState state;
  double left = job.goal.examples;
  double working_from = 0;  // no examples before that: a change is under way
  for (int64_t i = 0; left > 0; ++i) {
    if (i == kMostDecisions)
      return InvalidArgument(job.name, ": does not end within ", kMostDecisions, " decisions");
    const ScaleGoal goal = {.examples = left,
                            .seconds = job.goal.seconds - run.seconds,
                            .dollars = job.goal.dollars - run.dollars,
                            .objective = job.goal.objective,
                            .least_gain = job.goal.least_gain};
    WEFT_ASSIGN_OR_RETURN(const ScaleDecision decision,
                          DecideScale(known, goal, state, options.rules));
    if (decision.is_change) {
      ++run.changes;
      ++state.changes;
      state.savings += decision.is_saving ? 1 : 0;
      state.since_change = 0;
      working_from = run.seconds + options.rules.restart_seconds;
    }
    state.current = decision.option;
    const double rate = job.rates[decision.option];
    const double idle = std::clamp(working_from - run.seconds, 0.0, options.interval);
    const double step = std::min(options.interval, idle + left / rate);
    left -= (step - idle) * rate;
    if (left < job.goal.examples * 1e-12) left = 0;
    run.seconds += step;
    run.dollars += step * known[decision.option].dollars_per_hour / kSecondsAnHour;
    state.since_change += step;
    if (idle < options.interval) known[decision.option].measured = rate * noise(random);
  }
  run.in_time = run.seconds <= job.goal.seconds;
  run.in_budget = run.dollars <= job.goal.dollars;
  return run;
}

const FixedCount* ScaledMix::BestFixed() const {
  const FixedCount* best = nullptr;
  for (const FixedCount& count : fixed) {
    if (count.in_time > 0 && (best == nullptr || count.DollarsPerModel() < best->DollarsPerModel()))
      best = &count;
  }
  return best;
}

StatusOr<ScaledMix> SimulateScaling(const std::vector<ScaleJob>& jobs,
                                    const ScaleSimulationOptions& options) {
  ScaledMix mix{.jobs = static_cast<int64_t>(jobs.size())};
  std::set<std::pair<int, int>> counts;
  for (const ScaleJob& job : jobs) {
    for (const ScaleOption& option : job.options) counts.insert({option.workers, option.servers});
  }
  std::vector<bool> can_be_kept(jobs.size(), false);
  for (const auto& [workers, servers] : counts) {
    FixedCount count{.workers = workers, .servers = servers};
    for (size_t i = 0; i < jobs.size(); ++i) {
      const ScaledJob run = RunFixed(jobs[i], OptionWith(jobs[i], workers, servers));
      count.dollars += run.dollars;
      count.in_time += run.in_time ? 1 : 0;
      can_be_kept[i] = can_be_kept[i] || (run.in_time && run.in_budget);
    }
    mix.fixed.push_back(count);
  }
  for (size_t i = 0; i < jobs.size(); ++i) {
    ScaleSimulationOptions mine = options;
    mine.seed = options.seed + i;
    WEFT_ASSIGN_OR_RETURN(const ScaledJob run, RunScaled(jobs[i], mine));
    mix.dollars += run.dollars;
    mix.in_time += run.in_time ? 1 : 0;
    mix.most_changes = std::max(mix.most_changes, run.changes);
    if (!run.in_time && can_be_kept[i]) mix.missed.push_back(jobs[i].name);
  }
  return mix;
}

const FixedCount* ScaledMix::MostInTime() const {
  const FixedCount* best = nullptr;
  const auto kept = [&](const FixedCount& count) { return std::min(count.in_time, in_time); };
  for (const FixedCount& count : fixed) {
    if (best == nullptr || kept(count) > kept(*best) ||
        (kept(count) == kept(*best) && count.dollars < best->dollars))
      best = &count;
  }
  return best;
}

StatusOr<std::vector<ScaleJob>> ParseScaleJobs(const std::string& text, const std::string& file) {
  StatusOr<Json> json = Json::Parse(text);
  if (!json.ok()) return Annotate(json.status(), file);
  if (!json->is_object()) return InvalidArgument(file, ": expected an object");
  WEFT_ASSIGN_OR_RETURN(const std::string format, TextIn(*json, "format", file));
  if (format != kScalingFormat)
    return InvalidArgument(file, ": format: expected ", kScalingFormat, ", found ", format);
  WEFT_ASSIGN_OR_RETURN(const double version, NumberIn(*json, "version", 0, file));
  if (version != kScalingVersion)
    return InvalidArgument(file, ": of version ", version, ", this weft reads ", kScalingVersion);
  const Json* const listed = json->Find("prices");
  if (listed == nullptr) return InvalidArgument(file, ".prices: expected dollars an hour by kind");
  WEFT_ASSIGN_OR_RETURN(const auto prices, ParsePrices(listed->Dump(), file + ".prices"));
  const Json* const jobs = json->Find("jobs");
  if (jobs == nullptr || !jobs->is_array()) return InvalidArgument(file, ".jobs: expected a list");
  std::vector<ScaleJob> read;
  for (size_t i = 0; i < jobs->size(); ++i) {
    WEFT_ASSIGN_OR_RETURN(ScaleJob job,
                          ReadJob(jobs->items()[i], prices, absl::StrCat(file, ".jobs[", i, "]")));
    read.push_back(std::move(job));
  }
  if (read.empty()) return InvalidArgument(file, ".jobs: there are none");
  return read;
}

std::string FormatScaling(const ScaledMix& mix) {
  const bool has_servers = std::any_of(mix.fixed.begin(), mix.fixed.end(),
                                       [](const auto& count) { return count.servers > 0; });
  const auto name_of = [&](const FixedCount& count) {
    return has_servers ? absl::StrCat(count.workers, "+", count.servers)
                       : absl::StrCat(count.workers);
  };
  std::string text = absl::StrFormat("%d trainings\n%-20s %12s %10s %16s\n", mix.jobs,
                                     has_servers ? "workers+servers" : "workers", "dollars",
                                     "in time", "$ a model in time");
  for (const FixedCount& count : mix.fixed) {
    absl::StrAppendFormat(&text, "%-20s %12.2f %10d %16.3f\n", name_of(count), count.dollars,
                          count.in_time, count.DollarsPerModel());
  }
  absl::StrAppendFormat(&text, "%-20s %12.2f %10d %16.3f\n", "as they go", mix.dollars, mix.in_time,
                        mix.DollarsPerModel());
  if (const FixedCount* const best = mix.BestFixed(); best != nullptr && mix.in_time > 0) {
    absl::StrAppendFormat(&text, "%.1f%% less a model in time than %s workers, the best for that\n",
                          (1 - mix.DollarsPerModel() / best->DollarsPerModel()) * 100,
                          name_of(*best));
  }
  if (const FixedCount* const most = mix.MostInTime(); most != nullptr && most->dollars > 0) {
    absl::StrAppendFormat(&text, "%.1f%% less in all than %s workers, which keep %d deadlines\n",
                          (1 - mix.dollars / most->dollars) * 100, name_of(*most), most->in_time);
  }
  absl::StrAppendFormat(&text, "at most %d changes of a training\n", mix.most_changes);
  if (!mix.missed.empty()) {
    absl::StrAppend(
        &text, "late, though a fixed count would not be: ", absl::StrJoin(mix.missed, ", "), "\n");
  }
  return text;
}

}  // namespace weft::platform
