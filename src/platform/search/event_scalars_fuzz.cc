// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "platform/search/event_scalars.h"
#include "platform/search/metric_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  (void)weft::platform::ReadEventScalars(text);
  weft::platform::MetricReader plain({"a", "loss"}), lines({"a", "loss"}, {.is_json = true});
  for (auto* const reader : {&plain, &lines}) {
    reader->Read(text);
    reader->Finish();
  }
  (void)weft::platform::ReadPrometheus(text, {"a", "loss"});
  return 0;
}
