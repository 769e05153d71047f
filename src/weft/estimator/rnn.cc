// SPDX-License-Identifier: Apache-2.0
// Keras's RNN: cells on top of each other, which run as a chain of recurrent layers.
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "weft/estimator/graph_writing.h"
#include "weft/estimator/keras_object.h"
#include "weft/estimator/kernel_fields.h"
#include "weft/estimator/layer_classes.h"
#include "weft/estimator/layer_names.h"
#include "weft/estimator/recurrent.h"

namespace weft::estimator {
namespace {

// What a layer has beside its cell.
const char* const kLayerFields[] = {"return_sequences", "return_state", "go_backwards",
                                    "stateful",         "unroll",       "zero_output_for_mask"};

StatusOr<LayerRef> CellOf(const std::string& class_name, Json config) {
  static constexpr const char* kKnown =
      "expected LSTMCell, GRUCell, SimpleRNNCell or StackedRNNCells";
  if (!absl::EndsWith(class_name, "Cell")) {
    return Unimplemented("RNN over a cell of class ", class_name, "; ", kKnown);
  }
  const std::string layer_class = class_name.substr(0, class_name.size() - 4);
  if (layer_class != "LSTM" && layer_class != "GRU" && layer_class != "SimpleRNN") {
    return Unimplemented("RNN over a cell of class ", class_name, "; ", kKnown);
  }
  for (const char* field : kLayerFields) config.Erase(field);
  return LayerClasses::Standard().Make(layer_class, config);
}

class RnnLayer final : public Layer {
 public:
  RnnLayer() = default;
  explicit RnnLayer(std::pair<std::vector<LayerRef>, RnnOptions> settings)
      : o_(std::move(settings.second)), stacked_(settings.first.size() > 1) {
    for (const LayerRef& layer : settings.first) {
      if (dynamic_cast<RecurrentBase*>(layer.get()) == nullptr) {
        status_ = InvalidArgument("RNN holds a ", layer ? layer->class_name() : "null layer",
                                  ", expected LSTM, GRU or SimpleRNN");
        return;
      }
      StatusOr<LayerRef> cell = CellOf(absl::StrCat(layer->class_name(), "Cell"), layer->Config(3));
      if (!cell.ok()) {
        status_ = cell.status();
        return;
      }
      cells_.push_back(*std::move(cell));
    }
  }
  const char* class_name() const override { return "RNN"; }
  InputStyle input_style() const override { return InputStyle::kStates; }

  void Fields(ConfigFields& f) override {
    SequenceFields(f, o_);
    if (o_.zero_output_for_mask || f.keras() != 2) {
      f.Field("zero_output_for_mask", o_.zero_output_for_mask);
    }
  }

  Json Config(int keras) override {
    Json config = Layer::Config(keras), list = Json::MakeArray();
    for (const LayerRef& cell : cells_) {
      Json inner = cell->Config(keras);
      for (const char* field : kLayerFields) inner.Erase(field);
      list.Append(
          KerasObject("keras.layers", absl::StrCat(cell->class_name(), "Cell"), std::move(inner)));
    }
    if (!stacked_) {
      if (list.size() == 1) config.Set("cell", Json(list.items()[0]));
      return config;
    }
    Json stack = Json::MakeObject();
    stack.Set("name", "stacked_rnn_cells");
    stack.Set("trainable", true);
    stack.Set("cells", std::move(list));
    config.Set("cell", KerasObject("keras.layers", "StackedRNNCells", std::move(stack)));
    return config;
  }

