// SPDX-License-Identifier: Apache-2.0
#include "weft/kernel/rendezvous.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace weft {

std::string RendezvousKey::ToString() const {
  return absl::StrFormat("%s;%016x;%s;%s;%d:%d", send_device, send_incarnation, receive_device,
                         edge, frame, iteration);
}

StatusOr<RendezvousKey> RendezvousKey::Parse(absl::string_view text) {
  const auto bad = [&] {
    return InvalidArgument("Invalid rendezvous key: '", text,
                           "', expected send;incarnation;receive;edge;frame:iteration");
  };
  const std::vector<std::string> parts = absl::StrSplit(text, ';');
  if (parts.size() != 5 || parts[1].size() != 16) return bad();
  RendezvousKey key;
  key.send_device = parts[0];
  key.receive_device = parts[2];
  key.edge = parts[3];
  if (!absl::SimpleHexAtoi(parts[1], &key.send_incarnation)) return bad();
  const std::vector<std::string> frame = absl::StrSplit(parts[4], ':');
  if (frame.size() != 2 || !absl::SimpleAtoi(frame[0], &key.frame) ||
      !absl::SimpleAtoi(frame[1], &key.iteration)) {
    return bad();
  }
  return key;
}

}  // namespace weft
