// SPDX-License-Identifier: Apache-2.0
// What tools/kubernetes_types.py has written to kubernetes_types.txt.
#pragma once

#include "absl/strings/string_view.h"

namespace weft::platform {

extern const absl::string_view kKubernetesTypes;

}  // namespace weft::platform
