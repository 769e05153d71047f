// SPDX-License-Identifier: Apache-2.0
// Errors as an API server words them: a Status whose payload holds the HTTP code, the reason and
// the fields.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "base/status.h"
#include "net/json.h"
#include "platform/store/resource.h"

namespace weft::platform {

struct FieldCause {
  std::string field;    // "spec.tfReplicaSpecs.Worker.replicas"
  std::string message;  // what it holds and what is allowed
  std::string reason = "FieldValueInvalid";
};

Status ObjectNotFound(const ResourceType& type, absl::string_view name);
Status ObjectExists(const ResourceType& type, absl::string_view name);
// The object has changed, or is another one by that name.
Status ObjectConflict(const ResourceType& type, absl::string_view name, absl::string_view why);
Status ObjectInvalid(const ResourceType& type, absl::string_view name,
                     const std::vector<FieldCause>& causes);
Status ObjectForbidden(const ResourceType& type, absl::string_view name, absl::string_view why);
// The revision is older than what is still known: list again.
Status RevisionExpired(absl::string_view message);
// Any other: "BadRequest" 400, "MethodNotAllowed" 405, "UnsupportedMediaType" 415, ...
Status ApiError(int code, absl::string_view reason, absl::string_view message);

// The HTTP code and reason of any error; those without a payload get what fits their code.
int HttpCodeOf(const Status& status);
std::string ReasonOf(const Status& status);
inline bool IsObjectNotFound(const Status& status) { return HttpCodeOf(status) == 404; }
inline bool IsObjectExists(const Status& status) { return ReasonOf(status) == "AlreadyExists"; }
inline bool IsConflict(const Status& status) { return ReasonOf(status) == "Conflict"; }
// Valid credentials, a known kind, and no hurry: another try meets the same, until people change
// something.
bool IsRefused(const Status& status);
inline bool IsExpired(const Status& status) { return HttpCodeOf(status) == 410; }

// metav1.Status of an error, and back from one that a server sent.
Json StatusObject(const Status& status);
Status StatusFromObject(const Json& object, int http_code);

}  // namespace weft::platform
