// SPDX-License-Identifier: Apache-2.0
// Pushes a tensor from a worker process to a parameter server process and back over TCP, beside a
// plain program of blocking sockets that does the same with the same buffers. Prints one line a
// size and way.
//
//   transport_roundtrip [--spin=US] [--rounds=N] [--tls=1] [--across=WORKER,SERVER,ADDRESS]
//
// With --tls=1 the endpoints are tasks of one job with a secret, and the plain program speaks TLS
// by OpenSSL with the same cipher. With --across the worker is in the network namespace of the file
// WORKER, and the server in that of SERVER, where ADDRESS is its own.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"

#include "bench/plain_socket.h"
#include "net/job_identity.h"
#include "weft/transport/tcp/endpoint.h"
#include "weft/transport/tcp/socket.h"

namespace weft::transport {
namespace {

using bench::EnterNetwork;
using bench::PlainHeader;
using bench::PlainSocket;

constexpr size_t kLargest = size_t{128} << 20;

double Micros() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Memory that is there before it is measured.
class Memory final : public RefCounted {
 public:
  explicit Memory(size_t size) : bytes_(size, std::byte{1}) {}
  Region Slice(size_t size) { return Region(bytes_.data(), size, Ref<RefCounted>(this)); }
  std::byte* data() { return bytes_.data(); }

 private:
  std::vector<std::byte> bytes_;
};

std::optional<JobIdentity> job;  // with --tls=1
std::optional<JobTls> job_tls;
std::string server_address = "127.0.0.1";

// ---- The plain program.

void ServePlain(int address_pipe) {
  auto memory = MakeRef<Memory>(kLargest);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  inet_pton(AF_INET, server_address.c_str(), &address.sin_addr);
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) _exit(1);
  if (listen(listener, 4) != 0) _exit(1);
  const std::string text = tcp::LocalText(listener);
  if (write(address_pipe, text.data(), text.size()) < 0) _exit(1);
  close(address_pipe);
  PlainSocket socket(accept(listener, nullptr, nullptr));
  if (job.has_value()) socket.StartTls(*job, true);
  while (true) {
    const PlainHeader header = socket.Receive(memory->data());
    socket.Send(header, memory->data());
  }
}

// ---- The same over an endpoint.

// The server's side: what comes is kept in one buffer and goes back from there.
class EchoHandler final : public FrameHandler {
 public:
  void PeerUp(const PeerRef&) override {}
  Region ReceiveBuffer(const PeerRef&, const FrameHeader& header, absl::string_view) override {
    return memory_->Slice(header.body_bytes);
  }
  void FrameReceived(const PeerRef& peer, const FrameHeader& header, absl::string_view,
                     Region body) override {
    peer->Send(header, "", std::span(&body, 1), nullptr);
  }
  void PeerDown(const PeerRef&, const Status&) override { _exit(0); }

 private:
  Ref<Memory> memory_ = MakeRef<Memory>(kLargest);
};

// The worker's: either the next round starts in the handler, as the next step of a cluster does, or
// the thread that waits is woken, as a client of a session is.
class WorkerHandler final : public FrameHandler {
 public:
  void PeerUp(const PeerRef&) override {}
  Region ReceiveBuffer(const PeerRef&, const FrameHeader& header, absl::string_view) override {
    return in_->Slice(header.body_bytes);
  }
  void FrameReceived(const PeerRef& peer, const FrameHeader&, absl::string_view, Region) override {
    const double now = Micros();
    times.push_back(now - sent_at_);
    if (--rounds_left_ > 0) {
      if (in_handler_) Push(*peer);
      if (in_handler_) return;
    }
    absl::MutexLock lock(&mutex_);
    ++answers_;
  }
  void PeerDown(const PeerRef&, const Status&) override {}

  std::vector<double> Run(Peer& peer, size_t size, int rounds, bool in_handler) {
    size_ = size;
    in_handler_ = in_handler;
    rounds_left_ = rounds;
    times.clear();
    const int pushes = in_handler ? 1 : rounds;
    for (int i = 0; i < pushes; ++i) {
      Push(peer);
      absl::MutexLock lock(&mutex_);
      const auto answered = [this, i]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return answers_ > i; };
      mutex_.Await(absl::Condition(&answered));
      if (!in_handler) times.back() = Micros() - sent_at_;
    }
    absl::MutexLock lock(&mutex_);
    answers_ = 0;
    return times;
  }

  std::vector<double> times;

 private:
  void Push(Peer& peer) {
    Region body = out_->Slice(size_);
    FrameHeader header;
    header.kind = FrameKind::kTensor;
    sent_at_ = Micros();
    peer.Send(header, "", std::span(&body, 1), nullptr);
  }

  Ref<Memory> out_ = MakeRef<Memory>(kLargest);
  Ref<Memory> in_ = MakeRef<Memory>(kLargest);
  size_t size_ = 0;
  int rounds_left_ = 0;
  bool in_handler_ = false;
  double sent_at_ = 0;
  absl::Mutex mutex_;
  int answers_ ABSL_GUARDED_BY(mutex_) = 0;
};

EndpointOptions Options(const std::string& task, int spin_us) {
  EndpointOptions options;
  options.tls = job_tls;
  options.task = task;
  options.token = "bench";
  options.spin_us = spin_us;
  return options;
}

void ServeWeft(int address_pipe, int spin_us) {
  static EchoHandler handler;
  auto endpoint = tcp::MakeEndpoint(Options("/job:ps/task:0", spin_us), &handler);
  if (!endpoint.ok()) _exit(1);
  const auto address = (*endpoint)->Listen(server_address + ":0");
  if (!address.ok() || write(address_pipe, address->data(), address->size()) < 0) _exit(1);
  close(address_pipe);
  while (true) pause();
}

