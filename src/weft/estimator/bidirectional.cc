// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "absl/strings/str_cat.h"

#include "weft/estimator/graph_writing.h"
#include "weft/estimator/keras_object.h"
#include "weft/estimator/layer_classes.h"
#include "weft/estimator/layer_names.h"
#include "weft/estimator/recurrent.h"

namespace weft::estimator {
namespace {

StatusOr<LayerRef> ReadInner(const Json& json) {
  WEFT_ASSIGN_OR_RETURN(const Json* class_name, json.At("class_name"));
  WEFT_ASSIGN_OR_RETURN(const std::string name, class_name->AsString());
  WEFT_ASSIGN_OR_RETURN(const Json* config, json.At("config"));
  WEFT_ASSIGN_OR_RETURN(LayerRef layer, LayerClasses::Standard().Make(name, *config));
  if (dynamic_cast<RecurrentBase*>(layer.get()) == nullptr) {
    return InvalidArgument("Bidirectional holds a ", name, ", expected LSTM, GRU or SimpleRNN");
  }
  return layer;
}

class BidirectionalLayer final : public Layer {
 public:
  BidirectionalLayer() = default;
  BidirectionalLayer(std::pair<LayerRef, std::string> settings)
      : merge_mode_(std::move(settings.second)) {
    const std::string base = settings.first->name().empty()
                                 ? SnakeCase(settings.first->class_name())
                                 : settings.first->name();
    status_ = SetLayers(settings.first, base);
  }
  const char* class_name() const override { return "Bidirectional"; }
  void Fields(ConfigFields& f) override { f.Field("merge_mode", merge_mode_); }

  Json Config(int keras) override {
    Json config = Layer::Config(keras);
    for (const auto& [field, layer] :
         {std::pair("layer", &forward_), std::pair("backward_layer", &backward_)}) {
      if (!*layer) continue;
      config.Set(field,
                 KerasObject("keras.layers", (*layer)->class_name(), (*layer)->Config(keras)));
    }
    return config;
  }

  Status ReadConfig(const Json& config) override {
    WEFT_RETURN_IF_ERROR(Layer::ReadConfig(config));
    WEFT_ASSIGN_OR_RETURN(const Json* inner, config.At("layer"));
    WEFT_ASSIGN_OR_RETURN(const LayerRef layer, ReadInner(*inner));
    const std::string& name = layer->name();
    WEFT_RETURN_IF_ERROR(SetLayers(layer, name.rfind("forward_", 0) == 0 ? name.substr(8) : name));
    const Json* other = config.Find("backward_layer");
    if (other != nullptr && !other->is_null()) {
      WEFT_ASSIGN_OR_RETURN(backward_, ReadInner(*other));
    }
    return absl::OkStatus();
  }

  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    if (!status_.ok()) return call.Fail(status_), std::vector<Value>();
    auto* forward = static_cast<RecurrentBase*>(forward_.get());
    auto* backward = static_cast<RecurrentBase*>(backward_.get());
    if (forward == nullptr || backward == nullptr) {
      call.Fail(InvalidArgument("Bidirectional needs a recurrent layer"));
      return {};
    }
    const std::vector<Value> there =
        forward->RunAs(call, {in[0]}, forward->name(), "forward_layer");
    std::vector<Value> back = backward->RunAs(call, {in[0]}, backward->name(), "backward_layer");
    if (there.empty() || back.empty() || !b.ok()) return {};
    const bool sequences = forward->options().return_sequences;
    if (sequences) back[0].tensor = b.Op("ReverseV2", {back[0].tensor, IntVector(b, {1})});
    std::vector<Value> out = {{Merged(call, there[0].tensor, back[0].tensor), there[0].mask}};
    out.insert(out.end(), there.begin() + 1, there.end());
    out.insert(out.end(), back.begin() + 1, back.end());
    return out;
  }

 private:
  Status SetLayers(const LayerRef& layer, const std::string& base) {
    if (dynamic_cast<RecurrentBase*>(layer.get()) == nullptr) {
      return InvalidArgument("Bidirectional holds a ", layer->class_name(),
                             ", expected LSTM, GRU or SimpleRNN");
    }
    WEFT_ASSIGN_OR_RETURN(forward_, CopyRecurrent(layer, absl::StrCat("forward_", base), false));
    WEFT_ASSIGN_OR_RETURN(backward_, CopyRecurrent(layer, absl::StrCat("backward_", base), true));
    return absl::OkStatus();
  }

  Endpoint Merged(LayerCall& call, Endpoint a, Endpoint c) const {
    GraphBuilder& b = call.b();
    if (merge_mode_ == "concat") return Concat(b, {a, c}, -1);
    if (merge_mode_ == "sum") return b.Op("AddV2", {a, c});
    if (merge_mode_ == "mul") return b.Op("Mul", {a, c});
    if (merge_mode_ == "ave") {
      return b.Op("Mul", {b.Op("AddV2", {a, c}), Number(b, DType::kFloat, 0.5)});
    }
    call.Fail(
        InvalidArgument("merge_mode is '", merge_mode_, "', expected concat, sum, mul or ave"));
    return {};
  }

  LayerRef forward_, backward_;
  std::string merge_mode_ = "concat";
  Status status_;
};

}  // namespace

StatusOr<LayerRef> CopyRecurrent(const LayerRef& layer, const std::string& name, bool turn) {
  WEFT_ASSIGN_OR_RETURN(LayerRef copy,
                        LayerClasses::Standard().Make(layer->class_name(), layer->Config(3)));
  copy->set_name(name);
  RecurrentOptions& options = static_cast<RecurrentBase*>(copy.get())->options();
  if (turn) options.go_backwards = !options.go_backwards;
  return copy;
}

LayerRef Bidirectional(const LayerRef& layer, const std::string& merge_mode,
                       const std::string& name) {
  return MakeLayer<BidirectionalLayer>(std::pair(layer, merge_mode), name);
}

void AddBidirectional(LayerClasses& classes) { classes.Add<BidirectionalLayer>(); }

}  // namespace weft::estimator
