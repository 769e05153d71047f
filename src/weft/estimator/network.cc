// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/network.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "weft/estimator/layer_names.h"

namespace weft::estimator {
namespace {

using Origin = Symbol::Origin;

bool IsInput(const Origin* origin) {
  return dynamic_cast<const InputLayer*>(origin->layer.get()) != nullptr;
}

// Calls behind the outputs in Keras's order of visits: each after those it reads. A layer is
// counted when it is first come to, before what it reads.
class Walk {
 public:
  Status Visit(const Symbol& symbol) {
    if (!symbol) return InvalidArgument("A model's tensors must come from Input() or a layer");
    // By hand rather than by recursion: models may be deep.
    std::vector<std::pair<const Origin*, size_t>> stack;
    Enter(symbol.origin().get(), &stack);
    while (!stack.empty()) {
      auto& [origin, next] = stack.back();
      if (next < origin->inputs.size()) {
        const Symbol& input = origin->inputs[next++];
        if (!input) return InvalidArgument("A layer was called on an empty symbol");
        Enter(input.origin().get(), &stack);
      } else {
        order_.push_back(origin);
        stack.pop_back();
      }
    }
    return absl::OkStatus();
  }

  const std::vector<const Origin*>& order() const { return order_; }
  int LayerIndex(const Layer* layer) const { return layer_index_.at(layer); }

 private:
  void Enter(const Origin* origin, std::vector<std::pair<const Origin*, size_t>>* stack) {
    if (!seen_.insert(origin).second) return;
    layer_index_.emplace(origin->layer.get(), static_cast<int>(layer_index_.size()));
    stack->emplace_back(origin, 0);
  }

