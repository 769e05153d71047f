// SPDX-License-Identifier: Apache-2.0
// Data connections inside TLS: who is let in, what both sides are told, and that nothing is left
// lying in the session while the socket is quiet.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "net/certificate.h"
#include "net/job_identity.h"
#include "weft/transport/recorder.h"
#include "weft/transport/tcp/endpoint.h"
#include "weft/transport/tcp/socket.h"

namespace weft::transport::tcp {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr absl::Duration kDay = absl::Hours(24);

absl::Time InAMinute() { return absl::Now() + absl::Seconds(60); }

JobTls TlsOf(const std::string& name) {
  return *MakeJobTls(*MakeJobIdentity(name, absl::Now(), kDay));
}

class TcpTlsTest : public ::testing::Test {
 protected:
  TcpTlsTest() {
    server_options_.task = "/job:ps/task:0";
    client_options_.task = "/job:worker/task:0";
    server_options_.token = client_options_.token = "same";
    server_options_.linger = client_options_.linger = absl::Milliseconds(50);
  }
  void Serve() {
    server_ = *MakeEndpoint(server_options_, &server_told_);
    const auto address = server_->Listen("127.0.0.1:0");
    ASSERT_TRUE(address.ok()) << address.status();
    address_ = *address;
  }
  StatusOr<PeerRef> Connect() {
    client_ = *MakeEndpoint(client_options_, &client_told_);
    return client_->Connect(address_, InAMinute());
  }
  // The client hears of a refusal in TLS before the server has counted it.
  uint64_t RefusedOnceItIs(uint64_t expected) const {
    const absl::Time end = InAMinute();
    while (server_->refused() < expected && absl::Now() < end)
      absl::SleepFor(absl::Milliseconds(1));
    return server_->refused();
  }

  EndpointOptions server_options_, client_options_;
  Recorder server_told_, client_told_;
  std::unique_ptr<Endpoint> server_, client_;
  std::string address_;
};

TEST_F(TcpTlsTest, OnlyTasksOfTheJobAreLetIn) {
  server_options_.tls = TlsOf("one.weft-job");
  Serve();
  client_options_.tls = server_options_.tls;
  EXPECT_TRUE(Connect().ok());
  client_options_.tls = TlsOf("one.weft-job");  // the name alone is no secret
  const Status other = Connect().status();
  EXPECT_TRUE(absl::IsPermissionDenied(other)) << other;
  EXPECT_THAT(std::string(other.message()), HasSubstr("certificate is not accepted"));
  client_options_.tls.reset();
  EXPECT_THAT(std::string(Connect().status().message()),
              HasSubstr("a task that demands TLS with the job's secret"));
  EXPECT_EQ(RefusedOnceItIs(2), 2u);
  EXPECT_EQ(server_told_.frame_count(), 0u);
  client_options_.tls = server_options_.tls;
  EXPECT_TRUE(Connect().ok());
}

TEST_F(TcpTlsTest, ATaskWithTheSecretDoesNotTalkToOneWithout) {
  Serve();
  client_options_.tls = TlsOf("one.weft-job");
  EXPECT_THAT(std::string(Connect().status().message()),
              HasSubstr("in the TLS handshake: has it no secret of the job?"));
  EXPECT_EQ(RefusedOnceItIs(1), 1u);
}

TEST_F(TcpTlsTest, AnExpiredCertificateIsRefused) {
  server_options_.tls = client_options_.tls =
      *MakeJobTls(*MakeJobIdentity("one.weft-job", absl::Now() - 2 * kDay, kDay));
  Serve();
  EXPECT_THAT(std::string(Connect().status().message()), HasSubstr("expired"));
}

TEST_F(TcpTlsTest, HalfAHandshakeEndsAtTheDeadlineAndOthersGetIn) {
  server_options_.tls = client_options_.tls = TlsOf("one.weft-job");
  server_options_.hello_deadline = absl::Milliseconds(300);
  Serve();
  const auto target = Resolve(address_)->front();
  const Fd silent(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(connect(silent.get(), reinterpret_cast<const sockaddr*>(&target.storage), target.size),
            0);
  ASSERT_EQ(send(silent.get(), "\x16\x03\x01\x02", 4, MSG_NOSIGNAL), 4);
  EXPECT_TRUE(Connect().ok());
  char byte;
  EXPECT_LE(recv(silent.get(), &byte, 1, 0), 0);
  EXPECT_EQ(RefusedOnceItIs(1), 1u);
}

// Frames larger than what is read in one turn, with small ones behind them, and no ping that would
// wake a reader which has left bytes lying.
TEST_F(TcpTlsTest, NothingStaysBehindInTheSession) {
  server_options_.tls = client_options_.tls = TlsOf("one.weft-job");
  server_options_.ping_interval = client_options_.ping_interval = absl::Minutes(10);
  server_options_.dead_after = client_options_.dead_after = absl::Minutes(20);
  Serve();
  const auto peer = Connect();
  ASSERT_TRUE(peer.ok()) << peer.status();
  ASSERT_TRUE(server_told_.WaitUp(1));
  const PeerRef back = server_told_.peer(0);
  size_t count = 0;
  for (const size_t size : {size_t{1}, size_t{16383}, size_t{16384}, size_t{65536}, size_t{1} << 20,
                            (size_t{16} << 20) - 48, size_t{40} << 20}) {
    for (const PeerRef& from : {*peer, back}) {
      FrameHeader header;
      header.kind = FrameKind::kTensor;
      Region body = NewRegion(size);
      std::memset(body.data, 7, size);
      from->Send(header, "meta", std::span(&body, 1), nullptr);
      header.kind = FrameKind::kStepDone;
      from->Send(header, "", {}, nullptr);
    }
    count += 2;
    ASSERT_TRUE(server_told_.WaitFrames(count)) << size;
    ASSERT_TRUE(client_told_.WaitFrames(count)) << size;
  }
  EXPECT_EQ(server_told_.frames()[count - 2].body.size, size_t{40} << 20);
}

}  // namespace
}  // namespace weft::transport::tcp
