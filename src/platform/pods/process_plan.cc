// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/process_plan.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "base/nearest_name.h"
#include "platform/object/fields.h"

namespace weft::platform {
namespace {

constexpr int64_t kMostProcesses = 256;
constexpr char kForms[] =
    "Write a number (\"2\"), a number by task type ({\"worker\": 2}) or a list of processes "
    "([{\"name\": \"ps\", \"command\": [\"weft\", \"server\"], \"serves\": true}, {\"name\": "
    "\"worker\"}])";

Status BadProcesses(absl::string_view held, absl::string_view why) {
  return InvalidArgument("WEFT_PROCESSES ", why, ": ", held.substr(0, 200), ". ", kForms);
}

StatusOr<int64_t> ReadCount(const Json& value, absl::string_view text) {
  const StatusOr<int64_t> count = value.AsInt();
  if (!count.ok() || *count < 1 || *count > kMostProcesses) {
    return BadProcesses(text, absl::StrCat("holds ", value.Describe(), " where 1 to ",
                                           kMostProcesses, " is allowed"));
  }
  return *count;
}

// Templates are shared by jobs, so that types which this job has not may stand there too.
Status CheckType(const std::string& type, const Json& config, absl::string_view text) {
  std::vector<std::string> known = {"worker", "ps", "chief", "master", "evaluator"};
  if (const Json* const cluster = FindField(config, {"cluster"})) {
    for (const JsonMember& member : cluster->members()) known.push_back(member.name);
  }
  if (std::find(known.begin(), known.end(), type) != known.end()) return absl::OkStatus();
  const std::string nearest = NearestName(absl::AsciiStrToLower(type), known);
  return BadProcesses(
      text,
      absl::StrCat("names the task type '", type, "', which the job has not",
                   nearest.empty() ? absl::StrCat(" (it may have ", absl::StrJoin(known, ", "), ")")
                                   : absl::StrCat(": did you mean '", nearest, "'?")));
}

// Of how many processes each task type is in a pod.
class Counts {
 public:
  // `config` is TF_CONFIG, which names the types of the job; it may be null.
  static StatusOr<Counts> Read(const Json& value, const Json& config, absl::string_view text) {
    Counts counts;
    if (!value.is_object()) {
      WEFT_ASSIGN_OR_RETURN(counts.all_, ReadCount(value, text));
      return counts;
    }
    for (const JsonMember& member : value.members()) {
      WEFT_RETURN_IF_ERROR(CheckType(member.name, config, text));
      WEFT_ASSIGN_OR_RETURN(const int64_t count, ReadCount(member.value, text));
      counts.by_type_.Set(member.name, count);
    }
    return counts;
  }
  int64_t Of(absl::string_view type) const { return IntField(by_type_, {type}, all_); }

 private:
  int64_t all_ = 1;
  Json by_type_ = Json::MakeObject();
};

// "host:2222" with `offset` more.
StatusOr<std::string> ShiftPort(const std::string& address, int64_t offset) {
  const size_t colon = address.rfind(':');
  int64_t port = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port) ||
      port < 1 || port + offset > 65535) {
    return InvalidArgument("TF_CONFIG has the address '", address, "', to whose port ", offset,
                           " cannot be added: write host:port");
  }
  return absl::StrCat(address.substr(0, colon + 1), port + offset);
}

// A list of addresses, or a mapping from index to address, each as `count` of them.
StatusOr<Json> Spread(const Json& addresses, int64_t count) {
  Json spread = addresses.is_object() ? Json::MakeObject() : Json::MakeArray();
  if (addresses.is_object()) {
    for (const JsonMember& member : addresses.members()) {
      int64_t index = 0;
      if (!absl::SimpleAtoi(member.name, &index)) {
        return InvalidArgument("TF_CONFIG has a task '", member.name,
                               "' where an index is expected");
      }
      for (int64_t i = 0; i < count; ++i) {
        WEFT_ASSIGN_OR_RETURN(std::string address,
                              ShiftPort(member.value.AsString().value_or(""), i));
        spread.Set(absl::StrCat(index * count + i), std::move(address));
      }
    }
    return spread;
  }
  for (const Json& item : addresses.items()) {
    for (int64_t i = 0; i < count; ++i) {
      WEFT_ASSIGN_OR_RETURN(std::string address, ShiftPort(item.AsString().value_or(""), i));
      spread.Append(std::move(address));
    }
  }
  return spread;
}

