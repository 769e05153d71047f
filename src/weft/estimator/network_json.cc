// SPDX-License-Identifier: Apache-2.0
// Networks as Keras 2 and 3 write them.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "weft/estimator/keras_object.h"
#include "weft/estimator/layer_classes.h"
#include "weft/estimator/network.h"

namespace weft::estimator {
namespace {

constexpr int kMaxDepth = 16;  // of networks in networks

std::string KerasTypeName(DType dtype) {
  switch (dtype) {
    case DType::kFloat:
      return "float32";
    case DType::kDouble:
      return "float64";
    case DType::kHalf:
      return "float16";
    default:
      return std::string(DTypeName(dtype));
  }
}

StatusOr<DType> DTypeOfName(const Json& json) {
  // Keras 3 writes policies: {"class_name": "DTypePolicy", "config": {"name": "float32"}}.
  const Json* name = &json;
  if (json.is_object()) {
    if (const Json* config = json.Find("config")) name = config->Find("name");
  }
  if (name == nullptr) return InvalidArgument("a dtype without a name");
  WEFT_ASSIGN_OR_RETURN(const std::string text, name->AsString());
  for (const DType dtype : {DType::kFloat, DType::kDouble, DType::kHalf, DType::kInt32,
                            DType::kInt64, DType::kBool, DType::kUint8, DType::kString}) {
    if (KerasTypeName(dtype) == text) return dtype;
  }
  return Unimplemented("inputs of dtype '", text, "'");
}

Json ShapeJson(const PartialShape& shape) {
  Json sizes = Json::MakeArray();
  for (int i = 0; i < shape.rank(); ++i) {
    sizes.Append(shape.dim(i) < 0 ? Json() : Json(shape.dim(i)));
  }
  return sizes;
}

// [null, 28, 28], whose first is the batch.
StatusOr<std::vector<int64_t>> ReadShape(const Json& json) {
  if (!json.is_array() || json.size() == 0 || json.size() > 64) {
    return InvalidArgument("expected a shape with the batch, found ", json.Describe());
  }
  std::vector<int64_t> shape;
  for (const Json& size : json.items()) {
    if (size.is_null()) {
      shape.push_back(-1);
      continue;
    }
    WEFT_ASSIGN_OR_RETURN(const int64_t known, size.AsInt());
    shape.push_back(known);
  }
  return shape;
}

Json LayerJson(Layer& layer, Json config, int keras) {
  return KerasObject(layer.module(keras), layer.class_name(), std::move(config));
}

// Keras 3 puts these around masks; weft's layers carry theirs along.
bool IsMaskOp(const std::string& class_name) {
  return class_name == "NotEqual" || class_name == "Any";
}

}  // namespace

Json InputConfig(const InputLayer& layer, int keras) {
  Json config = Json::MakeObject();
  config.Set(keras == 2 ? "batch_input_shape" : "batch_shape", ShapeJson(layer.shape()));
  config.Set("dtype", KerasTypeName(layer.dtype()));
  config.Set("sparse", false);
  if (keras == 2) config.Set("ragged", false);
  config.Set("name", layer.name());
  return config;
}

StatusOr<Symbol> ReadInput(const Json& config) {
  const Json* shape = config.Find("batch_shape");
  if (shape == nullptr) shape = config.Find("batch_input_shape");
  if (shape == nullptr) return InvalidArgument("an InputLayer without a shape");
  WEFT_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, ReadShape(*shape));
  DType dtype = DType::kFloat;
  if (const Json* named = config.Find("dtype"); named != nullptr && !named->is_null()) {
    WEFT_ASSIGN_OR_RETURN(dtype, DTypeOfName(*named));
  }
  std::string name;
  if (const Json* found = config.Find("name"); found != nullptr && found->is_string()) {
    WEFT_ASSIGN_OR_RETURN(name, found->AsString());
  }
  return Input({sizes.begin() + 1, sizes.end()}, dtype, name, sizes[0]);
}

