// SPDX-License-Identifier: Apache-2.0
// What a session's configuration says of how its steps are compiled.
#pragma once

#include "weft/step/task_part.h"

namespace tensorflow {
class ConfigProto;
}

namespace weft::worker {

step::PartOptions PartOptionsFromConfig(const tensorflow::ConfigProto& config);

}  // namespace weft::worker
