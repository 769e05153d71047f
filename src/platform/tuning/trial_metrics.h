// SPDX-License-Identifier: Apache-2.0
// What a trial reported, read from the pods that it runs: no container runs beside the program's.
#pragma once

#include <functional>
#include <string>

#include "net/json.h"
#include "platform/object/experiment.h"
#include "platform/search/experiment_study.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// The output of a pod's container so far, as lines without times.
using TrialOutputReader =
    std::function<StatusOr<std::string>(const ObjectPtr& pod, const std::string& container)>;

// Thread-safe; borrows the store.
class TrialMetricsReader {
 public:
  // `address` is where pods without one are reached; empty: nowhere.
  TrialMetricsReader(ObjectStore* store, TrialOutputReader read, std::string address)
      : store_(store), read_(std::move(read)), address_(std::move(address)) {}

  // All that was reported so far. Unavailable while the output cannot be read yet, PermissionDenied
  // where it may not be.
  StatusOr<MetricSeries> Read(const Json& trial) const;
  // The last lines that its program printed, a kilobyte at most; empty where there are none, or
  // they cannot be read.
  std::string LastOutput(const Json& trial) const;

 private:
  StatusOr<std::string> OutputOf(const Json& trial, const ObjectPtr& pod) const;
  StatusOr<ObjectPtr> FindPod(const Json& trial) const;
  StatusOr<MetricSeries> ReadPage(const Json& pod, const MetricsCollector& collector,
                                  const std::vector<std::string>& names) const;

  ObjectStore* const store_;
  const TrialOutputReader read_;
  const std::string address_;
};

// The collector in the spec of a trial or an experiment; what makes no sense is left out.
MetricsCollector ReadCollectorSpec(const Json& collector_spec);

}  // namespace weft::platform
