// SPDX-License-Identifier: Apache-2.0
// What every way between two tasks must do: in the clear and inside TLS, with and without memory
// that both map, over the sockets themselves and over UCX's own ways.
#include <cstdlib>
#include <map>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/threads.h"
#include "weft/transport/recorder.h"
#include "weft/transport/shm/loan.h"
#include "weft/transport/tcp/endpoint.h"
#include "weft/transport/ucx/endpoint.h"

namespace weft::transport {
namespace {

using ::testing::HasSubstr;

absl::Time Soon() { return absl::Now() + absl::Seconds(60); }

FrameHeader Header(FrameKind kind, uint32_t key = 0, uint64_t step = 0) {
  FrameHeader header;
  header.kind = kind;
  header.key = key;
  header.step = step;
  return header;
}

void SendText(Peer& peer, FrameKind kind, absl::string_view text, uint32_t key = 0,
              SendDone done = nullptr) {
  Region body = RegionOf(text);
  peer.Send(Header(kind, key), "", std::span(&body, 1), std::move(done));
}

class Transport : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (IsUcx()) {
      const Status there = ucx::IsThere();
      if (!there.ok()) GTEST_SKIP() << there.message();
      // Read by each endpoint as it is made.
      setenv("UCX_TLS", absl::StartsWith(GetParam(), "ucx_memory") ? "sm,self" : "tcp", 1);
    }
    worker_options_.task = "/job:worker/task:0";
    worker_options_.incarnation = 11;
    worker_options_.token = "secret";
    ps_options_.task = "/job:ps/task:0";
    ps_options_.incarnation = 22;
    ps_options_.token = "secret";
    if (absl::StartsWith(GetParam(), "tls")) {
      static const JobTls* const job =
          new JobTls(*MakeJobTls(*MakeJobIdentity("a.weft-job", absl::Now(), absl::Hours(24))));
      worker_options_.tls = ps_options_.tls = *job;
    }
    if (LendsMemory()) {
      ASSERT_TRUE(memory_.Enable().ok());
      worker_options_.shared_memory = ps_options_.shared_memory = HeapBytes::shared = &memory_;
    }
  }
  void TearDown() override {
    link_.reset();
    worker_.reset();
    ps_.reset();
    worker_told_.Clear();
    ps_told_.Clear();
    EXPECT_EQ(shm::SweepLingering(), 0u);
    EXPECT_EQ(HeapBytes::live, 0) << "a region was kept or lost";
    HeapBytes::shared = nullptr;
  }

  static bool IsUcx() { return absl::StartsWith(GetParam(), "ucx"); }
  static bool LendsMemory() { return absl::EndsWith(GetParam(), "shm"); }
  std::unique_ptr<Endpoint> Make(const EndpointOptions& options, FrameHandler* handler) {
    auto endpoint =
        IsUcx() ? ucx::MakeEndpoint(options, handler) : tcp::MakeEndpoint(options, handler);
    EXPECT_TRUE(endpoint.ok()) << endpoint.status();
    return *std::move(endpoint);
  }
  void Serve() {
    ps_ = Make(ps_options_, &ps_told_);
    const auto address = ps_->Listen("127.0.0.1:0");
    ASSERT_TRUE(address.ok()) << address.status();
    address_ = *address;
  }
  // A worker connected to a server: link_ is the worker's side, Back() the server's.
  void Join() {
    ASSERT_NO_FATAL_FAILURE(Serve());
    worker_ = Make(worker_options_, &worker_told_);
    auto peer = worker_->Connect(address_, Soon());
    ASSERT_TRUE(peer.ok()) << peer.status();
    link_ = *peer;
    ASSERT_TRUE(ps_told_.WaitUp(1));
  }
  PeerRef Back() { return ps_told_.peer(0); }

  SharedMemory memory_;
  Completions done_;  // outlives the endpoints, which finish what is left
  EndpointOptions worker_options_, ps_options_;
  Recorder worker_told_, ps_told_;
  std::unique_ptr<Endpoint> worker_, ps_;
  std::string address_;
  PeerRef link_;
};

