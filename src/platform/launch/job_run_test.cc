// SPDX-License-Identifier: Apache-2.0
#include "platform/launch/job_run.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "platform/launch/fake_task_processes.h"

namespace weft::platform {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr ExitState kOk = {0, 0};
constexpr ExitState kKilled = {0, SIGKILL};

LocalJob MakeJob(RestartPolicy policy, bool chief = false) {
  LocalJob job;
  job.name = "digits";
  const auto add = [&](ReplicaType type, int64_t index) {
    LocalTask task;
    task.type = type;
    task.index = index;
    task.name = absl::StrCat(ReplicaTypeName(type), "-", index);
    task.restart_policy = policy;
    job.tasks.push_back(task);
  };
  if (chief) add(ReplicaType::kChief, 0);
  add(ReplicaType::kWorker, 0);
  add(ReplicaType::kWorker, 1);
  add(ReplicaType::kPs, 0);
  job.deciding_tasks = {0};
  return job;
}

// One job on a fake clock.
class FakeRun {
 public:
  explicit FakeRun(LocalJob job) : job_(std::move(job)), processes(&job_, &clock) {}
  JobOutcome operator()() {
    JobRun run(job_, options, &clock, &processes,
               [this](const std::string& line) { said.push_back(line); });
    return run.Run();
  }

 private:
  LocalJob job_;

