// SPDX-License-Identifier: Apache-2.0
// What a model server counts, under TensorFlow Serving's names.
#pragma once

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

#include "base/metrics.h"
#include "base/status.h"

namespace weft::serving {

// Thread-safe. Times are counted in microseconds.
class ServingMetrics {
 public:
  // Borrows the registry.
  explicit ServingMetrics(MetricRegistry* registry) : registry_(*registry) {}

  // `entrypoint` is "GRPC" or "REST", `api` "Predict" and its kind. A model's name is told only
  // where it is known, or a request to it succeeded once: strangers' names would fill the memory,
  // and stand as an empty one.
  void EndRequest(const std::string& model, const std::string& api, const std::string& entrypoint,
                  absl::Time begin, const Status& status);
  void ObserveRun(const std::string& model, const std::string& api, absl::Duration latency);
  void CountExamples(const std::string& model, int64_t count);
  void ObserveBatch(const std::string& model, int64_t rows, int64_t padding);
  void ObserveQueueing(const std::string& model, absl::Duration waited);
  void CountLoad(const std::string& model, const Status& status, absl::Duration took);
  void SetQueued(const std::string& model, double requests);
  void CountWarmUp(const std::string& model, absl::Duration took);
  // A model that is served: failures of requests to it count before the first that succeeds.
  void Know(const std::string& model);

  // One more request is here; it has been answered.
  void Begin() { CountHere(1); }
  void End() { CountHere(-1); }
  // All metrics for Prometheus, as of now.
  std::string PageText();

  MetricRegistry& registry() { return registry_; }

 private:
  void CountHere(int change);

  MetricRegistry& registry_;
  absl::Mutex mutex_;
  int here_ ABSL_GUARDED_BY(mutex_) = 0;        // requests
  absl::Time counted_ ABSL_GUARDED_BY(mutex_);  // until when their time is counted
  absl::flat_hash_set<std::string> known_
      ABSL_GUARDED_BY(mutex_);  // models that answered or are served
};

}  // namespace weft::serving
