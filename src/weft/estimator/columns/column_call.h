// SPDX-License-Identifier: Apache-2.0
// What a feature column sees of the model that it is called in: the graph and the batch's features.
#pragma once

#include <string>
#include <vector>

#include "weft/estimator/columns/feature.h"
#include "weft/estimator/vocabulary.h"
#include "weft/train/program.h"

namespace weft::estimator {

// The categories of a batch: ids [n] of examples [n] (int64, in the order of the examples), of
// `batch` examples (an int64 scalar). Ids below 0 are nobody's. Weights [n], or empty: all 1.
struct Categories {
  Endpoint examples, places;  // places: which of the example's values it is
  Endpoint ids;
  Endpoint batch;
  Endpoint weights;
};

// One use of feature columns. Not thread-safe; what it is given must outlive it.
class ColumnCall {
 public:
  // Tables of weights are spread over `num_parts` parameter servers where they are large.
  ColumnCall(train::Program& program, const Features& features, Assets* assets, int num_parts = 0)
      : program_(program), features_(features), assets_(assets), num_parts_(num_parts) {}

  train::Program& program() const { return program_; }
  GraphBuilder& b() const { return program_.builder(); }
  Assets* assets() const { return assets_; }
  int num_parts() const { return num_parts_; }

  // The feature, dense ones with at least two sizes. Fails, naming those that there are, where
  // there is none of this name.
  Feature FeatureOf(const std::string& key) const;
  // The same as values with their places, [n, 2]: of a dense one all but "" and -1. `column` is
  // whom errors name.
  Feature SparseOf(const std::string& key, const std::string& column) const;
  // Those of a sparse feature with ids in place of its values.
  Categories CategoriesOf(const Feature& sparse, Endpoint ids) const;
  // The parts of the variable `name` with a row for each category.
  std::vector<train::Variable> AddRows(const std::string& name, int64_t rows, int64_t width,
                                       const train::Initializer& initial, bool trainable) const;
  void Fail(const std::string& column, const std::string& what) const;

 private:
  train::Program& program_;
  const Features& features_;
  Assets* const assets_;
  const int num_parts_;
};

// The rows of each example's categories combined to one, [batch, width]; zeros where an example has
// none. `combiner`: "sum", "mean" or "sqrtn". `max_norm`: longer rows are shortened; 0: none is.
Endpoint CombinedRows(ColumnCall& call, const std::vector<train::Variable>& rows,
                      const Categories& categories, const std::string& combiner, double max_norm);

}  // namespace weft::estimator