TEST_P(Transport, BothSidesKnowWhoTheOtherIs) {
  Join();
  EXPECT_EQ(link_->task(), "/job:ps/task:0");
  EXPECT_EQ(link_->incarnation(), 22u);
  EXPECT_EQ(Back()->task(), "/job:worker/task:0");
  EXPECT_EQ(Back()->incarnation(), 11u);
  EXPECT_EQ(link_->name(), "/job:ps/task:0 at " + address_);
}

TEST_P(Transport, AFrameArrivesWithAllItsParts) {
  Join();
  Region body = RegionOf("twelve bytes");
  FrameHeader header = Header(FrameKind::kTensor, 5, 1234567890123);
  header.graph = 9;
  header.flags = 3;
  Completions& done = done_;
  link_->Send(header, "the meta", std::span(&body, 1), done.Next());
  ASSERT_TRUE(ps_told_.WaitFrames(1));
  const Recorder::Got got = ps_told_.frames()[0];
  EXPECT_EQ(got.header.kind, FrameKind::kTensor);
  EXPECT_EQ(got.header.key, 5u);
  EXPECT_EQ(got.header.step, 1234567890123u);
  EXPECT_EQ(got.header.graph, 9u);
  EXPECT_EQ(got.header.flags, 3);
  EXPECT_EQ(got.meta, "the meta");
  EXPECT_EQ(got.text(), "twelve bytes");
  EXPECT_EQ(got.peer, Back());
  ASSERT_TRUE(done.Wait(1));
  EXPECT_TRUE(done.statuses()[0].ok());
}

TEST_P(Transport, EmptyBodiesAndFullMetaArrive) {
  Join();
  const std::string meta(kMaxMetaBytes, 'm');
  for (const FrameKind kind :
       {FrameKind::kStepStart, FrameKind::kStepDone, FrameKind::kAbort, FrameKind::kTensor}) {
    link_->Send(Header(kind), "", {}, nullptr);
    link_->Send(Header(kind), meta, {}, nullptr);
    Region empty = NewRegion(0);
    link_->Send(Header(kind), "", std::span(&empty, 1), nullptr);
  }
  ASSERT_TRUE(ps_told_.WaitFrames(12));
  int full = 0;
  for (const Recorder::Got& got : ps_told_.frames()) {
    EXPECT_EQ(got.body.size, 0u);
    full += got.meta == meta;
  }
  EXPECT_EQ(full, 4);
}

TEST_P(Transport, EachLaneKeepsItsOrder) {
  Join();
  constexpr uint32_t kFrames = 2000;
  for (uint32_t i = 0; i < kFrames; ++i) {
    SendText(*link_, FrameKind::kTensor, std::string(i * 7 % 5000, 'x'), i);
    link_->Send(Header(FrameKind::kStepStart, i), "meta", {}, nullptr);
  }
  ASSERT_TRUE(ps_told_.WaitFrames(2 * kFrames));
  std::map<FrameKind, uint32_t> next;
  for (const Recorder::Got& got : ps_told_.frames()) {
    ASSERT_EQ(got.header.key, next[got.header.kind]++);
    ASSERT_EQ(got.body.size, IsBulk(got.header.kind) ? got.header.key * 7 % 5000 : 0);
  }
}

TEST_P(Transport, AHugeBodyArrivesWhole) {
  Join();
  constexpr size_t kSize = size_t{256} << 20;
  Region body = NewRegion(kSize);
  auto* words = reinterpret_cast<uint64_t*>(body.data);
  for (size_t i = 0; i < kSize / 8; ++i) words[i] = i * 0x9e3779b97f4a7c15;
  link_->Send(Header(FrameKind::kTensor), "", std::span(&body, 1), nullptr);
  ASSERT_TRUE(ps_told_.WaitFrames(1));
  const Region got = ps_told_.frames()[0].body;
  ASSERT_EQ(got.size, kSize);
  const auto* read = reinterpret_cast<const uint64_t*>(got.data);
  size_t wrong = 0;
  for (size_t i = 0; i < kSize / 8; ++i) wrong += read[i] != i * 0x9e3779b97f4a7c15;
  EXPECT_EQ(wrong, 0u);
}

