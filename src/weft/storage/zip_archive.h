// SPDX-License-Identifier: Apache-2.0
// Zip archives in memory, such as Keras's models. (No archive library of Debian's is bounded in
// what it allocates for bytes it does not trust.)
#pragma once

#include <map>
#include <string>

#include "absl/strings/string_view.h"

#include "base/status.h"

namespace weft::storage {

using ArchiveFiles = std::map<std::string, std::string>;

// The files, uncompressed, as Keras writes them. InvalidArgument for more than 4 GB.
StatusOr<std::string> WriteZip(const ArchiveFiles& files);
// Files stored or deflated, no more than `most` bytes together. InvalidArgument for bytes that are
// no archive, DataLoss naming a damaged file.
StatusOr<ArchiveFiles> ReadZip(absl::string_view bytes, size_t most = size_t{8} << 30);

}  // namespace weft::storage
