// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/reshaping.h"

#include <algorithm>
#include <utility>

#include "weft/estimator/graph_writing.h"
#include "weft/estimator/layer_classes.h"

namespace weft::estimator {
namespace {

// Of these Keras takes a list even if it has one size.
Json WithList(Json config, const char* name, const Sizes& sizes) {
  Json list = Json::MakeArray();
  for (const int64_t size : sizes.values()) list.Append(size);
  config.Set(name, std::move(list));
  return config;
}

class FlattenLayer final : public Layer {
 public:
  const char* class_name() const override { return "Flatten"; }
  void Fields(ConfigFields& f) override { f.Fixed("data_format", "channels_last"); }
  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    const Endpoint x = in[0].tensor;
    if (!call.CheckKnown(x, "Flatten")) return {};
    const PartialShape shape = call.b().ShapeOf(x);
    int64_t rest = 1;
    for (int i = 1; i < shape.rank(); ++i) rest *= shape.dim(i);
    return {{ReshapeTo(call.b(), x, {-1, rest}), {}}};
  }
};

class ReshapeLayer final : public Layer {
 public:
  explicit ReshapeLayer(std::vector<int64_t> target = {}) : target_(std::move(target)) {}
  const char* class_name() const override { return "Reshape"; }
  void Fields(ConfigFields& f) override { f.Field("target_shape", target_); }
  Json Config(int keras) override {
    return WithList(Layer::Config(keras), "target_shape", target_);
  }
  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    const Endpoint x = in[0].tensor;
    std::vector<int64_t> target = target_.values();
    const auto unknown = std::count(target.begin(), target.end(), -1);
    if (unknown > 1) {
      call.Fail(
          InvalidArgument("target_shape has ", unknown, " sizes of -1, expected one at most"));
      return {};
    }
    const PartialShape shape = b.ShapeOf(x);
    int64_t elements = 1, wanted = 1;
    bool known = shape.rank() >= 1;
    for (int i = 1; i < shape.rank(); ++i) {
      known = known && shape.dim(i) >= 0;
      elements *= shape.dim(i);
    }
    for (const int64_t size : target) wanted *= size < 0 ? 1 : size;
    if (known && (unknown == 1 ? wanted == 0 || elements % wanted != 0 : elements != wanted)) {
      call.Fail(InvalidArgument("input ", shape.ToString(), " of ", elements,
                                " elements an example does not fit target_shape [",
                                absl::StrJoin(target, ","), "]"));
      return {};
    }
    if (unknown == 1 && !known) {
      // The batch's size comes from the input, so that only one is left open.
      std::vector<Endpoint> sizes = {SizeOf(b, x, 0)};
      for (const int64_t size : target) {
        sizes.push_back(b.Scalar<int32_t>(static_cast<int32_t>(size)));
      }
      return {{b.Op("Reshape", {x, b.Op("Pack", {sizes})}), {}}};
    }
    for (int64_t& size : target) size = size < 0 ? elements / wanted : size;
    target.insert(target.begin(), -1);
    return {{ReshapeTo(b, x, target), {}}};
  }

 private:
  Sizes target_;
};

class PermuteLayer final : public Layer {
 public:
  explicit PermuteLayer(std::vector<int64_t> dims = {}) : dims_(std::move(dims)) {}
  const char* class_name() const override { return "Permute"; }
  void Fields(ConfigFields& f) override { f.Field("dims", dims_); }
  Json Config(int keras) override { return WithList(Layer::Config(keras), "dims", dims_); }
  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    std::vector<int64_t> order = dims_.values(), sorted = order;
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 0; i < sorted.size(); ++i) {
      if (sorted[i] == static_cast<int64_t>(i) + 1) continue;
      call.Fail(InvalidArgument("dims must name each axis from 1 on once"));
      return {};
    }
    if (!call.CheckRank(in[0].tensor, static_cast<int>(order.size()) + 1)) return {};
    order.insert(order.begin(), 0);
    return {{TransposeTo(call.b(), in[0].tensor, order), {}}};
  }

 private:
  Sizes dims_;
};

class RepeatVectorLayer final : public Layer {
 public:
  explicit RepeatVectorLayer(int64_t n = 1) : n_(n) {}
  const char* class_name() const override { return "RepeatVector"; }
  void Fields(ConfigFields& f) override { f.Field("n", n_); }
  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    if (!call.CheckRank(in[0].tensor, 2)) return {};
    return {{b.Op("Tile", {ExpandDim(b, in[0].tensor, 1), IntVector(b, {1, n_, 1})}), {}}};
  }

 private:
  int64_t n_;
};

// [[before, after], ...] of Keras, which also takes [n, n] and n.
Status FlattenPairs(const Json& json, std::vector<int64_t>* out) {
  if (!json.is_array()) {
    WEFT_ASSIGN_OR_RETURN(const int64_t one, json.AsInt());
    out->push_back(one);
    return absl::OkStatus();
  }
  for (const Json& item : json.items()) WEFT_RETURN_IF_ERROR(FlattenPairs(item, out));
  return absl::OkStatus();
}

