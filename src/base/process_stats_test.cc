// SPDX-License-Identifier: Apache-2.0
#include "base/process_stats.h"

#include <fstream>
#include <vector>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/time/clock.h"

#include "base/threads.h"

namespace weft {
namespace {

TEST(ProcessStats, CountsWhatThisProcessHolds) {
  const ProcessStats before = ReadProcessStats();
  EXPECT_GT(before.resident_bytes, 1 << 20);
  EXPECT_GE(before.threads, 1);
  EXPECT_GE(before.open_files, 3);
  EXPECT_GT(before.uptime, absl::ZeroDuration());
  EXPECT_LT(before.uptime, absl::Hours(1));
  EXPECT_LE(before.cpu_time, before.uptime * 64 + absl::Seconds(1));

  ThreadPool pool("three", 3);
  std::vector<char> touched(64 << 20, 1);
  std::ifstream file("/proc/self/stat");
  const ProcessStats after = ReadProcessStats();
  EXPECT_GE(after.threads, before.threads + 3);
  EXPECT_EQ(after.open_files, before.open_files + 1);
  EXPECT_GE(after.resident_bytes, before.resident_bytes + (32 << 20));
  EXPECT_GE(after.uptime, before.uptime);
}

// The answer to the second look from now on, which tells of nothing that was before.
bool InTheEnd() {
  for (int look = 0; look < 2; ++look) {
    OthersAreBusy();
    absl::SleepFor(absl::Milliseconds(250));
  }
  return OthersAreBusy();
}

// A process that computes until it is killed or this one is gone.
class BusyProcess {
 public:
  BusyProcess() : pid_(fork()) {
    if (pid_ == 0) {
      while (getppid() == parent_) {
      }
      _exit(0);
    }
  }
  ~BusyProcess() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  BusyProcess(const BusyProcess&) = delete;
  BusyProcess& operator=(const BusyProcess&) = delete;

 private:
  const pid_t parent_ = getpid();
  const pid_t pid_;
};

TEST(ProcessStats, ProcessesOnAllProcessorsAreSeen) {
  const int processors = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  const std::vector<BusyProcess> busy(processors);
  EXPECT_TRUE(InTheEnd());
}

}  // namespace
}  // namespace weft
