// SPDX-License-Identifier: Apache-2.0
#include "platform/apiserver/protobuf_body.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"

#include "platform/object/fields.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

constexpr absl::string_view kMagic("k8s\0", 4);
constexpr int kMostDepth = 16;

enum class Kind {
  kString,
  kBytes,
  kInt,          // 0 is left out, as Go's zero values are
  kOptionalInt,  // a pointer there: 0 counts
  kBool,
  kMessage,
  kTime,
  kMicroTime,
  kQuantity,
  kIntOrString,
  kStringMap,
  kBytesMap,
  kQuantityMap,
  kIgnored,  // what a server does not take from clients
};

struct Field {
  int number;
  const char* name;
  Kind kind;
  const struct Message* message = nullptr;
  bool is_list = false;
};

struct Message {
  const char* name;
  const Field* fields;
  size_t count;
};

template <size_t kCount>
constexpr Message Make(const char* name, const Field (&fields)[kCount]) {
  return {name, fields, kCount};
}

// The numbers are those of Kubernetes' generated.proto files.
constexpr Field kOwnerFields[] = {
    {1, "kind", Kind::kString},     {3, "name", Kind::kString},
    {4, "uid", Kind::kString},      {5, "apiVersion", Kind::kString},
    {6, "controller", Kind::kBool}, {7, "blockOwnerDeletion", Kind::kBool}};
constexpr Message kOwner = Make("OwnerReference", kOwnerFields);
constexpr Field kMetaFields[] = {{1, "name", Kind::kString},
                                 {2, "generateName", Kind::kString},
                                 {3, "namespace", Kind::kString},
                                 {5, "uid", Kind::kString},
                                 {6, "resourceVersion", Kind::kString},
                                 {7, "generation", Kind::kInt},
                                 {8, "creationTimestamp", Kind::kTime},
                                 {9, "deletionTimestamp", Kind::kTime},
                                 {10, "deletionGracePeriodSeconds", Kind::kOptionalInt},
                                 {11, "labels", Kind::kStringMap},
                                 {12, "annotations", Kind::kStringMap},
                                 {13, "ownerReferences", Kind::kMessage, &kOwner, true},
                                 {14, "finalizers", Kind::kString, nullptr, true},
                                 {17, "managedFields", Kind::kIgnored}};
constexpr Message kMeta = Make("ObjectMeta", kMetaFields);
constexpr Field kConfigMapFields[] = {{1, "metadata", Kind::kMessage, &kMeta},
                                      {2, "data", Kind::kStringMap},
                                      {3, "binaryData", Kind::kBytesMap},
                                      {4, "immutable", Kind::kBool}};
constexpr Field kSecretFields[] = {{1, "metadata", Kind::kMessage, &kMeta},
                                   {2, "data", Kind::kBytesMap},
                                   {3, "type", Kind::kString},
                                   {4, "stringData", Kind::kStringMap},
                                   {5, "immutable", Kind::kBool}};
constexpr Field kNamespaceFields[] = {{1, "metadata", Kind::kMessage, &kMeta},
                                      {2, "spec", Kind::kIgnored},
                                      {3, "status", Kind::kIgnored}};
constexpr Field kAccountFields[] = {{1, "metadata", Kind::kMessage, &kMeta},
                                    {4, "automountServiceAccountToken", Kind::kBool}};
constexpr Field kServicePortFields[] = {{1, "name", Kind::kString},
                                        {2, "protocol", Kind::kString},
                                        {3, "port", Kind::kInt},
                                        {4, "targetPort", Kind::kIntOrString},
                                        {5, "nodePort", Kind::kInt}};
constexpr Message kServicePort = Make("ServicePort", kServicePortFields);
constexpr Field kServiceSpecFields[] = {{1, "ports", Kind::kMessage, &kServicePort, true},
                                        {2, "selector", Kind::kStringMap},
                                        {3, "clusterIP", Kind::kString},
                                        {4, "type", Kind::kString},
                                        {7, "sessionAffinity", Kind::kString},
                                        {10, "externalName", Kind::kString}};
constexpr Message kServiceSpec = Make("ServiceSpec", kServiceSpecFields);
constexpr Field kServiceFields[] = {{1, "metadata", Kind::kMessage, &kMeta},
                                    {2, "spec", Kind::kMessage, &kServiceSpec},
                                    {3, "status", Kind::kIgnored}};
