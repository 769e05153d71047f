// SPDX-License-Identifier: Apache-2.0
// Every op under mutation: the ops' cases, changed here and there, end in a value or in an error
// and never in the end of the process.
//
//   mutations CASES [--trials N] [--first K] [--weft PROGRAM]     trials K to K+N-1
//   mutations CASES --trial K [--weft PROGRAM]                    one of them, in this process
//
// With --weft the trials run at a server of that program, else in a session of this process. They
// run in children with limited memory; one that ends or stays away for long has failed, and its
// trial's number is printed.
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"

#include "proto/tensorflow/graph.pb.h"
#include "run_trial.h"

namespace weft::mutations {
namespace {

constexpr uint64_t kMemory = uint64_t{1} << 30;
constexpr uint64_t kServerMemory = uint64_t{6} << 30;
constexpr uint64_t kTrialsOfChild = 2000;
// For a trial: of the processor, and on a busy machine where it may wait for one.
constexpr absl::Duration kMostComputed = absl::Seconds(30);
constexpr absl::Duration kLongest = absl::Seconds(200);
constexpr int kMostFailures = 20;
constexpr int kServerDied = 3;
constexpr int kNoServer = 4;

struct Options {
  std::string cases;
  uint64_t first = 1;
  uint64_t trials = 1000;
  bool only_one = false;
  std::string weft;
};

// What a child tells its parent as it goes.
struct Progress {
  std::atomic<uint64_t> trial{0};
  std::atomic<int64_t> begun_ns{0};
  std::atomic<uint64_t> ended_well{0};
  char words[4096] = "";

  void Tell(absl::string_view text) {
    std::snprintf(words, sizeof(words), "%.*s", static_cast<int>(text.size()), text.data());
  }
};

bool Parse(int argc, char** argv, Options* options) {
  if (argc < 2) return false;
  options->cases = argv[1];
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    const char* const value = argv[i + 1];
    if (flag == "--weft") {
      options->weft = value;
    } else if (flag == "--trials") {
      if (!absl::SimpleAtoi(value, &options->trials)) return false;
    } else if (flag == "--first") {
      if (!absl::SimpleAtoi(value, &options->first)) return false;
    } else if (flag == "--trial") {
      if (!absl::SimpleAtoi(value, &options->first)) return false;
      options->trials = 1;
      options->only_one = true;
    } else {
      return false;
    }
  }
  return argc % 2 == 0;
}

void LimitMemory(uint64_t bytes) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const rlimit limit{bytes, bytes};
  setrlimit(RLIMIT_AS, &limit);
#endif
}

// In a child. Does not return.
[[noreturn]] void RunChild(const Cases& cases, const Options& options, uint64_t first, uint64_t end,
                           Progress* progress) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Ops print, and so does protobuf where bytes are no text. `--trial` shows it.
  const int nowhere = open("/dev/null", O_WRONLY);
  if (!options.only_one) dup2(nowhere, 1), dup2(nowhere, 2);
  std::unique_ptr<OwnServer> server;
  if (options.weft.empty()) {
    LimitMemory(kMemory);
  } else {
    StatusOr<std::unique_ptr<OwnServer>> started = OwnServer::Start(options.weft, kServerMemory);
    if (!started.ok()) {
      progress->Tell(started.status().message());
      _exit(kNoServer);
    }
    server = *std::move(started);
  }
  for (uint64_t trial = first; trial < end; ++trial) {
    progress->begun_ns = absl::GetCurrentTimeNanos();
    progress->trial = trial;
    const Status status =
        RunTrial(MakeTrial(cases, trial), server == nullptr ? "" : server->target());
    if (status.ok()) ++progress->ended_well;
    if (server == nullptr) continue;
    // A process needs a moment to die.
    if (absl::IsUnavailable(status)) absl::SleepFor(absl::Milliseconds(300));
    if (const std::string death = server->Death(); !death.empty()) {
      progress->Tell(death);
      _exit(kServerDied);
    }
  }
  server.reset();
  _exit(0);
}

std::string Describe(int status) {
  if (WIFSIGNALED(status))
    return absl::StrCat("signal ", WTERMSIG(status), " (", strsignal(WTERMSIG(status)), ")");
  if (WEXITSTATUS(status) == kServerDied) return "it ended the server";
  if (WEXITSTATUS(status) == kNoServer) return "no server came up";
  return absl::StrCat("exit code ", WEXITSTATUS(status));
}

