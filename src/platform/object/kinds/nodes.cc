// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <string>

#include "absl/strings/str_cat.h"

#include "platform/object/columns.h"
#include "platform/object/fields.h"
#include "platform/object/kind_spec.h"
#include "platform/object/metadata_checks.h"
#include "platform/object/node_view.h"

namespace weft::platform::kinds::nodes {
namespace {

// The server says "metadata" here.
void CheckNode(const Json* /*old*/, const Json& node, Problems* problems) {
  const Json* const taints = FindField(node, {"spec", "taints"});
  if (taints == nullptr) return;
  std::set<std::string> seen;
  size_t index = 0;
  for (const Json& taint : taints->items()) {
    const std::string at = absl::StrCat("metadata.taints[", index++, "]");
    const std::string key = StringField(taint, {"key"});
    const std::string value = StringField(taint, {"value"});
    const std::string effect = StringField(taint, {"effect"});
    CheckName(taint, absl::StrCat(at, ".key"), key, QualifiedNameProblems, problems);
    CheckName(taint, absl::StrCat(at, ".value"), value, LabelValueProblems, problems);
    if (effect.empty()) problems->Required(taint, absl::StrCat(at, ".effect"));
    CheckWord(taint, at, "effect", {"NoSchedule", "PreferNoSchedule", "NoExecute"}, problems);
    if (seen.insert(absl::StrCat(key, "=", effect)).second) continue;
    problems->Add(taint, at,
                  absl::StrCat("Duplicate value: core.Taint{Key:\"", key, "\", Value:\"", value,
                               "\", Effect:\"", effect,
                               "\", TimeAdded:<nil>}: taints must be unique by key and effect "
                               "pair"));
    problems->SetReason("FieldValueDuplicate");
  }
}

Json StatusCell(const Json& node, absl::Time /*now*/) { return NodeView(node).readiness(); }

}  // namespace

KindSpec Spec() {
  return KindSpec("", "v1", "nodes", "Node")
      .ShortNames({"no"})
      .OfCluster()
      .HasStatus()
      .SelectableBy({"spec.unschedulable"})
      .Check(&CheckNode)
      .Column("Status", &StatusCell)
      .Column("Roles", &NoneCell)
      .Age()
      .Column("Version", ".status.nodeInfo.kubeletVersion");
}

}  // namespace weft::platform::kinds::nodes