template <int kRank, bool kCrop>
class EdgeLayer final : public Layer {
 public:
  explicit EdgeLayer(Sizes sizes = kCrop ? 0 : 1) : sizes_(std::move(sizes)) {}
  const char* class_name() const override {
    if (kCrop) return kRank == 1 ? "Cropping1D" : kRank == 2 ? "Cropping2D" : "Cropping3D";
    return kRank == 1 ? "ZeroPadding1D" : kRank == 2 ? "ZeroPadding2D" : "ZeroPadding3D";
  }
  void Fields(ConfigFields& f) override {
    Json pairs = Json::MakeArray();
    for (const auto& [before, after] : Pairs().value_or(std::vector<Pair>())) {
      Json pair = Json::MakeArray();
      pair.Append(before);
      pair.Append(after);
      pairs.Append(std::move(pair));
    }
    if (kRank == 1 && pairs.size() == 1) pairs = Json(pairs.items()[0]);
    f.Raw(kCrop ? "cropping" : "padding", pairs);
    std::vector<int64_t> read;
    if (FlattenPairs(pairs, &read).ok()) sizes_ = Sizes(std::move(read));
    if (kRank > 1) f.Fixed("data_format", "channels_last");
  }

  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    const Endpoint x = in[0].tensor;
    if (!call.CheckRank(x, kRank + 2)) return {};
    const StatusOr<std::vector<Pair>> pairs = Pairs();
    if (!pairs.ok()) return call.Fail(pairs.status()), std::vector<Value>();
    if (!kCrop) {
      std::vector<int32_t> flat = {0, 0};
      for (const auto& [before, after] : *pairs) {
        flat.push_back(static_cast<int32_t>(before));
        flat.push_back(static_cast<int32_t>(after));
      }
      flat.resize(flat.size() + 2, 0);
      return {
          {b.Op("Pad", {x, b.Constant(Tensor::FromSpan<int32_t>(Shape{kRank + 2, 2}, flat))}), {}}};
    }
    std::vector<int64_t> begin = {0}, end = {0}, ones(kRank + 2, 1);
    for (const auto& [before, after] : *pairs) {
      begin.push_back(before);
      end.push_back(-after);
    }
    begin.push_back(0);
    end.push_back(0);
    int64_t to_the_end = 0;
    for (size_t i = 0; i < end.size(); ++i) to_the_end |= end[i] == 0 ? int64_t{1} << i : 0;
    return {{b.Op("StridedSlice", {x, IntVector(b, begin), IntVector(b, end), IntVector(b, ones)},
                  {{"end_mask", to_the_end}}),
             {}}};
  }

 private:
  using Pair = std::pair<int64_t, int64_t>;
  StatusOr<std::vector<Pair>> Pairs() const {
    const std::vector<int64_t>& v = sizes_.values();
    std::vector<Pair> pairs;
    for (int i = 0; i < kRank; ++i) {
      if (v.size() == 2 * kRank) {
        pairs.emplace_back(v[2 * i], v[2 * i + 1]);
      } else if (v.size() == 1 || v.size() == kRank) {
        const int64_t size = v[v.size() == 1 ? 0 : i];
        pairs.emplace_back(size, size);
      } else {
        return InvalidArgument("there are ", v.size(), " sizes, expected 1, ", kRank, " or ",
                               2 * kRank);
      }
      if (pairs.back().first < 0 || pairs.back().second < 0) {
        return InvalidArgument("sizes must not be negative");
      }
    }
    return pairs;
  }

  Sizes sizes_;
};

struct UpSettings {
  Sizes size = 2;
  std::string interpolation = "nearest";
};

template <int kRank>
class UpSamplingLayer final : public Layer {
 public:
  explicit UpSamplingLayer(UpSettings settings = {}) : s_(std::move(settings)) {}
  const char* class_name() const override {
    return kRank == 1 ? "UpSampling1D" : kRank == 2 ? "UpSampling2D" : "UpSampling3D";
  }
  void Fields(ConfigFields& f) override {
    f.Field("size", s_.size);
    if (kRank > 1) f.Fixed("data_format", "channels_last");
    if (kRank == 2) f.Field("interpolation", s_.interpolation);
  }

  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    Endpoint x = in[0].tensor;
    if (!call.CheckRank(x, kRank + 2)) return {};
    const auto size = s_.size.ForAxes(kRank, "size");
    if (!size.ok()) return call.Fail(size.status()), std::vector<Value>();
    if (s_.interpolation == "bilinear") {
      std::vector<Endpoint> sizes;
      for (int i = 0; i < 2; ++i) {
        sizes.push_back(b.Op(
            "Mul", {SizeOf(b, x, i + 1), b.Scalar<int32_t>(static_cast<int32_t>((*size)[i]))}));
      }
      return {
          {b.Op("ResizeBilinear", {x, b.Op("Pack", {sizes})}, {{"half_pixel_centers", true}}), {}}};
    }
    if (s_.interpolation != "nearest") {
      call.Fail(Unimplemented("interpolation is '", s_.interpolation,
                              "'; nearest and bilinear are there"));
      return {};
    }
    for (int i = 0; i < kRank; ++i) x = Repeat(b, x, i + 1, (*size)[i]);
    return {{x, {}}};
  }

 private:
  // Each slice along `axis` `times` times.
  static Endpoint Repeat(GraphBuilder& b, Endpoint x, int axis, int64_t times) {
    if (times == 1) return x;
    const PartialShape shape = b.ShapeOf(x);
    std::vector<int64_t> tiles(shape.rank() + 1, 1);
    tiles[axis + 1] = times;
    const Endpoint wide = b.Op("Tile", {ExpandDim(b, x, axis + 1), IntVector(b, tiles)});
    std::vector<Endpoint> sizes;
    std::vector<int64_t> known;
    for (int i = 0; i < shape.rank(); ++i) {
      const int64_t factor = i == axis ? times : 1;
      known.push_back(shape.dim(i) < 0 ? -1 : shape.dim(i) * factor);
      sizes.push_back(factor == 1
                          ? SizeOf(b, x, i)
                          : b.Op("Mul", {SizeOf(b, x, i), NumberLike(b, SizeOf(b, x, i), factor)}));
    }
    if (std::count(known.begin(), known.end(), -1) <= 1) return ReshapeTo(b, wide, known);
    return b.Op("Reshape", {wide, b.Op("Pack", {sizes})});
  }

  UpSettings s_;
};

