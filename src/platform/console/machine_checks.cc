// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "base/files.h"
#include "base/mount_namespace.h"
#include "base/posix_file.h"
#include "net/socket_address.h"
#include "platform/console/doctor.h"

namespace weft::platform {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int kLeastKernel[] = {5, 9};  // pidfds and close_range

class Machine {
 public:
  explicit Machine(std::string root) : root_(std::move(root)) {}

  std::vector<Finding> Check() {
    Kernel();
    Processor();
    Memory();
    HugePages();
    SharedMemory();
    Limits();
    Groups();
    Mounts();
    Sockets();
    Time();
    Graphics();
    Programs();
    return std::move(findings_);
  }

 private:
  void Add(const char* about, Verdict verdict, std::string found, std::string next = "") {
    findings_.push_back({about, verdict, std::move(found), std::move(next)});
  }

  // Empty when it cannot be read.
  std::string Read(const std::string& path) {
    return ReadFile(files_, root_ + path, 16 * kMiB).value_or("");
  }

  void Kernel() {
    const std::string release(absl::StripAsciiWhitespace(Read("/proc/sys/kernel/osrelease")));
    const std::vector<std::string> parts = absl::StrSplit(release, absl::ByAnyChar(".-+"));
    int major = 0;
    int minor = 0;
    if (parts.size() >= 2) {
      (void)absl::SimpleAtoi(parts[0], &major);
      (void)absl::SimpleAtoi(parts[1], &minor);
    }
    const bool is_good =
        major > kLeastKernel[0] || (major == kLeastKernel[0] && minor >= kLeastKernel[1]);
    const std::string found = absl::StrCat("Linux ", release.empty() ? "unknown" : release);
    if (is_good) return Add("kernel", Verdict::kGood, found);
    Add("kernel", Verdict::kBad,
        absl::StrCat(found, ", ", kLeastKernel[0], ".", kLeastKernel[1], " or later is needed"),
        "uname -r   (then update the system's kernel)");
  }

  void Processor() {
    const std::string text = Read("/proc/cpuinfo");
    size_t cores = 0;
    std::string flags;
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      if (absl::StartsWith(line, "processor")) ++cores;
      if (flags.empty() && (absl::StartsWith(line, "flags") || absl::StartsWith(line, "Features")))
        flags = absl::StrCat(line, " ");
    }
    const auto has = [&](absl::string_view flag) {
      return absl::StrContains(flags, absl::StrCat(" ", flag, " "));
    };
    std::vector<std::string> known;
    for (const char* flag : {"avx2", "fma", "avx512f", "amx_tile", "asimd", "sve"}) {
      if (has(flag)) known.push_back(flag);
    }
    const std::string found = absl::StrCat(
        cores, " processors with ",
        known.empty() ? "no vector instructions that are used" : absl::StrJoin(known, ", "));
    const bool is_fast = has("avx2") || has("asimd");
    Add("processor", is_fast ? Verdict::kGood : Verdict::kWorse, found,
        is_fast ? "" : "lscpu   (kernels are several times slower without AVX2)");
  }

  int64_t MemoryLine(absl::string_view name) {
    for (const absl::string_view line : absl::StrSplit(meminfo_, '\n')) {
      if (!absl::StartsWith(line, absl::StrCat(name, ":"))) continue;
      const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
      int64_t value = 0;
      if (words.size() >= 2 && absl::SimpleAtoi(words[1], &value)) return value;
    }
    return 0;
  }

  void Memory() {
    meminfo_ = Read("/proc/meminfo");
    const int64_t free_mib = MemoryLine("MemAvailable") / 1024;
    const std::string found =
        absl::StrCat(free_mib, " MiB of ", MemoryLine("MemTotal") / 1024, " MiB are available");
    if (free_mib >= 1024) return Add("memory", Verdict::kGood, found);
    Add("memory", Verdict::kWorse, found + ", small jobs want 1024",
        "ps -eo rss,args --sort=-rss | head");
  }

