// SPDX-License-Identifier: Apache-2.0
#include "platform/object/kind_spec.h"

namespace weft::platform::kinds::endpoints {

KindSpec Spec() { return KindSpec("", "v1", "endpoints", "Endpoints").ShortNames({"ep"}); }

}  // namespace weft::platform::kinds::endpoints
