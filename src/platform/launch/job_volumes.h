// SPDX-License-Identifier: Apache-2.0
// What a job's tasks mount when it runs by itself, with the objects of its own file alone. Pure.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "net/json.h"
#include "platform/object/field_reader.h"
#include "platform/object/tfjob.h"

namespace weft::platform {

// ConfigMaps, Secrets and PersistentVolumeClaims that stand in the file beside the job.
class FileObjects {
 public:
  explicit FileObjects(const std::vector<Json>& documents);
  bool Has(absl::string_view kind, const std::string& name) const;
  const std::vector<Json>& all() const { return objects_; }

 private:
  std::vector<Json> objects_;
};

// As it stands in the file, or null.
const Json* WrittenContainer(const ReplicaSpec& replica, const std::string& name);

struct TaskVolumes {
  Json mounts = Json::MakeArray();
  Json volumes = Json::MakeArray();  // those that are mounted
  std::set<std::string> claims;      // the names of PersistentVolumeClaims among them
};

// Of `container`, without the volume `left_out`. A config map or secret that is not in the file is
// a problem.
TaskVolumes PlanVolumes(const ReplicaSpec& replica, const Container& container,
                        const FileObjects& objects, const std::string& left_out,
                        Problems* problems);

// A claim that nobody wrote, of any size.
Json MakeClaim(const std::string& name);

}  // namespace weft::platform
