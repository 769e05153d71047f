// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cerrno>
#include <optional>
#include <set>
#include <utility>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"

#include "base/files.h"
#include "base/living_children.h"
#include "base/pipe.h"
#include "base/process_table.h"
#include "base/subprocess.h"

namespace weft {
namespace {

constexpr size_t kMostGroups = 4096;
constexpr int kRounds = 16;
constexpr uint64_t kMostEnvironment = 4 << 20;

bool HasMark(pid_t pid, absl::string_view mark) {
  // Of thousands of children one look at each environment would take long.
  if (const std::optional<bool> known = SubprocessHasMark(pid, mark)) return *known;
  RealFileSystem files;
  return pid != ::getpid() &&
         absl::StrContains(
             ReadFile(files, absl::StrCat("/proc/", pid, "/environ"), kMostEnvironment)
                 .value_or(""),
             mark);
}

std::set<pid_t> AllProcesses() {
  std::set<pid_t> pids;
  for (const ProcessEntry& entry : ReadProcessTable()) pids.insert(entry.pid);
  return pids;
}

std::set<pid_t> OurChildren() {
  RealFileSystem files;
  std::set<pid_t> pids;
  const std::string folder = "/proc/self/task";
  for (const std::string& thread : files.List(folder).value_or(std::vector<std::string>())) {
    const StatusOr<std::string> list =
        ReadFile(files, absl::StrCat(folder, "/", thread, "/children"), kMostEnvironment);
    // The thread has ended, or the kernel has no such lists.
    if (!list.ok()) continue;
    for (const absl::string_view word : absl::StrSplit(*list, ' ', absl::SkipEmpty())) {
      pid_t pid = 0;
      if (absl::SimpleAtoi(word, &pid)) pids.insert(pid);
    }
  }
  return pids;
}

// The guard's whole life: groups come in as pid_t, negative to remove one, until the pipe's other
// end is gone.
[[noreturn]] void Guard(int pipe, const std::string& mark) {
  static pid_t groups[kMostGroups];
  size_t count = 0;
  pid_t group = 0;
  while (true) {
    const ssize_t got = ::read(pipe, &group, sizeof(group));
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof(group)) break;
    if (group > 0 && count < kMostGroups) groups[count++] = group;
    for (size_t i = 0; i < count; ++i) {
      if (groups[i] == -group) groups[i--] = groups[--count];
    }
  }
  for (size_t i = 0; i < count; ++i) ::kill(-groups[i], SIGKILL);
  KillMarked(mark);
  ::_exit(0);
}

// A pid_t is far below PIPE_BUF: one write, whole or not at all.
void Tell(int pipe, pid_t group) {
  ssize_t written = 0;
  do {
    written = ::write(pipe, &group, sizeof(group));
  } while (written < 0 && errno == EINTR);
}

std::set<pid_t> OurDescendants(pid_t spare) {
  return Descendants(ReadProcessTable(), ::getpid(), spare);
}

}  // namespace

StatusOr<std::unique_ptr<ProcessGuard>> ProcessGuard::Start() {
  WEFT_ASSIGN_OR_RETURN(Pipe pipe, MakePipe());
  std::string mark = MakeMark();
  const pid_t pid = ::fork();
  if (pid < 0) return ErrnoStatus(errno, "start", "the guard process");
  if (pid == 0) {
    pipe.write.Reset();
    ::setsid();  // neither Ctrl-C nor a hang-up of the terminal is for it
    ::signal(SIGTERM, SIG_IGN);
    ::signal(SIGINT, SIG_IGN);
    ::signal(SIGHUP, SIG_IGN);
    // Whoever reads our output must see its end when we end.
    const int null_fd = ::open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; ++fd) ::dup2(null_fd, fd);
    Guard(pipe.read.get(), mark);
  }
  return std::unique_ptr<ProcessGuard>(
      new ProcessGuard(pid, std::move(pipe.write), std::move(mark)));
}

ProcessGuard::~ProcessGuard() {
  // Killed rather than told: what it guards is its owner's to end now.
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void ProcessGuard::Add(pid_t group) { Tell(pipe_.get(), group); }
void ProcessGuard::Remove(pid_t group) { Tell(pipe_.get(), -group); }

std::string MakeMark() {
  static std::atomic<int64_t> count{0};
  // Process ids come again.
  return absl::StrCat(::getpid(), "-", absl::GetCurrentTimeNanos(), "-", count.fetch_add(1));
}

void AddMark(std::vector<std::string>* environment, absl::string_view mark) {
  const std::optional<std::string> outer = FindEnvironment(*environment, kMarksVariable);
  SetEnvironment(environment, kMarksVariable,
                 outer.has_value() ? absl::StrCat(*outer, ":", mark) : std::string(mark));
}

int KillMarked(absl::string_view mark, bool only_children) {
  std::set<pid_t> killed;
  // What forks while we look is found the next time.
  for (int round = 0; round < kRounds; ++round) {
    std::set<pid_t> found;
    for (const pid_t pid : only_children ? OurChildren() : AllProcesses()) {
      if (killed.count(pid) == 0 && HasMark(pid, mark)) found.insert(pid);
    }
    if (found.empty()) break;
    if (only_children) {
      const std::vector<ProcessEntry> table = ReadProcessTable();
      for (const pid_t pid : std::set<pid_t>(found)) found.merge(Descendants(table, pid));
    }
    for (const pid_t pid : found) ::kill(pid, SIGKILL);
    killed.merge(found);
  }
  return static_cast<int>(killed.size());
}

void AdoptOrphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

int KillDescendants(pid_t spare) {
  std::set<pid_t> killed;
  // A process may fork while we look; a few rounds are enough, since each round halts the parents
  // first.
  for (int round = 0; round < kRounds; ++round) {
    const std::set<pid_t> descendants = OurDescendants(spare);
    if (descendants.empty()) break;
    for (const pid_t pid : descendants) ::kill(pid, SIGKILL);
    for (const pid_t pid : descendants) ::waitpid(pid, nullptr, 0);
    killed.insert(descendants.begin(), descendants.end());
  }
  return static_cast<int>(killed.size());
}

}  // namespace weft
