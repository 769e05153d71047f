// SPDX-License-Identifier: Apache-2.0
// When each node of a traced step ran.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace weft::executor {

struct NodeTrace {
  std::string node;
  std::string op;
  std::string device;
  int64_t start_us = 0;  // since the epoch
  int64_t end_us = 0;
  uint64_t thread = 0;
  std::vector<std::string> outputs;  // "float [2,3]"
};

// Collects from all parts of a step. Thread-safe.
class StepTrace {
 public:
  void Add(NodeTrace trace) {
    absl::MutexLock lock(&mutex_);
    nodes_.push_back(std::move(trace));
  }
  std::vector<NodeTrace> Take() {
    absl::MutexLock lock(&mutex_);
    return std::move(nodes_);
  }

 private:
  absl::Mutex mutex_;
  std::vector<NodeTrace> nodes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft::executor
