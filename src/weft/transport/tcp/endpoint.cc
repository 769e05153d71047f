// SPDX-License-Identifier: Apache-2.0
#include "weft/transport/tcp/endpoint.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"

#include "base/log.h"
#include "base/threads.h"
#include "weft/transport/tcp/peer.h"
#include "weft/transport/tcp/socket.h"

namespace weft::transport::tcp {
namespace {

constexpr int kEventsPerWait = 64;
constexpr int kAcceptsPerEvent = 64;

thread_local const void* io_thread_of = nullptr;

// A connection that is being made: the addresses of its name are tried in turn.
struct Dial {
  std::string target;
  std::vector<ResolvedAddress> addresses;
  size_t next = 0;
  int64_t deadline_ns = 0;
  Endpoint::Connected done;
};

class TcpEndpoint final : public Endpoint, private PeerHost {
 public:
  TcpEndpoint(EndpointOptions options, FrameHandler* handler, std::string hello,
              std::unique_ptr<Carrier> carrier)
      : Endpoint(options),
        options_(std::move(options)),
        handler_(handler),
        hello_(std::move(hello)),
        carrier_(std::move(carrier)) {}
  ~TcpEndpoint() override { Shutdown(); }

  Status Start();
  StatusOr<std::string> Listen(const std::string& bind) override;
  void ConnectAsync(const std::string& address, absl::Time deadline, Connected done) override;
  void Shutdown() override;
  bool OnIoThread() const override { return io_thread_of == this; }
  uint64_t refused() const override { return refused_.load(); }

 private:
  struct Entry {
    std::shared_ptr<TcpPeer> peer;  // shared with callers who hold a PeerRef
    std::unique_ptr<Dial> dial;     // until it is up
    uint64_t number = 0;            // in the order of their coming
  };

  // Has `work` run on the IO thread; false if there is none any more and `work` was not taken.
  bool Post(absl::AnyInvocable<void()>& work);
  void Wake();

  void Run();
  int Wait(epoll_event* events, int64_t next_tick_ns);
  void Dispatch(const epoll_event& event, int64_t now_ns);
  bool RunPosted();
  void Tick(int64_t now_ns);
  void BeginShutdown();
  void FinishShutdown();

  void AcceptAll(int64_t now_ns);
  void AcceptOne(Fd fd, int64_t now_ns);
  void WatchListener(bool on);
  void TryNextAddress(std::unique_ptr<Dial> dial, Status last_error);
  void Drop(TcpPeer* peer, const Status& why);
  void PeerIsUp(TcpPeer* peer) override;
  void PeerRefused(TcpPeer* peer, const Status& why) override;
  void PeerFailed(TcpPeer* peer, const Status& why) override { failed_.emplace_back(peer, why); }
  void DropFailed();
  TcpPeer::Setting PeerSetting() {
    return {&options_, handler_, this, &hello_, carrier_.get(), epoll_.get()};
  }

  const EndpointOptions options_;
  FrameHandler* const handler_;
  const std::string hello_;
  std::unique_ptr<Carrier> carrier_;  // the IO thread's while there is one; null: the sockets
  int64_t tick_ns_ = 0;
  Fd epoll_, wake_;
  std::atomic<uint64_t> refused_{0};

  absl::Mutex mutex_;
  std::vector<absl::AnyInvocable<void()>> posted_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool listening_ ABSL_GUARDED_BY(mutex_) = false;

  // The IO thread's.
  Fd listener_;
  bool listener_paused_ = false;
  bool lingering_ = false;  // loans of ended connections are still out
  absl::flat_hash_map<TcpPeer*, Entry> peers_;
  std::vector<std::pair<TcpPeer*, Status>> failed_;  // to be dropped in this round
  std::vector<std::shared_ptr<TcpPeer>> gone_;       // until the events at hand are done with
  uint64_t next_number_ = 1;
  int64_t last_tick_ns_ = 0;
  int64_t shutdown_end_ns_ = 0;  // not zero: going down

