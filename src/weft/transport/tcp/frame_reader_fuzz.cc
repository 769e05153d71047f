// SPDX-License-Identifier: Apache-2.0
// Bytes from a socket, in two parts, through the reader: whatever they are, it asks for no more
// memory than it allows and every body that ends has the size that its header said.
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include <sys/socket.h>
#include <unistd.h>

#include "weft/transport/tcp/frame_reader.h"

namespace {

using weft::transport::FrameHeader;
using weft::transport::Region;
using weft::transport::tcp::FrameReader;

constexpr uint64_t kMaxBody = 4096;

class Sink final : public weft::transport::FrameSink {
 public:
  weft::StatusOr<Region> FrameBegins(const FrameHeader& header, absl::string_view) override {
    if (header.body_bytes == 0 || header.body_bytes > kMaxBody) std::abort();
    if (header.key % 4 == 3) return Region();
    memory_.assign(header.body_bytes, std::byte{0});
    return Region(memory_.data(), memory_.size());
  }
  weft::Status FrameEnds(const FrameHeader& header, absl::string_view meta, Region body) override {
    if (body.size != header.body_bytes || meta.size() != header.meta_bytes) std::abort();
    return absl::OkStatus();
  }

 private:
  std::vector<std::byte> memory_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0 || size > 32768) return 0;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0) return 0;
  weft::transport::tcp::Channel channel{weft::transport::tcp::Fd(ends[1])};
  FrameReader reader(kMaxBody);
  Sink sink;
  const size_t split = data[0] * size / 256;
  for (const auto& [from, to] : {std::pair(size_t{0}, split), std::pair(split, size)}) {
    if (from == to) continue;
    if (send(ends[0], data + from, to - from, MSG_NOSIGNAL) < 0) break;
    const auto outcome = reader.Read(&channel, 1 << 20, &sink);
    if (!outcome.ok() || *outcome == FrameReader::Outcome::kEnd) break;
  }
  close(ends[0]);
  return 0;
}
