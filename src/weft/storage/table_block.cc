// SPDX-License-Identifier: Apache-2.0
#include "weft/storage/table_block.h"

#include <algorithm>
#include <utility>

#include "weft/storage/coding.h"

namespace weft::storage {

void BlockBuilder::Add(absl::string_view key, absl::string_view value) {
  size_t shared = 0;
  if (since_restart_ == restart_interval_) {
    restarts_.push_back(static_cast<uint32_t>(block_.size()));
    since_restart_ = 0;
  } else {
    const size_t most = std::min(last_key_.size(), key.size());
    while (shared < most && last_key_[shared] == key[shared]) ++shared;
  }
  AppendVarint(shared, &block_);
  AppendVarint(key.size() - shared, &block_);
  AppendVarint(value.size(), &block_);
  block_.append(key.data() + shared, key.size() - shared);
  block_.append(value.data(), value.size());
  last_key_.assign(key.data(), key.size());
  ++since_restart_;
}

std::string BlockBuilder::Finish() {
  for (uint32_t restart : restarts_) AppendFixed32(restart, &block_);
  AppendFixed32(static_cast<uint32_t>(restarts_.size()), &block_);
  restarts_ = {0};
  since_restart_ = 0;
  last_key_.clear();
  return std::exchange(block_, {});
}

BlockCursor::BlockCursor(std::shared_ptr<const std::string> block) : block_(std::move(block)) {
  const size_t size = block_->size();
  if (size < 4) {
    Damaged("it is too short");
    return;
  }
  num_restarts_ = LoadFixed32(block_->data() + size - 4);
  if (num_restarts_ > (size - 4) / 4) {
    Damaged("it has too many restart points");
    return;
  }
  entries_ = absl::string_view(*block_).substr(0, size - 4 - 4 * size_t{num_restarts_});
  if (num_restarts_ > 0 && RestartOffset(0) != 0) {
    Damaged("it does not start with a key");
    return;
  }
  SeekToFirst();
}

void BlockCursor::Damaged(absl::string_view what) {
  valid_ = false;
  status_ = DataLoss("Damaged table block: ", what);
}

uint32_t BlockCursor::RestartOffset(uint32_t index) const {
  return LoadFixed32(block_->data() + entries_.size() + 4 * size_t{index});
}

void BlockCursor::Parse() {
  valid_ = false;
  if (next_ >= entries_.size()) return;
  absl::string_view rest = entries_.substr(next_);
  uint32_t shared = 0, unshared = 0, value_size = 0;
  if (!TakeVarint32(&rest, &shared) || !TakeVarint32(&rest, &unshared) ||
      !TakeVarint32(&rest, &value_size)) {
    return Damaged("an entry is cut short");
  }
  if (shared > key_.size() || uint64_t{unshared} + value_size > rest.size()) {
    return Damaged("an entry reaches beyond it");
  }
  key_.resize(shared);
  key_.append(rest.data(), unshared);
  value_ = rest.substr(unshared, value_size);
  next_ = static_cast<size_t>(value_.data() + value_.size() - entries_.data());
  valid_ = true;
}

void BlockCursor::Next() {
  if (!valid_) return;
  const std::string previous = key_;
  Parse();
  if (valid_ && key_ <= previous) Damaged("keys are out of order");
}

void BlockCursor::SeekToFirst() {
  if (!status_.ok()) return;
  next_ = 0;
  key_.clear();
  Parse();
}

void BlockCursor::Seek(absl::string_view target) {
  if (!status_.ok()) return;
  // The last restart point whose key is less than the target.
  uint32_t low = 0, high = num_restarts_;
  while (low + 1 < high) {
    const uint32_t middle = low + (high - low) / 2;
    next_ = RestartOffset(middle);
    if (next_ >= entries_.size()) return Damaged("a restart point lies beyond it");
    key_.clear();
    Parse();
    if (!status_.ok()) return;
    (key_ < target ? low : high) = middle;
  }
  next_ = num_restarts_ > 0 ? RestartOffset(low) : 0;
  key_.clear();
  Parse();
  while (valid_ && key_ < target) Next();
}

}  // namespace weft::storage
