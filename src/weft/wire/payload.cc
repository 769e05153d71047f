// SPDX-License-Identifier: Apache-2.0
#include "weft/wire/payload.h"

#include <algorithm>

namespace weft::wire {

void Payload::Append(std::string bytes) {
  constexpr size_t kJoined = 4096;
  size_ += bytes.size();
  if (!pieces_.empty() && pieces_.back().data == nullptr && bytes.size() <= kJoined) {
    pieces_.back().owned += bytes;
    pieces_.back().size += bytes.size();
    return;
  }
  Piece piece;
  piece.size = bytes.size();
  piece.owned = std::move(bytes);
  pieces_.push_back(std::move(piece));
}

void Payload::AppendShared(const std::byte* data, size_t size, Ref<RefCounted> keep) {
  size_ += size;
  pieces_.push_back({.data = data, .size = size, .keep = std::move(keep)});
}

std::string Payload::Flatten() const {
  std::string all;
  all.reserve(size_);
  for (const Piece& piece : pieces_) {
    if (piece.data == nullptr) {
      all += piece.owned;
    } else {
      all.append(reinterpret_cast<const char*>(piece.data), piece.size);
    }
  }
  return all;
}

bool ChunkStream::Next(const void** data, int* size) {
  while (chunk_ < chunks_.size() && offset_ == chunks_[chunk_].size()) {
    ++chunk_;
    offset_ = 0;
  }
  if (chunk_ == chunks_.size()) return false;
  const size_t left = chunks_[chunk_].size() - offset_;
  const size_t step = std::min<size_t>(left, std::numeric_limits<int>::max());
  *data = chunks_[chunk_].data() + offset_;
  *size = static_cast<int>(step);
  offset_ += step;
  read_ += static_cast<int64_t>(step);
  return true;
}

void ChunkStream::BackUp(int count) {
  offset_ -= static_cast<size_t>(count);
  read_ -= count;
}

bool ChunkStream::Skip(int count) {
  while (count > 0) {
    const void* data = nullptr;
    int size = 0;
    if (!Next(&data, &size)) return false;
    if (size > count) BackUp(size - count);
    count -= std::min(size, count);
  }
  return true;
}

}  // namespace weft::wire
