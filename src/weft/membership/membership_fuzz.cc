// SPDX-License-Identifier: Apache-2.0
// Whatever other tasks send: a member lives, and asks for no more than it should.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "weft/membership/swim.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::membership::SwimOptions options;
  options.self = {.name = "a", .address = "10.0.0.1:1", .process = 1, .incarnation = 5};
  weft::membership::Swim swim(options);
  weft::membership::Actions actions;
  absl::Duration now;
  swim.Tick(now, &actions);
  // Messages of one byte of length each, from senders that their first byte says.
  for (size_t at = 0; at < size;) {
    const size_t length = std::min<size_t>(data[at], size - at - 1);
    weft::membership::MembershipMessage message;
    if (message.ParseFromArray(data + at + 1, static_cast<int>(length))) {
      const std::string from(1, static_cast<char>('a' + data[at] % 4));
      swim.Receive(from, message, now, &actions);
      if (data[at] % 5 == 0) swim.Unreachable(from, now, &actions);
    }
    at += length + 1;
    now += absl::Milliseconds(100);
    swim.Tick(now, &actions);
  }
  // Each message in brings a few out; a tick, no more than it has members to ask.
  if (actions.messages.size() > 64 * (size + 1)) std::abort();
  return 0;
}
