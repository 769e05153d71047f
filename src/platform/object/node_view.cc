// SPDX-License-Identifier: Apache-2.0
#include "platform/object/node_view.h"

#include "platform/object/fields.h"

namespace weft::platform {

bool NodeView::is_ready() const { return IsConditionTrue(json_, "Ready"); }

std::string NodeView::readiness() const {
  if (ConditionOf(json_, "Ready") == nullptr) return "Unknown";
  return is_ready() ? "Ready" : "NotReady";
}

bool NodeView::is_cordoned() const { return BoolField(json_, {"spec", "unschedulable"}); }

std::string NodeView::allocatable(absl::string_view resource) const {
  return StringField(json_, {"status", "allocatable", resource});
}

std::string NodeView::kubelet_version() const {
  return StringField(json_, {"status", "nodeInfo", "kubeletVersion"});
}

}  // namespace weft::platform
