// SPDX-License-Identifier: Apache-2.0
// What a layer is: settings under Keras's names, and the nodes and weights that they make.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "weft/estimator/config_fields.h"
#include "weft/estimator/layer_call.h"
#include "weft/graph/builder.h"

namespace weft::estimator {

// One tensor; a list; arguments of their own (query, value, key); one and initial states.
enum class InputStyle { kOne, kList, kArguments, kStates };

// Holds settings only: weights belong to the model that a layer is called in, so that one layer may
// stand in several models, each with weights of its own. Calls of one layer in one model share its
// weights. Not thread-safe.
class Layer {
 public:
  virtual ~Layer() = default;
  Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  // Keras's name of the class, such as "Dense".
  virtual const char* class_name() const = 0;
  // The class that its own name and its folder in archives come from.
  virtual const char* named_after() const { return class_name(); }
  // The module of Keras that has it, by Keras's version.
  virtual std::string module(int /*keras*/) const { return "keras.layers"; }
  // Names every setting but the layer's name, once, for writing and reading.
  virtual void Fields(ConfigFields& fields) = 0;
  // Adds the layer's nodes for `inputs`, and its weights when it is called for the first time in a
  // model. Errors go to call.Fail. Empty after an error.
  virtual std::vector<Value> Call(LayerCall& call, const std::vector<Value>& inputs) = 0;
  // Whether outputs go by the mask of the first input; else they have none, unless Call gives one.
  virtual bool KeepsMask() const { return false; }
  // How Keras's call takes several inputs.
  virtual InputStyle input_style() const { return InputStyle::kOne; }
  // The settings as version `keras` (2 or 3) of Keras writes them; of layers that hold layers,
  // those of all of them.
  virtual Json Config(int keras);
  virtual Status ReadConfig(const Json& config);

  // Unique in a model; empty until the model gives one ("dense", "dense_1", ...).
  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }
  // Whether optimizers change its weights. As in Keras a batch normalization that is not trained
  // also normalizes by its moving averages.
  bool trainable() const { return trainable_; }
  void set_trainable(bool trainable) { trainable_ = trainable; }

 private:
  std::string name_;
  bool trainable_ = true;
};

// A tensor of a model that is being put together: an input, or what a call of a layer gives. Copies
// mean the same one.
class Symbol {
 public:
  struct Origin;
  Symbol() = default;
  explicit Symbol(std::shared_ptr<const Origin> origin, int output = 0)
      : origin_(std::move(origin)), output_(output) {}

  explicit operator bool() const { return origin_ != nullptr; }
  // Another output of the same call: the states of a recurrent layer with return_state.
  Symbol Output(int index) const { return Symbol(origin_, index); }
  const std::shared_ptr<const Origin>& origin() const { return origin_; }
  int output() const { return output_; }

 private:
  std::shared_ptr<const Origin> origin_;
  int output_ = 0;
};

// Shares a layer. Calling it in a model that is being put together gives its outputs:
//   Symbol x = Input({28, 28, 1});
//   x = Conv2D(32, 3, {.activation = "relu"})(x);
class LayerRef {
 public:
  LayerRef() = default;
  explicit LayerRef(std::shared_ptr<Layer> layer) : layer_(std::move(layer)) {}

  Symbol operator()(const Symbol& input, const CallArguments& arguments = {}) const {
    return (*this)(std::vector<Symbol>{input}, arguments);
  }
  Symbol operator()(const std::vector<Symbol>& inputs, const CallArguments& arguments = {}) const;
  Layer* operator->() const { return layer_.get(); }
  Layer* get() const { return layer_.get(); }
  explicit operator bool() const { return layer_ != nullptr; }

 private:
  std::shared_ptr<Layer> layer_;
};

// One call, or an input (then there are no inputs).
struct Symbol::Origin {
  LayerRef layer;
  std::vector<Symbol> inputs;
  CallArguments arguments;
};

// A model's input. `shape` is one example's: the batch is not in it; -1 is a size that varies.
// `batch` fixes the batch's size, which stateful layers need.
Symbol Input(const std::vector<int64_t>& shape, DType dtype = DType::kFloat,
             const std::string& name = "", int64_t batch = -1);

// The layer behind Input().
class InputLayer final : public Layer {
 public:
  InputLayer(PartialShape shape, DType dtype) : shape_(std::move(shape)), dtype_(dtype) {}
  const char* class_name() const override { return "InputLayer"; }
  void Fields(ConfigFields&) override {}
  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& inputs) override;
  // The batch with the rest.
  const PartialShape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }

 private:
  const PartialShape shape_;
  const DType dtype_;
};

// A layer of the class with these options, as its function makes it.
template <typename L, typename Options>
LayerRef MakeLayer(Options options, const std::string& name) {
  LayerRef layer(std::make_shared<L>(std::move(options)));
  layer->set_name(name);
  return layer;
}

}  // namespace weft::estimator
