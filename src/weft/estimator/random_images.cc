// SPDX-License-Identifier: Apache-2.0
// Changes of images by chance, while training alone.
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"

#include "weft/estimator/graph_writing.h"
#include "weft/estimator/image_layers.h"
#include "weft/estimator/layer_classes.h"

namespace weft::estimator {
namespace {

constexpr double kPi = 3.14159265358979323846;

enum class Change {
  kFlip,
  kRotation,
  kTranslation,
  kZoom,
  kBrightness,
  kContrast,
  kHeight,
  kWidth
};

struct ImageSettings {
  DrawnRange first = 0, second = 0;  // "factor" or "height_factor", and "width_factor"
  bool has_second = false;
  std::string mode = "horizontal_and_vertical";
  double low = 0, high = 255;  // what values may be
  RandomImageOptions o;
};

// A number f, or [lowest, highest].
Json RangeJson(const DrawnRange& range) {
  Json pair = Json::MakeArray();
  pair.Append(range.lowest);
  pair.Append(range.highest);
  return pair;
}

void ReadRange(const Json& json, DrawnRange* range) {
  if (json.is_number()) *range = DrawnRange(std::abs(json.AsDouble().value_or(0)));
  if (json.is_array() && json.size() == 2) {
    *range =
        DrawnRange(json.items()[0].AsDouble().value_or(0), json.items()[1].AsDouble().value_or(0));
  }
}

template <Change kChange>
class RandomImageLayer final : public Layer {
 public:
  RandomImageLayer() = default;
  explicit RandomImageLayer(ImageSettings settings) : s_(std::move(settings)) {}
  const char* class_name() const override {
    static const char* const kNames[] = {"RandomFlip",   "RandomRotation",   "RandomTranslation",
                                         "RandomZoom",   "RandomBrightness", "RandomContrast",
                                         "RandomHeight", "RandomWidth"};
    return kNames[static_cast<int>(kChange)];
  }

  void Fields(ConfigFields& f) override {
    if (kChange == Change::kFlip) f.Field("mode", s_.mode);
    const bool two = kChange == Change::kTranslation || kChange == Change::kZoom;
    if (kChange != Change::kFlip) RangeField(f, two ? "height_factor" : "factor", &s_.first);
    if (two && (s_.has_second || f.keras() == 0)) {
      Json pair = RangeJson(s_.second);
      if (f.keras() == 0) pair = Json();
      f.Raw("width_factor", pair);
      s_.has_second = !pair.is_null();
      ReadRange(pair, &s_.second);
    }
    if (Moves() || Stretches()) f.Field("interpolation", s_.o.interpolation);
    if (Moves()) {
      f.Field("fill_mode", s_.o.fill_mode);
      f.Field("fill_value", s_.o.fill_value);
    }
    if (kChange == Change::kBrightness || (kChange == Change::kContrast && f.keras() != 2)) {
      DrawnRange values(s_.low, s_.high);
      RangeField(f, "value_range", &values);
      s_.low = values.lowest;
      s_.high = values.highest;
    }
    Json seed = s_.o.seed == 0 ? Json() : Json(s_.o.seed);
    f.Raw("seed", seed);
    if (seed.is_int()) s_.o.seed = seed.AsInt().value_or(0);
    if (f.keras() != 2 && (Moves() || kChange == Change::kFlip)) {
      f.Fixed("data_format", "channels_last");
    }
  }

  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    const Endpoint x = CastTo(b, in[0].tensor, DType::kFloat);
    if (!call.CheckRank(x, 4)) return {};
    if (!call.training()) return {{x, {}}};
    if (Stretches()) return {{Stretched(call, x), {}}};
    const Endpoint changed = Changed(call, x);
    if (!b.ok()) return {};
    return {{b.Op("EnsureShape", {changed}, {{"shape", b.ShapeOf(x)}}), {}}};
  }

 private:
  Endpoint Changed(LayerCall& call, Endpoint x) const {
    GraphBuilder& b = call.b();
    switch (kChange) {
      case Change::kFlip:
        return Flipped(call, x);
      case Change::kBrightness: {
        const Endpoint drawn = Draw(call, x, s_.first, 4);
        const Endpoint more = b.Op("Mul", {drawn, Number(b, DType::kFloat, s_.high - s_.low)});
        return Clipped(b, b.Op("AddV2", {x, more}));
      }
      case Change::kContrast: {
        const DrawnRange range(1 - std::abs(s_.first.lowest), 1 + s_.first.highest);
        const Endpoint mean = Reduce(b, "Mean", x, {1, 2}, true);
        const Endpoint off = b.Op("Mul", {b.Op("Sub", {x, mean}), Draw(call, x, range, 4)});
        return Clipped(b, b.Op("AddV2", {off, mean}));
      }
      default:
        return Moved(call, x);
    }
  }

