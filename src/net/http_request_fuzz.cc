// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "net/http_server.h"

// Any bytes are a request or an error; what is decoded from it is never longer than it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const weft::StatusOr<weft::HttpRequest> request = weft::ParseHttpRequest(text);
  if (request.ok() && request->path.size() + request->query.size() > size) abort();
  if (weft::DecodePercent(text).size() > size) abort();
  if (weft::DecodePercent(weft::EncodePercent(text)) != text) abort();
  weft::ParseHttpQuery(text);
  return 0;
}
