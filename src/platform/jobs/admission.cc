// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/admission.h"

#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/object/tfjob.h"

namespace weft::platform {
namespace {

Status CheckAdmission(const Json& request) {
  const Json* const object = FindField(request, {"object"});
  if (object == nullptr || !IsJobKind(Json(StringField(*object, {"kind"})))) {
    return absl::OkStatus();
  }
  const Json* const old = FindField(request, {"oldObject"});
  const Json* const spec = FindField(*object, {"spec"});
  const Json* const old_spec = old == nullptr ? nullptr : FindField(*old, {"spec"});
  const bool is_same = spec != nullptr && old_spec != nullptr && SameJson(*spec, *old_spec);
  // Whoever takes a finalizer off must not be stopped by what was let in before.
  if (is_same || IsTerminating(*object)) return absl::OkStatus();
  Problems problems("");
  // A name that the server makes from a prefix comes later.
  Json named = *object;
  if (NameOf(named).empty()) SetField(&named, {"metadata", "name"}, "generated");
  const TfJob job = ParseTfJob(named, &problems);
  CheckImages(job, named, &problems);
  if (old != nullptr) CheckJobUpdate(*old, named, &problems);
  return problems.ToStatus();
}

}  // namespace

StatusOr<Json> ReviewAdmission(const Json& review) {
  const Json* const request = FindField(review, {"request"});
  if (request == nullptr || StringField(review, {"kind"}) != "AdmissionReview") {
    return InvalidArgument("expected an AdmissionReview with a request, found ", review.Describe());
  }
  const Status status = CheckAdmission(*request);
  Json answer;
  answer.Set("apiVersion", StringField(review, {"apiVersion"}));
  answer.Set("kind", "AdmissionReview");
  SetField(&answer, {"response", "uid"}, StringField(*request, {"uid"}));
  SetField(&answer, {"response", "allowed"}, status.ok());
  if (!status.ok()) {
    SetField(&answer, {"response", "status", "code"}, 422);
    SetField(&answer, {"response", "status", "reason"}, "Invalid");
    SetField(&answer, {"response", "status", "message"}, status.message());
  }
  return answer;
}

}  // namespace weft::platform
