// SPDX-License-Identifier: Apache-2.0
// What is UCX's own: peers that are killed, peers that speak TCP, jobs with TLS.
#include "weft/transport/ucx/endpoint.h"

#include <csignal>
#include <cstdlib>

#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "weft/transport/recorder.h"
#include "weft/transport/tcp/endpoint.h"

namespace weft::transport::ucx {
namespace {

using ::testing::HasSubstr;

constexpr char kAddressOfParent[] = "WEFT_TEST_UCX_PARENT";
constexpr char kWayOfParent[] = "WEFT_TEST_UCX_WAY";

absl::Time Soon() { return absl::Now() + absl::Seconds(60); }

EndpointOptions Options(absl::string_view task) {
  EndpointOptions options;
  options.task = std::string(task);
  options.token = "secret";
  options.linger = absl::Milliseconds(200);
  return options;
}

class Ucx : public ::testing::Test {
 protected:
  void SetUp() override {
    const Status there = IsThere();
    if (!there.ok()) GTEST_SKIP() << there.message();
    setenv("UCX_TLS", "tcp", 1);
  }
  void TearDown() override { told_.Clear(); }

  Completions done_;
  Recorder told_;
};

// Not a test of its own: the process that AKilledPeer... kills.
TEST_F(Ucx, ChildThatIsKilled) {
  const char* const address = std::getenv(kAddressOfParent);
  if (address == nullptr) GTEST_SKIP() << "only as a child";
  setenv("UCX_TLS", std::getenv(kWayOfParent), 1);
  told_.keep_bodies = false;
  auto endpoint = MakeEndpoint(Options("/job:worker/task:0"), &told_);
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  ASSERT_TRUE((*endpoint)->Connect(address, Soon()).ok());
  absl::SleepFor(absl::Minutes(1));
}

class UcxWay : public Ucx, public ::testing::WithParamInterface<const char*> {};

TEST_P(UcxWay, AKilledPeerFailsItsWaitersAtOnce) {
  setenv("UCX_TLS", GetParam(), 1);
  const int rounds = GetParam() == std::string("tcp") ? 5 : 1;
  for (int round = 0; round < rounds; ++round) {
    Completions done;
    Recorder told;
    auto endpoint = MakeEndpoint(Options("/job:ps/task:0"), &told);
    ASSERT_TRUE(endpoint.ok()) << endpoint.status();
    const auto address = (*endpoint)->Listen("127.0.0.1:0");
    ASSERT_TRUE(address.ok()) << address.status();
    setenv(kAddressOfParent, address->c_str(), 1);
    setenv(kWayOfParent, GetParam(), 1);
    const pid_t child = fork();
    if (child == 0) {
      execl("/proc/self/exe", "child", "--gtest_filter=Ucx.ChildThatIsKilled", nullptr);
      _exit(127);
    }
    unsetenv(kAddressOfParent);
    ASSERT_TRUE(told.WaitUp(1));
    const PeerRef peer = told.peer(0);
    // Large ones, which the receiver fetches, and small ones, more than its socket takes.
    constexpr int kFrames = 2000;
    for (int i = 0; i < kFrames; ++i) {
      Region body = NewRegion(i % 3 == 0 ? 200'000 : 9'000);
      FrameHeader header;
      header.kind = FrameKind::kTensor;
      peer->Send(header, "", std::span(&body, 1), done.Next());
      if (i == kFrames / 2 + round * 50) {
        ASSERT_TRUE(done.Wait(10));
        kill(child, SIGKILL);
      }
    }
    const absl::Time killed = absl::Now();
    ASSERT_TRUE(told.WaitDown(1));
    ASSERT_TRUE(done.Wait(kFrames));
    EXPECT_LT(absl::Now() - killed, absl::Seconds(3));
    EXPECT_TRUE(absl::IsUnavailable(told.down()[0].second)) << told.down()[0].second;
    EXPECT_TRUE(absl::IsUnavailable(done.statuses().back()));
    waitpid(child, nullptr, 0);
    told.Clear();
  }
  // Over shared memory UCX never gives back what was on its way to the dead.
  if (GetParam() == std::string("tcp")) {
    EXPECT_EQ(HeapBytes::live, 0);
  }
  HeapBytes::live = 0;
}

INSTANTIATE_TEST_SUITE_P(Ways, UcxWay, ::testing::Values("tcp", "sm,self"), [](const auto& way) {
  return way.param == std::string("tcp") ? "tcp" : "memory";
});

TEST_F(Ucx, WhoSpeaksTcpIsToldSo) {
  auto ps = MakeEndpoint(Options("/job:ps/task:0"), &told_);
  ASSERT_TRUE(ps.ok()) << ps.status();
  const auto address = (*ps)->Listen("127.0.0.1:0");
  ASSERT_TRUE(address.ok()) << address.status();
  Recorder other;
  auto worker = tcp::MakeEndpoint(Options("/job:worker/task:0"), &other);
  ASSERT_TRUE(worker.ok());
  const Status refused = (*worker)->Connect(*address, Soon()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("by TCP, task /job:ps/task:0 by UCX: give all tasks the same --transport"));
}

TEST_F(Ucx, AJobWithTlsIsRefused) {
  EndpointOptions options = Options("/job:ps/task:0");
  options.tls = *MakeJobTls(*MakeJobIdentity("a.weft-job", absl::Now(), absl::Hours(24)));
  const Status refused = MakeEndpoint(options, &told_).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
}

}  // namespace
}  // namespace weft::transport::ucx
