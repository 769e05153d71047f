// SPDX-License-Identifier: Apache-2.0
// Synchronous data-parallel training with backup workers (Chen et al. 2016), as TensorFlow's
// SyncReplicasOptimizer does it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/threads.h"
#include "weft/train/hooks.h"
#include "weft/train/optimizer.h"

namespace weft::train {

// Every worker sends its gradients to accumulators beside the variables. When `to_aggregate` of
// them have come, the chief applies their mean, adds one to the global step and gives each of
// `total` workers a token to go on; gradients of older steps are dropped. A worker starts with a
// gradient of the step under way. total > to_aggregate makes the slowest workers backups. Each
// worker has a queue of tokens of its own, unlike TensorFlow's, and goes on with the newest: with
// one queue for all, the tokens that a slow worker left would send the quick ones back to steps
// that are over, and their next gradients would be in vain.
class SyncReplicas {
 public:
  // `worker`: this one's number among them (Task::worker).
  SyncReplicas(std::unique_ptr<Optimizer> optimizer, int to_aggregate, int total, int worker)
      : optimizer_(std::move(optimizer)),
        to_aggregate_(to_aggregate),
        total_(total),
        worker_(worker) {}

  // The node a worker runs each step. Every worker must build the same graph
  // but for its number.
  StatusOr<Node*> Minimize(Program& program, Endpoint loss);
  // Nodes the chief runs once after the variables have values (MonitoredOptions::chief_init).
  const std::vector<Node*>& chief_init() const { return chief_init_; }
  // And when it finds that training was under way (MonitoredOptions::chief_resume).
  const std::vector<Node*>& chief_resume() const { return chief_resume_; }
  // Applies means on a thread of its own while the session lives; the chief's MonitoredSession
  // needs it.
  std::unique_ptr<Hook> ChiefHook() const;

 private:
  // Sends the gradient to the variable's accumulator; gives the mean as it will be taken.
  TensorGradient Accumulate(Program& program, const GradientAndVariable& pair, Endpoint local_step,
                            std::vector<Node*>* sent);
  Status BuildChief(Program& program, const std::vector<GradientAndVariable>& means);

  const std::unique_ptr<Optimizer> optimizer_;
  const int to_aggregate_;
  const int total_;
  const int worker_;
  std::vector<Endpoint> queues_;  // of the workers' tokens
  Node* apply_ = nullptr;         // takes means, applies them, hands out tokens
  std::vector<Node*> chief_init_;
  std::vector<Node*> chief_resume_;
};

}  // namespace weft::train
