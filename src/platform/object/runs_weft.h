// SPDX-License-Identifier: Apache-2.0
// What of a container's words tells that weft serves in it.
#pragma once

#include "platform/object/pod.h"

namespace weft::platform {

// Whether a container runs `weft server`, by itself or as the image's entry point, or a program
// under `python -m weft`.
bool RunsWeft(const Container& container);

}  // namespace weft::platform
