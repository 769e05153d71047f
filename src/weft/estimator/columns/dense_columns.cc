// SPDX-License-Identifier: Apache-2.0
// Columns that are numbers, embeddings or counts of categories.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

#include "weft/estimator/columns/feature_column.h"
#include "weft/estimator/graph_writing.h"

namespace weft::estimator {
namespace {

class Numeric final : public FeatureColumn {
 public:
  Numeric(std::string key, NumericOptions options)
      : key_(std::move(key)), options_(std::move(options)) {}
  std::string name() const override { return key_; }
  int64_t width() const override {
    int64_t width = 1;
    for (const int64_t size : options_.shape) width *= size;
    return width;
  }
  Endpoint DenseOf(ColumnCall& call) const override {
    GraphBuilder& b = call.b();
    const Feature feature = call.FeatureOf(key_);
    if (!b.ok()) return {};
    if (feature.is_sparse()) {
      call.Fail(key_, "the feature is sparse, expected a dense one");
      return {};
    }
    if (TypeOf(feature.values) == DType::kString || TypeOf(feature.values) == DType::kBool) {
      call.Fail(key_, absl::StrCat("the feature is ", DTypeName(TypeOf(feature.values)),
                                   ", expected numbers"));
      return {};
    }
    Endpoint x = CastTo(b, feature.values, DType::kFloat);
    if (options_.normalizer) x = options_.normalizer(b, x);
    if (!b.ok()) return {};
    const PartialShape shape = b.ShapeOf(x);
    int64_t known = 1;
    for (int axis = 1; axis < shape.rank(); ++axis) known *= std::max<int64_t>(shape.dim(axis), 0);
    if (known != 0 && known != width()) {
      call.Fail(key_, absl::StrCat("the feature has shape ", shape.ToString(), ", expected ",
                                   width(), " numbers an example"));
      return {};
    }
    return ReshapeTo(b, x, {-1, width()});
  }
  void AddTo(ExampleSpec* spec) const override {
    ExampleFeature feature{.dtype = DType::kFloat, .is_sparse = false};
    for (const int64_t size : options_.shape) feature.shape.AddDim(size);
    if (!options_.default_value.empty()) {
      std::vector<float> values(static_cast<size_t>(width()));
      for (size_t i = 0; i < values.size(); ++i) {
        const std::vector<double>& given = options_.default_value;
        values[i] = static_cast<float>(given[std::min(i, given.size() - 1)]);
      }
      feature.default_value = Tensor::FromSpan<float>(feature.shape, values);
    }
    (*spec)[key_] = feature;
  }

 private:
  const std::string key_;
  const NumericOptions options_;
};

class Bucketized final : public FeatureColumn {
 public:
  Bucketized(Column source, std::vector<float> boundaries)
      : source_(std::move(source)), boundaries_(std::move(boundaries)) {}
  std::string name() const override { return source_->name() + "_bucketized"; }
  int64_t num_buckets() const override { return num_ranges() * source_->width(); }
  int64_t width() const override { return num_buckets(); }
  Endpoint DenseOf(ColumnCall& call) const override {
    GraphBuilder& b = call.b();
    const Endpoint ranges = RangesOf(call);
    if (!b.ok()) return {};
    const Endpoint hot =
        b.Op("OneHot", {ranges, b.Scalar<int32_t>(static_cast<int32_t>(num_ranges())),
                        b.Scalar<float>(1), b.Scalar<float>(0)});
    return ReshapeTo(b, hot, {-1, width()});
  }
  Categories CategoriesOf(ColumnCall& call) const override {
    GraphBuilder& b = call.b();
    Endpoint ranges = CastTo(b, RangesOf(call), DType::kInt64);
    if (!b.ok()) return {};
    // Number i of an example has ranges of its own.
    std::vector<int64_t> firsts;
    for (int64_t i = 0; i < source_->width(); ++i) firsts.push_back(i * num_ranges());
    const Endpoint offsets =
        b.Constant(Tensor::FromSpan<int64_t>(Shape{1, source_->width()}, firsts));
    const Endpoint ids = b.Op("AddV2", {ranges, offsets});
    const Endpoint everywhere = b.Op(
        "Where", {b.Op("GreaterEqual", {ids, b.Op("ZerosLike", {ids})})}, {{"T", DType::kBool}});
    const Feature sparse(everywhere, b.Op("GatherNd", {ids, everywhere}),
                         b.Op("Shape", {ids}, {{"out_type", DType::kInt64}}));
    return call.CategoriesOf(sparse, sparse.values);
  }
  void AddTo(ExampleSpec* spec) const override { source_->AddTo(spec); }

