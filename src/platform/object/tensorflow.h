// SPDX-License-Identifier: Apache-2.0
// The compact job, kind Tensorflow of krallistic.github.com/v1: an image and how many tasks of it.
#pragma once

#include "platform/object/tfjob.h"

namespace weft::platform {

// As the job that it means: PS and workers of one image, which get both TF_CONFIG and flags.
// Defaults: one worker, no parameter server, restarts by exit code, what still runs goes with the
// job's end.
TfJob ParseTensorflow(const Json& document, Problems* problems);

}  // namespace weft::platform
