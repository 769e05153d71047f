// SPDX-License-Identifier: Apache-2.0
#include "base/subprocess.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"

#include "base/file_limit.h"
#include "base/living_children.h"
#include "base/mount_namespace.h"
#include "base/pipe.h"
#include "base/poll_timeout.h"

namespace weft {
namespace {

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::string PathOf(const SpawnOptions& options) {
  return FindEnvironment(options.environment, "PATH").value_or("/usr/local/bin:/usr/bin:/bin");
}

// As execvp does, but with the child's own PATH, and before the fork, where memory may be had. In
// another namespace the child must try them all.
StatusOr<std::vector<std::string>> FindProgram(const SpawnOptions& options) {
  const std::string& name = options.argv[0];
  if (absl::StrContains(name, '/')) return std::vector<std::string>{name};
  std::vector<std::string> candidates;
  for (const absl::string_view folder : absl::StrSplit(PathOf(options), ':')) {
    candidates.push_back(JoinPath(folder.empty() ? "." : folder, name));
    if (options.mounts == nullptr && ::access(candidates.back().c_str(), X_OK) == 0)
      return std::vector<std::string>{candidates.back()};
  }
  if (options.mounts != nullptr) return candidates;
  return NotFound("There is no program '", name, "' in PATH ", PathOf(options));
}

// What a child could not do, and what the system said.
struct ChildError {
  enum class Step { kBegin, kEnter, kOwner, kFolder, kStart };
  Step step = Step::kBegin;
  int error = 0;
};

struct ChildPlan {
  char* const* programs;  // the first that is there
  char* const* argv;
  char* const* environment;
  const char* working_directory;  // or null
  int stdin_fd;                   // or -1
  int stdout_fd;                  // or -1
  int stderr_fd;
  int error_fd;
  int guard_fd;  // or -1
  pid_t parent;
  const cpu_set_t* processors;   // or null
  int control_group;             // or -1
  const MountNamespace* mounts;  // or null
  const ProcessOwner* owner;     // or null
  bool has_terminal;             // stdin_fd is one
};

bool EnterMounts(const ChildPlan& plan) { return plan.mounts == nullptr || plan.mounts->Enter(); }

// By the system calls themselves: the library's functions would have all threads of the parent,
// whose memory this is, do the same.
bool BecomeOwner(const ChildPlan& plan) {
  if (plan.owner == nullptr) return true;
  const ProcessOwner& owner = *plan.owner;
  return ::syscall(SYS_setgroups, owner.groups.size(), owner.groups.data()) == 0 &&
         ::syscall(SYS_setresgid, owner.group, owner.group, owner.group) == 0 &&
         ::syscall(SYS_setresuid, owner.user, owner.user, owner.user) == 0;
}

// What is there but may not run outlasts what is not there.
bool Execute(const ChildPlan& plan) {
  int error = ENOENT;
  for (char* const* program = plan.programs; *program != nullptr; ++program) {
    ::execve(*program, plan.argv, plan.environment);
    if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) return false;
    if (errno == EACCES) error = EACCES;
  }
  errno = error;
  return false;
}

// In the memory of the parent, one thread of which waits until the program runs; so only calls that
// are safe after a signal, and nothing is written but what is on our own stack.
int RunChild(void* argument) {
  const ChildPlan& plan = *static_cast<const ChildPlan*>(argument);
  if (plan.has_terminal) {
    ::setsid();  // and a group
    ::ioctl(plan.stdin_fd, TIOCSCTTY, 0);
  } else {
    ::setpgid(0, 0);
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != plan.parent) ::_exit(127);  // it died before prctl
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  // Before the program can fork: were we killed now, all of it would still be found.
  const pid_t self = ::getpid();
  bool good = plan.guard_fd < 0 || ::write(plan.guard_fd, &self, sizeof(self)) == sizeof(self);
  if (plan.control_group >= 0) good = good && ::write(plan.control_group, "0", 1) == 1;
  if (plan.processors != nullptr)
    good = good && ::sched_setaffinity(0, sizeof(cpu_set_t), plan.processors) == 0;
  const int input_fd = plan.stdin_fd >= 0 ? plan.stdin_fd : ::open("/dev/null", O_RDWR);
  good = good && input_fd >= 0 && ::dup2(input_fd, STDIN_FILENO) >= 0;
  if (plan.stdout_fd >= 0) good = good && ::dup2(plan.stdout_fd, STDOUT_FILENO) >= 0;
  if (plan.stderr_fd >= 0) good = good && ::dup2(plan.stderr_fd, STDERR_FILENO) >= 0;
  ChildError report;
  const auto go_on = [&](ChildError::Step step, bool (*take)(const ChildPlan& plan)) {
    if (!good) return;
    report.step = step;
    good = take(plan);
  };
  RestoreFileLimit();
  go_on(ChildError::Step::kEnter, EnterMounts);
  go_on(ChildError::Step::kOwner, BecomeOwner);
  if (good && (plan.mounts != nullptr || plan.owner != nullptr)) {
    // A change of rights forgets it.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != plan.parent) ::_exit(127);
  }
  go_on(ChildError::Step::kFolder, [](const ChildPlan& child) {
    return child.working_directory == nullptr || ::chdir(child.working_directory) == 0;
  });
  go_on(ChildError::Step::kStart, [](const ChildPlan& child) {
    ::syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC);
    return Execute(child);
  });
  report.error = errno;
  [[maybe_unused]] const ssize_t written = ::write(plan.error_fd, &report, sizeof(report));
  ::_exit(127);
}

