// SPDX-License-Identifier: Apache-2.0
// What an API server checks of a container, in its words.
#pragma once

#include <set>
#include <string>

#include "net/json.h"
#include "platform/object/field_reader.h"

namespace weft::platform {

struct ContainerChecks {
  std::string path;  // "spec.containers[0]"
  // Of the pod.
  std::set<std::string> volumes;
  int64_t grace_seconds = 30;
  bool needs_image = true;
  bool may_have_probes = true;  // no init container but a sidecar has some
};

// The container's values are of the kinds that its schema names; what the server defaults may be
// missing.
void CheckContainer(const Json& container, const ContainerChecks& checks, Problems* problems);

// limits and requests, at `path`.
void CheckResourceRequirements(const Json& resources, const std::string& path, Problems* problems);

// A `resourceFieldRef` at `path`: an amount of this container, or of one that it names.
void CheckResourceReference(const Json& reference, const std::string& path, Problems* problems);

void CheckContainerSecurity(const Json& container, const std::string& path, Problems* problems);

// Its volumeMounts, called `list` in messages.
void CheckVolumeMounts(const Json& container, const std::string& list,
                       const std::set<std::string>& volumes, Problems* problems);

// A list of ports that the node itself opens, each once.
void CheckHostPorts(const Json& container, const std::string& path, std::set<std::string>* taken,
                    Problems* problems);

}  // namespace weft::platform