  std::unique_ptr<Thread> io_;
};

Status TcpEndpoint::Start() {
  epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  wake_ = Fd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!epoll_.valid() || !wake_.valid()) {
    return ResourceExhausted("Cannot open an endpoint: ", ErrorText(errno));
  }
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.ptr = &wake_;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) != 0) {
    return ResourceExhausted("Cannot watch an event: ", ErrorText(errno));
  }
  event.data.ptr = &carrier_;
  if (carrier_ != nullptr &&
      epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, carrier_->event_fd(), &event) != 0) {
    return ResourceExhausted("Cannot watch UCX: ", ErrorText(errno));
  }
  const absl::Duration shortest = std::min(
      {options_.ping_interval, options_.dead_after, options_.hello_deadline, options_.linger});
  tick_ns_ = std::clamp<int64_t>(absl::ToInt64Nanoseconds(shortest / 4), 5'000'000, 250'000'000);
  io_ = std::make_unique<Thread>("transport", [this] { Run(); });
  return absl::OkStatus();
}

bool TcpEndpoint::Post(absl::AnyInvocable<void()>& work) {
  {
    absl::MutexLock lock(&mutex_);
    if (stopping_) return false;
    posted_.push_back(std::move(work));
  }
  Wake();
  return true;
}

void TcpEndpoint::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
}

StatusOr<std::string> TcpEndpoint::Listen(const std::string& bind) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<ResolvedAddress> addresses, Resolve(bind));
  WEFT_ASSIGN_OR_RETURN(Fd fd, ListenOn(addresses.front()));
  const std::string address = LocalText(fd.get());
  {
    absl::MutexLock lock(&mutex_);
    if (listening_) return FailedPrecondition("Endpoint already listens, address ", address);
    listening_ = true;
  }
  absl::AnyInvocable<void()> work = [this, fd = std::move(fd)]() mutable {
    listener_ = std::move(fd);
    WatchListener(true);
  };
  if (!Post(work)) return Cancelled("Endpoint is shut down, address ", address);
  return address;
}

void TcpEndpoint::WatchListener(bool on) {
  if (!listener_.valid()) return;
  listener_paused_ = !on;
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.ptr = &listener_;
  epoll_ctl(epoll_.get(), on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, listener_.get(), &event);
}

void TcpEndpoint::ConnectAsync(const std::string& address, absl::Time deadline, Connected done) {
  auto dial = std::make_unique<Dial>();
  dial->target = address;
  // A far deadline is cut so that nanoseconds do not overflow.
  const absl::Duration left = std::min(deadline - absl::Now(), absl::Hours(24));
  dial->deadline_ns = MonotonicNanos() + absl::ToInt64Nanoseconds(left);
  dial->done = std::move(done);
  StatusOr<std::vector<ResolvedAddress>> addresses = Resolve(address, deadline);
  if (!addresses.ok()) {
    dial->done(Annotate(addresses.status(), "Cannot connect"));
    return;
  }
  dial->addresses = *std::move(addresses);
  // Held outside the closure: it is told here if there is no IO thread to tell it.
  Dial* const pending = dial.get();
  absl::AnyInvocable<void()> work = [this, dial = std::move(dial)]() mutable {
    TryNextAddress(std::move(dial), Unavailable("no address"));
  };
  if (!Post(work)) pending->done(Cancelled("Endpoint is shut down, cannot connect to ", address));
}

void TcpEndpoint::TryNextAddress(std::unique_ptr<Dial> dial, Status last_error) {
  const int64_t now_ns = MonotonicNanos();
  if (shutdown_end_ns_ != 0) last_error = Cancelled("the endpoint is shut down");
  while (shutdown_end_ns_ == 0 && dial->next < dial->addresses.size()) {
    if (now_ns >= dial->deadline_ns) {
      last_error = DeadlineExceeded("no time is left");
      break;
    }
    const ResolvedAddress& address = dial->addresses[dial->next++];
    StatusOr<Fd> fd = StartConnect(address);
    if (!fd.ok()) {
      last_error = fd.status();
      continue;
    }
    // Ours for the greeting as well as the caller's for everything: the nearer one counts.
    auto peer = std::make_shared<TcpPeer>(PeerSetting(), *std::move(fd), AddressText(address), true,
                                          dial->deadline_ns);
    last_error = peer->Register();
    if (!last_error.ok()) continue;
    peers_[peer.get()] = {peer, std::move(dial), next_number_++};
    return;
  }
  dial->done(Annotate(last_error, absl::StrCat("Cannot connect to ", dial->target)));
}

// ---- The IO thread.