Status Describe(const ChildError& report, const SpawnOptions& options,
                const std::vector<std::string>& programs) {
  switch (report.step) {
    case ChildError::Step::kBegin:
      break;
    case ChildError::Step::kEnter:
      return ErrnoStatus(report.error, "enter", "the mount namespace of a container");
    case ChildError::Step::kOwner:
      return ErrnoStatus(report.error, "become", absl::StrCat("user ", options.owner->user));
    case ChildError::Step::kFolder:
      return ErrnoStatus(report.error, "use the working directory", options.working_directory);
    case ChildError::Step::kStart:
      if (programs.size() > 1 && report.error == ENOENT) {
        return NotFound("There is no program '", options.argv[0], "' in PATH ", PathOf(options));
      }
      break;
  }
  return ErrnoStatus(report.error, "start", programs.size() == 1 ? programs[0] : options.argv[0]);
}

// The ends of what a child reads and prints: its own, and ours, which do not block.
struct ChildStreams {
  OwnedFd child_in, child_out, child_err;
  OwnedFd in, out, err;
};

Status OpenTerminal(ChildStreams* streams) {
  const auto fail = [](const char* verb) { return ErrnoStatus(errno, verb, "a terminal"); };
  streams->out = OwnedFd(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  char name[128];
  if (!streams->out.is_open() || ::grantpt(streams->out.get()) != 0 ||
      ::unlockpt(streams->out.get()) != 0 ||
      ::ptsname_r(streams->out.get(), name, sizeof(name)) != 0)
    return fail("make");
  streams->in = OwnedFd(::fcntl(streams->out.get(), F_DUPFD_CLOEXEC, 0));
  for (OwnedFd* const end : {&streams->child_in, &streams->child_out, &streams->child_err}) {
    *end = OwnedFd(::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC));
    if (!end->is_open()) return fail("open");
  }
  return absl::OkStatus();
}

StatusOr<ChildStreams> OpenStreams(const SpawnOptions& options) {
  ChildStreams streams;
  if (options.has_terminal) {
    WEFT_RETURN_IF_ERROR(OpenTerminal(&streams));
    return streams;
  }
  if (options.takes_input) {
    WEFT_ASSIGN_OR_RETURN(Pipe pipe, MakePipe());
    streams.child_in = std::move(pipe.read);
    streams.in = std::move(pipe.write);
    ::fcntl(streams.in.get(), F_SETFL, O_NONBLOCK);
  }
  if (!options.capture_output) return streams;
  for (const auto& [theirs, ours] :
       {std::pair{&streams.child_out, &streams.out}, std::pair{&streams.child_err, &streams.err}}) {
    WEFT_ASSIGN_OR_RETURN(Pipe pipe, MakePipe());
    *theirs = std::move(pipe.write);
    *ours = std::move(pipe.read);
    ::fcntl(ours->get(), F_SETFL, O_NONBLOCK);
  }
  return streams;
}

