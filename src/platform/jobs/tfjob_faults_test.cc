// SPDX-License-Identifier: Apache-2.0
// The controller killed, or refused, at every single call that it makes: it must end where it ends
// without faults.
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

#include "platform/jobs/controller_fixture_test.h"
#include "platform/jobs/tfjob_controller.h"
#include "platform/object/fields.h"
#include "platform/store/api_error.h"
#include "platform/store/embedded/embedded_store.h"
#include "platform/store/faulty_store.h"
#include "platform/store/passing_store.h"

namespace weft::platform {
namespace {

Json JobWithARestart() {
  return Json::Parse(
             R"({"apiVersion":"kubeflow.org/v1","kind":"TFJob","metadata":{"name":"job"},"spec":{
      "runPolicy":{"cleanPodPolicy":"All","backoffLimit":3,"activeDeadlineSeconds":100000},
      "tfReplicaSpecs":{
        "PS":{"replicas":1,"template":{"spec":{"containers":[{"name":"tensorflow","image":"i"}]}}},
        "Worker":{"replicas":2,"restartPolicy":"ExitCode",
                  "template":{"spec":{"containers":[{"name":"tensorflow","image":"i"}]}}}}}})")
      .value();
}

// A job that is made, loses a worker twice, is scaled, suspended, resumed and succeeds.
class Scenario {
 public:
  Scenario(int64_t at, Fault fault) {
    EmbeddedStore::Options options;
    options.clock = &clock_;
    store_ = EmbeddedStore::Open(std::move(options)).value();
    faulty_ = std::make_unique<FaultyStore>(store_.get(), at, fault);
    MakeController(faulty_.get());
  }

  // What is left in the end, in words.
  std::string Run() {
    EXPECT_TRUE(store_->Create(TfJobs(), "default", JobWithARestart(), {}).ok());
    Settle();
    for (int i = 0; i < 2; ++i) {
      AllRun();
      Fate("job-worker-1", "Failed", 137);
      Settle();
    }
    Change({"spec", "tfReplicaSpecs", "Worker", "replicas"}, 3);
    Change({"spec", "runPolicy", "suspend"}, true);
    Change({"spec", "runPolicy", "suspend"}, false);
    AllRun();
    const std::string running = Describe();
    Fate("job-worker-0", "Succeeded", 0);
    Settle();
    return absl::StrCat(running, "\n", Describe());
  }
  int64_t calls() const { return faulty_->calls(); }
  bool has_failed() const { return faulty_->has_failed(); }
  bool was_revived() const { return was_revived_; }

 private:
  void MakeController(ObjectStore* store) {
    controller_.reset();
    TfJobController::Options options;
    options.store = store;
    options.clock = &clock_;
    controller_ = std::make_unique<TfJobController>(options);
  }

  void Settle() {
    for (int round = 0; round < 12; ++round) {
      controller_->Maintain();
      for (int i = 0; i < 50 && controller_->Step(); ++i) NoteRevival();
      // Its successor starts from the store alone.
      if (faulty_->is_dead() && !is_replaced_) {
        is_replaced_ = true;
        MakeController(store_.get());
      }
      clock_.Advance(absl::Minutes(1));
    }
  }

  // A job that has ended makes no pod any more.
  void NoteRevival() {
    const ObjectPtr job = store_->Get(TfJobs(), {"default", "job"}).value();
    const Json* const conditions = FindField(*job, {"status", "conditions"});
    bool has_ended = false;
    for (const Json& condition : conditions == nullptr ? Json::Array() : conditions->items()) {
      const std::string type = StringField(condition, {"type"});
      has_ended = has_ended || ((type == "Succeeded" || type == "Failed") &&
                                StringField(condition, {"status"}) == "True");
    }
    const size_t pods = store_->List(Pods(), {}).value().items.size();
    was_revived_ = was_revived_ || (had_ended_ && pods > pods_at_end_);
    had_ended_ = has_ended;
    pods_at_end_ = pods;
  }