StatusOr<Json> SpreadConfig(const Json& config, const Counts& counts, int64_t local_index) {
  Json spread = config;
  Json cluster = Json::MakeObject();
  if (const Json* const held = FindField(config, {"cluster"})) {
    for (const JsonMember& type : held->members()) {
      WEFT_ASSIGN_OR_RETURN(Json addresses, Spread(type.value, counts.Of(type.name)));
      cluster.Set(type.name, std::move(addresses));
    }
    spread.Set("cluster", std::move(cluster));
  }
  const int64_t count = counts.Of(StringField(config, {"task", "type"}));
  SetField(&spread, {"task", "index"}, IntField(config, {"task", "index"}) * count + local_index);
  return spread;
}

std::string BaseName(const std::string& program) { return program.substr(program.rfind('/') + 1); }

std::string TaskOf(const Json& config) {
  const std::string type = StringField(config, {"task", "type"});
  return type.empty() ? "" : absl::StrCat(type, "-", IntField(config, {"task", "index"}));
}

StatusOr<std::vector<ProcessPlan>> PlanCopies(const ProcessWish& wish, const Json& config,
                                              const Counts& counts) {
  const int64_t count = counts.Of(StringField(config, {"task", "type"}));
  std::vector<ProcessPlan> plans;
  for (int64_t i = 0; i < count; ++i) {
    ProcessPlan plan;
    plan.argv = wish.program;
    plan.restart = wish.restart;
    plan.name =
        count == 1 ? BaseName(wish.program[0]) : absl::StrCat(BaseName(wish.program[0]), "-", i);
    plan.environment = {absl::StrCat("WEFT_PROCESS_INDEX=", i),
                        absl::StrCat("WEFT_PROCESS_COUNT=", count)};
    if (config.is_object()) {
      WEFT_ASSIGN_OR_RETURN(const Json spread, SpreadConfig(config, counts, i));
      plan.environment.push_back(absl::StrCat("TF_CONFIG=", spread.Dump()));
      if (!TaskOf(spread).empty()) plan.name = TaskOf(spread);
    }
    plans.push_back(std::move(plan));
  }
  return plans;
}

bool IsRestart(absl::string_view word) {
  return word == "Never" || word == "OnFailure" || word == "Always" || word == "ExitCode";
}

Status ReadWords(const Json& entry, const char* field, const std::string& text,
                 std::vector<std::string>* words) {
  const Json* const list = FindField(entry, {field});
  if (list == nullptr) return absl::OkStatus();
  if (!list->is_array())
    return BadProcesses(text, absl::StrCat("has a ", field, " that is no list of words"));
  for (const Json& word : list->items()) {
    WEFT_ASSIGN_OR_RETURN(std::string held, word.AsString());
    words->push_back(std::move(held));
  }
  return absl::OkStatus();
}

StatusOr<ProcessPlan> PlanEntry(const ProcessWish& wish, const Json& entry) {
  const std::string& text = wish.processes;
  if (!entry.is_object())
    return BadProcesses(text,
                        absl::StrCat("lists ", entry.Describe(), " where a mapping is expected"));
  static constexpr absl::string_view kKnown[] = {"name",       "command", "args",   "env",
                                                 "workingDir", "restart", "serves", "gpus"};
  for (const JsonMember& member : entry.members()) {
    if (std::count(std::begin(kKnown), std::end(kKnown), member.name) == 0) {
      return BadProcesses(text, absl::StrCat("has an unknown field '", member.name, "'"));
    }
  }
  ProcessPlan plan;
  WEFT_RETURN_IF_ERROR(ReadWords(entry, "command", text, &plan.argv));
  if (plan.argv.empty()) plan.argv = wish.program;
  WEFT_RETURN_IF_ERROR(ReadWords(entry, "args", text, &plan.argv));
  if (plan.argv.empty())
    return BadProcesses(text, "has a process without a command, and no program follows the dashes");
  plan.name = StringField(entry, {"name"});
  if (plan.name.empty()) plan.name = BaseName(plan.argv[0]);
  if (const Json* const variables = FindField(entry, {"env"})) {
    for (const JsonMember& variable : variables->members()) {
      const StatusOr<std::string> value = variable.value.AsString();
      plan.environment.push_back(
          absl::StrCat(variable.name, "=", value.ok() ? *value : variable.value.Dump()));
    }
  }
  plan.working_directory = StringField(entry, {"workingDir"});
  plan.restart = StringField(entry, {"restart"});
  if (plan.restart.empty()) plan.restart = wish.restart;
  if (!IsRestart(plan.restart)) {
    return BadProcesses(text,
                        absl::StrCat("has restart '", plan.restart,
                                     "' where Never, OnFailure, Always or ExitCode is allowed"));
  }
  plan.serves = BoolField(entry, {"serves"});
  return plan;
}