// What the child's threads have computed so far.
absl::Duration ComputedBy(pid_t pid) {
  clockid_t clock;
  timespec time{};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) return {};
  return absl::DurationFromTimespec(time);
}

// How the child ended; empty where it did well.
std::string WaitForChild(pid_t pid, const Progress& progress) {
  uint64_t trial = progress.trial;
  absl::Duration computed_before;
  while (true) {
    int status = 0;
    if (waitpid(pid, &status, WNOHANG) == pid) {
      return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "" : Describe(status);
    }
    const absl::Duration computed = ComputedBy(pid);
    if (progress.trial != trial) computed_before = computed;
    trial = progress.trial;
    const absl::Time begun = absl::FromUnixNanos(progress.begun_ns);
    if (computed - computed_before > kMostComputed || absl::Now() - begun > kLongest) {
      kill(pid, SIGKILL);
      waitpid(pid, &status, 0);
      return absl::StrCat("no end, after ", absl::FormatDuration(computed - computed_before),
                          " of computing");
    }
    absl::SleepFor(absl::Milliseconds(20));
  }
}

// Runs [first, end) in children; gives the number after the last that was run, and counts failures.
class Supervisor {
 public:
  Supervisor(const Cases& cases, const Options& options) : cases_(cases), options_(options) {
    progress_ = new (mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Progress();
  }

  int Run() {
    const uint64_t end = options_.first + options_.trials;
    uint64_t next = options_.first;
    while (next < end && failures_ < kMostFailures) {
      const uint64_t last = std::min(end, next + kTrialsOfChild);
      const std::string why = RunIn(next, last);
      if (why.empty()) {
        next = last;
        continue;
      }
      const uint64_t trial = progress_->trial;
      next = trial + 1;
      ++failures_;
      const std::string op = MakeTrial(cases_, trial).op;
      const std::string alone = RunIn(trial, trial + 1);
      std::printf("trial %lu (%s) failed: %s; alone: %s; again with: mutations %s --trial %lu%s\n",
                  trial, op.c_str(), why.c_str(), alone.empty() ? "it passes" : alone.c_str(),
                  options_.cases.c_str(), trial,
                  options_.weft.empty() ? "" : absl::StrCat(" --weft ", options_.weft).c_str());
      if (progress_->words[0] != '\0') std::printf("%s\n", progress_->words);
      std::fflush(stdout);
    }
    std::printf("%lu trials, %lu without an error, %d failures\n", next - options_.first,
                progress_->ended_well.load(), failures_);
    return failures_ == 0 ? 0 : 1;
  }

 private:
  std::string RunIn(uint64_t first, uint64_t end) {
    progress_->trial = first;
    progress_->begun_ns = absl::GetCurrentTimeNanos();
    std::fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) RunChild(cases_, options_, first, end, progress_);
    return WaitForChild(pid, *progress_);
  }

  const Cases& cases_;
  const Options& options_;
  Progress* progress_;
  int failures_ = 0;
};

void Show(const Trial& trial) {
  tensorflow::GraphDef graph;
  std::printf("%s: fold %d, fuse %d, two threads %d\n", trial.op.c_str(), trial.fold, trial.fuse,
              trial.two_threads);
  std::printf("%s\n",
              graph.ParseFromString(trial.graph) ? graph.ShortDebugString().c_str() : "no graph");
  for (const auto& step : trial.steps) std::printf("step: %s\n", step.ShortDebugString().c_str());
  std::fflush(stdout);
}

int Main(int argc, char** argv) {
  Options options;
  if (!Parse(argc, argv, &options)) {
    std::fprintf(stderr, "mutations CASES [--trials N] [--first K] [--trial K] [--weft PROGRAM]\n");
    return 2;
  }
  const StatusOr<Cases> cases = ReadCases(options.cases);
  if (!cases.ok()) {
    std::fprintf(stderr, "%s\n", std::string(cases.status().message()).c_str());
    return 2;
  }
  if (!options.only_one) return Supervisor(*cases, options).Run();
  const Trial trial = MakeTrial(*cases, options.first);
  Show(trial);
  Progress progress;
  if (!options.weft.empty()) RunChild(*cases, options, options.first, options.first + 1, &progress);
  LimitMemory(kMemory);
  std::printf("%s\n", RunTrial(trial, "").ToString().c_str());
  return 0;
}

}  // namespace
}  // namespace weft::mutations

int main(int argc, char** argv) { return weft::mutations::Main(argc, argv); }