  void Change(FieldPath path, Json value) {
    Json job = *store_->Get(TfJobs(), {"default", "job"}).value();
    SetField(&job, path, std::move(value));
    EXPECT_TRUE(store_->Update(TfJobs(), job, {}).ok());
    Settle();
  }
  void AllRun() {
    const ObjectList pods = store_->List(Pods(), {}).value();
    for (const ObjectPtr& pod : pods.items) {
      if (StringField(*pod, {"status", "phase"}) == "Pending") Fate(NameOf(*pod), "Running", 0);
    }
    Settle();
  }
  void Fate(const std::string& name, const std::string& phase, int64_t code) {
    const StatusOr<ObjectPtr> found = store_->Get(Pods(), {"default", name});
    ASSERT_TRUE(found.ok()) << found.status();
    Json pod = **found;
    SetField(&pod, {"status", "phase"}, phase);
    Json status;
    status.Set("name", "tensorflow");
    if (phase != "Running") SetField(&status, {"state", "terminated", "exitCode"}, code);
    SetField(&pod, {"status", "containerStatuses"}, Json(Json::Array{std::move(status)}));
    ASSERT_TRUE(store_->Update(Pods(), pod, {"status"}).ok());
  }

  std::string Describe() {
    std::string text;
    for (const ResourceType* type : {&Pods(), &Services()}) {
      const ObjectList list = store_->List(*type, {}).value();
      for (const ObjectPtr& object : list.items) {
        absl::StrAppend(&text, type->kind, " ", NameOf(*object), " ",
                        StringField(*object, {"status", "phase"}), "; ");
      }
    }
    const Json job = *store_->Get(TfJobs(), {"default", "job"}).value();
    for (const Json& condition : FindField(job, {"status", "conditions"})->items()) {
      absl::StrAppend(&text, StringField(condition, {"type"}), "=",
                      StringField(condition, {"status"}), " ");
    }
    return absl::StrCat(text, "restarts ",
                        IntField(job, {"status", "restarts", "worker-1", "count"}));
  }

  FakeClock clock_{absl::FromUnixSeconds(1700000000)};
  std::unique_ptr<EmbeddedStore> store_;
  std::unique_ptr<FaultyStore> faulty_;
  std::unique_ptr<TfJobController> controller_;
  bool is_replaced_ = false;
  bool had_ended_ = false;
  bool was_revived_ = false;
  size_t pods_at_end_ = 0;
};

TEST(TfJobFaultsTest, EndsInTheSamePlaceWhereverItIsInterrupted) {
  Scenario calm(INT64_MAX, Fault::kRefused);
  const std::string wanted = calm.Run();
  ASSERT_EQ(
      wanted,
      "Pod job-ps-0 Running; Pod job-worker-0 Running; Pod job-worker-1 Running; Pod job-worker-2 "
      "Running; "
      "Service job-ps-0 ; Service job-worker-0 ; Service job-worker-1 ; Service job-worker-2 ; "
      "Created=True Suspended=False Running=True restarts 2\n"
      "Created=True Suspended=False Running=False Succeeded=True restarts 2");
  ASSERT_GT(calm.calls(), 50);
  for (const Fault fault : kFaults) {
    for (int64_t at = 0; at < calm.calls(); ++at) {
      Scenario scenario(at, fault);
      ASSERT_EQ(scenario.Run(), wanted) << "call " << at << ", fault " << static_cast<int>(fault);
      EXPECT_TRUE(scenario.has_failed()) << "call " << at;
      ASSERT_FALSE(scenario.was_revived())
          << "call " << at << ", fault " << static_cast<int>(fault);
    }
  }
}

// As a quota of no pods.
class RefusingStore : public PassingStore {
 public:
  using PassingStore::PassingStore;
  StatusOr<ObjectPtr> Create(const ResourceType& type, const std::string& space, Json object,
                             const WriteOptions& options) override {
    if (is_full && type.kind == "Pod") return ApiError(code, reason, message);
    if (type.kind == "Event") ++events;
    return PassingStore::Create(type, space, std::move(object), options);
  }
  StatusOr<ObjectPtr> Patch(const ResourceType& type, const ObjectName& name, PatchKind kind,
                            const Json& patch, const WriteOptions& options) override {
    if (type.kind == "Event") ++events;
    return PassingStore::Patch(type, name, kind, patch, options);
  }
  bool is_full = true;
  int code = 403;
  std::string reason = "Forbidden";
  std::string message = "exceeded quota: pods=0";
  int events = 0;
};

