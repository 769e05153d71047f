// SPDX-License-Identifier: Apache-2.0
// Files whose bytes are used where the system holds them, instead of copies.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/files.h"

namespace weft {

// Thread-safe.
class MappableFile : public ReadableFile {
 public:
  // Bytes [offset, offset + size), which must be in the file, for as long as the pointer lives;
  // null where the system does not map them. What is written to them is seen here alone, at the
  // cost of a copy of the page. They change as the file changes, and whoever makes the file shorter
  // ends the process: for files that are replaced, never changed in place.
  virtual std::shared_ptr<char> Map(uint64_t offset, size_t size) const = 0;
};

// The real file system, whose files are MappableFiles.
class MappingFileSystem final : public RealFileSystem {
 public:
  StatusOr<std::unique_ptr<ReadableFile>> OpenRead(const std::string& path) override;
};

}  // namespace weft
