// SPDX-License-Identifier: Apache-2.0
#include "base/process_stats.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace weft {
namespace {

// Clock ticks since boot at which this process started.
int64_t StartTicks(const std::string& stat) {
  // The name in parentheses may hold anything; after it the 20th word.
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream words(stat.substr(name_end + 1));
  std::string word;
  for (int i = 0; i < 20; ++i) words >> word;
  int64_t ticks = 0;
  std::istringstream(word) >> ticks;
  return ticks;
}

constexpr std::chrono::nanoseconds kBetweenLooks = std::chrono::milliseconds(200);
constexpr double kBusyPart = 1.0 / 6;

// Seconds of all processors since the machine started, and of this process.
struct Use {
  double all = 0;
  double busy = 0;
  double own = 0;
};

std::optional<Use> ReadUse() {
  std::ifstream file("/proc/stat");
  std::string name;
  double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, irq = 0, softirq = 0;
  file >> name >> user >> nice >> system >> idle >> waiting >> irq >> softirq;
  timespec own = {};
  if (!file || name != "cpu" || clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own) != 0) return {};
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  const double busy = user + nice + system + irq + softirq;
  return Use{.all = (busy + idle + waiting) / ticks,
             .busy = busy / ticks,
             .own = static_cast<double>(own.tv_sec) + static_cast<double>(own.tv_nsec) * 1e-9};
}

class LooksAtOthers {
 public:
  bool OthersAreBusy() {
    const int64_t now =
        std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
    const int64_t next = next_.load(std::memory_order_relaxed);
    if (now >= next && mutex_.TryLock()) {
      // What others did while this process paused says nothing of now.
      if (now - next > kBetweenLooks.count()) last_.reset();
      Look();
      next_.store(now + kBetweenLooks.count(), std::memory_order_relaxed);
      mutex_.Unlock();
    }
    return are_busy_.load(std::memory_order_relaxed);
  }

 private:
  void Look() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::optional<Use> use = ReadUse();
    if (use.has_value() && last_.has_value() && use->all > last_->all) {
      const double others = (use->busy - last_->busy) - (use->own - last_->own);
      are_busy_.store(others > kBusyPart * (use->all - last_->all), std::memory_order_relaxed);
    } else {
      are_busy_.store(false, std::memory_order_relaxed);
    }
    last_ = use;
  }

  absl::Mutex mutex_;
  std::optional<Use> last_ ABSL_GUARDED_BY(mutex_);
  std::atomic<int64_t> next_{0};
  std::atomic<bool> are_busy_{false};
};

}  // namespace

ProcessStats ReadProcessStats() {
  ProcessStats stats;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    std::istringstream words(line);
    std::string name;
    int64_t value = 0;
    words >> name >> value;
    if (name == "VmRSS:") stats.resident_bytes = value * 1024;
    if (name == "Threads:") stats.threads = value;
  }
  std::error_code error;
  for (std::filesystem::directory_iterator it("/proc/self/fd", error), end; !error && it != end;
       it.increment(error)) {
    ++stats.open_files;
  }
  rusage usage = {};
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    stats.cpu_time =
        absl::DurationFromTimeval(usage.ru_utime) + absl::DurationFromTimeval(usage.ru_stime);
  }
  std::string stat;
  std::ifstream file("/proc/self/stat");
  timespec now = {};
  if (std::getline(file, stat) && clock_gettime(CLOCK_BOOTTIME, &now) == 0) {
    const double started =
        static_cast<double>(StartTicks(stat)) / static_cast<double>(sysconf(_SC_CLK_TCK));
    stats.uptime = absl::DurationFromTimespec(now) - absl::Seconds(started);
  }
  return stats;
}

bool OthersAreBusy() {
  static LooksAtOthers& looks = *new LooksAtOthers;
  return looks.OthersAreBusy();
}

}  // namespace weft
