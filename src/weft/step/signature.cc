// SPDX-License-Identifier: Apache-2.0
#include "weft/step/signature.h"

#include "absl/strings/str_cat.h"

namespace weft::step {

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
                               const std::vector<std::string>& targets) {
  compile::Signature signature{.fetches = fetches, .targets = targets};
  for (const Feed& feed : feeds) signature.feeds.push_back(feed.first);
  return signature;
}

}  // namespace weft::step
