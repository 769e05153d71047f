// SPDX-License-Identifier: Apache-2.0
// Gradient-boosted regression trees for squared error (Friedman, Annals of Statistics 2001), for a
// few thousand examples of a few features.
#pragma once

#include <array>
#include <vector>

namespace weft::platform {

inline constexpr int kTreeFeatures = 6;
using TreeFeatures = std::array<double, kTreeFeatures>;

struct TreeExample {
  TreeFeatures features = {};
  double target = 0;
  double weight = 1;
};

// Depends on its examples alone. Thread-compatible.
class BoostedTrees {
 public:
  struct Options {
    int trees = 150;
    int depth = 3;
    double rate = 0.1;
    double least_weight = 3;  // of the examples in a leaf
    double ridge = 1;         // pulls small leaves towards 0
  };
  void Fit(const std::vector<TreeExample>& examples, const Options& options);
  // 0 before Fit.
  double Predict(const TreeFeatures& features) const;

 private:
  struct Split {
    int feature = -1;  // -1: a leaf
    double threshold = 0;
    double value = 0;  // of a leaf
  };
  // A tree is an array: node i has its children at 2i+1 (not above the threshold) and 2i+2.
  using Tree = std::vector<Split>;
  struct Candidate;

  void Grow(const std::vector<TreeExample>& examples, const std::vector<double>& residuals,
            std::vector<int> members, int node, int depth, Tree* tree) const;
  static double Walk(const Tree& tree, const TreeFeatures& features);

  Options options_;
  std::vector<Tree> trees_;
};

}  // namespace weft::platform
