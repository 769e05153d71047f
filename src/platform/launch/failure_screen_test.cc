// SPDX-License-Identifier: Apache-2.0
#include "platform/launch/failure_screen.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft::platform {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

LocalJob MakeJob(int workers) {
  LocalJob job;
  job.name = "digits";
  for (int i = 0; i < workers; ++i) {
    LocalTask task;
    task.name = absl::StrCat("worker-", i);
    task.program = "python";
    job.tasks.push_back(task);
  }
  return job;
}

JobOutcome MakeFailure(int workers, ExitState exit) {
  JobOutcome outcome;
  outcome.kind = JobOutcome::Kind::kFailed;
  outcome.failed_task = 1;
  outcome.exit_code = exit.ShellCode();
  outcome.reason = DescribeExit(exit);
  outcome.elapsed = absl::Seconds(12);
  for (int i = 1; i <= 20; ++i) outcome.failed_lines.push_back(absl::StrCat("line ", i));
  outcome.tasks.resize(static_cast<size_t>(workers));
  for (TaskState& state : outcome.tasks) {
    state.phase = TaskPhase::kStopped;
    state.has_started = true;
  }
  outcome.tasks[1].phase = TaskPhase::kFailed;
  outcome.tasks[1].last_exit = exit;
  return outcome;
}

ScreenOptions Typed() {
  ScreenOptions options;
  options.command_line = {"weft", "run", "my job.yaml"};
  return options;
}

TEST(FailureScreenTest, ShowsTheErrorThatStacksWouldHide) {
  std::vector<std::string> lines = {"step 59"};
  for (int i = 0; i < 30; ++i) {
    lines.insert(lines.end(), {absl::StrCat("  File \"run.py\", line ", i, ", in f"), "    g()"});
  }
  lines.insert(lines.end(), {"ResourceExhaustedError: Graph execution error:", "", "Detected at:"});
  lines.insert(lines.end(), 20, "    File \"run.py\", line 7, in h");
  lines.insert(lines.end(), {"Cannot write 'x': No space left on device", "", "Original stack:"});
  lines.insert(lines.end(), 40, "  File \"run.py\", line 9, in h");
  JobOutcome outcome = MakeFailure(2, {1, 0});
  outcome.failed_lines = lines;
  const std::string screen = FailureScreen(MakeJob(2), outcome, Typed());
  EXPECT_THAT(screen,
              HasSubstr("  |     g()\n  | ResourceExhaustedError: Graph execution error:\n"));
  EXPECT_THAT(screen, HasSubstr("  | Cannot write 'x': No space left on device\n"));
  EXPECT_THAT(screen, HasSubstr("  |   ... 38 lines of the stack\n"));
  EXPECT_EQ(LastLinesToShow(lines, 100)[1], "  ... 56 lines of the stack");
  EXPECT_LE(std::count(screen.begin(), screen.end(), '\n'), 45);
}

TEST(FailureScreenTest, FoldsOnlyLongStacksAndKeepsTheLastLines) {
  const std::vector<std::string> plain = {"a", "  File \"x.py\", line 1", "    y", "  b",
                                          "Error: z"};
  EXPECT_EQ(LastLinesToShow(plain, 20), plain);
  EXPECT_EQ(LastLinesToShow(plain, 2), std::vector<std::string>({"  b", "Error: z"}));
  EXPECT_EQ(LastLinesToShow({}, 2), std::vector<std::string>());
}

TEST(FailureScreenTest, SaysWhoWhyTheLastLinesAndWhatToType) {
  const std::string screen = FailureScreen(MakeJob(3), MakeFailure(3, {3, 0}), Typed());
  EXPECT_THAT(screen, HasSubstr("\nworker-1 failed: exit code 3\n"));
  EXPECT_THAT(screen, HasSubstr("job 'digits', 12.0 s after its start; weft's exit code is 3\n"));
  EXPECT_THAT(screen, HasSubstr("  | line 1\n"));
  EXPECT_THAT(screen, HasSubstr("  | line 20\n"));
  EXPECT_THAT(screen, HasSubstr("  worker-0  ended by weft\n  worker-1  FAILED: exit code 3\n"));
  EXPECT_THAT(screen, HasSubstr("\n  weft run --log_dir logs 'my job.yaml'\n"));
}

TEST(FailureScreenTest, FitsOnAScreen) {
  JobOutcome outcome = MakeFailure(500, {3, 0});
  outcome.failed_lines[3] = std::string(10000, 'x');
  outcome.reason = std::string(10000, 'y');
  const std::string screen = FailureScreen(MakeJob(500), outcome, Typed());
  EXPECT_LE(std::count(screen.begin(), screen.end(), '\n'), 45);
  EXPECT_LT(screen.size(), 6000u);
  EXPECT_THAT(screen, HasSubstr("... and 488 more"));
}

TEST(FailureScreenTest, KnowsWhatUsuallyHelps) {
  ScreenOptions options = Typed();
  EXPECT_THAT(FailureScreen(MakeJob(2), MakeFailure(2, {0, 9}), options),
              HasSubstr("dmesg | tail -20\nits restartPolicy is Never; to have it started again:\n"
                        "  weft run --restart OnFailure 'my job.yaml'"));
  ScreenOptions never = Typed();
  never.command_line = {"weft", "run", "--restart", "Never", "--", "sh", "--restart", "x"};
  EXPECT_THAT(FailureScreen(MakeJob(2), MakeFailure(2, {0, 9}), never),
              HasSubstr("\n  weft run --restart OnFailure -- sh --restart x\n"));
  options.log_folder = "logs";
  EXPECT_THAT(FailureScreen(MakeJob(2), MakeFailure(2, {3, 0}), options),
              HasSubstr("less logs/worker-1.log"));
  JobOutcome missing = MakeFailure(2, {127, 0});
  missing.tasks[1].last_exit = std::nullopt;
  missing.failed_lines.clear();
  missing.reason = "could not be started: There is no program 'python' in PATH /bin";
  const std::string screen = FailureScreen(MakeJob(2), missing, options);
  EXPECT_THAT(screen, HasSubstr("It printed nothing."));
  EXPECT_THAT(screen, HasSubstr("type python"));
  missing.reason = "could not be started: Volume \"data\": hostPath '/data' is not there";
  EXPECT_THAT(FailureScreen(MakeJob(2), missing, options),
              HasSubstr("mend that, then run it again:\n  weft run 'my job.yaml'"));
  JobOutcome late = MakeFailure(2, {124, 0});
  late.failed_task = std::nullopt;
  EXPECT_THAT(FailureScreen(MakeJob(2), late, options), Not(HasSubstr("printed")));
}

TEST(FailureScreenTest, QuotesForAShell) {
  EXPECT_EQ(ShellQuote("a/b-c.d=1"), "a/b-c.d=1");
  EXPECT_EQ(ShellQuote(""), "''");
  EXPECT_EQ(ShellQuote("it's $x"), "'it'\\''s $x'");
}

}  // namespace
}  // namespace weft::platform
