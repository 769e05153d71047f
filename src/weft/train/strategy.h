// SPDX-License-Identifier: Apache-2.0
// One program for all ways of training together: which one, configuration says.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weft/train/collectives.h"
#include "weft/train/hooks.h"
#include "weft/train/monitored_session.h"
#include "weft/train/optimizer.h"
#include "weft/train/program.h"
#include "weft/train/task.h"

namespace weft::train {

struct StrategyOptions {
  // "mirrored": each of the task's devices has the variables, and gradients are averaged among them
  // before all apply them. "multi_worker": the same over the devices of all workers, without
  // parameter servers. "parameter_server": variables on these, which each worker updates by
  // itself. "auto" (WEFT_STRATEGY says otherwise): the third where the job has parameter servers,
  // the second where it has several workers, else the first.
  std::string kind = "auto";
  int devices = 1;  // of this task, that RunTask was given
  // Gradients travel together up to so many bytes, while earlier ones are still computed.
  int64_t bucket_bytes = int64_t{4} << 20;
  OnTheWire wire = OnTheWire::kAsTheyAre;
  std::string algorithm = "auto";
  // Of "multi_worker": so many workers are enough; others may be lost and come back, and training
  // goes on without them. 0 (WEFT_ELASTIC="2:4" says otherwise): all.
  int fewest = 0;
};

// Makes the training part of a program. Use one for one program; not thread-safe.
//
//   WEFT_ASSIGN_OR_RETURN(auto strategy, Strategy::Make(task, {}));
//   WEFT_ASSIGN_OR_RETURN(Node* step, strategy->Minimize(program, Adam(), model));
//   WEFT_ASSIGN_OR_RETURN(auto session, strategy->NewSession(program, {.train = step, ...}));
//
// Where workers may be lost: a step that a loss cut off changes nothing anywhere or is run again;
// the others form their group anew, take the variables of one that is ahead, and go on. So does a
// worker that comes. Nothing of it is in the program.
class Strategy {
 public:
  // The loss of the program's model for one replica's part of a batch, a mean over its examples:
  // replicas have parts of one size. Called once for each replica of this task, with its number in
  // the job; variables are made in it.
  using Model = std::function<StatusOr<Endpoint>(Program& program, int replica)>;

  // InvalidArgument tells what of the options does not fit the task.
  static StatusOr<std::unique_ptr<Strategy>> Make(const Task& task, StrategyOptions options);

  // The numbers of this task's replicas, and how many the job has, if all are there.
  std::vector<int> replicas() const;
  int num_replicas() const;
  const std::string& kind() const { return options_.kind; }

  // The node of one step: all replicas' gradients, averaged, applied everywhere, and one more in
  // the global step. Gradients of rows (of an embedding) become whole ones where they are averaged.
  StatusOr<Node*> Minimize(Program& program, std::unique_ptr<Optimizer> optimizer,
                           const Model& model);
  // The loss as the step has it: the mean over all replicas ("parameter_server": this worker's).
  Endpoint loss() const { return loss_; }

  // A session for training, which starts, watches and restarts it. make_session and is_chief of
  // `options` are the strategy's to say.
  StatusOr<std::unique_ptr<MonitoredSession>> NewSession(Program& program, TrainingOptions options);

 private:
  struct Replica {
    Endpoint loss;
    std::vector<GradientAndVariable> gradients;
  };

  Strategy(const Task& task, StrategyOptions options) : task_(task), options_(std::move(options)) {}
  bool has_peers() const { return options_.kind == "multi_worker" && task_.num_workers > 1; }
  std::string DeviceOf(int local) const;
  StatusOr<std::vector<Replica>> BuildReplicas(Program& program, const Model& model);
  Endpoint MeanOf(GraphBuilder& b, std::vector<Endpoint> values) const;
  StatusOr<std::vector<GradientAndVariable>> Averaged(Program& program,
                                                      const std::vector<Replica>& replicas);
  Status BuildSync(Program& program);

  const Task task_;
  StrategyOptions options_;
  std::unique_ptr<Optimizer> optimizer_;  // its slots belong to the program
  std::unique_ptr<Collectives> collectives_;
  std::vector<std::unique_ptr<Hook>> hooks_;
  Endpoint loss_;
  // Of the group: names of what forms it, of what gives all the variables of one, and of the end.
  std::string form_, sync_, last_;
};

}  // namespace weft::train
