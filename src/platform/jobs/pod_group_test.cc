// SPDX-License-Identifier: Apache-2.0
// Gang admission by the objects of Volcano and of the scheduler plugins; the test is their
// scheduler.
#include "platform/jobs/pod_group.h"

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "gmock/gmock.h"

#include "platform/jobs/controller_fixture_test.h"
#include "platform/store/passing_store.h"

namespace weft::platform {
namespace {

class GangTest : public ControllerFixture {
 protected:
  void UseScheduler(const std::string& name) {
    options_.gang_scheduler = name;
    MakeController();
  }
  Json GangJob() {
    Json worker = Replica(2, "");
    const Json limits = Json::Parse(R"({"cpu":"500m","memory":"1Gi","nvidia.com/gpu":1})").value();
    Json* const containers =
        worker.FindMutable("template")->FindMutable("spec")->FindMutable("containers");
    SetField(&(*containers->mutable_items())[0], {"resources", "limits"}, limits);
    return JobOf({{"PS", Replica(1, "")}, {"Worker", std::move(worker)}});
  }
  Json Group(const ResourceType& type) { return *store_->Get(type, {"default", "job"}).value(); }
  void Phase(const std::string& phase) {
    Json group = Group(VolcanoPodGroups());
    SetField(&group, {"status", "phase"}, phase);
    ASSERT_TRUE(store_->Update(VolcanoPodGroups(), group, {"status"}).ok());
    Settle();
  }
  void SetSpec(FieldPath path, Json value) {
    Json now = JobNow();
    SetField(&now, path, std::move(value));
    ASSERT_TRUE(store_->Update(TfJobs(), now, {}).ok());
    Settle();
  }
};

TEST_F(GangTest, VolcanoAdmitsBeforePodsAreMade) {
  UseScheduler("volcano");
  Json job = GangJob();
  SetField(&job, {"spec", "runPolicy", "schedulingPolicy", "priorityClass"}, "high");
  Submit(job);
  EXPECT_EQ(Names(Pods()), "");
  EXPECT_EQ(Names(Services()), "job-ps-0 job-worker-0 job-worker-1");
  const Json group = Group(VolcanoPodGroups());
  EXPECT_EQ(group.Find("spec")->Dump(),
            R"({"minMember":3,"minResources":{"cpu":"1","memory":"2Gi","nvidia.com/gpu":"2"},)"
            R"("queue":"default","priorityClassName":"high"})");
  EXPECT_EQ(UidOf(JobNow()), StringField(*ControllerOf(group), {"uid"}));
  Phase("Pending");
  EXPECT_EQ(Names(Pods()), "");
  Phase("Inqueue");
  EXPECT_EQ(Names(Pods()), "job-ps-0 job-worker-0 job-worker-1");
  const Json pod = Pod("job-worker-0");
  EXPECT_EQ(StringField(pod, {"spec", "schedulerName"}), "volcano");
  EXPECT_EQ(FindField(pod, {"metadata", "annotations"})->Dump(),
            R"({"scheduling.k8s.io/group-name":"job","volcano.sh/task-spec":"worker"})");
}

TEST_F(GangTest, ServersThatShareAPodForAWhileAskForOnePlace) {
  UseScheduler("volcano");
  Json job = GangJob();
  Json* const replicas = job.FindMutable("spec")->FindMutable("tfReplicaSpecs");
  Json servers = *replicas->Find("Worker");
  SetField(&servers, {"replicas"}, 2);
  SetField(&servers, {"elasticPolicy", "maxReplicas"}, 5);
  Json* const containers =
      servers.FindMutable("template")->FindMutable("spec")->FindMutable("containers");
  SetField(&(*containers->mutable_items())[0], {"command"},
           Json::Parse(R"(["weft","server"])").value());
  replicas->Set("PS", std::move(servers));
  Submit(job);
  // Two pods for five servers, and two workers.
  EXPECT_EQ(Group(VolcanoPodGroups()).Find("spec")->Dump(),
            R"({"minMember":4,"minResources":{"cpu":"2","memory":"4Gi","nvidia.com/gpu":"4"},)"
            R"("queue":"default"})");
}

TEST_F(GangTest, TheGroupFollowsTheJob) {
  UseScheduler("volcano");
  Submit(GangJob());
  Phase("Running");
  SetSpec({"spec", "tfReplicaSpecs", "Worker", "replicas"}, 4);
  EXPECT_EQ(IntField(Group(VolcanoPodGroups()), {"spec", "minMember"}), 5);
  EXPECT_EQ(StringField(Group(VolcanoPodGroups()), {"status", "phase"}), "Running");
  Fate("job-worker-0", "Succeeded");
  EXPECT_EQ(Names(VolcanoPodGroups()), "");
  EXPECT_EQ(Conditions(), "Created+ Succeeded+");
  MakeController();
  Advance(absl::Hours(1));
  EXPECT_EQ(Names(VolcanoPodGroups()), "");
}

TEST_F(GangTest, SuspensionGivesTheGroupBack) {
  UseScheduler("volcano");
  Submit(GangJob());
  Phase("Running");
  SetSpec({"spec", "runPolicy", "suspend"}, true);
  EXPECT_EQ(Names(VolcanoPodGroups()), "");
  EXPECT_EQ(Names(Pods()), "");
  SetSpec({"spec", "runPolicy", "suspend"}, false);
  EXPECT_EQ(Names(VolcanoPodGroups()), "job");
  EXPECT_EQ(Names(Pods()), "");
}

TEST_F(GangTest, TheSchedulerPluginsCountByLabel) {
  UseScheduler("scheduler-plugins-scheduler");
  Json job = GangJob();
  SetField(
      &job, {"spec", "runPolicy", "schedulingPolicy"},
      Json::Parse(R"({"minAvailable":2,"scheduleTimeoutSeconds":60,"minResources":{"cpu":"2"}})")
          .value());
  Submit(job);
  EXPECT_EQ(Names(Pods()), "job-ps-0 job-worker-0 job-worker-1");
  EXPECT_EQ(Group(PodGroups()).Find("spec")->Dump(),
            R"({"minMember":2,"minResources":{"cpu":"2"},"scheduleTimeoutSeconds":60})");
  const Json pod = Pod("job-ps-0");
  EXPECT_EQ(StringField(pod, {"metadata", "labels", "scheduling.x-k8s.io/pod-group"}), "job");
  EXPECT_EQ(StringField(pod, {"spec", "schedulerName"}), "scheduler-plugins-scheduler");
  EXPECT_EQ(Names(VolcanoPodGroups()), "");
}

TEST_F(GangTest, AnotherSchedulerOfTheTemplateStays) {
  UseScheduler("volcano");
  Json worker = Replica(1, "");
  SetField(&worker, {"template", "spec", "schedulerName"}, "mine");
  Submit(JobOf({{"Worker", std::move(worker)}}));
  Phase("Inqueue");
  EXPECT_EQ(StringField(Pod("job-worker-0"), {"spec", "schedulerName"}), "mine");
  ListOptions events;
  events.field_selector = "reason=SetPodTemplateSchedulerName";
  EXPECT_FALSE(store_->List(Events(), events).value().items.empty());
}

TEST_F(GangTest, ALostGroupComesBackAndASecondLookWritesNothing) {
  UseScheduler("volcano");
  Submit(GangJob());
  Phase("Running");
  ASSERT_TRUE(store_->Delete(VolcanoPodGroups(), {"default", "job"}, {}).ok());
  Settle();
  EXPECT_EQ(Names(VolcanoPodGroups()), "job");
  EXPECT_EQ(Names(Pods()), "job-ps-0 job-worker-0 job-worker-1");
  const int64_t revision = Revision();
  MakeController();
  Settle();
  EXPECT_EQ(Revision(), revision);
}

// Its watches tell nothing new while it lags.
class LaggingStore : public PassingStore {
 public:
  using PassingStore::PassingStore;
  StatusOr<std::unique_ptr<Watch>> StartWatch(const ResourceType& type, const WatchOptions& options,
                                              WatchSink sink) override {
    if (type.kind != "PodGroup") return PassingStore::StartWatch(type, options, std::move(sink));
    return PassingStore::StartWatch(type, options,
                                    [this, sink = std::move(sink)](const WatchEvent& event) {
                                      if (lags) return held.push_back([=] { sink(event); });
                                      sink(event);
                                    });
  }
  bool lags = false;
  std::vector<std::function<void()>> held;
};

TEST_F(GangTest, NoPodIsMadeOnAnOldCopyOfAGroupThatWasLetIn) {
  LaggingStore lagging(store_.get());
  options_.store = &lagging;
  UseScheduler("volcano");
  Submit(GangJob());
  Phase("Inqueue");
  EXPECT_EQ(Names(Pods()), "job-ps-0 job-worker-0 job-worker-1");
  lagging.lags = true;
  SetSpec({"spec", "runPolicy", "suspend"}, true);
  EXPECT_EQ(Names(VolcanoPodGroups()), "");
  SetSpec({"spec", "runPolicy", "suspend"}, false);
  // What waits for the news of the deletion gives that up.
  Advance(absl::Minutes(6));
  EXPECT_EQ(Names(Pods()), "");
  lagging.lags = false;
  for (const auto& tell : lagging.held) tell();
  Advance(absl::Minutes(6));
  EXPECT_EQ(Names(VolcanoPodGroups()), "job");
  EXPECT_EQ(Names(Pods()), "");
  Phase("Inqueue");
  EXPECT_EQ(Names(Pods()), "job-ps-0 job-worker-0 job-worker-1");
  controller_.reset();
}

}  // namespace
}  // namespace weft::platform
