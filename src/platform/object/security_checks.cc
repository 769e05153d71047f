// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "platform/object/container_checks.h"
#include "platform/object/fields.h"
#include "platform/object/metadata_checks.h"
#include "platform/object/pod_checks.h"
#include "platform/object/probe_checks.h"

namespace weft::platform {
namespace {

// Of seccomp and AppArmor: a file of the node where it says Localhost.
void CheckProfile(const Json& context, const std::string& path, const char* field, const char* kind,
                  Problems* problems) {
  const Json* const profile = FindField(context, {field});
  if (profile == nullptr) return;
  const std::string at = absl::StrCat(path, ".", field);
  const std::string type = StringField(*profile, {"type"});
  const std::string file = StringField(*profile, {"localhostProfile"});
  const std::string of_file = absl::StrCat(at, ".localhostProfile");
  CheckWord(*profile, at, "type", {"Localhost", "RuntimeDefault", "Unconfined"}, problems);
  if (type == "Localhost" && file.empty()) {
    problems->Required(*profile, of_file,
                       absl::StrCat("must be set when ", kind, " type is Localhost"));
  } else if (type != "Localhost" && !file.empty()) {
    problems->Invalid(*profile, of_file, file,
                      absl::StrCat("can only be set when ", kind, " type is Localhost"));
  }
}

// "net.core.somaxconn", also with slashes.
bool IsKernelSetting(const std::string& name) {
  if (name.empty() || name.size() > 253) return false;
  for (const absl::string_view part : absl::StrSplit(name, absl::ByAnyChar("./"))) {
    if (part.empty() || part.front() == '-' || part.front() == '_' || part.back() == '-' ||
        part.back() == '_' ||
        part.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_") != part.npos)
      return false;
  }
  return true;
}

void CheckKernelSettings(const Json& context, const std::string& path, Problems* problems) {
  const Json* const settings = FindField(context, {"sysctls"});
  if (settings == nullptr) return;
  std::set<std::string> names;
  size_t index = 0;
  for (const Json& setting : settings->items()) {
    const std::string at = absl::StrCat(path, ".sysctls[", index++, "].name");
    const std::string name = StringField(setting, {"name"});
    if (name.empty()) {
      problems->Required(setting, at);
    } else if (!IsKernelSetting(name)) {
      problems->Invalid(setting, at, name,
                        "must have at most 253 characters and match regex "
                        "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$");
    } else if (!names.insert(name).second) {
      problems->Duplicate(setting, at, name);
    }
  }
}

// What a pod of its own users may not share with the node.
void CheckSharing(const Json& spec, const std::string& path, Problems* problems) {
  if (BoolField(spec, {"shareProcessNamespace"}) && BoolField(spec, {"hostPID"})) {
    problems->Invalid(spec, absl::StrCat(path, ".securityContext.shareProcessNamespace"), true,
                      "ShareProcessNamespace and HostPID cannot both be enabled");
  }
  const Json* const users = FindField(spec, {"hostUsers"});
  if (users == nullptr || users->AsBool().value_or(true)) return;
  for (const char* field : {"hostNetwork", "hostPID", "hostIPC"}) {
    if (BoolField(spec, {field}))
      problems->Forbidden(spec, absl::StrCat(path, ".", field),
                          "when `pod.Spec.HostUsers` is false");
  }
}

}  // namespace

void CheckPodSecurity(const Json& spec, const std::string& path, Problems* problems) {
  CheckSharing(spec, path, problems);
  const Json* const context = FindField(spec, {"securityContext"});
  if (context == nullptr) return;
  const std::string at = absl::StrCat(path, ".securityContext");
  for (const char* field : {"fsGroup", "runAsUser", "runAsGroup"})
    CheckUserId(*context, at, field, problems);
  if (const Json* const groups = FindField(*context, {"supplementalGroups"})) {
    for (size_t i = 0; i < groups->items().size(); ++i) {
      const Json& group = groups->items()[i];
      const int64_t id = group.AsInt().value_or(0);
      if (id >= 0 && id <= INT32_MAX) continue;
      problems->Invalid(group, absl::StrCat(at, ".supplementalGroups[", i, "]"), id,
                        "must be between 0 and 2147483647, inclusive");
    }
  }
  CheckWord(*context, at, "fsGroupChangePolicy", {"Always", "OnRootMismatch"}, problems);
  CheckWord(*context, at, "supplementalGroupsPolicy", {"Merge", "Strict"}, problems);
  CheckProfile(*context, at, "seccompProfile", "seccomp", problems);
  CheckProfile(*context, at, "appArmorProfile", "AppArmor", problems);
  CheckKernelSettings(*context, at, problems);
}

void CheckContainerSecurity(const Json& container, const std::string& path, Problems* problems) {
  const Json* const context = FindField(container, {"securityContext"});
  if (context == nullptr) return;
  const std::string at = absl::StrCat(path, ".securityContext");
  for (const char* field : {"runAsUser", "runAsGroup"}) CheckUserId(*context, at, field, problems);
  CheckWord(*context, at, "procMount", {"Default", "Unmasked"}, problems);
  CheckProfile(*context, at, "seccompProfile", "seccomp", problems);
  CheckProfile(*context, at, "appArmorProfile", "AppArmor", problems);
  const Json* const escalation = FindField(*context, {"allowPrivilegeEscalation"});
  if (escalation == nullptr || escalation->AsBool().value_or(true)) return;
  if (BoolField(*context, {"privileged"})) {
    problems->Invalid(*context, at, *context,
                      "cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
  }
}

}  // namespace weft::platform
