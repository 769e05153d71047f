// SPDX-License-Identifier: Apache-2.0
// What a step tells beside its tensors, as TensorFlow's RunMetadata.
#pragma once

#include <string>

#include "base/status.h"
#include "weft/step/signature.h"

namespace tensorflow {
class RunMetadata;
}

namespace weft::wire {

// A serialised tensorflow.RunMetadata: step_stats by device, partition graphs. Errors as
// GraphDefToProto.
StatusOr<std::string> SerializeRunMetadata(const step::RunMetadata& metadata);
Status ReadRunMetadata(const tensorflow::RunMetadata& proto, step::RunMetadata* metadata);

}  // namespace weft::wire
