// SPDX-License-Identifier: Apache-2.0
// What the page may do to objects, with the rights of whoever asks.
#pragma once

#include <string>

#include "base/status.h"
#include "net/json.h"
#include "platform/store/kubernetes/kubernetes_store.h"

namespace weft::platform {

// {"user": "...", "rights": {"create experiments": true, ...}} as the cluster's own reviews say it
// for `namespace_name` (empty: all). An error where the key is not accepted.
StatusOr<Json> WhoIs(KubernetesStore* store, const std::string& namespace_name);

// Creates the experiments, trials and jobs of a text in YAML or JSON; all are checked first, as
// `kubectl apply` has them checked, and by what only their controllers know. With `is_dry_run` they
// are checked alone. {"objects": [{"kind", "namespace", "name"}]}.
StatusOr<Json> CreateObjects(KubernetesStore* store, const std::string& text,
                             const std::string& namespace_name, bool is_dry_run);

// The trial shall end as killed, its record stay.
// FailedPrecondition when it is over.
Status StopTrial(KubernetesStore* store, const ObjectName& name);

// Of jobs. `kind` is TFJob or Tensorflow.
Status SuspendJob(KubernetesStore* store, const std::string& kind, const ObjectName& name,
                  bool is_suspended);

// An experiment with its trials, a trial, a job. The object of that uid, if one is given.
Status DeleteObject(KubernetesStore* store, const std::string& kind, const ObjectName& name,
                    const std::string& uid);

// The object in YAML, without what servers note for themselves. With `is_copy` as one that can be
// created anew: without status and what was its own.
StatusOr<std::string> ObjectText(KubernetesStore* store, const std::string& kind,
                                 const ObjectName& name, bool is_copy);

}  // namespace weft::platform
