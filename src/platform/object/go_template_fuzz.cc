// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "platform/object/go_template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  static const weft::Json* const dot =
      new weft::Json(weft::Json::Parse(R"({"a":[{"b":1},{"b":"x"}],"c":"d","e":{"f":true}})")
                         .value_or(weft::Json()));
  (void)weft::platform::RenderGoTemplate(text, *dot);
  return 0;
}
