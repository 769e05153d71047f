// SPDX-License-Identifier: Apache-2.0
#include "platform/object/pod_checks.h"

#include <set>
#include <vector>

#include "absl/strings/str_cat.h"

#include "platform/object/container_checks.h"
#include "platform/object/fields.h"
#include "platform/object/metadata_checks.h"
#include "platform/object/probe_checks.h"

namespace weft::platform {
namespace {

constexpr int64_t kUsualGrace = 30;

class ContainerLists {
 public:
  ContainerLists(const Json& spec, const PodChecks& checks, Problems* problems)
      : spec_(spec), pod_(checks), problems_(problems) {
    checks_.needs_image = checks.needs_images;
    checks_.grace_seconds = IntField(spec, {"terminationGracePeriodSeconds"}, kUsualGrace);
    if (const Json* const volumes = FindField(spec, {"volumes"})) {
      for (const Json& volume : volumes->items())
        checks_.volumes.insert(StringField(volume, {"name"}));
    }
  }

  void Check() {
    CheckMains();
    CheckInits();
  }

 private:
  std::string PathOf(const char* list, size_t index) const {
    return absl::StrCat(pod_.path, ".", list, "[", index, "]");
  }

  void CheckName(const Json& container, const std::string& path) {
    const std::string name = StringField(container, {"name"});
    if (!name.empty() && !names_.insert(name).second)
      problems_->Duplicate(container, absl::StrCat(path, ".name"), name);
  }

  void CheckMains() {
    const Json* const list = FindField(spec_, {"containers"});
    if (list == nullptr || list->size() == 0)
      return problems_->Required(spec_, absl::StrCat(pod_.path, ".containers"));
    std::set<std::string> ports;
    size_t index = 0;
    for (const Json& container : list->items()) {
      checks_.path = PathOf("containers", index++);
      checks_.may_have_probes = true;
      CheckContainer(container, checks_, problems_);
      CheckName(container, checks_.path);
      CheckHostPorts(container, checks_.path, &ports, problems_);
      if (!StringField(container, {"restartPolicy"}).empty()) {
        problems_->Forbidden(container, absl::StrCat(checks_.path, ".restartPolicy"),
                             "may not be set for non-init containers");
      }
    }
  }

  void CheckInits() {
    const Json* const list = FindField(spec_, {"initContainers"});
    if (list == nullptr) return;
    size_t index = 0;
    for (const Json& container : list->items()) {
      checks_.path = PathOf("initContainers", index++);
      checks_.may_have_probes = StringField(container, {"restartPolicy"}) == "Always";
      CheckContainer(container, checks_, problems_);
      CheckWord(container, checks_.path, "restartPolicy", {"Always"}, problems_);
      CheckName(container, checks_.path);
      std::set<std::string> ports;
      CheckHostPorts(container, checks_.path, &ports, problems_);
    }
  }

  const Json& spec_;
  const PodChecks& pod_;
  Problems* const problems_;
  ContainerChecks checks_;
  std::set<std::string> names_;
};

void CheckNames(const Json& spec, const std::string& path, Problems* problems) {
  for (const char* field : {"hostname", "subdomain"}) {
    const std::string held = StringField(spec, {field});
    if (!held.empty())
      CheckName(spec, absl::StrCat(path, ".", field), held, LabelNameProblems, problems);
  }
  for (const char* field :
       {"serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName"}) {
    const std::string held = StringField(spec, {field});
    if (!held.empty())
      CheckName(spec, absl::StrCat(path, ".", field), held, SubdomainProblems, problems);
  }
}

}  // namespace

void CheckPodSpec(const Json& spec, const PodChecks& checks, Problems* problems) {
  const std::string& path = checks.path;
  CheckVolumes(spec, path, problems);
  ContainerLists(spec, checks, problems).Check();
  if (const Json* const resources = FindField(spec, {"resources"}))
    CheckResourceRequirements(*resources, absl::StrCat(path, ".resources"), problems);
  CheckWord(spec, path, "restartPolicy", {"Always", "OnFailure", "Never"}, problems);
  CheckWord(spec, path, "dnsPolicy", {"ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"},
            problems);
  CheckWord(spec, path, "preemptionPolicy", {"PreemptLowerPriority", "Never"}, problems);
  CheckPodSecurity(spec, path, problems);
  CheckPodNetwork(spec, path, problems);
  const std::string system = StringField(spec, {"os", "name"});
  if (!system.empty() && system != "linux" && system != "windows")
    problems->Unsupported(spec, absl::StrCat(path, ".os"), system, {"linux", "windows"});
  CheckPlacement(spec, path, problems);
  CheckNames(spec, path, problems);
  const Json* const deadline = FindField(spec, {"activeDeadlineSeconds"});
  if (deadline == nullptr) return;
  const int64_t seconds = deadline->AsInt().value_or(0);
  if (seconds >= 1 && seconds <= INT32_MAX) return;
  problems->Invalid(*deadline, absl::StrCat(path, ".activeDeadlineSeconds"), seconds,
                    "must be between 1 and 2147483647, inclusive");
}

}  // namespace weft::platform
