// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/image_layers.h"

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

}  // namespace

LayerRef Resizing(int64_t height, int64_t width, const ResizingOptions& options) {
  return MakeLayer<ResizingLayer>(SizeSettings{height, width, options.interpolation}, options.name);
}
LayerRef CenterCrop(int64_t height, int64_t width, const std::string& name) {
  return MakeLayer<CenterCropLayer>(SizeSettings{height, width, ""}, name);
}

void AddImageLayers(LayerClasses& classes) {
  classes.Add<ResizingLayer>();
  classes.Add<CenterCropLayer>();
  AddRandomImageLayers(classes);
}

}  // namespace weft::estimator
