// SPDX-License-Identifier: Apache-2.0
#include "base/process_stats.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

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

}  // namespace weft
