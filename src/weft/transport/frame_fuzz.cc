// SPDX-License-Identifier: Apache-2.0
// Bytes from anywhere through the parsers of the wire; what parses must encode to itself.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "weft/transport/frame.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using weft::transport::kHeaderBytes;
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  if (size >= kHeaderBytes) {
    const auto header =
        weft::transport::ParseHeader(std::span<const std::byte, kHeaderBytes>(bytes, kHeaderBytes));
    if (header.ok()) {
      std::byte again[kHeaderBytes];
      weft::transport::EncodeHeader(*header, again);
      if (std::memcmp(again, data, kHeaderBytes) != 0) std::abort();
      if (header->meta_bytes > weft::transport::kMaxMetaBytes ||
          header->body_bytes > weft::transport::kMaxBodyBytes)
        std::abort();
    }
  }
  const absl::string_view meta(reinterpret_cast<const char*>(data), size);
  const auto hello = weft::transport::ParseHello(meta);
  if (hello.ok()) {
    const auto again = weft::transport::EncodeHello(*hello);
    if (!again.ok() || *again != meta) std::abort();
  }
  return 0;
}
