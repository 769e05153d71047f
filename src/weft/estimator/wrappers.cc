// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/wrappers.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "weft/estimator/graph_writing.h"
#include "weft/estimator/keras_object.h"
#include "weft/estimator/layer_classes.h"

namespace weft::estimator {
namespace {

// What holds one layer.
class Wrapper : public Layer {
 public:
  Wrapper() = default;
  explicit Wrapper(LayerRef layer) : layer_(std::move(layer)) {}

  Json Config(int keras) override {
    Json config = Layer::Config(keras);
    if (layer_) {
      config.Set("layer",
                 KerasObject(layer_->module(keras), layer_->class_name(), layer_->Config(keras)));
    }
    return config;
  }

  Status ReadConfig(const Json& config) override {
    WEFT_RETURN_IF_ERROR(Layer::ReadConfig(config));
    WEFT_ASSIGN_OR_RETURN(const Json* inner, config.At("layer"));
    WEFT_ASSIGN_OR_RETURN(const Json* class_name, inner->At("class_name"));
    WEFT_ASSIGN_OR_RETURN(const std::string name, class_name->AsString());
    WEFT_ASSIGN_OR_RETURN(const Json* settings, inner->At("config"));
    WEFT_ASSIGN_OR_RETURN(layer_, LayerClasses::Standard().Make(name, *settings));
    return absl::OkStatus();
  }

 protected:
  // The layer's own call, its weights in the folder of this one.
  std::vector<Value> CallInner(LayerCall& call, const std::vector<Value>& in) {
    const InnerLayer inner(call, "", "layer");
    const bool outer_trainable = call.trainable();
    call.set_trainable(outer_trainable && layer_->trainable());
    std::vector<Value> out = layer_->Call(call, in);
    call.set_trainable(outer_trainable);
    return out;
  }
  bool Check(LayerCall& call) const {
    if (!layer_) call.Fail(InvalidArgument(class_name(), " needs a layer"));
    return static_cast<bool>(layer_);
  }

  LayerRef layer_;
};

class TimeDistributedLayer final : public Wrapper {
 public:
  using Wrapper::Wrapper;
  const char* class_name() const override { return "TimeDistributed"; }
  void Fields(ConfigFields&) override {}
  bool KeepsMask() const override { return true; }

  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    if (!Check(call)) return {};
    const Endpoint x = in[0].tensor;
    const PartialShape shape = b.ShapeOf(x);
    bool known = shape.rank() >= 3;
    for (int axis = 2; axis < shape.rank(); ++axis) known = known && shape.dim(axis) >= 0;
    if (!known) {
      call.Fail(
          InvalidArgument("expected [batch, time, ...] whose sizes behind the time are known, "
                          "got ",
                          shape.ToString()));
      return {};
    }
    // All steps as one large batch.
    std::vector<int64_t> dims = {-1};
    for (int axis = 2; axis < shape.rank(); ++axis) dims.push_back(shape.dim(axis));
    const Endpoint steps = ReshapeTo(b, x, dims);
    const std::vector<Value> out = CallInner(call, {{steps, {}}});
    if (!b.ok() || out.empty()) return {};
    const PartialShape made = b.ShapeOf(out[0].tensor);
    std::vector<Endpoint> sizes = {SizeOf(b, x, 0), SizeOf(b, x, 1)};
    for (int axis = 1; axis < made.rank(); ++axis) sizes.push_back(SizeOf(b, out[0].tensor, axis));
    if (!made.known_rank()) {
      call.Fail(InvalidArgument("the rank of what ", layer_->class_name(), " gives is not known"));
      return {};
    }
    Endpoint whole = b.Op("Reshape", {out[0].tensor, b.Op("Pack", {sizes})});
    PartialShape told{shape.dim(0), shape.dim(1)};
    for (int axis = 1; axis < made.rank(); ++axis) told.AddDim(made.dim(axis));
    whole = b.Op("EnsureShape", {whole}, {{"shape", told}});
    return {{whole, {}}};
  }
};

}  // namespace

LayerRef TimeDistributed(const LayerRef& layer, const std::string& name) {
  return MakeLayer<TimeDistributedLayer>(layer, name);
}

void AddWrappers(LayerClasses& classes) { classes.Add<TimeDistributedLayer>(); }

}  // namespace weft::estimator