constexpr Field kPortFields[] = {{1, "name", Kind::kString},
                                 {2, "hostPort", Kind::kInt},
                                 {3, "containerPort", Kind::kInt},
                                 {4, "protocol", Kind::kString},
                                 {5, "hostIP", Kind::kString}};
constexpr Message kPort = Make("ContainerPort", kPortFields);
constexpr Field kEnvFields[] = {{1, "name", Kind::kString}, {2, "value", Kind::kString}};
constexpr Message kEnv = Make("EnvVar", kEnvFields);
constexpr Field kResourcesFields[] = {{1, "limits", Kind::kQuantityMap},
                                      {2, "requests", Kind::kQuantityMap}};
constexpr Message kResources = Make("ResourceRequirements", kResourcesFields);
constexpr Field kContainerFields[] = {{1, "name", Kind::kString},
                                      {2, "image", Kind::kString},
                                      {3, "command", Kind::kString, nullptr, true},
                                      {4, "args", Kind::kString, nullptr, true},
                                      {5, "workingDir", Kind::kString},
                                      {6, "ports", Kind::kMessage, &kPort, true},
                                      {7, "env", Kind::kMessage, &kEnv, true},
                                      {8, "resources", Kind::kMessage, &kResources},
                                      {13, "terminationMessagePath", Kind::kString},
                                      {14, "imagePullPolicy", Kind::kString},
                                      {16, "stdin", Kind::kBool},
                                      {17, "stdinOnce", Kind::kBool},
                                      {18, "tty", Kind::kBool},
                                      {20, "terminationMessagePolicy", Kind::kString}};
constexpr Message kContainer = Make("Container", kContainerFields);
constexpr Field kPodSpecFields[] = {{2, "containers", Kind::kMessage, &kContainer, true},
                                    {3, "restartPolicy", Kind::kString},
                                    {4, "terminationGracePeriodSeconds", Kind::kOptionalInt},
                                    {5, "activeDeadlineSeconds", Kind::kOptionalInt},
                                    {6, "dnsPolicy", Kind::kString},
                                    {7, "nodeSelector", Kind::kStringMap},
                                    {8, "serviceAccountName", Kind::kString},
                                    {9, "serviceAccount", Kind::kString},
                                    {10, "nodeName", Kind::kString},
                                    {16, "hostname", Kind::kString},
                                    {17, "subdomain", Kind::kString},
                                    {19, "schedulerName", Kind::kString},
                                    {20, "initContainers", Kind::kMessage, &kContainer, true}};
constexpr Message kPodSpec = Make("PodSpec", kPodSpecFields);
constexpr Field kPodFields[] = {{1, "metadata", Kind::kMessage, &kMeta},
                                {2, "spec", Kind::kMessage, &kPodSpec},
                                {3, "status", Kind::kIgnored}};
constexpr Field kTemplateFields[] = {{1, "metadata", Kind::kMessage, &kMeta},
                                     {2, "spec", Kind::kMessage, &kPodSpec}};
constexpr Message kTemplate = Make("PodTemplateSpec", kTemplateFields);
constexpr Field kSelectorFields[] = {{1, "matchLabels", Kind::kStringMap}};
constexpr Message kSelector = Make("LabelSelector", kSelectorFields);
constexpr Field kRollingFields[] = {{1, "maxUnavailable", Kind::kIntOrString},
                                    {2, "maxSurge", Kind::kIntOrString}};
constexpr Message kRolling = Make("RollingUpdateDeployment", kRollingFields);
constexpr Field kStrategyFields[] = {{1, "type", Kind::kString},
                                     {2, "rollingUpdate", Kind::kMessage, &kRolling}};
constexpr Message kStrategy = Make("DeploymentStrategy", kStrategyFields);
constexpr Field kDeploymentSpecFields[] = {{1, "replicas", Kind::kOptionalInt},
                                           {2, "selector", Kind::kMessage, &kSelector},
                                           {3, "template", Kind::kMessage, &kTemplate},
                                           {4, "strategy", Kind::kMessage, &kStrategy},
                                           {5, "minReadySeconds", Kind::kInt},
                                           {6, "revisionHistoryLimit", Kind::kOptionalInt},
                                           {7, "paused", Kind::kBool},
                                           {9, "progressDeadlineSeconds", Kind::kOptionalInt}};
