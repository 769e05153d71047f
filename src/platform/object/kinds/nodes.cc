// SPDX-License-Identifier: Apache-2.0
#include "platform/object/columns.h"
#include "platform/object/kind_spec.h"
#include "platform/object/node_view.h"

namespace weft::platform::kinds::nodes {
namespace {

Json StatusCell(const Json& node, absl::Time /*now*/) { return NodeView(node).readiness(); }

}  // namespace

KindSpec Spec() {
  return KindSpec("", "v1", "nodes", "Node")
      .ShortNames({"no"})
      .OfCluster()
      .HasStatus()
      .SelectableBy({"spec.unschedulable"})
      .Column("Status", &StatusCell)
      .Column("Roles", &NoneCell)
      .Age()
      .Column("Version", ".status.nodeInfo.kubeletVersion");
}

}  // namespace weft::platform::kinds::nodes
