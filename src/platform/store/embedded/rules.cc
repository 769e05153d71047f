// SPDX-License-Identifier: Apache-2.0
#include "platform/store/embedded/rules.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"

#include "platform/object/fields.h"
#include "platform/object/pod.h"
#include "platform/object/quantity.h"
#include "platform/object/tfjob.h"
#include "platform/store/api_error.h"
#include "platform/store/embedded/defaults.h"

namespace weft::platform {
namespace {

constexpr std::pair<absl::string_view, absl::string_view> kSelectable[] = {
    {"pods", "spec.nodeName"},
    {"pods", "spec.restartPolicy"},
    {"pods", "spec.schedulerName"},
    {"pods", "spec.serviceAccountName"},
    {"pods", "spec.hostNetwork"},
    {"pods", "status.phase"},
    {"pods", "status.podIP"},
    {"pods", "status.nominatedNodeName"},
    {"events", "involvedObject.kind"},
    {"events", "involvedObject.namespace"},
    {"events", "involvedObject.name"},
    {"events", "involvedObject.uid"},
    {"events", "involvedObject.apiVersion"},
    {"events", "involvedObject.resourceVersion"},
    {"events", "involvedObject.fieldPath"},
    {"events", "reason"},
    {"events", "reportingComponent"},
    {"events", "source"},
    {"events", "type"},
    {"secrets", "type"},
    {"namespaces", "status.phase"},
    {"nodes", "spec.unschedulable"},
    {"services", "spec.clusterIP"},
    {"services", "spec.type"},
    {"replicasets", "status.replicas"},
};

// Unless it is strict, fields that are not known are left to whoever knows them.
Status Invalid(const ResourceType& type, const Json& object, const Problems& problems,
               bool is_strict = true) {
  std::vector<FieldCause> causes;
  for (const FieldProblem& problem : problems.fields()) {
    if (is_strict || !problem.is_unknown_field) causes.push_back({problem.path, problem.what});
  }
  return causes.empty() ? absl::OkStatus() : ObjectInvalid(type, NameOf(object), causes);
}

Status CheckPod(const ResourceType& type, const Json& pod, bool is_strict) {
  Problems problems("");
  Json shape;
  shape.Set("spec", FindField(pod, {"spec"}) == nullptr ? Json() : *FindField(pod, {"spec"}));
  const PodTemplate parsed = ParsePodTemplate(shape, "", &problems);
  if (parsed.containers.empty() && problems.empty()) {
    problems.Add(Json(), "spec.containers",
                 "holds an empty list, at least one container is needed");
  }
  for (size_t i = 0; i < parsed.containers.size(); ++i) {
    if (!parsed.containers[i].image.empty()) continue;
    problems.Add(Json(), absl::StrCat("spec.containers[", i, "].image"),
                 "missing: the image to run");
  }
  const std::string policy = StringField(pod, {"spec", "restartPolicy"});
  if (policy != "Always" && policy != "OnFailure" && policy != "Never") {
    problems.Add(Json(), "spec.restartPolicy",
                 HoldsButAllowed(Json(policy), "Always, OnFailure and Never are allowed"));
  }
  return Invalid(type, pod, problems, is_strict);
}

Status PreparePod(const ResourceType& type, const WriteOptions& options, Json* pod) {
  DefaultPod(pod);
  return CheckPod(type, *pod, options.is_strict);
}

Status PrepareService(const ResourceType& type, Json* service) {
  Problems problems("");
  DefaultService(service);
  Json* const spec = service->FindMutable("spec");
  if (Json* const ports = spec->FindMutable("ports"); ports != nullptr && ports->is_array()) {
    size_t index = 0;
    for (Json& port : *ports->mutable_items()) {
      const int64_t number = IntField(port, {"port"});
      if (number < 1 || number > 65535) {
        const Json* const held = port.Find("port");
        problems.Add(port, absl::StrCat("spec.ports[", index, "].port"),
                     HoldsButAllowed(held == nullptr ? Json() : *held, "1 to 65535 is allowed"));
      }
      ++index;
    }
  }
  return Invalid(type, *service, problems);
}

Status PrepareData(const ResourceType& type, const WriteOptions& options, Json* object) {
  Problems problems("");
  FieldReader top(*object, "", &problems);
  top.Accept({"apiVersion", "kind", "metadata", "data", "immutable"});
  if (type.plural == "secrets") top.Accept({"stringData", "type"});
  if (type.plural == "configmaps") top.Accept({"binaryData"});
  top.Finish();
  if (const Json* const plain = object->Find("stringData");
      plain != nullptr && type.plural == "secrets") {
    const Json added = *plain;
    for (const JsonMember& member : added.members()) {
      std::string encoded;
      absl::Base64Escape(member.value.AsString().value_or(""), &encoded);
      SetField(object, {"data", member.name}, encoded);
    }
    object->Erase("stringData");
  }
  if (type.plural == "secrets") SetDefault(object, {"type"}, "Opaque");
  const Json* const data = object->Find("data");
  if (data != nullptr && !data->is_null()) {
    FieldReader reader(*data, "data", &problems);
    for (const JsonMember& member : data->members()) {
      std::string value;
      reader.ReadString(member.name, &value);
      std::string decoded;
      if (type.plural == "secrets" && !absl::Base64Unescape(value, &decoded)) {
        problems.Add(member.value, absl::StrCat("data.", member.name), "is not base64");
      }
    }
  }
  return Invalid(type, *object, problems, options.is_strict);
}

Status CheckJob(const ResourceType& type, const Json* old, const Json& document,
                const WriteOptions& options) {
  Problems problems("");
  const TfJob job = ParseTfJob(document, &problems);
  CheckImages(job, document, &problems);
  if (old != nullptr) CheckJobUpdate(*old, document, &problems);
  return Invalid(type, document, problems, options.is_strict);
}

Status PrepareWorkload(const ResourceType& type, Json* object) {
  Problems problems("");
  SetDefault(object, {"spec", "replicas"}, 1);
  DefaultPodSpec(object, {"spec", "template", "spec"});
  if (IntField(*object, {"spec", "replicas"}, -1) < 0) {
    problems.Add(
        Json(), "spec.replicas",
        HoldsButAllowed(*FindField(*object, {"spec", "replicas"}), "0 and more is allowed"));
  }
  if (FindField(*object, {"spec", "selector"}) == nullptr) {
    problems.Add(Json(), "spec.selector", "missing: which pods are its own");
  }
  SetField(object, {"status"}, Json::MakeObject());
  return Invalid(type, *object, problems);
}

// Bound to a folder when a pod first wants it.
Status PrepareClaim(const ResourceType& type, Json* claim) {
  Problems problems("");
  const Json* const modes = FindField(*claim, {"spec", "accessModes"});
  if (modes == nullptr || !modes->is_array() || modes->size() == 0) {
    problems.Add(Json(), "spec.accessModes",
                 "missing: at least one of ReadWriteOnce, ReadOnlyMany, ReadWriteMany and "
                 "ReadWriteOncePod is needed");
  }
  const Json* const size = FindField(*claim, {"spec", "resources", "requests", "storage"});
  if (size == nullptr) {
    problems.Add(Json(), "spec.resources.requests.storage", "missing: how much is wanted, as 1Gi");
  } else if (const Status status = ParseQuantity(*size).status(); !status.ok()) {
    problems.Add(*size, "spec.resources.requests.storage", status.message());
  }
  SetDefault(claim, {"spec", "volumeMode"}, "Filesystem");
  SetField(claim, {"status"}, Json::MakeObject());
  SetField(claim, {"status", "phase"}, "Pending");
  return Invalid(type, *claim, problems);
}

// Of a pod only what the server lets a client change.
Status CheckPodUpdate(const ResourceType& type, const Json& old, const Json& pod) {
  const auto fixed = [](const Json& object) {
    Json spec =
        FindField(object, {"spec"}) == nullptr ? Json::MakeObject() : *FindField(object, {"spec"});
    for (const char* free :
         {"activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds"}) {
      spec.Erase(free);
    }
    for (const char* list : {"containers", "initContainers"}) {
      Json* const containers = spec.FindMutable(list);
      if (containers == nullptr || !containers->is_array()) continue;
      for (Json& container : *containers->mutable_items()) container.Erase("image");
    }
    return spec;
  };
  if (SameJson(fixed(old), fixed(pod))) return absl::OkStatus();
  return ObjectInvalid(type, NameOf(pod),
                       {{"spec",
                         "Forbidden: pod updates may not change fields other than "
                         "`spec.containers[*].image`, `spec.initContainers[*].image`, "
                         "`spec.activeDeadlineSeconds`, `spec.terminationGracePeriodSeconds` "
                         "and `spec.tolerations`"}});
}

bool IsDnsSubdomain(absl::string_view name) {
  if (name.empty() || name.size() > 253) return false;
  const auto is_alphanumeric = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  };
  if (!is_alphanumeric(name.front()) || !is_alphanumeric(name.back())) return false;
  return std::all_of(name.begin(), name.end(),
                     [&](char c) { return is_alphanumeric(c) || c == '-' || c == '.'; }) &&
         !absl::StrContains(name, "..");
}

}  // namespace

