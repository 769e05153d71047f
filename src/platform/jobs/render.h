// SPDX-License-Identifier: Apache-2.0
// The plain objects that a job becomes.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "net/json.h"

namespace weft::platform {

// Services, then pods, as the controller makes them, for clusters without it: no owner, so nothing
// deletes them with the job, and a label selector of the job's name finds them all. InvalidArgument
// lists the problems of the document.
StatusOr<std::vector<Json>> RenderTfJob(const Json& document, const std::string& file,
                                        const std::string& namespace_name);

}  // namespace weft::platform