TEST_P(Transport, ABodyInManyPiecesArrivesAsOne) {
  Join();
  std::vector<Region> pieces;
  std::string whole;
  for (int i = 0; i < 700; ++i) {
    const std::string piece(i % 37 * (i % 90 == 0 ? 1000 : 1), static_cast<char>('a' + i % 26));
    pieces.push_back(RegionOf(piece));
    whole += piece;
  }
  link_->Send(Header(FrameKind::kTensor), "meta", pieces, nullptr);
  pieces.clear();
  ASSERT_TRUE(ps_told_.WaitFrames(1));
  EXPECT_EQ(ps_told_.frames()[0].text(), whole);
}

TEST_P(Transport, ADroppedBodyLeavesTheNextFrameWhole) {
  Join();
  ps_told_.drop_bodies = true;
  Region pieces[2] = {RegionOf(std::string(300000, 'x')), RegionOf("y")};
  link_->Send(Header(FrameKind::kTensor, 1), "", pieces, nullptr);
  link_->Send(Header(FrameKind::kStepStart, 2), "", {}, nullptr);
  ASSERT_TRUE(ps_told_.WaitFrames(1));
  EXPECT_EQ(ps_told_.frames()[0].header.key, 2u);
}

TEST_P(Transport, ManyPeersTalkAtOnce) {
  Serve();
  constexpr int kWorkers = 12;
  constexpr int kFrames = 40;
  ps_told_.on_frame = [](const PeerRef& peer, const FrameHeader& header) {
    SendText(*peer, FrameKind::kTensor, std::string(header.key * 100, 'e'), header.key);
  };
  std::vector<std::unique_ptr<Recorder>> told;
  std::vector<std::unique_ptr<Endpoint>> workers;
  std::vector<PeerRef> links;
  for (int i = 0; i < kWorkers; ++i) {
    EndpointOptions options = worker_options_;
    options.task = absl::StrCat("/job:worker/task:", i);
    told.push_back(std::make_unique<Recorder>());
    workers.push_back(Make(options, told.back().get()));
    auto link = workers.back()->Connect(address_, Soon());
    ASSERT_TRUE(link.ok()) << link.status();
    links.push_back(*link);
  }
  for (uint32_t key = 0; key < kFrames; ++key) {
    for (const PeerRef& link : links) SendText(*link, FrameKind::kTensor, "hello", key);
  }
  for (int i = 0; i < kWorkers; ++i) {
    ASSERT_TRUE(told[i]->WaitFrames(kFrames));
    const auto frames = told[i]->frames();
    for (uint32_t key = 0; key < kFrames; ++key) EXPECT_EQ(frames[key].body.size, key * 100);
  }
  EXPECT_TRUE(ps_told_.WaitFrames(kWorkers * kFrames));
}

TEST_P(Transport, ThreadsMayShareAPeer) {
  Join();
  constexpr uint32_t kThreads = 4, kFrames = 500;
  Completions& done = done_;
  {
    std::vector<Thread> threads;
    for (uint32_t t = 0; t < kThreads; ++t) {
      threads.emplace_back("sender", [&, t] {
        for (uint32_t i = 0; i < kFrames; ++i) {
          Region body = RegionOf(std::string(i * 13 % 9000, static_cast<char>('a' + t)));
          link_->Send(Header(FrameKind::kTensor, t, i), "", std::span(&body, 1), done.Next());
        }
      });
    }
  }
  ASSERT_TRUE(ps_told_.WaitFrames(kThreads * kFrames));
  ASSERT_TRUE(done.Wait(kThreads * kFrames));
  uint64_t next[kThreads] = {};
  for (const Recorder::Got& got : ps_told_.frames()) {
    ASSERT_EQ(got.header.step, next[got.header.key]++);
    ASSERT_EQ(got.text(), std::string(got.body.size, static_cast<char>('a' + got.header.key)));
  }
}

