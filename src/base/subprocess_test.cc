// SPDX-License-Identifier: Apache-2.0
#include "base/subprocess.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kLong = absl::Seconds(60);

SpawnOptions Shell(const std::string& script) {
  SpawnOptions options;
  options.argv = {"sh", "-c", script};
  options.environment = {"PATH=/usr/bin:/bin", "GREETING=hello"};
  options.capture_output = true;
  return options;
}

// Until the end of the stream.
std::string Drain(OwnedFd& fd) {
  std::string text;
  char buffer[4096];
  while (true) {
    pollfd poll_fd = {fd.get(), POLLIN, 0};
    if (::poll(&poll_fd, 1, 60000) <= 0) return text + "<timeout>";
    const ssize_t count = ::read(fd.get(), buffer, sizeof(buffer));
    if (count <= 0) return text;
    text.append(buffer, static_cast<size_t>(count));
  }
}

// A zombie is gone: orphans of the test are init's to reap, which may take a while.
bool Exists(pid_t pid) {
  RealFileSystem files;
  const StatusOr<std::string> stat = ReadFile(files, absl::StrCat("/proc/", pid, "/stat"));
  return stat.ok() && stat->substr(stat->rfind(')')).substr(0, 3) != ") Z";
}

bool GoneSoon(pid_t pid) {
  for (int i = 0; i < 1000 && Exists(pid); ++i) ::usleep(10000);
  return !Exists(pid);
}

TEST(SubprocessTest, ReadsWhatIsWrittenToIt) {
  SpawnOptions options = Shell("cat; echo the end");
  options.takes_input = true;
  auto process = Subprocess::Spawn(options);
  ASSERT_TRUE(process.ok()) << process.status();
  ASSERT_EQ(::write((*process)->stdin_pipe().get(), "hello\n", 6), 6);
  (*process)->stdin_pipe().Reset();
  EXPECT_EQ(Drain((*process)->stdout_pipe()), "hello\nthe end\n");
  EXPECT_TRUE((*process)->Wait(kLong).value().ok());
}

TEST(SubprocessTest, HasATerminal) {
  SpawnOptions options =
      Shell("test -t 0 && test -t 1 && test -t 2 && read line && echo got $line");
  options.has_terminal = true;
  auto process = Subprocess::Spawn(options);
  ASSERT_TRUE(process.ok()) << process.status();
  ASSERT_EQ(::write((*process)->stdin_pipe().get(), "word\n", 5), 5);
  // The terminal shows what is typed, and ends lines as terminals do.
  EXPECT_EQ(Drain((*process)->stdout_pipe()), "word\r\ngot word\r\n");
  EXPECT_TRUE((*process)->Wait(kLong).value().ok());
  EXPECT_FALSE((*process)->stderr_pipe().is_open());
}

TEST(SubprocessTest, IsKnownUntilItIsReaped) {
  auto process = Subprocess::Spawn(Shell("exit 0"));
  ASSERT_TRUE(process.ok()) << process.status();
  const pid_t pid = (*process)->pid();
  EXPECT_TRUE(IsSubprocess(pid));
  ASSERT_TRUE((*process)->Wait(kLong).ok());
  EXPECT_FALSE(IsSubprocess(pid));
  SpawnOptions none = Shell("");
  none.argv = {"/no/such/program"};
  EXPECT_FALSE(Subprocess::Spawn(none).ok());
}

TEST(SubprocessTest, RunsWithEnvironmentFolderAndPipes) {
  SpawnOptions options = Shell("echo $GREETING from $(pwd); echo oops >&2; exit 3");
  options.working_directory = "/";
  auto process = Subprocess::Spawn(options);
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_EQ(Drain((*process)->stdout_pipe()), "hello from /\n");
  EXPECT_EQ(Drain((*process)->stderr_pipe()), "oops\n");
  EXPECT_EQ((*process)->Wait(kLong).value(), (ExitState{3, 0}));
  EXPECT_EQ((*process)->TryWait(), (ExitState{3, 0}));
}

