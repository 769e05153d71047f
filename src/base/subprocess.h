// SPDX-License-Identifier: Apache-2.0
// Child processes that cannot be left behind.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "base/posix_file.h"
#include "base/status.h"

namespace weft {

// How a process ended: `signal` is 0 when it exited by itself.
struct ExitState {
  int code = 0;
  int signal = 0;
  bool ok() const { return code == 0 && signal == 0; }
  // What a shell reports: the code, or 128 + signal.
  int ShellCode() const { return signal != 0 ? 128 + signal : code; }
  bool operator==(const ExitState&) const = default;
};
// "exit code 3", "killed by SIGKILL (9)"
std::string DescribeExit(const ExitState& exit);

class MountNamespace;
class ProcessGuard;

// Whose rights a process has.
struct ProcessOwner {
  uid_t user = 0;
  gid_t group = 0;
  std::vector<gid_t> groups;  // besides
};

struct SpawnOptions {
  std::vector<std::string> argv;         // argv[0] is looked up in the PATH of `environment`
  std::vector<std::string> environment;  // "NAME=value", all of it
  std::string working_directory;         // empty: ours
  bool capture_output = false;           // stdout and stderr become pipes
  bool takes_input = false;              // so does stdin
  bool has_terminal = false;             // all three are one terminal, in place of pipes
  std::vector<int> processors;           // it may run on these alone; empty: on ours
  int control_group = -1;  // cgroup.procs of the control group that it enters; borrowed
  // Borrowed. In it lie the working directory and the program, whose name is looked up there too.
  const MountNamespace* mounts = nullptr;
  std::optional<ProcessOwner> owner;  // none: ours
  ProcessGuard* guard =
      nullptr;  // borrowed; knows the process from before its program runs until it is reaped
};

// A child in a process group of its own, with /dev/null as stdin unless it takes input, default
// signals and no descriptor of ours; the kernel kills it when the thread that spawned it ends, so
// spawn from one that lives long. It starts without a copy of our page tables, however much memory
// we have. Not thread-safe. The destructor kills the group and reaps.
class Subprocess {
 public:
  // NotFound or PermissionDenied when there is no such program, naming it and the PATH searched.
  static StatusOr<std::unique_ptr<Subprocess>> Spawn(const SpawnOptions& options);
  ~Subprocess();
  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;

  pid_t pid() const { return pid_; }
  // Readable when the process has ended; for poll.
  int pidfd() const { return pidfd_.get(); }
  // Our non-blocking ends of the pipes, closed when not captured. The caller may take them.
  OwnedFd& stdout_pipe() { return stdout_; }
  OwnedFd& stderr_pipe() { return stderr_; }
  // Of a terminal these are its other side, and stderr_pipe() is closed.
  OwnedFd& stdin_pipe() { return stdin_; }

  // To the whole group; nothing once it was reaped.
  void Signal(int signal);
  // Reaps if it has ended. What is left of its group is killed first.
  std::optional<ExitState> TryWait();
  // Blocks at most `timeout`: DeadlineExceeded.
  StatusOr<ExitState> Wait(absl::Duration timeout);

 private:
  Subprocess(pid_t pid, ProcessGuard* guard, OwnedFd pidfd, OwnedFd in, OwnedFd out, OwnedFd err);
  void Reap(ExitState* exit);

  const pid_t pid_;
  ProcessGuard* const guard_;
  const OwnedFd pidfd_;
  OwnedFd stdin_;
  OwnedFd stdout_;
  OwnedFd stderr_;
  std::optional<ExitState> exit_;
};

// Whether a Subprocess will reap it. Thread-safe.
bool IsSubprocess(pid_t pid);

// A tiny process that outlives us by a moment: when we die, however, it kills every group that was
// added and not removed, and all that has its mark in its environment. Start it before other
// threads exist. Thread-safe.
class ProcessGuard {
 public:
  static StatusOr<std::unique_ptr<ProcessGuard>> Start();
  ~ProcessGuard();
  ProcessGuard(const ProcessGuard&) = delete;
  ProcessGuard& operator=(const ProcessGuard&) = delete;

  void Add(pid_t group);
  void Remove(pid_t group);
  pid_t pid() const { return pid_; }
  // For AddMark: of what may leave its group.
  const std::string& mark() const { return mark_; }
  // Where to write a pid_t to add it, for a child that has forked.
  int fd() const { return pipe_.get(); }

 private:
  ProcessGuard(pid_t pid, OwnedFd pipe, std::string mark)
      : pid_(pid), pipe_(std::move(pipe)), mark_(std::move(mark)) {}
  const pid_t pid_;
  const OwnedFd pipe_;
  const std::string mark_;
};

// A word that no other process makes, and its place in the environment of what shall be found by
// it, beside the marks that it has already.
std::string MakeMark();
void AddMark(std::vector<std::string>* environment, absl::string_view mark);
// Kills all that has the mark, as far as we may; how many there were. With `only_children` it looks
// at our children alone, which is quick, and kills what descends from them too: enough for what
// AdoptOrphans brought to us.
int KillMarked(absl::string_view mark, bool only_children = false);

// Makes us the parent of every orphan below us, so that KillDescendants finds what left its group.
void AdoptOrphans();
// Kills and reaps all that descends from us except `spare` (0: no one). Returns how many there
// were.
int KillDescendants(pid_t spare = 0);

// Value of `name` in "NAME=value" lines; the last one wins.
std::optional<std::string> FindEnvironment(const std::vector<std::string>& environment,
                                           absl::string_view name);
void SetEnvironment(std::vector<std::string>* environment, absl::string_view name,
                    absl::string_view value);
std::vector<std::string> CurrentEnvironment();

}  // namespace weft
