// SPDX-License-Identifier: Apache-2.0
// Any bytes as the frames of a client.
#include <cstdint>

#include "net/spdy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::SpdyReader reader;
  absl::string_view rest(reinterpret_cast<const char*>(data), size);
  while (true) {
    const auto frame = reader.Next(&rest);
    if (!frame.ok() || !frame->has_value()) return 0;
  }
}
