// SPDX-License-Identifier: Apache-2.0
// What only a network can do to an endpoint: strangers, silence, torn frames, death.
#include "weft/transport/tcp/endpoint.h"

#include <random>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "weft/transport/recorder.h"
#include "weft/transport/tcp/socket.h"

namespace weft::transport::tcp {
namespace {

using ::testing::HasSubstr;

absl::Time Soon() { return absl::Now() + absl::Seconds(60); }

// A blocking socket that says what it is told to.
class Stranger {
 public:
  explicit Stranger(const std::string& address) {
    const auto resolved = Resolve(address);
    fd_ = Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto& target = resolved->front();
    EXPECT_EQ(connect(fd_.get(), reinterpret_cast<const sockaddr*>(&target.storage), target.size),
              0);
  }
  explicit Stranger(Fd fd) : fd_(std::move(fd)) {}

  void Say(absl::string_view bytes) { send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  void Say(const FrameHeader& header, absl::string_view meta = "") {
    std::array<std::byte, kHeaderBytes> bytes;
    EncodeHeader(header, bytes);
    Say(absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    Say(meta);
  }
  void SayHello(const std::string& token = "secret") {
    const std::string hello = *EncodeHello({token, "/job:worker/task:7", 1, 1 << 20});
    FrameHeader header;
    header.kind = FrameKind::kHello;
    header.meta_bytes = static_cast<uint32_t>(hello.size());
    Say(header, hello);
  }
  // All that comes until the other side closes, or half a minute has passed.
  std::string HearToEnd(bool* closed) {
    std::string heard;
    char buffer[4096];
    *closed = false;
    pollfd ready = {fd_.get(), POLLIN, 0};
    while (poll(&ready, 1, 30000) == 1) {
      const ssize_t got = recv(fd_.get(), buffer, sizeof(buffer), 0);
      *closed = got <= 0;
      if (got <= 0) return heard;
      heard.append(buffer, static_cast<size_t>(got));
    }
    return heard;
  }
  bool IsClosed() {
    bool closed;
    HearToEnd(&closed);
    return closed;
  }
  void Leave() { fd_.Reset(); }
  int fd() const { return fd_.get(); }

 private:
  Fd fd_;
};

FrameHeader TensorHeader(uint64_t body_bytes) {
  FrameHeader header;
  header.kind = FrameKind::kTensor;
  header.body_bytes = body_bytes;
  return header;
}

class TcpEndpointTest : public ::testing::Test {
 protected:
  TcpEndpointTest() {
    options_.task = "/job:ps/task:0";
    options_.token = "secret";
    options_.linger = absl::Milliseconds(50);
  }
  void Serve() {
    auto endpoint = MakeEndpoint(options_, &told_);
    ASSERT_TRUE(endpoint.ok()) << endpoint.status();
    endpoint_ = *std::move(endpoint);
    auto address = endpoint_->Listen("127.0.0.1:0");
    ASSERT_TRUE(address.ok()) << address.status();
    address_ = *address;
  }
  // A real peer still gets in: whatever happened, the server lives on.
  void ExpectAlive() {
    Recorder told;
    EndpointOptions options = options_;
    options.task = "/job:worker/task:0";
    auto other = MakeEndpoint(options, &told);
    ASSERT_TRUE(other.ok());
    const auto peer = (*other)->Connect(address_, Soon());
    ASSERT_TRUE(peer.ok()) << peer.status();
  }
  Status WhyDown() {
    if (!told_.WaitDown(1)) return Internal("PeerDown was never called");
    return told_.down()[0].second;
  }

  Recorder told_;
  EndpointOptions options_;
  std::unique_ptr<Endpoint> endpoint_;
  std::string address_;
};

TEST_F(TcpEndpointTest, GarbageIsTurnedAwayAndTheServerLivesOn) {
  Serve();
  std::mt19937 random(5);
  std::string noise(100000, '\0');
  for (char& c : noise) c = static_cast<char>(random());
  for (const std::string& bytes : {std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
                                   std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
                                   std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11),
                                   std::string(4, '\0'), noise}) {
    Stranger stranger(address_);
    stranger.Say(bytes);
    EXPECT_TRUE(stranger.IsClosed()) << bytes.substr(0, 10);
  }
  EXPECT_EQ(endpoint_->refused(), 5u);
  ExpectAlive();
}

TEST_F(TcpEndpointTest, MalformedFramesOfAStrangerEndIt) {
  Serve();
  FrameHeader hello;
  hello.kind = FrameKind::kHello;
  const auto expect_closed = [this](FrameHeader header, absl::string_view meta) {
    Stranger stranger(address_);
    header.meta_bytes = static_cast<uint32_t>(meta.size());
    stranger.Say(header, meta);
    EXPECT_TRUE(stranger.IsClosed());
  };
  expect_closed(hello, "");
  expect_closed(hello, "no hello at all");
  expect_closed(TensorHeader(0), "");
  expect_closed(TensorHeader(uint64_t{1} << 39), "");
  expect_closed(TensorHeader(1 << 20), std::string(60000, 'm'));
  EXPECT_EQ(endpoint_->refused(), 5u);
  ExpectAlive();
  EXPECT_EQ(told_.frame_count(), 0u);
}

TEST_F(TcpEndpointTest, AStrangerIsToldWhyItIsRefused) {
  Serve();
  bool closed;
  {
    Stranger stranger(address_);
    stranger.SayHello("guess");
    shutdown(stranger.fd(), SHUT_WR);
    EXPECT_THAT(stranger.HearToEnd(&closed), HasSubstr("Token of the cluster does not match"));
    EXPECT_TRUE(closed);
  }
  {
    Stranger stranger(address_);
    std::string other_version("WEFT\x01", 5);
    other_version.resize(kHeaderBytes);
    stranger.Say(other_version);
    shutdown(stranger.fd(), SHUT_WR);
    EXPECT_THAT(stranger.HearToEnd(&closed), HasSubstr("got 1, expected 2"));
    EXPECT_TRUE(closed);
  }
  EXPECT_EQ(endpoint_->refused(), 2u);
  ExpectAlive();
}

TEST_F(TcpEndpointTest, SilentStrangersAreClosedAtTheDeadline) {
  options_.hello_deadline = absl::Milliseconds(40);
  Serve();
  Stranger silent(address_), slow(address_);
  slow.Say("WEF");
  EXPECT_TRUE(silent.IsClosed());
  EXPECT_TRUE(slow.IsClosed());
  EXPECT_EQ(endpoint_->refused(), 2u);
}

TEST_F(TcpEndpointTest, TooManyStrangersGiveWayToTheNewest) {
  options_.max_unauthenticated = 3;
  options_.hello_deadline = absl::Minutes(10);
  Serve();
  std::vector<std::unique_ptr<Stranger>> strangers;
  for (int i = 0; i < 8; ++i) strangers.push_back(std::make_unique<Stranger>(address_));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(strangers[i]->IsClosed()) << i;
  ExpectAlive();
}

TEST_F(TcpEndpointTest, ATornFrameTakesItsPeerDownOnly) {
  Serve();
  Stranger peer(address_);
  peer.SayHello();
  ASSERT_TRUE(told_.WaitUp(1));
  peer.Say(TensorHeader(1 << 20));
  peer.Say(std::string(1000, 'x'));
  peer.Leave();
  const Status why = WhyDown();
  EXPECT_TRUE(absl::IsUnavailable(why)) << why;
  EXPECT_THAT(std::string(why.message()), HasSubstr("/job:worker/task:7"));
  EXPECT_THAT(std::string(why.message()), HasSubstr("in the middle of a frame"));
  EXPECT_EQ(told_.frame_count(), 0u);
  ExpectAlive();
}

TEST_F(TcpEndpointTest, APeerThatTalksNonsenseIsDropped) {
  Serve();
  FrameHeader credit;
  credit.kind = FrameKind::kCredit;
  credit.step = 1;
  FrameHeader hello;
  hello.kind = FrameKind::kHello;
  size_t count = 0;
  for (const FrameHeader& header : {credit, hello}) {
    Stranger peer(address_);
    peer.SayHello();
    peer.Say(header);
    EXPECT_TRUE(peer.IsClosed());
    ASSERT_TRUE(told_.WaitDown(++count));
    EXPECT_TRUE(absl::IsUnavailable(told_.down().back().second));
  }
  Stranger peer(address_);
  peer.SayHello();
  peer.Say("this is no frame");
  EXPECT_TRUE(peer.IsClosed());
  ExpectAlive();
}

TEST_F(TcpEndpointTest, AHalfOpenPeerIsFoundDead) {
  options_.ping_interval = absl::Milliseconds(20);
  options_.dead_after = absl::Milliseconds(100);
  Serve();
  Stranger peer(address_);
  peer.SayHello();
  const Status why = WhyDown();
  EXPECT_TRUE(absl::IsUnavailable(why)) << why;
  EXPECT_THAT(std::string(why.message()), HasSubstr("no byte came for 100ms"));
}

TEST_F(TcpEndpointTest, IdlePeersStayAliveAndMeasureTheirRoundTrip) {
  options_.ping_interval = absl::Milliseconds(20);
  options_.dead_after = absl::Seconds(30);
  Serve();
  Recorder told;
  EndpointOptions options = options_;
  options.task = "/job:worker/task:0";
  auto other = MakeEndpoint(options, &told);
  ASSERT_TRUE(other.ok());
  const auto peer = (*other)->Connect(address_, Soon());
  ASSERT_TRUE(peer.ok());
  const absl::Time end = Soon();
  while ((*peer)->stats().round_trip == absl::ZeroDuration() && absl::Now() < end) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_GT((*peer)->stats().round_trip, absl::ZeroDuration());
  EXPECT_TRUE(told.down().empty());
}

TEST_F(TcpEndpointTest, APeerThatStopsReadingNeverBlocksTheSender) {
  options_.dead_after = absl::Seconds(1);
  options_.credit_bytes = uint64_t{1} << 40;
  Serve();
  Stranger peer(address_);
  const std::string hello = *EncodeHello({"secret", "/job:worker/task:7", 1, uint64_t{1} << 40});
  FrameHeader header;
  header.kind = FrameKind::kHello;
  header.meta_bytes = static_cast<uint32_t>(hello.size());
  peer.Say(header, hello);
  ASSERT_TRUE(told_.WaitUp(1));
  const PeerRef link = told_.peer(0);
  Completions done;
  const Region same = NewRegion(1 << 20);
  std::memset(same.data, 1, same.size);
  for (int i = 0; i < 64; ++i) {
    Region body = same;
    link->Send(TensorHeader(0), "", std::span(&body, 1), done.Next());
  }
  EXPECT_GT(link->stats().queued_bytes, uint64_t{16} << 20);
  ASSERT_TRUE(done.Wait(64));
  EXPECT_TRUE(absl::IsUnavailable(done.statuses().back())) << done.statuses().back();
  EXPECT_THAT(std::string(done.statuses().back().message()), HasSubstr("/job:worker/task:7"));
  EXPECT_TRUE(absl::IsUnavailable(WhyDown()));
  endpoint_.reset();
}

// The child is a peer made of system calls only; it dies while its tensor is half sent.
TEST_F(TcpEndpointTest, AKilledProcessFailsItsFramesAtOnce) {
  Serve();
  Stranger peer(address_);
  const std::string half(300000, 'x');
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    peer.SayHello();
    peer.Say(TensorHeader(1 << 20));
    peer.Say(half);
    [[maybe_unused]] const ssize_t written = write(ready[1], "r", 1);
    while (true) pause();
  }
  ASSERT_GT(child, 0);
  peer.Leave();
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  ASSERT_TRUE(told_.WaitUp(1));
  const PeerRef link = told_.peer(0);
  ASSERT_EQ(kill(child, SIGKILL), 0);
  const Status why = WhyDown();
  EXPECT_TRUE(absl::IsUnavailable(why)) << why;
  EXPECT_THAT(std::string(why.message()), HasSubstr("/job:worker/task:7"));
  Completions done;
  link->Send(TensorHeader(0), "", {}, done.Next());
  ASSERT_TRUE(done.Wait(1));
  EXPECT_TRUE(absl::IsUnavailable(done.statuses()[0]));
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
  ExpectAlive();
}

TEST(Resolve, NumbersNeedNoTimeAndNamesGetNoMoreThanTheirs) {
  EXPECT_TRUE(Resolve("127.0.0.1:80", absl::InfinitePast()).ok());
  EXPECT_TRUE(Resolve("[::1]:80", absl::InfinitePast()).ok());
  const auto local = Resolve("localhost:80");
  ASSERT_TRUE(local.ok()) << local.status();
  EXPECT_FALSE(local->empty());
  for (int i = 0; i < 20; ++i) {
    const absl::Time start = absl::Now();
    const auto none = Resolve("no-such-host.invalid:80", start + absl::Milliseconds(i % 2));
    EXPECT_TRUE(absl::IsDeadlineExceeded(none.status()) || absl::IsUnavailable(none.status()))
        << none.status();
    EXPECT_THAT(std::string(none.status().message()), HasSubstr("no-such-host.invalid:80"));
    EXPECT_LT(absl::Now() - start, absl::Seconds(5));
  }
  const auto past = Resolve("no-such-host.invalid:80", absl::InfinitePast());
  EXPECT_FALSE(past.ok());
}

TEST_F(TcpEndpointTest, AServerThatNeverAnswersIsGivenUpAtTheDeadline) {
  const auto any = Resolve("127.0.0.1:0");
  const auto mute = ListenOn(any->front());
  ASSERT_TRUE(mute.ok());
  auto endpoint = MakeEndpoint(options_, &told_);
  ASSERT_TRUE(endpoint.ok());
  const auto peer =
      (*endpoint)->Connect(LocalText(mute->get()), absl::Now() + absl::Milliseconds(50));
  EXPECT_TRUE(absl::IsDeadlineExceeded(peer.status())) << peer.status();
}

TEST_F(TcpEndpointTest, AServerWithAnotherTokenOrVersionIsRefused) {
  const auto any = Resolve("127.0.0.1:0");
  const auto listener = ListenOn(any->front());
  ASSERT_TRUE(listener.ok());
  auto endpoint = MakeEndpoint(options_, &told_);
  ASSERT_TRUE(endpoint.ok());
  const auto answer = [&](auto speak) {
    StatusOr<PeerRef> result = Internal("not told");
    absl::Notification told;
    (*endpoint)->ConnectAsync(LocalText(listener->get()), Soon(), [&](StatusOr<PeerRef> peer) {
      result = std::move(peer);
      told.Notify();
    });
    pollfd ready = {listener->get(), POLLIN, 0};
    poll(&ready, 1, 30000);
    Stranger server(Fd(accept(listener->get(), nullptr, nullptr)));
    speak(server);
    told.WaitForNotification();
    return result.status();
  };
  const Status token = answer([](Stranger& server) { server.SayHello("other"); });
  EXPECT_TRUE(absl::IsPermissionDenied(token)) << token;
  const Status version = answer([](Stranger& server) {
    server.Say("WEFT\x07 and more than forty bytes of a header of the future");
  });
  EXPECT_TRUE(absl::IsFailedPrecondition(version)) << version;
  const Status nonsense = answer([](Stranger& server) { server.Say("HTTP/1.1 400 Bad Request"); });
  EXPECT_TRUE(absl::IsInvalidArgument(nonsense)) << nonsense;
}

TEST_F(TcpEndpointTest, BadAddressesAreNamed) {
  Serve();
  for (const std::string bad : {"", "nonsense", "host:", ":80", "1.2.3.4:70000", "::1:80", "h:x"}) {
    const Status status = endpoint_->Connect(bad, Soon()).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << bad << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("'" + bad + "'"));
  }
}

TEST_F(TcpEndpointTest, ListensOnVersionSixAndByName) {
  auto endpoint = MakeEndpoint(options_, &told_);
  ASSERT_TRUE(endpoint.ok());
  const auto address = (*endpoint)->Listen("[::1]:0");
  if (!address.ok()) GTEST_SKIP() << "no IPv6 here: " << address.status();
  EXPECT_TRUE(absl::StartsWith(*address, "[::1]:"));
  EXPECT_TRUE((*endpoint)->Connect(*address, Soon()).ok());
}

TEST_F(TcpEndpointTest, ARestartedServerTakesItsPortBack) {
  Serve();
  Stranger peer(address_);
  peer.SayHello();
  ASSERT_TRUE(told_.WaitUp(1));
  endpoint_.reset();
  auto again = MakeEndpoint(options_, &told_);
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE((*again)->Listen(address_).ok());
  EXPECT_TRUE((*again)->Listen(address_).status().code() == absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace weft::transport::tcp