TEST_P(Transport, BulkWaitsForCreditWhileControlPasses) {
  ps_options_.auto_credit = false;
  ps_options_.credit_bytes = 1000;
  Join();
  Completions& done = done_;
  for (uint32_t i = 0; i < 10; ++i) {
    SendText(*link_, FrameKind::kTensor, std::string(500, 'x'), i, done.Next());
  }
  // The abort must pass only those that wait for credit: what still has it may come after.
  ASSERT_TRUE(ps_told_.WaitFrames(2));
  link_->Send(Header(FrameKind::kAbort), "stop", {}, nullptr);
  ASSERT_TRUE(ps_told_.WaitFrames(3));
  EXPECT_EQ(ps_told_.frame_count(), 3u);
  EXPECT_EQ(ps_told_.frames()[2].header.kind, FrameKind::kAbort);
  EXPECT_GT(link_->stats().queued_bytes, 3000u);
  for (size_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(ps_told_.WaitFrames(std::min<size_t>(11, i + 3)));
    Back()->ReturnCredit(500);
  }
  ASSERT_TRUE(ps_told_.WaitFrames(11));
  ASSERT_TRUE(done.Wait(10));
}

TEST_P(Transport, CreditGoesBackByItself) {
  ps_options_.credit_bytes = 1000;
  Join();
  for (uint32_t i = 0; i < 200; ++i) {
    SendText(*link_, FrameKind::kTensor, std::string(i * 11 % 3000, 'x'), i);
  }
  ASSERT_TRUE(ps_told_.WaitFrames(200));
}

TEST_P(Transport, AFullQueueRefusesAndTheRestGoesOn) {
  ps_options_.auto_credit = false;
  ps_options_.credit_bytes = 100;
  worker_options_.max_queued_frames = 5;
  worker_options_.linger = absl::Milliseconds(50);
  Join();
  Completions& done = done_;
  for (uint32_t i = 0; i < 10; ++i) {
    SendText(*link_, FrameKind::kTensor, std::string(100, 'x'), i, done.Next());
  }
  ASSERT_TRUE(done.Wait(4));
  int refused = 0;
  for (const Status& status : done.statuses()) {
    if (status.ok()) continue;
    ++refused;
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("/job:ps/task:0"));
  }
  EXPECT_GE(refused, 4);
  EXPECT_LE(refused, 5);
}

TEST_P(Transport, AWrongTokenIsRefused) {
  worker_options_.token = "guess";
  Serve();
  worker_ = Make(worker_options_, &worker_told_);
  const auto peer = worker_->Connect(address_, Soon());
  EXPECT_TRUE(absl::IsPermissionDenied(peer.status())) << peer.status();
  EXPECT_THAT(std::string(peer.status().message()), HasSubstr(address_));
  EXPECT_EQ(ps_->refused(), 1u);
  worker_options_.token = "secret";
  worker_ = Make(worker_options_, &worker_told_);
  EXPECT_TRUE(worker_->Connect(address_, Soon()).ok());
  ASSERT_TRUE(ps_told_.WaitUp(1));
}

TEST_P(Transport, NobodyThereIsUnavailable) {
  Serve();
  ps_.reset();
  worker_ = Make(worker_options_, &worker_told_);
  const auto peer = worker_->Connect(address_, Soon());
  EXPECT_TRUE(absl::IsUnavailable(peer.status())) << peer.status();
  EXPECT_THAT(std::string(peer.status().message()), HasSubstr(address_));
}

TEST_P(Transport, APastDeadlineIsExceeded) {
  Serve();
  worker_ = Make(worker_options_, &worker_told_);
  const auto peer = worker_->Connect(address_, absl::InfinitePast());
  EXPECT_TRUE(absl::IsDeadlineExceeded(peer.status())) << peer.status();
}

TEST_P(Transport, ConnectMayNotWaitOnTheIoThread) {
  Join();
  Status status;
  ps_told_.on_frame = [&](const PeerRef&, const FrameHeader&) {
    status = ps_->Connect(address_, Soon()).status();
  };
  link_->Send(Header(FrameKind::kStepStart), "", {}, nullptr);
  ASSERT_TRUE(ps_told_.WaitFrames(1));
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
}