void TcpEndpoint::Run() {
  io_thread_of = this;
  last_tick_ns_ = MonotonicNanos();
  epoll_event events[kEventsPerWait];
  while (true) {
    const int count = Wait(events, last_tick_ns_ + tick_ns_);
    const int64_t now_ns = MonotonicNanos();
    for (int i = 0; i < count; ++i) Dispatch(events[i], now_ns);
    const bool stop = RunPosted();
    if (carrier_ != nullptr) carrier_->Progress();
    DropFailed();
    if (now_ns - last_tick_ns_ >= tick_ns_) Tick(now_ns);
    gone_.clear();
    if (stop && shutdown_end_ns_ == 0) BeginShutdown();
    if (shutdown_end_ns_ != 0 && (peers_.empty() || now_ns >= shutdown_end_ns_)) break;
  }
  FinishShutdown();
}

int TcpEndpoint::Wait(epoll_event* events, int64_t next_tick_ns) {
  int count = 0;
  if (options_.spin_us > 0) {
    const int64_t end_ns = MonotonicNanos() + int64_t{options_.spin_us} * 1000;
    do {
      count = epoll_wait(epoll_.get(), events, kEventsPerWait, 0);
      if (count == 0 && carrier_ != nullptr && carrier_->Progress()) return 0;
    } while (count == 0 && MonotonicNanos() < end_ns);
  }
  if (count != 0) return std::max(count, 0);
  int timeout_ms = -1;
  if (!peers_.empty() || listener_paused_ || lingering_ || shutdown_end_ns_ != 0) {
    const int64_t left_ns = std::max<int64_t>(0, next_tick_ns - MonotonicNanos());
    timeout_ms = static_cast<int>((left_ns + 999'999) / 1'000'000);
  }
  if (carrier_ != nullptr && !carrier_->Arm()) timeout_ms = 0;
  // An error here is EINTR: the next round asks again.
  return std::max(0, epoll_wait(epoll_.get(), events, kEventsPerWait, timeout_ms));
}

void TcpEndpoint::Dispatch(const epoll_event& event, int64_t now_ns) {
  if (event.data.ptr == &wake_) {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = read(wake_.get(), &count, sizeof(count));
    return;
  }
  if (event.data.ptr == &listener_) {
    AcceptAll(now_ns);
    return;
  }
  if (event.data.ptr == &carrier_) return;  // each round looks there
  TcpPeer* const peer = static_cast<TcpPeer*>(event.data.ptr);
  if (!peers_.contains(peer)) return;  // dropped by an earlier event of this round
  const Status status = peer->OnEvents(event.events, now_ns);
  if (!status.ok()) Drop(peer, status);
}

bool TcpEndpoint::RunPosted() {
  std::vector<absl::AnyInvocable<void()>> work;
  bool stop;
  {
    absl::MutexLock lock(&mutex_);
    work.swap(posted_);
    stop = stopping_;
  }
  for (absl::AnyInvocable<void()>& one : work) one();
  return stop;
}

void TcpEndpoint::Tick(int64_t now_ns) {
  // If this thread itself was kept away, its peers may have spoken unheard: read first, judge
  // later.
  const bool was_away = now_ns - last_tick_ns_ > 4 * tick_ns_;
  last_tick_ns_ = now_ns;
  if (listener_paused_) WatchListener(true);
  lingering_ = shm::SweepLingering() > 0;
  if (was_away) return;
  std::vector<std::pair<TcpPeer*, Status>> failed;
  for (const auto& [peer, entry] : peers_) {
    Status status = peer->OnTick(now_ns);
    if (!status.ok()) failed.emplace_back(peer, std::move(status));
  }
  for (const auto& [peer, status] : failed) Drop(peer, status);
}

void TcpEndpoint::DropFailed() {
  // Dropping one may fail others.
  while (!failed_.empty()) {
    std::vector<std::pair<TcpPeer*, Status>> failed;
    failed.swap(failed_);
    for (const auto& [peer, status] : failed) Drop(peer, status);
  }
}

void TcpEndpoint::AcceptAll(int64_t now_ns) {
  for (int i = 0; i < kAcceptsPerEvent; ++i) {
    Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd.valid()) {
      AcceptOne(std::move(fd), now_ns);
      continue;
    }
    const int error = errno;
    if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM) {
      // Level-triggered, it would spin: look again at the next tick.
      WEFT_LOG_EVERY(WARNING, absl::Seconds(10))
          << "Cannot accept connections for a while: " << ErrorText(error);
      WatchListener(false);
    }
    if (error != ECONNABORTED && error != EINTR) return;
  }
}

