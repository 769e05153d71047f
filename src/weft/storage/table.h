// SPDX-License-Identifier: Apache-2.0
// Sorted tables of key and value in LevelDB's file format: the index of a checkpoint.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

#include "base/files.h"
#include "base/status.h"
#include "weft/storage/byte_stream.h"
#include "weft/storage/table_block.h"

namespace weft::storage {

// Where a block lies in its file, without its 5 bytes of type and checksum.
struct BlockHandle {
  uint64_t offset = 0;
  uint64_t size = 0;
};

// Writes a table, uncompressed. Not thread-safe.
class TableWriter {
 public:
  static constexpr size_t kBlockBytes = 262144;  // as TensorFlow's checkpoints have it
  // Borrows `sink`, which the caller closes after Finish.
  explicit TableWriter(ByteSink* sink, size_t block_bytes = kBlockBytes)
      : sink_(sink), block_bytes_(block_bytes) {}

  // InvalidArgument unless `key` is greater than all before, bytewise.
  Status Add(absl::string_view key, absl::string_view value);
  Status Finish();

 private:
  Status WriteBlock(const std::string& block, BlockHandle* handle);
  Status EndDataBlock();
  void AddPending(const std::string& index_key);

  ByteSink* const sink_;
  const size_t block_bytes_;
  uint64_t offset_ = 0;
  bool any_ = false;
  std::string last_key_;
  // The last data block, whose index entry waits for the key that follows.
  std::optional<BlockHandle> pending_;
  BlockBuilder data_{16};
  BlockBuilder index_{1};
};

// Reads a table, block by block. Thread-safe. Any damage gives DataLoss with the file's name.
class Table {
 public:
  static StatusOr<std::unique_ptr<Table>> Open(FileSystem& files, const std::string& path);

  // The value under `key`, or nothing.
  StatusOr<std::optional<std::string>> Find(absl::string_view key) const;

  // Walks all entries in key order; after the end status() tells whether that was all. Borrows the
  // table. Not thread-safe.
  class Iterator {
   public:
    explicit Iterator(const Table* table);  // at the first entry
    bool Valid() const { return data_.Valid(); }
    const Status& status() const { return status_; }
    absl::string_view key() const { return data_.key(); }
    absl::string_view value() const { return data_.value(); }
    void Next();
    void Seek(absl::string_view target);

   private:
    void LoadBlock();
    // Goes on to the next block while this one is at its end.
    void SkipEmpty();

    const Table* const table_;
    BlockCursor index_;
    BlockCursor data_;
    Status status_;
  };

  const std::string& path() const { return path_; }

 private:
  Table(std::unique_ptr<ReadableFile> file, std::string path, uint64_t file_bytes)
      : file_(std::move(file)), path_(std::move(path)), file_bytes_(file_bytes) {}
  Status ReadFooter();
  StatusOr<std::shared_ptr<const std::string>> ReadBlock(BlockHandle handle) const;
  // The block that an index entry's value points to; the last one used is kept.
  StatusOr<std::shared_ptr<const std::string>> BlockAt(absl::string_view encoded_handle) const;
  Status Damaged(absl::string_view what) const;

  const std::unique_ptr<ReadableFile> file_;
  const std::string path_;
  const uint64_t file_bytes_;
  std::shared_ptr<const std::string> index_;
  mutable absl::Mutex mutex_;
  mutable uint64_t cached_offset_ ABSL_GUARDED_BY(mutex_) = 0;
  mutable std::shared_ptr<const std::string> cached_ ABSL_GUARDED_BY(mutex_);  // with readers
};

}  // namespace weft::storage
