// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/columns/feature.h"

#include <utility>

#include "weft/estimator/graph_writing.h"

namespace weft::estimator {
namespace {

Endpoint Names(GraphBuilder& b, const std::vector<std::string>& names) {
  return b.Constant(
      Tensor::FromSpan<std::string>(Shape{static_cast<int64_t>(names.size())}, names));
}

// What stands for "no default": no elements.
Tensor NoDefault(DType dtype) {
  if (dtype == DType::kString) return Tensor::FromSpan<std::string>(Shape{0}, {});
  if (dtype == DType::kInt64) return Tensor::FromSpan<int64_t>(Shape{0}, {});
  return Tensor::FromSpan<float>(Shape{0}, {});
}

}  // namespace

Features ParseExamples(GraphBuilder& b, Endpoint serialized, const ExampleSpec& spec) {
  std::vector<std::string> sparse, dense;
  std::vector<DType> sparse_types, dense_types;
  std::vector<PartialShape> shapes;
  std::vector<Endpoint> defaults;
  for (const auto& [name, feature] : spec) {
    if (feature.is_sparse) {
      sparse.push_back(name);
      sparse_types.push_back(feature.dtype);
      continue;
    }
    dense.push_back(name);
    dense_types.push_back(feature.dtype);
    shapes.push_back(PartialShape(feature.shape));
    const bool has_default = feature.default_value.dtype() != DType::kInvalid;
    defaults.push_back(b.Constant(has_default ? feature.default_value : NoDefault(feature.dtype)));
  }
  const auto count = static_cast<int64_t>(sparse.size());
  Node* node = b.AddNode(
      "ParseExampleV2",
      {serialized, Names(b, {}), Names(b, sparse), Names(b, dense), Names(b, {}), defaults},
      {{"Tdense", dense_types},
       {"num_sparse", count},
       {"sparse_types", sparse_types},
       {"ragged_value_types", std::vector<DType>()},
       {"ragged_split_types", std::vector<DType>()},
       {"dense_shapes", shapes}},
      "ParseExample");
  if (node == nullptr) return {};
  const int n = static_cast<int>(count);
  Features features;
  for (int i = 0; i < n; ++i) {
    features[sparse[static_cast<size_t>(i)]] =
        Feature(Endpoint{node, i}, Endpoint{node, n + i}, Endpoint{node, 2 * n + i});
  }
  for (size_t i = 0; i < dense.size(); ++i) {
    features[dense[i]] = Feature(Endpoint{node, 3 * n + static_cast<int>(i)});
  }
  return features;
}

}  // namespace weft::estimator