 public:
  FakeClock clock;
  FakeTaskProcesses processes;
  JobRunOptions options;
  std::vector<std::string> said;
};

TEST(JobRunTest, WorkerZeroDecidesAndTheRestIsEndedGracefully) {
  FakeRun run(MakeJob(RestartPolicy::kNever));
  run.processes.ExitsAfter("worker-0", absl::Seconds(10), kOk);
  run.processes.ExitsAfter("worker-1", absl::Seconds(12), kOk);
  const JobOutcome outcome = run();
  EXPECT_EQ(outcome.kind, JobOutcome::Kind::kSucceeded);
  EXPECT_EQ(outcome.exit_code, 0);
  // The other worker had its time, then the server went at once.
  EXPECT_EQ(outcome.elapsed, absl::Seconds(12));
  EXPECT_THAT(run.processes.signals(), ElementsAre("ps-0 SIGTERM"));
  EXPECT_EQ(outcome.tasks[1].phase, TaskPhase::kSucceeded);
  EXPECT_EQ(outcome.tasks[2].phase, TaskPhase::kStopped);
}

TEST(JobRunTest, AWorkerThatDoesNotComeToAnEndIsTerminated) {
  FakeRun run(MakeJob(RestartPolicy::kNever));
  run.processes.ExitsAfter("worker-0", absl::Seconds(10), kOk);
  const JobOutcome outcome = run();
  EXPECT_EQ(outcome.elapsed, absl::Seconds(15));
  EXPECT_THAT(run.processes.signals(), ElementsAre("worker-1 SIGTERM", "ps-0 SIGTERM"));
}

TEST(JobRunTest, TheChiefDecidesWhenThereIsOne) {
  FakeRun run(MakeJob(RestartPolicy::kNever, /*chief=*/true));
  run.processes.ExitsAfter("worker-0", absl::Seconds(1), kOk);
  run.processes.ExitsAfter("worker-1", absl::Seconds(1), kOk);
  run.processes.ExitsAfter("chief-0", absl::Seconds(30), kOk);
  const JobOutcome outcome = run();
  EXPECT_EQ(outcome.kind, JobOutcome::Kind::kSucceeded);
  EXPECT_EQ(outcome.elapsed, absl::Seconds(30));
}

TEST(JobRunTest, AllWorkersMustSucceedWhenAllDecide) {
  LocalJob job = MakeJob(RestartPolicy::kNever);
  job.deciding_tasks = {0, 1};
  FakeRun run(job);
  run.processes.ExitsAfter("worker-0", absl::Seconds(1), kOk);
  run.processes.ExitsAfter("worker-1", absl::Seconds(20), kOk);
  EXPECT_EQ(run().elapsed, absl::Seconds(20));
}

TEST(JobRunTest, AKilledWorkerIsStartedAgain) {
  for (const RestartPolicy policy :
       {RestartPolicy::kAlways, RestartPolicy::kOnFailure, RestartPolicy::kExitCode}) {
    FakeRun run(MakeJob(policy));
    run.processes.ExitsAfter("worker-0", absl::Seconds(100), kOk);
    run.processes.ExitsAfter("worker-1", absl::Seconds(5), kKilled);
    run.processes.LivesOn("worker-1");
    run.processes.ExitsAfter("ps-0", absl::Seconds(7), kKilled);
    run.processes.LivesOn("ps-0");
    const JobOutcome outcome = run();
    EXPECT_EQ(outcome.kind, JobOutcome::Kind::kSucceeded);
    EXPECT_EQ(run.processes.starts("worker-1"), 2);
    EXPECT_EQ(run.processes.starts("ps-0"), 2);
    EXPECT_EQ(outcome.tasks[1].restarts, 1);
    EXPECT_THAT(
        run.said,
        Contains("worker-1 ended: killed by SIGKILL (9); starting it again in 500ms (restart 1)"));
  }
}

TEST(JobRunTest, NeverFailsTheJobWithTheExitCodeOfTheTask) {
  FakeRun run(MakeJob(RestartPolicy::kNever));
  run.processes.ExitsAfter("worker-1", absl::Seconds(5), kKilled);
  const JobOutcome outcome = run();
  EXPECT_EQ(outcome.kind, JobOutcome::Kind::kFailed);
  EXPECT_EQ(outcome.exit_code, 137);
  EXPECT_EQ(outcome.failed_task, 1u);
  EXPECT_EQ(outcome.reason, "killed by SIGKILL (9)");
  EXPECT_THAT(outcome.failed_lines, ElementsAre("last line of worker-1"));
  EXPECT_THAT(run.processes.signals(), ElementsAre("worker-0 SIGTERM", "ps-0 SIGTERM"));
}

TEST(JobRunTest, ExitCodeRetriesWhatTheVersionOfTheApiRetries) {
  struct Case {
    TfJobVersion version;
    ExitState exit;
    bool retried;
  };
  for (const Case& c :
       {Case{TfJobVersion::kV1, {1, 0}, false}, Case{TfJobVersion::kV1, {127, 0}, false},
        Case{TfJobVersion::kV1, {128, 0}, true}, Case{TfJobVersion::kV1, {139, 0}, true},
        Case{TfJobVersion::kV1, {0, SIGSEGV}, true}, Case{TfJobVersion::kV1Beta1, {1, 0}, false},
        Case{TfJobVersion::kV1Beta1, {128, 0}, false}, Case{TfJobVersion::kV1Beta1, {138, 0}, true},
        Case{TfJobVersion::kV1Beta1, {0, SIGSEGV}, false},
        Case{TfJobVersion::kV1Beta1, {0, SIGKILL}, true},
        Case{TfJobVersion::kV1Beta1, {0, SIGTERM}, true},
        Case{TfJobVersion::kV1Beta1, {0, SIGINT}, true}}) {
    LocalJob job = MakeJob(RestartPolicy::kExitCode);
    job.version = c.version;
    FakeRun run(job);
    run.processes.ExitsAfter("worker-0", absl::Seconds(60), kOk);
    run.processes.ExitsAfter("worker-1", absl::Seconds(1), c.exit);
    run.processes.LivesOn("worker-1");
    const JobOutcome outcome = run();
    EXPECT_EQ(outcome.kind == JobOutcome::Kind::kSucceeded, c.retried) << DescribeExit(c.exit);
    EXPECT_EQ(run.processes.starts("worker-1"), c.retried ? 2 : 1) << DescribeExit(c.exit);
  }
}

TEST(JobRunTest, AlwaysStartsAgainAfterExitCodeZeroUnlessTheTaskDecides) {
  FakeRun run(MakeJob(RestartPolicy::kAlways));
  run.processes.ExitsAfter("worker-0", absl::Seconds(10), kOk);
  run.processes.ExitsAfter("worker-1", absl::Seconds(1), kOk);
  run.processes.LivesOn("worker-1");
  const JobOutcome outcome = run();
  EXPECT_EQ(outcome.kind, JobOutcome::Kind::kSucceeded);
  EXPECT_EQ(run.processes.starts("worker-0"), 1);
  EXPECT_EQ(run.processes.starts("worker-1"), 2);
}

TEST(JobRunTest, ACrashLoopBacksOffAndEnds) {
  FakeRun run(MakeJob(RestartPolicy::kOnFailure));
  run.processes.ExitsAfter("worker-1", absl::Seconds(1), {3, 0});
  const JobOutcome outcome = run();
  EXPECT_EQ(outcome.kind, JobOutcome::Kind::kFailed);
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(run.processes.starts("worker-1"), 7);
  EXPECT_THAT(outcome.reason, HasSubstr("exit code 3, and was started again 6 times in a row"));
  // Seven lives of a second, and 0.5 + 1 + 2 + 4 + 8 + 16 s between them.
  EXPECT_EQ(outcome.elapsed, absl::Seconds(38.5));
}

TEST(JobRunTest, ATaskThatRanForAWhileBeginsANewRow) {
  FakeRun run(MakeJob(RestartPolicy::kOnFailure));
  run.processes.ExitsAfter("worker-1", absl::Seconds(61), {3, 0});
  run.processes.ExitsAfter("worker-0", absl::Minutes(60), kOk);
  const JobOutcome outcome = run();
  EXPECT_EQ(outcome.kind, JobOutcome::Kind::kSucceeded);
  EXPECT_GT(outcome.tasks[1].restarts, 50);
}

TEST(JobRunTest, TheBackoffLimitCountsAllRestartsOfTheJob) {
  LocalJob job = MakeJob(RestartPolicy::kOnFailure);
  job.backoff_limit = 2;
  FakeRun run(job);
  run.processes.ExitsAfter("worker-1", absl::Seconds(70), {3, 0});
  run.processes.ExitsAfter("ps-0", absl::Seconds(100), kKilled);
  run.processes.LivesOn("ps-0");
  const JobOutcome outcome = run();
  EXPECT_EQ(outcome.kind, JobOutcome::Kind::kFailed);
  EXPECT_EQ(outcome.failed_task, 1u);
  EXPECT_THAT(outcome.reason, HasSubstr("(backoffLimit: 2)"));
  job.backoff_limit = 0;
  FakeRun strict(job);
  strict.processes.ExitsAfter("worker-1", absl::Seconds(1), {3, 0});
  EXPECT_EQ(strict().kind, JobOutcome::Kind::kFailed);
  EXPECT_EQ(strict.processes.starts("worker-1"), 1);
}

TEST(JobRunTest, AJobOverItsDeadlineFails) {
  LocalJob job = MakeJob(RestartPolicy::kNever);
  job.deadline = absl::Seconds(30);
  FakeRun run(job);
  const JobOutcome outcome = run();
  EXPECT_EQ(outcome.kind, JobOutcome::Kind::kFailed);
  EXPECT_EQ(outcome.exit_code, 124);
  EXPECT_EQ(outcome.failed_task, std::nullopt);
  EXPECT_EQ(outcome.elapsed, absl::Seconds(30));
}

TEST(JobRunTest, AProgramThatCannotBeStartedFailsTheJobAndEndsWhatRuns) {
  FakeRun run(MakeJob(RestartPolicy::kAlways));
  run.processes.CannotStart("worker-1", NotFound("There is no program 'x' in PATH /bin"));
  const JobOutcome outcome = run();
  EXPECT_EQ(outcome.exit_code, 127);
  EXPECT_THAT(outcome.reason, HasSubstr("could not be started: There is no program 'x'"));
  EXPECT_EQ(run.processes.starts("ps-0"), 0);
  EXPECT_THAT(run.processes.signals(), ElementsAre("worker-0 SIGTERM"));
}

TEST(JobRunTest, AnInterruptTerminatesAndKillsWhoDoesNotListen) {
  FakeRun run(MakeJob(RestartPolicy::kAlways));
  run.processes.IgnoresTerm("worker-1");
  run.processes.InterruptAt(absl::Seconds(3), SIGINT);
  const JobOutcome outcome = run();
  EXPECT_EQ(outcome.kind, JobOutcome::Kind::kInterrupted);
  EXPECT_EQ(outcome.exit_code, 130);
  EXPECT_EQ(outcome.elapsed, absl::Seconds(13));
  EXPECT_THAT(run.processes.signals(), ElementsAre("worker-0 SIGTERM", "worker-1 SIGTERM",
                                                   "ps-0 SIGTERM", "worker-1 SIGKILL"));
}

TEST(JobRunTest, ASecondInterruptKillsAtOnce) {
  FakeRun run(MakeJob(RestartPolicy::kAlways));
  run.processes.IgnoresTerm("worker-1");
  run.processes.InterruptAt(absl::Seconds(3), SIGTERM);
  run.processes.InterruptAt(absl::Seconds(4), SIGTERM);
  const JobOutcome outcome = run();
  EXPECT_EQ(outcome.exit_code, 143);
  EXPECT_EQ(outcome.elapsed, absl::Seconds(4));
}

TEST(JobRunTest, AnInterruptWhileATaskWaitsForItsRestartDoesNotStartIt) {
  FakeRun run(MakeJob(RestartPolicy::kOnFailure));
  run.processes.ExitsAfter("worker-1", absl::Seconds(1), {3, 0});
  run.processes.InterruptAt(absl::Seconds(1.2), SIGINT);
  const JobOutcome outcome = run();
  EXPECT_EQ(run.processes.starts("worker-1"), 1);
  EXPECT_EQ(outcome.tasks[1].phase, TaskPhase::kStopped);
  EXPECT_EQ(outcome.elapsed, absl::Seconds(1.2));
}

TEST(JobRunTest, AFailureKeepsItsCauseWhenItIsThenInterrupted) {
  FakeRun run(MakeJob(RestartPolicy::kNever));
  run.processes.ExitsAfter("worker-1", absl::Seconds(1), {7, 0});
  run.processes.IgnoresTerm("ps-0");
  run.processes.InterruptAt(absl::Seconds(2), SIGINT);
  const JobOutcome outcome = run();
  EXPECT_EQ(outcome.kind, JobOutcome::Kind::kFailed);
  EXPECT_EQ(outcome.exit_code, 7);
  EXPECT_EQ(outcome.elapsed, absl::Seconds(2));
}

TEST(JobRunTest, APsThatEndsDoesNotDecide) {
  FakeRun run(MakeJob(RestartPolicy::kNever));
  run.processes.ExitsAfter("ps-0", absl::Seconds(1), kOk);
  run.processes.ExitsAfter("worker-0", absl::Seconds(9), kOk);
  run.processes.ExitsAfter("worker-1", absl::Seconds(8), kOk);
  const JobOutcome outcome = run();
  EXPECT_EQ(outcome.elapsed, absl::Seconds(9));
  EXPECT_THAT(run.processes.signals(), IsEmpty());
}

}  // namespace
}  // namespace weft::platform
