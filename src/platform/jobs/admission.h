// SPDX-License-Identifier: Apache-2.0
// The checks of jobs that an API server asks for: what a schema does not see is refused before it
// is kept, with the path of the field, what it holds and what is allowed.
#pragma once

#include "base/status.h"
#include "net/json.h"

namespace weft::platform {

// The AdmissionReview (admission.k8s.io/v1) with its response in place of the request. Refused is
// what ParseTfJob finds wrong with an object that is new or whose spec changes; what is no job, or
// on its way out, passes. InvalidArgument when it is no review.
StatusOr<Json> ReviewAdmission(const Json& review);

}  // namespace weft::platform
