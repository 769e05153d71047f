// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/image_layers.h"

#include <algorithm>
#include <utility>

#include "weft/estimator/graph_writing.h"
#include "weft/estimator/layer_classes.h"

namespace weft::estimator {
namespace {

struct SizeSettings {
  int64_t height = 1, width = 1;
  std::string interpolation = "bilinear";
};

bool CheckSize(LayerCall& call, Endpoint x, const SizeSettings& s) {
  if (!call.CheckRank(x, 4)) return false;
  if (s.height >= 1 && s.width >= 1) return true;
  call.Fail(InvalidArgument("height and width are ", s.height, " and ", s.width,
                            ", expected at least 1"));
  return false;
}

class ResizingLayer final : public Layer {
 public:
  explicit ResizingLayer(SizeSettings settings = {}) : s_(std::move(settings)) {}
  const char* class_name() const override { return "Resizing"; }
  void Fields(ConfigFields& f) override {
    f.Field("height", s_.height);
    f.Field("width", s_.width);
    f.Field("interpolation", s_.interpolation);
    f.Fixed("crop_to_aspect_ratio", false);
    if (f.keras() == 2) return;
    f.Fixed("pad_to_aspect_ratio", false);
    f.Fixed("antialias", false);
    f.Fixed("data_format", "channels_last");
  }

  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    const Endpoint x = CastTo(b, in[0].tensor, DType::kFloat);
    if (!CheckSize(call, x, s_)) return {};
    const Endpoint size = IntVector(b, {s_.height, s_.width});
    if (s_.interpolation == "area") return {{b.Op("ResizeArea", {x, size}), {}}};
    const char* op = s_.interpolation == "bilinear"  ? "ResizeBilinear"
                     : s_.interpolation == "nearest" ? "ResizeNearestNeighbor"
                     : s_.interpolation == "bicubic" ? "ResizeBicubic"
                                                     : nullptr;
    if (op == nullptr) {
      call.Fail(Unimplemented("interpolation is '", s_.interpolation,
                              "'; bilinear, nearest, bicubic and area are there"));
      return {};
    }
    return {{b.Op(op, {x, size}, {{"half_pixel_centers", true}}), {}}};
  }

 private:
  SizeSettings s_;
};

class CenterCropLayer final : public Layer {
 public:
  explicit CenterCropLayer(SizeSettings settings = {}) : s_(std::move(settings)) {}
  const char* class_name() const override { return "CenterCrop"; }
  void Fields(ConfigFields& f) override {
    f.Field("height", s_.height);
    f.Field("width", s_.width);
    if (f.keras() != 2) f.Fixed("data_format", "channels_last");
  }

  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    const Endpoint x = CastTo(b, in[0].tensor, DType::kFloat);
    if (!CheckSize(call, x, s_)) return {};
    const PartialShape shape = b.ShapeOf(x);
    if (shape.dim(1) < s_.height || shape.dim(2) < s_.width) {
      call.Fail(InvalidArgument("expected images of known sizes that are at least ", s_.height,
                                " x ", s_.width, ", got ", shape.ToString()));
      return {};
    }
    const std::vector<int64_t> begin = {0, (shape.dim(1) - s_.height) / 2,
                                        (shape.dim(2) - s_.width) / 2, 0};
    return {
        {b.Op("Slice", {x, IntVector(b, begin), IntVector(b, {-1, s_.height, s_.width, -1})}), {}}};
  }

 private:
  SizeSettings s_;
};

struct CropSettings {
  SizeSettings size;
  int64_t seed = 0;
};

class RandomCropLayer final : public Layer {
 public:
  explicit RandomCropLayer(CropSettings settings = {}) : s_(std::move(settings)) {}
  const char* class_name() const override { return "RandomCrop"; }
  void Fields(ConfigFields& f) override {
    f.Field("height", s_.size.height);
    f.Field("width", s_.size.width);
    Json seed = s_.seed == 0 ? Json() : Json(s_.seed);
    f.Raw("seed", seed);
    if (seed.is_int()) s_.seed = seed.AsInt().value_or(0);
    if (f.keras() != 2) f.Fixed("data_format", "channels_last");
  }

  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    const Endpoint x = CastTo(b, in[0].tensor, DType::kFloat);
    if (!CheckSize(call, x, s_.size)) return {};
    const PartialShape shape = b.ShapeOf(x);
    const int64_t rows = shape.dim(1), columns = shape.dim(2);
    if (rows < 1 || columns < 1) {
      call.Fail(InvalidArgument("expected images of known sizes, got ", shape.ToString()));
      return {};
    }
    const int64_t height = s_.size.height, width = s_.size.width;
    if (call.training() && rows >= height && columns >= width) {
      const std::vector<Endpoint> begin = {b.Scalar<int32_t>(0), Place(call, rows - height),
                                           Place(call, columns - width), b.Scalar<int32_t>(0)};
      return {
          {b.Op("Slice", {x, b.Op("Pack", {begin}), IntVector(b, {-1, height, width, -1})}), {}}};
    }
    const int64_t kept_rows = std::min(rows, columns * height / width);
    const int64_t kept_columns = std::min(columns, rows * width / height);
    const Endpoint middle = b.Op(
        "Slice", {x, IntVector(b, {0, (rows - kept_rows) / 2, (columns - kept_columns) / 2, 0}),
                  IntVector(b, {-1, std::max<int64_t>(kept_rows, 1),
                                std::max<int64_t>(kept_columns, 1), -1})});
    return {{b.Op("ResizeBilinear", {middle, IntVector(b, {height, width})},
                  {{"half_pixel_centers", true}}),
             {}}};
  }

 private:
  // From 0 to `last`.
  Endpoint Place(LayerCall& call, int64_t last) const {
    GraphBuilder& b = call.b();
    const int64_t seed = call.NextSeed(s_.seed);
    return b.Op(
        "RandomUniformInt",
        {IntVector(b, {}), b.Scalar<int32_t>(0), b.Scalar<int32_t>(static_cast<int32_t>(last + 1))},
        {{"seed", seed}, {"seed2", seed}});
  }

  CropSettings s_;
};

}  // namespace

LayerRef Resizing(int64_t height, int64_t width, const ResizingOptions& options) {
  return MakeLayer<ResizingLayer>(SizeSettings{height, width, options.interpolation}, options.name);
}
LayerRef CenterCrop(int64_t height, int64_t width, const std::string& name) {
  return MakeLayer<CenterCropLayer>(SizeSettings{height, width, ""}, name);
}

LayerRef RandomCrop(int64_t height, int64_t width, int64_t seed, const std::string& name) {
  return MakeLayer<RandomCropLayer>(CropSettings{{height, width, ""}, seed}, name);
}

void AddImageLayers(LayerClasses& classes) {
  classes.Add<ResizingLayer>();
  classes.Add<CenterCropLayer>();
  classes.Add<RandomCropLayer>();
  AddRandomImageLayers(classes);
}

}  // namespace weft::estimator
