// SPDX-License-Identifier: Apache-2.0
// A session whose graph was written for one device and is distributed by its master.
#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/status.h"
#include "proto/tensorflow/config.pb.h"
#include "weft/cluster/cluster_spec.h"
#include "weft/graph/node_def.h"
#include "weft/graph/op_registry.h"
#include "weft/replicate/replicate.h"
#include "weft/step/signature.h"

namespace weft::master {

// Who decides where a graph runs.
enum class Distribution {
  kWritten,   // its device strings
  kAuto,      // the master, where it can be done with the same results; else the log says why not
  kRequired,  // the master; a step that cannot be distributed is an error
};

// What a session asks for.
struct DistributionWish {
  Distribution mode = Distribution::kWritten;
  // Variables of at least so many bytes are cut by rows over the servers; if not given, those of a
  // megabyte and more that hold more than one server's share of all.
  std::optional<int64_t> cut_bytes;
};

// By its name: written, auto or required. InvalidArgument for another one.
StatusOr<Distribution> DistributionByName(absl::string_view name);
// In a configuration the name is the parameter "distribution" of a custom graph optimizer "weft"
// (RewriterConfig.custom_optimizers), beside which "cut_bytes" may stand; the last one counts.
void SetDistribution(const std::string& name, tensorflow::ConfigProto* config);
StatusOr<DistributionWish> DistributionOf(const tensorflow::ConfigProto& config);

// Where parameters and workers are, and what became of each signature. Thread-safe.
class AutoDistribution {
 public:
  // `others` are the tasks that the session may use besides `self`. Tasks of job "ps" hold the
  // variables; those of chief, master and worker are workers, or, if there are none, all of the
  // job of `self`.
  AutoDistribution(DistributionWish wish, const OpRegistry* ops, const cluster::TaskId& self,
                   const std::vector<cluster::TaskId>& others);

  // Not written, and not found to be so.
  bool is_on() const { return is_on_; }
  int num_workers() const { return static_cast<int>(workers_.size()); }
  // Tasks besides `self` that take part.
  const std::vector<cluster::TaskId>& tasks() const { return tasks_; }

  // Places new variables: by size over the servers, large ones in parts. A graph that names tasks
  // itself turns the distribution off; where it is required that is InvalidArgument.
  Status PlaceVariables(GraphDef* graph);

  // Whether a step should be compiled, or is there, as a replicated one.
  bool MaySplit(const std::string& key, const std::vector<step::Feed>& feeds) const;
  replicate::ReplicateOptions OptionsFor(const std::vector<step::Feed>& feeds,
                                         const std::string& client_device) const;
  // Remembers and logs what became of a signature. InvalidArgument if distribution is required and
  // training was refused.
  Status Note(const std::string& key, const replicate::Replicated& outcome);

 private:
  // What became of a signature, and how often sizes that were fed did not do.
  struct Outcome {
    replicate::Replicated step;
    int refused_sizes = 0;
  };

  // Which of the variables are cut, as an attribute of their nodes.
  void CutVariables(GraphDef* graph) const;

  const DistributionWish wish_;
  const OpRegistry* const ops_;
  std::atomic<bool> is_on_;
  std::vector<std::string> workers_;  // devices
  std::vector<std::string> servers_;
  std::vector<cluster::TaskId> tasks_;
  mutable absl::Mutex mutex_;
  std::map<std::string, int64_t> server_bytes_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Outcome> outcomes_ ABSL_GUARDED_BY(mutex_);  // by signature
};

}  // namespace weft::master
