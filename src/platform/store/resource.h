// SPDX-License-Identifier: Apache-2.0
// The kinds of objects that the platform knows, as an API server would list them.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "platform/object/resource_type.h"

namespace weft::platform {

// All of them: those of this program (KindCatalogue), then those of definitions. They live as long
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
const ResourceType& Endpoints();
const ResourceType& EndpointSlices();
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

}  // namespace weft::platform
