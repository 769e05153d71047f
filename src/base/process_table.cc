// SPDX-License-Identifier: Apache-2.0
#include "base/process_table.h"

#include <string>

#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "base/files.h"

namespace weft {
namespace {

constexpr uint64_t kMostBytes = 64 << 10;

// "pid (name) state parent group ..."; the name may hold spaces and brackets.
bool ParseStat(const std::string& stat, ProcessEntry* entry) {
  constexpr size_t kParent = 1, kGroup = 2, kTimes = 11, kResident = 21;  // after the name
  const size_t end_of_name = stat.rfind(')');
  if (end_of_name == std::string::npos) return false;
  const std::vector<std::string> fields =
      absl::StrSplit(stat.substr(end_of_name + 1), ' ', absl::SkipEmpty());
  int64_t pages = 0;
  if (fields.size() <= kResident || !absl::SimpleAtoi(fields[kParent], &entry->parent) ||
      !absl::SimpleAtoi(fields[kGroup], &entry->group) ||
      !absl::SimpleAtoi(fields[kResident], &pages)) {
    return false;
  }
  entry->resident_bytes = pages * ::sysconf(_SC_PAGESIZE);
  // Of its own in user and system mode, then of its children.
  int64_t ticks = 0;
  for (size_t i = kTimes; i < kTimes + 4; ++i) {
    int64_t part = 0;
    if (absl::SimpleAtoi(fields[i], &part)) ticks += part;
  }
  entry->cpu_time = absl::Seconds(1) * ticks / ::sysconf(_SC_CLK_TCK);
  return true;
}

// Of the lines "<name>:  <number> kB" those with one of the names. -1: there is no such line.
int64_t SumOfLines(const std::string& path, std::initializer_list<const char*> names) {
  RealFileSystem files;
  const std::string text = ReadFile(files, path, kMostBytes).value_or("");
  int64_t sum = -1;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    for (const char* name : names) {
      if (!absl::StartsWith(line, name)) continue;
      const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
      int64_t kilobytes = 0;
      if (words.size() > 1 && absl::SimpleAtoi(words[1], &kilobytes))
        sum = std::max<int64_t>(sum, 0) + kilobytes * 1024;
    }
  }
  return sum;
}

}  // namespace

std::vector<ProcessEntry> ReadProcessTable() {
  std::vector<ProcessEntry> table;
  RealFileSystem files;
  const StatusOr<std::vector<std::string>> names = files.List("/proc");
  if (!names.ok()) return table;
  for (const std::string& name : *names) {
    ProcessEntry entry;
    if (!absl::SimpleAtoi(name, &entry.pid)) continue;
    const StatusOr<std::string> stat =
        ReadFile(files, absl::StrCat("/proc/", name, "/stat"), kMostBytes);
    if (stat.ok() && ParseStat(*stat, &entry)) table.push_back(entry);
  }
  return table;
}

std::set<pid_t> Descendants(const std::vector<ProcessEntry>& table, pid_t root, pid_t spare) {
  std::set<pid_t> found;
  for (bool grew = true; grew;) {
    grew = false;
    for (const ProcessEntry& entry : table) {
      if (entry.pid == spare || (entry.parent != root && found.count(entry.parent) == 0)) continue;
      grew = found.insert(entry.pid).second || grew;
    }
  }
  return found;
}

int64_t HeldMemory(const std::set<pid_t>& pids) {
  int64_t sum = 0;
  for (const pid_t pid : pids) {
    const std::string folder = absl::StrCat("/proc/", pid);
    int64_t held = SumOfLines(folder + "/smaps_rollup", {"Pss_Anon:", "Pss_Shmem:", "SwapPss:"});
    // Another user's, or an old kernel.
    if (held < 0) held = SumOfLines(folder + "/status", {"RssAnon:", "RssShmem:", "VmSwap:"});
    sum += std::max<int64_t>(held, 0);
  }
  return sum;
}

}  // namespace weft
