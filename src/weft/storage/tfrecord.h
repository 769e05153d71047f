// SPDX-License-Identifier: Apache-2.0
// TFRecord files: length, checksum, bytes, checksum, again and again. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"

#include "base/files.h"
#include "base/status.h"
#include "weft/storage/byte_stream.h"

namespace weft::storage {

// Bytes that a record takes besides its data.
inline constexpr uint64_t kRecordOverhead = 16;

// Buffers; Close says whether everything arrived, the destructor cannot.
class RecordWriter {
 public:
  static StatusOr<std::unique_ptr<RecordWriter>> Create(
      FileSystem& files, const std::string& path, Compression compression = Compression::kNone,
      WriteMode mode = WriteMode::kTruncate);
  RecordWriter(std::unique_ptr<ByteSink> sink, std::string path)
      : sink_(std::move(sink)), path_(std::move(path)) {}

  Status Write(absl::string_view record);
  // Readers of the file see all records so far.
  Status Flush() { return sink_->Flush(); }
  // Flush, and to the disk.
  Status Sync() { return sink_->Sync(); }
  Status Close() { return sink_->Close(); }
  const std::string& path() const { return path_; }

 private:
  const std::unique_ptr<ByteSink> sink_;
  const std::string path_;
};

class RecordReader {
 public:
  static StatusOr<std::unique_ptr<RecordReader>> Open(FileSystem& files, const std::string& path,
                                                      Compression compression = Compression::kNone,
                                                      size_t buffer_bytes = 256 << 10);
  RecordReader(std::unique_ptr<ByteSource> source, std::string path)
      : source_(std::move(source)), path_(std::move(path)) {}

  // True with the next record, false at the end of the file. DataLoss names file and offset for a
  // bad checksum or a record cut short; offset() then still is that of the record, so that the
  // reader of a growing file may Seek there and try again.
  StatusOr<bool> Next(std::string* record);
  // Whether the last DataLoss was a record cut short by the end of the file.
  bool cut_short() const { return cut_short_; }
  // Where the next record starts, in the uncompressed stream.
  uint64_t offset() const { return offset_; }
  // To the start of a record; not in compressed files (Unimplemented).
  Status Seek(uint64_t offset);

 private:
  Status Damaged(absl::string_view what) const;
  Status CutShort();
  // Appends `size` bytes; false when the file ends before.
  StatusOr<bool> ReadBytes(uint64_t size, std::string* out);

  const std::unique_ptr<ByteSource> source_;
  const std::string path_;
  uint64_t offset_ = 0;
  bool cut_short_ = false;
};

}  // namespace weft::storage