TEST_P(Transport, ConnectCanBeCancelled) {
  Serve();
  // The server's IO thread is kept busy, so that nobody answers.
  absl::Notification is_busy, let_go;
  ps_told_.on_frame = [&](const PeerRef&, const FrameHeader&) {
    is_busy.Notify();
    let_go.WaitForNotification();
  };
  worker_ = Make(worker_options_, &worker_told_);
  auto first = worker_->Connect(address_, Soon());
  ASSERT_TRUE(first.ok()) << first.status();
  (*first)->Send(Header(FrameKind::kStepStart), "", {}, nullptr);
  is_busy.WaitForNotification();
  Cancellation cancellation;
  Thread canceller("canceller", [&] {
    absl::SleepFor(absl::Milliseconds(20));
    cancellation.Cancel(Aborted("the user left"));
  });
  const Status status = worker_->Connect(address_, Soon(), &cancellation).status();
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_TRUE(absl::IsAborted(worker_->Connect(address_, Soon(), &cancellation).status()));
  let_go.Notify();
  EXPECT_TRUE(ps_told_.WaitFrames(1));
}

TEST_P(Transport, CloseSendsWhatIsQueuedAndTellsBothSidesOnce) {
  Join();
  Completions& done = done_;
  for (uint32_t i = 0; i < 20; ++i) {
    SendText(*link_, FrameKind::kTensor, std::string(100000, 'x'), i, done.Next());
  }
  link_->Close("enough", absl::StatusCode::kCancelled);
  link_->Close("again", absl::StatusCode::kCancelled);
  ASSERT_TRUE(worker_told_.WaitDown(1));
  ASSERT_TRUE(ps_told_.WaitDown(1));
  EXPECT_EQ(ps_told_.frame_count(), 20u);
  EXPECT_TRUE(absl::IsCancelled(worker_told_.down()[0].second)) << worker_told_.down()[0].second;
  const Status why = ps_told_.down()[0].second;
  EXPECT_TRUE(absl::IsUnavailable(why)) << why;
  EXPECT_THAT(std::string(why.message()), HasSubstr("enough"));
  EXPECT_THAT(std::string(why.message()), HasSubstr("/job:worker/task:0"));
  SendText(*link_, FrameKind::kTensor, "late", 0, done.Next());
  ASSERT_TRUE(done.Wait(21));
  EXPECT_TRUE(absl::IsCancelled(done.statuses()[20])) << done.statuses()[20];
  Completions back;
  SendText(*Back(), FrameKind::kTensor, "late", 0, back.Next());
  ASSERT_TRUE(back.Wait(1));
  EXPECT_TRUE(absl::IsUnavailable(back.statuses()[0])) << back.statuses()[0];
  ps_.reset();
  worker_.reset();
  EXPECT_EQ(ps_told_.down().size(), 1u);
  EXPECT_EQ(worker_told_.down().size(), 1u);
}

TEST_P(Transport, CloseWhileThreadsSendFinishesEachSendOnce) {
  for (int round = 0; round < 5; ++round) {
    Join();
    Completions done;
    std::atomic<int> sent{0};
    {
      std::vector<Thread> threads;
      for (int t = 0; t < 3; ++t) {
        threads.emplace_back("sender", [&] {
          for (int i = 0; i < 200; ++i) {
            Region body = NewRegion(20000);
            std::memset(body.data, 1, body.size);
            link_->Send(Header(FrameKind::kTensor), "", std::span(&body, 1), done.Next());
            ++sent;
          }
        });
      }
      while (sent < 100) absl::SleepFor(absl::Microseconds(50));
      (round % 2 == 0 ? link_ : Back())->Close("in the middle", absl::StatusCode::kCancelled);
    }
    ASSERT_TRUE(done.Wait(600));
    ASSERT_TRUE(worker_told_.WaitDown(1));
    ASSERT_TRUE(ps_told_.WaitDown(1));
    worker_.reset();
    ps_.reset();
    EXPECT_EQ(done.statuses().size(), 600u);
    link_.reset();
    worker_told_.Clear();
    ps_told_.Clear();
  }
}

