// SPDX-License-Identifier: Apache-2.0
#include "weft/master/graph_cache.h"

#include <algorithm>

#include "absl/hash/hash.h"

#include "base/crc32c.h"
#include "weft/graph/graph_proto.h"

namespace weft::master {

StatusOr<std::shared_ptr<const GraphDef>> GraphCache::Parse(absl::string_view bytes) {
  const Key key{bytes.size(), absl::HashOf(bytes), Crc32c(bytes)};
  {
    absl::MutexLock lock(&mutex_);
    const auto found = std::find_if(graphs_.begin(), graphs_.end(),
                                    [&](const auto& entry) { return entry.first == key; });
    if (found != graphs_.end()) {
      ++hits_;
      graphs_.splice(graphs_.begin(), graphs_, found);
      return graphs_.front().second;
    }
  }
  WEFT_ASSIGN_OR_RETURN(GraphDef def, ParseGraphDef(bytes));
  auto graph = std::make_shared<const GraphDef>(std::move(def));
  if (bytes.size() > most_bytes_) return graph;
  std::shared_ptr<const GraphDef> dropped;
  absl::MutexLock lock(&mutex_);
  graphs_.emplace_front(key, graph);
  if (graphs_.size() > most_) {
    dropped = std::move(graphs_.back().second);
    graphs_.pop_back();
  }
  return graph;
}

int64_t GraphCache::hits() const {
  absl::MutexLock lock(&mutex_);
  return hits_;
}

}  // namespace weft::master
