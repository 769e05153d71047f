// SPDX-License-Identifier: Apache-2.0
// Columns whose values are categories: hashed, of a vocabulary, numbered, crossed, weighted.
#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "weft/estimator/checks.h"
#include "weft/estimator/columns/feature_column.h"
#include "weft/estimator/graph_writing.h"
#include "weft/estimator/vocabulary.h"

namespace weft::estimator {
namespace {

// As TensorFlow hashes: whole numbers by their text.
Endpoint HashOf(GraphBuilder& b, Endpoint values, int64_t buckets) {
  if (TypeOf(values) != DType::kString) values = b.Op("AsString", {values});
  return b.Op("StringToHashBucketFast", {values}, {{"num_buckets", buckets}});
}

class Hashed final : public FeatureColumn {
 public:
  Hashed(std::string key, int64_t buckets, DType dtype)
      : key_(std::move(key)), buckets_(buckets), dtype_(dtype) {}
  std::string name() const override { return key_; }
  int64_t num_buckets() const override { return buckets_; }
  Categories CategoriesOf(ColumnCall& call) const override {
    if (buckets_ < 1) call.Fail(key_, absl::StrCat("hash_bucket_size is ", buckets_));
    const Feature sparse = call.SparseOf(key_, key_);
    if (!call.b().ok()) return {};
    const bool is_text = TypeOf(sparse.values) == DType::kString;
    if (is_text != (dtype_ == DType::kString)) {
      call.Fail(key_, absl::StrCat("the feature is ", DTypeName(TypeOf(sparse.values)),
                                   ", expected ", DTypeName(dtype_)));
      return {};
    }
    return call.CategoriesOf(sparse, HashOf(call.b(), sparse.values, buckets_));
  }
  void AddTo(ExampleSpec* spec) const override {
    (*spec)[key_] = {.dtype = dtype_ == DType::kString ? dtype_ : DType::kInt64};
  }

 private:
  const std::string key_;
  const int64_t buckets_;
  const DType dtype_;
};

class Numbered final : public FeatureColumn {
 public:
  Numbered(std::string key, int64_t buckets, int64_t default_value)
      : key_(std::move(key)), buckets_(buckets), default_(default_value) {}
  std::string name() const override { return key_; }
  int64_t num_buckets() const override { return buckets_; }
  Categories CategoriesOf(ColumnCall& call) const override {
    GraphBuilder& b = call.b();
    const Feature sparse = call.SparseOf(key_, key_);
    if (!b.ok()) return {};
    if (TypeOf(sparse.values) == DType::kString) {
      call.Fail(key_, "the feature is string, expected whole numbers");
      return {};
    }
    if (default_ >= buckets_) {
      call.Fail(key_, absl::StrCat("default_value ", default_, " is not in [0, ", buckets_, ")"));
      return {};
    }
    Endpoint ids = CastTo(b, sparse.values, DType::kInt64);
    if (default_ >= 0) {
      const Endpoint low = b.Op("Less", {ids, b.Scalar<int64_t>(0)});
      const Endpoint high = b.Op("GreaterEqual", {ids, b.Scalar<int64_t>(buckets_)});
      const Endpoint usual = b.Op("Fill", {b.Op("Shape", {ids}), b.Scalar<int64_t>(default_)});
      ids = b.Op("SelectV2", {b.Op("LogicalOr", {low, high}), usual, ids});
    } else {
      ids = InRange(b, ids, buckets_, absl::StrCat("Feature column '", key_, "' has values"));
    }
    return call.CategoriesOf(sparse, ids);
  }
  void AddTo(ExampleSpec* spec) const override { (*spec)[key_] = {.dtype = DType::kInt64}; }

