// SPDX-License-Identifier: Apache-2.0
// One block of a table: entries in key order, each key without what it shares with the one before,
// restart points where keys stand in full. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "base/status.h"

namespace weft::storage {

// Keys must be added in rising order.
class BlockBuilder {
 public:
  explicit BlockBuilder(int restart_interval) : restart_interval_(restart_interval) {}
  void Add(absl::string_view key, absl::string_view value);
  // The block with its restart points; the builder is empty again.
  std::string Finish();
  size_t size_bytes() const { return block_.size() + 4 * (restarts_.size() + 1); }
  bool empty() const { return block_.empty(); }
  const std::string& last_key() const { return last_key_; }

 private:
  const int restart_interval_;
  int since_restart_ = 0;
  std::string block_;
  std::string last_key_;
  std::vector<uint32_t> restarts_ = {0};
};

// Walks a block that it shares. Everything is checked: a malformed block gives DataLoss in
// status().
class BlockCursor {
 public:
  // At the end.
  BlockCursor() = default;
  // At the first entry.
  explicit BlockCursor(std::shared_ptr<const std::string> block);

  bool Valid() const { return valid_; }
  const Status& status() const { return status_; }
  // While Valid; good until the next move.
  absl::string_view key() const { return key_; }
  absl::string_view value() const { return value_; }
  void Next();
  void SeekToFirst();
  // To the first entry whose key is not less than `target`.
  void Seek(absl::string_view target);

 private:
  void Damaged(absl::string_view what);
  uint32_t RestartOffset(uint32_t index) const;
  // Reads the entry at next_.
  void Parse();

  std::shared_ptr<const std::string> block_;
  absl::string_view entries_;  // the block without its restart points
  uint32_t num_restarts_ = 0;
  size_t next_ = 0;
  std::string key_;
  absl::string_view value_;
  bool valid_ = false;
  Status status_;
};

}  // namespace weft::storage
