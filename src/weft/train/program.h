// SPDX-License-Identifier: Apache-2.0
// A graph being built for training, with what it collects: variables, summaries, the global step.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "weft/graph/builder.h"
#include "weft/train/partition.h"
#include "weft/train/variable.h"

namespace weft::train {

struct VariableOptions {
  bool trainable = true;
  bool local = false;
  std::string device;  // overrides the placement
};

// What a program has besides variables that is begun before training and may be saved: where an
// iterator stands.
struct ProgramState {
  std::string name;    // in checkpoints
  std::string device;  // as requested
  Node* initializer = nullptr;
  Endpoint value;  // what is saved; empty: nothing is
  // Adds the node that takes a saved value back.
  std::function<Node*(GraphBuilder& builder, Endpoint value)> restore;
};

// "node:0", as steps are fed and fetched; empty for an empty endpoint.
std::string NameOf(const Endpoint& tensor);

// Owns the graph. Building errors stick to builder().status(). Not thread-safe.
class Program {
 public:
  Program();
  explicit Program(const OpRegistry* ops);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  Graph& graph() { return graph_; }
  GraphBuilder& builder() { return builder_; }
  const Status& status() const { return builder_.status(); }

  // Later variables go where `placement` says.
  void set_placement(std::unique_ptr<VariablePlacement> placement) {
    placement_ = std::move(placement);
  }

  // A variable named by the builder's prefix and `name`; InvalidArgument if the name is taken.
  Variable AddVariable(const std::string& name, DType dtype, const Shape& shape,
                       const Initializer& initial, const VariableOptions& options = {});
  // The parts of one variable, <name>/part_0, ..., as `partitioner` splits it, each placed by
  // itself. A checkpoint holds them as slices of `name`, and restores them however it was split
  // when saved.
  std::vector<Variable> AddPartitionedVariable(const std::string& name, DType dtype,
                                               const Shape& shape, const Initializer& initial,
                                               const Partitioner& partitioner);
  // The rows in `num_parts` parts.
  std::vector<Variable> AddPartitionedVariable(const std::string& name, DType dtype,
                                               const Shape& shape, const Initializer& initial,
                                               int num_parts);
  // An optimizer's slot of `of`: same shape, device and partition, named "<of>/<slot>" (with _1,
  // _2, ... when taken), not trainable.
  Variable AddSlot(const Variable& of, const std::string& slot, const Initializer& initial);
  const std::vector<Variable>& variables() const { return variables_; }
  std::vector<Variable> TrainableVariables() const;
  // Those that a checkpoint keeps.
  std::vector<Variable> SavedVariables() const;

  // The int64 count of steps, made on first use, saved with the rest.
  Variable GlobalStep();

  // Counts a variable whose nodes are in the graph already, as those of an imported graph are,
  // among variables(). InvalidArgument in status() if one of that name is there.
  void AdoptVariable(const Variable& variable);

  void AddState(ProgramState state) { states_.push_back(std::move(state)); }
  const std::vector<ProgramState>& states() const { return states_; }
  // A node that begins all states from the start.
  Node* InitializeStates();

  // A node that initializes all variables and states; ask for it after the last of them.
  Node* InitializeVariables();
  // Nodes that initialize those of `variables`, which stand in the order in which they were added:
  // a variable whose initial value is made of another's waits for that one.
  std::vector<Node*> InitializersInOrder(const std::vector<Variable>& variables);
  // The value of `variable`, or the one that it would begin with where it has none yet: what the
  // initial values of other variables are made of, as with TensorFlow's initialized_value.
  //   program.AddVariable("start", dtype, shape, [&](GraphBuilder&, DType, const Shape&) {
  //     return program.InitializedValue(w);
  //   });
  Endpoint InitializedValue(const Variable& variable);
  // A string vector of the names of variables without a value: empty when all have one. Workers'
  // local variables count only if `local`.
  Endpoint ReportUninitialized(bool local = true);
  // A node that runs after all of `nodes`.
  Node* Group(const std::vector<Node*>& nodes, const std::string& name = "group");

  void AddSummary(Endpoint serialized) { summaries_.push_back(serialized); }
  // All summaries as one serialized Summary; empty if there are none.
  Endpoint MergedSummaries();

 private:
  std::string DeviceFor(int64_t size_bytes, const VariableOptions& options);
  // `full_name` says all: no prefix is added.
  Variable Make(const std::string& full_name, DType dtype, const Shape& shape,
                const Initializer& initial, const VariableOptions& options);

  Graph graph_;
  GraphBuilder builder_;
  std::unique_ptr<VariablePlacement> placement_;
  std::vector<Variable> variables_;
  std::vector<ProgramState> states_;
  int global_step_ = -1;
  std::map<std::string, Endpoint> initialized_values_;  // by the variable's name
  std::vector<Endpoint> summaries_;
};

// Rows `ids` of a table partitioned by AddPartitionedVariable (or of one variable): row i of the
// table lies in the part that holds it. ids: int32 or int64 of any shape; gives ids' shape + [row].
// Gradients are row gradients, one for each part.
Endpoint EmbeddingLookup(GraphBuilder& builder, const std::vector<Variable>& parts, Endpoint ids);

}  // namespace weft::train
