// SPDX-License-Identifier: Apache-2.0
// The parts of a Kubernetes pod template that decide what runs.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

#include "net/json.h"
#include "platform/object/field_reader.h"

namespace weft::platform {

struct EnvironmentVariable {
  std::string name;
  std::string value;
  // With `valueFrom`: the field ("metadata.name"), or else where it comes from in words ("secret
  // 'x'").
  std::string from_field;
  std::string from_elsewhere;
  bool is_optional = false;
};

struct ContainerPort {
  std::string name;
  int64_t port = 0;
  std::string protocol = "TCP";
};

struct Container {
  std::string name;
  std::string image;
  std::vector<std::string> command;
  std::vector<std::string> args;
  std::string working_directory;
  std::vector<EnvironmentVariable> environment;
  std::vector<ContainerPort> ports;
  Json resources;                     // as written: limits, requests
  bool has_environment_from = false;  // envFrom
  bool has_volume_mounts = false;
  TextPosition position;
};

struct PodTemplate {
  std::vector<Container> containers;
  bool has_init_containers = false;
  Json written;  // the whole template
};

struct ObjectMeta {
  std::string name;
  std::string namespace_name = "default";
  std::vector<std::pair<std::string, std::string>> labels;
  std::vector<std::pair<std::string, std::string>> annotations;
};

ObjectMeta ParseObjectMeta(const Json& value, const std::string& path, Problems* problems);
// A mapping of names to quantities, as `limits` holds it.
void CheckResources(const Json& value, const std::string& path, Problems* problems);
// One item of `containers`, which was checked.
Container ReadContainer(const Json& value);
// Checked by the facts of its type and by what an API server checks beyond them; images may be
// missing.
PodTemplate ParsePodTemplate(const Json& value, const std::string& path, Problems* problems);

// Letters a-z, digits and dashes, a letter first, no dash last, at most 63: what a service may be
// called.
bool IsDnsLabel(absl::string_view name);

}  // namespace weft::platform
