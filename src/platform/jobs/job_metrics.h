// SPDX-License-Identifier: Apache-2.0
// What operators of a cluster watch, under the names of the reference operator's metrics.
#pragma once

#include <memory>
#include <string>

#include "base/metrics.h"
#include "net/json.h"

namespace weft::platform {

// Thread-safe. Counts from when the process began.
class JobMetrics {
 public:
  // Borrows the registry; with null it counts for itself.
  explicit JobMetrics(MetricRegistry* registry);

  // A status was written: what is new in it is counted, created, restarted, successful, failed.
  void CountStatus(const std::string& namespace_name, const Json* before, const Json& after);
  void CountDeletedJob(const std::string& namespace_name);
  void CountFailedPod() { failed_pods_.Add(); }
  // `kind`: Pod, Service, PodGroup.
  void CountCreation(const std::string& kind, bool has_succeeded);
  void CountDeletion(const std::string& kind);

 private:
  Counter& Jobs(const char* what, const std::string& namespace_name);
  Counter& Objects(const char* name, const char* what);

  const std::unique_ptr<MetricRegistry> own_;
  MetricRegistry* const registry_;
  Counter& created_pods_;
  Counter& deleted_pods_;
  Counter& failed_pods_;
  Counter& created_services_;
  Counter& failed_services_;
  Counter& created_groups_;
  Counter& deleted_groups_;
};

}  // namespace weft::platform
