// SPDX-License-Identifier: Apache-2.0
// What a pod tells its programs of itself, in variables and in files.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

#include "base/status.h"
#include "net/json.h"

namespace weft::platform {

// "metadata.labels['app']", "spec.nodeName", "status.podIP"; "metadata.labels" are all of them, a
// line of key="value" each.
StatusOr<std::string> PodFieldText(const Json& pod, absl::string_view path);

// Of a resourceFieldRef of `container`, or of the one that it names: "limits.cpu" in whole
// divisors, rounded up.
StatusOr<std::string> ResourceFieldText(const Json& pod, const Json& container,
                                        const Json& reference);

}  // namespace weft::platform
