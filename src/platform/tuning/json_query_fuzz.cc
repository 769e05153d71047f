// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "platform/tuning/json_query.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view query(reinterpret_cast<const char*>(data), size);
  static const weft::Json* const value = new weft::Json(
      weft::Json::Parse(R"({"a":[{"b":1,"c":[{"d":"x"}]},{"b":"y"}],"e":{"f":true}})")
          .value_or(weft::Json()));
  (void)weft::platform::QueryJson(*value, query);
  return 0;
}
