// SPDX-License-Identifier: Apache-2.0
// An all-reduce of two processes by plain blocking sockets, one for each direction: each sends the
// half that the other sums, sums its own, and sends that. Timed as `weft bench all-reduce` is.
//
//   socket_allreduce [--tls=1] [--across=FIRST,SECOND,ADDRESS] BYTES...
//
// With --across the processes are in the network namespaces of these files; ADDRESS is FIRST's.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "base/threads.h"
#include "bench/plain_socket.h"

namespace weft::bench {
namespace {

constexpr int kRounds = 12;
constexpr int kWarm = 3;

double Micros() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// One of the two, with its sockets: one to send and one to receive.
class Half {
 public:
  Half(int me, int to, int from, const std::optional<JobIdentity>& job)
      : me_(me), to_(to), from_(from) {
    if (!job.has_value()) return;
    // Who receives is the server. The connection from the second to the first greets before the
    // other.
    if (me == 0) from_.StartTls(*job, true);
    to_.StartTls(*job, false);
    if (me != 0) from_.StartTls(*job, true);
  }

  void Reduce(std::vector<float>& in, std::vector<float>* out, std::vector<float>* room) {
    const size_t half = in.size() / 2;
    const size_t first = me_ == 0 ? 0 : half;
    const size_t count = me_ == 0 ? half : in.size() - half;
    float* const others = in.data() + (me_ == 0 ? half : 0);
    Exchange(others, in.size() - count, room->data());
    float* const sums = out->data() + first;
    for (size_t i = 0; i < count; ++i) sums[i] = in[first + i] + (*room)[i];
    Exchange(sums, count, out->data() + (me_ == 0 ? half : 0));
  }

 private:
  void Exchange(float* out, size_t count, float* in) {
    const auto send = [&] {
      to_.Send({count * sizeof(float), 0}, reinterpret_cast<std::byte*>(out));
    };
    if (count <= 4096) {  // what the socket has room for
      send();
      from_.Receive(reinterpret_cast<std::byte*>(in));
      return;
    }
    Thread sender("sender", send);
    from_.Receive(reinterpret_cast<std::byte*>(in));
    sender.Join();
  }

  const int me_;
  PlainSocket to_;
  PlainSocket from_;
};

void Run(int me, int to, int from, const std::optional<JobIdentity>& job,
         const std::vector<int64_t>& sizes) {
  Half half(me, to, from, job);
  for (const int64_t bytes : sizes) {
    const auto elements = static_cast<size_t>(std::max<int64_t>(2, bytes / 4));
    std::vector<float> in(elements), out(elements), room(elements);
    const auto calls = std::clamp<int64_t>((1 << 22) / std::max<int64_t>(bytes, 1 << 14), 1, 64);
    std::vector<double> times;
    std::vector<float> one(2), answer(2);
    for (int round = 0; round < kRounds + kWarm; ++round) {
      half.Reduce(one, &answer, &room);  // the barrier
      const double begin = Micros();
      for (int64_t i = 0; i < calls; ++i) half.Reduce(in, &out, &room);
      if (round >= kWarm) times.push_back((Micros() - begin) / static_cast<double>(calls));
    }
    std::sort(times.begin(), times.end());
    if (me == 0) std::printf("%ld %f %f\n", bytes, times[times.size() / 2], times[0]);
    std::fflush(stdout);
  }
}

int Main(const std::vector<std::string>& across, bool with_tls, const std::vector<int64_t>& sizes) {
  std::optional<JobIdentity> job;
  if (with_tls) {
    const auto made = MakeJobIdentity("bench.weft-job", absl::Now(), absl::Hours(24));
    if (!made.ok()) return 1;
    job = *made;
  }
  // The second is forked before this one enters its network, and hears the port by a pipe.
  int ends[2];
  if (pipe(ends) != 0) return 1;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  inet_pton(AF_INET, across[2].c_str(), &address.sin_addr);
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!EnterNetwork(across[1])) _exit(1);
    if (read(ends[0], &address.sin_port, sizeof(address.sin_port)) <= 0) _exit(1);
    const int from = socket(AF_INET, SOCK_STREAM, 0);
    const int to = socket(AF_INET, SOCK_STREAM, 0);
    for (const int fd : {to, from}) {
      if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) _exit(1);
    }
    Run(1, to, from, job, sizes);
    _exit(0);
  }
  if (!EnterNetwork(across[0])) return 1;
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  socklen_t size = sizeof(address);
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener, 4) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      write(ends[1], &address.sin_port, sizeof(address.sin_port)) < 0)
    return 1;
  const int from = accept(listener, nullptr, nullptr);
  const int to = accept(listener, nullptr, nullptr);
  Run(0, to, from, job, sizes);
  waitpid(child, nullptr, 0);
  return 0;
}

}  // namespace
}  // namespace weft::bench

int main(int argc, char** argv) {
  std::vector<std::string> across = {"", "", "127.0.0.1"};
  std::vector<int64_t> sizes;
  int tls = 0;
  for (int i = 1; i < argc; ++i) {
    absl::string_view flag = argv[i];
    int64_t size = 0;
    if (absl::ConsumePrefix(&flag, "--across=")) {
      across = absl::StrSplit(flag, ',');
    } else if (absl::ConsumePrefix(&flag, "--tls=") && absl::SimpleAtoi(flag, &tls)) {
    } else if (absl::SimpleAtoi(flag, &size) && size > 0) {
      sizes.push_back(size);
    }
  }
  if (across.size() != 3 || sizes.empty()) {
    std::fprintf(stderr,
                 "usage: socket_allreduce [--tls=1] [--across=FIRST,SECOND,ADDRESS] BYTES...\n");
    return 2;
  }
  return weft::bench::Main(across, tls != 0, sizes);
}
