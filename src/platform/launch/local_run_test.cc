// SPDX-License-Identifier: Apache-2.0
// With real processes, each test in a few tens of milliseconds.
#include "platform/launch/local_run.h"

#include <filesystem>

#include <signal.h>
#include <stdlib.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft::platform {
namespace {

using ::testing::HasSubstr;

LocalTask ShellTask(const std::string& name, ReplicaType type, const std::string& script) {
  LocalTask task;
  task.name = name;
  task.type = type;
  task.argv = {"sh", "-c", script};
  task.environment = {"PATH=/usr/bin:/bin"};
  task.restart_policy = RestartPolicy::kExitCode;
  return task;
}

class LocalRunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "weft-run-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    options_.output.log_folder = JoinPath(folder_, "logs");
    options_.run.first_backoff = absl::Milliseconds(1);
    options_.run.linger = absl::ZeroDuration();
    options_.screen.command_line = {"weft", "run", "x"};
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  int RunJob(const LocalJob& job) { return RunLocally(job, options_).value(); }
  std::string LogOf(const std::string& name) {
    RealFileSystem files;
    return ReadFile(files, JoinPath(options_.output.log_folder, name + ".log")).value();
  }

  std::string folder_;
  LocalRunOptions options_;
};

TEST_F(LocalRunTest, StartsAKilledWorkerAgainAndEndsTheServer) {
  LocalJob job;
  job.name = "j";
  const std::string marker = JoinPath(folder_, "marker");
  job.tasks = {ShellTask("worker-0", ReplicaType::kWorker,
                         absl::StrCat("if [ -e ", marker, " ]; then echo again; else touch ",
                                      marker, "; kill -9 $$; fi")),
               ShellTask("ps-0", ReplicaType::kPs,
                         "trap 'echo bye; exit 0' TERM; while :; do sleep 0.01; done")};
  job.deciding_tasks = {0};
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  EXPECT_EQ(RunJob(job), 0);
  const std::string err = testing::internal::GetCapturedStderr();
  EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("[worker-0] again\n"));
  EXPECT_THAT(err, HasSubstr("[weft] worker-0 ended: killed by SIGKILL (9); starting it again"));
  EXPECT_THAT(err, HasSubstr("[weft] job 'j' succeeded after"));
  EXPECT_EQ(LogOf("worker-0"), "again\n");
}

TEST_F(LocalRunTest, ReportsTheFirstFailureAndItsLastLines) {
  LocalJob job;
  job.name = "j";
  job.tasks = {ShellTask("worker-0", ReplicaType::kWorker, "sleep 1000"),
               ShellTask("worker-1", ReplicaType::kWorker,
                         "for i in $(seq 30); do echo line $i; done; echo bad news >&2; exit 7")};
  job.deciding_tasks = {0};
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  EXPECT_EQ(RunJob(job), 7);
  testing::internal::GetCapturedStdout();
  const std::string err = testing::internal::GetCapturedStderr();
  EXPECT_THAT(err, HasSubstr("\nworker-1 failed: exit code 7\n"));
  EXPECT_THAT(err, HasSubstr("  | bad news\n"));
  EXPECT_THAT(err, HasSubstr("  worker-0  ended by weft\n"));
}

TEST_F(LocalRunTest, KillsWhoIgnoresTermAndWhoLeftTheGroup) {
  LocalJob job;
  job.name = "j";
  const std::string pid_file = JoinPath(folder_, "pid");
  job.tasks = {ShellTask("worker-0", ReplicaType::kWorker,
                         absl::StrCat("while [ ! -s ", pid_file, " ]; do sleep 0.01; done")),
               ShellTask("ps-0", ReplicaType::kPs,
                         absl::StrCat("trap '' TERM; setsid sleep 1000 & echo $! > ", pid_file,
                                      "; sleep 1000"))};
  job.deciding_tasks = {0};
  options_.run.grace = absl::Milliseconds(50);
  EXPECT_EQ(RunJob(job), 0);
  RealFileSystem files;
  const int runaway = std::stoi(ReadFile(files, pid_file).value());
  EXPECT_EQ(::kill(runaway, 0), -1);
}

TEST_F(LocalRunTest, AMissingProgramIsSaidClearly) {
  LocalJob job;
  job.name = "j";
  job.tasks = {ShellTask("worker-0", ReplicaType::kWorker, "")};
  job.tasks[0].argv = {"no-such-program"};
  job.deciding_tasks = {0};
  testing::internal::CaptureStderr();
  EXPECT_EQ(RunJob(job), 127);
  EXPECT_THAT(
      testing::internal::GetCapturedStderr(),
      HasSubstr(
          "worker-0 failed: could not be started: There is no program 'no-such-program' in PATH"));
}

TEST_F(LocalRunTest, ALogFolderThatCannotBeMadeIsAnError) {
  LocalJob job;
  job.tasks = {ShellTask("worker-0", ReplicaType::kWorker, "true")};
  options_.output.log_folder = "/proc/nowhere";
  EXPECT_FALSE(RunLocally(job, options_).ok());
}

}  // namespace
}  // namespace weft::platform