Json Network::TensorJson(const CallOutput& from, int keras) const {
  const NetworkCall& call = calls_[from.call];
  Json history = Json::MakeArray();
  history.Append(call.layer->name());
  // A model's own inputs are its call 0 in Keras 2, which waits for ever where that is named.
  const bool is_model = dynamic_cast<const Network*>(call.layer.get()) != nullptr;
  history.Append(call.index + (keras == 2 && is_model ? 1 : 0));
  history.Append(from.output);
  if (keras == 2) return history;
  Json config = Json::MakeObject();
  const bool known = from.output < static_cast<int>(call.shapes.size());
  config.Set("shape", known ? ShapeJson(call.shapes[from.output]) : Json::MakeArray());
  config.Set("dtype", known ? KerasTypeName(call.dtypes[from.output]) : "float32");
  config.Set("keras_history", std::move(history));
  Json tensor = Json::MakeObject();
  tensor.Set("class_name", "__keras_tensor__");
  tensor.Set("config", std::move(config));
  return tensor;
}

Json Network::CallJson(const NetworkCall& call, int keras) const {
  Json extra = Json::MakeObject();
  if (call.arguments.training != 0) extra.Set("training", call.arguments.training > 0);
  if (call.arguments.use_causal_mask) extra.Set("use_causal_mask", true);
  const InputStyle style = call.layer->input_style();
  const bool separate = style == InputStyle::kArguments ||
                        (style == InputStyle::kStates && call.inputs.size() > 1 && keras != 2);
  if (keras == 2) {
    Json tensors = Json::MakeArray();
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      if (separate && i > 0) break;
      tensors.Append(TensorJson(call.inputs[i], 2));
    }
    if (separate && call.inputs.size() > 1) extra.Set("value", TensorJson(call.inputs[1], 2));
    if (separate && call.inputs.size() > 2) extra.Set("key", TensorJson(call.inputs[2], 2));
    for (Json& tensor : *tensors.mutable_items()) tensor.Append(extra);
    return tensors;
  }
  Json tensors = Json::MakeArray();
  for (const CallOutput& input : call.inputs) tensors.Append(TensorJson(input, 3));
  Json args = Json::MakeArray();
  if (style == InputStyle::kStates && separate) {
    args.Append(tensors.items()[0]);
    Json states = Json::MakeArray();
    for (size_t i = 1; i < tensors.size(); ++i) states.Append(tensors.items()[i]);
    extra.Set("initial_state", std::move(states));
  } else if (style == InputStyle::kList) {
    args.Append(std::move(tensors));
  } else {
    args = std::move(tensors);
  }
  Json node = Json::MakeObject();
  node.Set("args", std::move(args));
  node.Set("kwargs", std::move(extra));
  return node;
}

Json Network::SequentialConfig(int keras) {
  Json layers = Json::MakeArray();
  for (const LayerRef& layer : layers_) {
    const auto* input = dynamic_cast<const InputLayer*>(layer.get());
    layers.Append(LayerJson(
        *layer.get(), input != nullptr ? InputConfig(*input, keras) : layer->Config(keras), keras));
  }
  Json config = Json::MakeObject();
  config.Set("name", name().empty() ? "sequential" : name());
  config.Set("layers", std::move(layers));
  return config;
}

std::string Network::module(int keras) const {
  if (sequential_) return "keras";
  return keras == 2 ? "keras.src.engine.functional" : "keras.src.models.functional";
}

Json Network::Config(int keras) {
  if (sequential_) return SequentialConfig(keras);
  Json layers = Json::MakeArray();
  for (const LayerRef& layer : layers_) {
    const auto* input = dynamic_cast<const InputLayer*>(layer.get());
    Json json = LayerJson(
        *layer.get(), input != nullptr ? InputConfig(*input, keras) : layer->Config(keras), keras);
    json.Set("name", layer->name());
    Json nodes = Json::MakeArray();
    for (const NetworkCall& call : calls_) {
      if (call.layer.get() == layer.get() && !call.inputs.empty()) {
        nodes.Append(CallJson(call, keras));
      }
    }
    json.Set("inbound_nodes", std::move(nodes));
    layers.Append(std::move(json));
  }
  const auto ends = [&](const std::vector<CallOutput>& tensors) {
    Json list = Json::MakeArray();
    for (const CallOutput& tensor : tensors) list.Append(TensorJson(tensor, 2));
    return list;
  };
  std::vector<CallOutput> inputs;
  for (const int input : inputs_) inputs.push_back({input, 0});
  Json config = Json::MakeObject();
  config.Set("name", name().empty() ? "functional" : name());
  config.Set("trainable", trainable());
  config.Set("layers", std::move(layers));
  config.Set("input_layers", ends(inputs));
  config.Set("output_layers", ends(outputs_));
  return config;
}

