// SPDX-License-Identifier: Apache-2.0
#include "platform/object/pod.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/object/metadata_checks.h"
#include "platform/object/pod_annotations.h"
#include "platform/object/pod_checks.h"
#include "platform/object/type_facts.h"

namespace weft::platform {
namespace {

std::vector<std::string> Texts(const Json& object, const char* field) {
  std::vector<std::string> texts;
  const Json* const list = FindField(object, {field});
  if (list == nullptr) return texts;
  for (const Json& item : list->items()) texts.push_back(item.AsString().value_or(""));
  return texts;
}

bool HasItems(const Json& object, const char* field) {
  const Json* const list = FindField(object, {field});
  return list != nullptr && list->size() > 0;
}

EnvironmentVariable ReadVariable(const Json& value) {
  EnvironmentVariable variable;
  variable.name = StringField(value, {"name"});
  variable.value = StringField(value, {"value"});
  variable.from_field = StringField(value, {"valueFrom", "fieldRef", "fieldPath"});
  for (const auto& [field, words] :
       {std::pair{"configMapKeyRef", "config map"}, {"secretKeyRef", "secret"}}) {
    const Json* const reference = FindField(value, {"valueFrom", field});
    if (reference == nullptr) continue;
    variable.is_optional = BoolField(*reference, {"optional"});
    variable.from_elsewhere = absl::StrCat(words, " '", StringField(*reference, {"name"}),
                                           "', key '", StringField(*reference, {"key"}), "'");
  }
  if (FindField(value, {"valueFrom", "resourceFieldRef"}) != nullptr)
    variable.from_elsewhere = "resourceFieldRef";
  return variable;
}

ContainerPort ReadPort(const Json& value) {
  ContainerPort port;
  port.name = StringField(value, {"name"});
  port.port = IntField(value, {"containerPort"});
  const std::string protocol = StringField(value, {"protocol"});
  if (!protocol.empty()) port.protocol = protocol;
  return port;
}

}  // namespace

bool IsDnsLabel(absl::string_view name) { return ServiceNameProblems(name).empty(); }

ObjectMeta ParseObjectMeta(const Json& value, const std::string& path, Problems* problems) {
  ObjectMeta meta;
  meta.name = StringField(value, {"name"});
  const std::string space = StringField(value, {"namespace"});
  if (!space.empty()) meta.namespace_name = space;
  for (const auto& [field, texts] :
       {std::pair{"labels", &meta.labels}, {"annotations", &meta.annotations}}) {
    const Json* const held = FindField(value, {field});
    if (held == nullptr) continue;
    for (const JsonMember& member : held->members())
      texts->emplace_back(member.name, member.value.AsString().value_or(""));
  }
  const TypeFacts* const facts = FindTypeFacts("ObjectMeta");
  if (facts != nullptr && CheckFields(value, *facts, path, problems))
    CheckMetadata(value, path, problems);
  return meta;
}

void CheckResources(const Json& value, const std::string& path, Problems* problems) {
  FieldFacts facts;
  facts.holds = FieldFacts::Holds::kQuantity;
  facts.shape = FieldFacts::Shape::kMap;
  CheckField(value, facts, path, problems);
}

Container ReadContainer(const Json& value) {
  Container container;
  container.position = value.position();
  container.name = StringField(value, {"name"});
  container.image = StringField(value, {"image"});
  container.command = Texts(value, "command");
  container.args = Texts(value, "args");
  container.working_directory = StringField(value, {"workingDir"});
  if (const Json* const variables = FindField(value, {"env"})) {
    for (const Json& item : variables->items()) container.environment.push_back(ReadVariable(item));
  }
  if (const Json* const ports = FindField(value, {"ports"})) {
    for (const Json& item : ports->items()) container.ports.push_back(ReadPort(item));
  }
  if (const Json* const resources = FindField(value, {"resources"}))
    container.resources = *resources;
  container.has_environment_from = HasItems(value, "envFrom");
  container.has_volume_mounts = HasItems(value, "volumeMounts");
  return container;
}

PodTemplate ParsePodTemplate(const Json& value, const std::string& path, Problems* problems) {
  PodTemplate pod;
  const TypeFacts* const facts = FindTypeFacts("PodTemplateSpec");
  const bool is_readable = facts != nullptr && CheckFields(value, *facts, path, problems);
  const Json* const spec = FindField(value, {"spec"});
  if (spec == nullptr) {
    if (value.is_object())
      problems->Required(value, absl::StrCat(path, ".spec"), "the pod, with its containers");
    return pod;
  }
  pod.written = value;
  if (is_readable) {
    if (const Json* const meta = FindField(value, {"metadata"})) {
      CheckMetadata(*meta, absl::StrCat(path, ".metadata"), problems);
      CheckPodAnnotations(nullptr, *meta, absl::StrCat(path, ".metadata"), problems);
    }
    PodChecks checks;
    checks.path = absl::StrCat(path, ".spec");
    checks.needs_images = false;
    CheckPodSpec(*spec, checks, problems);
  }
  if (const Json* const containers = FindField(*spec, {"containers"})) {
    for (const Json& item : containers->items()) pod.containers.push_back(ReadContainer(item));
  }
  pod.has_init_containers = HasItems(*spec, "initContainers");
  return pod;
}

}  // namespace weft::platform
