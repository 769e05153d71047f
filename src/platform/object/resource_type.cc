// SPDX-License-Identifier: Apache-2.0
#include "platform/object/resource_type.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace weft::platform {

ResourceType MakeResourceType(std::string group, std::string version, std::string plural,
                              std::string singular, std::string kind, bool is_namespaced) {
  ResourceType type;
  type.group = std::move(group);
  type.version = version;
  type.versions = {std::move(version)};
  type.plural = std::move(plural);
  type.singular = std::move(singular);
  type.kind = std::move(kind);
  type.is_namespaced = is_namespaced;
  return type;
}

std::string ResourceType::Id() const {
  return group.empty() ? plural : absl::StrCat(plural, ".", group);
}

std::string ResourceType::ApiVersion() const {
  return group.empty() ? version : absl::StrCat(group, "/", version);
}

bool ResourceType::Serves(absl::string_view candidate) const {
  return std::any_of(versions.begin(), versions.end(),
                     [&](const std::string& name) { return name == candidate; });
}

}  // namespace weft::platform
