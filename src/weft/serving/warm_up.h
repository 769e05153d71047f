// SPDX-License-Identifier: Apache-2.0
// Requests that a model is asked before anybody else may ask it.
#pragma once

#include <memory>
#include <string>

#include "base/files.h"
#include "base/status.h"
#include "weft/serving/model_version.h"

namespace weft::serving {

// Runs the PredictionLog records of `folder`/assets.extra/tf_serving_warmup_requests, if there is
// such a file, each `times`. Errors name the file and the record: what the file holds is part of
// the model, and one whose own requests fail is not served. InvalidArgument for over 1000 records.
Status WarmUp(FileSystem& files, const std::string& folder, int times,
              const std::shared_ptr<const ModelVersion>& model);

}  // namespace weft::serving
