// SPDX-License-Identifier: Apache-2.0
// Whatever is read must be JSON afterwards.
#include <cstdint>
#include <cstdlib>

#include "net/yaml.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const weft::StatusOr<std::vector<weft::Json>> documents = weft::ParseYaml(text, "fuzz");
  if (!documents.ok()) return 0;
  for (const weft::Json& document : *documents) {
    if (!weft::Json::Parse(document.Dump()).ok()) abort();
  }
  return 0;
}
