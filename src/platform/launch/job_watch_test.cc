// SPDX-License-Identifier: Apache-2.0
#include "platform/launch/job_watch.h"

#include <signal.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "platform/object/fields.h"

namespace weft::platform {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

LocalJob MakeJob(RestartPolicy policy, bool chief = false) {
  LocalJob job;
  job.name = "digits";
  const auto add = [&](const char* name, ReplicaType type, bool decides) {
    LocalTask task;
    task.name = name;
    task.type = type;
    task.restart_policy = policy;
    task.decides = decides;
    job.tasks.push_back(task);
  };
  if (chief) add("chief-0", ReplicaType::kChief, true);
  add("worker-0", ReplicaType::kWorker, !chief);
  add("worker-1", ReplicaType::kWorker, false);
  add("ps-0", ReplicaType::kPs, false);
  return job;
}

// Pods as an executor shows them, on a fake clock.
class FakeJob {
 public:
  explicit FakeJob(LocalJob job, JobWatchOptions options = {})
      : job_(std::move(job)), watch(job_, options, &clock, Actions()) {
    for (const LocalTask& task : job_.tasks) Create(task.name);
  }
  // A new pod of the task, which runs.
  void Create(const std::string& task) {
    Json pod;
    SetField(&pod, {"metadata", "uid"}, absl::StrCat(task, "/", ++uids_));
    pods_[task] = std::move(pod);
    Tell(task, Status("Pending"));
    Runs(task, 0);
  }
  void Runs(const std::string& task, int64_t restarts) {
    Json status = Status("Running", restarts);
    SetField(Container(&status), {"state", "running", "startedAt"}, "x");
    if (restarts > 0) SetField(Container(&status), {"lastState", "terminated"}, ends_[task]);
    Tell(task, status);
  }
  // It has ended. In a pod that starts it again it waits for that.
  void Ends(const std::string& task, ExitState exit, int64_t restarts = 0,
            bool starts_again = false, const char* reason = "Error") {
    Json end;
    end.Set("exitCode", exit.ShellCode());
    if (exit.signal != 0) end.Set("signal", exit.signal);
    end.Set("reason", reason);
    end.Set("message", "as it was told");
    ends_[task] = end;
    Json status = Status(starts_again ? "Running" : exit.ok() ? "Succeeded" : "Failed", restarts);
    SetField(Container(&status), {"state", "terminated"}, end);
    Tell(task, status);
  }
  void Goes(const std::string& task) { watch.OnPod(task, pods_[task], true); }
  void AllGo() {
    for (const LocalTask& task : job_.tasks) Goes(task.name);
  }
  void JobFails(const std::string& message) {
    Json job = Json::Parse(R"({"status":{"conditions":[{"type":"Created","status":"True"},
        {"type":"Failed","status":"True"}]}})")
                   .value();
    Json* const conditions = job.FindMutable("status")->FindMutable("conditions");
    (*conditions->mutable_items())[1].Set("message", message);
    watch.OnJob(job);
  }
  void Pass(absl::Duration time) {
    clock.Advance(time);
    watch.FireTimers();
  }

 private:
  static Json Status(const char* phase, int64_t restarts = 0) {
    Json container;
    container.Set("restartCount", restarts);
    Json status;
    status.Set("phase", phase);
    status.Set("containerStatuses", Json(Json::Array{std::move(container)}));
    return status;
  }
  static Json* Container(Json* status) {
    return &(*status->FindMutable("containerStatuses")->mutable_items())[0];
  }
  void Tell(const std::string& task, const Json& status) {
    pods_[task].Set("status", status);
    watch.OnPod(task, pods_[task], false);
  }
  JobActions Actions() {
    return {
        [this] { done.push_back("end"); }, [this] { done.push_back("kill"); },
        [](const std::string& task) { return std::vector<std::string>{"last line of " + task}; },
        [this](const std::string& line) { said.push_back(line); }};
  }

  const LocalJob job_;
  std::map<std::string, Json> pods_;
  std::map<std::string, Json> ends_;
  int uids_ = 0;

 public:
  FakeClock clock;
  std::vector<std::string> said;
  std::vector<std::string> done;
  JobWatch watch;
};

