// SPDX-License-Identifier: Apache-2.0
// The volumes of a pod, and where its containers mount them.
#pragma once

#include <string>
#include <vector>

#include "net/json.h"
#include "platform/object/field_reader.h"

namespace weft::platform {

// `volumes` of a pod, at `path`: names, and one source each at most. Their names.
std::vector<std::string> CheckVolumes(const Json::Array& volumes, const std::string& path,
                                      Problems* problems);

// `volumeMounts` of a container, at `path`: each names one of `volumes` and a place of its own.
void CheckVolumeMounts(const Json::Array& mounts, const std::string& path,
                       const std::vector<std::string>& volumes, Problems* problems);

}  // namespace weft::platform
