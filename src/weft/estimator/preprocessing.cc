// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/preprocessing.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "weft/estimator/graph_writing.h"
#include "weft/estimator/layer_classes.h"

namespace weft::estimator {
namespace {

class RescalingLayer final : public Layer {
 public:
  RescalingLayer() = default;
  explicit RescalingLayer(std::pair<double, double> settings)
      : scale_(settings.first), offset_(settings.second) {}
  const char* class_name() const override { return "Rescaling"; }
  bool KeepsMask() const override { return true; }
  void Fields(ConfigFields& f) override {
    f.Field("scale", scale_);
    f.Field("offset", offset_);
  }
  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    const Endpoint x = CastTo(b, in[0].tensor, DType::kFloat);
    return {{b.Op("AddV2", {b.Op("Mul", {x, NumberLike(b, x, scale_)}), NumberLike(b, x, offset_)}),
             {}}};
  }

 private:
  double scale_ = 1, offset_ = 0;
};

// Keras writes a number or nested lists.
void ReadNumbers(const Json& json, std::vector<double>* out) {
  if (json.is_number()) out->push_back(json.AsDouble().value_or(0));
  for (const Json& item : json.items()) ReadNumbers(item, out);
}

class NormalizationLayer final : public Layer {
 public:
  NormalizationLayer() = default;
  explicit NormalizationLayer(std::pair<std::vector<double>, std::vector<double>> settings)
      : mean_(std::move(settings.first)), variance_(std::move(settings.second)) {}
  const char* class_name() const override { return "Normalization"; }
  void Fields(ConfigFields& f) override {
    Sizes axis = -1;
    f.Field("axis", axis);
    Numbers(f, "mean", &mean_);
    Numbers(f, "variance", &variance_);
    f.Field("invert", invert_);
  }
  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    const Endpoint x = CastTo(b, in[0].tensor, DType::kFloat);
    if (mean_.empty() || mean_.size() != variance_.size()) {
      call.Fail(InvalidArgument("there are ", mean_.size(), " means and ", variance_.size(),
                                " variances, expected as many of both"));
      return {};
    }
    std::vector<float> mean, deviation;
    for (size_t i = 0; i < mean_.size(); ++i) {
      mean.push_back(static_cast<float>(mean_[i]));
      deviation.push_back(
          std::max(static_cast<float>(std::sqrt(std::max(0.0, variance_[i]))), 1e-7f));
    }
    const auto values = [&](const std::vector<float>& v) {
      return b.Constant(Tensor::FromSpan<float>(Shape{static_cast<int64_t>(v.size())}, v));
    };
    if (invert_) {
      return {{b.Op("AddV2", {b.Op("Mul", {x, values(deviation)}), values(mean)}), {}}};
    }
    return {{b.Op("RealDiv", {b.Op("Sub", {x, values(mean)}), values(deviation)}), {}}};
  }

 private:
  static void Numbers(ConfigFields& f, const char* name, std::vector<double>* numbers) {
    Json list = Json::MakeArray();
    for (const double number : *numbers) list.Append(number);
    f.Raw(name, list);
    numbers->clear();
    ReadNumbers(list, numbers);
  }
  std::vector<double> mean_, variance_;
  bool invert_ = false;
};

}  // namespace

LayerRef Rescaling(double scale, double offset, const std::string& name) {
  return MakeLayer<RescalingLayer>(std::pair(scale, offset), name);
}
LayerRef Normalization(const std::vector<double>& mean, const std::vector<double>& variance,
                       const std::string& name) {
  return MakeLayer<NormalizationLayer>(std::pair(mean, variance), name);
}

void AddPreprocessingLayers(LayerClasses& classes) {
  classes.Add<RescalingLayer>();
  classes.Add<NormalizationLayer>();
}

}  // namespace weft::estimator
