// SPDX-License-Identifier: Apache-2.0
// Byte streams through zlib; made by MakeSource and MakeSink.
#pragma once

#include <memory>
#include <string>

#include "weft/storage/byte_stream.h"

namespace weft::storage {

// `compression` says zlib or gzip; several gzip members in a row read as one stream.
std::unique_ptr<ByteSource> MakeZlibSource(std::unique_ptr<ByteSource> compressed, std::string path,
                                           Compression compression, size_t buffer_bytes);
std::unique_ptr<ByteSink> MakeZlibSink(std::unique_ptr<ByteSink> compressed, std::string path,
                                       Compression compression, size_t buffer_bytes);

}  // namespace weft::storage
