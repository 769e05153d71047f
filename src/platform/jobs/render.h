// SPDX-License-Identifier: Apache-2.0
// The plain objects that a job becomes.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "net/json.h"

namespace weft::platform {

enum class RenderForm {
  kPods,   // as the controller makes them
  kSeeds,  // a ReplicaSet of one for each task, told by flags, under short names of services
};

// Services, then what runs, for clusters without the controller: no owner, so nothing deletes them
// with the job, and a label selector of the job's name finds them all. InvalidArgument lists the
// problems of the document.
StatusOr<std::vector<Json>> RenderJob(const Json& document, const std::string& file,
                                      const std::string& namespace_name, RenderForm form);

}  // namespace weft::platform