constexpr ExitState kOk = {0, 0};
constexpr ExitState kKilled = {0, SIGKILL};

TEST(JobWatchTest, WorkerZeroDecidesAndOthersMayEndByThemselves) {
  FakeJob job(MakeJob(RestartPolicy::kNever));
  job.Pass(absl::Seconds(10));
  job.Ends("worker-0", kOk);
  EXPECT_THAT(job.done, IsEmpty());
  job.Pass(absl::Seconds(2));
  job.Ends("worker-1", kOk);
  EXPECT_THAT(job.done, ElementsAre("end"));
  EXPECT_FALSE(job.watch.IsOver());
  job.AllGo();
  ASSERT_TRUE(job.watch.IsOver());
  const JobOutcome outcome = job.watch.TakeOutcome();
  EXPECT_EQ(outcome.kind, JobOutcome::Kind::kSucceeded);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.elapsed, absl::Seconds(12));
  EXPECT_EQ(outcome.tasks[1].phase, TaskPhase::kSucceeded);
  EXPECT_EQ(outcome.tasks[2].phase, TaskPhase::kStopped);
}

TEST(JobWatchTest, AWorkerThatDoesNotComeToAnEndIsEnded) {
  FakeJob job(MakeJob(RestartPolicy::kNever));
  job.Ends("worker-0", kOk);
  job.Pass(absl::Seconds(4.9));
  EXPECT_THAT(job.done, IsEmpty());
  job.Pass(absl::Seconds(0.1));
  EXPECT_THAT(job.done, ElementsAre("end"));
}

TEST(JobWatchTest, AWorkerThatHasNotBegunMayStillDoItsWork) {
  FakeClock clock;
  const LocalJob plan = MakeJob(RestartPolicy::kNever);
  std::vector<std::string> done;
  JobWatch watch(
      plan, {}, &clock,
      {[&] { done.push_back("end"); }, [] {},
       [](const std::string&) { return std::vector<std::string>(); }, [](const std::string&) {}});
  const auto tell = [&](const std::string& task, const char* status) {
    Json pod = Json::Parse(status).value();
    SetField(&pod, {"metadata", "uid"}, task);
    watch.OnPod(task, pod, false);
  };
  const char* const is_done = R"({"status":{"phase":"Succeeded","containerStatuses":[
      {"restartCount":0,"state":{"terminated":{"exitCode":0}}}]}})";
  tell("worker-0", is_done);
  EXPECT_THAT(done, IsEmpty());
  tell("worker-1", is_done);
  EXPECT_THAT(done, ElementsAre("end"));
}

TEST(JobWatchTest, NobodyWaitsForWorkersThatServe) {
  LocalJob plan = MakeJob(RestartPolicy::kNever);
  plan.tasks[1].serves = true;
  FakeJob job(plan);
  job.Ends("worker-0", kOk);
  EXPECT_THAT(job.done, ElementsAre("end"));
}

TEST(JobWatchTest, TheChiefDecidesWhenThereIsOneAndAllThatShall) {
  FakeJob chief(MakeJob(RestartPolicy::kNever, /*chief=*/true));
  chief.Ends("worker-0", kOk);
  chief.Ends("worker-1", kOk);
  EXPECT_THAT(chief.done, IsEmpty());
  chief.Ends("chief-0", kOk);
  EXPECT_THAT(chief.done, ElementsAre("end"));
  LocalJob plan = MakeJob(RestartPolicy::kNever);
  plan.tasks[1].decides = true;
  FakeJob all(plan);
  all.Ends("worker-0", kOk);
  EXPECT_THAT(all.done, IsEmpty());
  all.Ends("worker-1", kOk);
  EXPECT_THAT(all.done, ElementsAre("end"));
}

