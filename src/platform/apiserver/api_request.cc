// SPDX-License-Identifier: Apache-2.0
#include "platform/apiserver/api_request.h"

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

#include "net/yaml.h"
#include "platform/apiserver/protobuf_body.h"
#include "platform/object/fields.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

Status BadRequest(absl::string_view message) { return ApiError(400, "BadRequest", message); }

std::string HeaderOf(const HttpRequest& http, const std::string& name) {
  const auto found = http.headers.find(name);
  return found == http.headers.end() ? "" : found->second;
}

std::string MediaType(absl::string_view header) {
  return absl::AsciiStrToLower(absl::StripAsciiWhitespace(header.substr(0, header.find(';'))));
}

// "kubectl/v1.33.0 (linux/amd64) ..." is kubectl, where nobody says who writes.
std::string ManagerOfAgent(const HttpRequest& http) {
  const std::string agent = HeaderOf(http, "user-agent");
  return agent.substr(0, agent.find('/'));
}

StatusOr<bool> ReadDryRun(const std::string& text) {
  if (text.empty()) return false;
  if (text == "All") return true;
  return BadRequest(absl::StrCat("invalid dryRun \"", text, "\": only All is allowed"));
}

StatusOr<int64_t> ReadNumber(const ApiRequest& request, const std::string& name, int64_t missing) {
  const std::string text = request.Query(name);
  int64_t value = missing;
  if (!text.empty() && (!absl::SimpleAtoi(text, &value) || value < 0)) {
    return BadRequest(absl::StrCat("invalid ", name, " \"", text, "\": a whole number is allowed"));
  }
  return value;
}

Status TooMany() {
  return ApiError(413, "RequestEntityTooLarge",
                  absl::StrCat("a mapping of the body has more than ", kMostMembers,
                               " fields, or a list more than ", kMostItems,
                               " items: spread them over several objects"));
}

}  // namespace

std::string ApiRequest::Query(const std::string& name) const {
  const auto found = query.find(name);
  return found == query.end() ? "" : found->second;
}

bool ApiRequest::Flag(const std::string& name) const {
  const auto found = query.find(name);
  return found != query.end() && found->second != "0" &&
         !absl::EqualsIgnoreCase(found->second, "false");
}

StatusOr<AnswerForm> ChooseAnswerForm(absl::string_view accept) {
  if (accept.empty()) return AnswerForm::kObject;
  for (const absl::string_view range : absl::StrSplit(accept, ',')) {
    const std::string type = MediaType(range);
    if (type != "application/json" && type != "*/*" && type != "application/*" &&
        type != "text/plain")
      continue;
    std::string as;
    for (const absl::string_view part : absl::StrSplit(range, ';')) {
      const absl::string_view parameter = absl::StripAsciiWhitespace(part);
      if (absl::StartsWith(parameter, "as=")) as = std::string(parameter.substr(3));
    }
    if (as.empty()) return AnswerForm::kObject;
    if (as == "Table") return AnswerForm::kTable;
    if (as == "PartialObjectMetadata" || as == "PartialObjectMetadataList")
      return AnswerForm::kMetadata;
  }
  return ApiError(406, "NotAcceptable",
                  "only the following media types are accepted: application/json, "
                  "application/json;as=Table;v=v1;g=meta.k8s.io");
}

StatusOr<ApiRequest> ReadApiRequest(HttpRequest http) {
  ApiRequest request;
  request.query = ParseHttpQuery(http.query);
  WEFT_ASSIGN_OR_RETURN(request.path, ParseRequestPath(http.path));
  if (request.path.subresource != "log") {
    WEFT_ASSIGN_OR_RETURN(request.form, ChooseAnswerForm(HeaderOf(http, "accept")));
  }
  const std::string include = request.Query("includeObject");
  if (include == "None") request.row_object = RowObject::kNone;
  if (include == "Object") request.row_object = RowObject::kObject;
  request.http = std::move(http);
  return request;
}

StatusOr<Json> ReadBody(const HttpRequest& http, bool may_be_empty) {
  if (http.body.empty()) {
    if (may_be_empty) return Json::MakeObject();
    return BadRequest("the request has no body");
  }
  const std::string type = MediaType(HeaderOf(http, "content-type"));
  if (type == "application/yaml" || type == "application/apply-patch+yaml") {
    StatusOr<std::vector<Json>> documents = ParseYaml(http.body, "body");
    if (!documents.ok()) return BadRequest(documents.status().message());
    if (documents->size() != 1) return BadRequest("the body is not one YAML document");
    if (HasTooMany((*documents)[0])) return TooMany();
    return std::move((*documents)[0]);
  }
  if (type == kProtobufType) return ParseProtobufBody(http.body);
  if (!type.empty() && !absl::EndsWith(type, "json")) {
    return ApiError(
        415, "UnsupportedMediaType",
        absl::StrCat("the body of the request was in an unknown format, ", type,
                     " - accepted media types include: application/json, application/yaml, ",
                     kProtobufType));
  }
  StatusOr<Json> body = Json::Parse(http.body);
  if (!body.ok()) return BadRequest(body.status().message());
  if (!body->is_object() && !body->is_array()) return BadRequest("the body is no object");
  if (HasTooMany(*body)) return TooMany();
  return body;
}

