// SPDX-License-Identifier: Apache-2.0
// Any bytes as the messages of a client, whole and in pieces: both ways the same messages.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "net/web_socket.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view whole(reinterpret_cast<const char*>(data), size);
  const auto read = [&](size_t step) {
    std::vector<std::string> payloads;
    weft::WebSocketReader reader(4096);
    std::string held;
    for (size_t i = 0; i < whole.size(); i += step) {
      held.append(std::string(whole.substr(i, step)));
      absl::string_view rest = held;
      while (true) {
        const auto message = reader.Next(&rest);
        if (!message.ok()) return payloads;
        if (!message->has_value()) break;
        payloads.push_back((*message)->payload);
      }
      held = std::string(rest);
    }
    return payloads;
  };
  if (read(size + 1) != read(7)) std::abort();
  return 0;
}
