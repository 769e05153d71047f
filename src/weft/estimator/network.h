// SPDX-License-Identifier: Apache-2.0
// A graph of layers, which is a layer itself.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "weft/estimator/layer.h"

namespace weft::estimator {

// Where a tensor comes from: output `output` of call `call`.
struct CallOutput {
  int call = 0;
  int output = 0;
  bool operator==(const CallOutput&) const = default;
};

// One call of a layer, or an input.
struct NetworkCall {
  LayerRef layer;
  std::vector<CallOutput> inputs;
  CallArguments arguments;
  int index = 0;  // which call of its layer it is
  // What is known of the outputs, once the network has been called.
  std::vector<PartialShape> shapes;
  std::vector<DType> dtypes;
};

// Layers and calls in the order in which Keras has them. Keras's Functional, or, where each layer
// takes what the one before gives, Sequential.
class Network final : public Layer {
 public:
  // InvalidArgument where an output depends on an input that is not named, or two layers have one
  // name. Layers without a name get one.
  static StatusOr<std::shared_ptr<Network>> Make(const std::vector<Symbol>& inputs,
                                                 const std::vector<Symbol>& outputs,
                                                 const std::string& name = "");
  // The first of `layers` is an input's.
  static StatusOr<std::shared_ptr<Network>> MakeSequential(const Symbol& input,
                                                           const std::vector<LayerRef>& layers,
                                                           const std::string& name = "");
  // As Keras writes it, {"class_name": "Functional", "config": ...}; versions 2 and 3.
  // Unimplemented names all classes of layers that there are not.
  static StatusOr<std::shared_ptr<Network>> FromJson(const Json& json);

  const char* class_name() const override { return sequential_ ? "Sequential" : "Functional"; }
  std::string module(int keras) const override;
  void Fields(ConfigFields&) override {}
  InputStyle input_style() const override {
    return inputs_.size() > 1 ? InputStyle::kList : InputStyle::kOne;
  }
  // Annotates nothing: ModelParts::failed_layer says which layer failed.
  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& inputs) override;
  Json Config(int keras) override;

  const std::vector<LayerRef>& layers() const { return layers_; }
  const std::vector<NetworkCall>& calls() const { return calls_; }
  // Calls of input layers.
  const std::vector<int>& inputs() const { return inputs_; }
  const std::vector<CallOutput>& outputs() const { return outputs_; }
  // The layer of this name; NotFound names those that there are.
  StatusOr<LayerRef> Find(const std::string& name) const;
  // Folders of the layers in Keras's archives, as `layers` stand: "dense", "dense_1".
  std::vector<std::string> Folders() const;

 private:
  friend class NetworkReader;
  Status SetUp(const std::vector<Symbol>& inputs, const std::vector<Symbol>& outputs);
  Status GiveNames();
  Json SequentialConfig(int keras);
  Json CallJson(const NetworkCall& call, int keras) const;
  Json TensorJson(const CallOutput& from, int keras) const;

  bool sequential_ = false;
  std::vector<LayerRef> layers_;
  std::vector<NetworkCall> calls_;
  std::vector<int> inputs_;
  std::vector<CallOutput> outputs_;
};

// {"class_name": "InputLayer", ...}' config: shape and dtype.
Json InputConfig(const InputLayer& layer, int keras);
StatusOr<Symbol> ReadInput(const Json& config);

}  // namespace weft::estimator