constexpr Message kDeploymentSpec = Make("DeploymentSpec", kDeploymentSpecFields);
constexpr Field kDeploymentFields[] = {{1, "metadata", Kind::kMessage, &kMeta},
                                       {2, "spec", Kind::kMessage, &kDeploymentSpec},
                                       {3, "status", Kind::kIgnored}};
constexpr Field kJobSpecFields[] = {{1, "parallelism", Kind::kOptionalInt},
                                    {2, "completions", Kind::kOptionalInt},
                                    {3, "activeDeadlineSeconds", Kind::kOptionalInt},
                                    {4, "selector", Kind::kMessage, &kSelector},
                                    {5, "manualSelector", Kind::kBool},
                                    {6, "template", Kind::kMessage, &kTemplate},
                                    {7, "backoffLimit", Kind::kOptionalInt},
                                    {8, "ttlSecondsAfterFinished", Kind::kOptionalInt},
                                    {9, "completionMode", Kind::kString},
                                    {10, "suspend", Kind::kBool},
                                    {12, "backoffLimitPerIndex", Kind::kOptionalInt},
                                    {13, "maxFailedIndexes", Kind::kOptionalInt},
                                    {14, "podReplacementPolicy", Kind::kString},
                                    {15, "managedBy", Kind::kString}};
constexpr Message kJobSpec = Make("JobSpec", kJobSpecFields);
constexpr Field kJobFields[] = {{1, "metadata", Kind::kMessage, &kMeta},
                                {2, "spec", Kind::kMessage, &kJobSpec},
                                {3, "status", Kind::kIgnored}};
constexpr Field kClassFields[] = {{1, "metadata", Kind::kMessage, &kMeta},
                                  {2, "value", Kind::kOptionalInt},
                                  {3, "globalDefault", Kind::kBool},
                                  {4, "description", Kind::kString},
                                  {5, "preemptionPolicy", Kind::kString}};
constexpr Field kLeaseSpecFields[] = {{1, "holderIdentity", Kind::kString},
                                      {2, "leaseDurationSeconds", Kind::kOptionalInt},
                                      {3, "acquireTime", Kind::kMicroTime},
                                      {4, "renewTime", Kind::kMicroTime},
                                      {5, "leaseTransitions", Kind::kOptionalInt}};
constexpr Message kLeaseSpec = Make("LeaseSpec", kLeaseSpecFields);
constexpr Field kLeaseFields[] = {{1, "metadata", Kind::kMessage, &kMeta},
                                  {2, "spec", Kind::kMessage, &kLeaseSpec}};
constexpr Field kPreconditionFields[] = {{1, "uid", Kind::kString},
                                         {2, "resourceVersion", Kind::kString}};
constexpr Message kPreconditions = Make("Preconditions", kPreconditionFields);
constexpr Field kDeleteFields[] = {{1, "gracePeriodSeconds", Kind::kOptionalInt},
                                   {2, "preconditions", Kind::kMessage, &kPreconditions},
                                   {3, "orphanDependents", Kind::kBool},
                                   {4, "propagationPolicy", Kind::kString},
                                   {5, "dryRun", Kind::kString, nullptr, true}};

constexpr Message kKinds[] = {Make("v1/ConfigMap", kConfigMapFields),
                              Make("v1/Secret", kSecretFields),
                              Make("v1/Namespace", kNamespaceFields),
                              Make("v1/Service", kServiceFields),
                              Make("v1/ServiceAccount", kAccountFields),
                              Make("v1/Pod", kPodFields),
                              Make("apps/v1/Deployment", kDeploymentFields),
                              Make("batch/v1/Job", kJobFields),
                              Make("scheduling.k8s.io/v1/PriorityClass", kClassFields),
                              Make("coordination.k8s.io/v1/Lease", kLeaseFields)};
constexpr Message kDeleteOptions = Make("DeleteOptions", kDeleteFields);

Status Malformed() {
  return ApiError(400, "BadRequest", "the body is no protobuf of Kubernetes: it breaks off");
}

Status NotRead(absl::string_view what) {
  return ApiError(415, "UnsupportedMediaType",
                  absl::StrCat(what,
                               " is not read in protobuf here - accepted media types "
                               "include: application/json, application/yaml"));
}

