// SPDX-License-Identifier: Apache-2.0
// Which object a URL's path means.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

#include "base/status.h"
#include "platform/store/resource.h"

namespace weft::platform {

// "/apis/kubeflow.org/v1/namespaces/default/tfjobs/digits/status"
struct RequestPath {
  const ResourceType* type = nullptr;
  std::string version;
  std::string namespace_name;  // empty: all, or the type has none
  std::string name;            // empty: the collection
  std::string subresource;
};

// A 404 when there is no such type or version here.
StatusOr<RequestPath> ParseRequestPath(absl::string_view path);

}  // namespace weft::platform