// Those that are not reaped yet. Nobody can ask for one before it is known here.
class LivingChildren {
 public:
  static LivingChildren& Get() {
    static auto* const children = new LivingChildren();
    return *children;
  }

  // As vfork does it: we wait until the child runs its program or has ended. -1: errno says why.
  pid_t Start(const ChildPlan& plan, std::string marks) {
    constexpr size_t kStackBytes = 256 << 10;
    void* const stack = ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED) return -1;
    absl::MutexLock lock(&mutex_);
    // A handler of ours must not run in the child.
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    const pid_t pid = ::clone(RunChild, static_cast<char*>(stack) + kStackBytes,
                              CLONE_VM | CLONE_VFORK | SIGCHLD, const_cast<ChildPlan*>(&plan));
    const int error = errno;
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    ::munmap(stack, kStackBytes);
    if (pid > 0) marks_[pid] = std::move(marks);
    errno = error;
    return pid;
  }
  void Forget(pid_t pid) {
    absl::MutexLock lock(&mutex_);
    marks_.erase(pid);
  }
  bool Has(pid_t pid) {
    absl::MutexLock lock(&mutex_);
    return marks_.count(pid) != 0;
  }
  std::optional<bool> HasMark(pid_t pid, absl::string_view mark) {
    absl::MutexLock lock(&mutex_);
    const auto found = marks_.find(pid);
    if (found == marks_.end()) return std::nullopt;
    return absl::StrContains(found->second, mark);
  }

 private:
  absl::Mutex mutex_;
  std::map<pid_t, std::string> marks_ ABSL_GUARDED_BY(mutex_);
};

int PidfdOpen(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

}  // namespace

std::string DescribeExit(const ExitState& exit) {
  if (exit.signal == 0) return absl::StrCat("exit code ", exit.code);
  const char* const name = ::sigabbrev_np(exit.signal);
  return absl::StrCat("killed by ", name == nullptr ? "signal" : absl::StrCat("SIG", name), " (",
                      exit.signal, ")");
}

StatusOr<std::unique_ptr<Subprocess>> Subprocess::Spawn(const SpawnOptions& options) {
  if (options.argv.empty()) return InvalidArgument("There is no program to run: argv is empty");
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> programs, FindProgram(options));
  // Who enters a namespace begins at its root.
  std::string folder = options.working_directory;
  if (folder.empty() && options.mounts != nullptr) {
    char path[4096];
    if (::getcwd(path, sizeof(path)) != nullptr) folder = path;
  }
  WEFT_ASSIGN_OR_RETURN(ChildStreams streams, OpenStreams(options));
  WEFT_ASSIGN_OR_RETURN(Pipe error, MakePipe());
  cpu_set_t processors;
  CPU_ZERO(&processors);
  for (const int processor : options.processors) CPU_SET(processor, &processors);
  const std::vector<char*> candidates = Pointers(programs);
  const std::vector<char*> argv = Pointers(options.argv);
  const std::vector<char*> environment = Pointers(options.environment);
  const ChildPlan plan = {candidates.data(),
                          argv.data(),
                          environment.data(),
                          folder.empty() ? nullptr : folder.c_str(),
                          streams.child_in.get(),
                          streams.child_out.get(),
                          streams.child_err.get(),
                          error.write.get(),
                          options.guard == nullptr ? -1 : options.guard->fd(),
                          ::getpid(),
                          options.processors.empty() ? nullptr : &processors,
                          options.control_group,
                          options.mounts,
                          options.owner.has_value() ? &*options.owner : nullptr,
                          options.has_terminal};
  const pid_t pid = LivingChildren::Get().Start(
      plan, FindEnvironment(options.environment, kMarksVariable).value_or(""));
  if (pid < 0) return ErrnoStatus(errno, "start", options.argv[0]);
  error.write.Reset();
  ChildError child_error;
  ssize_t count = 0;
  do {
    count = ::read(error.read.get(), &child_error, sizeof(child_error));
  } while (count < 0 && errno == EINTR);
  if (count > 0) {
    if (options.guard != nullptr) options.guard->Remove(pid);
    ::waitpid(pid, nullptr, 0);
    LivingChildren::Get().Forget(pid);
    return Describe(child_error, options, programs);
  }
  OwnedFd pidfd(PidfdOpen(pid));
  const int pidfd_errno = errno;
  std::unique_ptr<Subprocess> process(new Subprocess(pid, options.guard, std::move(pidfd),
                                                     std::move(streams.in), std::move(streams.out),
                                                     std::move(streams.err)));
  if (process->pidfd() < 0) return ErrnoStatus(pidfd_errno, "watch", options.argv[0]);
  return process;
}