 private:
  int64_t num_ranges() const { return static_cast<int64_t>(boundaries_.size()) + 1; }
  // [batch, numbers], int32.
  Endpoint RangesOf(ColumnCall& call) const {
    if (source_->num_buckets() != 0 || source_->width() == 0) {
      call.Fail(name(), "it stands on a column that is not numeric");
      return {};
    }
    if (boundaries_.empty() || !std::is_sorted(boundaries_.begin(), boundaries_.end())) {
      call.Fail(name(), "expected boundaries that rise");
      return {};
    }
    return call.b().Op("Bucketize", {source_->DenseOf(call)}, {{"boundaries", boundaries_}});
  }

  const Column source_;
  const std::vector<float> boundaries_;
};

class Embedded final : public FeatureColumn {
 public:
  Embedded(Column source, int64_t dimension, EmbeddingColumnOptions options)
      : source_(std::move(source)), dimension_(dimension), options_(std::move(options)) {}
  std::string name() const override { return source_->name() + "_embedding"; }
  int64_t width() const override { return dimension_; }
  Endpoint DenseOf(ColumnCall& call) const override {
    GraphBuilder& b = call.b();
    const std::string& combiner = options_.combiner;
    if (combiner != "mean" && combiner != "sqrtn" && combiner != "sum") {
      call.Fail(name(), absl::StrCat("there is no combiner '", combiner,
                                     "', expected \"mean\", \"sqrtn\" or \"sum\""));
      return {};
    }
    if (dimension_ < 1 || source_->num_buckets() < 1) {
      call.Fail(name(), absl::StrCat("cannot embed ", source_->num_buckets(), " categories in ",
                                     dimension_, " dimensions"));
      return {};
    }
    const Categories categories = source_->CategoriesOf(call);
    if (!b.ok()) return {};
    train::Initializer initial = options_.initializer;
    if (!initial) {
      initial = train::TruncatedNormal(0, 1 / std::sqrt(static_cast<float>(dimension_)));
    }
    b.PushName(name());
    const std::vector<train::Variable> rows = call.AddRows(
        "embedding_weights", source_->num_buckets(), dimension_, initial, options_.trainable);
    const Endpoint out = CombinedRows(call, rows, categories, combiner, options_.max_norm);
    b.PopName();
    return out;
  }
  void AddTo(ExampleSpec* spec) const override { source_->AddTo(spec); }

 private:
  const Column source_;
  const int64_t dimension_;
  const EmbeddingColumnOptions options_;
};

class Indicator final : public FeatureColumn {
 public:
  explicit Indicator(Column source) : source_(std::move(source)) {}
  std::string name() const override { return source_->name() + "_indicator"; }
  int64_t width() const override { return source_->num_buckets(); }
  Endpoint DenseOf(ColumnCall& call) const override {
    GraphBuilder& b = call.b();
    const Categories categories = source_->CategoriesOf(call);
    if (!b.ok()) return {};
    // Ids below 0 are nowhere hot.
    Endpoint hot = b.Op("OneHot", {categories.ids, b.Scalar<int32_t>(static_cast<int32_t>(width())),
                                   b.Scalar<float>(1), b.Scalar<float>(0)});
    if (categories.weights) hot = b.Op("Mul", {hot, ExpandDim(b, categories.weights, -1)});
    const Endpoint counts =
        b.Op("UnsortedSegmentSum", {hot, categories.examples, categories.batch});
    return ReshapeTo(b, counts, {-1, width()});
  }
  void AddTo(ExampleSpec* spec) const override { source_->AddTo(spec); }

 private:
  const Column source_;
};

}  // namespace

Column NumericColumn(const std::string& key, const NumericOptions& options) {
  return std::make_shared<Numeric>(key, options);
}
Column BucketizedColumn(const Column& numeric, const std::vector<float>& boundaries) {
  return std::make_shared<Bucketized>(numeric, boundaries);
}
Column EmbeddingColumn(const Column& categorical, int64_t dimension,
                       const EmbeddingColumnOptions& options) {
  return std::make_shared<Embedded>(categorical, dimension, options);
}
Column IndicatorColumn(const Column& categorical) {
  return std::make_shared<Indicator>(categorical);
}

}  // namespace weft::estimator
