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

// Users, groups, profiles and what is shared with the node; its containers have their own.
void CheckPodSecurity(const Json& spec, const std::string& path, Problems* problems);

// Name servers, host aliases, and ports where the pod uses the node's network.
void CheckPodNetwork(const Json& spec, const std::string& path, Problems* problems);
void CheckIpAddress(const Json& at, const std::string& path, const std::string& address,
                    Problems* problems);

// Where pods may run: selectors, affinity, tolerations, spread, gates.
void CheckPlacement(const Json& spec, const std::string& path, Problems* problems);

}  // namespace weft::platform
