// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/wrappers.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "weft/estimator/graph_writing.h"
#include "weft/estimator/keras_object.h"
#include "weft/estimator/layer_classes.h"
#include "weft/estimator/layer_names.h"

namespace weft::estimator {
namespace {

// What holds one layer.
class Wrapper : public Layer {
 public:
  Wrapper() = default;
  // The layer's name is for files, in which it may not be empty.
  explicit Wrapper(LayerRef layer) : layer_(std::move(layer)) {
    if (layer_ && layer_->name().empty()) layer_->set_name(SnakeCase(layer_->class_name()));
  }

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

class SpectralNormalizationLayer final : public Wrapper {
 public:
  SpectralNormalizationLayer() = default;
  explicit SpectralNormalizationLayer(std::pair<LayerRef, int64_t> settings)
      : Wrapper(std::move(settings.first)), power_iterations_(settings.second) {}
  const char* class_name() const override { return "SpectralNormalization"; }
  void Fields(ConfigFields& f) override { f.Field("power_iterations", power_iterations_); }
  InputStyle input_style() const override {
    return layer_ ? layer_->input_style() : Layer::input_style();
  }

  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    if (!Check(call)) return {};
    if (power_iterations_ < 1) {
      call.Fail(
          InvalidArgument("power_iterations is ", power_iterations_, ", expected at least 1"));
      return {};
    }
    std::vector<Value> out;
    if (!call.training() || KernelOf(call).empty()) out = CallWhole(call, in);
    if (!call.b().ok()) return {};
    const std::string name = KernelOf(call);
    if (name.empty()) {
      call.Fail(
          InvalidArgument("the ", layer_->class_name(), " in it has no kernel and no embeddings"));
      return {};
    }
    call.KeepTwice(name, call.store());
    const train::Variable kernel = *call.FindWeight(name);
    const int64_t columns = kernel.shape.dim(kernel.shape.rank() - 1);
    const train::Variable* u =
        call.VariableOf("vector_u", Shape{1, columns},
                        {.initializer = TruncatedNormal(0, 0.02), .trainable = false});
    if (u == nullptr) return {};
    if (call.training()) {
      Normalize(call, kernel, *u);
      out = CallWhole(call, in);
    }
    if (!call.b().ok() || out.empty()) return {};
    return {{out[0].tensor, {}}};
  }

 private:
  // With a table that is not spread.
  std::vector<Value> CallWhole(LayerCall& call, const std::vector<Value>& in) {
    const int parts = std::exchange(call.parts().table_parts, 1);
    std::vector<Value> out = CallInner(call, in);
    call.parts().table_parts = parts;
    return out;
  }

  // The name of what is normalized; "" if there is no such weight.
  static std::string KernelOf(const LayerCall& call) {
    for (const char* name : {"kernel", "embeddings"}) {
      if (call.FindWeight(name) != nullptr) return name;
    }
    // Keras 3 calls a depthwise kernel a kernel, but where a second one follows.
    if (call.FindWeight("pointwise_kernel") != nullptr) return "";
    return call.FindWeight("depthwise_kernel") != nullptr ? "depthwise_kernel" : "";
  }

  // Divides the kernel by its greatest singular value as the vectors tell it, and keeps the vector.
  // A kernel of zeros stays.
  void Normalize(LayerCall& call, const train::Variable& kernel,
                 const train::Variable& kept) const {
    GraphBuilder& b = call.b();
    const Endpoint whole = call.ValueOf(kernel);
    const Endpoint before = call.ValueOf(kept);
    const Endpoint w = ReshapeTo(b, whole, {-1, kept.shape.dim(1)});
    const auto unit = [&](Endpoint x) {
      const Endpoint squares = Reduce(b, "Sum", b.Op("Square", {x}), {0, 1}, true);
      return b.Op("Mul", {x, b.Op("Rsqrt", {b.Op("Maximum", {squares, NumberLike(b, x, 1e-12)})})});
    };
    Endpoint u = before, v;
    for (int64_t i = 0; i < power_iterations_ && b.ok(); ++i) {
      v = unit(b.Op("MatMul", {u, w}, {{"transpose_b", true}}));
      u = unit(b.Op("MatMul", {v, w}));
    }
    Endpoint sigma = b.Op("MatMul", {b.Op("MatMul", {v, w}), u}, {{"transpose_b", true}});
    sigma = b.Op("Reshape", {sigma, b.Constant(Tensor::FromSpan<int32_t>(Shape{0}, {}))});
    const Endpoint zeros =
        b.Op("Equal", {Reduce(b, "Sum", b.Op("Abs", {w}), {0, 1}), NumberLike(b, w, 0)});
    const Endpoint divided = b.Op("RealDiv", {whole, sigma});
    call.Change({{kernel, b.Op("SelectV2", {zeros, whole, divided})},
                 {kept, b.Op("SelectV2", {zeros, before, u})}});
  }

  int64_t power_iterations_ = 1;
};

}  // namespace

LayerRef TimeDistributed(const LayerRef& layer, const std::string& name) {
  return MakeLayer<TimeDistributedLayer>(layer, name);
}

LayerRef SpectralNormalization(const LayerRef& layer, const SpectralNormalizationOptions& options) {
  return MakeLayer<SpectralNormalizationLayer>(std::pair(layer, options.power_iterations),
                                               options.name);
}

void AddWrappers(LayerClasses& classes) {
  classes.Add<TimeDistributedLayer>();
  classes.Add<SpectralNormalizationLayer>();
}

}  // namespace weft::estimator
