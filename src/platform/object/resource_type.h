// SPDX-License-Identifier: Apache-2.0
// A kind of object as an API server serves it. What this program brings along is written as
// KindSpecs (kind_spec.h); a CustomResourceDefinition makes one at run time (definition.h).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "net/json.h"
#include "platform/object/field_reader.h"
#include "platform/object/names.h"

namespace weft::platform {

// A column of `kubectl get`.
struct PrinterColumn {
  std::string name;
  std::string type;  // "string", "integer", "boolean", "date"
  std::string path;  // ".status.phase"; ".status.conditions[-1:].type" is the last one's
  std::string description;
  int priority = 0;  // 1: only with -o wide
  // What stands in the cell, in place of a path.
  Json (*cell)(const Json& object, absl::Time now) = nullptr;
  Json missing = "";  // where there is nothing at the path
};

// Beside status and scale.
struct Subresource {
  std::string name;
  std::string kind;
  std::vector<std::string> verbs;
};

struct ResourceType {
  std::string group;                  // empty: the core group
  std::string version;                // in which objects are kept
  std::vector<std::string> versions;  // in which they are served, the preferred one first
  std::string plural;
  std::string singular;
  std::string kind;
  std::vector<std::string> short_names;
  std::vector<std::string> categories;
  bool is_namespaced = true;
  bool has_status = false;  // /status is written by itself
  bool is_custom = false;   // by a CustomResourceDefinition on a real server
  // Field that /scale writes and those it reads; empty: there is no /scale.
  std::string scale_path;
  std::string scale_status_path;
  std::vector<Subresource> subresources;
  // Without the name, which comes first in all tables but those that hold a column of that name.
  std::vector<PrinterColumn> columns;
  // Fields that lists can be asked by, beside name and namespace.
  std::vector<std::string> selectable_fields;
  // Of types that came with a definition: what objects hold, by version.
  std::map<std::string, Json> schemas;

  // Of types of this program; each may be null.
  NameProblems (*name_rule)(absl::string_view name) = nullptr;
  // Fills in what the writer of an object did not say; `old` is null for a new one.
  void (*defaults)(const Json* old, const std::string& version, Json* object) = nullptr;
  // What is wrong with an object that holds what its schema allows and has its defaults.
  void (*check)(const Json* old, const Json& object, Problems* problems) = nullptr;
  // What objects hold, where no facts of Kubernetes' own types say it.
  Json (*schema)(const std::string& version) = nullptr;

  // "pods", "tfjobs.kubeflow.org": unique.
  std::string Id() const;
  std::string ApiVersion() const;  // "v1", "kubeflow.org/v1"
  bool Serves(absl::string_view version) const;
};

// The same kind of object, whoever holds its description.
inline bool operator==(const ResourceType& a, const ResourceType& b) {
  return a.group == b.group && a.plural == b.plural;
}

// As clusters order the versions of a group: what is stable before betas before alphas, of each the
// higher number first (v2, v1, v2beta1, v1beta2), then other names by letter.
bool IsPreferredVersion(absl::string_view version, absl::string_view to);

// Served in one version, without short names, /status and /scale; `group` is empty for the core
// one.
ResourceType MakeResourceType(std::string group, std::string version, std::string plural,
                              std::string singular, std::string kind, bool is_namespaced);

}  // namespace weft::platform