// Runs `serve` in a child that dies with us; returns the address that it writes.
std::string Fork(const std::string& network, const std::function<void(int)>& serve, pid_t* child) {
  int ends[2];
  if (pipe(ends) != 0) return "";
  *child = fork();
  if (*child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(ends[0]);
    if (!EnterNetwork(network)) _exit(1);
    serve(ends[1]);
    _exit(0);
  }
  close(ends[1]);
  char text[128];
  const ssize_t got = read(ends[0], text, sizeof(text));
  close(ends[0]);
  return got > 0 ? std::string(text, static_cast<size_t>(got)) : "";
}

double Quantile(std::vector<double> times, double at) {
  std::sort(times.begin(), times.end());
  return times.empty() ? 0 : times[static_cast<size_t>(at * static_cast<double>(times.size() - 1))];
}

void Print(const char* way, size_t size, const std::vector<double>& times, double plain_median) {
  const double median = Quantile(times, 0.5);
  std::printf("%8zu KB  %-16s  median %10.1f us  p10 %10.1f us  %6.2f GB/s", size >> 10, way,
              median, Quantile(times, 0.1), 2e-3 * static_cast<double>(size) / median);
  if (plain_median > 0) {
    std::printf("  speed x%.2f, %+.1f us", plain_median / median, median - plain_median);
  }
  std::printf("\n");
}

int Main(int spin_us, int rounds, const std::string& worker_network,
         const std::string& server_network) {
  pid_t plain_child, weft_child;
  const std::string plain_address = Fork(server_network, ServePlain, &plain_child);
  const std::string weft_address = Fork(
      server_network, [spin_us](int pipe_end) { ServeWeft(pipe_end, spin_us); }, &weft_child);
  if (!EnterNetwork(worker_network)) return 1;

  auto out = MakeRef<Memory>(kLargest);
  auto in = MakeRef<Memory>(kLargest);
  const auto resolved = tcp::Resolve(plain_address);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (!resolved.ok() || connect(fd, reinterpret_cast<const sockaddr*>(&resolved->front().storage),
                                resolved->front().size) != 0) {
    return 1;
  }
  PlainSocket plain_socket(fd);
  if (job.has_value()) plain_socket.StartTls(*job, false);
  WorkerHandler handler;
  auto endpoint = tcp::MakeEndpoint(Options("/job:worker/task:0", spin_us), &handler);
  if (!endpoint.ok()) return 1;
  const auto peer = (*endpoint)->Connect(weft_address, absl::Now() + absl::Seconds(10));
  if (!peer.ok()) {
    std::printf("%s\n", peer.status().ToString().c_str());
    return 1;
  }
  for (const size_t size : {size_t{1} << 10, size_t{1} << 20, kLargest}) {
    const int count = size >= kLargest ? rounds : size > 4096 ? rounds * 20 : rounds * 200;
    std::vector<double> plain, stepping, waiting;
    // In turns, so that what else the machine does falls on all alike; the first turn warms up.
    constexpr int kTurns = 5;
    for (int turn = 0; turn <= kTurns; ++turn) {
      std::vector<double> times;
      for (int i = 0; i < (count + kTurns - 1) / kTurns; ++i) {
        const double start = Micros();
        plain_socket.Send({size, 0}, out->data());
        plain_socket.Receive(in->data());
        times.push_back(Micros() - start);
      }
      const int share = static_cast<int>(times.size());
      const auto stepped = handler.Run(**peer, size, share, true);
      const auto waited = handler.Run(**peer, size, share, false);
      if (turn == 0) continue;
      plain.insert(plain.end(), times.begin(), times.end());
      stepping.insert(stepping.end(), stepped.begin(), stepped.end());
      waiting.insert(waiting.end(), waited.begin(), waited.end());
    }
    const double base = Quantile(plain, 0.5);
    Print(job.has_value() ? "OpenSSL sockets" : "plain sockets", size, plain, 0);
    Print("weft, handler", size, stepping, base);
    Print("weft, waiting", size, waiting, base);
  }
  kill(plain_child, SIGKILL);
  kill(weft_child, SIGKILL);
  waitpid(plain_child, nullptr, 0);
  waitpid(weft_child, nullptr, 0);
  return 0;
}

}  // namespace
}  // namespace weft::transport

int main(int argc, char** argv) {
  int spin_us = 0, rounds = 20, tls = 0;
  std::vector<std::string> across = {"", ""};
  for (int i = 1; i < argc; ++i) {
    absl::string_view flag = argv[i];
    if (absl::ConsumePrefix(&flag, "--across=")) {
      across = absl::StrSplit(flag, ',');
      if (across.size() == 3) continue;
    }
    int* target = nullptr;
    if (absl::ConsumePrefix(&flag, "--spin=")) target = &spin_us;
    if (absl::ConsumePrefix(&flag, "--rounds=")) target = &rounds;
    if (absl::ConsumePrefix(&flag, "--tls=")) target = &tls;
    if (target == nullptr || !absl::SimpleAtoi(flag, target) || *target < 0) {
      std::fprintf(stderr,
                   "usage: transport_roundtrip [--spin=US] [--rounds=N] [--tls=1] "
                   "[--across=WORKER,SERVER,ADDRESS]\n");
      return 2;
    }
  }
  if (across.size() == 3) weft::transport::server_address = across[2];
  if (tls != 0) {
    const auto made = weft::MakeJobIdentity("bench.weft-job", absl::Now(), absl::Hours(24));
    if (!made.ok()) return 1;
    weft::transport::job = *made;
    weft::transport::job_tls = *weft::MakeJobTls(*made);
  }
  return weft::transport::Main(spin_us, std::max(1, rounds), across[0], across[1]);
}