Status CheckObjectName(const ResourceType& type, absl::string_view name) {
  const bool is_label = IsJob(type) || type.plural == "services";
  if (is_label ? IsDnsLabel(name) : IsDnsSubdomain(name)) return absl::OkStatus();
  return ObjectInvalid(
      type, name,
      {{"metadata.name",
        HoldsButAllowed(Json(name),
                        is_label ? "allowed are 1 to 63 of a-z, 0-9 and '-', a letter first"
                                 : "allowed are 1 to 253 of a-z, 0-9, '-' and '.', a letter or "
                                   "digit first and last")}});
}

Status CheckSelectableFields(const ResourceType& type, const Selector& fields) {
  std::vector<std::string> known = {"metadata.name", "metadata.namespace"};
  for (const auto& [plural, path] : kSelectable) {
    if (type.plural == plural) known.emplace_back(path);
  }
  for (const std::string& key : fields.Keys()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    return ApiError(400, "BadRequest",
                    absl::StrCat("field selector: ", type.plural, " are not listed by \"", key,
                                 "\", only by ", absl::StrJoin(known, ", ")));
  }
  return absl::OkStatus();
}

Status PrepareCreate(const ResourceType& type, const std::string& version,
                     const WriteOptions& options, Json* object) {
  if (type.plural == "pods") return PreparePod(type, options, object);
  if (type.plural == "services") return PrepareService(type, object);
  if (type.plural == "configmaps" || type.plural == "secrets")
    return PrepareData(type, options, object);
  if (type.group == "apps") return PrepareWorkload(type, object);
  if (type.plural == "persistentvolumeclaims") return PrepareClaim(type, object);
  if (type.plural == "namespaces") {
    SetField(object, {"metadata", "labels", "kubernetes.io/metadata.name"}, NameOf(*object));
    SetField(object, {"spec", "finalizers"}, Json(Json::Array{Json("kubernetes")}));
    SetField(object, {"status", "phase"}, "Active");
  }
  if (IsJob(type)) {
    object->Erase("status");
    // Its place under spec tells the versions apart ever after.
    if (version == "v1beta1") SetDefault(object, {"spec", "cleanPodPolicy"}, "Running");
    if (&type == &Tensorflows() && object->Find("spec") != nullptr &&
        object->Find("spec")->is_object()) {
      SetDefault(object, {"spec", "ps_count"}, 0);
      SetDefault(object, {"spec", "worker_count"}, 1);
    }
    return CheckJob(type, nullptr, *object, options);
  }
  return absl::OkStatus();
}

Status PrepareUpdate(const ResourceType& type, const WriteOptions& options, const Json& old,
                     Json* object) {
  if (options.subresource == "binding") return absl::OkStatus();
  if (type.plural == "pods" && options.subresource.empty()) {
    WEFT_RETURN_IF_ERROR(CheckPodUpdate(type, old, *object));
    return CheckPod(type, *object, options.is_strict);
  }
  if (type.plural == "configmaps" || type.plural == "secrets")
    return PrepareData(type, options, object);
  if (type.plural == "services" && options.subresource.empty()) return PrepareService(type, object);
  if (IsJob(type) && options.subresource != "status") return CheckJob(type, &old, *object, options);
  return absl::OkStatus();
}

}  // namespace weft::platform