  std::set<const Origin*> seen_;
  std::vector<const Origin*> order_;
  std::map<const Layer*, int> layer_index_;
};

// How far each layer is from the outputs, the longest way.
std::map<const Layer*, int> DepthsOf(const Walk& walk) {
  std::map<const Origin*, int> of_calls;
  std::map<const Layer*, int> of_layers;
  for (auto it = walk.order().rbegin(); it != walk.order().rend(); ++it) {
    const Origin* origin = *it;
    int& layer_depth = of_layers[origin->layer.get()];
    const int depth = std::max(of_calls[origin], layer_depth);
    layer_depth = depth;
    of_calls[origin] = depth;
    for (const Symbol& input : origin->inputs) {
      int& before = of_calls[input.origin().get()];
      before = std::max(before, depth + 1);
    }
  }
  return of_layers;
}

}  // namespace

StatusOr<std::shared_ptr<Network>> Network::Make(const std::vector<Symbol>& inputs,
                                                 const std::vector<Symbol>& outputs,
                                                 const std::string& name) {
  auto network = std::make_shared<Network>();
  network->set_name(name);
  WEFT_RETURN_IF_ERROR(network->SetUp(inputs, outputs));
  return network;
}

StatusOr<std::shared_ptr<Network>> Network::MakeSequential(const Symbol& input,
                                                           const std::vector<LayerRef>& layers,
                                                           const std::string& name) {
  if (layers.empty()) return InvalidArgument("A Sequential model needs a layer");
  Symbol x = input;
  for (const LayerRef& layer : layers) {
    if (!layer) return InvalidArgument("A Sequential model holds an empty layer");
    x = layer(x);
  }
  auto network = std::make_shared<Network>();
  network->set_name(name);
  network->sequential_ = true;
  WEFT_RETURN_IF_ERROR(network->SetUp({input}, {x}));
  return network;
}

Status Network::SetUp(const std::vector<Symbol>& inputs, const std::vector<Symbol>& outputs) {
  if (inputs.empty() || outputs.empty()) {
    return InvalidArgument("A model needs an input and an output");
  }
  Walk walk;
  for (const Symbol& output : outputs) WEFT_RETURN_IF_ERROR(walk.Visit(output));
  std::set<const Origin*> named;
  for (const Symbol& input : inputs) {
    if (!input || !IsInput(input.origin().get())) {
      return InvalidArgument("A model's inputs must come from Input()");
    }
    named.insert(input.origin().get());
    WEFT_RETURN_IF_ERROR(walk.Visit(input));
  }
  for (const Origin* origin : walk.order()) {
    if (IsInput(origin) && named.count(origin) == 0) {
      return InvalidArgument(
          "An output depends on an input that is not among the model's inputs: '",
          origin->layer->name(), "'");
    }
  }
  const std::map<const Layer*, int> depths = DepthsOf(walk);
  std::map<const Layer*, int> seen;
  for (const Origin* origin : walk.order()) {
    if (seen.emplace(origin->layer.get(), 0).second) layers_.push_back(origin->layer);
  }
  std::stable_sort(layers_.begin(), layers_.end(), [&](const LayerRef& a, const LayerRef& b) {
    const int depth_a = depths.at(a.get()), depth_b = depths.at(b.get());
    if (depth_a != depth_b) return depth_a > depth_b;
    return walk.LayerIndex(a.get()) < walk.LayerIndex(b.get());
  });
  std::map<const Origin*, int> number;
  for (const Origin* origin : walk.order()) {
    number[origin] = static_cast<int>(calls_.size());
    NetworkCall call{origin->layer, {}, origin->arguments, seen[origin->layer.get()]++, {}, {}};
    for (const Symbol& input : origin->inputs) {
      call.inputs.push_back({number.at(input.origin().get()), input.output()});
    }
    calls_.push_back(std::move(call));
  }
  for (const Symbol& input : inputs) inputs_.push_back(number.at(input.origin().get()));
  for (const Symbol& output : outputs) {
    outputs_.push_back({number.at(output.origin().get()), output.output()});
  }
  return GiveNames();
}

Status Network::GiveNames() {
  std::set<std::string> used;
  for (const LayerRef& layer : layers_) {
    const std::string& name = layer->name();
    if (name.empty()) continue;
    if (name.find('/') != std::string::npos) {
      return InvalidArgument("A layer's name must not hold '/': '", name, "'");
    }
    if (!used.insert(name).second) {
      return InvalidArgument("Two layers of the model have the name '", name, "'");
    }
  }
  NameCounter counter;
  for (const LayerRef& layer : layers_) {
    if (!layer->name().empty()) continue;
    std::string name;
    do {
      name = counter.Next(SnakeCase(layer->named_after()));
    } while (!used.insert(name).second);
    layer->set_name(name);
  }
  return absl::OkStatus();
}

StatusOr<LayerRef> Network::Find(const std::string& name) const {
  std::vector<std::string> names;
  for (const LayerRef& layer : layers_) {
    if (layer->name() == name) return layer;
    names.push_back(layer->name());
  }
  return NotFound("There is no layer '", name, "'; the model has ", absl::StrJoin(names, ", "));
}

std::vector<std::string> Network::Folders() const {
  std::vector<std::string> folders;
  NameCounter counter;
  for (const LayerRef& layer : layers_)
    folders.push_back(counter.Next(SnakeCase(layer->named_after())));
  return folders;
}

std::vector<Value> Network::Call(LayerCall& call, const std::vector<Value>& inputs) {
  GraphBuilder& b = call.b();
  if (inputs.size() != inputs_.size()) {
    call.Fail(InvalidArgument("got ", inputs.size(), " inputs, expected ", inputs_.size()));
    return {};
  }
  std::map<const Layer*, std::string> folders;
  const std::vector<std::string> names = Folders();
  for (size_t i = 0; i < layers_.size(); ++i) {
    folders[layers_[i].get()] =
        absl::StrCat(call.store(), call.store().empty() ? "" : "/", "layers/", names[i]);
  }
  std::vector<std::vector<Value>> results(calls_.size());
  for (size_t i = 0; i < inputs.size(); ++i) results[inputs_[i]] = {inputs[i]};
  for (size_t i = 0; i < calls_.size(); ++i) {
    NetworkCall& one = calls_[i];
    if (results[i].empty()) {
      std::vector<Value> from;
      bool complete = true;
      for (const CallOutput& input : one.inputs) {
        const std::vector<Value>& outputs = results[input.call];
        complete = complete && input.output < static_cast<int>(outputs.size());
        if (complete) from.push_back(outputs[input.output]);
      }
      b.PushName(one.layer->name());
      LayerCall inner(call.program(), call.parts(), folders[one.layer.get()], call.training());
      inner.set_arguments(one.arguments);
      inner.set_trainable(call.trainable() && one.layer->trainable());
      if (complete && !from.empty()) {
        results[i] = one.layer->Call(inner, from);
      } else {
        call.Fail(InvalidArgument("an input is an output that its layer does not have"));
      }
      b.PopName();
      if (!b.ok() || results[i].empty()) {
        std::string& failed = call.parts().failed_layer;
        if (failed.empty()) {
          failed = absl::StrCat("'", b.name_prefix(), one.layer->name(), "' (",
                                one.layer->class_name(), ")");
        }
        return {};
      }
      if (one.layer->KeepsMask() && !results[i][0].mask) results[i][0].mask = from[0].mask;
    }
    one.shapes.clear();
    one.dtypes.clear();
    for (const Value& value : results[i]) {
      one.shapes.push_back(b.ShapeOf(value.tensor));
      one.dtypes.push_back(value.tensor.node->output_type(value.tensor.port).dtype);
    }
  }
  std::vector<Value> outputs;
  for (const CallOutput& output : outputs_) {
    if (output.output >= static_cast<int>(results[output.call].size())) {
      call.Fail(InvalidArgument("an output of the model is one that its layer does not have"));
      return {};
    }
    outputs.push_back(results[output.call][output.output]);
  }
  return outputs;
}

}  // namespace weft::estimator
