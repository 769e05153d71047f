// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/merging.h"

#include <utility>

#include "weft/estimator/graph_writing.h"
#include "weft/estimator/layer_classes.h"

namespace weft::estimator {
namespace {

enum class Merge { kAdd, kSubtract, kMultiply, kAverage, kMaximum, kMinimum };

struct MergeKind {
  const char* class_name;
  const char* op;
};

MergeKind KindOf(Merge merge) {
  static const MergeKind kKinds[] = {{"Add", "AddV2"},       {"Subtract", "Sub"},
                                     {"Multiply", "Mul"},    {"Average", "AddV2"},
                                     {"Maximum", "Maximum"}, {"Minimum", "Minimum"}};
  return kKinds[static_cast<int>(merge)];
}

// There where all inputs with a mask are.
Endpoint MaskOfAll(GraphBuilder& b, const std::vector<Value>& in) {
  Endpoint all;
  for (const Value& value : in) {
    if (!value.mask) continue;
    all = all ? b.Op("LogicalAnd", {all, value.mask}) : value.mask;
  }
  return all;
}

template <Merge kMerge>
class MergeLayer final : public Layer {
 public:
  const char* class_name() const override { return KindOf(kMerge).class_name; }
  InputStyle input_style() const override { return InputStyle::kList; }
  void Fields(ConfigFields&) override {}
  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    if (in.size() < 2 || (kMerge == Merge::kSubtract && in.size() != 2)) {
      call.Fail(InvalidArgument("got ", in.size(), " inputs, expected ",
                                kMerge == Merge::kSubtract ? "two" : "two or more"));
      return {};
    }
    Endpoint merged = in[0].tensor;
    for (size_t i = 1; i < in.size(); ++i) {
      merged = b.Op(KindOf(kMerge).op, {merged, in[i].tensor});
    }
    if (kMerge == Merge::kAverage) {
      merged = b.Op("Mul", {merged, NumberLike(b, merged, 1.0 / static_cast<double>(in.size()))});
    }
    return {{merged, MaskOfAll(b, in)}};
  }
};

class ConcatenateLayer final : public Layer {
 public:
  explicit ConcatenateLayer(int64_t axis = -1) : axis_(axis) {}
  const char* class_name() const override { return "Concatenate"; }
  InputStyle input_style() const override { return InputStyle::kList; }
  void Fields(ConfigFields& f) override { f.Field("axis", axis_); }
  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    std::vector<Endpoint> parts;
    for (const Value& value : in) parts.push_back(value.tensor);
    const int rank = b.ShapeOf(parts[0]).rank();
    if (rank < 1 || axis_ < -rank || axis_ >= rank) {
      call.Fail(InvalidArgument("axis ", axis_, " of inputs of rank ", rank));
      return {};
    }
    const bool along_features = rank >= 3 && (axis_ < 0 ? axis_ + rank : axis_) == rank - 1;
    return {{Concat(b, parts, axis_), along_features ? MaskOfAll(b, in) : Endpoint()}};
  }

 private:
  int64_t axis_;
};

class DotLayer final : public Layer {
 public:
  DotLayer() = default;
  explicit DotLayer(std::pair<Sizes, DotOptions> settings)
      : axes_(std::move(settings.first)), normalize_(settings.second.normalize) {}
  const char* class_name() const override { return "Dot"; }
  InputStyle input_style() const override { return InputStyle::kList; }
  void Fields(ConfigFields& f) override {
    f.Field("axes", axes_);
    f.Field("normalize", normalize_);
  }
  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    if (in.size() != 2) {
      call.Fail(InvalidArgument("got ", in.size(), " inputs, expected two"));
      return {};
    }
    const auto axes = axes_.ForAxes(2, "axes", -100);
    if (!axes.ok()) return call.Fail(axes.status()), std::vector<Value>();
    std::string terms[2], result = "a";
    Endpoint sides[2];
    for (int side = 0; side < 2; ++side) {
      sides[side] = in[side].tensor;
      const int rank = b.ShapeOf(sides[side]).rank();
      const int64_t axis = (*axes)[side] < 0 ? (*axes)[side] + rank : (*axes)[side];
      if (axis < 1 || axis >= rank || rank > 8) {
        call.Fail(InvalidArgument("axis ", (*axes)[side], " of an input of shape ",
                                  b.ShapeOf(sides[side]).ToString()));
        return {};
      }
      for (int i = 0; i < rank; ++i) {
        const char letter = i == 0 ? 'a' : i == axis ? 'z' : static_cast<char>('b' + i + 8 * side);
        terms[side] += letter;
        if (letter != 'a' && letter != 'z') result += letter;
      }
      if (normalize_) sides[side] = Normalized(b, sides[side], axis);
    }
    Endpoint y = b.Op("Einsum", {std::vector<Endpoint>{sides[0], sides[1]}},
                      {{"equation", terms[0] + "," + terms[1] + "->" + result}});
    if (result.size() == 1) y = ExpandDim(b, y, 1);
    return {{y, {}}};
  }

 private:
  static Endpoint Normalized(GraphBuilder& b, Endpoint x, int64_t axis) {
    const Endpoint squares = Reduce(b, "Sum", b.Op("Square", {x}), {axis}, true);
    const Endpoint least = b.Op("Maximum", {squares, NumberLike(b, x, 1e-12)});
    return b.Op("Mul", {x, b.Op("Rsqrt", {least})});
  }

  Sizes axes_ = -1;
  bool normalize_ = false;
};

template <Merge kMerge>
LayerRef MakeMerge(const std::string& name) {
  LayerRef layer(std::make_shared<MergeLayer<kMerge>>());
  layer->set_name(name);
  return layer;
}

}  // namespace

LayerRef Add(const std::string& name) { return MakeMerge<Merge::kAdd>(name); }
LayerRef Subtract(const std::string& name) { return MakeMerge<Merge::kSubtract>(name); }
LayerRef Multiply(const std::string& name) { return MakeMerge<Merge::kMultiply>(name); }
LayerRef Average(const std::string& name) { return MakeMerge<Merge::kAverage>(name); }
LayerRef Maximum(const std::string& name) { return MakeMerge<Merge::kMaximum>(name); }
LayerRef Minimum(const std::string& name) { return MakeMerge<Merge::kMinimum>(name); }
LayerRef Concatenate(int64_t axis, const std::string& name) {
  return MakeLayer<ConcatenateLayer>(axis, name);
}
LayerRef Dot(const Sizes& axes, const DotOptions& options) {
  return MakeLayer<DotLayer>(std::pair(axes, options), options.name);
}

void AddMergingLayers(LayerClasses& classes) {
  classes.Add<MergeLayer<Merge::kAdd>>();
  classes.Add<MergeLayer<Merge::kSubtract>>();
  classes.Add<MergeLayer<Merge::kMultiply>>();
  classes.Add<MergeLayer<Merge::kAverage>>();
  classes.Add<MergeLayer<Merge::kMaximum>>();
  classes.Add<MergeLayer<Merge::kMinimum>>();
  classes.Add<ConcatenateLayer>();
  classes.Add<DotLayer>();
}

}  // namespace weft::estimator
