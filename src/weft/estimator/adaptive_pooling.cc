// SPDX-License-Identifier: Apache-2.0
// Pools into a given number of windows.
#include <utility>

#include "weft/estimator/graph_writing.h"
#include "weft/estimator/layer_classes.h"
#include "weft/estimator/pooling.h"

namespace weft::estimator {
namespace {

// Along one axis: window i of n goes from floor(i size / n) to ceil((i + 1) size / n).
Endpoint PoolAxis(GraphBuilder& b, Endpoint x, int axis, int64_t size, int64_t windows,
                  const char* reduction) {
  if (size == windows) return x;
  const int rank = b.ShapeOf(x).rank();
  std::vector<Endpoint> parts;
  for (int64_t i = 0; i < windows; ++i) {
    std::vector<int64_t> begin(rank, 0), length(rank, -1);
    begin[axis] = i * size / windows;
    length[axis] = ((i + 1) * size + windows - 1) / windows - begin[axis];
    const Endpoint window = b.Op("Slice", {x, IntVector(b, begin), IntVector(b, length)});
    parts.push_back(Reduce(b, reduction, window, {axis}, true));
  }
  return Concat(b, parts, axis);
}

template <int kRank, bool kMax>
class AdaptivePoolLayer final : public Layer {
 public:
  explicit AdaptivePoolLayer(Sizes output_size = 1) : output_size_(std::move(output_size)) {}
  const char* class_name() const override {
    static const char* const kNames[2][3] = {
        {"AdaptiveAveragePooling1D", "AdaptiveAveragePooling2D", "AdaptiveAveragePooling3D"},
        {"AdaptiveMaxPooling1D", "AdaptiveMaxPooling2D", "AdaptiveMaxPooling3D"}};
    return kNames[kMax ? 1 : 0][kRank - 1];
  }
  void Fields(ConfigFields& f) override {
    f.Field("output_size", output_size_);
    f.Fixed("data_format", "channels_last");
  }

  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    Endpoint x = in[0].tensor;
    if (!call.CheckRank(x, kRank + 2)) return {};
    const auto windows = output_size_.ForAxes(kRank, "output_size");
    if (!windows.ok()) return call.Fail(windows.status()), std::vector<Value>();
    const PartialShape shape = b.ShapeOf(x);
    // The axes are pooled one after another: a window's largest and mean are those of its rows'.
    for (int i = 0; i < kRank; ++i) {
      if (shape.dim(i + 1) < 1) {
        call.Fail(InvalidArgument("expected an input of known sizes, got ", shape.ToString()));
        return {};
      }
      x = PoolAxis(b, x, i + 1, shape.dim(i + 1), (*windows)[i], kMax ? "Max" : "Mean");
    }
    return {{x, {}}};
  }

 private:
  Sizes output_size_;
};

template <int kRank, bool kMax>
LayerRef Make(const Sizes& output_size, const std::string& name) {
  return MakeLayer<AdaptivePoolLayer<kRank, kMax>>(output_size, name);
}

}  // namespace

LayerRef AdaptiveMaxPooling1D(const Sizes& output_size, const std::string& name) {
  return Make<1, true>(output_size, name);
}
LayerRef AdaptiveMaxPooling2D(const Sizes& output_size, const std::string& name) {
  return Make<2, true>(output_size, name);
}
LayerRef AdaptiveMaxPooling3D(const Sizes& output_size, const std::string& name) {
  return Make<3, true>(output_size, name);
}
LayerRef AdaptiveAveragePooling1D(const Sizes& output_size, const std::string& name) {
  return Make<1, false>(output_size, name);
}
LayerRef AdaptiveAveragePooling2D(const Sizes& output_size, const std::string& name) {
  return Make<2, false>(output_size, name);
}
LayerRef AdaptiveAveragePooling3D(const Sizes& output_size, const std::string& name) {
  return Make<3, false>(output_size, name);
}

void AddAdaptivePools(LayerClasses& classes) {
  classes.Add<AdaptivePoolLayer<1, false>>();
  classes.Add<AdaptivePoolLayer<1, true>>();
  classes.Add<AdaptivePoolLayer<2, false>>();
  classes.Add<AdaptivePoolLayer<2, true>>();
  classes.Add<AdaptivePoolLayer<3, false>>();
  classes.Add<AdaptivePoolLayer<3, true>>();
}

}  // namespace weft::estimator