class MaskingLayer final : public Layer {
 public:
  explicit MaskingLayer(double value = 0) : value_(value) {}
  const char* class_name() const override { return "Masking"; }
  void Fields(ConfigFields& f) override { f.Field("mask_value", value_); }
  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    const Endpoint x = in[0].tensor;
    const Endpoint differs = b.Op("NotEqual", {x, NumberLike(b, x, value_)});
    const Endpoint mask = Reduce(b, "Any", differs, {-1});
    const Endpoint there = ExpandDim(b, CastTo(b, mask, TypeOf(x)), -1);
    return {{b.Op("Mul", {x, there}), mask}};
  }

 private:
  double value_;
};

}  // namespace

LayerRef Flatten(const std::string& name) {
  LayerRef layer(std::make_shared<FlattenLayer>());
  layer->set_name(name);
  return layer;
}
LayerRef Reshape(const std::vector<int64_t>& target_shape, const std::string& name) {
  return MakeLayer<ReshapeLayer>(target_shape, name);
}
LayerRef Permute(const std::vector<int64_t>& dims, const std::string& name) {
  return MakeLayer<PermuteLayer>(dims, name);
}
LayerRef RepeatVector(int64_t n, const std::string& name) {
  return MakeLayer<RepeatVectorLayer>(n, name);
}
LayerRef ZeroPadding1D(const Sizes& padding, const std::string& name) {
  return MakeLayer<EdgeLayer<1, false>>(padding, name);
}
LayerRef ZeroPadding2D(const Sizes& padding, const std::string& name) {
  return MakeLayer<EdgeLayer<2, false>>(padding, name);
}
LayerRef ZeroPadding3D(const Sizes& padding, const std::string& name) {
  return MakeLayer<EdgeLayer<3, false>>(padding, name);
}
LayerRef Cropping1D(const Sizes& cropping, const std::string& name) {
  return MakeLayer<EdgeLayer<1, true>>(cropping, name);
}
LayerRef Cropping2D(const Sizes& cropping, const std::string& name) {
  return MakeLayer<EdgeLayer<2, true>>(cropping, name);
}
LayerRef Cropping3D(const Sizes& cropping, const std::string& name) {
  return MakeLayer<EdgeLayer<3, true>>(cropping, name);
}
LayerRef UpSampling1D(int64_t size, const std::string& name) {
  return MakeLayer<UpSamplingLayer<1>>(UpSettings{Sizes(size), "nearest"}, name);
}
LayerRef UpSampling2D(const Sizes& size, const std::string& interpolation,
                      const std::string& name) {
  return MakeLayer<UpSamplingLayer<2>>(UpSettings{size, interpolation}, name);
}
LayerRef UpSampling3D(const Sizes& size, const std::string& name) {
  return MakeLayer<UpSamplingLayer<3>>(UpSettings{size, "nearest"}, name);
}
LayerRef Masking(double mask_value, const std::string& name) {
  return MakeLayer<MaskingLayer>(mask_value, name);
}

void AddReshapingLayers(LayerClasses& classes) {
  classes.Add<FlattenLayer>();
  classes.Add<ReshapeLayer>();
  classes.Add<PermuteLayer>();
  classes.Add<RepeatVectorLayer>();
  classes.Add<EdgeLayer<1, false>>();
  classes.Add<EdgeLayer<2, false>>();
  classes.Add<EdgeLayer<3, false>>();
  classes.Add<EdgeLayer<1, true>>();
  classes.Add<EdgeLayer<2, true>>();
  classes.Add<EdgeLayer<3, true>>();
  classes.Add<UpSamplingLayer<1>>();
  classes.Add<UpSamplingLayer<2>>();
  classes.Add<UpSamplingLayer<3>>();
  classes.Add<MaskingLayer>();
}

}  // namespace weft::estimator
