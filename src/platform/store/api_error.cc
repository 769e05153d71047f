// SPDX-License-Identifier: Apache-2.0
#include "platform/store/api_error.h"

#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_join.h"

#include "platform/object/fields.h"

namespace weft::platform {
namespace {

constexpr char kPayload[] = "weft/api-error";

absl::StatusCode CodeFor(int http_code, absl::string_view reason) {
  switch (http_code) {
    case 400:
    case 406:
    case 413:
    case 415:
    case 422:
      return absl::StatusCode::kInvalidArgument;
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:
      return absl::StatusCode::kNotFound;
    case 405:
      return absl::StatusCode::kUnimplemented;
    case 409:
      return reason == "AlreadyExists" ? absl::StatusCode::kAlreadyExists
                                       : absl::StatusCode::kAborted;
    case 410:
      return absl::StatusCode::kOutOfRange;
    case 429:
    case 507:
      return absl::StatusCode::kResourceExhausted;
    case 502:
    case 503:
    case 504:
      return absl::StatusCode::kUnavailable;
    default:
      return http_code >= 500 ? absl::StatusCode::kInternal : absl::StatusCode::kUnknown;
  }
}

struct HttpForm {
  int code;
  const char* reason;
};

HttpForm FormFor(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
      return {400, "BadRequest"};
    case absl::StatusCode::kNotFound:
      return {404, "NotFound"};
    case absl::StatusCode::kAlreadyExists:
      return {409, "AlreadyExists"};
    case absl::StatusCode::kAborted:
      return {409, "Conflict"};
    case absl::StatusCode::kPermissionDenied:
      return {403, "Forbidden"};
    case absl::StatusCode::kUnauthenticated:
      return {401, "Unauthorized"};
    case absl::StatusCode::kOutOfRange:
      return {410, "Expired"};
    case absl::StatusCode::kResourceExhausted:
      return {507, "InsufficientStorage"};
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kCancelled:
      return {503, "ServiceUnavailable"};
    case absl::StatusCode::kDeadlineExceeded:
      return {504, "Timeout"};
    default:
      return {500, "InternalError"};
  }
}

Status Make(int code, absl::string_view reason, absl::string_view message, Json details = Json()) {
  Status status(CodeFor(code, reason), message);
  Json payload;
  payload.Set("code", code);
  payload.Set("reason", reason);
  if (details.is_object()) payload.Set("details", std::move(details));
  status.SetPayload(kPayload, absl::Cord(payload.Dump()));
  return status;
}

Json Details(const ResourceType& type, absl::string_view name) {
  Json details;
  details.Set("name", name);
  if (!type.group.empty()) details.Set("group", type.group);
  details.Set("kind", type.plural);
  return details;
}

Json PayloadOf(const Status& status) {
  const auto payload = status.GetPayload(kPayload);
  if (!payload.has_value()) return Json();
  return Json::Parse(std::string(*payload)).value_or(Json());
}

}  // namespace

Status ObjectNotFound(const ResourceType& type, absl::string_view name) {
  return Make(404, "NotFound", absl::StrCat(type.Id(), " \"", name, "\" not found"),
              Details(type, name));
}

Status ObjectExists(const ResourceType& type, absl::string_view name) {
  return Make(409, "AlreadyExists", absl::StrCat(type.Id(), " \"", name, "\" already exists"),
              Details(type, name));
}

Status ObjectConflict(const ResourceType& type, absl::string_view name, absl::string_view why) {
  return Make(
      409, "Conflict",
      absl::StrCat("Operation cannot be fulfilled on ", type.Id(), " \"", name, "\": ", why),
      Details(type, name));
}

Status ObjectInvalid(const ResourceType& type, absl::string_view name,
                     const std::vector<FieldCause>& causes) {
  Json details = Details(type, name);
  details.Set("kind", type.kind);
  Json list = Json::MakeArray();
  std::vector<std::string> lines;
  for (const FieldCause& cause : causes) {
    Json entry;
    entry.Set("reason", cause.reason);
    entry.Set("message", cause.message);
    entry.Set("field", cause.field);
    list.Append(std::move(entry));
    lines.push_back(absl::StrCat(cause.field, ": ", cause.message));
  }
  details.Set("causes", std::move(list));
  const std::string kind =
      type.group.empty() ? type.kind : absl::StrCat(type.kind, ".", type.group);
  const std::string text =
      lines.size() == 1 ? lines[0] : absl::StrCat("[", absl::StrJoin(lines, ", "), "]");
  return Make(422, "Invalid", absl::StrCat(kind, " \"", name, "\" is invalid: ", text),
              std::move(details));
}

Status ObjectForbidden(const ResourceType& type, absl::string_view name, absl::string_view why) {
  return Make(403, "Forbidden", absl::StrCat(type.Id(), " \"", name, "\" is forbidden: ", why),
              Details(type, name));
}

Status RevisionExpired(absl::string_view message) { return Make(410, "Expired", message); }

Status ApiError(int code, absl::string_view reason, absl::string_view message) {
  return Make(code, reason, message);
}

int HttpCodeOf(const Status& status) {
  if (status.ok()) return 200;
  const int code = static_cast<int>(IntField(PayloadOf(status), {"code"}));
  return code != 0 ? code : FormFor(status.code()).code;
}

std::string ReasonOf(const Status& status) {
  if (status.ok()) return "";
  const std::string reason = StringField(PayloadOf(status), {"reason"});
  return reason.empty() ? FormFor(status.code()).reason : reason;
}

bool IsRefused(const Status& status) {
  switch (HttpCodeOf(status)) {
    case 400:
    case 403:
    case 405:
    case 413:
    case 415:
    case 422:
      return true;
    default:
      return IsObjectExists(status);
  }
}

Json StatusObject(const Status& status) {
  Json object;
  object.Set("kind", "Status");
  object.Set("apiVersion", "v1");
  object.Set("metadata", Json::MakeObject());
  object.Set("status", "Failure");
  object.Set("message", status.message());
  object.Set("reason", ReasonOf(status));
  const Json payload = PayloadOf(status);
  if (const Json* const details = payload.Find("details")) object.Set("details", *details);
  object.Set("code", HttpCodeOf(status));
  return object;
}

Status StatusFromObject(const Json& object, int http_code) {
  const int code = static_cast<int>(IntField(object, {"code"}, http_code));
  std::string reason = StringField(object, {"reason"});
  if (reason.empty()) reason = FormFor(CodeFor(code, "")).reason;
  std::string message = StringField(object, {"message"});
  if (message.empty()) message = absl::StrCat("The API server answered with HTTP code ", code);
  const Json* const details = FindField(object, {"details"});
  return Make(code, reason, message, details == nullptr ? Json() : *details);
}

}  // namespace weft::platform
