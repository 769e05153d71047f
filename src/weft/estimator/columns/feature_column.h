// SPDX-License-Identifier: Apache-2.0
// TensorFlow's feature columns: what a model takes of the features of a batch, and in which form.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weft/estimator/columns/column_call.h"
#include "weft/train/variable.h"

namespace weft::estimator {

// Holds settings only. A dense column has a width and gives [batch, width]; a categorical one has
// buckets and gives the ids of each example, [0, buckets). Immutable.
class FeatureColumn {
 public:
  virtual ~FeatureColumn() = default;
  // TensorFlow's name, after which variables are named: "age_bucketized", "city_embedding".
  virtual std::string name() const = 0;
  virtual int64_t num_buckets() const { return 0; }  // 0: not categorical
  virtual int64_t width() const { return 0; }        // 0: not dense
  // Errors, which name the column, go to the builder.
  virtual Categories CategoriesOf(ColumnCall& call) const;
  virtual Endpoint DenseOf(ColumnCall& call) const;
  // Adds the features that it reads, as they stand in serialized examples.
  virtual void AddTo(ExampleSpec* spec) const = 0;
};

using Column = std::shared_ptr<const FeatureColumn>;

struct NumericOptions {
  std::vector<int64_t> shape = {1};
  std::vector<double> default_value = {};  // of examples without it: one for all, or one each
  // What each value goes through first.
  std::function<Endpoint(GraphBuilder&, Endpoint)> normalizer = nullptr;
};
Column NumericColumn(const std::string& key, const NumericOptions& options = {});
// Which range of (..., boundaries[0]), [boundaries[0], boundaries[1]), ... each number of a numeric
// column lies in: one-hot as a dense column, an id as a categorical one.
Column BucketizedColumn(const Column& numeric, const std::vector<float>& boundaries);

// Of strings, or of whole numbers as text.
Column CategoricalColumnWithHashBucket(const std::string& key, int64_t hash_bucket_size,
                                       DType dtype = DType::kString);
// Values outside of the range are an error, or `default_value` where that is not -1.
Column CategoricalColumnWithIdentity(const std::string& key, int64_t num_buckets,
                                     int64_t default_value = -1);

struct VocabularyOptions {
  int64_t default_value = -1;   // of words that the vocabulary has not; -1: such words are left out
  int64_t num_oov_buckets = 0;  // or they are hashed to so many ids behind the vocabulary's
};
Column CategoricalColumnWithVocabularyList(const std::string& key,
                                           const std::vector<std::string>& vocabulary,
                                           const VocabularyOptions& options = {});
Column CategoricalColumnWithVocabularyNumbers(const std::string& key,
                                              const std::vector<int64_t>& vocabulary,
                                              const VocabularyOptions& options = {});
// One word a line; the first `size` of them (0: all, which are counted when the column is made).
StatusOr<Column> CategoricalColumnWithVocabularyFile(const std::string& key,
                                                     const std::string& path, int64_t size = 0,
                                                     const VocabularyOptions& options = {});

// What a key of a crossed column is: a feature's name, or a categorical column that is not hashed.
class CrossedKey {
 public:
  CrossedKey(const char* key) : key_(key) {}                 // NOLINT: a name is a key
  CrossedKey(std::string key) : key_(std::move(key)) {}      // NOLINT
  CrossedKey(Column column) : column_(std::move(column)) {}  // NOLINT: so is a column
  const std::string& key() const { return key_; }
  const Column& column() const { return column_; }

 private:
  std::string key_;
  Column column_;
};
// Each combination of the values of `keys`, hashed as TensorFlow does.
Column CrossedColumn(const std::vector<CrossedKey>& keys, int64_t hash_bucket_size,
                     int64_t hash_key = 0xDECAFCAFFE);
// Each category counts as much as the feature `weight_key`, of the same shape, says.
Column WeightedCategoricalColumn(const Column& categorical, const std::string& weight_key);

// A row of numbers that is learned for each category; those of one example are combined to one.
struct EmbeddingColumnOptions {
  std::string combiner = "mean";             // or "sqrtn" or "sum"
  train::Initializer initializer = nullptr;  // null: truncated normal of 1 / sqrt(dimension)
  double max_norm = 0;                       // longer rows are shortened to it; 0: none is
  bool trainable = true;
};
Column EmbeddingColumn(const Column& categorical, int64_t dimension,
                       const EmbeddingColumnOptions& options = {});
// How often an example has each category.
Column IndicatorColumn(const Column& categorical);

// What the features of `columns` are in serialized examples.
ExampleSpec MakeExampleSpec(const std::vector<Column>& columns);

// The dense columns side by side, in the order of their names: [batch, sum of widths]. Fails for a
// column that is not dense.
Endpoint DenseFeatures(ColumnCall& call, const std::vector<Column>& columns);

struct LinearModelOptions {
  int64_t units = 1;
  std::string sparse_combiner = "sum";  // of the weights of one example's categories
  // False leaves the bias out.
  bool use_bias = true;
};
// The sum of the columns' weighted values and a bias: [batch, units].
Endpoint LinearModel(ColumnCall& call, const std::vector<Column>& columns,
                     const LinearModelOptions& options = {});

}  // namespace weft::estimator