 private:
  const std::string key_;
  const int64_t buckets_, default_;
};

class OfVocabulary final : public FeatureColumn {
 public:
  OfVocabulary(std::string key, Vocabulary vocabulary, const VocabularyOptions& options)
      : key_(std::move(key)), vocabulary_(std::move(vocabulary)), options_(options) {}
  std::string name() const override { return key_; }
  int64_t num_buckets() const override {
    return vocabulary_.size() + std::max<int64_t>(options_.num_oov_buckets, 0);
  }
  Categories CategoriesOf(ColumnCall& call) const override {
    GraphBuilder& b = call.b();
    if (vocabulary_.size() == 0) call.Fail(key_, "its vocabulary is empty");
    if (options_.default_value != -1 && options_.num_oov_buckets > 0) {
      call.Fail(key_, "there are a default_value and num_oov_buckets, expected one of them");
    }
    if (options_.default_value < -1 || options_.default_value >= vocabulary_.size()) {
      call.Fail(key_, absl::StrCat("default_value ", options_.default_value, " is not in [-1, ",
                                   vocabulary_.size(), ")"));
    }
    const Feature sparse = call.SparseOf(key_, key_);
    if (!b.ok()) return {};
    const bool is_text = TypeOf(sparse.values) == DType::kString;
    if (is_text != vocabulary_.is_text()) {
      call.Fail(key_, absl::StrCat("the feature is ", DTypeName(TypeOf(sparse.values)),
                                   ", and its vocabulary of ",
                                   vocabulary_.is_text() ? "strings" : "whole numbers"));
      return {};
    }
    const Endpoint words = is_text ? sparse.values : CastTo(b, sparse.values, DType::kInt64);
    Endpoint ids =
        vocabulary_.IdsOf(call.program(), call.assets(), words, key_, options_.default_value);
    if (options_.num_oov_buckets > 0) {
      const Endpoint unknown = b.Op("Less", {ids, b.Op("ZerosLike", {ids})});
      const Endpoint hashed = b.Op("AddV2", {HashOf(b, words, options_.num_oov_buckets),
                                             b.Scalar<int64_t>(vocabulary_.size())});
      ids = b.Op("SelectV2", {unknown, hashed, ids});
    }
    return call.CategoriesOf(sparse, ids);
  }
  void AddTo(ExampleSpec* spec) const override {
    (*spec)[key_] = {.dtype = vocabulary_.is_text() ? DType::kString : DType::kInt64};
  }

 private:
  const std::string key_;
  const Vocabulary vocabulary_;
  const VocabularyOptions options_;
};

class Crossed final : public FeatureColumn {
 public:
  Crossed(std::vector<CrossedKey> keys, int64_t buckets, int64_t hash_key)
      : keys_(std::move(keys)), buckets_(buckets), hash_key_(hash_key) {}
  std::string name() const override {
    std::set<std::string> names;
    for (const CrossedKey& key : Leaves())
      names.insert(key.column() ? key.column()->name() : key.key());
    return absl::StrJoin(names, "_X_");
  }
  int64_t num_buckets() const override { return buckets_; }
  // The keys, those of crossed columns in place of these.
  std::vector<CrossedKey> Leaves() const {
    std::vector<CrossedKey> leaves;
    for (const CrossedKey& key : keys_) {
      const auto* inner = dynamic_cast<const Crossed*>(key.column().get());
      if (inner == nullptr) {
        leaves.push_back(key);
        continue;
      }
      const std::vector<CrossedKey> own = inner->Leaves();
      leaves.insert(leaves.end(), own.begin(), own.end());
    }
    return leaves;
  }
  Categories CategoriesOf(ColumnCall& call) const override {
    GraphBuilder& b = call.b();
    if (keys_.size() < 2) call.Fail(name(), "expected two keys or more");
    if (buckets_ < 1) call.Fail(name(), absl::StrCat("hash_bucket_size is ", buckets_));
    std::vector<Endpoint> indices, values, shapes, dense;
    bool all_text = true;
    const auto as_number = [&](Endpoint x) {
      if (TypeOf(x) == DType::kString) return x;
      all_text = false;
      return CastTo(b, x, DType::kInt64);
    };
    for (const CrossedKey& key : Leaves()) {
      if (!b.ok()) return {};
      Feature feature;
      if (key.column()) {
        if (dynamic_cast<const Hashed*>(key.column().get()) != nullptr ||
            key.column()->num_buckets() == 0) {
          call.Fail(name(), absl::StrCat("cannot cross '", key.column()->name(),
                                         "': expected a feature's name or a categorical column "
                                         "that is not hashed"));
          return {};
        }
        const Categories of = key.column()->CategoriesOf(call);
        if (!b.ok()) return {};
        feature = ThoseThere(b, of);
      } else {
        feature = call.FeatureOf(key.key());
      }
      if (!b.ok()) return {};
      if (!feature.is_sparse()) {
        dense.push_back(as_number(feature.values));
        continue;
      }
      indices.push_back(feature.indices);
      values.push_back(as_number(feature.values));
      shapes.push_back(feature.dense_shape);
    }
    Node* crossed = b.AddNode("SparseCross", {indices, values, shapes, dense},
                              {{"N", static_cast<int64_t>(indices.size())},
                               {"hashed_output", true},
                               {"num_buckets", buckets_},
                               {"hash_key", hash_key_},
                               {"sparse_types", TypesOf(values)},
                               {"dense_types", TypesOf(dense)},
                               {"out_type", DType::kInt64},
                               {"internal_type", all_text ? DType::kString : DType::kInt64}});
    if (crossed == nullptr) return {};
    const Feature sparse(Endpoint{crossed, 0}, Endpoint{crossed, 1}, Endpoint{crossed, 2});
    return call.CategoriesOf(sparse, sparse.values);
  }
  void AddTo(ExampleSpec* spec) const override {
    for (const CrossedKey& key : Leaves()) {
      if (key.column()) {
        key.column()->AddTo(spec);
      } else {
        (*spec)[key.key()] = {.dtype = DType::kString};
      }
    }
  }