  static constexpr bool Moves() {
    return kChange == Change::kRotation || kChange == Change::kTranslation ||
           kChange == Change::kZoom;
  }

  static constexpr bool Stretches() {
    return kChange == Change::kHeight || kChange == Change::kWidth;
  }

  // To a size that is drawn for the whole batch.
  Endpoint Stretched(LayerCall& call, Endpoint x) const {
    GraphBuilder& b = call.b();
    const char* op = s_.o.interpolation == "bilinear"  ? "ResizeBilinear"
                     : s_.o.interpolation == "nearest" ? "ResizeNearestNeighbor"
                                                       : nullptr;
    if (op == nullptr) {
      call.Fail(Unimplemented("interpolation is '", s_.o.interpolation,
                              "'; bilinear and nearest are there"));
      return {};
    }
    const int64_t seed = call.NextSeed(s_.o.seed);
    const Endpoint drawn = b.Op("RandomUniform", {IntVector(b, {})},
                                {{"dtype", DType::kFloat}, {"seed", seed}, {"seed2", seed}});
    const Endpoint factor =
        b.Op("AddV2",
             {b.Op("Mul", {drawn, Number(b, DType::kFloat, s_.first.highest - s_.first.lowest)}),
              Number(b, DType::kFloat, 1 + s_.first.lowest)});
    const int axis = kChange == Change::kHeight ? 1 : 2;
    std::vector<Endpoint> sizes = {SizeOf(b, x, 1), SizeOf(b, x, 2)};
    Endpoint& size = sizes[axis - 1];
    size = CastTo(b, b.Op("Mul", {CastTo(b, size, DType::kFloat), factor}), DType::kInt32);
    return b.Op(op, {x, b.Op("Pack", {sizes})}, {{"half_pixel_centers", true}});
  }

  static void RangeField(ConfigFields& f, const char* name, DrawnRange* range) {
    Json pair = RangeJson(*range);
    f.Raw(name, pair);
    ReadRange(pair, range);
  }

  Endpoint Clipped(GraphBuilder& b, Endpoint x) const {
    const Endpoint below = b.Op("Maximum", {x, Number(b, DType::kFloat, s_.low)});
    return b.Op("Minimum", {below, Number(b, DType::kFloat, s_.high)});
  }

  // [batch, 1, ...] of `rank`.
  Endpoint Draw(LayerCall& call, Endpoint x, const DrawnRange& range, int rank) const {
    GraphBuilder& b = call.b();
    std::vector<Endpoint> sizes(rank, b.Scalar<int32_t>(1));
    sizes[0] = SizeOf(b, x, 0);
    const int64_t seed = call.NextSeed(s_.o.seed);
    const Endpoint drawn = b.Op("RandomUniform", {b.Op("Pack", {sizes})},
                                {{"dtype", DType::kFloat}, {"seed", seed}, {"seed2", seed}});
    return b.Op("AddV2",
                {b.Op("Mul", {drawn, Number(b, DType::kFloat, range.highest - range.lowest)}),
                 Number(b, DType::kFloat, range.lowest)});
  }

  Endpoint Flipped(LayerCall& call, Endpoint x) const {
    GraphBuilder& b = call.b();
    const bool both = s_.mode == "horizontal_and_vertical";
    if (!both && s_.mode != "horizontal" && s_.mode != "vertical") {
      call.Fail(InvalidArgument("mode is '", s_.mode,
                                "', expected horizontal, vertical or horizontal_and_vertical"));
      return {};
    }
    // As in Keras 3 an image turns along both axes or along none.
    const std::vector<int64_t> axes = both                    ? std::vector<int64_t>{1, 2}
                                      : s_.mode == "vertical" ? std::vector<int64_t>{1}
                                                              : std::vector<int64_t>{2};
    const Endpoint turn =
        b.Op("Less", {Draw(call, x, DrawnRange(0, 1), 4), Number(b, DType::kFloat, 0.5)});
    return b.Op("SelectV2", {turn, b.Op("ReverseV2", {x, IntVector(b, axes)}), x});
  }