void TcpEndpoint::AcceptOne(Fd fd, int64_t now_ns) {
  TcpPeer* oldest = nullptr;
  uint64_t first = UINT64_MAX;
  int greeting = 0;
  for (const auto& [peer, entry] : peers_) {
    if (peer->outgoing() || !peer->greeting()) continue;
    ++greeting;
    if (entry.number > first) continue;
    first = entry.number;
    oldest = peer;
  }
  // A task of ours greets within milliseconds: who has said nothing for longest gives way.
  if (greeting >= options_.max_unauthenticated && oldest != nullptr) {
    Drop(oldest, ResourceExhausted("too many connections that have not said Hello"));
  }
  std::string address = RemoteText(fd.get());
  auto peer = std::make_shared<TcpPeer>(PeerSetting(), std::move(fd), std::move(address), false,
                                        now_ns + absl::ToInt64Nanoseconds(options_.hello_deadline));
  if (const Status status = peer->Register(); !status.ok()) {
    refused_.fetch_add(1);
    return;
  }
  peers_[peer.get()] = {peer, nullptr, next_number_++};
}

void TcpEndpoint::Drop(TcpPeer* peer, const Status& why) {
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return;
  Entry entry = std::move(found->second);
  peers_.erase(found);
  // Counted before the socket closes: whoever saw it closed sees it counted.
  if (entry.dial == nullptr && peer->greeting() && !peer->refused()) PeerRefused(peer, why);
  lingering_ = true;  // the next tick looks whether it is so
  entry.peer->GoDown(Unavailable("Connection to ", peer->name(), " is lost: ", why.message()));
  gone_.push_back(std::move(entry.peer));
  if (entry.dial != nullptr) {
    // Another address of the same name will not like our token any better.
    if (absl::IsPermissionDenied(why) || absl::IsFailedPrecondition(why))
      entry.dial->next = SIZE_MAX;
    TryNextAddress(std::move(entry.dial), why);
  }
}

void TcpEndpoint::PeerIsUp(TcpPeer* peer) {
  const auto found = peers_.find(peer);
  if (found == peers_.end() || found->second.dial == nullptr) return;
  const std::unique_ptr<Dial> dial = std::move(found->second.dial);
  dial->done(PeerRef(found->second.peer));
}

void TcpEndpoint::PeerRefused(TcpPeer* peer, const Status& why) {
  refused_.fetch_add(1);
  WEFT_LOG_EVERY(WARNING, absl::Seconds(1))
      << "Refused a connection: " << why.message() << ", from " << peer->address();
}

// ---- The end.

void TcpEndpoint::Shutdown() {
  if (OnIoThread()) return;
  {
    absl::MutexLock lock(&mutex_);
    if (stopped_) return;
    if (stopping_) {
      mutex_.Await(absl::Condition(&stopped_));
      return;
    }
    stopping_ = true;
  }
  Wake();
  io_.reset();
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
}

void TcpEndpoint::BeginShutdown() {
  shutdown_end_ns_ = MonotonicNanos() + absl::ToInt64Nanoseconds(options_.linger);
  if (listener_.valid() && !listener_paused_) WatchListener(false);
  listener_paused_ = false;
  listener_.Reset();
  std::vector<TcpPeer*> greeting;
  for (const auto& [peer, entry] : peers_) {
    if (peer->greeting()) greeting.push_back(peer);
    peer->Close("the endpoint shuts down", absl::StatusCode::kCancelled);
  }
  for (TcpPeer* peer : greeting) Drop(peer, Cancelled("the endpoint shuts down"));
}

void TcpEndpoint::FinishShutdown() {
  while (!peers_.empty()) {
    Drop(peers_.begin()->first, Cancelled("the endpoint shuts down"));
  }
  gone_.clear();
  failed_.clear();
  if (carrier_ == nullptr) return;
  carrier_->Drain();
  carrier_.reset();
}

}  // namespace

StatusOr<std::unique_ptr<Endpoint>> MakeEndpoint(const EndpointOptions& options,
                                                 FrameHandler* handler) {
  return MakeEndpoint(options, handler, nullptr);
}

StatusOr<std::unique_ptr<Endpoint>> MakeEndpoint(const EndpointOptions& options,
                                                 FrameHandler* handler,
                                                 std::unique_ptr<Carrier> carrier) {
  WEFT_ASSIGN_OR_RETURN(
      std::string hello,
      EncodeHello({options.token, options.task, options.incarnation, options.credit_bytes}));
  auto endpoint =
      std::make_unique<TcpEndpoint>(options, handler, std::move(hello), std::move(carrier));
  WEFT_RETURN_IF_ERROR(endpoint->Start());
  return std::unique_ptr<Endpoint>(std::move(endpoint));
}

}  // namespace weft::transport::tcp
