// SPDX-License-Identifier: Apache-2.0
// Buffered bytes in order, to and from files, plain or compressed. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include "base/files.h"
#include "base/status.h"

namespace weft::storage {

enum class Compression { kNone, kZlib, kGzip };

// "", "NONE", "ZLIB" or "GZIP", as TensorFlow's ops spell them.
StatusOr<Compression> CompressionFromName(absl::string_view name);

// Where bytes come from.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Fills `buffer`; fewer bytes only at the end. DataLoss for a damaged compressed stream.
  virtual StatusOr<size_t> Read(absl::Span<char> buffer) = 0;
  // Goes to byte `offset`; Unimplemented where the bytes are compressed.
  virtual Status Seek(uint64_t offset) = 0;
};

// Where bytes go. What is not closed is lost.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual Status Append(absl::string_view data) = 0;
  // Hands all bytes so far to the file, readable there.
  virtual Status Flush() = 0;
  // Flush, and to the disk.
  virtual Status Sync() = 0;
  virtual Status Close() = 0;
};

// `path` is for messages.
std::unique_ptr<ByteSource> MakeSource(std::unique_ptr<ReadableFile> file, std::string path,
                                       Compression compression, size_t buffer_bytes = 256 << 10);
std::unique_ptr<ByteSink> MakeSink(std::unique_ptr<WritableFile> file, std::string path,
                                   Compression compression, size_t buffer_bytes = 256 << 10);

}  // namespace weft::storage
