// SPDX-License-Identifier: Apache-2.0
#include "weft/transport/batch.h"

#include <cstring>

namespace weft::transport {
namespace {

// key, meta bytes, body bytes; then the meta itself.
constexpr size_t kEntryBytes = 4 + 4 + 8;
const std::byte kPadding[kBatchAlignment] = {};

uint64_t PaddingAfter(uint64_t bytes) {
  return (kBatchAlignment - bytes % kBatchAlignment) % kBatchAlignment;
}

template <typename T>
void Append(std::string* out, T value) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(T));
}

template <typename T>
T Take(absl::string_view* in) {
  T value;
  std::memcpy(&value, in->data(), sizeof(T));
  in->remove_prefix(sizeof(T));
  return value;
}

}  // namespace

bool BatchBuilder::Add(uint32_t key, absl::string_view meta, const Region& body) {
  if (meta.size() > kMaxMetaBytes || meta_.size() + kEntryBytes + meta.size() > kMaxMetaBytes) {
    return false;
  }
  const uint64_t padding = PaddingAfter(body.size);
  if (body.size > kMaxBodyBytes - kBatchAlignment || bytes_ + body.size + padding > kMaxBodyBytes) {
    return false;
  }
  Append(&meta_, key);
  Append(&meta_, static_cast<uint32_t>(meta.size()));
  Append(&meta_, static_cast<uint64_t>(body.size));
  meta_.append(meta.data(), meta.size());
  if (body.size > 0) body_.push_back(body);
  if (padding > 0) body_.push_back(Region::Of(std::span(kPadding, padding)));
  bytes_ += body.size + padding;
  ++count_;
  return true;
}

void BatchBuilder::Clear() {
  meta_.clear();
  body_.clear();
  count_ = 0;
  bytes_ = 0;
}

StatusOr<std::vector<BatchEntry>> ParseBatch(absl::string_view meta, uint64_t body_bytes) {
  std::vector<BatchEntry> entries;
  uint64_t offset = 0;
  while (!meta.empty()) {
    if (meta.size() < kEntryBytes) return InvalidArgument("Directory of a batch is cut short");
    BatchEntry entry;
    entry.key = Take<uint32_t>(&meta);
    const uint32_t meta_bytes = Take<uint32_t>(&meta);
    entry.bytes = Take<uint64_t>(&meta);
    if (meta_bytes > meta.size()) return InvalidArgument("Directory of a batch is cut short");
    entry.meta = meta.substr(0, meta_bytes);
    meta.remove_prefix(meta_bytes);
    entry.offset = offset;
    const uint64_t left = body_bytes - offset;
    if (entry.bytes > left || PaddingAfter(entry.bytes) > left - entry.bytes) {
      return InvalidArgument("Tensor of a batch lies outside of its body: entry ", entries.size(),
                             ", key ", entry.key, ", ", entry.bytes, " bytes, ", left, " left");
    }
    offset += entry.bytes + PaddingAfter(entry.bytes);
    entries.push_back(entry);
  }
  if (offset != body_bytes) {
    return InvalidArgument("Directory of a batch leaves bytes of its body over: ",
                           body_bytes - offset);
  }
  return entries;
}

}  // namespace weft::transport