// Notes the classes of layers that weft does not have: those of the network that `json` describes,
// of networks in it, and of layers in layers.
void NoteUnknown(const Json& json, std::set<std::string>* unknown) {
  const Json* config = json.Find("config");
  if (config == nullptr) return;
  if (const Json* layers = config->Find("layers"); layers != nullptr && layers->is_array()) {
    for (const Json& layer : layers->items()) NoteUnknown(layer, unknown);
    return;
  }
  const Json* class_name = json.Find("class_name");
  if (class_name == nullptr || *class_name == Json("InputLayer")) return;
  const StatusOr<std::string> name = class_name->AsString();
  if (name.ok() && !IsMaskOp(*name) && !LayerClasses::Standard().Has(*name)) unknown->insert(*name);
  for (const char* held : {"layer", "backward_layer"}) {
    if (const Json* inner = config->Find(held)) NoteUnknown(*inner, unknown);
  }
}

// Reads what Config writes, and what both versions of Keras write.
class NetworkReader {
 public:
  explicit NetworkReader(int depth) : depth_(depth) {}

  StatusOr<std::shared_ptr<Network>> Read(const Json& json) {
    if (depth_ > kMaxDepth) return InvalidArgument("networks are nested deeper than ", kMaxDepth);
    WEFT_ASSIGN_OR_RETURN(const Json* class_name, json.At("class_name"));
    WEFT_ASSIGN_OR_RETURN(const std::string kind, class_name->AsString());
    WEFT_ASSIGN_OR_RETURN(const Json* config, json.At("config"));
    WEFT_ASSIGN_OR_RETURN(const Json* layers, config->At("layers"));
    if (!layers->is_array()) {
      return InvalidArgument("'layers': expected a list, found ", layers->Describe());
    }
    std::string name;
    if (const Json* found = config->Find("name"); found != nullptr && found->is_string()) {
      WEFT_ASSIGN_OR_RETURN(name, found->AsString());
    }
    if (kind == "Sequential") return ReadSequential(*layers, name);
    if (kind == "Functional" || kind == "Model") return ReadFunctional(*config, *layers, name);
    return Unimplemented("models of class '", kind, "'; Sequential and Functional are there");
  }

 private:
  StatusOr<LayerRef> ReadLayer(const Json& json) {
    WEFT_ASSIGN_OR_RETURN(const Json* class_json, json.At("class_name"));
    WEFT_ASSIGN_OR_RETURN(const std::string class_name, class_json->AsString());
    if (class_name == "Functional" || class_name == "Sequential" || class_name == "Model") {
      NetworkReader inner(depth_ + 1);
      WEFT_ASSIGN_OR_RETURN(std::shared_ptr<Network> network, inner.Read(json));
      return LayerRef(std::move(network));
    }
    WEFT_ASSIGN_OR_RETURN(const Json* config, json.At("config"));
    return LayerClasses::Standard().Make(class_name, *config);
  }

  static bool IsInputLayer(const Json& json) {
    const Json* class_name = json.Find("class_name");
    return class_name != nullptr && *class_name == Json("InputLayer");
  }

  StatusOr<std::shared_ptr<Network>> ReadSequential(const Json& list, const std::string& name) {
    Symbol input;
    std::vector<LayerRef> layers;
    for (const Json& json : list.items()) {
      WEFT_ASSIGN_OR_RETURN(const Json* config, json.At("config"));
      const bool is_input = IsInputLayer(json);
      if (is_input || (!input && layers.empty() && config->Find("batch_input_shape") != nullptr)) {
        Json of_input = *config;
        if (!is_input) of_input.Erase("name");
        WEFT_ASSIGN_OR_RETURN(input, ReadInput(of_input));
      }
      if (is_input) continue;
      WEFT_ASSIGN_OR_RETURN(LayerRef layer, ReadLayer(json));
      layers.push_back(std::move(layer));
    }
    if (!input) {
      return InvalidArgument(
          "The Sequential model says no shape of its input: build it before it "
          "is saved");
    }
    return Network::MakeSequential(input, layers, name);
  }

  struct Pending {
    std::string name;
    LayerRef layer;
    Symbol input;  // of input layers
    const Json* nodes = nullptr;
    std::vector<Symbol> called;
    // The number of the first call in `nodes`: a model within a model was called once when it was
    // made, which some versions count.
    int64_t first_call = 0;
  };

