// SPDX-License-Identifier: Apache-2.0
#include "supervisor/supervisor.h"

#include <cstdlib>
#include <string>

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace weft::supervisor {
namespace {

// Supervises `sh -c script` in a process with one thread, and gives its exit code.
int RunShell(const std::string& script, int signal_after_ms = 0, int signal = SIGTERM) {
  const pid_t pid = fork();
  if (pid == 0) {
    const StatusOr<int> code = Supervise({.program = "/bin/sh",
                                          .argv = {"sh", "-c", script},
                                          .data_bytes = uint64_t{1} << 20,
                                          .most_quick_deaths = 3});
    _exit(code.ok() ? *code : 99);
  }
  if (signal_after_ms > 0) {
    usleep(static_cast<useconds_t>(signal_after_ms) * 1000);
    kill(pid, signal);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

constexpr char kWords[] = "IFS=,; set -- $WEFT_KEPT_MEMORY; ";

TEST(Supervise, GivesTheCodeOfAChildThatEnds) { EXPECT_EQ(RunShell("exit 7"), 7); }

TEST(Supervise, AKilledChildFindsWhatTheOneBeforeItWrote) {
  EXPECT_EQ(RunShell(std::string(kWords) +
                     "if [ $3 = 1 ]; then printf kept 1<>/proc/self/fd/$1; kill -9 $$; fi; "
                     "[ \"$(head -c 4 /proc/self/fd/$1)\" = kept ] && exit 40; exit 41"),
            40);
}

TEST(Supervise, AChildThatCrashedLeavesNothing) {
  EXPECT_EQ(
      RunShell(std::string(kWords) +
               "if [ $3 = 1 ]; then printf kept 1<>/proc/self/fd/$1; kill -SEGV $$; fi; "
               "[ \"$(head -c 4 /proc/self/fd/$1 | tr -d '\\0')\" = kept ] && exit 40; exit 41"),
      41);
}

TEST(Supervise, GivesUpOnAChildThatDiesAtItsStart) {
  EXPECT_EQ(RunShell("kill -9 $$"), 128 + SIGKILL);
}

TEST(Supervise, PassesSignalsOnAndThenStartsNothing) {
  EXPECT_EQ(RunShell("trap 'exit 5' TERM; while :; do sleep 0.05; done", 300), 5);
}

TEST(Supervise, AChildDoesNotOutliveIt) {
  char path[] = "/tmp/weft-supervised-XXXXXX";
  const int file = mkstemp(path);
  ASSERT_GE(file, 0);
  EXPECT_EQ(
      RunShell("echo $$ >" + std::string(path) + "; while :; do sleep 0.05; done", 300, SIGKILL),
      1000 + SIGKILL);
  char text[32] = {};
  ASSERT_GT(pread(file, text, sizeof(text) - 1, 0), 0);
  const pid_t child = std::atoi(text);
  // Nothing runs under the number, even if nobody has asked yet how it ended.
  const auto runs = [child] {
    const std::string name = "/proc/" + std::to_string(child) + "/cmdline";
    const int words = open(name.c_str(), O_RDONLY);
    char first = 0;
    const bool has_words = words >= 0 && read(words, &first, 1) == 1;
    close(words);
    return has_words;
  };
  for (int i = 0; i < 200 && runs(); ++i) usleep(10'000);
  EXPECT_FALSE(runs()) << "process " << child;
  close(file);
  unlink(path);
}

TEST(TakeInheritance, RefusesWhatMakesNoSense) {
  EXPECT_FALSE(TakeInheritance()->has_value());
  for (const char* said : {"", "1", "1,2", "x,y,z", "900,901,1"}) {
    ::setenv(kInheritanceVariable, said, 1);
    EXPECT_FALSE(TakeInheritance().ok()) << said;
    EXPECT_FALSE(HasInheritance()) << "it is taken";
  }
}

}  // namespace
}  // namespace weft::supervisor
