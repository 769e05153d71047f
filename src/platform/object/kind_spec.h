// SPDX-License-Identifier: Apache-2.0
// KindSpec: everything about one kind of object in one place; KindCatalogue: all of them.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "platform/object/resource_type.h"

namespace weft::platform {

// Builds one kind. From it come discovery, `kubectl explain`, the columns of `kubectl get`, what is
// filled in and checked when an object is written, and, for a kind of ours, the
// CustomResourceDefinition that a cluster needs.
//
//   KindSpec("apps", "v1", "deployments", "Deployment")
//       .ShortNames({"deploy"}).Categories({"all"}).HasStatus()
//       .Scale(".spec.replicas", ".status.replicas")
//       .Defaults(&DefaultDeployment).Check(&CheckDeployment)
//       .Column("Ready", &ReadyCell).Count("Available", ".status.availableReplicas").Age();
class KindSpec {
 public:
  using Cell = decltype(PrinterColumn::cell);

  // Of the core group when `group` is empty; in a namespace, served in one version.
  KindSpec(absl::string_view group, absl::string_view version, absl::string_view plural,
           absl::string_view kind);

  KindSpec& ShortNames(std::vector<std::string> names);
  KindSpec& Categories(std::vector<std::string> names);
  KindSpec& Served(std::vector<std::string> versions);  // the preferred one first
  KindSpec& OfCluster();                                // in no namespace
  KindSpec& HasStatus();
  KindSpec& Scale(absl::string_view path, absl::string_view status_path);
  KindSpec& Serves(absl::string_view subresource, absl::string_view kind,
                   std::vector<std::string> verbs);
  // A cluster knows it by a CustomResourceDefinition only.
  KindSpec& Custom();
  KindSpec& Named(decltype(ResourceType::name_rule) rule);  // else by SubdomainProblems
  KindSpec& SelectableBy(std::vector<std::string> fields);
  KindSpec& Defaults(decltype(ResourceType::defaults) defaults);
  KindSpec& Check(decltype(ResourceType::check) check);
  KindSpec& Schema(decltype(ResourceType::schema) schema);

  // Columns in their order. A text column is empty where there is nothing, a count 0.
  KindSpec& Column(absl::string_view name, absl::string_view path,
                   absl::string_view description = "");
  KindSpec& Column(absl::string_view name, Cell cell);
  KindSpec& Count(absl::string_view name, absl::string_view path,
                  absl::string_view description = "");
  KindSpec& Column(PrinterColumn column);
  KindSpec& Wide(absl::string_view name, absl::string_view path);  // only with -o wide
  KindSpec& Wide(absl::string_view name, Cell cell);
  KindSpec& Age();

  // With an age when it has no columns.
  ResourceType Build() const;

 private:
  ResourceType type_;
};

// The kinds of kinds/: those of Kubernetes first, then by group and plural.
std::vector<ResourceType> KindCatalogue();

}  // namespace weft::platform
