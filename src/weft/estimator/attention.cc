// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/attention.h"

#include <cmath>
#include <utility>

#include "weft/estimator/dropout.h"
#include "weft/estimator/graph_writing.h"
#include "weft/estimator/kernel_fields.h"
#include "weft/estimator/layer_classes.h"

namespace weft::estimator {
namespace {

// Which keys a query may see: bool, broadcasts to [batch, queries, keys]; empty: all.
Endpoint WhatIsSeen(LayerCall& call, Endpoint query, Endpoint keys, Endpoint value_mask) {
  GraphBuilder& b = call.b();
  Endpoint seen;
  if (value_mask) seen = ExpandDim(b, value_mask, 1);
  if (call.arguments().use_causal_mask) {
    const auto counted = [&](Endpoint x) {
      return b.Op("Range", {b.Scalar<int32_t>(0), SizeOf(b, x, 1), b.Scalar<int32_t>(1)});
    };
    const Endpoint past = ExpandDim(
        b, b.Op("GreaterEqual", {ExpandDim(b, counted(query), 1), ExpandDim(b, counted(keys), 0)}),
        0);
    seen = seen ? b.Op("LogicalAnd", {seen, past}) : past;
  }
  return seen;
}

// scores, far below all others where nothing is seen.
Endpoint Hidden(GraphBuilder& b, Endpoint scores, Endpoint seen, double far) {
  const Endpoint there = CastTo(b, seen, DType::kFloat);
  const Endpoint away = b.Op("Sub", {Number(b, DType::kFloat, 1), there});
  return b.Op("Sub", {scores, b.Op("Mul", {away, Number(b, DType::kFloat, far)})});
}

bool CheckInputs(LayerCall& call, const std::vector<Value>& in) {
  if (in.size() != 2 && in.size() != 3) {
    call.Fail(InvalidArgument("got ", in.size(), " inputs, expected query, value and perhaps key"));
    return false;
  }
  for (const Value& value : in) {
    if (!call.CheckRank(value.tensor, 3)) return false;
    if (call.b().ShapeOf(value.tensor).dim(2) >= 0) continue;
    call.Fail(InvalidArgument("expected inputs of known features, got ",
                              call.b().ShapeOf(value.tensor).ToString()));
    return false;
  }
  return true;
}

template <bool kAdditive>
class AttentionLayer final : public Layer {
 public:
  AttentionLayer() { o_.use_scale = kAdditive; }
  explicit AttentionLayer(AttentionOptions options) : o_(std::move(options)) {}
  const char* class_name() const override { return kAdditive ? "AdditiveAttention" : "Attention"; }
  InputStyle input_style() const override { return InputStyle::kList; }
  void Fields(ConfigFields& f) override {
    f.Field("use_scale", o_.use_scale);
    if (!kAdditive) f.Fixed("score_mode", "dot");
    f.Field("dropout", o_.dropout);
  }

  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    if (!CheckInputs(call, in)) return {};
    const Endpoint query = in[0].tensor, value = in[1].tensor;
    const Endpoint key = in.size() == 3 ? in[2].tensor : value;
    Endpoint scores = kAdditive ? Sums(call, query, key) : Products(call, query, key);
    const Endpoint seen = WhatIsSeen(call, query, key, in[1].mask);
    if (seen) scores = Hidden(b, scores, seen, 1e9);
    const Endpoint weights = DropOut(call, b.Op("Softmax", {scores}), o_.dropout);
    Endpoint out = b.Op("BatchMatMulV2", {weights, value});
    if (in[0].mask) {
      out = b.Op("Mul", {out, ExpandDim(b, CastTo(b, in[0].mask, DType::kFloat), 2)});
    }
    return {{out, in[0].mask}};
  }

 private:
  Endpoint Products(LayerCall& call, Endpoint query, Endpoint key) {
    GraphBuilder& b = call.b();
    const Endpoint scores = b.Op("BatchMatMulV2", {query, key}, {{"adj_y", true}});
    if (!o_.use_scale) return scores;
    return b.Op("Mul", {scores, call.WeightOf("scale", Shape(), {.initializer = "ones"})});
  }

