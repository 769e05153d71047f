// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/keras_object.h"

#include <utility>

namespace weft::estimator {

Json KerasObject(const std::string& module, const std::string& class_name, Json config) {
  Json object = Json::MakeObject();
  object.Set("module", module);
  object.Set("class_name", class_name);
  object.Set("config", std::move(config));
  object.Set("registered_name", Json());
  return object;
}

}  // namespace weft::estimator