// One field as it lies in a message.
struct Wire {
  int number = 0;
  bool is_bytes = false;
  uint64_t value = 0;
  absl::string_view bytes;
};

class Reader {
 public:
  explicit Reader(absl::string_view data) : data_(data) {}
  bool is_done() const { return data_.empty(); }

  StatusOr<Wire> Next() {
    uint64_t key = 0;
    Wire wire;
    if (!Varint(&key) || key >> 3 == 0 || key >> 3 > 536870911) return Malformed();
    wire.number = static_cast<int>(key >> 3);
    if ((key & 7) == 0) return Varint(&wire.value) ? StatusOr<Wire>(wire) : Malformed();
    wire.is_bytes = (key & 7) == 2;
    uint64_t size = (key & 7) == 1 ? 8 : 4;
    if (wire.is_bytes ? !Varint(&size) : (key & 7) != 1 && (key & 7) != 5) return Malformed();
    if (size > data_.size()) return Malformed();
    wire.bytes = data_.substr(0, size);
    data_.remove_prefix(size);
    return wire;
  }

 private:
  bool Varint(uint64_t* value) {
    *value = 0;
    for (int shift = 0; shift < 64 && !data_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(data_[0]);
      data_.remove_prefix(1);
      *value |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) return true;
    }
    return false;
  }
  absl::string_view data_;
};

StatusOr<std::string> Base64(absl::string_view bytes) {
  std::string encoded;
  absl::Base64Escape(bytes, &encoded);
  return encoded;
}

// {1: value} of a Quantity.
StatusOr<std::string> QuantityText(absl::string_view bytes) {
  std::string text;
  for (Reader reader(bytes); !reader.is_done();) {
    WEFT_ASSIGN_OR_RETURN(const Wire wire, reader.Next());
    if (wire.number == 1) text = std::string(wire.bytes);
  }
  return text;
}

StatusOr<Json> TimeText(absl::string_view bytes, bool is_micro) {
  int64_t seconds = 0;
  int64_t nanos = 0;
  for (Reader reader(bytes); !reader.is_done();) {
    WEFT_ASSIGN_OR_RETURN(const Wire wire, reader.Next());
    (wire.number == 1 ? seconds : nanos) = static_cast<int64_t>(wire.value);
  }
  if (seconds == 0 && nanos == 0) return Json();
  const absl::Time time = absl::FromUnixSeconds(seconds) + absl::Nanoseconds(nanos);
  return Json(absl::FormatTime(is_micro ? "%Y-%m-%dT%H:%M:%E6SZ" : "%Y-%m-%dT%H:%M:%SZ", time,
                               absl::UTCTimeZone()));
}

StatusOr<Json> IntOrString(absl::string_view bytes) {
  bool is_text = false;
  int64_t number = 0;
  std::string text;
  for (Reader reader(bytes); !reader.is_done();) {
    WEFT_ASSIGN_OR_RETURN(const Wire wire, reader.Next());
    if (wire.number == 1) is_text = wire.value == 1;
    if (wire.number == 2) number = static_cast<int32_t>(wire.value);
    if (wire.number == 3) text = std::string(wire.bytes);
  }
  if (is_text) return Json(text);
  return number == 0 ? Json() : Json(number);
}

Status ReadEntry(absl::string_view bytes, Kind kind, Json* map) {
  std::string key;
  std::string value;
  for (Reader reader(bytes); !reader.is_done();) {
    WEFT_ASSIGN_OR_RETURN(const Wire wire, reader.Next());
    (wire.number == 1 ? key : value) = std::string(wire.bytes);
  }
  if (kind == Kind::kBytesMap) {
    WEFT_ASSIGN_OR_RETURN(value, Base64(value));
  } else if (kind == Kind::kQuantityMap) {
    WEFT_ASSIGN_OR_RETURN(value, QuantityText(value));
  }
  map->Set(key, value);
  return absl::OkStatus();
}

StatusOr<Json> ReadMessage(absl::string_view bytes, const Message& message, int depth);