TEST_P(Transport, ShutdownTellsEveryPeerAndFailsWhatWaits) {
  ps_options_.auto_credit = false;
  ps_options_.credit_bytes = 10;
  worker_options_.linger = absl::Milliseconds(50);
  Join();
  Completions& done = done_;
  for (uint32_t i = 0; i < 5; ++i) {
    SendText(*link_, FrameKind::kTensor, std::string(1000, 'x'), i, done.Next());
  }
  ps_->Shutdown();
  ps_->Shutdown();
  ASSERT_TRUE(worker_told_.WaitDown(1));
  ASSERT_TRUE(ps_told_.WaitDown(1));
  ASSERT_TRUE(done.Wait(5));
  for (const Status& status : done.statuses()) {
    EXPECT_TRUE(status.ok() || absl::IsUnavailable(status)) << status;
  }
  EXPECT_TRUE(absl::IsUnavailable(done.statuses()[4]));
  EXPECT_TRUE(absl::IsCancelled(ps_told_.down()[0].second)) << ps_told_.down()[0].second;
  EXPECT_FALSE(ps_->Listen("").ok());
  EXPECT_TRUE(absl::IsCancelled(ps_->Connect(address_, Soon()).status()));
}

TEST_P(Transport, OneEndpointListensOnce) {
  Serve();
  EXPECT_FALSE(ps_->Listen("127.0.0.1:0").ok());
  worker_ = Make(worker_options_, &worker_told_);
  EXPECT_TRUE(absl::IsUnavailable(worker_->Listen(address_).status()));
}

TEST_P(Transport, BadFramesAreRefusedAtTheSender) {
  Join();
  Completions& done = done_;
  link_->Send(Header(FrameKind::kHello), "", {}, done.Next());
  link_->Send(Header(FrameKind::kTensor), std::string(kMaxMetaBytes + 1, 'x'), {}, done.Next());
  ASSERT_TRUE(done.Wait(2));
  for (const Status& status : done.statuses()) EXPECT_TRUE(absl::IsInvalidArgument(status));
  link_->Send(Header(FrameKind::kStepStart), "", {}, nullptr);
  EXPECT_TRUE(ps_told_.WaitFrames(1));
}

TEST_P(Transport, OnlySharedMemoryIsLentAndEachLoanComesBack) {
  Join();
  // The first frames may leave before the other side has mapped what it is offered.
  const bool lends = LendsMemory();
  size_t sent = 0;
  do {
    SendText(*link_, FrameKind::kTensor, std::string(50'000, 'x'));
    SendText(*Back(), FrameKind::kTensor, std::string(50'000, 'y'));
    ASSERT_TRUE(ps_told_.WaitFrames(++sent) && worker_told_.WaitFrames(sent));
  } while (lends && (link_->stats().frames_lent == 0 || Back()->stats().frames_lent == 0));
  EXPECT_EQ(link_->stats().frames_lent > 0, lends);
  EXPECT_EQ(ps_told_.frames().back().body.read_only, lends);
  EXPECT_EQ(ps_told_.frames().back().text(), std::string(50'000, 'x'));
  EXPECT_EQ(worker_told_.frames().back().text(), std::string(50'000, 'y'));
}

TEST_P(Transport, TheHandlersContextStaysWithThePeer) {
  Join();
  int record = 0;
  Back()->set_context(&record);
  ps_told_.on_frame = [](const PeerRef& peer, const FrameHeader&) {
    ++*static_cast<int*>(peer->context());
  };
  link_->Send(Header(FrameKind::kStepStart), "", {}, nullptr);
  ASSERT_TRUE(ps_told_.WaitFrames(1));
  EXPECT_EQ(record, 1);
}

INSTANTIATE_TEST_SUITE_P(Wires, Transport,
                         ::testing::Values("tcp", "shm", "tls", "tls_shm", "ucx_tcp", "ucx_memory",
                                           "ucx_tcp_shm"),
                         [](const auto& wire) { return wire.param; });

}  // namespace
}  // namespace weft::transport