std::optional<bool> SubprocessHasMark(pid_t pid, absl::string_view mark) {
  return LivingChildren::Get().HasMark(pid, mark);
}

bool IsSubprocess(pid_t pid) { return LivingChildren::Get().Has(pid); }

Subprocess::Subprocess(pid_t pid, ProcessGuard* guard, OwnedFd pidfd, OwnedFd in, OwnedFd out,
                       OwnedFd err)
    : pid_(pid),
      guard_(guard),
      pidfd_(std::move(pidfd)),
      stdin_(std::move(in)),
      stdout_(std::move(out)),
      stderr_(std::move(err)) {}

Subprocess::~Subprocess() {
  if (exit_.has_value()) return;
  ::kill(-pid_, SIGKILL);
  ExitState unused;
  Reap(&unused);
}

void Subprocess::Reap(ExitState* exit) {
  siginfo_t info = {};
  const auto id = static_cast<id_t>(pid_);
  ::waitid(P_PID, id, &info, WEXITED | WNOWAIT);
  // Until it is reaped the id of its group cannot be another's.
  ::kill(-pid_, SIGKILL);
  if (guard_ != nullptr) guard_->Remove(pid_);
  ::waitid(P_PID, id, &info, WEXITED);
  LivingChildren::Get().Forget(pid_);
  (info.si_code == CLD_EXITED ? exit->code : exit->signal) = info.si_status;
}

void Subprocess::Signal(int signal) {
  if (!exit_.has_value()) ::kill(-pid_, signal);
}

std::optional<ExitState> Subprocess::TryWait() {
  if (exit_.has_value()) return exit_;
  siginfo_t info = {};
  const auto id = static_cast<id_t>(pid_);
  if (::waitid(P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) {
    return std::nullopt;
  }
  Reap(&exit_.emplace());
  return exit_;
}

StatusOr<ExitState> Subprocess::Wait(absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (true) {
    if (const std::optional<ExitState> exit = TryWait()) return *exit;
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) {
      return DeadlineExceeded("Process ", pid_, " has not ended after ",
                              absl::FormatDuration(timeout));
    }
    pollfd poll_fd = {pidfd(), POLLIN, 0};
    ::poll(&poll_fd, 1, PollTimeoutMs(left));
  }
}

std::optional<std::string> FindEnvironment(const std::vector<std::string>& environment,
                                           absl::string_view name) {
  for (auto line = environment.rbegin(); line != environment.rend(); ++line) {
    if (line->size() > name.size() && absl::StartsWith(*line, name) &&
        (*line)[name.size()] == '=') {
      return line->substr(name.size() + 1);
    }
  }
  return std::nullopt;
}

void SetEnvironment(std::vector<std::string>* environment, absl::string_view name,
                    absl::string_view value) {
  const std::string prefix = absl::StrCat(name, "=");
  environment->erase(
      std::remove_if(environment->begin(), environment->end(),
                     [&](const std::string& line) { return absl::StartsWith(line, prefix); }),
      environment->end());
  environment->push_back(absl::StrCat(prefix, value));
}

std::vector<std::string> CurrentEnvironment() {
  std::vector<std::string> lines;
  for (char** line = environ; line != nullptr && *line != nullptr; ++line)
    lines.emplace_back(*line);
  return lines;
}

}  // namespace weft
