// SPDX-License-Identifier: Apache-2.0
// Volumes whose files come from objects: configMap, secret, downwardAPI, projected.
#pragma once

#include <map>
#include <optional>
#include <string>

#include <sys/types.h>

#include "base/status.h"
#include "net/json.h"
#include "platform/store/object_store.h"

namespace weft::platform {

struct VolumeFile {
  std::string bytes;
  mode_t mode = 0644;
  bool operator==(const VolumeFile&) const = default;
};
using VolumeFiles = std::map<std::string, VolumeFile>;  // by path in the volume

bool HasVolumeFiles(const Json& volume);

// As the store has them now. NotFound names the object or the key that is missing and not optional.
StatusOr<VolumeFiles> ReadVolumeFiles(ObjectStore* store, const Json& pod, const Json& volume);

// Readers see all of the old files or all of the new ones: names in `folder` are links through one
// that is replaced. They belong to `group`, if any, which may read them.
Status WriteVolumeFiles(const std::string& folder, const VolumeFiles& files,
                        std::optional<gid_t> group);

}  // namespace weft::platform
