// SPDX-License-Identifier: Apache-2.0
#include "platform/placement/boosted_trees.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace weft::platform {

struct BoostedTrees::Candidate {
  double gain = 0;
  int feature = -1;
  double threshold = 0;
};

double BoostedTrees::Walk(const Tree& tree, const TreeFeatures& features) {
  size_t node = 0;
  while (tree[node].feature >= 0)
    node = 2 * node + (features[tree[node].feature] <= tree[node].threshold ? 1 : 2);
  return tree[node].value;
}

// Takes the split that leaves the least squared error, as long as one does.
void BoostedTrees::Grow(const std::vector<TreeExample>& examples,
                        const std::vector<double>& residuals, std::vector<int> members, int node,
                        int depth, Tree* tree) const {
  double weight = 0;
  double sum = 0;
  for (const int i : members) {
    weight += examples[i].weight;
    sum += examples[i].weight * residuals[i];
  }
  const double ridge = options_.ridge;
  (*tree)[node].value = sum / (weight + ridge);
  if (depth == 0) return;
  Candidate best;
  for (int feature = 0; feature < kTreeFeatures; ++feature) {
    std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
      return examples[a].features[feature] < examples[b].features[feature];
    });
    double left_weight = 0;
    double left_sum = 0;
    for (size_t i = 0; i + 1 < members.size(); ++i) {
      const TreeExample& example = examples[members[i]];
      left_weight += example.weight;
      left_sum += example.weight * residuals[members[i]];
      const double value = example.features[feature];
      const double next = examples[members[i + 1]].features[feature];
      const double right_weight = weight - left_weight;
      if (value == next || left_weight < options_.least_weight ||
          right_weight < options_.least_weight) {
        continue;
      }
      const double right_sum = sum - left_sum;
      const double gain = left_sum * left_sum / (left_weight + ridge) +
                          right_sum * right_sum / (right_weight + ridge) -
                          sum * sum / (weight + ridge);
      if (gain > best.gain + 1e-12) best = {gain, feature, (value + next) / 2};
    }
  }
  if (best.feature < 0) return;
  (*tree)[node].feature = best.feature;
  (*tree)[node].threshold = best.threshold;
  const auto middle = std::stable_partition(members.begin(), members.end(), [&](int i) {
    return examples[i].features[best.feature] <= best.threshold;
  });
  Grow(examples, residuals, {members.begin(), middle}, 2 * node + 1, depth - 1, tree);
  Grow(examples, residuals, {middle, members.end()}, 2 * node + 2, depth - 1, tree);
}

void BoostedTrees::Fit(const std::vector<TreeExample>& examples, const Options& options) {
  options_ = options;
  trees_.clear();
  if (examples.empty()) return;
  std::vector<double> residuals;
  for (const TreeExample& example : examples) residuals.push_back(example.target);
  std::vector<int> all(examples.size());
  std::iota(all.begin(), all.end(), 0);
  for (int i = 0; i < options.trees; ++i) {
    Tree tree((size_t{2} << options.depth) - 1);
    Grow(examples, residuals, all, 0, options.depth, &tree);
    for (size_t e = 0; e < examples.size(); ++e)
      residuals[e] -= options.rate * Walk(tree, examples[e].features);
    trees_.push_back(std::move(tree));
  }
}

double BoostedTrees::Predict(const TreeFeatures& features) const {
  double value = 0;
  for (const Tree& tree : trees_) value += options_.rate * Walk(tree, features);
  return value;
}

}  // namespace weft::platform
