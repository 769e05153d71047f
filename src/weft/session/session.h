// SPDX-License-Identifier: Apache-2.0
// How a program runs graphs, in this process or on a cluster.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "base/status.h"
#include "weft/graph/node_def.h"
#include "weft/kernel/device.h"
#include "weft/step/signature.h"
#include "weft/tensor/tensor.h"

namespace weft::session {

struct RunOptions {
  absl::Duration timeout = absl::InfiniteDuration();  // DeadlineExceeded after it
  bool trace = false;
  bool partition_graphs = false;
};

using step::Feed;
using step::RunMetadata;

// A graph that grows, and steps of it. Thread-safe; steps run beside each other.
class Session {
 public:
  virtual ~Session() = default;

  // Adds nodes and functions: all or nothing.
  virtual Status Extend(const GraphDef& graph) = 0;
  // Runs what `fetches` ("x:0", "x") and `targets` ("train") need, with `feeds` in place of what
  // would compute them. Blocks. `results` in the order of `fetches`; `metadata` may be null.
  virtual Status Run(const RunOptions& options, const std::vector<Feed>& feeds,
                     const std::vector<std::string>& fetches,
                     const std::vector<std::string>& targets, std::vector<Tensor>* results,
                     RunMetadata* metadata) = 0;
  virtual StatusOr<std::vector<DeviceAttributes>> ListDevices() = 0;
  // Cancels running steps; later calls fail with FailedPrecondition.
  virtual Status Close() = 0;

  Status Run(const std::vector<Feed>& feeds, const std::vector<std::string>& fetches,
             const std::vector<std::string>& targets, std::vector<Tensor>* results) {
    return Run(RunOptions(), feeds, fetches, targets, results, nullptr);
  }
};

}  // namespace weft::session
