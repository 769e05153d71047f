// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/dense.h"

#include <utility>

#include "weft/estimator/activation.h"
#include "weft/estimator/activity.h"
#include "weft/estimator/graph_writing.h"
#include "weft/estimator/kernel_fields.h"
#include "weft/estimator/layer_classes.h"

namespace weft::estimator {
namespace {

class DenseLayer final : public Layer {
 public:
  DenseLayer() = default;
  DenseLayer(std::pair<int64_t, DenseOptions> settings)
      : units_(settings.first), o_(std::move(settings.second)) {}
  const char* class_name() const override { return "Dense"; }
  bool KeepsMask() const override { return true; }
  void Fields(ConfigFields& f) override {
    f.Field("units", units_);
    f.Field("use_bias", o_.use_bias);
    ActivatedKernelFields(f, o_);
  }

  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    const Endpoint x = in[0].tensor;
    const PartialShape shape = b.ShapeOf(x);
    const int rank = shape.rank();
    if (rank < 2 || shape.dim(rank - 1) < 0) {
      call.Fail(InvalidArgument(
          "expected an input of rank 2 or more whose last size is known, got ", shape.ToString()));
      return {};
    }
    if (units_ < 1) {
      call.Fail(InvalidArgument("units is ", units_, ", expected at least 1"));
      return {};
    }
    const int64_t inputs = shape.dim(rank - 1);
    const Endpoint kernel = call.WeightOf("kernel", Shape{inputs, units_}, KernelOf(o_));
    const Endpoint rows = rank == 2 ? x : ReshapeTo(b, x, {-1, inputs});
    Endpoint y = b.Op("MatMul", {rows, kernel});
    if (o_.use_bias) {
      const Endpoint bias = call.WeightOf("bias", Shape{units_}, BiasOf(o_));
      y = b.Op("BiasAdd", {y, bias});
    }
    if (rank > 2) y = WithOuterSizes(b, y, x, units_);
    y = Activate(b, o_.activation, y);
    AddActivityLoss(call, o_.activity_regularizer, y, x);
    return {{y, {}}};
  }

 private:
  // [outer sizes of x] + [units].
  static Endpoint WithOuterSizes(GraphBuilder& b, Endpoint y, Endpoint x, int64_t units) {
    const PartialShape shape = b.ShapeOf(x);
    std::vector<int64_t> sizes;
    int unknown = 0;
    for (int i = 0; i + 1 < shape.rank(); ++i) {
      sizes.push_back(shape.dim(i));
      if (shape.dim(i) < 0) ++unknown;
    }
    sizes.push_back(units);
    if (unknown <= 1) return ReshapeTo(b, y, sizes);
    std::vector<Endpoint> parts;
    for (int i = 0; i + 1 < shape.rank(); ++i) parts.push_back(SizeOf(b, x, i));
    parts.push_back(b.Scalar<int32_t>(static_cast<int32_t>(units)));
    return b.Op("Reshape", {y, b.Op("Pack", {parts})});
  }

  int64_t units_ = 1;
  DenseOptions o_;
};

}  // namespace

LayerRef Dense(int64_t units, const DenseOptions& options) {
  return MakeLayer<DenseLayer>(std::pair(units, options), options.name);
}

void AddDenseLayers(LayerClasses& classes) {
  classes.Add<DenseLayer>();
  AddEinsumDense(classes);
}

}  // namespace weft::estimator
