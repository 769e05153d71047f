// SPDX-License-Identifier: Apache-2.0
#include "weft/step/signature.h"

#include "absl/strings/str_cat.h"

namespace weft::step {
namespace {

// Unknown of what is no value yet: a tensor without bytes, the handle of a tensor kept elsewhere.
PartialShape ShapeOf(const Tensor& value) {
  if (!value.IsInitialized() || value.dtype() == DType::kResource) return PartialShape();
  return value.shape();
}

}  // namespace

std::string SignatureKey(const std::vector<Feed>& feeds, const std::vector<std::string>& fetches,
                         const std::vector<std::string>& targets) {
  std::string key;
  for (const Feed& feed : feeds) absl::StrAppend(&key, feed.first, ",");
  absl::StrAppend(&key, "|");
  for (const std::string& fetch : fetches) absl::StrAppend(&key, fetch, ",");
  absl::StrAppend(&key, "|");
  for (const std::string& target : targets) absl::StrAppend(&key, target, ",");
  return key;
}

compile::Signature SignatureOf(const std::vector<Feed>& feeds,
                               const std::vector<std::string>& fetches,
                               const std::vector<std::string>& targets, FeedShapes shapes) {
  compile::Signature signature{.fetches = fetches, .targets = targets};
  for (const Feed& feed : feeds) {
    signature.feeds.push_back(feed.first);
    if (shapes == FeedShapes::kThese) signature.shapes.push_back(ShapeOf(feed.second));
  }
  return signature;
}

bool TakesShapes(absl::Span<const PartialShape> shapes, const std::vector<Feed>& feeds) {
  for (size_t i = 0; i < shapes.size() && i < feeds.size(); ++i) {
    // What is unknown was the handle of a tensor, and takes any.
    if (shapes[i].known_rank() && shapes[i] != ShapeOf(feeds[i].second)) return false;
  }
  return true;
}

std::string AnyShapesKey(absl::string_view key) { return absl::StrCat("any;", key); }

}  // namespace weft::step
