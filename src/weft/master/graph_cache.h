// SPDX-License-Identifier: Apache-2.0
// Graphs that clients send again and again: each poll of a waiting worker is a session with the
// whole graph.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

#include "base/status.h"
#include "weft/graph/node_def.h"

namespace weft::master {

// Parsed graphs by their bytes; constants are shared between the sessions that have them.
// Thread-safe.
class GraphCache {
 public:
  // Keeps the `most` graphs that were asked for last, if they have at most `most_bytes` each.
  explicit GraphCache(size_t most = 8, size_t most_bytes = size_t{256} << 20)
      : most_(most), most_bytes_(most_bytes) {}

  // Shared with the sessions that import it. Errors as ParseGraphDef.
  StatusOr<std::shared_ptr<const GraphDef>> Parse(absl::string_view bytes);
  int64_t hits() const;

 private:
  struct Key {
    size_t size = 0;
    uint64_t hash = 0;
    uint32_t checksum = 0;  // of another kind than the hash
    bool operator==(const Key&) const = default;
  };
  const size_t most_;
  const size_t most_bytes_;
  mutable absl::Mutex mutex_;
  int64_t hits_ ABSL_GUARDED_BY(mutex_) = 0;
  // The last used first.
  std::list<std::pair<Key, std::shared_ptr<const GraphDef>>> graphs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft::master
