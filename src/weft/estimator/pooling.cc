// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/pooling.h"

#include <utility>

#include "weft/estimator/graph_writing.h"
#include "weft/estimator/layer_classes.h"
#include "weft/estimator/window.h"

namespace weft::estimator {
namespace {

const char* PoolName(bool max, int rank) {
  static const char* const kNames[2][3] = {
      {"AveragePooling1D", "AveragePooling2D", "AveragePooling3D"},
      {"MaxPooling1D", "MaxPooling2D", "MaxPooling3D"}};
  return kNames[max ? 1 : 0][rank - 1];
}

const char* GlobalPoolName(bool max, int rank) {
  static const char* const kNames[2][3] = {
      {"GlobalAveragePooling1D", "GlobalAveragePooling2D", "GlobalAveragePooling3D"},
      {"GlobalMaxPooling1D", "GlobalMaxPooling2D", "GlobalMaxPooling3D"}};
  return kNames[max ? 1 : 0][rank - 1];
}

template <int kRank, bool kMax>
class PoolLayer final : public Layer {
 public:
  PoolLayer() = default;
  explicit PoolLayer(std::pair<Sizes, PoolOptions> settings)
      : pool_size_(std::move(settings.first)), o_(std::move(settings.second)) {}
  const char* class_name() const override { return PoolName(kMax, kRank); }
  void Fields(ConfigFields& f) override {
    f.Field("pool_size", pool_size_);
    if (o_.strides.empty()) o_.strides = pool_size_;
    f.Field("strides", o_.strides);
    f.Field("padding", o_.padding);
    f.Fixed("data_format", "channels_last");
  }

  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    Endpoint x = in[0].tensor;
    if (!call.CheckRank(x, kRank + 2)) return {};
    const auto size = pool_size_.ForAxes(kRank, "pool_size");
    const auto strides = (o_.strides.empty() ? pool_size_ : o_.strides).ForAxes(kRank, "strides");
    const StatusOr<std::string> padding = PaddingAttr(o_.padding);
    for (const Status& status : {size.status(), strides.status(), padding.status()}) {
      if (!status.ok()) return call.Fail(status), std::vector<Value>();
    }
    if (kRank == 1) x = AddHeight(b, x);
    const char* op = kRank == 3 ? (kMax ? "MaxPool3D" : "AvgPool3D") : kMax ? "MaxPool" : "AvgPool";
    Endpoint y = b.Op(
        op, {x},
        {{"ksize", WholeWindow(*size)}, {"strides", WholeWindow(*strides)}, {"padding", *padding}});
    if (kRank == 1) y = DropHeight(b, y);
    return {{y, {}}};
  }

 private:
  Sizes pool_size_ = 2;
  PoolOptions o_;
};

template <int kRank, bool kMax>
class GlobalPoolLayer final : public Layer {
 public:
  explicit GlobalPoolLayer(GlobalPoolOptions options = {}) : o_(std::move(options)) {}
  const char* class_name() const override { return GlobalPoolName(kMax, kRank); }
  void Fields(ConfigFields& f) override {
    f.Fixed("data_format", "channels_last");
    f.Field("keepdims", o_.keepdims);
  }

  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    const Endpoint x = in[0].tensor;
    if (!call.CheckRank(x, kRank + 2)) return {};
    Axes axes;
    for (int i = 1; i <= kRank; ++i) axes.push_back(i);
    if (!kMax && kRank == 1 && in[0].mask) {
      const Endpoint there = ExpandDim(b, CastTo(b, in[0].mask, TypeOf(x)), 2);
      const Endpoint sum = Reduce(b, "Sum", b.Op("Mul", {x, there}), axes, o_.keepdims);
      return {{b.Op("RealDiv", {sum, Reduce(b, "Sum", there, axes, o_.keepdims)}), {}}};
    }
    return {{Reduce(b, kMax ? "Max" : "Mean", x, axes, o_.keepdims), {}}};
  }

 private:
  GlobalPoolOptions o_;
};

template <int kRank, bool kMax>
LayerRef MakePool(const Sizes& pool_size, const PoolOptions& options) {
  return MakeLayer<PoolLayer<kRank, kMax>>(std::pair(pool_size, options), options.name);
}
template <int kRank, bool kMax>
LayerRef MakeGlobal(const GlobalPoolOptions& options) {
  return MakeLayer<GlobalPoolLayer<kRank, kMax>>(options, options.name);
}

template <int kRank>
void AddOfRank(LayerClasses& classes) {
  classes.Add<PoolLayer<kRank, false>>();
  classes.Add<PoolLayer<kRank, true>>();
  classes.Add<GlobalPoolLayer<kRank, false>>();
  classes.Add<GlobalPoolLayer<kRank, true>>();
}

}  // namespace

LayerRef MaxPooling1D(const Sizes& size, const PoolOptions& o) {
  return MakePool<1, true>(size, o);
}
LayerRef MaxPooling2D(const Sizes& size, const PoolOptions& o) {
  return MakePool<2, true>(size, o);
}
LayerRef MaxPooling3D(const Sizes& size, const PoolOptions& o) {
  return MakePool<3, true>(size, o);
}
LayerRef AveragePooling1D(const Sizes& size, const PoolOptions& o) {
  return MakePool<1, false>(size, o);
}
LayerRef AveragePooling2D(const Sizes& size, const PoolOptions& o) {
  return MakePool<2, false>(size, o);
}
LayerRef AveragePooling3D(const Sizes& size, const PoolOptions& o) {
  return MakePool<3, false>(size, o);
}
LayerRef GlobalMaxPooling1D(const GlobalPoolOptions& o) { return MakeGlobal<1, true>(o); }
LayerRef GlobalMaxPooling2D(const GlobalPoolOptions& o) { return MakeGlobal<2, true>(o); }
LayerRef GlobalMaxPooling3D(const GlobalPoolOptions& o) { return MakeGlobal<3, true>(o); }
LayerRef GlobalAveragePooling1D(const GlobalPoolOptions& o) { return MakeGlobal<1, false>(o); }
LayerRef GlobalAveragePooling2D(const GlobalPoolOptions& o) { return MakeGlobal<2, false>(o); }
LayerRef GlobalAveragePooling3D(const GlobalPoolOptions& o) { return MakeGlobal<3, false>(o); }

void AddPoolingLayers(LayerClasses& classes) {
  AddOfRank<1>(classes);
  AddOfRank<2>(classes);
  AddOfRank<3>(classes);
  AddAdaptivePools(classes);
}

}  // namespace weft::estimator
