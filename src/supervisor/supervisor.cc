// SPDX-License-Identifier: Apache-2.0
#include "supervisor/supervisor.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#include "base/files.h"
#include "base/log.h"
#include "base/subprocess.h"

namespace weft::supervisor {
namespace {

constexpr absl::Duration kQuick = absl::Seconds(1);
constexpr int kCannotRun = 127;

sigset_t Heeded() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) ::sigaddset(&signals, signal);
  return signals;
}

class Parent {
 public:
  explicit Parent(const SuperviseOptions& options) : options_(options) {}

  StatusOr<int> Run() {
    const sigset_t heeded = Heeded();
    ::pthread_sigmask(SIG_BLOCK, &heeded, &before_);
    WEFT_ASSIGN_OR_RETURN(files_, MakeKeptFiles(options_.data_bytes));
    int quick_deaths = 0;
    while (true) {
      const absl::Time began = absl::Now();
      WEFT_RETURN_IF_ERROR(Start());
      const ExitState exit = AwaitEnd(heeded);
      if (exit.signal == 0 || told_to_end_) return exit.ShellCode();
      quick_deaths = absl::Now() - began < kQuick ? quick_deaths + 1 : 0;
      if (quick_deaths >= options_.most_quick_deaths) {
        WEFT_LOG(ERROR) << "The server ended " << quick_deaths
                        << " times within a second of its start, the last time "
                        << DescribeExit(exit) << ": it is not started again";
        return exit.ShellCode();
      }
      const bool is_trusted = exit.signal == SIGKILL;
      WEFT_LOG(WARNING) << "The server was " << DescribeExit(exit) << ": it is started again "
                        << (is_trusted ? "with its variables" : "without its variables");
      if (!is_trusted) {
        WEFT_ASSIGN_OR_RETURN(files_, MakeKeptFiles(options_.data_bytes));
      }
    }
  }

 private:
  Status Start() {
    ++starts_;
    const std::string inheritance =
        absl::StrCat(files_.data.get(), ",", files_.control.get(), ",", starts_);
    // All that allocates happens before the fork.
    ::setenv(kInheritanceVariable, inheritance.c_str(), 1);
    std::vector<char*> argv;
    for (const std::string& word : options_.argv) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    const pid_t self = ::getpid();
    pid_ = ::fork();
    if (pid_ < 0) return ErrnoStatus(errno, "start", options_.program);
    if (pid_ > 0) return absl::OkStatus();
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != self) ::_exit(kCannotRun);  // it died before the line above
    ::setpgid(0, 0);  // what a terminal sends comes once, through its parent
    ::fcntl(files_.data.get(), F_SETFD, 0);
    ::fcntl(files_.control.get(), F_SETFD, 0);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    ::execv(options_.program.c_str(), argv.data());
    ::_exit(kCannotRun);
  }

  ExitState AwaitEnd(const sigset_t& heeded) {
    while (true) {
      int status = 0;
      const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
      if (ended == pid_) {
        if (WIFSIGNALED(status)) return {.code = 0, .signal = WTERMSIG(status)};
        return {.code = WEXITSTATUS(status), .signal = 0};
      }
      int received = 0;
      if (::sigwait(&heeded, &received) != 0 || received == SIGCHLD) continue;
      told_to_end_ = true;
      ::kill(pid_, received);
    }
  }

  const SuperviseOptions& options_;
  sigset_t before_ = {};
  KeptFiles files_;
  pid_t pid_ = -1;
  int64_t starts_ = 0;
  bool told_to_end_ = false;
};

}  // namespace

StatusOr<int> Supervise(const SuperviseOptions& options) { return Parent(options).Run(); }

StatusOr<int> SuperviseThisProgram(uint64_t data_bytes) {
  RealFileSystem files;
  WEFT_ASSIGN_OR_RETURN(const std::string words, ReadFile(files, "/proc/self/cmdline", 1 << 20));
  SuperviseOptions options{.program = "/proc/self/exe", .argv = {}, .data_bytes = data_bytes};
  // Each word ends with a zero byte.
  options.argv = absl::StrSplit(absl::StripSuffix(words, absl::string_view("\0", 1)), '\0');
  return Supervise(options);
}

bool IsAskedFor() {
  const char* const said = std::getenv("WEFT_SUPERVISED");
  return said != nullptr && *said != '\0' && absl::string_view(said) != "0";
}

bool HasInheritance() { return std::getenv(kInheritanceVariable) != nullptr; }

StatusOr<std::optional<Inheritance>> TakeInheritance() {
  const char* const said = std::getenv(kInheritanceVariable);
  if (said == nullptr) return std::optional<Inheritance>();
  const std::string text = said;
  ::unsetenv(kInheritanceVariable);
  const std::vector<std::string> words = absl::StrSplit(text, ',');
  int data = -1;
  int control = -1;
  Inheritance inheritance;
  if (words.size() != 3 || !absl::SimpleAtoi(words[0], &data) ||
      !absl::SimpleAtoi(words[1], &control) || !absl::SimpleAtoi(words[2], &inheritance.starts) ||
      ::fcntl(data, F_SETFD, FD_CLOEXEC) != 0 || ::fcntl(control, F_SETFD, FD_CLOEXEC) != 0) {
    return InvalidArgument(kInheritanceVariable, " is '", text,
                           "', expected two open descriptors and a number");
  }
  inheritance.files = {.data = OwnedFd(data), .control = OwnedFd(control)};
  return std::optional<Inheritance>(std::move(inheritance));
}

}  // namespace weft::supervisor
