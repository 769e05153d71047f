// SPDX-License-Identifier: Apache-2.0
// How Keras writes an object into JSON.
#pragma once

#include <string>

#include "net/json.h"

namespace weft::estimator {

// {"module": module, "class_name": class_name, "config": config, "registered_name": null}.
Json KerasObject(const std::string& module, const std::string& class_name, Json config);

}  // namespace weft::estimator
