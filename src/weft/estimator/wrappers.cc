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

class SpectralNormalizationLayer final : public Wrapper {
 public:
  SpectralNormalizationLayer() = default;
  explicit SpectralNormalizationLayer(std::pair<LayerRef, int64_t> settings)
      : Wrapper(std::move(settings.first)), power_iterations_(settings.second) {}
  const char* class_name() const override { return "SpectralNormalization"; }
  void Fields(ConfigFields& f) override { f.Field("power_iterations", power_iterations_); }

  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    if (!Check(call)) return {};
    if (power_iterations_ < 1) {
      call.Fail(
          InvalidArgument("power_iterations is ", power_iterations_, ", expected at least 1"));
      return {};
    }
    const train::Variable* kernel = call.FindWeight("kernel");
    if (kernel == nullptr) {  // the first call makes it
      const std::vector<Value> out = CallInner(call, in);
      kernel = call.FindWeight("kernel");
      if (!call.b().ok()) return {};
      if (kernel == nullptr || kernel->shape.rank() < 1) {
        call.Fail(Unimplemented(layer_->class_name(), " has no kernel to normalize"));
        return {};
      }
      Largest(call, *kernel);
      return out;
    }
    if (call.training()) Normalize(call, *kernel);
    return CallInner(call, in);
  }

 private:
  // The weight that the estimate is kept in.
  static const train::Variable* Largest(LayerCall& call, const train::Variable& kernel) {
    return call.VariableOf("vector_u", Shape{1, kernel.shape.dim(kernel.shape.rank() - 1)},
                           {.initializer = TruncatedNormal(0, 0.02), .trainable = false});
  }

  static Endpoint UnitLength(GraphBuilder& b, Endpoint x) {
    const Endpoint square = Reduce(b, "Sum", b.Op("Square", {x}), {0, 1}, true);
    const Endpoint least = b.Op("Maximum", {square, NumberLike(b, x, 1e-12)});
    return b.Op("Mul", {x, b.Op("Rsqrt", {least})});
  }

  // Divides the kernel where it lies; the layer reads it behind that.
  void Normalize(LayerCall& call, const train::Variable& found) const {
    GraphBuilder& b = call.b();
    const train::Variable kernel = found;  // weights may move
    const train::Variable* made = Largest(call, kernel);
    if (made == nullptr) return;
    const train::Variable vector = *made;
    const Endpoint w = ReshapeTo(b, kernel.value, {-1, kernel.shape.dim(kernel.shape.rank() - 1)});
    Endpoint u = vector.value, v;
    for (int64_t i = 0; i < power_iterations_; ++i) {
      v = UnitLength(b, b.Op("MatMul", {u, w}, {{"transpose_b", true}}));
      u = UnitLength(b, b.Op("MatMul", {v, w}));
    }
    const Endpoint value = b.Op("MatMul", {b.Op("MatMul", {v, w}), u}, {{"transpose_b", true}});
    const Endpoint is_zero = Reduce(b, "All", b.Op("Equal", {w, NumberLike(b, w, 0)}), {0, 1});
    const Endpoint scale = b.Op("SelectV2", {is_zero, b.Op("OnesLike", {value}), value});
    const Endpoint divided = b.Op("RealDiv", {kernel.value, ReshapeTo(b, scale, {})});
    call.Assign(vector, b.Op("SelectV2", {is_zero, vector.value, u}));
    call.Replace("kernel", kernel, divided);
  }

  int64_t power_iterations_ = 1;
};

}  // namespace

LayerRef TimeDistributed(const LayerRef& layer, const std::string& name) {
  return MakeLayer<TimeDistributedLayer>(layer, name);
}

LayerRef SpectralNormalization(const LayerRef& layer, int64_t power_iterations,
                               const std::string& name) {
  return MakeLayer<SpectralNormalizationLayer>(std::pair(layer, power_iterations), name);
}

void AddWrappers(LayerClasses& classes) {
  classes.Add<TimeDistributedLayer>();
  classes.Add<SpectralNormalizationLayer>();
}

}  // namespace weft::estimator
