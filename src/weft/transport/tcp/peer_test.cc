// SPDX-License-Identifier: Apache-2.0
// A connection's patience, on a time that the test makes up.
#include "weft/transport/tcp/peer.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "weft/transport/recorder.h"

namespace weft::transport::tcp {
namespace {

using ::testing::HasSubstr;

class TcpPeerTest : public ::testing::Test, private PeerHost {
 protected:
  // One side of a pair of sockets has said Hello; the other is in the test's hand.
  TcpPeerTest() {
    int pair[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    near_ = Fd(pair[0]);
    far_ = Fd(pair[1]);
    EXPECT_EQ(fcntl(near_.get(), F_SETFL, O_NONBLOCK), 0);
    options_.ping_interval = absl::Milliseconds(300);
    options_.dead_after = absl::Seconds(1);
  }
  void ComeUp() {
    peer_ = std::make_shared<TcpPeer>(
        TcpPeer::Setting{&options_, &told_, this, &hello_, nullptr, epoll_.get()}, std::move(near_),
        "10.0.0.2:2222", false, INT64_MAX);
    ASSERT_EQ(peer_->Register(), absl::OkStatus());
    now_ns_ = MonotonicNanos();
    FrameHeader header;
    header.kind = FrameKind::kHello;
    header.meta_bytes = static_cast<uint32_t>(hello_.size());
    Say(header);
    Say(hello_);
    ASSERT_EQ(After(absl::ZeroDuration()), absl::OkStatus());
    ASSERT_EQ(up_, 1);
  }
  ~TcpPeerTest() override { peer_->GoDown(Cancelled("the test has ended")); }

  void Say(absl::string_view bytes) {
    ASSERT_EQ(write(far_.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  void Say(const FrameHeader& header) {
    std::array<std::byte, kHeaderBytes> bytes;
    EncodeHeader(header, bytes);
    Say(absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
  size_t Heard() {
    char buffer[4096];
    const ssize_t got = recv(far_.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
    return got < 0 ? 0 : static_cast<size_t>(got);
  }
  // The peer reads what is there, `passed` later, and judges.
  Status After(absl::Duration passed) {
    now_ns_ += absl::ToInt64Nanoseconds(passed);
    WEFT_RETURN_IF_ERROR(peer_->OnEvents(EPOLLIN, now_ns_));
    return peer_->OnTick(now_ns_);
  }

  EndpointOptions options_;
  Recorder told_;
  int up_ = 0;

 private:
  void PeerIsUp(TcpPeer*) override { ++up_; }
  void PeerRefused(TcpPeer*, const Status& why) override { FAIL() << why; }
  void PeerFailed(TcpPeer*, const Status&) override {}

  const std::string hello_ = *EncodeHello({"", "/job:worker/task:7", 1, 1 << 20});
  Fd epoll_{epoll_create1(EPOLL_CLOEXEC)};
  Fd near_, far_;
  std::shared_ptr<TcpPeer> peer_;
  int64_t now_ns_ = 0;
};

TEST_F(TcpPeerTest, ADrippingFrameIsGivenUp) {
  ComeUp();
  FrameHeader header;
  header.kind = FrameKind::kTensor;
  header.body_bytes = 1 << 20;
  Say(header);
  ASSERT_EQ(After(absl::ZeroDuration()), absl::OkStatus());
  for (int i = 0; i < 10; ++i) {
    Say("x");
    ASSERT_EQ(After(absl::Milliseconds(100)), absl::OkStatus()) << i;
  }
  Say("x");
  const Status why = After(absl::Milliseconds(100));
  EXPECT_TRUE(absl::IsUnavailable(why)) << why;
  EXPECT_THAT(std::string(why.message()), HasSubstr("dripped in too slowly"));
}

TEST_F(TcpPeerTest, ASlowFrameIsWaitedFor) {
  ComeUp();
  FrameHeader header;
  header.kind = FrameKind::kTensor;
  header.body_bytes = 1 << 20;
  Say(header);
  const std::string part(64 * 1024, 'x');
  for (int i = 0; i < 16; ++i) {
    Say(part);
    ASSERT_EQ(After(absl::Milliseconds(900)), absl::OkStatus()) << i;
  }
  ASSERT_EQ(told_.frame_count(), 1u);
  EXPECT_EQ(told_.frames()[0].body.size, header.body_bytes);
}

TEST_F(TcpPeerTest, SilenceIsPingedThenFoundDead) {
  ComeUp();
  Heard();  // its Hello
  ASSERT_EQ(After(absl::Milliseconds(200)), absl::OkStatus());
  EXPECT_EQ(Heard(), 0u);
  ASSERT_EQ(After(absl::Milliseconds(200)), absl::OkStatus());
  EXPECT_EQ(Heard(), kHeaderBytes);
  ASSERT_EQ(After(absl::Milliseconds(600)), absl::OkStatus());
  const Status why = After(absl::Milliseconds(100));
  EXPECT_TRUE(absl::IsUnavailable(why)) << why;
  EXPECT_THAT(std::string(why.message()), HasSubstr("no byte came for 1s"));
}

}  // namespace
}  // namespace weft::transport::tcp
