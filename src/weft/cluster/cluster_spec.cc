// SPDX-License-Identifier: Apache-2.0
#include "weft/cluster/cluster_spec.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"

#include "net/json.h"
#include "net/socket_address.h"
#include "proto/tensorflow/cluster.pb.h"
#include "weft/graph/device_name.h"

namespace weft::cluster {

std::string TaskId::ToString() const { return absl::StrCat("/job:", job, "/task:", index); }
std::string TaskId::DeviceTask() const {
  return absl::StrCat("/job:", job, "/replica:0/task:", index);
}

Status ClusterSpec::Add(TaskId task, const std::string& address) {
  const std::string where = absl::StrCat("Cluster, ", task.ToString());
  if (task.index < 0) return InvalidArgument(where, ": a task's index is at least 0");
  if (!DeviceName::Parse(task.ToString()).ok()) {
    return InvalidArgument("Cluster: bad job name '", task.job,
                           "', expected a letter, then letters, digits, '_', '-' or '.'");
  }
  if (Status valid = ParseSocketAddress(address).status(); !valid.ok())
    return Annotate(valid, where);
  for (const auto& [other, known] : tasks_) {
    // Port 0 asks for any.
    if (known == address && address.substr(address.rfind(':')) != ":0") {
      return InvalidArgument("Cluster: two tasks have the same address: ", other.ToString(),
                             " and ", task.ToString(), " at ", address);
    }
  }
  if (!tasks_.emplace(task, address).second) {
    return InvalidArgument("Cluster: task stands twice: ", task.ToString());
  }
  return absl::OkStatus();
}

namespace {

StatusOr<int> TaskIndex(absl::string_view text, absl::string_view job) {
  int index = 0;
  if (!absl::SimpleAtoi(text, &index)) {
    return InvalidArgument("Cluster, job '", job, "': expected a task's number, found '", text,
                           "'");
  }
  return index;
}

using TaskList = std::vector<std::pair<int, std::string>>;

StatusOr<TaskList> TasksOfJob(absl::string_view job, const Json& value) {
  TaskList tasks;
  const auto address_of = [&](const Json& address) -> StatusOr<std::string> {
    if (address.is_string()) return address.AsString();
    return InvalidArgument("Cluster, job '", job, "': expected \"host:port\", found ",
                           address.Describe());
  };
  if (value.is_array()) {
    for (const Json& item : value.items()) {
      WEFT_ASSIGN_OR_RETURN(std::string address, address_of(item));
      tasks.emplace_back(static_cast<int>(tasks.size()), std::move(address));
    }
    return tasks;
  }
  if (value.is_object()) {
    for (const JsonMember& member : value.members()) {
      WEFT_ASSIGN_OR_RETURN(const int index, TaskIndex(member.name, job));
      WEFT_ASSIGN_OR_RETURN(std::string address, address_of(member.value));
      tasks.emplace_back(index, std::move(address));
    }
    return tasks;
  }
  return InvalidArgument(
      "Cluster, job '", job,
      "': expected a list of addresses, or a mapping from task to address, found ",
      value.Describe());
}

}  // namespace

StatusOr<ClusterSpec> ClusterSpec::FromJson(absl::string_view text) {
  WEFT_ASSIGN_OR_RETURN(const Json json, Json::Parse(text));
  if (!json.is_object()) {
    return InvalidArgument("Cluster: expected {\"job\": [\"host:port\", ...]}, found ",
                           json.Describe());
  }
  ClusterSpec spec;
  for (const JsonMember& job : json.members()) {
    WEFT_ASSIGN_OR_RETURN(TaskList tasks, TasksOfJob(job.name, job.value));
    for (auto& [index, address] : tasks) {
      WEFT_RETURN_IF_ERROR(spec.Add({job.name, index}, address));
    }
  }
  if (spec.tasks_.empty()) return InvalidArgument("Cluster: it has no tasks");
  return spec;
}

StatusOr<ClusterSpec> ClusterSpec::FromProto(const tensorflow::ClusterDef& proto) {
  ClusterSpec spec;
  for (const auto& job : proto.job()) {
    for (const auto& [index, address] : job.tasks()) {
      WEFT_RETURN_IF_ERROR(spec.Add({job.name(), index}, address));
    }
  }
  return spec;
}

void ClusterSpec::ToProto(tensorflow::ClusterDef* proto) const {
  proto->Clear();
  tensorflow::JobDef* job = nullptr;
  for (const auto& [task, address] : tasks_) {
    if (job == nullptr || job->name() != task.job) {
      job = proto->add_job();
      job->set_name(task.job);
    }
    (*job->mutable_tasks())[task.index] = address;
  }
}

StatusOr<std::string> ClusterSpec::AddressOf(const TaskId& task) const {
  const auto found = tasks_.find(task);
  if (found != tasks_.end()) return found->second;
  return NotFound("Task ", task.ToString(), " is not in the cluster, which has ",
                  absl::StrJoin(tasks_, ", ", [](std::string* out, const auto& entry) {
                    absl::StrAppend(out, entry.first.ToString());
                  }));
}

Status ClusterSpec::CheckSameTasks(const std::string& who,
                                   const std::vector<std::string>& tasks) const {
  if (tasks.empty()) return absl::OkStatus();
  std::set<std::string> here;
  for (const auto& [task, address] : tasks_) here.insert(task.ToString());
  const std::set<std::string> there(tasks.begin(), tasks.end());
  std::vector<std::string> differences;
  for (const std::string& task : here) {
    if (!there.contains(task)) differences.push_back(absl::StrCat(task, " is missing there"));
  }
  for (const std::string& task : there) {
    if (!here.contains(task)) differences.push_back(absl::StrCat(task, " is missing here"));
  }
  if (differences.empty()) return absl::OkStatus();
  constexpr size_t kMostNamed = 8;
  const size_t more = differences.size() - std::min(differences.size(), kMostNamed);
  differences.resize(differences.size() - more);
  // Clients repeat what is Unavailable, and some what is FailedPrecondition: this stays as it is.
  return InvalidArgument("The server of ", who,
                         " was started with another cluster: ", absl::StrJoin(differences, ", "),
                         more > 0 ? absl::StrCat(" and ", more, " more") : "",
                         ". Give all tasks the same --cluster or TF_CONFIG");
}

StatusOr<TaskConfig> ParseTfConfig(absl::string_view text) {
  const auto where = [](const Status& status) { return Annotate(status, "TF_CONFIG"); };
  StatusOr<Json> json = Json::Parse(text);
  if (!json.ok()) return where(json.status());
  const Json* cluster = json->Find("cluster");
  const Json* task = json->Find("task");
  if (cluster == nullptr || task == nullptr) {
    return InvalidArgument(
        "TF_CONFIG: expected {\"cluster\": {...}, \"task\": {\"type\": ..., "
        "\"index\": ...}}, found ",
        json->Describe());
  }
  TaskConfig config;
  StatusOr<ClusterSpec> spec = ClusterSpec::FromJson(cluster->Dump());
  if (!spec.ok()) return where(spec.status());
  config.cluster = *std::move(spec);
  const Json* type = task->Find("type");
  if (type == nullptr || !type->is_string()) {
    return InvalidArgument("TF_CONFIG: task needs \"type\", a job's name, found ",
                           task->Describe());
  }
  WEFT_ASSIGN_OR_RETURN(config.task.job, type->AsString());
  if (const Json* index = task->Find("index")) {
    // Some launchers write the number as a string.
    if (index->is_string()) {
      WEFT_ASSIGN_OR_RETURN(const std::string digits, index->AsString());
      WEFT_ASSIGN_OR_RETURN(config.task.index, TaskIndex(digits, config.task.job));
    } else {
      StatusOr<int64_t> number = index->AsInt();
      if (!number.ok()) return where(number.status());
      if (*number < 0 || *number > (1 << 20)) {
        return InvalidArgument("TF_CONFIG: task index out of range: ", *number);
      }
      config.task.index = static_cast<int>(*number);
    }
  }
  return config;
}

}  // namespace weft::cluster