TEST(SubprocessTest, SaysWhatIsMissing) {
  SpawnOptions options = Shell("");
  options.argv = {"no-such-program"};
  Status status = Subprocess::Spawn(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'no-such-program' in PATH /usr/bin:/bin"));
  options.argv = {"./no-such-program"};
  EXPECT_EQ(Subprocess::Spawn(options).status().code(), absl::StatusCode::kNotFound);
  options.argv = {"/etc/passwd"};
  EXPECT_EQ(Subprocess::Spawn(options).status().code(), absl::StatusCode::kPermissionDenied);
  options = Shell("true");
  options.working_directory = "/no/such/folder";
  status = Subprocess::Spawn(options).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("/no/such/folder"));
  options.argv.clear();
  EXPECT_EQ(Subprocess::Spawn(options).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(SubprocessTest, ReportsSignals) {
  auto process = Subprocess::Spawn(Shell("kill -SEGV $$")).value();
  const ExitState exit = process->Wait(kLong).value();
  EXPECT_EQ(exit, (ExitState{0, SIGSEGV}));
  EXPECT_EQ(exit.ShellCode(), 139);
  EXPECT_EQ(DescribeExit(exit), "killed by SIGSEGV (11)");
  EXPECT_EQ(DescribeExit({3, 0}), "exit code 3");
}

TEST(SubprocessTest, WaitEndsAtItsDeadlineAndTheDestructorKills) {
  auto process = Subprocess::Spawn(Shell("trap '' TERM; echo up; sleep 1000")).value();
  const pid_t pid = process->pid();
  char up[3];
  pollfd poll_fd = {process->stdout_pipe().get(), POLLIN, 0};
  ASSERT_EQ(::poll(&poll_fd, 1, 60000), 1);
  ASSERT_EQ(::read(process->stdout_pipe().get(), up, 3), 3);
  process->Signal(SIGTERM);
  EXPECT_EQ(process->Wait(absl::Milliseconds(1)).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(process->TryWait(), std::nullopt);
  process.reset();
  EXPECT_FALSE(Exists(pid));
}

TEST(SubprocessTest, KillsWhatTheProcessLeavesInItsGroup) {
  auto process = Subprocess::Spawn(Shell("sleep 1000 >/dev/null 2>&1 & echo $!")).value();
  const std::string child = Drain(process->stdout_pipe());
  EXPECT_TRUE(process->Wait(kLong).value().ok());
  EXPECT_TRUE(GoneSoon(std::stoi(child)));
}

TEST(SubprocessTest, SignalsReachTheWholeGroup) {
  auto process =
      Subprocess::Spawn(Shell("sleep 1000 & trap 'echo bye; exit 4' TERM; echo up; wait")).value();
  char up[3];
  pollfd poll_fd = {process->stdout_pipe().get(), POLLIN, 0};
  ASSERT_EQ(::poll(&poll_fd, 1, 60000), 1);
  ASSERT_EQ(::read(process->stdout_pipe().get(), up, 3), 3);
  process->Signal(SIGTERM);
  EXPECT_EQ(process->Wait(kLong).value(), (ExitState{4, 0}));
  EXPECT_EQ(Drain(process->stdout_pipe()), "bye\n");
}

// A parent that is killed before it can tidy up leaves neither child nor grandchild.
TEST(SubprocessTest, TheGuardEndsWhatItsDeadOwnerLeft) {
  int fds[2];
  ASSERT_EQ(::pipe(fds), 0);
  const pid_t owner = ::fork();
  if (owner == 0) {
    auto guard = ProcessGuard::Start();
    if (!guard.ok()) ::_exit(1);
    SpawnOptions options = Shell("sleep 1000 & echo $!; wait");
    options.guard = guard->get();
    auto kept = Subprocess::Spawn(options);
    options.argv = {"true"};
    auto ended = Subprocess::Spawn(options);
    if (!kept.ok() || !ended.ok() || !(*ended)->Wait(kLong).ok()) ::_exit(1);
    char text[32] = {};
    pollfd poll_fd = {(*kept)->stdout_pipe().get(), POLLIN, 0};
    ::poll(&poll_fd, 1, 60000);
    if (::read((*kept)->stdout_pipe().get(), text, sizeof(text) - 1) <= 0) ::_exit(1);
    const pid_t pids[3] = {(*kept)->pid(), static_cast<pid_t>(std::stoi(text)), (*guard)->pid()};
    if (::write(fds[1], pids, sizeof(pids)) != sizeof(pids)) ::_exit(1);
    ::kill(::getpid(), SIGKILL);
  }
  pid_t pids[3] = {};
  ASSERT_EQ(::read(fds[0], pids, sizeof(pids)), static_cast<ssize_t>(sizeof(pids)));
  ::waitpid(owner, nullptr, 0);
  for (const pid_t pid : pids) EXPECT_TRUE(GoneSoon(pid)) << pid;
  ::close(fds[0]);
  ::close(fds[1]);
}

TEST(SubprocessTest, FindsAndKillsWhatLeftItsGroup) {
  int fds[2];
  ASSERT_EQ(::pipe(fds), 0);
  const pid_t owner = ::fork();
  if (owner == 0) {
    AdoptOrphans();
    auto process = Subprocess::Spawn(Shell("setsid sleep 1000 >/dev/null 2>&1 & echo $!"));
    if (!process.ok()) ::_exit(1);
    const pid_t runaway = std::stoi(Drain((*process)->stdout_pipe()));
    if (!(*process)->Wait(kLong).ok()) ::_exit(1);
    const int killed = KillDescendants();
    const pid_t result[2] = {runaway, killed};
    if (::write(fds[1], result, sizeof(result)) != sizeof(result)) ::_exit(1);
    ::_exit(0);
  }
  pid_t result[2] = {};
  ASSERT_EQ(::read(fds[0], result, sizeof(result)), static_cast<ssize_t>(sizeof(result)));
  EXPECT_TRUE(GoneSoon(result[0]));
  EXPECT_LE(result[1], 1);
  ::waitpid(owner, nullptr, 0);
  ::close(fds[0]);
  ::close(fds[1]);
}

TEST(SubprocessTest, SetsAndFindsEnvironment) {
  std::vector<std::string> environment = {"A=1", "AB=2", "A=3"};
  EXPECT_EQ(FindEnvironment(environment, "A"), "3");
  EXPECT_EQ(FindEnvironment(environment, "B"), std::nullopt);
  SetEnvironment(&environment, "A", "");
  EXPECT_EQ(FindEnvironment(environment, "A"), "");
  EXPECT_EQ(environment.size(), 2u);
  EXPECT_FALSE(CurrentEnvironment().empty());
}

}  // namespace
}  // namespace weft