TEST(JobWatchTest, TellsOfStartsInTheSamePodAndInANewOne) {
  FakeJob job(MakeJob(RestartPolicy::kOnFailure));
  job.Ends("worker-1", kKilled, 0, /*starts_again=*/true);
  job.Runs("worker-1", 1);
  FakeJob other(MakeJob(RestartPolicy::kExitCode));
  other.Ends("worker-1", kKilled);
  EXPECT_THAT(other.said, IsEmpty());
  other.Goes("worker-1");
  other.Create("worker-1");
  for (FakeJob* each : {&job, &other}) {
    EXPECT_THAT(
        each->said,
        ElementsAre("worker-1 ended: killed by SIGKILL (9); starting it again (restart 1)"));
    each->Ends("worker-0", kOk);
    each->Pass(absl::Seconds(5));
    each->AllGo();
    EXPECT_EQ(each->watch.TakeOutcome().tasks[1].restarts, 1);
  }
}

TEST(JobWatchTest, AnEndThatWasSeenOnlyLaterCounts) {
  FakeJob job(MakeJob(RestartPolicy::kAlways));
  job.Ends("worker-0", kOk, 0, /*starts_again=*/true);
  EXPECT_THAT(job.said, Contains("worker-0 ended with exit code 0: the job has succeeded"));
  FakeJob quick(MakeJob(RestartPolicy::kAlways));
  FakeJob shown(MakeJob(RestartPolicy::kAlways));
  shown.Ends("ps-0", kOk, 0, true);
  EXPECT_THAT(shown.said, ElementsAre("ps-0 ended: exit code 0; starting it again (restart 1)"));
}

TEST(JobWatchTest, NeverFailsTheJobWithTheExitCodeOfTheTask) {
  FakeJob job(MakeJob(RestartPolicy::kNever));
  job.Ends("worker-1", kKilled);
  EXPECT_THAT(job.done, ElementsAre("end"));
  job.AllGo();
  const JobOutcome outcome = job.watch.TakeOutcome();
  EXPECT_EQ(outcome.kind, JobOutcome::Kind::kFailed);
  EXPECT_EQ(outcome.exit_code, 137);
  EXPECT_EQ(outcome.failed_task, 1u);
  EXPECT_EQ(outcome.reason, "killed by SIGKILL (9)");
  EXPECT_THAT(outcome.failed_lines, ElementsAre("last line of worker-1"));
  EXPECT_EQ(outcome.tasks[1].phase, TaskPhase::kFailed);
  EXPECT_EQ(outcome.tasks[0].phase, TaskPhase::kStopped);
}

TEST(JobWatchTest, TheControllerDecidesByTheCode) {
  FakeJob job(MakeJob(RestartPolicy::kExitCode));
  job.Ends("worker-1", {3, 0});
  job.Ends("ps-0", {4, 0});
  EXPECT_THAT(job.done, IsEmpty());
  job.JobFails("1 Worker replica(s) failed");
  job.AllGo();
  const JobOutcome outcome = job.watch.TakeOutcome();
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.failed_task, 1u);
  EXPECT_EQ(outcome.reason, "exit code 3");
}

TEST(JobWatchTest, ACrashLoopEndsWithTheSeventhFailureInARow) {
  FakeJob job(MakeJob(RestartPolicy::kExitCode));
  for (int i = 0; i < 6; ++i) {
    job.Ends("worker-0", kKilled);
    EXPECT_THAT(job.done, IsEmpty());
    job.Goes("worker-0");
    job.Create("worker-0");
  }
  job.Ends("worker-0", kKilled);
  EXPECT_THAT(job.done, ElementsAre("end"));
  job.AllGo();
  EXPECT_THAT(job.watch.TakeOutcome().reason, HasSubstr("was started again 6 times in a row"));
}

TEST(JobWatchTest, ATaskThatRanForAWhileBeginsANewRow) {
  FakeJob job(MakeJob(RestartPolicy::kOnFailure));
  for (int i = 0; i < 20; ++i) {
    job.Pass(absl::Minutes(1));
    job.Ends("worker-0", {1, 0}, i, true);
    job.Runs("worker-0", i + 1);
  }
  EXPECT_THAT(job.done, IsEmpty());
}

