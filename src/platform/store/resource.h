// SPDX-License-Identifier: Apache-2.0
// The kinds of objects that the platform knows, as an API server would list them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "net/json.h"

namespace weft::platform {

// A column of `kubectl get`.
struct PrinterColumn {
  std::string name;
  std::string type;  // "string", "integer", "date"
  std::string path;  // ".status.phase"; ".status.conditions[-1:].type" is the last one's
  std::string description;
  int priority = 0;  // 1: only with -o wide
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
  std::vector<PrinterColumn> columns;  // of custom types
  // Of types that came with a definition: what objects hold, by version.
  std::map<std::string, Json> schemas;

  // "pods", "tfjobs.kubeflow.org": unique.
  std::string Id() const;
  std::string ApiVersion() const;  // "v1", "kubeflow.org/v1"
  bool Serves(absl::string_view version) const;
};

// Served in one version, without short names, /status and /scale; `group` is empty for the core
// one.
ResourceType MakeResourceType(std::string group, std::string version, std::string plural,
                              std::string singular, std::string kind, bool is_namespaced);

// All of them: those of this program in a fixed order, then those of definitions. They live as long
// as the process, so that pointers to them stay right.
std::vector<const ResourceType*> KnownResources();
// A type that is served from here, in the place of an earlier one of that name; types of this
// program stay as they are.
void RegisterResource(ResourceType type);
void WithdrawResource(const std::string& id);
// Null when there is none.
const ResourceType* FindResource(absl::string_view group, absl::string_view plural);
const ResourceType* FindKind(absl::string_view group, absl::string_view kind);
// By what people type: plural, singular, short name or kind, maybe with ".group".
const ResourceType* FindResourceByWord(absl::string_view word);

// "kubeflow.org/v1" -> {"kubeflow.org", "v1"}; "v1" -> {"", "v1"}.
struct GroupVersion {
  std::string group;
  std::string version;
};
GroupVersion SplitApiVersion(absl::string_view api_version);

// Types that code names.
const ResourceType& Pods();
const ResourceType& Services();
const ResourceType& Events();
const ResourceType& Namespaces();
const ResourceType& Nodes();
const ResourceType& Leases();
const ResourceType& TfJobs();
const ResourceType& Tensorflows();
const ResourceType& VolcanoPodGroups();
const ResourceType& PodGroups();    // of the scheduler plugins
const ResourceType& Definitions();  // CustomResourceDefinitions
const ResourceType& PriorityClasses();
const ResourceType& Deployments();
const ResourceType& ReplicaSets();
const ResourceType& StatefulSets();
const ResourceType& ControllerRevisions();
const ResourceType& BatchJobs();
// TFJobs and Tensorflows.
bool IsJob(const ResourceType& type);
// Kubernetes' own owners of pods: Deployments, ReplicaSets, StatefulSets and Jobs.
bool IsWorkload(const ResourceType& type);

}  // namespace weft::platform