  // By the matrix that gives each new pixel's place in the old image.
  Endpoint Moved(LayerCall& call, Endpoint x) const {
    GraphBuilder& b = call.b();
    const auto number = [&](double value) { return Number(b, DType::kFloat, value); };
    const auto mul = [&](Endpoint p, Endpoint q) { return b.Op("Mul", {p, q}); };
    const auto sub = [&](Endpoint p, Endpoint q) { return b.Op("Sub", {p, q}); };
    const auto add = [&](Endpoint p, Endpoint q) { return b.Op("AddV2", {p, q}); };
    const Endpoint height = CastTo(b, SizeOf(b, x, 1), DType::kFloat);
    const Endpoint width = CastTo(b, SizeOf(b, x, 2), DType::kFloat);
    const Endpoint half = number(0.5);
    const Endpoint last_y = sub(height, number(1)), last_x = sub(width, number(1));
    Endpoint by_y = Draw(call, x, s_.first, 2);
    const Endpoint zero = b.Op("ZerosLike", {by_y}), one = b.Op("OnesLike", {by_y});
    std::vector<Endpoint> rows;
    if (kChange == Change::kRotation) {
      const Endpoint angle = mul(by_y, number(2 * kPi));
      const Endpoint cosine = b.Op("Cos", {angle}), sine = b.Op("Sin", {angle});
      const Endpoint off_x = sub(last_x, sub(mul(cosine, last_x), mul(sine, last_y)));
      const Endpoint off_y = sub(last_y, add(mul(sine, last_x), mul(cosine, last_y)));
      rows = {cosine, b.Op("Neg", {sine}), mul(off_x, half), sine, cosine, mul(off_y, half)};
    } else {
      const Endpoint by_x =
          kChange == Change::kTranslation || s_.has_second ? Draw(call, x, s_.second, 2) : by_y;
      if (kChange == Change::kTranslation) {
        rows = {one,  zero, b.Op("Neg", {mul(by_x, width)}),
                zero, one,  b.Op("Neg", {mul(by_y, height)})};
      } else {
        const Endpoint zoom_y = add(one, by_y), zoom_x = add(one, by_x);
        rows = {zoom_x, zero,   mul(mul(last_x, half), sub(one, zoom_x)),
                zero,   zoom_y, mul(mul(last_y, half), sub(one, zoom_y))};
      }
    }
    rows.push_back(zero);
    rows.push_back(zero);
    return b.Op("ImageProjectiveTransformV3",
                {x, Concat(b, rows, 1),
                 b.Op("Pack", {std::vector<Endpoint>{SizeOf(b, x, 1), SizeOf(b, x, 2)}}),
                 number(s_.o.fill_value)},
                {{"interpolation", absl::AsciiStrToUpper(s_.o.interpolation)},
                 {"fill_mode", absl::AsciiStrToUpper(s_.o.fill_mode)}});
  }

  ImageSettings s_;
};

template <Change kChange>
LayerRef MakeChange(DrawnRange first, DrawnRange second, const RandomImageOptions& options,
                    bool has_second = false) {
  ImageSettings settings;
  settings.first = first;
  settings.second = second;
  settings.has_second = has_second;
  settings.o = options;
  return MakeLayer<RandomImageLayer<kChange>>(std::move(settings), options.name);
}

RandomImageOptions Named(int64_t seed, const std::string& name) {
  RandomImageOptions options;
  options.seed = seed;
  options.name = name;
  return options;
}

}  // namespace

LayerRef RandomFlip(const std::string& mode, int64_t seed, const std::string& name) {
  ImageSettings settings;
  settings.mode = mode;
  settings.o.seed = seed;
  return MakeLayer<RandomImageLayer<Change::kFlip>>(std::move(settings), name);
}
LayerRef RandomRotation(DrawnRange factor, const RandomImageOptions& options) {
  return MakeChange<Change::kRotation>(factor, 0, options);
}
LayerRef RandomTranslation(DrawnRange height_factor, DrawnRange width_factor,
                           const RandomImageOptions& options) {
  return MakeChange<Change::kTranslation>(height_factor, width_factor, options, true);
}
LayerRef RandomZoom(DrawnRange factor, const RandomImageOptions& options) {
  return MakeChange<Change::kZoom>(factor, 0, options);
}
LayerRef RandomHeight(DrawnRange factor, const RandomImageOptions& options) {
  return MakeChange<Change::kHeight>(factor, 0, options);
}
LayerRef RandomWidth(DrawnRange factor, const RandomImageOptions& options) {
  return MakeChange<Change::kWidth>(factor, 0, options);
}
LayerRef RandomBrightness(DrawnRange factor, int64_t seed, const std::string& name) {
  return MakeChange<Change::kBrightness>(factor, 0, Named(seed, name));
}
LayerRef RandomContrast(double factor, int64_t seed, const std::string& name) {
  return MakeChange<Change::kContrast>(DrawnRange(factor, factor), 0, Named(seed, name));
}

void AddRandomImageLayers(LayerClasses& classes) {
  classes.Add<RandomImageLayer<Change::kFlip>>();
  classes.Add<RandomImageLayer<Change::kRotation>>();
  classes.Add<RandomImageLayer<Change::kTranslation>>();
  classes.Add<RandomImageLayer<Change::kZoom>>();
  classes.Add<RandomImageLayer<Change::kHeight>>();
  classes.Add<RandomImageLayer<Change::kWidth>>();
  classes.Add<RandomImageLayer<Change::kBrightness>>();
  classes.Add<RandomImageLayer<Change::kContrast>>();
}

}  // namespace weft::estimator
