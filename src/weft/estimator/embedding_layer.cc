// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/embedding_layer.h"

#include <utility>

#include "weft/estimator/graph_writing.h"
#include "weft/estimator/layer_classes.h"

namespace weft::estimator {
namespace {

struct EmbeddingSettings {
  int64_t input_dim = 1, output_dim = 1;
  EmbeddingOptions o;
};

class EmbeddingLayer final : public Layer {
 public:
  EmbeddingLayer() = default;
  explicit EmbeddingLayer(EmbeddingSettings settings) : s_(std::move(settings)) {}
  const char* class_name() const override { return "Embedding"; }
  void Fields(ConfigFields& f) override {
    f.Field("input_dim", s_.input_dim);
    f.Field("output_dim", s_.output_dim);
    f.Field("embeddings_initializer", s_.o.embeddings_initializer);
    f.Field("embeddings_regularizer", s_.o.embeddings_regularizer);
    f.Field("embeddings_constraint", s_.o.embeddings_constraint);
    f.Field("mask_zero", s_.o.mask_zero);
  }

  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    Endpoint ids = in[0].tensor;
    if (TypeOf(ids) != DType::kInt64) ids = CastTo(b, ids, DType::kInt32);
    if (s_.input_dim < 1 || s_.output_dim < 1) {
      call.Fail(InvalidArgument("input_dim and output_dim must be at least 1"));
      return {};
    }
    const std::vector<train::Variable> table = call.TableOf(
        "embeddings", Shape{s_.input_dim, s_.output_dim},
        {s_.o.embeddings_initializer, s_.o.embeddings_regularizer, s_.o.embeddings_constraint});
    if (table.empty()) return {};
    Endpoint rows;
    if (table.size() == 1 && call.IsChanged(table[0])) {
      rows = b.Op("GatherV2", {call.ValueOf(table[0]), ids, b.Scalar<int32_t>(0)});
    } else {
      rows = train::EmbeddingLookup(b, table, ids);
    }
    if (table.size() > 1 &&
        b.ok()) {  // of rows from several parts the shape is not known otherwise
      PartialShape shape = b.ShapeOf(ids);
      shape.AddDim(s_.output_dim);
      rows = b.Op("EnsureShape", {rows}, {{"shape", shape}});
    }
    if (!s_.o.mask_zero) return {{rows, {}}};
    return {{rows, b.Op("NotEqual", {ids, NumberLike(b, ids, 0)})}};
  }

 private:
  EmbeddingSettings s_;
};

}  // namespace

LayerRef Embedding(int64_t input_dim, int64_t output_dim, const EmbeddingOptions& options) {
  return MakeLayer<EmbeddingLayer>(EmbeddingSettings{input_dim, output_dim, options}, options.name);
}

void AddEmbeddingLayers(LayerClasses& classes) { classes.Add<EmbeddingLayer>(); }

}  // namespace weft::estimator
