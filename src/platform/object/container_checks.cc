// SPDX-License-Identifier: Apache-2.0
#include "platform/object/container_checks.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "platform/object/fields.h"
#include "platform/object/metadata_checks.h"
#include "platform/object/probe_checks.h"

namespace weft::platform {
namespace {

const std::vector<std::string>& VariableFields() {
  static const auto* const names = new std::vector<std::string>{"metadata.name",
                                                                "metadata.namespace",
                                                                "metadata.uid",
                                                                "spec.nodeName",
                                                                "spec.serviceAccountName",
                                                                "status.hostIP",
                                                                "status.hostIPs",
                                                                "status.podIP",
                                                                "status.podIPs"};
  return *names;
}

const Json::Array& Items(const Json& object, const char* field) {
  const Json* const list = FindField(object, {field});
  return list == nullptr ? Json().items() : list->items();
}

void CheckPorts(const Json& container, const std::string& path, Problems* problems) {
  std::set<std::string> names;
  size_t index = 0;
  for (const Json& port : Items(container, "ports")) {
    const std::string at = absl::StrCat(path, ".ports[", index++, "]");
    const std::string name = StringField(port, {"name"});
    if (!name.empty()) {
      const bool is_good = PortNameProblems(name).empty();
      CheckName(port, absl::StrCat(at, ".name"), name, PortNameProblems, problems);
      if (is_good && !names.insert(name).second)
        problems->Duplicate(port, absl::StrCat(at, ".name"), name);
    }
    const int64_t number = IntField(port, {"containerPort"});
    if (number == 0) problems->Required(port, absl::StrCat(at, ".containerPort"));
    for (const char* field : {"containerPort", "hostPort"}) {
      const int64_t held = IntField(port, {field});
      if (held != 0) CheckPortNumber(port, absl::StrCat(at, ".", field), held, problems);
    }
    CheckWord(port, at, "protocol", {"SCTP", "TCP", "UDP"}, problems);
  }
}

void CheckKeyReference(const Json& reference, const std::string& path, Problems* problems) {
  CheckName(reference, absl::StrCat(path, ".name"), StringField(reference, {"name"}),
            SubdomainProblems, problems);
  const std::string key = StringField(reference, {"key"});
  if (key.empty()) return problems->Required(reference, absl::StrCat(path, ".key"));
  CheckName(reference, absl::StrCat(path, ".key"), key, DataKeyProblems, problems);
}

// "metadata.labels['a']" is one of labels.
void CheckFieldReference(const Json& reference, const std::string& path, Problems* problems) {
  const std::string field = StringField(reference, {"fieldPath"});
  const std::string at = absl::StrCat(path, ".fieldPath");
  if (field.empty()) return problems->Required(reference, at);
  const std::string version = StringField(reference, {"apiVersion"});
  if (!version.empty() && version != "v1") {
    return problems->Invalid(
        reference, at, field,
        absl::StrCat("error converting fieldPath: unsupported pod version: ", version));
  }
  const size_t bracket = field.find("['");
  const std::string list = field.substr(0, bracket);
  if (bracket != std::string::npos && absl::EndsWith(field, "']")) {
    const std::string key = field.substr(bracket + 2, field.size() - bracket - 4);
    if (list == "metadata.labels" || list == "metadata.annotations")
      return CheckName(reference, path, key, QualifiedNameProblems, problems);
    return problems->Invalid(
        reference, at, field,
        absl::StrCat("error converting fieldPath: field label does not support subscript: ", list));
  }
  const std::vector<std::string>& known = VariableFields();
  if (std::find(known.begin(), known.end(), field) != known.end()) return;
  if (field == "metadata.labels" || field == "metadata.annotations")
    return problems->Unsupported(reference, at, field, known);
  problems->Invalid(reference, at, field,
                    absl::StrCat("error converting fieldPath: field label not supported: ", field));
}

void CheckResizing(const Json& container, const std::string& path, Problems* problems) {
  const std::string at = absl::StrCat(path, ".resizePolicy");
  for (const Json& policy : Items(container, "resizePolicy")) {
    for (const auto& [field, allowed] :
         {std::pair<const char*, std::vector<std::string>>{"resourceName", {"cpu", "memory"}},
          {"restartPolicy", {"NotRequired", "RestartContainer"}}}) {
      const std::string held = StringField(policy, {field});
      if (std::find(allowed.begin(), allowed.end(), held) == allowed.end())
        problems->Unsupported(policy, at, held, allowed);
    }
  }
}

void CheckVolumeDevices(const Json& container, const std::string& path,
                        const std::set<std::string>& volumes, Problems* problems) {
  size_t index = 0;
  for (const Json& device : Items(container, "volumeDevices")) {
    const std::string at = absl::StrCat(path, ".volumeDevices[", index++, "]");
    const std::string name = StringField(device, {"name"});
    if (name.empty()) {
      problems->Required(device, absl::StrCat(at, ".name"));
    } else if (volumes.count(name) == 0) {
      problems->Missing(device, absl::StrCat(at, ".name"), name);
    }
    if (StringField(device, {"devicePath"}).empty())
      problems->Required(device, absl::StrCat(at, ".devicePath"));
  }
}

void CheckVariable(const Json& variable, const std::string& path, Problems* problems) {
  const std::string name = StringField(variable, {"name"});
  if (name.empty()) {
    problems->Required(variable, absl::StrCat(path, ".name"));
  } else {
    CheckName(variable, absl::StrCat(path, ".name"), name, VariableNameProblems, problems);
  }
  const Json* const source = FindField(variable, {"valueFrom"});
  if (source == nullptr) return;
  const std::string at = absl::StrCat(path, ".valueFrom");
  int count = 0;
  if (const Json* const field = FindField(*source, {"fieldRef"})) {
    ++count;
    CheckFieldReference(*field, absl::StrCat(at, ".fieldRef"), problems);
  }
  if (const Json* const field = FindField(*source, {"resourceFieldRef"})) {
    ++count;
    CheckResourceReference(*field, absl::StrCat(at, ".resourceFieldRef"), problems);
  }
  for (const char* kind : {"configMapKeyRef", "secretKeyRef"}) {
    const Json* const reference = FindField(*source, {kind});
    if (reference == nullptr) continue;
    ++count;
    CheckKeyReference(*reference, absl::StrCat(at, ".", kind), problems);
  }
  if (count == 0) {
    problems->Invalid(variable, at, "",
                      "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or "
                      "`secretKeyRef`");
  } else if (!StringField(variable, {"value"}).empty()) {
    problems->Invalid(variable, at, "", "may not be specified when `value` is not empty");
  } else if (count > 1) {
    problems->Invalid(variable, at, "", "may not have more than one field specified at a time");
  }
}

void CheckEnvironment(const Json& container, const std::string& path, Problems* problems) {
  const std::string of_sources = absl::StrCat(path, ".envFrom");
  size_t index = 0;
  for (const Json& variable : Items(container, "env"))
    CheckVariable(variable, absl::StrCat(path, ".env[", index++, "]"), problems);
  index = 0;
  for (const Json& source : Items(container, "envFrom")) {
    const std::string at = absl::StrCat(of_sources, "[", index++, "]");
    const std::string prefix = StringField(source, {"prefix"});
    if (!prefix.empty())
      CheckName(source, absl::StrCat(at, ".prefix"), prefix, VariableNameProblems, problems);
    int count = 0;
    for (const char* kind : {"configMapRef", "secretRef"}) {
      const Json* const reference = FindField(source, {kind});
      if (reference == nullptr) continue;
      ++count;
      const std::string of_name = absl::StrCat(at, ".", kind, ".name");
      const std::string name = StringField(*reference, {"name"});
      if (name.empty()) {
        problems->Required(*reference, of_name);
      } else {
        CheckName(*reference, of_name, name, SubdomainProblems, problems);
      }
    }
    // The server names the list, not the item.
    if (count == 0) {
      problems->Invalid(source, of_sources, "",
                        "must specify one of: `configMapRef` or `secretRef`");
    } else if (count > 1) {
      problems->Invalid(source, of_sources, "",
                        "may not have more than one field specified at a time");
    }
  }
}

// Below the volume, and not out of it again. The server names the list, not the mount.
void CheckDescends(const Json& at, const std::string& path, const std::string& held,
                   Problems* problems) {
  if (absl::StartsWith(held, "/")) problems->Invalid(at, path, held, "must be a relative path");
  const std::vector<std::string> parts = absl::StrSplit(held, '/');
  if (std::find(parts.begin(), parts.end(), "..") != parts.end())
    problems->Invalid(at, path, held, "must not contain '..'");
}

// The server names the list here, too.
void CheckPropagation(const Json& mount, const std::string& list, bool is_privileged,
                      Problems* problems) {
  CheckWord(mount, list, "mountPropagation", {"Bidirectional", "HostToContainer", "None"},
            problems);
  if (StringField(mount, {"mountPropagation"}) == "Bidirectional" && !is_privileged) {
    problems->Forbidden(mount, absl::StrCat(list, ".mountPropagation"),
                        "Bidirectional mount propagation is available only to privileged "
                        "containers");
  }
  const std::string recursive = StringField(mount, {"recursiveReadOnly"});
  CheckWord(mount, list, "recursiveReadOnly", {"Disabled", "IfPossible", "Enabled"}, problems);
  if (!recursive.empty() && recursive != "Disabled" && !BoolField(mount, {"readOnly"})) {
    problems->Forbidden(mount, absl::StrCat(list, ".recursiveReadOnly"),
                        "may only be specified when readOnly is true");
  }
}

}  // namespace

void CheckVolumeMounts(const Json& container, const std::string& list,
                       const std::set<std::string>& volumes, Problems* problems) {
  std::set<std::string> places;
  size_t index = 0;
  for (const Json& mount : Items(container, "volumeMounts")) {
    const std::string at = absl::StrCat(list, "[", index++, "]");
    const std::string name = StringField(mount, {"name"});
    if (name.empty()) problems->Required(mount, absl::StrCat(at, ".name"));
    if (volumes.count(name) == 0) problems->Missing(mount, absl::StrCat(at, ".name"), name);
    const std::string place = StringField(mount, {"mountPath"});
    if (place.empty()) problems->Required(mount, absl::StrCat(at, ".mountPath"));
    if (!places.insert(place).second)
      problems->Invalid(mount, absl::StrCat(at, ".mountPath"), place, "must be unique");
    CheckPropagation(mount, list, BoolField(container, {"securityContext", "privileged"}),
                     problems);
    const std::string below = StringField(mount, {"subPath"});
    const std::string pattern = StringField(mount, {"subPathExpr"});
    if (!below.empty()) CheckDescends(mount, absl::StrCat(list, ".subPath"), below, problems);
    if (pattern.empty()) continue;
    if (!below.empty()) {
      problems->Invalid(mount, absl::StrCat(at, ".subPathExpr"), pattern,
                        "subPathExpr and subPath are mutually exclusive");
    }
    CheckDescends(mount, absl::StrCat(list, ".subPathExpr"), pattern, problems);
  }
}

void CheckHostPorts(const Json& container, const std::string& path, std::set<std::string>* taken,
                    Problems* problems) {
  size_t index = 0;
  for (const Json& port : Items(container, "ports")) {
    const std::string at = absl::StrCat(path, ".ports[", index++, "].hostPort");
    const int64_t number = IntField(port, {"hostPort"});
    if (number == 0) continue;
    const std::string protocol = StringField(port, {"protocol"});
    const std::string key = absl::StrCat(protocol.empty() ? "TCP" : protocol, "/",
                                         StringField(port, {"hostIP"}), "/", number);
    if (!taken->insert(key).second) problems->Duplicate(port, at, key);
  }
}

void CheckContainer(const Json& container, const ContainerChecks& checks, Problems* problems) {
  const std::string& path = checks.path;
  const std::string name = StringField(container, {"name"});
  if (name.empty()) {
    problems->Required(container, absl::StrCat(path, ".name"));
  } else {
    // Its log is kept in a folder of that name.
    CheckName(container, absl::StrCat(path, ".name"), name, LabelNameProblems, problems);
  }
  const std::string image = StringField(container, {"image"});
  if (checks.needs_image && image.empty())
    problems->Required(container, absl::StrCat(path, ".image"));
  if (absl::StripAsciiWhitespace(image) != image) {
    problems->Invalid(container, absl::StrCat(path, ".image"), image,
                      "must not have leading or trailing whitespace");
  }
  CheckWord(container, path, "terminationMessagePolicy", {"File", "FallbackToLogsOnError"},
            problems);
  CheckPorts(container, path, problems);
  CheckEnvironment(container, path, problems);
  CheckVolumeMounts(container, absl::StrCat(path, ".volumeMounts"), checks.volumes, problems);
  CheckVolumeDevices(container, path, checks.volumes, problems);
  CheckWord(container, path, "imagePullPolicy", {"Always", "IfNotPresent", "Never"}, problems);
  if (const Json* const resources = FindField(container, {"resources"}))
    CheckResourceRequirements(*resources, absl::StrCat(path, ".resources"), problems);
  CheckResizing(container, path, problems);
  CheckContainerSecurity(container, path, problems);
  CheckProbes(container, path, checks.grace_seconds, checks.may_have_probes, problems);
}

}  // namespace weft::platform