  Endpoint Sums(LayerCall& call, Endpoint query, Endpoint key) {
    GraphBuilder& b = call.b();
    Endpoint terms = b.Op("Tanh", {b.Op("AddV2", {ExpandDim(b, query, 2), ExpandDim(b, key, 1)})});
    if (o_.use_scale) {
      const Shape features{b.ShapeOf(query).dim(2)};
      terms = b.Op("Mul", {terms, call.WeightOf("scale", features, {})});
    }
    return Reduce(b, "Sum", terms, {-1});
  }

  AttentionOptions o_;
};

struct HeadSettings {
  int64_t num_heads = 1, key_dim = 1;
  int64_t num_shared = 1;  // heads of key and value, of grouped ones
  MultiHeadAttentionOptions o;
};

template <bool kGrouped>
class HeadsLayer final : public Layer {
 public:
  HeadsLayer() = default;
  explicit HeadsLayer(HeadSettings settings) : s_(std::move(settings)) {}
  const char* class_name() const override {
    return kGrouped ? "GroupQueryAttention" : "MultiHeadAttention";
  }
  const char* named_after() const override {
    return kGrouped ? "GroupedQueryAttention" : class_name();
  }
  InputStyle input_style() const override { return InputStyle::kArguments; }
  void Fields(ConfigFields& f) override {
    f.Field("dropout", s_.o.dropout);
    f.Field("use_bias", s_.o.use_bias);
    KernelFields(f, s_.o);
    if (kGrouped) {
      f.Field("head_dim", s_.key_dim);
      f.Field("num_query_heads", s_.num_heads);
      f.Field("num_key_value_heads", s_.num_shared);
      return;
    }
    f.Field("num_heads", s_.num_heads);
    f.Field("key_dim", s_.key_dim);
    f.OptionalSize("value_dim", s_.o.value_dim);
    Json output = s_.o.output_dim < 0 ? Json() : Json(s_.o.output_dim);
    f.Raw("output_shape", output);
    if (output.is_array() && output.size() == 1) output = Json(output.items()[0]);
    if (output.is_int()) s_.o.output_dim = output.AsInt().value_or(-1);
    if (f.keras() != 2) return;
    // Keras 2 reads them and takes null for "when it is called".
    for (const char* name : {"query_shape", "key_shape", "value_shape"}) {
      Json none;
      f.Raw(name, none);
    }
  }

  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    if (!CheckInputs(call, in)) return {};
    if (s_.num_heads < 1 || s_.key_dim < 1) {
      call.Fail(InvalidArgument("num_heads and key_dim must be at least 1"));
      return {};
    }
    const int64_t shared = kGrouped ? s_.num_shared : s_.num_heads;
    if (shared < 1 || s_.num_heads % shared != 0) {
      call.Fail(InvalidArgument("num_key_value_heads is ", shared, ", expected a divisor of the ",
                                s_.num_heads, " heads of the query"));
      return {};
    }
    const Endpoint x = in[0].tensor, values = in[1].tensor;
    const Endpoint keys = in.size() == 3 ? in[2].tensor : values;
    const int64_t value_dim = s_.o.value_dim < 0 ? s_.key_dim : s_.o.value_dim;
    Endpoint query = Heads(call, x, "query", s_.num_heads, s_.key_dim);
    const Endpoint key = Repeated(b, Heads(call, keys, "key", shared, s_.key_dim));
    const Endpoint value = Repeated(b, Heads(call, values, "value", shared, value_dim));
    if (!b.ok()) return {};
    query = b.Op("Mul",
                 {query, Number(b, DType::kFloat, 1 / std::sqrt(static_cast<double>(s_.key_dim)))});
    Endpoint scores = b.Op("BatchMatMulV2", {query, key}, {{"adj_y", true}});
    const Endpoint seen = WhatIsSeen(call, x, keys, in[1].mask);
    if (seen) scores = Hidden(b, scores, ExpandDim(b, seen, 1), 1e9);
    const Endpoint weights = DropOut(call, b.Op("Softmax", {scores}), s_.o.dropout);
    const Endpoint heads = TransposeTo(b, b.Op("BatchMatMulV2", {weights, value}), {0, 2, 1, 3});
    return {{Joined(call, heads, x, value_dim), in[0].mask}};
  }