 private:
  static std::vector<DType> TypesOf(const std::vector<Endpoint>& tensors) {
    std::vector<DType> types;
    for (const Endpoint& tensor : tensors) types.push_back(TypeOf(tensor));
    return types;
  }
  // A sparse matrix of the ids.
  static Feature ThoseThere(GraphBuilder& b, const Categories& of) {
    const std::vector<Endpoint> columns = {of.examples, of.places};
    const Endpoint indices = b.Op("Pack", {columns}, {{"axis", 1}});
    // As wide as the last place asks for.
    const Endpoint one = b.Constant(Tensor::Vector<int64_t>({1}));
    const Endpoint zero_first = b.Op(
        "ConcatV2", {std::vector<Endpoint>{b.Constant(Tensor::Vector<int64_t>({0})), of.places},
                     b.Scalar<int32_t>(0)});
    const Endpoint last = Reduce(b, "Max", zero_first, {0}, /*keep=*/true);
    const std::vector<Endpoint> sizes = {ReshapeTo(b, of.batch, {1}), b.Op("AddV2", {last, one})};
    return Feature(indices, of.ids, b.Op("ConcatV2", {sizes, b.Scalar<int32_t>(0)}));
  }

  const std::vector<CrossedKey> keys_;
  const int64_t buckets_, hash_key_;
};

class Weighted final : public FeatureColumn {
 public:
  Weighted(Column source, std::string weight_key)
      : source_(std::move(source)), weight_key_(std::move(weight_key)) {}
  std::string name() const override {
    return absl::StrCat(source_->name(), "_weighted_by_", weight_key_);
  }
  int64_t num_buckets() const override { return source_->num_buckets(); }
  Categories CategoriesOf(ColumnCall& call) const override {
    GraphBuilder& b = call.b();
    Categories categories = source_->CategoriesOf(call);
    const Feature weights = call.FeatureOf(weight_key_);
    if (!b.ok()) return {};
    if (TypeOf(weights.values) == DType::kString) {
      call.Fail(name(), "the weights are strings, expected numbers");
      return {};
    }
    const Endpoint values = CastTo(b, weights.values, DType::kFloat);
    if (weights.is_sparse()) {
      categories.weights = values;
    } else {
      const std::vector<Endpoint> columns = {categories.examples, categories.places};
      categories.weights = b.Op("GatherNd", {values, b.Op("Pack", {columns}, {{"axis", 1}})});
    }
    return categories;
  }
  void AddTo(ExampleSpec* spec) const override {
    source_->AddTo(spec);
    (*spec)[weight_key_] = {.dtype = DType::kFloat};
  }

 private:
  const Column source_;
  const std::string weight_key_;
};

}  // namespace

Column CategoricalColumnWithHashBucket(const std::string& key, int64_t hash_bucket_size,
                                       DType dtype) {
  return std::make_shared<Hashed>(key, hash_bucket_size, dtype);
}
Column CategoricalColumnWithIdentity(const std::string& key, int64_t num_buckets,
                                     int64_t default_value) {
  return std::make_shared<Numbered>(key, num_buckets, default_value);
}
Column CategoricalColumnWithVocabularyList(const std::string& key,
                                           const std::vector<std::string>& vocabulary,
                                           const VocabularyOptions& options) {
  return std::make_shared<OfVocabulary>(key, Vocabulary(vocabulary), options);
}
Column CategoricalColumnWithVocabularyNumbers(const std::string& key,
                                              const std::vector<int64_t>& vocabulary,
                                              const VocabularyOptions& options) {
  return std::make_shared<OfVocabulary>(key, Vocabulary(vocabulary), options);
}
StatusOr<Column> CategoricalColumnWithVocabularyFile(const std::string& key,
                                                     const std::string& path, int64_t size,
                                                     const VocabularyOptions& options) {
  WEFT_ASSIGN_OR_RETURN(Vocabulary vocabulary, Vocabulary::OfFile(path, size));
  return Column(std::make_shared<OfVocabulary>(key, std::move(vocabulary), options));
}
Column CrossedColumn(const std::vector<CrossedKey>& keys, int64_t hash_bucket_size,
                     int64_t hash_key) {
  return std::make_shared<Crossed>(keys, hash_bucket_size, hash_key);
}
Column WeightedCategoricalColumn(const Column& categorical, const std::string& weight_key) {
  return std::make_shared<Weighted>(categorical, weight_key);
}

}  // namespace weft::estimator
