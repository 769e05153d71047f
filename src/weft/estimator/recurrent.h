// SPDX-License-Identifier: Apache-2.0
// Layers that go over the steps of [batch, time, features] with a state.
#pragma once

#include <string>

#include "weft/estimator/layer.h"

namespace weft::estimator {

// Steps that the input's mask leaves out keep the state, and repeat the last output (or give
// zeros).
struct RecurrentOptions {
  ActivationName activation = "tanh";
  ActivationName recurrent_activation = "sigmoid";  // of the gates of LSTM and GRU
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer recurrent_initializer = "orthogonal";
  Initializer bias_initializer = "zeros";
  bool unit_forget_bias = true;  // LSTM: the forget gate's bias begins at 1
  Regularizer kernel_regularizer = {};
  Regularizer recurrent_regularizer = {};
  Regularizer bias_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint recurrent_constraint = {};
  Constraint bias_constraint = {};
  double dropout = 0;             // of inputs, the same at each step
  double recurrent_dropout = 0;   // of the state
  bool return_sequences = false;  // the output of each step, else of the last
  bool return_state = false;      // outputs 1 (and 2 of an LSTM) are the last states
  bool go_backwards = false;
  // Each batch goes on from the states that the one before ended in, row by row, until
  // Model::ResetStates: in training, evaluation and prediction. The batch's size must be known.
  bool stateful = false;
  bool reset_after = true;  // GRU: the reset gate works on the product with the state
  bool zero_output_for_mask = false;
  std::string name = {};
};
// Called on {x} or on {x, initial states...}.
LayerRef LSTM(int64_t units, const RecurrentOptions& options = {});
LayerRef GRU(int64_t units, const RecurrentOptions& options = {});
LayerRef SimpleRNN(int64_t units, const RecurrentOptions& options = {});

// Keras's RNN over one cell or several on top of each other, as one layer. A cell is given as the
// layer that would run it alone, of which only the cell's settings count.
struct RnnOptions {
  bool return_sequences = false;
  bool return_state = false;  // the states of all cells, one behind the other
  bool go_backwards = false;
  bool stateful = false;
  bool zero_output_for_mask = false;
  std::string name = {};
};
LayerRef RNN(const std::vector<LayerRef>& cells, const RnnOptions& options = {});

// A recurrent layer and a copy that goes backwards; `merge_mode` is concat, sum, mul or ave.
LayerRef Bidirectional(const LayerRef& layer, const std::string& merge_mode = "concat",
                       const std::string& name = "");

// A copy of `layer` under another name, going the other way if `turn`.
StatusOr<LayerRef> CopyRecurrent(const LayerRef& layer, const std::string& name, bool turn);

// What Bidirectional and RNN need of a recurrent layer.
class RecurrentBase : public Layer {
 public:
  // Into the inner layer `name` ("" for the layer itself), `group` in archives.
  virtual std::vector<Value> RunAs(LayerCall& call, const std::vector<Value>& in,
                                   const std::string& name, const std::string& group) = 0;
  // The same without a layer around: only the cell's own name and folder.
  virtual std::vector<Value> RunCell(LayerCall& call, const std::vector<Value>& in,
                                     const std::string& cell, const std::string& group) = 0;
  virtual RecurrentOptions& options() = 0;
  virtual int num_states() const = 0;
  // "lstm_cell".
  virtual const char* cell_name() const = 0;
};

}  // namespace weft::estimator
