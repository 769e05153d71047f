// SPDX-License-Identifier: Apache-2.0
// What a layer sees of the model that it is called in: the graph, its weights, training or not.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "weft/estimator/constraint.h"
#include "weft/estimator/initializer.h"
#include "weft/estimator/regularizer.h"
#include "weft/train/program.h"

namespace weft::estimator {

// A tensor with its mask, bool [batch, time], false where there is nothing; empty: all is there.
struct Value {
  Endpoint tensor;
  Endpoint mask;
};

// One weight of a model, or one part of a table whose rows are spread: its parts follow each other
// under one name, and files hold the whole.
struct Weight {
  std::string name;  // "dense/kernel", as Keras calls it
  // The folder in Keras's archives: "layers/dense", "layers/bidirectional/forward_layer/cell".
  std::string store;
  // A second folder that has it too; empty for none.
  std::string also_in = {};
  train::Variable variable;
  bool is_state = false;  // never trained: moving averages
  Constraint constraint;
  Regularizer regularizer;
  Endpoint loss;  // what its regularizer adds; empty for none

  const Shape& whole_shape() const {
    return variable.IsPart() ? variable.whole_shape : variable.shape;
  }
  // Whether it stands for its table where that counts once.
  bool is_first() const { return variable.part_begin == 0; }
};

// What a call says beside its inputs, under Keras's names.
struct CallArguments {
  // 0: as the model runs; 1: as in training; -1: as in inference.
  int training = 0;
  bool use_causal_mask = false;  // of attentions
};

struct WeightOptions {
  Initializer initializer = "glorot_uniform";
  Regularizer regularizer = {};
  Constraint constraint = {};
  bool trainable = true;
  train::Initializer first = nullptr;  // instead of the initializer
};

// What a layer keeps from batch to batch, which is no weight: not in files, not in counts.
struct RunningState {
  std::string name;
  train::Variable variable;
};

// All that is collected while the layers of one model are called.
struct ModelParts {
  std::vector<Weight> weights;            // in order of creation
  std::map<std::string, size_t> by_name;  // the first part's place
  // Tables of at least so many bytes lie in so many parts.
  int table_parts = 1;
  int64_t split_from = 0;
  std::vector<Endpoint> losses;  // scalars that layers add, of the last pass
  std::vector<Node*> updates;    // moving averages, run with each training step
  std::vector<RunningState> states;
  std::vector<Node*> state_updates;         // of the last pass, run with each of its batches
  std::map<const Node*, Endpoint> changed;  // by handle: values that the last pass gave to weights
  int64_t seed = 0;                         // 0: other first values at each start
  int64_t num_random = 0;                   // ops that draw, for seeds of their own
  std::string failed_layer;                 // the one that could not be called, "'dense' (Dense)"
};

// One call of a layer. The builder's prefix of names is the layer's path in the model ("dense/").
// Not thread-safe.
class LayerCall {
 public:
  // `store` is the layer's folder in Keras's archives.
  LayerCall(train::Program& program, ModelParts& parts, std::string store, bool training)
      : program_(program), parts_(parts), store_(std::move(store)), training_(training) {}

  GraphBuilder& b() const { return program_.builder(); }
  train::Program& program() const { return program_; }
  ModelParts& parts() const { return parts_; }
  bool training() const { return training_; }
  bool trainable() const { return trainable_; }
  void set_trainable(bool trainable) { trainable_ = trainable; }
  const CallArguments& arguments() const { return arguments_; }
  void set_arguments(const CallArguments& arguments);
  const std::string& store() const { return store_; }

  // The weight `name` of this layer: made by the first call, float32, the same in later ones.
  Endpoint WeightOf(const std::string& name, const Shape& shape, const WeightOptions& options);
  // The same, for those that read or assign it by its handle.
  const train::Variable* VariableOf(const std::string& name, const Shape& shape,
                                    const WeightOptions& options);
  // A weight that an earlier call has made; null if none has.
  const train::Variable* FindWeight(const std::string& name) const;
  // That archives hold `name`, a weight of the inner layer, among those of this one too.
  void KeepTwice(const std::string& name, const std::string& folder);
  // The weight's value in this pass: the one from before it, or what Change gave it.
  Endpoint ValueOf(const train::Variable& weight) const;
  bool IsChanged(const train::Variable& weight) const;
  // Gives weights other values before they are used: what reads them later in this pass reads
  // these, and gradients are those at these. Regularizers too see these.
  void Change(const std::vector<std::pair<train::Variable, Endpoint>>& values);
  // A table that rows are gathered from: its parts, more than one where it is large and the model
  // is on parameter servers. One with a constraint or a regularizer stays whole.
  std::vector<train::Variable> TableOf(const std::string& name, const Shape& shape,
                                       const WeightOptions& options);
  // The running state `name` of this layer, float32 and at first 0; null after an error.
  const train::Variable* StateOf(const std::string& name, const Shape& shape);
  // Keeps `value` as the state for the next batch.
  void KeepState(const train::Variable& state, Endpoint value);
  // Adds a scalar to the loss, of training or of evaluation.
  void AddLoss(Endpoint loss);
  // Runs with each training step.
  void AddUpdate(Node* update);
  // A seed for the next op that draws, after the model's and `own`, another one each time.
  int64_t NextSeed(int64_t own);
  void Fail(const Status& status) const { program_.builder().Fail(status); }
  // The sizes of `x` from axis 1 on must be known; fails and gives false otherwise.
  bool CheckKnown(Endpoint x, const char* what) const;
  // That `x` has this rank; fails and gives false otherwise.
  bool CheckRank(Endpoint x, int rank) const;

 private:
  friend class InnerLayer;
  // A weight's name in this layer in the model.
  std::string FullName(const std::string& name) const;
  // The place of the weight, or of its first part; -1 after an error.
  int FindOrAdd(const std::string& name, const Shape& shape, const WeightOptions& options,
                int num_parts);
  train::Program& program_;
  ModelParts& parts_;
  std::string store_;
  std::string names_;  // of inner layers, with "/" behind
  bool training_;
  bool trainable_ = true;
  CallArguments arguments_;
  int64_t own_draws_ = 0;
};

// While it lives, weights belong to a layer inside the layer: `name` in their names, `group` its
// folder in archives ("" leaves either out).
class InnerLayer {
 public:
  InnerLayer(LayerCall& call, const std::string& name, const std::string& group);
  ~InnerLayer();

 private:
  LayerCall& call_;
  const std::string outer_names_, outer_store_;
};

}  // namespace weft::estimator