TEST(JobWatchTest, TheBackoffLimitCountsAllRestartsOfTheJob) {
  LocalJob plan = MakeJob(RestartPolicy::kOnFailure);
  plan.backoff_limit = 2;
  FakeJob job(plan);
  job.Ends("worker-0", {1, 0}, 0, true);
  job.Runs("worker-0", 1);
  job.Ends("worker-1", {1, 0}, 0, true);
  job.Runs("worker-1", 1);
  EXPECT_THAT(job.done, IsEmpty());
  job.Ends("ps-0", {5, 0}, 0, true);
  EXPECT_THAT(job.done, ElementsAre("end"));
  job.AllGo();
  const JobOutcome outcome = job.watch.TakeOutcome();
  EXPECT_EQ(outcome.exit_code, 5);
  EXPECT_THAT(outcome.reason, HasSubstr("2 times (backoffLimit: 2)"));
}

TEST(JobWatchTest, AJobOverItsDeadlineFails) {
  LocalJob plan = MakeJob(RestartPolicy::kNever);
  plan.deadline = absl::Seconds(60);
  FakeJob job(plan);
  EXPECT_EQ(job.watch.UntilNextTimer(), absl::Seconds(60));
  job.Pass(absl::Seconds(59.9));
  EXPECT_THAT(job.done, IsEmpty());
  job.Pass(absl::Seconds(0.1));
  EXPECT_THAT(job.done, ElementsAre("end"));
  job.AllGo();
  const JobOutcome outcome = job.watch.TakeOutcome();
  EXPECT_EQ(outcome.exit_code, 124);
  EXPECT_FALSE(outcome.failed_task.has_value());
  EXPECT_EQ(outcome.reason, "is over its deadline (activeDeadlineSeconds: 60)");
}

TEST(JobWatchTest, AProgramThatCannotBeStartedFailsTheJobWhateverItsPolicy) {
  for (const RestartPolicy policy :
       {RestartPolicy::kNever, RestartPolicy::kAlways, RestartPolicy::kExitCode}) {
    FakeJob job(MakeJob(policy));
    job.Ends("worker-1", {127, 0}, 0, policy == RestartPolicy::kAlways, "ContainerCannotRun");
    EXPECT_THAT(job.done, ElementsAre("end"));
    job.AllGo();
    const JobOutcome outcome = job.watch.TakeOutcome();
    EXPECT_EQ(outcome.exit_code, 127);
    EXPECT_EQ(outcome.reason, "could not be started: as it was told");
    EXPECT_FALSE(outcome.tasks[1].last_exit.has_value());
  }
}

TEST(JobWatchTest, AnInterruptEndsAndTheGraceOrASecondOneKills) {
  FakeJob job(MakeJob(RestartPolicy::kNever));
  job.watch.OnInterrupt(SIGINT);
  EXPECT_THAT(job.done, ElementsAre("end"));
  EXPECT_EQ(job.watch.UntilNextTimer(), absl::Seconds(10));
  job.Pass(absl::Seconds(10));
  EXPECT_THAT(job.done, ElementsAre("end", "kill"));
  EXPECT_THAT(job.said, Contains("worker-1 did not end in time: killing it"));
  job.AllGo();
  EXPECT_EQ(job.watch.TakeOutcome().exit_code, 130);
  FakeJob twice(MakeJob(RestartPolicy::kNever));
  twice.watch.OnInterrupt(SIGTERM);
  twice.watch.OnInterrupt(SIGINT);
  EXPECT_THAT(twice.done, ElementsAre("end", "kill"));
  twice.AllGo();
  EXPECT_EQ(twice.watch.TakeOutcome().exit_code, 143);
}

TEST(JobWatchTest, AFailureKeepsItsCauseWhenItIsThenInterrupted) {
  FakeJob job(MakeJob(RestartPolicy::kNever));
  job.Ends("worker-1", {3, 0});
  job.watch.OnInterrupt(SIGINT);
  job.AllGo();
  const JobOutcome outcome = job.watch.TakeOutcome();
  EXPECT_EQ(outcome.kind, JobOutcome::Kind::kFailed);
  EXPECT_EQ(outcome.exit_code, 3);
}

TEST(JobWatchTest, APsThatEndsDoesNotDecide) {
  FakeJob job(MakeJob(RestartPolicy::kExitCode));
  job.Ends("ps-0", kOk);
  EXPECT_THAT(job.done, IsEmpty());
  EXPECT_THAT(job.said, ElementsAre("ps-0 ended with exit code 0"));
}

}  // namespace
}  // namespace weft::platform
