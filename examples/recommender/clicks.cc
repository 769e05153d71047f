// SPDX-License-Identifier: Apache-2.0
#include "clicks.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace clicks {
namespace {

constexpr int kTraits = 3;

std::vector<float> Normals(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(random);
  return values;
}

}  // namespace

World::World(unsigned seed)
    : tastes_(Normals(kUsers * kTraits, 1001)),
      looks_(Normals(kItems * kTraits, 1002)),
      random_(seed) {}

Batch World::Next(int64_t size) {
  std::uniform_int_distribution<int64_t> any_user(0, kUsers - 1), any_item(0, kItems - 1);
  std::uniform_real_distribution<float> chance;
  std::vector<int64_t> users, items;
  std::vector<float> clicks;
  for (int64_t i = 0; i < size; ++i) {
    users.push_back(any_user(random_));
    items.push_back(any_item(random_));
    float liking = 0;
    for (int t = 0; t < kTraits; ++t)
      liking += tastes_[users.back() * kTraits + t] * looks_[items.back() * kTraits + t];
    clicks.push_back(chance(random_) < 1 / (1 + std::exp(-3 * liking)) ? 1.0f : 0.0f);
  }
  const weft::Shape shape = {size};
  Batch batch;
  batch.clicks = weft::Tensor::FromSpan<float>(shape, clicks);
  batch.feeds = {{"users:0", weft::Tensor::FromSpan<int64_t>(shape, users)},
                 {"items:0", weft::Tensor::FromSpan<int64_t>(shape, items)},
                 {"clicks:0", batch.clicks}};
  batch.distinct_items = static_cast<int64_t>(std::set<int64_t>(items.begin(), items.end()).size());
  return batch;
}

double Auc(const weft::Tensor& scores, const weft::Tensor& clicks) {
  std::vector<float> yes, no;
  for (int64_t i = 0; i < scores.num_elements(); ++i) {
    (clicks.data<float>()[i] > 0 ? yes : no).push_back(scores.data<float>()[i]);
  }
  if (yes.empty() || no.empty()) return 0.5;
  std::sort(no.begin(), no.end());
  double ordered = 0;
  for (const float score : yes) {
    const auto [first, last] = std::equal_range(no.begin(), no.end(), score);
    ordered += static_cast<double>(first - no.begin()) + static_cast<double>(last - first) / 2;
  }
  return ordered / (static_cast<double>(yes.size()) * static_cast<double>(no.size()));
}

}  // namespace clicks
