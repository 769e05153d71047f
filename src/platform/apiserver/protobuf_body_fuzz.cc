// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "platform/apiserver/protobuf_body.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parsed = weft::platform::ParseProtobufBody(text);
  // What was read can be written.
  if (parsed.ok()) (void)parsed->Dump();
  return 0;
}
