// SPDX-License-Identifier: Apache-2.0
// Files of objects, and how they are applied.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "net/json.h"
#include "platform/store/object_store.h"

namespace weft::platform {

struct Manifest {
  const ResourceType* type = nullptr;
  ObjectName name;
  Json object;
  std::string file;
};

// The file itself ("-": stdin), or those of a folder that end in .yaml, .yml or .json, by name.
StatusOr<std::vector<std::string>> ManifestFiles(const std::string& path);

// Every object of the file ("-": stdin), also those in lists. `namespace_name` is for those that
// name none. InvalidArgument names the file and the document.
StatusOr<std::vector<Manifest>> ReadManifests(const std::string& file,
                                              const std::string& namespace_name);

enum class ApplyOutcome { kCreated, kConfigured, kUnchanged };

// As `kubectl apply` does, so that both may be used in turn: what the file holds is set, what the
// last applied file held and this one does not is removed, everything else stays. One that has a
// prefix alone gets the name that the server made of it.
StatusOr<ApplyOutcome> ApplyManifest(ObjectStore* store, Manifest* manifest, bool is_dry_run);

// The merge patch that leads from `live` to `wanted`, given what was applied last (null: nothing).
Json ThreeWayPatch(const Json& last, const Json& wanted, const Json& live);

// The text of a file, or of stdin when it is "-". InvalidArgument when there is nothing in it.
StatusOr<std::string> ReadManifestText(const std::string& file);

// "tfjob.kubeflow.org/digits"
std::string DisplayName(const ResourceType& type, const std::string& name);

}  // namespace weft::platform
