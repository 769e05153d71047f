// SPDX-License-Identifier: Apache-2.0
#include "base/mount_namespace.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "base/pipe.h"

namespace weft {
namespace {

using Kind = MountStep::Kind;

// Steps before the first.
constexpr int kEnter = -1;
constexpr int kMapUser = -2;

struct Report {
  int step = 0;
  int error = 0;
};

// Made before the fork, since afterwards no memory may be had.
struct ChildPlan {
  const std::vector<MountStep>* steps = nullptr;
  std::vector<std::string> options;  // of each step
  MountNamespace::Way way = MountNamespace::Way::kPlain;
  const MountNamespace* base = nullptr;
  std::string user_map;
  std::string group_map;
  pid_t parent = 0;
  int report_fd = -1;
  int release_fd = -1;
};

bool WriteText(const char* path, const char* text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const auto size = static_cast<ssize_t>(std::strlen(text));
  const bool good = ::write(fd, text, static_cast<size_t>(size)) == size;
  const int error = errno;
  ::close(fd);
  errno = error;
  return good;
}

bool Seal(const char* path) {
  mount_attr wanted = {};
  wanted.attr_set = MOUNT_ATTR_RDONLY;
  if (::syscall(SYS_mount_setattr, AT_FDCWD, path, AT_RECURSIVE, &wanted, sizeof(wanted)) == 0)
    return true;
  if (errno != ENOSYS) return false;
  // Linux before 5.12: what is there must be said again, and only the top is sealed.
  struct statfs held = {};
  if (::statfs(path, &held) != 0) return false;
  const auto flags = static_cast<unsigned long>(held.f_flags) &
                     (MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME | MS_NODIRATIME | MS_RELATIME);
  return ::mount(nullptr, path, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | flags, nullptr) == 0;
}

// The old root comes to lie on the new one, from where it is taken away.
bool ChangeRoot(const char* path) {
  return ::chdir(path) == 0 && ::syscall(SYS_pivot_root, ".", ".") == 0 &&
         ::umount2(".", MNT_DETACH) == 0 && ::chdir("/") == 0 &&
         ::mount(nullptr, "/", nullptr, MS_PRIVATE, nullptr) == 0;
}

bool Take(const MountStep& step, const std::string& options) {
  const char* const target = step.target.c_str();
  const char* const source = step.source.c_str();
  switch (step.kind) {
    case Kind::kFolder:
      return (::mkdir(target, step.mode) == 0 && ::chmod(target, step.mode) == 0) ||
             errno == EEXIST;
    case Kind::kFile: {
      const int fd = ::open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, step.mode);
      if (fd >= 0) ::close(fd);
      return fd >= 0 || errno == EEXIST;
    }
    case Kind::kLink:
      return ::symlink(source, target) == 0;
    case Kind::kBind:
      return ::mount(source, target, nullptr, MS_BIND | MS_REC, nullptr) == 0;
    case Kind::kMemory:
      return ::mount("weft", target, "tmpfs", MS_NOSUID | MS_NODEV, options.c_str()) == 0;
    case Kind::kSeal:
      return Seal(target);
    case Kind::kHide:
      return ::mount(nullptr, target, nullptr, MS_UNBINDABLE, nullptr) == 0;
    case Kind::kRoot:
      return ChangeRoot(target);
  }
  return false;
}

bool Enter(const ChildPlan& plan, int* step) {
  *step = kEnter;
  if (plan.base != nullptr) return plan.base->Enter() && ::unshare(CLONE_NEWNS) == 0;
  const bool has_user = plan.way == MountNamespace::Way::kUser;
  if (::unshare(has_user ? CLONE_NEWUSER | CLONE_NEWNS : CLONE_NEWNS) != 0) return false;
  if (has_user) {
    *step = kMapUser;
    if (!WriteText("/proc/self/setgroups", "deny") ||
        !WriteText("/proc/self/uid_map", plan.user_map.c_str()) ||
        !WriteText("/proc/self/gid_map", plan.group_map.c_str()))
      return false;
  }
  *step = kEnter;
  // What is mounted outside later on is seen here, but nothing the other way round.
  return ::mount(nullptr, "/", nullptr, MS_SLAVE | MS_REC, nullptr) == 0;
}

// Only calls that are safe after a signal: other threads may hold any lock.
[[noreturn]] void RunChild(const ChildPlan& plan) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != plan.parent) ::_exit(1);
  ::umask(0);
  Report report;
  bool good = Enter(plan, &report.step);
  if (good) report.step = 0;
  for (size_t i = 0; good && i < plan.steps->size(); ++i) {
    report.step = static_cast<int>(i);
    good = Take((*plan.steps)[i], plan.options[i]);
  }
  report.error = good ? 0 : errno;
  [[maybe_unused]] const ssize_t written = ::write(plan.report_fd, &report, sizeof(report));
  char released = 0;
  [[maybe_unused]] const ssize_t got = ::read(plan.release_fd, &released, 1);
  ::_exit(0);
}

