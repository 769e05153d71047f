// SPDX-License-Identifier: Apache-2.0
// TensorBatch: several small tensors for one peer in one frame. The meta is a directory (key, the
// tensor's own meta, size), the body the tensors' bytes, each padded so that the next begins
// aligned.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "base/status.h"
#include "weft/transport/frame.h"
#include "weft/transport/region.h"

namespace weft::transport {

inline constexpr uint64_t kBatchAlignment = 64;

struct BatchEntry {
  uint32_t key = 0;
  absl::string_view meta;  // points into the frame's meta
  uint64_t offset = 0;     // in the body, a multiple of kBatchAlignment
  uint64_t bytes = 0;
};

// Gathers a batch. Not thread-safe.
class BatchBuilder {
 public:
  // False, and nothing is taken, if it does not fit any more: send what is there first. An entry
  // whose meta alone is over the limit never fits.
  bool Add(uint32_t key, absl::string_view meta, const Region& body);

  bool empty() const { return count_ == 0; }
  size_t count() const { return count_; }
  uint64_t bytes() const { return bytes_; }
  // For Peer::Send: the meta and the body. Clear makes it ready for the next batch.
  absl::string_view meta() const { return meta_; }
  std::span<Region> body() { return body_; }
  void Clear();

 private:
  std::string meta_;
  std::vector<Region> body_;
  size_t count_ = 0;
  uint64_t bytes_ = 0;
};

// The directory of a received batch. InvalidArgument unless it describes a body of exactly
// `body_bytes`.
StatusOr<std::vector<BatchEntry>> ParseBatch(absl::string_view meta, uint64_t body_bytes);

}  // namespace weft::transport
