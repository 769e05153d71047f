// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/control_group.h"

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"

#include "base/subprocess.h"

namespace weft::platform {
namespace {

constexpr uint64_t kMostBytes = 1 << 20;
constexpr int64_t kPeriodMicroseconds = 100000;
constexpr int kRemovalTries = 50;

std::string Read(const std::string& path) {
  RealFileSystem files;
  return ReadFile(files, path, kMostBytes).value_or("");
}

// In one write, as the kernel wants it; into a file that is there.
Status Write(const std::string& path, absl::string_view text) {
  const OwnedFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.is_open()) return ErrnoStatus(errno, "open", path);
  if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return ErrnoStatus(errno, "write", path);
  return absl::OkStatus();
}

bool Lists(const std::string& words, absl::string_view wanted) {
  for (const absl::string_view word : absl::StrSplit(words, absl::ByAnyChar(" \n"))) {
    if (word == wanted) return true;
  }
  return false;
}

// What was killed leaves its group a moment later.
void RemoveFolder(const std::string& folder) {
  for (int i = 0; i < kRemovalTries && ::rmdir(folder.c_str()) != 0 && errno == EBUSY; ++i)
    absl::SleepFor(absl::Milliseconds(2));
}

// What one that was killed has left: empty folders. Others hold processes and stay.
void RemoveLeftovers(const std::string& parent) {
  RealFileSystem files;
  for (const std::string& name : files.List(parent).value_or(std::vector<std::string>())) {
    absl::string_view rest = name;
    pid_t pid = 0;
    if (!absl::ConsumePrefix(&rest, "weft-") || !absl::SimpleAtoi(rest, &pid)) continue;
    if (::kill(pid, 0) == 0 || errno != ESRCH) continue;
    const std::string folder = JoinPath(parent, name);
    for (const std::string& run : files.List(folder).value_or(std::vector<std::string>()))
      ::rmdir(JoinPath(folder, run).c_str());
    ::rmdir(folder.c_str());
  }
}

// Whether processes of ours may go there: rights are one thing, what the kernel makes of them
// another.
Status TryToEnter(ControlGroups* groups) {
  WEFT_ASSIGN_OR_RETURN(const auto group, groups->Make("trial", 0, 0));
  SpawnOptions options;
  options.argv = {"true"};
  options.environment = CurrentEnvironment();
  options.control_group = group->members();
  WEFT_ASSIGN_OR_RETURN(const auto process, Subprocess::Spawn(options));
  return process->Wait(absl::Seconds(10)).status();
}

}  // namespace

ControlGroup::~ControlGroup() {
  // Older kernels have no such file; what is left is then killed by who spawned it.
  Write(folder_ + "/cgroup.kill", "1").IgnoreError();
  RemoveFolder(folder_);
}

bool ControlGroup::HasRunOut() const {
  for (const absl::string_view line : absl::StrSplit(Read(folder_ + "/memory.events"), '\n')) {
    int64_t count = 0;
    absl::string_view rest = line;
    if (absl::ConsumePrefix(&rest, "oom_kill ") && absl::SimpleAtoi(rest, &count)) return count > 0;
  }
  return false;
}

StatusOr<std::unique_ptr<ControlGroups>> ControlGroups::Open() {
  std::string root;
  for (const absl::string_view line : absl::StrSplit(Read("/proc/self/mounts"), '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    if (words.size() > 2 && words[2] == "cgroup2" && root.empty()) root = std::string(words[1]);
  }
  if (root.empty()) return Unavailable("No control groups of the second version are mounted");
  for (const absl::string_view line : absl::StrSplit(Read("/proc/self/cgroup"), '\n')) {
    absl::string_view own = line;
    if (absl::ConsumePrefix(&own, "0::")) return Open(root, std::string(own));
  }
  return Unavailable("This process is in no control group of the second version");
}

StatusOr<std::unique_ptr<ControlGroups>> ControlGroups::Open(const std::string& root,
                                                             const std::string& own) {
  Status why = Unavailable("The memory controller is handed down to no group below ", root,
                           " that this process is in");
  for (std::string at = own;; at = ParentPath(at)) {
    const std::string parent = absl::StrCat(root, at == "/" ? "" : at);
    const std::string given = Read(parent + "/cgroup.subtree_control");
    const std::string folder = absl::StrCat(parent, "/weft-", ::getpid());
    if (Lists(given, "memory")) {
      RemoveLeftovers(parent);
      if (::mkdir(folder.c_str(), 0755) == 0) {
        std::unique_ptr<ControlGroups> groups(new ControlGroups(folder, Lists(given, "cpu")));
        why = Write(folder + "/cgroup.subtree_control",
                    groups->has_processors_ ? "+memory +cpu" : "+memory");
        if (why.ok()) why = TryToEnter(groups.get());
        if (why.ok()) return groups;
      } else {
        why = ErrnoStatus(errno, "make", folder);
      }
    }
    if (at.empty() || at == "/" || at == ".") return why;
  }
}

ControlGroups::~ControlGroups() { RemoveFolder(folder_); }

StatusOr<std::unique_ptr<ControlGroup>> ControlGroups::Make(const std::string& name,
                                                            int64_t memory_bytes,
                                                            int64_t processor_thousandths) {
  const std::string folder = JoinPath(folder_, name);
  if (::mkdir(folder.c_str(), 0755) != 0) return ErrnoStatus(errno, "make", folder);
  const auto group = [&](OwnedFd members) {
    return std::make_unique<ControlGroup>(folder, std::move(members));
  };
  OwnedFd members(::open((folder + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
  const int error = errno;
  auto made = group(std::move(members));  // from here on it is removed
  if (made->members() < 0) return ErrnoStatus(error, "open", folder + "/cgroup.procs");
  if (memory_bytes > 0) {
    WEFT_RETURN_IF_ERROR(Write(folder + "/memory.max", absl::StrCat(memory_bytes)));
    // Not there without swap, or on old kernels: then what is killed may be one of several.
    Write(folder + "/memory.swap.max", "0").IgnoreError();
    Write(folder + "/memory.oom.group", "1").IgnoreError();
  }
  if (processor_thousandths > 0 && has_processors_) {
    WEFT_RETURN_IF_ERROR(Write(
        folder + "/cpu.max",
        absl::StrCat(std::max<int64_t>(1000, processor_thousandths * kPeriodMicroseconds / 1000),
                     " ", kPeriodMicroseconds)));
  }
  return made;
}

}  // namespace weft::platform
