// SPDX-License-Identifier: Apache-2.0
// Convolutions whose kernel is another one at each place: layers of Keras 2 alone.
#include <utility>

#include "weft/estimator/activation.h"
#include "weft/estimator/activity.h"
#include "weft/estimator/convolution.h"
#include "weft/estimator/graph_writing.h"
#include "weft/estimator/kernel_fields.h"
#include "weft/estimator/layer_classes.h"
#include "weft/estimator/window.h"

namespace weft::estimator {
namespace {

struct LocalSettings {
  int64_t filters = 1;
  Sizes kernel_size = 1;
  LocallyConnectedOptions o;
};

template <int kRank>
class LocallyConnectedLayer final : public Layer {
 public:
  LocallyConnectedLayer() = default;
  explicit LocallyConnectedLayer(LocalSettings settings) : s_(std::move(settings)) {}
  const char* class_name() const override {
    return kRank == 1 ? "LocallyConnected1D" : "LocallyConnected2D";
  }
  void Fields(ConfigFields& f) override {
    f.Field("filters", s_.filters);
    f.Field("kernel_size", s_.kernel_size);
    f.Field("strides", s_.o.strides);
    f.Fixed("padding", "valid");
    f.Fixed("data_format", "channels_last");
    f.Fixed("implementation", 1);  // others keep their weights in other shapes
    f.Field("use_bias", s_.o.use_bias);
    ActivatedKernelFields(f, s_.o);
  }

  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    const Endpoint x = in[0].tensor;
    if (!call.CheckRank(x, kRank + 2)) return {};
    const StatusOr<std::vector<int64_t>> kernel = s_.kernel_size.ForAxes(kRank, "kernel_size");
    const StatusOr<std::vector<int64_t>> strides = s_.o.strides.ForAxes(kRank, "strides");
    for (const Status& status : {kernel.status(), strides.status()}) {
      if (!status.ok()) return call.Fail(status), std::vector<Value>();
    }
    const PartialShape shape = b.ShapeOf(x);
    std::vector<int64_t> out;
    int64_t window = shape.dim(kRank + 1), places = 1;
    for (int i = 0; i < kRank; ++i) {
      const int64_t size = shape.dim(i + 1);
      if (size < (*kernel)[i] || window < 0 || s_.filters < 1) {
        call.Fail(
            InvalidArgument("expected an input of known sizes that are at least the kernel's"
                            ", and 1 filter or more, got ",
                            shape.ToString(), " and ", s_.filters));
        return {};
      }
      window *= (*kernel)[i];
      out.push_back((size - (*kernel)[i]) / (*strides)[i] + 1);
      places *= out.back();
    }
    const Endpoint patches = b.Op("ExtractImagePatches", {kRank == 1 ? AddHeight(b, x) : x},
                                  {{"ksizes", WholeWindow(*kernel)},
                                   {"strides", WholeWindow(*strides)},
                                   {"rates", AttrValue::IntList{1, 1, 1, 1}},
                                   {"padding", "VALID"}});
    const Endpoint weights =
        call.WeightOf("kernel", Shape{places, window, s_.filters}, KernelOf(s_.o));
    // A product of matrices at each place.
    const Endpoint rows = TransposeTo(b, ReshapeTo(b, patches, {-1, places, window}), {1, 0, 2});
    Endpoint y = TransposeTo(b, b.Op("BatchMatMulV2", {rows, weights}), {1, 0, 2});
    std::vector<int64_t> sizes = {-1};
    sizes.insert(sizes.end(), out.begin(), out.end());
    sizes.push_back(s_.filters);
    y = ReshapeTo(b, y, sizes);
    if (s_.o.use_bias) {
      Shape bias;
      for (size_t i = 1; i < sizes.size(); ++i) bias.AddDim(sizes[i]);
      y = b.Op("AddV2", {y, call.WeightOf("bias", bias, BiasOf(s_.o))});
    }
    y = Activate(b, s_.o.activation, y);
    AddActivityLoss(call, s_.o.activity_regularizer, y, x);
    return {{y, {}}};
  }

 private:
  LocalSettings s_;
};

}  // namespace

LayerRef LocallyConnected1D(int64_t filters, const Sizes& kernel_size,
                            const LocallyConnectedOptions& options) {
  return MakeLayer<LocallyConnectedLayer<1>>(LocalSettings{filters, kernel_size, options},
                                             options.name);
}
LayerRef LocallyConnected2D(int64_t filters, const Sizes& kernel_size,
                            const LocallyConnectedOptions& options) {
  return MakeLayer<LocallyConnectedLayer<2>>(LocalSettings{filters, kernel_size, options},
                                             options.name);
}

void AddLocallyConnectedLayers(LayerClasses& classes) {
  classes.Add<LocallyConnectedLayer<1>>();
  classes.Add<LocallyConnectedLayer<2>>();
}

}  // namespace weft::estimator
