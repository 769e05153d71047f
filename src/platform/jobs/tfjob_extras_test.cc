// SPDX-License-Identifier: Apache-2.0
// What weft adds to the reference operator's jobs: the compact kind, flags, TensorBoard, a restart
// of the whole job.
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "gmock/gmock.h"

#include "platform/jobs/controller_fixture_test.h"
#include "platform/store/passing_store.h"

namespace weft::platform {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// Its watches keep quiet about one object.
class HidingStore : public PassingStore {
 public:
  using PassingStore::PassingStore;
  StatusOr<std::unique_ptr<Watch>> StartWatch(const ResourceType& type, const WatchOptions& options,
                                              WatchSink sink) override {
    if (type.kind != hidden_kind) return PassingStore::StartWatch(type, options, std::move(sink));
    return PassingStore::StartWatch(
        type, options, [this, sink = std::move(sink)](const WatchEvent& event) {
          if (event.object == nullptr || NameOf(*event.object) != hidden) sink(event);
        });
  }
  std::string hidden_kind;
  std::string hidden;
};

class EventsTest : public ControllerFixture {
 protected:
  std::vector<std::string> Messages(const std::string& reason) {
    std::vector<std::string> messages;
    const ObjectList events = store_->List(Events(), {}).value();
    for (const ObjectPtr& event : events.items) {
      if (StringField(*event, {"reason"}) == reason) {
        messages.push_back(StringField(*event, {"message"}));
      }
    }
    return messages;
  }
};

TEST_F(EventsTest, ManyPodsAreToldTogether) {
  Submit(JobOf({{"Worker", Replica(8, "Never")}}));
  EXPECT_EQ(Messages("SuccessfulCreatePod").size(), 8u);
  Json now = JobNow();
  SetField(&now, {"spec", "tfReplicaSpecs", "Worker", "replicas"}, 17);
  ASSERT_TRUE(store_->Update(TfJobs(), now, {}).ok());
  Settle();
  EXPECT_EQ(Messages("SuccessfulCreatePod").size(), 9u);
  EXPECT_THAT(Messages("SuccessfulCreatePod"),
              Contains("Created 9 pods: job-worker-8, job-worker-9, job-worker-10, job-worker-11, "
                       "job-worker-12, job-worker-13, job-worker-14, job-worker-15, "
                       "job-worker-16"));
  EXPECT_THAT(Messages("SuccessfulCreateService"),
              Contains(HasSubstr("Created 9 services: job-worker-8,")));
}

TEST_F(EventsTest, AnExitIsToldThoughTheCountsStayAsTheyWere) {
  Submit(JobOf({{"Worker", Replica(3, "ExitCode")}}));
  for (const char* pod : {"job-worker-0", "job-worker-1", "job-worker-2"}) Fate(pod, "Running");
  // Worker 1 has failed and gone since the last look.
  Json now = JobNow();
  SetField(&now, {"status", "replicaStatuses", "Worker", "failed"}, 1);
  WriteOptions status;
  status.subresource = "status";
  ASSERT_TRUE(store_->Update(TfJobs(), now, status).ok());
  Fate("job-worker-2", "Failed", 143);
  EXPECT_THAT(Messages("ExitedWithCode"),
              Contains("Pod: default.job-worker-2 exited with code 143"));
}

// The plan of the whole objects is the plan of what is kept of them.
TEST_F(EventsTest, WhatNoWatchHasToldIsFoundWithTheNextList) {
  HidingStore hiding(store_.get());
  hiding.hidden_kind = "Service";
  hiding.hidden = "job-worker-0";
  options_.store = &hiding;
  MakeController();
  Submit(JobOf({{"Worker", Replica(1, "")}}));
  Advance(absl::Minutes(10));
  ASSERT_EQ(Names(Services()), "job-worker-0");
  ASSERT_TRUE(store_->Delete(Services(), {"default", "job-worker-0"}, {}).ok());
  Settle();
  EXPECT_EQ(Names(Services()), "");
  Advance(absl::Hours(2));
  EXPECT_EQ(Names(Services()), "job-worker-0");
  controller_.reset();
}

TEST_F(EventsTest, WhatIsKeptOfPodsIsEnough) {
  int looks = 0;
  options_.plan = [&](const JobObservation& seen) {
    JobObservation whole = seen;
    for (auto* const objects : {&whole.pods, &whole.services}) {
      for (ObjectPtr& object : *objects) {
        const ResourceType& type = objects == &whole.pods ? Pods() : Services();
        const auto live = store_->Get(type, {"default", NameOf(*object)});
        if (live.ok() && RevisionOf(**live) == RevisionOf(*object)) {
          object = *live;
          ++looks;
        }
      }
    }
    JobPlan plan = PlanTfJob(seen);
    const JobPlan full = PlanTfJob(whole);
    EXPECT_EQ(plan.status.Dump(), full.status.Dump());
    EXPECT_EQ(plan.delete_pods.size(), full.delete_pods.size());
    EXPECT_EQ(plan.create_pods, full.create_pods);
    EXPECT_EQ(plan.delete_services.size(), full.delete_services.size());
    return plan;
  };
  MakeController();
  Json job = JobOf({{"PS", Replica(1, "Never")}, {"Worker", Replica(3, "ExitCode")}});
  SetField(&job, {"metadata", "annotations", "weft.dev/restart"}, "job");
  SetField(&job, {"metadata", "annotations", "weft.dev/tensorboard"}, "/summary");
  SetField(&job, {"spec", "runPolicy", "backoffLimit"}, 3);
  Submit(job);
  for (const char* pod : {"job-ps-0", "job-worker-0", "job-worker-1", "job-worker-2"}) {
    Fate(pod, "Running");
  }
  Fate("job-worker-1", "Running", -1, 1);
  Fate("job-worker-2", "Failed", 137);
  Advance(absl::Minutes(1));
  for (const char* pod : {"job-ps-0", "job-worker-0", "job-worker-1", "job-worker-2"}) {
    Fate(pod, "Running");
  }
  Json pod = Pod("job-worker-0");
  SetField(&pod, {"metadata", "annotations", "weft.dev/progress"}, R"({"step":3,"steps":4})");
  ASSERT_TRUE(store_->Update(Pods(), pod, {}).ok());
  Settle();
  EXPECT_EQ(StringField(JobNow(), {"status", "progress", "percent"}), "75%");
  Fate("job-worker-0", "Succeeded");
  EXPECT_EQ(Conditions(), "Created+ Running- Succeeded+");
  EXPECT_GT(looks, 50);
}

class CompactTest : public ControllerFixture {
 protected:
  CompactTest() {
    options_.type = &Tensorflows();
    MakeController();
  }
  // The seed's example, with `more` as further fields.
  void SubmitCompact(const std::string& more = "") {
    Submit(
        Json::Parse(absl::StrCat(R"({"apiVersion":"krallistic.github.com/v1","kind":"Tensorflow",)"
                                 R"("metadata":{"name":"job"},"spec":{"image":"mnist:v1",)"
                                 R"("ps_count":1,"worker_count":2)",
                                 more, "}}"))
            .value());
  }
  std::string Args(const std::string& pod) {
    const Json object = Pod(pod);
    const Json& container = FindField(object, {"spec", "containers"})->items()[0];
    const Json* const args = container.Find("args");
    return args == nullptr ? "" : args->Dump();
  }
};

TEST_F(CompactTest, TheSeedsExampleTrains) {
  SubmitCompact();
  EXPECT_EQ(Names(Pods()), "job-ps-0 job-worker-0 job-worker-1");
  EXPECT_EQ(Names(Services()), "job-ps-0 job-worker-0 job-worker-1");
  EXPECT_EQ(Args("job-worker-1"),
            R"(["--job_name=worker","--task_index=1",)"
            R"("--worker_hosts=job-worker-0.default.svc:2222,job-worker-1.default.svc:2222",)"
            R"("--ps_hosts=job-ps-0.default.svc:2222"])");
  EXPECT_EQ(TfConfig("job-ps-0").Find("task")->Dump(), R"({"type":"ps","index":0})");
  EXPECT_EQ(TfConfig("job-ps-0").Find("job")->Find("args")->size(), 4u);
  const Json pod = Pod("job-worker-0");
  EXPECT_EQ(StringField(*ControllerOf(pod), {"kind"}), "Tensorflow");
  EXPECT_EQ(StringField(*ControllerOf(pod), {"apiVersion"}), "krallistic.github.com/v1");
  EXPECT_EQ(StringField(pod, {"metadata", "labels", "training.kubeflow.org/operator-name"}),
            "tensorflow-controller");
  Fate("job-worker-0", "Running");
  EXPECT_EQ(Conditions(), "Created+ Running+");
  Fate("job-worker-0", "Succeeded");
  EXPECT_EQ(Conditions(), "Created+ Running- Succeeded+");
  EXPECT_EQ(StringField(FindField(JobNow(), {"status", "conditions"})->items()[2], {"reason"}),
            "TensorflowSucceeded");
  // What still ran is gone.
  EXPECT_EQ(Names(Pods()), "job-worker-0");
}

TEST_F(CompactTest, ScalesAndSuspends) {
  SubmitCompact();
  Json now = JobNow();
  SetField(&now, {"spec", "worker_count"}, 1);
  ASSERT_TRUE(store_->Update(Tensorflows(), now, {}).ok());
  Settle();
  EXPECT_EQ(Names(Pods()), "job-ps-0 job-worker-0");
  now = JobNow();
  SetField(&now, {"spec", "suspend"}, true);
  ASSERT_TRUE(store_->Update(Tensorflows(), now, {}).ok());
  Settle();
  EXPECT_EQ(Names(Pods()), "");
  EXPECT_EQ(Conditions(), "Created+ Suspended+");
}

TEST_F(CompactTest, BothControllersShareTheStore) {
  TfJobController::Options options = options_;
  options.type = &TfJobs();
  TfJobController other(options);
  SubmitCompact();
  Json job = JobOf({{"Worker", Replica(1, "")}});
  SetField(&job, {"metadata", "name"}, "plain");
  ASSERT_TRUE(store_->Create(TfJobs(), "default", job, {}).ok());
  for (int round = 0; round < 5; ++round) {
    Settle();
    other.Maintain();
    for (int i = 0; i < 100 && other.Step(); ++i) {
    }
  }
  EXPECT_EQ(Names(Pods()), "job-ps-0 job-worker-0 job-worker-1 plain-worker-0");
}

TEST_F(CompactTest, TensorBoardShowsOneRunATask) {
  SubmitCompact(R"(,"tensorboard":{"active":true,"folder":"/summary"})");
  EXPECT_EQ(Names(Pods()), "job-ps-0 job-tensorboard job-worker-0 job-worker-1");
  EXPECT_EQ(Names(Services()), "job-ps-0 job-tensorboard job-worker-0 job-worker-1");
  EXPECT_THAT(Pod("job-worker-1").Dump(),
              HasSubstr(R"({"name":"WEFT_SUMMARY_FOLDER","value":"/summary/job-worker-1"})"));
  const Json board = Pod("job-tensorboard");
  EXPECT_EQ(StringField(board, {"spec", "restartPolicy"}), "Always");
  const Json& container = FindField(board, {"spec", "containers"})->items()[0];
  EXPECT_EQ(StringField(container, {"image"}), "mnist:v1");
  EXPECT_EQ(container.Find("env")->Dump(),
            R"([{"name":"FOLDER","value":"/summary"},)"
            R"({"name":"ADDRESS","value":"job-tensorboard.default.svc:6006"}])");
  EXPECT_EQ(container.Find("volumeMounts")->Dump(),
            R"([{"name":"tensorboard","mountPath":"/summary"}])");
  // It is looked at when the job is over, and is no task of it.
  Fate("job-tensorboard", "Running");
  EXPECT_EQ(Conditions(), "Created+");
  Fate("job-worker-0", "Succeeded");
  EXPECT_EQ(Conditions(), "Created+ Succeeded+");
  EXPECT_EQ(Names(Pods()), "job-tensorboard job-worker-0");
  EXPECT_EQ(Names(Services()), "job-tensorboard job-worker-0");
}

TEST_F(CompactTest, AnEvictedTensorBoardComesBack) {
  SubmitCompact(R"(,"tensorboard":{"active":true,"folder":"/summary"})");
  const std::string uid = UidOf(Pod("job-tensorboard"));
  Fate("job-tensorboard", "Failed", -1);
  EXPECT_NE(UidOf(Pod("job-tensorboard")), uid);
  EXPECT_EQ(Conditions(), "Created+");
}

class WholeRestartTest : public ControllerFixture {
 protected:
  void SubmitWhole(const std::string& policy, int64_t limit = -1) {
    Json job = JobOf({{"PS", Replica(1, policy)}, {"Worker", Replica(2, policy)}});
    SetField(&job, {"metadata", "annotations"}, Json::MakeObject());
    SetField(&job, {"metadata", "annotations", "weft.dev/restart"}, "job");
    if (limit >= 0) SetField(&job, {"spec", "runPolicy", "backoffLimit"}, limit);
    Submit(job);
  }
  std::string Uids() {
    return absl::StrCat(UidOf(Pod("job-ps-0")), UidOf(Pod("job-worker-0")),
                        UidOf(Pod("job-worker-1")));
  }
};

TEST_F(WholeRestartTest, AFailedTaskTakesAllAlong) {
  SubmitWhole("ExitCode");
  const std::string ps = UidOf(Pod("job-ps-0"));
  const std::string worker = UidOf(Pod("job-worker-0"));
  Fate("job-ps-0", "Running");
  Fate("job-worker-0", "Running");
  Fate("job-worker-1", "Failed", 137);
  EXPECT_EQ(Conditions(), "Created+ Restarting+");
  EXPECT_EQ(Names(Pods()), "job-ps-0 job-worker-0 job-worker-1");
  EXPECT_NE(UidOf(Pod("job-ps-0")), ps);
  EXPECT_NE(UidOf(Pod("job-worker-0")), worker);
  EXPECT_EQ(StringField(Pod("job-ps-0"), {"metadata", "labels", "weft.dev/attempt"}), "1");
  EXPECT_EQ(IntField(JobNow(), {"status", "restarts", "job", "count"}), 1);
  Fate("job-worker-0", "Running");
  EXPECT_EQ(Conditions(), "Created+ Running+");
}

TEST_F(WholeRestartTest, NothingBeginsBeforeTheLastAttemptIsGone) {
  SubmitWhole("OnFailure");
  EXPECT_EQ(StringField(Pod("job-ps-0"), {"spec", "restartPolicy"}), "Never");
  // A finalizer holds it, as a grace period would.
  Json held = Pod("job-ps-0");
  SetField(&held, {"metadata", "finalizers"}, Json(Json::Array{Json("test/hold")}));
  ASSERT_TRUE(store_->Update(Pods(), held, {}).ok());
  Fate("job-worker-1", "Failed", 1);
  EXPECT_EQ(Names(Pods()), "job-ps-0");
  MakeController();  // which must not forget
  Settle();
  EXPECT_EQ(Names(Pods()), "job-ps-0");
  held = Pod("job-ps-0");
  EXPECT_TRUE(IsTerminating(held));
  EraseField(&held, {"metadata", "finalizers"});
  ASSERT_TRUE(store_->Update(Pods(), held, {}).ok());
  Settle();
  EXPECT_EQ(Names(Pods()), "job-ps-0 job-worker-0 job-worker-1");
}

TEST_F(WholeRestartTest, NothingBeginsBesideATaskThatNoWatchHasShown) {
  SubmitWhole("ExitCode");
  HidingStore hiding(store_.get());
  hiding.hidden_kind = "Pod";
  hiding.hidden = "job-worker-1";
  options_.store = &hiding;
  MakeController();
  Fate("job-worker-0", "Failed", 137);
  EXPECT_EQ(IntField(JobNow(), {"status", "restarts", "job", "count"}), 1);
  Advance(absl::Minutes(1));
  EXPECT_EQ(Names(Pods()), "job-worker-1");
  hiding.hidden = "nothing";
  MakeController();
  Settle();
  EXPECT_EQ(Names(Pods()), "job-ps-0 job-worker-0 job-worker-1");
  EXPECT_EQ(StringField(Pod("job-worker-1"), {"metadata", "labels", "weft.dev/attempt"}), "1");
  controller_.reset();
}

TEST_F(WholeRestartTest, FailuresAtOnceCountOnce) {
  SubmitWhole("ExitCode", 1);
  for (const char* name : {"job-ps-0", "job-worker-0", "job-worker-1"}) {
    Json pod = Pod(name);
    SetField(&pod, {"status", "phase"}, "Failed");
    ASSERT_TRUE(store_->Update(Pods(), pod, {"status"}).ok());
  }
  Settle();
  EXPECT_EQ(IntField(JobNow(), {"status", "restarts", "job", "count"}), 1);
  EXPECT_EQ(Conditions(), "Created+ Restarting+");
  Fate("job-ps-0", "Failed", 137);
  EXPECT_EQ(Conditions(), "Created+ Restarting+ Failed+");
}

TEST_F(WholeRestartTest, ASuccessIsNotTakenBack) {
  SubmitWhole("ExitCode");
  Json pod = Pod("job-ps-0");
  SetField(&pod, {"status", "phase"}, "Failed");
  ASSERT_TRUE(store_->Update(Pods(), pod, {"status"}).ok());
  Fate("job-worker-0", "Succeeded");
  EXPECT_EQ(Conditions(), "Created+ Succeeded+");
}

TEST_F(WholeRestartTest, ASecondLookWritesNothing) {
  SubmitWhole("ExitCode");
  Fate("job-worker-1", "Failed", 137);
  const int64_t revision = Revision();
  const std::string uids = Uids();
  MakeController();
  Settle();
  EXPECT_EQ(Revision(), revision);
  EXPECT_EQ(Uids(), uids);
}

using MovingTest = ControllerFixture;

Json MovableJob(std::initializer_list<std::pair<const char*, Json>> replicas) {
  Json job = JobOf(replicas);
  SetField(&job, {"spec", "elasticPolicy", "maxReplicas"}, 4);
  return job;
}

std::string EnvironmentOf(const Json& pod, absl::string_view name) {
  for (const Json& each : FindField(pod, {"spec", "containers"})->items()[0].Find("env")->items()) {
    if (StringField(each, {"name"}) == name) return StringField(each, {"value"});
  }
  return "none";
}

// As where a pod is drained or preempted: it runs until its grace is over.
void BeginToEnd(ObjectStore* store, const Json& pod) {
  Json known = pod;
  SetField(&known, {"status", "podIP"}, "10.0.0.7");
  ASSERT_TRUE(store->Update(Pods(), known, {"status"}).ok());
  Json bound = *store->Get(Pods(), {"default", NameOf(pod)}).value();
  SetField(&bound, {"spec", "nodeName"}, "node");
  ASSERT_TRUE(store->Update(Pods(), bound, {"binding"}).ok());
  ASSERT_TRUE(store->Delete(Pods(), {"default", NameOf(pod)}, {}).ok());
}

TEST_F(MovingTest, AParameterServerThatMustGoIsTakenOver) {
  options_.has_network = true;
  MakeController();
  Submit(MovableJob({{"PS", Replica(1, "OnFailure")}, {"Worker", Replica(2, "")}}));
  EXPECT_EQ(EnvironmentOf(Pod("job-ps-0"), "WEFT_HAND_OVER"), "27");
  EXPECT_EQ(EnvironmentOf(Pod("job-worker-0"), "WEFT_HAND_OVER"), "none");
  // The copy has longer than the wait for its beginning.
  EXPECT_EQ(IntField(Pod("job-ps-0"), {"spec", "terminationGracePeriodSeconds"}), 600);
  EXPECT_EQ(IntField(Pod("job-worker-0"), {"spec", "terminationGracePeriodSeconds"}), 30);
  for (const char* pod : {"job-ps-0", "job-worker-0", "job-worker-1"}) Fate(pod, "Running");
  BeginToEnd(store_.get(), Pod("job-ps-0"));
  Settle();
  EXPECT_EQ(Names(Pods()), "job-ps-0 job-ps-0-next job-worker-0 job-worker-1");
  const Json next = Pod("job-ps-0-next");
  EXPECT_EQ(EnvironmentOf(next, "WEFT_TAKE_OVER"), "$(WEFT_POD_IP):2222");
  EXPECT_EQ(EnvironmentOf(next, "WEFT_TAKE_OVER_FROM"), "10.0.0.7:2222");
  EXPECT_EQ(StringField(next, {"spec", "restartPolicy"}), "Never");
  EXPECT_EQ(StringField(next, {"metadata", "labels", kIndexLabel}), "0");
  // Nothing more is done, nor by another controller that finds it so; the next of the next has the
  // first name again, once that is free.
  MakeController();
  Settle();
  Fate("job-ps-0-next", "Running");
  DeleteOptions now;
  now.grace_seconds = 0;
  ASSERT_TRUE(store_->Delete(Pods(), {"default", "job-ps-0"}, now).ok());
  Settle();
  EXPECT_EQ(Names(Pods()), "job-ps-0-next job-worker-0 job-worker-1");
  BeginToEnd(store_.get(), Pod("job-ps-0-next"));
  Settle();
  EXPECT_EQ(Names(Pods()), "job-ps-0 job-ps-0-next job-worker-0 job-worker-1");
  // Both die: the task begins anew, as it does today.
  for (const char* pod : {"job-ps-0", "job-ps-0-next"})
    ASSERT_TRUE(store_->Delete(Pods(), {"default", pod}, now).ok());
  Settle();
  EXPECT_EQ(Names(Pods()), "job-ps-0 job-worker-0 job-worker-1");
  EXPECT_EQ(EnvironmentOf(Pod("job-ps-0"), "WEFT_TAKE_OVER"), "none");
  EXPECT_EQ(Conditions(), "Created+ Running+");
}

TEST_F(MovingTest, WithoutAPolicyAServersNextPodWaitsForItsEnd) {
  Submit(JobOf({{"PS", Replica(1, "")}, {"Worker", Replica(1, "")}}));
  for (const char* pod : {"job-ps-0", "job-worker-0"}) Fate(pod, "Running");
  BeginToEnd(store_.get(), Pod("job-ps-0"));
  Settle();
  EXPECT_EQ(Names(Pods()), "job-ps-0 job-worker-0");
}

}  // namespace
}  // namespace weft::platform