  // Notes models within the model whose calls are counted from 1.
  void FindFirstCalls(const Json& json) {
    if (IsHistory(json)) {
      const auto found = by_name_.find(json.items()[0].AsString().value_or(""));
      if (found == by_name_.end()) return;
      Pending& pending = pending_[found->second];
      const int64_t calls =
          pending.nodes == nullptr ? 1 : static_cast<int64_t>(pending.nodes->size());
      if (dynamic_cast<Network*>(pending.layer.get()) != nullptr &&
          json.items()[1].AsInt().value_or(0) == calls) {
        pending.first_call = 1;
      }
    }
    for (const Json& item : json.items()) FindFirstCalls(item);
    for (const JsonMember& member : json.members()) {
      // What a model within the model says is its own.
      if (member.name != "config" || member.value.Find("layers") == nullptr) {
        FindFirstCalls(member.value);
      }
    }
  }

  StatusOr<std::shared_ptr<Network>> ReadFunctional(const Json& config, const Json& list,
                                                    const std::string& name) {
    for (const Json& json : list.items()) WEFT_RETURN_IF_ERROR(AddPending(json));
    FindFirstCalls(config);
    // A call can be made once what it reads has been; layers stand in no certain order.
    for (bool moved = true; moved;) {
      moved = false;
      for (Pending& pending : pending_) {
        while (pending.nodes != nullptr && pending.called.size() < pending.nodes->size()) {
          WEFT_ASSIGN_OR_RETURN(const bool made,
                                MakeCall(pending, pending.nodes->items()[pending.called.size()]));
          if (!made) break;
          moved = true;
        }
      }
    }
    WEFT_ASSIGN_OR_RETURN(const std::vector<Symbol> inputs, Ends(config, "input_layers"));
    WEFT_ASSIGN_OR_RETURN(const std::vector<Symbol> outputs, Ends(config, "output_layers"));
    return Network::Make(inputs, outputs, name);
  }

  Status AddPending(const Json& json) {
    Pending pending;
    WEFT_ASSIGN_OR_RETURN(const Json* class_json, json.At("class_name"));
    WEFT_ASSIGN_OR_RETURN(const std::string class_name, class_json->AsString());
    WEFT_ASSIGN_OR_RETURN(const Json* config, json.At("config"));
    const Json* name = json.Find("name");
    if (name == nullptr) name = config->Find("name");
    if (name == nullptr) return InvalidArgument("a layer of class ", class_name, " has no name");
    WEFT_ASSIGN_OR_RETURN(pending.name, name->AsString());
    if (IsMaskOp(class_name)) return absl::OkStatus();
    if (class_name == "InputLayer") {
      WEFT_ASSIGN_OR_RETURN(pending.input, ReadInput(*config));
      pending.called = {pending.input};
    } else {
      WEFT_ASSIGN_OR_RETURN(pending.layer, ReadLayer(json));
      if (!pending.layer) return absl::OkStatus();
      pending.layer->set_name(pending.name);
      pending.nodes = json.Find("inbound_nodes");
    }
    if (by_name_.count(pending.name) > 0) {
      return InvalidArgument("Two layers of the model have the name '", pending.name, "'");
    }
    by_name_[pending.name] = pending_.size();
    pending_.push_back(std::move(pending));
    return absl::OkStatus();
  }

