// SPDX-License-Identifier: Apache-2.0
// What `weft apply, get, describe, logs, wait, delete` do, on any store.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "platform/store/kubernetes/kubernetes_store.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// Borrows all that it points to.
struct Console {
  ObjectStore* store = nullptr;
  const Clock* clock = nullptr;
  std::string namespace_name = "default";
  std::function<void(absl::string_view)> print;
};

// Objects that a command is about: a type with names, or all, or those of files.
struct Selection {
  std::vector<std::string> words;  // "tfjob", "digits" or "tfjob/digits", "pod/x"
  std::vector<std::string> files;
  std::string label_selector;
  bool is_all = false;  // every one of the type
  bool all_namespaces = false;
};

Status ApplyFiles(const Console& console, const std::vector<std::string>& paths, bool is_dry_run);

struct GetOptions {
  std::string form;  // "", "wide", "name", "yaml", "json"
  bool watches = false;
  Cancellation* cancellation = nullptr;
};
Status GetObjects(const Console& console, const Selection& selection, const GetOptions& options);
Status DescribeObjects(const Console& console, const Selection& selection);

struct DeleteRequest {
  bool waits = true;
  Propagation propagation = Propagation::kBackground;
  std::optional<int64_t> grace_seconds;
  bool ignores_missing = false;
  absl::Duration timeout = absl::Minutes(5);
};
Status DeleteObjects(const Console& console, const Selection& selection,
                     const DeleteRequest& request);

// `what` is "condition=Succeeded", "condition=Running=False", "jsonpath={.status.phase}=Running" or
// "delete". DeadlineExceeded names what is not there yet.
Status WaitForObjects(const Console& console, const Selection& selection, const std::string& what,
                      absl::Duration timeout);

// Of a pod ("digits-worker-0", "pod/x") or all pods of a job ("tfjob/digits", each line with the
// pod's name).
Status ShowLogs(const Console& console, KubernetesStore* server, const std::string& word,
                const LogOptions& options, Cancellation* cancellation);

}  // namespace weft::platform
