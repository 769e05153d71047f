// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <set>
#include <utility>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process_table.h"
#include "base/subprocess.h"

namespace weft {
namespace {

constexpr size_t kMostGroups = 4096;

// The guard's whole life: groups come in as pid_t, negative to remove one, until the pipe's other
// end is gone.
[[noreturn]] void Guard(int pipe) {
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
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return ErrnoStatus(errno, "make", "a pipe");
  OwnedFd read_end(fds[0]);
  OwnedFd write_end(fds[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return ErrnoStatus(errno, "start", "the guard process");
  if (pid == 0) {
    write_end.Reset();
    ::setsid();  // neither Ctrl-C nor a hang-up of the terminal is for it
    ::signal(SIGTERM, SIG_IGN);
    ::signal(SIGINT, SIG_IGN);
    ::signal(SIGHUP, SIG_IGN);
    // Whoever reads our output must see its end when we end.
    const int null_fd = ::open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; ++fd) ::dup2(null_fd, fd);
    Guard(read_end.get());
  }
  return std::unique_ptr<ProcessGuard>(new ProcessGuard(pid, std::move(write_end)));
}

ProcessGuard::~ProcessGuard() {
  // Killed rather than told: what it guards is its owner's to end now.
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void ProcessGuard::Add(pid_t group) { Tell(pipe_.get(), group); }
void ProcessGuard::Remove(pid_t group) { Tell(pipe_.get(), -group); }

void AdoptOrphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

int KillDescendants(pid_t spare) {
  std::set<pid_t> killed;
  // A process may fork while we look; a few rounds are enough, since each round halts the parents
  // first.
  for (int round = 0; round < 16; ++round) {
    const std::set<pid_t> descendants = OurDescendants(spare);
    if (descendants.empty()) break;
    for (const pid_t pid : descendants) ::kill(pid, SIGKILL);
    for (const pid_t pid : descendants) ::waitpid(pid, nullptr, 0);
    killed.insert(descendants.begin(), descendants.end());
  }
  return static_cast<int>(killed.size());
}

}  // namespace weft