  Status ReadConfig(const Json& config) override {
    WEFT_RETURN_IF_ERROR(Layer::ReadConfig(config));
    WEFT_ASSIGN_OR_RETURN(const Json* cell, config.At("cell"));
    WEFT_ASSIGN_OR_RETURN(const Json* class_json, cell->At("class_name"));
    WEFT_ASSIGN_OR_RETURN(const std::string class_name, class_json->AsString());
    WEFT_ASSIGN_OR_RETURN(const Json* settings, cell->At("config"));
    stacked_ = class_name == "StackedRNNCells";
    if (!stacked_) return Append(*cell);
    WEFT_ASSIGN_OR_RETURN(const Json* list, settings->At("cells"));
    for (const Json& one : list->items()) WEFT_RETURN_IF_ERROR(Append(one));
    return absl::OkStatus();
  }

  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    if (!status_.ok()) return call.Fail(status_), std::vector<Value>();
    if (cells_.empty()) return call.Fail(InvalidArgument("RNN needs a cell")), std::vector<Value>();
    if (!call.CheckRank(in[0].tensor, 3)) return {};
    size_t wanted = 0;
    for (const LayerRef& cell : cells_) wanted += Recurrent(cell).num_states();
    if (in.size() != 1 && in.size() != 1 + wanted) {
      call.Fail(
          InvalidArgument("got ", in.size() - 1, " initial states, expected none or ", wanted));
      return {};
    }
    // Turned around once, before the first cell.
    Value x = in[0];
    if (o_.go_backwards) {
      x.tensor = b.Op("ReverseV2", {x.tensor, IntVector(b, {1})});
      if (x.mask) x.mask = b.Op("ReverseV2", {x.mask, IntVector(b, {1})});
    }
    const Endpoint mask = x.mask;
    std::vector<Value> states;
    NameCounter folders;
    size_t next = 1;
    for (size_t i = 0; i < cells_.size(); ++i) {
      RecurrentBase& cell = Recurrent(cells_[i]);
      const bool last = i + 1 == cells_.size();
      RecurrentOptions& options = cell.options();
      options.return_sequences = !last || o_.return_sequences;
      options.return_state = true;
      options.stateful = o_.stateful;
      options.zero_output_for_mask = last && o_.zero_output_for_mask;
      std::vector<Value> inputs = {x};
      for (int s = 0; in.size() > 1 && s < cell.num_states(); ++s) inputs.push_back(in[next++]);
      const std::string folder = folders.Next(cell.cell_name());
      const std::vector<Value> out =
          stacked_ ? cell.RunCell(call, inputs, absl::StrCat("stacked_rnn_cells/", folder),
                                  absl::StrCat("cell/cells/", folder))
                   : cell.RunCell(call, inputs, cell.cell_name(), "cell");
      if (!b.ok() || out.empty()) return {};
      x = {out[0].tensor, mask};
      states.insert(states.end(), out.begin() + 1, out.end());
    }
    std::vector<Value> out = {{x.tensor, o_.return_sequences ? in[0].mask : Endpoint()}};
    if (o_.return_state) out.insert(out.end(), states.begin(), states.end());
    return out;
  }

 private:
  static RecurrentBase& Recurrent(const LayerRef& cell) {
    return *static_cast<RecurrentBase*>(cell.get());
  }

  Status Append(const Json& json) {
    WEFT_ASSIGN_OR_RETURN(const Json* class_json, json.At("class_name"));
    WEFT_ASSIGN_OR_RETURN(const std::string class_name, class_json->AsString());
    WEFT_ASSIGN_OR_RETURN(const Json* config, json.At("config"));
    WEFT_ASSIGN_OR_RETURN(LayerRef cell, CellOf(class_name, *config));
    cells_.push_back(std::move(cell));
    return absl::OkStatus();
  }

  std::vector<LayerRef> cells_;
  RnnOptions o_;
  bool stacked_ = false;
  Status status_;
};

}  // namespace

LayerRef RNN(const std::vector<LayerRef>& cells, const RnnOptions& options) {
  return MakeLayer<RnnLayer>(std::pair(cells, options), options.name);
}

void AddRnn(LayerClasses& classes) { classes.Add<RnnLayer>(); }

}  // namespace weft::estimator
