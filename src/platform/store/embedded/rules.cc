// SPDX-License-Identifier: Apache-2.0
#include "platform/store/embedded/rules.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "platform/object/fields.h"
#include "platform/object/metadata_checks.h"
#include "platform/object/structural_schema.h"
#include "platform/object/type_facts.h"
#include "platform/store/api_error.h"
#include "platform/store/embedded/pod_admission.h"

namespace weft::platform {
namespace {

// What a server answers to a body that it cannot read as what it is said to be.
Status Unreadable(const ResourceType& type, const std::string& version, absl::string_view why) {
  return ApiError(400, "BadRequest",
                  absl::StrCat(type.kind, " in version \"", version, "\" cannot be handled as a ",
                               type.kind, ": ", why));
}

// ObjectInvalid with the problems, if there are any. Unless it is strict, fields that are not known
// are left to whoever knows them.
Status InvalidUnlessGood(const ResourceType& type, const Json& object, const Problems& problems,
                         bool is_strict = true) {
  std::vector<FieldCause> causes;
  for (const FieldProblem& problem : problems.fields()) {
    if (is_strict || !problem.is_unknown_field)
      causes.push_back({problem.path, problem.what, problem.reason});
  }
  return causes.empty() ? absl::OkStatus() : ObjectInvalid(type, NameOf(object), causes);
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

// What names are made of by adding letters; it may end with a dash.
void CheckPrefix(const ResourceType& type, const Json& metadata, Problems* problems) {
  const std::string prefix = StringField(metadata, {"generateName"});
  if (prefix.empty()) return;
  std::string name = prefix;
  if (name.size() > 1 && name.back() == '-') name.replace(name.size() - 2, 2, "a");
  const auto rule = type.name_rule == nullptr ? &SubdomainProblems : type.name_rule;
  for (const std::string& problem : rule(name))
    problems->Invalid(metadata, "metadata.generateName", prefix, problem);
}

Status CheckObjectMetadata(const ResourceType& type, const Json& object) {
  const Json* const metadata = object.Find("metadata");
  if (metadata == nullptr) return absl::OkStatus();
  Problems problems("");
  CheckPrefix(type, *metadata, &problems);
  CheckMetadata(*metadata, "metadata", &problems);
  if (!type.is_custom) CheckFinalizers(*metadata, &problems);
  return InvalidUnlessGood(type, object, problems);
}

// A kind's defaults, what admission adds to them, and its checks.
Status Prepare(const ResourceType& type, const std::string& version, const WriteOptions& options,
               const ObjectFinder* find, const Json* old, Json* object) {
  if (type.defaults != nullptr) type.defaults(old, version, object);
  if (old == nullptr && type == Pods()) WEFT_RETURN_IF_ERROR(AdmitPod(*find, object));
  if (type.check == nullptr) return absl::OkStatus();
  Problems problems("");
  type.check(old, *object, &problems);
  return InvalidUnlessGood(type, *object, problems, options.is_strict);
}

}  // namespace

Status CheckObjectName(const ResourceType& type, absl::string_view name) {
  Problems problems("");
  CheckName(Json(), "metadata.name", name,
            type.name_rule == nullptr ? &SubdomainProblems : type.name_rule, &problems);
  Json named;
  SetField(&named, {"metadata", "name"}, name);
  return InvalidUnlessGood(type, named, problems);
}

Status PrepareCreate(const ResourceType& type, const std::string& version,
                     const WriteOptions& options, const ObjectFinder& find, Json* object) {
  WEFT_RETURN_IF_ERROR(ReadFields(type, version, options.is_strict, object));
  WEFT_RETURN_IF_ERROR(CheckObjectMetadata(type, *object));
  return Prepare(type, version, options, &find, nullptr, object);
}

Status PrepareUpdate(const ResourceType& type, const WriteOptions& options, const Json& old,
                     Json* object) {
  if (options.subresource == "binding") return absl::OkStatus();
  WEFT_RETURN_IF_ERROR(ReadFields(type, type.version, options.is_strict, object));
  if (options.subresource == "status") return absl::OkStatus();
  WEFT_RETURN_IF_ERROR(CheckObjectMetadata(type, *object));
  return Prepare(type, type.version, options, nullptr, &old, object);
}

Status CheckSelectableFields(const ResourceType& type, const Selector& fields) {
  std::vector<std::string> known = {"metadata.name", "metadata.namespace"};
  known.insert(known.end(), type.selectable_fields.begin(), type.selectable_fields.end());
  for (const std::string& key : fields.Keys()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    return ApiError(400, "BadRequest",
                    absl::StrCat("field selector: ", type.plural, " are not listed by \"", key,
                                 "\", only by ", absl::StrJoin(known, ", ")));
  }
  return absl::OkStatus();
}

}  // namespace weft::platform