Status Describe(const std::vector<MountStep>& steps, const Report& report) {
  if (report.step == kEnter) return ErrnoStatus(report.error, "make", "a mount namespace");
  if (report.step == kMapUser) return ErrnoStatus(report.error, "name", "the user of a namespace");
  const MountStep& step = steps[static_cast<size_t>(report.step)];
  switch (step.kind) {
    case Kind::kFolder:
    case Kind::kFile:
    case Kind::kLink:
      return ErrnoStatus(report.error, "make", step.target);
    case Kind::kBind:
      return ErrnoStatus(report.error, "mount", absl::StrCat(step.source, "' at '", step.target));
    case Kind::kMemory:
      return ErrnoStatus(report.error, "mount memory at", step.target);
    case Kind::kSeal:
      return ErrnoStatus(report.error, "keep writers from", step.target);
    case Kind::kHide:
      return ErrnoStatus(report.error, "hide", step.target);
    case Kind::kRoot:
      return ErrnoStatus(report.error, "make a root of", step.target);
  }
  return absl::OkStatus();
}

StatusOr<OwnedFd> OpenNamespace(pid_t pid, const char* kind) {
  const std::string path = absl::StrCat("/proc/", pid, "/ns/", kind);
  OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.is_open()) return ErrnoStatus(errno, "open", path);
  return fd;
}

MountNamespace::Support TryWays() {
  const Status plain = MountNamespace::Make({}, MountNamespace::Way::kPlain).status();
  if (plain.ok()) return {MountNamespace::Way::kPlain, ""};
  // To mount is what it is for: some systems hand out user namespaces in which nothing may be done.
  const std::vector<MountStep> steps = {{Kind::kMemory, "/"}};
  const Status user = MountNamespace::Make(steps, MountNamespace::Way::kUser).status();
  if (user.ok()) return {MountNamespace::Way::kUser, std::string(plain.message())};
  return {MountNamespace::Way::kNone,
          absl::StrCat(plain.message(), "; as a user: ", user.message())};
}

}  // namespace

const MountNamespace::Support& MountNamespace::Probe() {
  static const auto* const support = new Support(TryWays());
  return *support;
}

bool MountNamespace::Enter() const {
  return (!user_.is_open() || ::setns(user_.get(), CLONE_NEWUSER) == 0) &&
         ::setns(mounts_.get(), CLONE_NEWNS) == 0;
}

StatusOr<std::shared_ptr<const MountNamespace>> MountNamespace::Make(
    const std::vector<MountStep>& steps, Way way, const MountNamespace* base) {
  if (way == Way::kNone) return FailedPrecondition("There are no mount namespaces on this machine");
  WEFT_ASSIGN_OR_RETURN(Pipe report_pipe, MakePipe());
  WEFT_ASSIGN_OR_RETURN(Pipe release_pipe, MakePipe());
  ChildPlan plan;
  plan.steps = &steps;
  for (const MountStep& step : steps) {
    plan.options.push_back(absl::StrFormat("mode=%o", step.mode));
    if (step.size_bytes > 0) absl::StrAppend(&plan.options.back(), ",size=", step.size_bytes);
  }
  plan.way = way;
  plan.base = base;
  plan.user_map = absl::StrCat(::geteuid(), " ", ::geteuid(), " 1");
  plan.group_map = absl::StrCat(::getegid(), " ", ::getegid(), " 1");
  plan.parent = ::getpid();
  plan.report_fd = report_pipe.write.get();
  plan.release_fd = release_pipe.read.get();
  const pid_t pid = ::fork();
  if (pid < 0) return ErrnoStatus(errno, "start", "a process for a mount namespace");
  if (pid == 0) {
    // Else it would wait for itself.
    ::close(release_pipe.write.get());
    RunChild(plan);
  }
  report_pipe.write.Reset();
  Report report;
  ssize_t got = 0;
  do {
    got = ::read(report_pipe.read.get(), &report, sizeof(report));
  } while (got < 0 && errno == EINTR);
  Status status = got != sizeof(report) ? Internal("A mount namespace died while it was made")
                  : report.error != 0   ? Describe(steps, report)
                                        : absl::OkStatus();
  OwnedFd user;
  OwnedFd mounts;
  const bool has_user = base != nullptr ? base->has_user() : way == Way::kUser;
  if (status.ok() && has_user) {
    StatusOr<OwnedFd> fd = OpenNamespace(pid, "user");
    status = fd.status();
    if (fd.ok()) user = *std::move(fd);
  }
  if (status.ok()) {
    StatusOr<OwnedFd> fd = OpenNamespace(pid, "mnt");
    status = fd.status();
    if (fd.ok()) mounts = *std::move(fd);
  }
  release_pipe.write.Reset();
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  WEFT_RETURN_IF_ERROR(status);
  return std::shared_ptr<const MountNamespace>(
      new MountNamespace(std::move(user), std::move(mounts)));
}

}  // namespace weft
