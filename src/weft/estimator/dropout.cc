// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/dropout.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "weft/estimator/graph_writing.h"
#include "weft/estimator/layer_classes.h"

namespace weft::estimator {
namespace {

enum class Kind { kDropout, kSpatial1D, kSpatial2D, kSpatial3D, kNoise, kGaussian, kAlpha };

const char* NameOfKind(Kind kind) {
  static const char* const kNames[] = {"Dropout",          "SpatialDropout1D", "SpatialDropout2D",
                                       "SpatialDropout3D", "GaussianNoise",    "GaussianDropout",
                                       "AlphaDropout"};
  return kNames[static_cast<int>(kind)];
}

bool CheckRate(LayerCall& call, double rate) {
  if (rate >= 0 && rate < 1) return true;
  call.Fail(InvalidArgument("rate is ", rate, ", expected at least 0 and below 1"));
  return false;
}

Endpoint NormalNumbers(LayerCall& call, Endpoint like, double mean, double stddev, int64_t own) {
  GraphBuilder& b = call.b();
  const int64_t seed = call.NextSeed(own);
  const Endpoint drawn = b.Op("RandomStandardNormal", {b.Op("Shape", {like})},
                              {{"dtype", TypeOf(like)}, {"seed", seed}, {"seed2", seed}});
  return b.Op("AddV2",
              {b.Op("Mul", {drawn, NumberLike(b, like, stddev)}), NumberLike(b, like, mean)});
}

template <Kind kKind>
class RandomLayer final : public Layer {
 public:
  RandomLayer() = default;
  explicit RandomLayer(std::pair<double, DropoutOptions> settings)
      : rate_(settings.first), seed_(settings.second.seed) {}
  const char* class_name() const override { return NameOfKind(kKind); }
  bool KeepsMask() const override { return true; }
  void Fields(ConfigFields& f) override {
    f.Field(kKind == Kind::kNoise ? "stddev" : "rate", rate_);
    if (kKind == Kind::kDropout || kKind == Kind::kAlpha) f.Fixed("noise_shape", Json());
    Json seed = seed_ == 0 ? Json() : Json(seed_);
    f.Raw("seed", seed);
    if (seed.is_int()) seed_ = seed.AsInt().value_or(0);
  }

  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    const Endpoint x = in[0].tensor;
    if (kKind == Kind::kNoise) {
      if (!call.training()) return {{x, {}}};
      return {{b.Op("AddV2", {x, NormalNumbers(call, x, 0, rate_, seed_)}), {}}};
    }
    if (!CheckRate(call, rate_)) return {};
    if (kKind == Kind::kGaussian) {
      if (!call.training() || rate_ == 0) return {{x, {}}};
      const double deviation = std::sqrt(rate_ / (1 - rate_));
      return {{b.Op("Mul", {x, NormalNumbers(call, x, 1, deviation, seed_)}), {}}};
    }
    if (kKind == Kind::kAlpha) return {{DropAlpha(call, x), {}}};
    Axes shared;
    for (int i = 1; i <= static_cast<int>(kKind); ++i) shared.push_back(i);
    if (!shared.empty() && !call.CheckRank(x, static_cast<int>(shared.size()) + 2)) return {};
    return {{DropOut(call, x, rate_, shared, seed_), {}}};
  }

 private:
  Endpoint DropAlpha(LayerCall& call, Endpoint x) const {
    if (!call.training() || rate_ == 0) return x;
    GraphBuilder& b = call.b();
    // Selu's limit at minus infinity; then the line that brings mean 0 and variance 1 back.
    const double lowest = -1.6732632423543772848170429916717 * 1.0507009873554804934193349852946;
    const double slope = 1 / std::sqrt((1 - rate_) * (1 + rate_ * lowest * lowest));
    const int64_t seed = call.NextSeed(seed_);
    const Endpoint drawn = b.Op("RandomUniform", {b.Op("Shape", {x})},
                                {{"dtype", TypeOf(x)}, {"seed", seed}, {"seed2", seed}});
    const Endpoint keep = b.Op("GreaterEqual", {drawn, NumberLike(b, x, rate_)});
    const Endpoint low = b.Op("Mul", {b.Op("OnesLike", {x}), NumberLike(b, x, lowest)});
    const Endpoint kept = b.Op("SelectV2", {keep, x, low});
    return b.Op("AddV2", {b.Op("Mul", {kept, NumberLike(b, x, slope)}),
                          NumberLike(b, x, -slope * lowest * rate_)});
  }

  double rate_ = 0.5;
  int64_t seed_ = 0;
};

template <Kind kKind>
LayerRef MakeRandom(double rate, const DropoutOptions& options) {
  return MakeLayer<RandomLayer<kKind>>(std::pair(rate, options), options.name);
}

}  // namespace

Endpoint DropOut(LayerCall& call, Endpoint x, double rate, const Axes& shared, int64_t own) {
  GraphBuilder& b = call.b();
  if (!call.training() || rate == 0 || !b.ok()) return x;
  if (!CheckRate(call, rate)) return {};
  const int64_t seed = call.NextSeed(own);
  Endpoint shape = b.Op("Shape", {x});
  if (!shared.empty()) {
    std::vector<Endpoint> sizes;
    for (int i = 0; i < b.ShapeOf(x).rank(); ++i) {
      const bool one = std::find(shared.begin(), shared.end(), i) != shared.end();
      sizes.push_back(one ? b.Scalar<int32_t>(1) : SizeOf(b, x, i));
    }
    shape = b.Op("Pack", {sizes});
  }
  const Endpoint drawn =
      b.Op("RandomUniform", {shape}, {{"dtype", TypeOf(x)}, {"seed", seed}, {"seed2", seed}});
  const Endpoint keep = CastTo(b, b.Op("GreaterEqual", {drawn, NumberLike(b, x, rate)}), TypeOf(x));
  return b.Op("Mul", {b.Op("Mul", {x, NumberLike(b, x, 1 / (1 - rate))}), keep});
}

LayerRef Dropout(double rate, const DropoutOptions& options) {
  return MakeRandom<Kind::kDropout>(rate, options);
}
LayerRef SpatialDropout1D(double rate, const DropoutOptions& options) {
  return MakeRandom<Kind::kSpatial1D>(rate, options);
}
LayerRef SpatialDropout2D(double rate, const DropoutOptions& options) {
  return MakeRandom<Kind::kSpatial2D>(rate, options);
}
LayerRef SpatialDropout3D(double rate, const DropoutOptions& options) {
  return MakeRandom<Kind::kSpatial3D>(rate, options);
}
LayerRef GaussianNoise(double stddev, const DropoutOptions& options) {
  return MakeRandom<Kind::kNoise>(stddev, options);
}
LayerRef GaussianDropout(double rate, const DropoutOptions& options) {
  return MakeRandom<Kind::kGaussian>(rate, options);
}
LayerRef AlphaDropout(double rate, const DropoutOptions& options) {
  return MakeRandom<Kind::kAlpha>(rate, options);
}

void AddRandomLayers(LayerClasses& classes) {
  classes.Add<RandomLayer<Kind::kDropout>>();
  classes.Add<RandomLayer<Kind::kSpatial1D>>();
  classes.Add<RandomLayer<Kind::kSpatial2D>>();
  classes.Add<RandomLayer<Kind::kSpatial3D>>();
  classes.Add<RandomLayer<Kind::kNoise>>();
  classes.Add<RandomLayer<Kind::kGaussian>>();
  classes.Add<RandomLayer<Kind::kAlpha>>();
}

}  // namespace weft::estimator