class RefusalTest : public ControllerFixture {
 protected:
  RefusalTest() {
    options_.store = &refusing_;
    MakeController();
  }
  void Change(FieldPath path, Json value) {
    Json job = JobNow();
    SetField(&job, path, std::move(value));
    ASSERT_TRUE(store_->Update(TfJobs(), job, {}).ok());
    Settle();
  }
  // In steps of a second, as the time of a cluster goes.
  void Pass(int seconds) {
    for (int i = 0; i < seconds; ++i) Advance(absl::Seconds(1));
  }
  RefusingStore refusing_{store_.get()};
};

TEST_F(RefusalTest, PodsAreMadeSoonAfterAQuotaGrows) {
  Submit(JobOf({{"Worker", Replica(2, "")}}));
  const int first = refusing_.events;
  Pass(600);
  EXPECT_EQ(Names(Pods()), "");
  EXPECT_LE(refusing_.events - first, 16);
  EXPECT_EQ(Conditions(), "ReplicaFailure+ Created+");
  refusing_.is_full = false;
  Pass(60);
  EXPECT_EQ(Names(Pods()), "job-worker-0 job-worker-1");
  EXPECT_EQ(Conditions(), "Created+");
}

TEST_F(RefusalTest, TheConditionSaysWhatTheServerSaid) {
  Submit(JobOf({{"Worker", Replica(2, "")}}));
  const Json job = JobNow();
  const Json* const condition = FindCondition(*job.Find("status"), "ReplicaFailure");
  ASSERT_NE(condition, nullptr);
  EXPECT_EQ(StringField(*condition, {"reason"}), "FailedCreate");
  EXPECT_EQ(StringField(*condition, {"message"}), "exceeded quota: pods=0");
  // Other words of the same refusal, as a quota has them at each try, are no news for a while.
  const std::string revision = RevisionOf(JobNow());
  refusing_.message = "exceeded quota: pods=0, requested: pods=2";
  Pass(30);
  EXPECT_EQ(RevisionOf(JobNow()), revision);
  Pass(600);
  EXPECT_EQ(StringField(*FindCondition(*JobNow().Find("status"), "ReplicaFailure"), {"message"}),
            refusing_.message);
}

TEST_F(RefusalTest, AJobThatWantsNoMorePodsIsRefusedNone) {
  refusing_.is_full = false;
  Submit(JobOf({{"Worker", Replica(2, "")}}));
  Fate("job-worker-0", "Running");
  Fate("job-worker-1", "Running");
  refusing_.is_full = true;
  Change({"spec", "tfReplicaSpecs", "Worker", "replicas"}, 3);
  EXPECT_EQ(Conditions(), "ReplicaFailure+ Created+ Running+");
  Change({"spec", "tfReplicaSpecs", "Worker", "replicas"}, 2);
  EXPECT_EQ(Conditions(), "Created+ Running+");
  Change({"spec", "tfReplicaSpecs", "Worker", "replicas"}, 3);
  Change({"spec", "runPolicy", "suspend"}, true);
  EXPECT_EQ(Conditions(), "Created+ Running- Suspended+");
}

TEST_F(RefusalTest, WhatAnotherTryMayNotMeetIsNoRefusal) {
  refusing_.code = 500;
  refusing_.reason = "InternalError";
  Submit(JobOf({{"Worker", Replica(1, "")}}));
  EXPECT_EQ(Conditions(), "Created+");
}

TEST_F(RefusalTest, ADeadlineHoldsThoughNoPodCanBeMade) {
  Json job = JobOf({{"Worker", Replica(2, "")}});
  SetField(&job, {"spec", "runPolicy", "activeDeadlineSeconds"}, 100);
  Submit(job);
  Pass(99);
  EXPECT_EQ(Conditions(), "ReplicaFailure+ Created+");
  Pass(1);
  EXPECT_EQ(Conditions(), "Created+ Failed+");
}

}  // namespace
}  // namespace weft::platform
