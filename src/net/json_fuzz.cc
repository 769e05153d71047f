// SPDX-License-Identifier: Apache-2.0
// Whatever parses must survive the way out and in again.
#include <cstdint>
#include <cstdlib>

#include "net/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const weft::StatusOr<weft::Json> json = weft::Json::Parse(text);
  if (!json.ok()) return 0;
  const weft::StatusOr<weft::Json> again = weft::Json::Parse(json->Dump(2));
  if (!again.ok() || !(*again == *json)) abort();
  return 0;
}
