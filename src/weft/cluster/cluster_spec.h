// SPDX-License-Identifier: Apache-2.0
// Which tasks a cluster has and where they listen.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "base/status.h"

namespace tensorflow {
class ClusterDef;
}

namespace weft::cluster {

struct TaskId {
  std::string job;
  int index = 0;
  auto operator<=>(const TaskId&) const = default;
  std::string ToString() const;    // "/job:ps/task:1"
  std::string DeviceTask() const;  // "/job:ps/replica:0/task:1"
};

// Jobs, their tasks' indices (gaps are allowed) and addresses. Immutable once made.
class ClusterSpec {
 public:
  // {"ps": ["host:port", ...], "worker": {"1": "host:port"}}. InvalidArgument for anything else and
  // for bad addresses, names the tasks that share one.
  static StatusOr<ClusterSpec> FromJson(absl::string_view text);
  static StatusOr<ClusterSpec> FromProto(const tensorflow::ClusterDef& proto);
  void ToProto(tensorflow::ClusterDef* proto) const;

  const std::map<TaskId, std::string>& tasks() const { return tasks_; }
  // NotFound that says which tasks there are.
  StatusOr<std::string> AddressOf(const TaskId& task) const;
  // Task `who` was told that these tasks ("/job:ps/task:1") are its cluster. InvalidArgument that
  // says which entries differ if they are others than here; OK if it told none.
  Status CheckSameTasks(const std::string& who, const std::vector<std::string>& tasks) const;

 private:
  Status Add(TaskId task, const std::string& address);
  std::map<TaskId, std::string> tasks_;
};

// The environment variable TF_CONFIG: the cluster and which task of it this process is.
struct TaskConfig {
  ClusterSpec cluster;
  TaskId task;
};
StatusOr<TaskConfig> ParseTfConfig(absl::string_view text);

}  // namespace weft::cluster
