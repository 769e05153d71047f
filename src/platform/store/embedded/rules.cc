// SPDX-License-Identifier: Apache-2.0
#include "platform/store/embedded/rules.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "platform/object/fields.h"
#include "platform/object/metadata_checks.h"
#include "platform/object/structural_schema.h"
#include "platform/object/tfjob.h"
#include "platform/object/type_facts.h"
#include "platform/store/api_error.h"
#include "platform/store/embedded/custom_resources.h"
#include "platform/store/embedded/defaults.h"
#include "platform/store/embedded/kind_rules.h"

namespace weft::platform {
namespace {

// What a server answers to a body that it cannot read as what it is said to be.
Status Unreadable(const ResourceType& type, const std::string& version, absl::string_view why) {
  return ApiError(400, "BadRequest",
                  absl::StrCat(type.kind, " in version \"", version, "\" cannot be handled as a ",
                               type.kind, ": ", why));
}

// Kinds that came with a definition: by its schema.
Status ReadCustomFields(const ResourceType& type, const std::string& version, bool is_strict,
                        Json* object) {
  const auto schema = type.schemas.find(version);
  if (schema == type.schemas.end()) return absl::OkStatus();
  Problems problems("");
  CheckAgainstSchema(*object, schema->second, "", &problems);
  std::vector<std::string> unknown;
  for (const FieldProblem& problem : problems.fields()) {
    if (problem.is_unknown_field) unknown.push_back(problem.what);
  }
  if (is_strict && !unknown.empty()) {
    return Unreadable(type, version,
                      absl::StrCat("strict decoding error: ", absl::StrJoin(unknown, ", ")));
  }
  PruneBySchema(schema->second, object);
  return InvalidUnlessGood(type, *object, problems, /*is_strict=*/false);
}

// Kubernetes' own kinds: by their facts.
Status ReadFields(const ResourceType& type, const std::string& version, bool is_strict,
                  Json* object) {
  if (type.is_custom) return ReadCustomFields(type, version, is_strict, object);
  const TypeFacts* const facts = FindTypeFacts(type.kind);
  if (facts == nullptr) return absl::OkStatus();
  Problems problems("");
  std::vector<std::string> wrong;
  std::vector<std::string> unknown;
  CheckFields(*object, *facts, "", &problems);
  for (const FieldProblem& problem : problems.fields()) {
    if (!problem.is_unknown_field) {
      wrong.push_back(absl::StrCat(problem.path, ": ", problem.what));
    } else {
      unknown.push_back(absl::StrCat("unknown field \"", problem.path, "\""));
    }
  }
  if (!wrong.empty()) return Unreadable(type, version, absl::StrJoin(wrong, ", "));
  if (is_strict && !unknown.empty()) {
    return Unreadable(type, version,
                      absl::StrCat("strict decoding error: ", absl::StrJoin(unknown, ", ")));
  }
  KeepKnownFields(*facts, object);
  return absl::OkStatus();
}

// Those of Kubernetes' own kinds say whose they are.
void CheckFinalizers(const Json& metadata, Problems* problems) {
  const Json* const finalizers = FindField(metadata, {"finalizers"});
  if (finalizers == nullptr) return;
  size_t index = 0;
  for (const Json& item : finalizers->items()) {
    const std::string at = absl::StrCat("metadata.finalizers[", index++, "]");
    const std::string name = item.AsString().value_or("");
    if (absl::StrContains(name, '/') || name == "kubernetes" || name == "orphan" ||
        name == "foregroundDeletion")
      continue;
    problems->Invalid(item, at, name,
                      "name is neither a standard finalizer name nor is it fully qualified");
  }
}

Status CheckObjectMetadata(const ResourceType& type, const Json& object) {
  const Json* const metadata = object.Find("metadata");
  if (metadata == nullptr) return absl::OkStatus();
  Problems problems("");
  CheckMetadata(*metadata, "metadata", &problems);
  if (!type.is_custom) CheckFinalizers(*metadata, &problems);
  return InvalidUnlessGood(type, object, problems);
}

Status CheckJob(const ResourceType& type, const Json* old, const Json& document,
                const WriteOptions& options) {
  Problems problems("");
  const TfJob job = ParseTfJob(document, &problems);
  CheckImages(job, document, &problems);
  if (old != nullptr) CheckJobUpdate(*old, document, &problems);
  return InvalidUnlessGood(type, document, problems, options.is_strict);
}

NameProblems (*NameCheckOf(const ResourceType& type))(absl::string_view) {
  if (type.plural == "services") return ServiceNameProblems;
  if (type.plural == "namespaces") return LabelNameProblems;
  return SubdomainProblems;
}

void PrepareNamespace(Json* object) {
  SetField(object, {"metadata", "labels", "kubernetes.io/metadata.name"}, NameOf(*object));
  SetField(object, {"spec", "finalizers"}, Json(Json::Array{Json("kubernetes")}));
  SetField(object, {"status", "phase"}, "Active");
}

void DefaultTrainingJob(const ResourceType& type, const std::string& version, Json* object) {
  object->Erase("status");
  // Its place under spec tells the versions apart ever after.
  if (version == "v1beta1") SetDefault(object, {"spec", "cleanPodPolicy"}, "Running");
  if (&type == &Tensorflows() && object->Find("spec") != nullptr &&
      object->Find("spec")->is_object()) {
    SetDefault(object, {"spec", "ps_count"}, 0);
    SetDefault(object, {"spec", "worker_count"}, 1);
  }
}

}  // namespace

Status InvalidUnlessGood(const ResourceType& type, const Json& object, const Problems& problems,
                         bool is_strict) {
  std::vector<FieldCause> causes;
  for (const FieldProblem& problem : problems.fields()) {
    if (is_strict || !problem.is_unknown_field)
      causes.push_back({problem.path, problem.what, problem.reason});
  }
  return causes.empty() ? absl::OkStatus() : ObjectInvalid(type, NameOf(object), causes);
}

Status CheckObjectName(const ResourceType& type, absl::string_view name) {
  if (IsJob(type)) {
    if (IsDnsLabel(name)) return absl::OkStatus();
    return ObjectInvalid(
        type, name,
        {{"metadata.name",
          HoldsButAllowed(Json(name), "allowed are 1 to 63 of a-z, 0-9 and '-', a letter first")}});
  }
  Problems problems("");
  CheckName(Json(), "metadata.name", name, NameCheckOf(type), &problems);
  Json named;
  SetField(&named, {"metadata", "name"}, name);
  return InvalidUnlessGood(type, named, problems);
}

Status PrepareCreate(const ResourceType& type, const std::string& version,
                     const WriteOptions& options, const ObjectFinder& find, Json* object) {
  WEFT_RETURN_IF_ERROR(ReadFields(type, version, options.is_strict, object));
  WEFT_RETURN_IF_ERROR(CheckObjectMetadata(type, *object));
  if (type.plural == "pods") return PreparePod(type, find, object);
  if (type.plural == "services") return PrepareService(type, object);
  if (type.plural == "configmaps" || type.plural == "secrets")
    return PrepareData(type, nullptr, object);
  if (IsWorkload(type)) return PrepareWorkload(type, nullptr, object);
  if (type.plural == "persistentvolumeclaims") return PrepareClaim(type, object);
  if (type.plural == "priorityclasses") return PreparePriorityClass(type, nullptr, object);
  if (type.plural == "namespaces") PrepareNamespace(object);
  if (!IsJob(type)) return absl::OkStatus();
  DefaultTrainingJob(type, version, object);
  return CheckJob(type, nullptr, *object, options);
}

Status PrepareUpdate(const ResourceType& type, const WriteOptions& options, const Json& old,
                     Json* object) {
  if (options.subresource == "binding") return absl::OkStatus();
  WEFT_RETURN_IF_ERROR(ReadFields(type, type.version, options.is_strict, object));
  if (options.subresource == "status") return absl::OkStatus();
  WEFT_RETURN_IF_ERROR(CheckObjectMetadata(type, *object));
  if (type.plural == "pods") return PreparePodUpdate(type, old, object);
  if (type.plural == "configmaps" || type.plural == "secrets")
    return PrepareData(type, &old, object);
  if (type.plural == "services") return PrepareService(type, object);
  if (IsWorkload(type)) return PrepareWorkload(type, &old, object);
  if (IsDefinition(type)) return ReadDefinition(*object).status();
  if (type.plural == "priorityclasses") return PreparePriorityClass(type, &old, object);
  return IsJob(type) ? CheckJob(type, &old, *object, options) : absl::OkStatus();
}

}  // namespace weft::platform
