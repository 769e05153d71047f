// SPDX-License-Identifier: Apache-2.0
// Kubernetes' own owners of pods, typed. Views borrow the object.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "net/json.h"
#include "platform/object/selector.h"

namespace weft::platform {

// What all of them have. Counts of a status that is not there are 0.
class WorkloadView {
 public:
  explicit WorkloadView(const Json& object) : json_(object) {}

  int64_t replicas() const;  // 1 where it says nothing
  int64_t min_ready_seconds() const;
  int64_t generation() const;
  int64_t history_limit() const;  // of revisions
  // An empty mapping where there is none.
  const Json& pod_template() const;
  const Json& template_labels() const;
  // Nothing where it makes no sense.
  Selector selector() const;
  const Json& written_selector() const;
  const Json& status() const;
  int64_t status_replicas() const;
  int64_t ready_replicas() const;
  int64_t available_replicas() const;
  std::string annotation(absl::string_view name) const;

 protected:
  const Json& json_;
};

class DeploymentView : public WorkloadView {
 public:
  using WorkloadView::WorkloadView;

  bool is_paused() const;
  bool is_recreated() const;  // by its strategy: all old pods go first
  // A number or a share of the replicas; null: it says nothing.
  const Json* max_surge() const;
  const Json* max_unavailable() const;
};

class StatefulSetView : public WorkloadView {
 public:
  using WorkloadView::WorkloadView;

  bool is_parallel() const;
  bool updates_on_delete() const;
  int64_t partition() const;
  std::string service() const;
  const Json::Array& claim_templates() const;
  std::string current_revision() const;
};

class BatchJobView : public WorkloadView {
 public:
  using WorkloadView::WorkloadView;

  int64_t parallelism() const;
  std::optional<int64_t> completions() const;  // none: the first success ends it
  int64_t backoff_limit() const;
  bool is_suspended() const;
  bool is_indexed() const;
  bool restarts_in_place() const;  // its pods start what has failed again themselves
  std::optional<absl::Duration> time_to_live() const;  // after its end
  std::optional<absl::Duration> longest_run() const;
  std::string managed_by() const;
};

}  // namespace weft::platform
