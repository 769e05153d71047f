// SPDX-License-Identifier: Apache-2.0
// What an API server checks of a pod beyond the kinds of its fields, in its words.
#pragma once

#include <string>

#include "net/json.h"
#include "platform/object/field_reader.h"

namespace weft::platform {

struct PodChecks {
  std::string path = "spec";
  bool needs_images = true;  // processes of this machine need none
};

// `spec` holds what its schema allows (CheckFields); what the server defaults may be missing.
void CheckPodSpec(const Json& spec, const PodChecks& checks, Problems* problems);

// The volumes at `path`: their names, and one source each.
void CheckVolumes(const Json& spec, const std::string& path, Problems* problems);

// Where pods may run: selectors, affinity, tolerations, spread, gates.
void CheckPlacement(const Json& spec, const std::string& path, Problems* problems);

}  // namespace weft::platform
