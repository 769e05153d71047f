// SPDX-License-Identifier: Apache-2.0
#include "platform/object/container_checks.h"

#include <algorithm>
#include <vector>

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

// One of some words, or nothing.
void CheckChoice(const Json& object, const std::string& path, const char* field,
                 const std::vector<std::string>& allowed, Problems* problems) {
  const std::string held = StringField(object, {field});
  if (held.empty() || std::find(allowed.begin(), allowed.end(), held) != allowed.end()) return;
  problems->Unsupported(object, absl::StrCat(path, ".", field), held, allowed);
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
    CheckChoice(port, at, "protocol", {"SCTP", "TCP", "UDP"}, problems);
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
    if (StringField(*field, {"resource"}).empty())
      problems->Required(*field, absl::StrCat(at, ".resourceFieldRef.resource"));
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
  size_t index = 0;
  for (const Json& variable : Items(container, "env"))
    CheckVariable(variable, absl::StrCat(path, ".env[", index++, "]"), problems);
  index = 0;
  for (const Json& source : Items(container, "envFrom")) {
    const std::string at = absl::StrCat(path, ".envFrom[", index++, "]");
    const std::string prefix = StringField(source, {"prefix"});
    if (!prefix.empty())
      CheckName(source, absl::StrCat(at, ".prefix"), prefix, VariableNameProblems, problems);
    int count = 0;
    for (const char* kind : {"configMapRef", "secretRef"}) {
      const Json* const reference = FindField(source, {kind});
      if (reference == nullptr) continue;
      ++count;
      CheckName(*reference, absl::StrCat(at, ".", kind, ".name"), StringField(*reference, {"name"}),
                SubdomainProblems, problems);
    }
    if (count == 0) {
      problems->Invalid(source, at, "", "must specify one of: `configMapRef` or `secretRef`");
    } else if (count > 1) {
      problems->Invalid(source, at, "", "may not have more than one field specified at a time");
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
  if (checks.needs_image && StringField(container, {"image"}).empty())
    problems->Required(container, absl::StrCat(path, ".image"));
  CheckChoice(container, path, "terminationMessagePolicy", {"File", "FallbackToLogsOnError"},
              problems);
  CheckPorts(container, path, problems);
  CheckEnvironment(container, path, problems);
  CheckVolumeMounts(container, absl::StrCat(path, ".volumeMounts"), checks.volumes, problems);
  CheckChoice(container, path, "imagePullPolicy", {"Always", "IfNotPresent", "Never"}, problems);
  if (const Json* const resources = FindField(container, {"resources"}))
    CheckResourceRequirements(*resources, absl::StrCat(path, ".resources"), problems);
  if (const Json* const context = FindField(container, {"securityContext"})) {
    for (const char* field : {"runAsUser", "runAsGroup"})
      CheckUserId(*context, absl::StrCat(path, ".securityContext"), field, problems);
  }
  CheckProbes(container, path, checks.grace_seconds, checks.may_have_probes, problems);
}

}  // namespace weft::platform