  // The tensor [layer, call, output]; empty if its call was not made yet.
  StatusOr<Symbol> Tensor(const Json& history) {
    if (history.size() < 3) return InvalidArgument("a tensor is ", history.Dump());
    WEFT_ASSIGN_OR_RETURN(const std::string name, history.items()[0].AsString());
    WEFT_ASSIGN_OR_RETURN(const int64_t call, history.items()[1].AsInt());
    WEFT_ASSIGN_OR_RETURN(const int64_t output, history.items()[2].AsInt());
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) return InvalidArgument("there is no layer '", name, "'");
    if (call < 0 || output < 0 || output > 1000) {
      return InvalidArgument("a tensor is ", history.Dump());
    }
    const Pending& pending = pending_[found->second];
    const int64_t number = call - pending.first_call;
    if (number < 0) return InvalidArgument("a tensor is ", history.Dump());
    if (number >= static_cast<int64_t>(pending.called.size())) return Symbol();
    return pending.called[number].Output(static_cast<int>(output));
  }

  static bool IsHistory(const Json& json) {
    return json.is_array() && json.size() >= 3 && json.items()[0].is_string() &&
           json.items()[1].is_int() && json.items()[2].is_int();
  }

  // Appends the tensors in `json`, whichever version wrote it, in order.
  Status Collect(const Json& json, std::vector<Symbol>* tensors) {
    if (json.is_object()) {
      const Json* config = json.Find("config");
      const Json* history = config == nullptr ? nullptr : config->Find("keras_history");
      if (history == nullptr) return absl::OkStatus();
      WEFT_ASSIGN_OR_RETURN(Symbol tensor, Tensor(*history));
      tensors->push_back(std::move(tensor));
      return absl::OkStatus();
    }
    if (!json.is_array()) return absl::OkStatus();
    if (IsHistory(json)) {
      WEFT_ASSIGN_OR_RETURN(Symbol tensor, Tensor(json));
      tensors->push_back(std::move(tensor));
      if (json.size() > 3 && json.items()[3].is_object()) {
        return CollectArguments(json.items()[3], tensors);
      }
      return absl::OkStatus();
    }
    for (const Json& item : json.items()) WEFT_RETURN_IF_ERROR(Collect(item, tensors));
    return absl::OkStatus();
  }

  Status CollectArguments(const Json& arguments, std::vector<Symbol>* tensors) {
    for (const char* name : {"inputs", "query", "value", "key", "initial_state"}) {
      if (const Json* found = arguments.Find(name)) WEFT_RETURN_IF_ERROR(Collect(*found, tensors));
    }
    if (const Json* mask = arguments.Find("attention_mask"); mask != nullptr && !mask->is_null()) {
      return Unimplemented("attention_mask as an input");
    }
    if (const Json* causal = arguments.Find("use_causal_mask")) {
      arguments_.use_causal_mask = *causal == Json(true);
    }
    if (const Json* training = arguments.Find("training");
        training != nullptr && training->is_bool()) {
      arguments_.training = *training == Json(true) ? 1 : -1;
    }
    return absl::OkStatus();
  }

  StatusOr<bool> MakeCall(Pending& pending, const Json& node) {
    arguments_ = CallArguments();
    std::vector<Symbol> inputs;
    const Status read = [&]() -> Status {
      const Json* args = node.Find("args");
      WEFT_RETURN_IF_ERROR(Collect(args != nullptr ? *args : node, &inputs));
      const Json* kwargs = node.Find("kwargs");
      return kwargs == nullptr ? absl::OkStatus() : CollectArguments(*kwargs, &inputs);
    }();
    WEFT_RETURN_IF_ERROR(Annotate(read, absl::StrCat("Layer '", pending.name, "'")));
    if (inputs.empty()) return InvalidArgument("Layer '", pending.name, "' is called on nothing");
    for (const Symbol& input : inputs) {
      if (!input) return false;
    }
    // Keras 3 (whose nodes have `args`) notes training=False where it is a layer's default, and its
    // fit trains a layer all the same, whoever wrote it.
    if (node.Find("args") != nullptr && arguments_.training < 0) arguments_.training = 0;
    pending.called.push_back(pending.layer(inputs, arguments_));
    return true;
  }

  StatusOr<std::vector<Symbol>> Ends(const Json& config, const char* name) {
    WEFT_ASSIGN_OR_RETURN(const Json* list, config.At(name));
    std::vector<Symbol> ends;
    WEFT_RETURN_IF_ERROR(Annotate(Collect(*list, &ends), absl::StrCat("'", name, "'")));
    for (const Symbol& end : ends) {
      if (!end) return InvalidArgument("'", name, "': layers call each other in a circle");
    }
    return ends;
  }

  const int depth_;
  std::vector<Pending> pending_;
  std::map<std::string, size_t> by_name_;
  CallArguments arguments_;  // of the call that is read
};

StatusOr<std::shared_ptr<Network>> Network::FromJson(const Json& json) {
  std::set<std::string> unknown;
  NoteUnknown(json, &unknown);
  if (!unknown.empty()) {
    return Unimplemented("The model has layers of classes that weft does not have: ",
                         absl::StrJoin(unknown, ", "));
  }
  return NetworkReader(0).Read(json);
}

}  // namespace weft::estimator