// Who asks for GPUs gets the next ones that are left, and where anybody does all others see none.
class GpuShares {
 public:
  GpuShares(const ProcessWish& wish, const Json& list) : text_(wish.processes) {
    is_used_ = std::any_of(list.items().begin(), list.items().end(), [](const Json& entry) {
      return entry.is_object() && entry.Find("gpus") != nullptr;
    });
    if (!wish.visible_gpus.empty())
      visible_ = absl::StrSplit(wish.visible_gpus, ',', absl::SkipWhitespace());
    is_known_ = !wish.visible_gpus.empty();
  }

  Status Give(const Json& entry, ProcessPlan* plan) {
    if (!is_used_) return absl::OkStatus();
    const int64_t count = IntField(entry, {"gpus"}, entry.Find("gpus") == nullptr ? 0 : -1);
    if (count < 0 || count > kMostProcesses)
      return BadProcesses(text_, "has gpus that are no number of GPUs");
    std::vector<std::string> own;
    for (int64_t i = 0; i < count; ++i, ++given_) {
      if (is_known_ && given_ >= visible_.size()) {
        return BadProcesses(text_, absl::StrCat("asks for more GPUs than the ", visible_.size(),
                                                " that are visible"));
      }
      own.push_back(is_known_ ? visible_[given_] : absl::StrCat(given_));
    }
    const std::string devices = absl::StrJoin(own, ",");
    for (const char* variable : {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"})
      plan->environment.push_back(absl::StrCat(variable, "=", devices));
    return absl::OkStatus();
  }

 private:
  const std::string& text_;
  bool is_used_ = false;
  bool is_known_ = false;
  std::vector<std::string> visible_;
  size_t given_ = 0;
};

StatusOr<std::vector<ProcessPlan>> PlanList(const ProcessWish& wish, const Json& list) {
  std::vector<ProcessPlan> plans;
  std::set<std::string> names;
  GpuShares gpus(wish, list);
  bool do_all_serve = true;
  for (const Json& entry : list.items()) {
    WEFT_ASSIGN_OR_RETURN(ProcessPlan plan, PlanEntry(wish, entry));
    WEFT_RETURN_IF_ERROR(gpus.Give(entry, &plan));
    if (!names.insert(plan.name).second) {
      return BadProcesses(wish.processes,
                          absl::StrCat("has two processes with the name '", plan.name, "'"));
    }
    do_all_serve = do_all_serve && plan.serves;
    plans.push_back(std::move(plan));
  }
  if (plans.empty()) return BadProcesses(wish.processes, "is an empty list");
  if (do_all_serve)
    return BadProcesses(wish.processes,
                        "has processes that serve alone, so that nothing would end them");
  return plans;
}

}  // namespace

StatusOr<std::vector<ProcessPlan>> PlanProcesses(const ProcessWish& wish) {
  Json config;
  if (!wish.tf_config.empty()) {
    StatusOr<Json> parsed = Json::Parse(wish.tf_config);
    WEFT_RETURN_IF_ERROR(Annotate(parsed.status(), "TF_CONFIG"));
    config = *std::move(parsed);
  }
  Json processes(int64_t{1});
  if (!wish.processes.empty()) {
    StatusOr<Json> parsed = Json::Parse(wish.processes);
    if (!parsed.ok()) return BadProcesses(wish.processes, parsed.status().message());
    processes = *std::move(parsed);
  }
  if (processes.is_array()) return PlanList(wish, processes);
  if (wish.program.empty()) {
    return InvalidArgument(
        "There is no program to run: write it after two dashes, as in `weft exec -- python "
        "train.py`");
  }
  WEFT_ASSIGN_OR_RETURN(const Counts counts, Counts::Read(processes, config, wish.processes));
  return PlanCopies(wish, config, counts);
}

int64_t PortsOfATask(absl::string_view processes) {
  const StatusOr<Json> parsed = Json::Parse(processes);
  if (!parsed.ok()) return 1;
  int64_t most = parsed->AsInt().value_or(1);
  if (parsed->is_object()) {
    for (const JsonMember& member : parsed->members())
      most = std::max(most, member.value.AsInt().value_or(1));
  }
  return std::clamp<int64_t>(most, 1, kMostProcesses);
}

}  // namespace weft::platform
