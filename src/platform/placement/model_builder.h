// SPDX-License-Identifier: Apache-2.0
// Training steps by their layers: whoever builds one states the forward ops, and their gradients
// and the updates of variables follow.
#pragma once

#include <string>
#include <vector>

#include "platform/placement/step_graph.h"

namespace weft::platform {

// Sizes in 32-bit floats, work in products and sums (flops). Tensors and variables are numbers that
// it hands out.
class ModelBuilder {
 public:
  explicit ModelBuilder(std::string name, int64_t batch);

  int64_t batch() const { return batch_; }
  int Input(const std::string& name, double elements);
  int Variable(const std::string& name, double elements);
  // An op of `flops` that reads `inputs` and, if not -1, `variable`.
  int Op(const std::string& op, const std::vector<int>& inputs, int variable, double flops,
         double elements);
  // Rows of a variable: `elements` in all; only they have gradients.
  int Lookup(const std::vector<int>& inputs, int variable, double elements);
  // [rows, in] by [in, out], with a variable of its own and a bias that is counted with it.
  int Dense(int input, double rows, double in, double out);
  int DenseWith(int input, int variable, double rows, double in, double out);
  // A square window over [batch, size, size, in], with what follows it: normalisation, activation.
  int Convolution(int input, double size, double in, double out, double window, double stride);

  // Adds a loss over `outputs`, gradients and updates; the builder is empty afterwards.
  StepGraph Train(const std::vector<int>& outputs);

 private:
  struct Layer {
    int op = 0;
    std::vector<int> inputs;
    int variable = -1;
    int output = 0;
    bool is_lookup = false;
  };
  int Add(StepOp op, const std::vector<int>& inputs, double elements);
  int OfBatch(int tensor);  // which has rows of the batch
  int SumOf(const std::vector<int>& tensors);
  void AddGradients(const Layer& layer);

  StepGraph graph_;
  const int64_t batch_;
  int next_ = 0;
  std::vector<Layer> layers_;
  std::vector<int> variables_;                  // tensors that read them
  std::vector<char> is_input_;                  // by tensor: nothing wants its gradient
  std::vector<std::vector<int>> gradients_;     // by tensor
  std::vector<std::vector<int>> of_variables_;  // gradients by variable
};

}  // namespace weft::platform