  void HugePages() {
    const int64_t reserved = MemoryLine("HugePages_Free");
    const std::string transparent = Read("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
    const bool may_collapse = !transparent.empty() && !absl::StrContains(transparent, "[never]") &&
                              !absl::StrContains(transparent, "[deny]");
    if (reserved > 0) return Add("huge pages", Verdict::kGood, absl::StrCat(reserved, " are free"));
    if (may_collapse)
      return Add("huge pages", Verdict::kGood, "transparent ones for shared memory");
    Add("huge pages", Verdict::kWorse,
        "none: the memory of tensors comes in pages of 4 KiB, which large models notice",
        "sudo sysctl vm.nr_hugepages=512   (1 GiB)");
  }

  void SharedMemory() {
    const int fd = static_cast<int>(::syscall(SYS_memfd_create, "weft-doctor", 0u));
    if (fd < 0) {
      Add("memfd", Verdict::kBad, "memfd_create is refused, and tensors have nowhere to be",
          "grep Seccomp /proc/self/status   (allow memfd_create in the container's profile)");
    } else {
      ::close(fd);
      Add("memfd", Verdict::kGood, "can be made");
    }
    struct statvfs space = {};
    const std::string path = root_ + "/dev/shm";
    if (::statvfs(path.c_str(), &space) != 0) {
      return Add("/dev/shm", Verdict::kWorse, "is not there; Python's data loaders use it",
                 "sudo mount -t tmpfs tmpfs /dev/shm");
    }
    const int64_t mib = static_cast<int64_t>(space.f_bavail * space.f_frsize) / kMiB;
    const std::string found = absl::StrCat(mib, " MiB are free");
    if (mib >= 256) return Add("/dev/shm", Verdict::kGood, found);
    Add("/dev/shm", Verdict::kWorse, found + ", programs that share data there want 256",
        "sudo mount -o remount,size=1g /dev/shm   (in a pod: an emptyDir with medium: Memory)");
  }

  void Limits() {
    rlimit limit = {};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    const std::string found =
        absl::StrCat("up to ", limit.rlim_cur, " (hard limit ", limit.rlim_max, ")");
    const bool is_good = limit.rlim_cur >= 4096;
    Add("open files", is_good ? Verdict::kGood : Verdict::kWorse, found,
        is_good ? "" : "ulimit -n 65536   (a task holds some descriptors for each of its peers)");
    ::getrlimit(RLIMIT_NPROC, &limit);
    const bool has_threads = limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= 4096;
    Add("threads", has_threads ? Verdict::kGood : Verdict::kWorse,
        limit.rlim_cur == RLIM_INFINITY ? "no limit" : absl::StrCat("up to ", limit.rlim_cur),
        has_threads ? "" : "ulimit -u 16384");
  }

  void Groups() {
    const std::string controllers(
        absl::StripAsciiWhitespace(Read("/sys/fs/cgroup/cgroup.controllers")));
    if (!controllers.empty())
      return Add("cgroups", Verdict::kGood, absl::StrCat("version 2: ", controllers));
    Add("cgroups", Verdict::kWorse, "version 2 is not mounted: quotas of processors are not seen",
        "mount | grep cgroup   (boot with systemd.unified_cgroup_hierarchy=1)");
  }

  // Of volumes, at the places where pods expect them.
  void Mounts() {
    const MountNamespace::Support& support = MountNamespace::Probe();
    switch (support.way) {
      case MountNamespace::Way::kPlain:
        return Add("volumes", Verdict::kGood, "are mounted in mount namespaces");
      case MountNamespace::Way::kUser:
        return Add("volumes", Verdict::kGood, "are mounted in mount namespaces of our user");
      case MountNamespace::Way::kNone:
        break;
    }
    const bool is_restricted =
        absl::StripAsciiWhitespace(
            Read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")) == "1";
    Add("volumes", Verdict::kWorse,
        absl::StrCat("cannot be mounted, pods that have any wait: ", support.why),
        is_restricted ? "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0"
                      : "sudo sysctl user.max_user_namespaces=10000   (in a container: "
                        "--cap-add SYS_ADMIN, or run weft outside of it)");
  }

  void Sockets() {
    const Status status = FindFreeLoopbackPorts(8).status();
    Add("ports", status.ok() ? Verdict::kGood : Verdict::kBad,
        status.ok() ? "free ones on 127.0.0.1" : std::string(status.message()),
        status.ok() ? "" : "ip addr show lo   (sudo ip link set lo up)");
  }

  void Time() {
    timex state = {};
    const int result = ::adjtimex(&state);
    const bool is_kept = result >= 0 && result != TIME_ERROR;
    Add("time", is_kept ? Verdict::kGood : Verdict::kWorse,
        is_kept ? "the clock is kept by a time service"
                : "nothing keeps the clock: leases and certificates depend on it",
        is_kept ? "" : "timedatectl set-ntp true");
  }

  void Graphics() {
    const StatusOr<std::vector<std::string>> cards =
        files_.List(root_ + "/proc/driver/nvidia/gpus");
    Add("GPUs", Verdict::kGood,
        cards.ok() ? absl::StrCat(cards->size(), " of NVIDIA")
                   : std::string("none that a driver shows"));
  }

  void Programs() {
    const char* const path = std::getenv("PATH");
    for (const absl::string_view folder : absl::StrSplit(path == nullptr ? "" : path, ':')) {
      if (::access(JoinPath(folder, "kubectl").c_str(), X_OK) == 0) {
        return Add("kubectl", Verdict::kGood, JoinPath(folder, "kubectl"));
      }
    }
    Add("kubectl", Verdict::kGood, "not in PATH; weft apply, get, logs and wait do its daily work");
  }

  const std::string root_;
  RealFileSystem files_;
  std::string meminfo_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> CheckMachine(const std::string& root) { return Machine(root).Check(); }

}  // namespace weft::platform