StatusOr<WriteOptions> ReadWriteOptions(const ApiRequest& request) {
  WriteOptions options;
  options.subresource = request.path.subresource;
  WEFT_ASSIGN_OR_RETURN(options.is_dry_run, ReadDryRun(request.Query("dryRun")));
  const std::string validation = request.Query("fieldValidation");
  if (!validation.empty() && validation != "Strict" && validation != "Warn" &&
      validation != "Ignore") {
    return BadRequest(absl::StrCat("invalid fieldValidation \"", validation,
                                   "\": Strict, Warn and Ignore are allowed"));
  }
  options.is_strict = validation == "Strict";
  options.field_manager = request.Query("fieldManager");
  if (options.field_manager.empty()) options.field_manager = ManagerOfAgent(request.http);
  options.is_forced = request.Flag("force");
  return options;
}

StatusOr<DeleteOptions> ReadDeleteOptions(const ApiRequest& request) {
  DeleteOptions options;
  WEFT_ASSIGN_OR_RETURN(const Json body, ReadBody(request.http, /*may_be_empty=*/true));
  const auto text_of = [&](const char* name) {
    const std::string text = StringField(body, {name});
    return text.empty() ? request.Query(name) : text;
  };
  WEFT_ASSIGN_OR_RETURN(const int64_t grace, ReadNumber(request, "gracePeriodSeconds", -1));
  const int64_t in_body = IntField(body, {"gracePeriodSeconds"}, grace);
  if (in_body >= 0) options.grace_seconds = in_body;
  const std::string policy = text_of("propagationPolicy");
  if (policy == "Foreground") {
    options.propagation = Propagation::kForeground;
  } else if (policy == "Orphan" || BoolField(body, {"orphanDependents"})) {
    options.propagation = Propagation::kOrphan;
  } else if (!policy.empty() && policy != "Background") {
    return BadRequest(absl::StrCat("invalid propagationPolicy \"", policy,
                                   "\": Background, Foreground and Orphan are allowed"));
  }
  options.uid = StringField(body, {"preconditions", "uid"});
  options.revision = StringField(body, {"preconditions", "resourceVersion"});
  std::string dry_run = request.Query("dryRun");
  if (const Json* const list = FindField(body, {"dryRun"}); list != nullptr && list->size() > 0) {
    dry_run = list->items()[0].AsString().value_or("");
  }
  WEFT_ASSIGN_OR_RETURN(options.is_dry_run, ReadDryRun(dry_run));
  return options;
}

StatusOr<ListOptions> ReadListOptions(const ApiRequest& request) {
  ListOptions options;
  options.namespace_name = request.path.namespace_name;
  options.label_selector = request.Query("labelSelector");
  options.field_selector = request.Query("fieldSelector");
  options.continue_token = request.Query("continue");
  WEFT_ASSIGN_OR_RETURN(options.limit, ReadNumber(request, "limit", 0));
  options.revision = request.Query("resourceVersion");
  const std::string match = request.Query("resourceVersionMatch");
  if (!match.empty() && match != "Exact" && match != "NotOlderThan") {
    return BadRequest(absl::StrCat("invalid resourceVersionMatch \"", match,
                                   "\": Exact and NotOlderThan are allowed"));
  }
  options.is_exact = match == "Exact";
  return options;
}

StatusOr<PatchKind> ReadPatchKind(const ApiRequest& request) {
  const std::string type = MediaType(HeaderOf(request.http, "content-type"));
  if (type == "application/merge-patch+json") return PatchKind::kMerge;
  if (type == "application/json-patch+json") return PatchKind::kJson;
  if (type == "application/strategic-merge-patch+json") return PatchKind::kStrategic;
  if (type == "application/apply-patch+yaml") return PatchKind::kApply;
  return ApiError(
      415, "UnsupportedMediaType",
      "the body of the request was in an unknown format - accepted media types include: "
      "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml, "
      "application/strategic-merge-patch+json");
}

ObjectPtr InVersion(const ApiRequest& request, const ObjectPtr& object) {
  if (request.path.version == request.path.type->version) return object;
  auto converted = std::make_shared<Json>(*object);
  converted->Set("apiVersion", absl::StrCat(request.path.type->group, "/", request.path.version));
  return converted;
}

Json AnswerObject(const ApiRequest& request, const ObjectPtr& object, absl::Time now) {
  if (request.form == AnswerForm::kTable) {
    return MakeTable(*request.path.type, {object}, now, true, request.row_object);
  }
  if (request.form == AnswerForm::kMetadata) return PartialMetadata(*object);
  return *InVersion(request, object);
}

Json AnswerList(const ApiRequest& request, const ObjectList& list, absl::Time now) {
  Json meta;
  meta.Set("resourceVersion", list.revision);
  if (!list.continue_token.empty()) {
    meta.Set("continue", list.continue_token);
    if (list.remaining > 0) meta.Set("remainingItemCount", list.remaining);
  }
  Json answer;
  if (request.form == AnswerForm::kTable) {
    answer = MakeTable(*request.path.type, list.items, now, true, request.row_object);
    answer.Set("metadata", std::move(meta));
    return answer;
  }
  const bool is_metadata = request.form == AnswerForm::kMetadata;
  const ResourceType& type = *request.path.type;
  answer.Set("kind", is_metadata ? "PartialObjectMetadataList" : absl::StrCat(type.kind, "List"));
  answer.Set("apiVersion", is_metadata ? "meta.k8s.io/v1"
                           : type.group.empty()
                               ? request.path.version
                               : absl::StrCat(type.group, "/", request.path.version));
  answer.Set("metadata", std::move(meta));
  Json items = Json::MakeArray();
  for (const ObjectPtr& item : list.items) {
    items.Append(is_metadata ? PartialMetadata(*item) : *InVersion(request, item));
  }
  answer.Set("items", std::move(items));
  return answer;
}

}  // namespace weft::platform
