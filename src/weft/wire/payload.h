// SPDX-License-Identifier: Apache-2.0
// Bytes of a message on their way out, without copies of the large parts; and on their way in.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <google/protobuf/io/zero_copy_stream.h>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include "base/ref.h"

namespace weft::wire {

// A message as pieces that follow each other. Movable. Shared pieces must not change while it
// lives.
class Payload {
 public:
  struct Piece {
    std::string owned;  // used when `data` is null
    const std::byte* data = nullptr;
    size_t size = 0;
    Ref<RefCounted> keep;
  };

  Payload() = default;
  explicit Payload(std::string bytes) { Append(std::move(bytes)); }

  // Bytes of its own; small ones are joined with the piece before.
  void Append(std::string bytes);
  // Bytes of somebody else, held by `keep`.
  void AppendShared(const std::byte* data, size_t size, Ref<RefCounted> keep);

  size_t size() const { return size_; }
  std::vector<Piece>& pieces() { return pieces_; }
  // All bytes in one string; for tests and small messages.
  std::string Flatten() const;

 private:
  std::vector<Piece> pieces_;
  size_t size_ = 0;
};

// Reads a message that lies in chunks. The chunks must outlive it. Not thread-safe.
class ChunkStream : public google::protobuf::io::ZeroCopyInputStream {
 public:
  explicit ChunkStream(absl::Span<const absl::string_view> chunks) : chunks_(chunks) {}
  bool Next(const void** data, int* size) override;
  void BackUp(int count) override;
  bool Skip(int count) override;
  int64_t ByteCount() const override { return read_; }

 private:
  absl::Span<const absl::string_view> chunks_;
  size_t chunk_ = 0;
  size_t offset_ = 0;  // in the chunk
  int64_t read_ = 0;
};

}  // namespace weft::wire