 private:
  // [batch, time, features] as [batch, heads, time, size].
  Endpoint Heads(LayerCall& call, Endpoint x, const std::string& name, int64_t heads,
                 int64_t size) {
    GraphBuilder& b = call.b();
    const int64_t features = b.ShapeOf(x).dim(2);
    const InnerLayer inner(call, name, name + "_dense");
    const Endpoint kernel = call.WeightOf("kernel", Shape{features, heads, size}, KernelOf(s_.o));
    Endpoint y = b.Op("MatMul", {ReshapeTo(b, x, {-1, features}),
                                 ReshapeTo(b, kernel, {features, heads * size})});
    if (s_.o.use_bias) {
      const Endpoint bias = call.WeightOf("bias", Shape{heads, size}, BiasOf(s_.o));
      y = b.Op("BiasAdd", {y, ReshapeTo(b, bias, {-1})});
    }
    return TransposeTo(b, WithTime(b, y, x, {heads, size}), {0, 2, 1, 3});
  }

  // Heads that several of the query share, once for each of these.
  Endpoint Repeated(GraphBuilder& b, Endpoint heads) const {
    if (!kGrouped || s_.num_shared == s_.num_heads) return heads;
    std::vector<int64_t> which;
    for (int64_t i = 0; i < s_.num_heads; ++i) which.push_back(i * s_.num_shared / s_.num_heads);
    return b.Op("GatherV2", {heads, IntVector(b, which), b.Scalar<int32_t>(1)});
  }

  // [batch * time, ...] as x's [batch, time] + `rest`.
  static Endpoint WithTime(GraphBuilder& b, Endpoint y, Endpoint x, std::vector<int64_t> rest) {
    const int64_t time = b.ShapeOf(x).dim(1);
    if (time >= 0) {
      rest.insert(rest.begin(), {-1, time});
      return ReshapeTo(b, y, rest);
    }
    std::vector<Endpoint> sizes = {SizeOf(b, x, 0), SizeOf(b, x, 1)};
    for (const int64_t size : rest) sizes.push_back(b.Scalar<int32_t>(static_cast<int32_t>(size)));
    return b.Op("Reshape", {y, b.Op("Pack", {sizes})});
  }

  Endpoint Joined(LayerCall& call, Endpoint heads, Endpoint x, int64_t value_dim) {
    GraphBuilder& b = call.b();
    const int64_t outputs = s_.o.output_dim < 0 ? b.ShapeOf(x).dim(2) : s_.o.output_dim;
    const int64_t width = s_.num_heads * value_dim;
    const InnerLayer inner(call, "attention_output", "output_dense");
    const Endpoint kernel =
        call.WeightOf("kernel", Shape{s_.num_heads, value_dim, outputs}, KernelOf(s_.o));
    Endpoint y =
        b.Op("MatMul", {ReshapeTo(b, heads, {-1, width}), ReshapeTo(b, kernel, {width, outputs})});
    if (s_.o.use_bias) {
      y = b.Op("BiasAdd", {y, call.WeightOf("bias", Shape{outputs}, BiasOf(s_.o))});
    }
    return WithTime(b, y, x, {outputs});
  }

  HeadSettings s_;
};

}  // namespace

LayerRef Attention(const AttentionOptions& options) {
  return MakeLayer<AttentionLayer<false>>(options, options.name);
}
LayerRef AdditiveAttention(const AttentionOptions& options) {
  return MakeLayer<AttentionLayer<true>>(options, options.name);
}
LayerRef MultiHeadAttention(int64_t num_heads, int64_t key_dim,
                            const MultiHeadAttentionOptions& options) {
  return MakeLayer<HeadsLayer<false>>(HeadSettings{num_heads, key_dim, num_heads, options},
                                      options.name);
}
LayerRef GroupQueryAttention(int64_t head_dim, int64_t num_query_heads, int64_t num_key_value_heads,
                             const MultiHeadAttentionOptions& options) {
  HeadSettings settings{num_query_heads, head_dim, num_key_value_heads, options};
  settings.o.value_dim = settings.o.output_dim = -1;
  return MakeLayer<HeadsLayer<true>>(std::move(settings), options.name);
}

void AddAttentionLayers(LayerClasses& classes) {
  classes.Add<AttentionLayer<false>>();
  classes.Add<AttentionLayer<true>>();
  classes.Add<HeadsLayer<false>>();
  classes.Add<HeadsLayer<true>>();
}

}  // namespace weft::estimator
