// SPDX-License-Identifier: Apache-2.0
// What an operator would change on a cluster, without changing it.
#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "platform/jobs/tfjob_controller.h"

namespace weft::platform {

// Looks once at every job that these options are about, of both kinds, and tells each change in a
// line; how many there are. DeadlineExceeded when the cluster does not list what is there in time.
StatusOr<int> TellChanges(TfJobController::Options options, absl::Duration timeout,
                          const std::function<void(const std::string& line)>& tell);

}  // namespace weft::platform
