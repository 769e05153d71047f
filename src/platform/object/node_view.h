// SPDX-License-Identifier: Apache-2.0
// A node, typed. Borrows it.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

#include "net/json.h"

namespace weft::platform {

class NodeView {
 public:
  explicit NodeView(const Json& node) : json_(node) {}

  bool is_ready() const;
  std::string readiness() const;  // "Ready", "NotReady", "Unknown"
  bool is_cordoned() const;
  std::string allocatable(absl::string_view resource) const;  // as written; empty: none
  std::string kubelet_version() const;

 private:
  const Json& json_;
};

}  // namespace weft::platform