// Null for what Go writes of fields that nobody has set.
StatusOr<Json> ReadValue(const Wire& wire, const Field& field, int depth) {
  const bool wants_number =
      field.kind == Kind::kInt || field.kind == Kind::kOptionalInt || field.kind == Kind::kBool;
  if (wants_number == wire.is_bytes) return Malformed();
  switch (field.kind) {
    case Kind::kString:
      return wire.bytes.empty() && !field.is_list ? Json() : Json(wire.bytes);
    case Kind::kBytes: {
      WEFT_ASSIGN_OR_RETURN(std::string text, Base64(wire.bytes));
      return Json(std::move(text));
    }
    case Kind::kInt:
      return wire.value == 0 ? Json() : Json(static_cast<int64_t>(wire.value));
    case Kind::kOptionalInt:
      return Json(static_cast<int64_t>(wire.value));
    case Kind::kBool:
      return wire.value == 0 ? Json() : Json(true);
    case Kind::kMessage: {
      WEFT_ASSIGN_OR_RETURN(Json value, ReadMessage(wire.bytes, *field.message, depth + 1));
      return value.size() == 0 && !field.is_list ? Json() : std::move(value);
    }
    case Kind::kTime:
    case Kind::kMicroTime:
      return TimeText(wire.bytes, field.kind == Kind::kMicroTime);
    case Kind::kQuantity: {
      WEFT_ASSIGN_OR_RETURN(std::string text, QuantityText(wire.bytes));
      return Json(std::move(text));
    }
    case Kind::kIntOrString:
      return IntOrString(wire.bytes);
    default:
      return Json();
  }
}

StatusOr<Json> ReadMessage(absl::string_view bytes, const Message& message, int depth) {
  if (depth > kMostDepth) return Malformed();
  Json object = Json::MakeObject();
  for (Reader reader(bytes); !reader.is_done();) {
    WEFT_ASSIGN_OR_RETURN(const Wire wire, reader.Next());
    const Field* field = nullptr;
    for (size_t i = 0; i < message.count; ++i) {
      if (message.fields[i].number == wire.number) field = &message.fields[i];
    }
    if (field == nullptr) {
      // Go writes what is empty, too.
      if (wire.bytes.empty() && wire.value == 0) continue;
      return NotRead(absl::StrCat("field ", wire.number, " of ", message.name));
    }
    if (field->kind == Kind::kIgnored) continue;
    const bool is_map = field->kind == Kind::kStringMap || field->kind == Kind::kBytesMap ||
                        field->kind == Kind::kQuantityMap;
    if (is_map || field->is_list) {
      if (object.Find(field->name) == nullptr) {
        object.Set(field->name, is_map ? Json::MakeObject() : Json::MakeArray());
      }
      Json* const held = object.FindMutable(field->name);
      if (is_map) {
        WEFT_RETURN_IF_ERROR(ReadEntry(wire.bytes, field->kind, held));
        continue;
      }
      WEFT_ASSIGN_OR_RETURN(Json item, ReadValue(wire, *field, depth));
      held->Append(std::move(item));
      continue;
    }
    WEFT_ASSIGN_OR_RETURN(Json value, ReadValue(wire, *field, depth));
    if (!value.is_null()) object.Set(field->name, std::move(value));
  }
  return object;
}

}  // namespace

StatusOr<Json> ParseProtobufBody(absl::string_view body) {
  if (!absl::ConsumePrefix(&body, kMagic)) return Malformed();
  std::string api_version;
  std::string kind;
  absl::string_view raw;
  for (Reader reader(body); !reader.is_done();) {
    WEFT_ASSIGN_OR_RETURN(const Wire wire, reader.Next());
    if (wire.number == 2) raw = wire.bytes;
    if (wire.number != 1) continue;
    for (Reader type(wire.bytes); !type.is_done();) {
      WEFT_ASSIGN_OR_RETURN(const Wire word, type.Next());
      (word.number == 1 ? api_version : kind) = std::string(word.bytes);
    }
  }
  if (kind == kDeleteOptions.name) return ReadMessage(raw, kDeleteOptions, 0);
  const std::string wanted = absl::StrCat(api_version, "/", kind);
  for (const Message& known : kKinds) {
    if (known.name != wanted) continue;
    WEFT_ASSIGN_OR_RETURN(Json object, ReadMessage(raw, known, 0));
    object.Set("apiVersion", api_version);
    object.Set("kind", kind);
    return object;
  }
  return NotRead(absl::StrCat("kind ", wanted));
}

}  // namespace weft::platform
