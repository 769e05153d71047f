// SPDX-License-Identifier: Apache-2.0
#include "platform/store/embedded/embedded_store.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/match.h"

#include "platform/object/fields.h"
#include "platform/object/object_time.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Json J(absl::string_view text) { return Json::Parse(text).value(); }

Json ConfigMap(const std::string& name, const std::string& value = "v") {
  Json object = J(R"({"apiVersion":"v1","kind":"ConfigMap"})");
  SetField(&object, {"metadata", "name"}, name);
  SetField(&object, {"data", "key"}, value);
  return object;
}

Json PodNamed(const std::string& name) {
  Json object =
      J(R"({"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"name":"c","image":"i:1"}]}})");
  SetField(&object, {"metadata", "name"}, name);
  return object;
}

Json Job(const std::string& version = "v1") {
  Json object = J(
      R"({"kind":"TFJob","metadata":{"name":"job"},"spec":{"tfReplicaSpecs":{"Worker":{"replicas":2,
      "template":{"spec":{"containers":[{"name":"tensorflow","image":"i"}]}}}}}})");
  object.Set("apiVersion", "kubeflow.org/" + version);
  return object;
}

void OwnedBy(const Json& owner, Json* object) {
  Json reference;
  reference.Set("apiVersion", StringField(owner, {"apiVersion"}));
  reference.Set("kind", StringField(owner, {"kind"}));
  reference.Set("name", NameOf(owner));
  reference.Set("uid", UidOf(owner));
  reference.Set("controller", true);
  Json owners = FindField(*object, {"metadata", "ownerReferences"}) == nullptr
                    ? Json::MakeArray()
                    : *FindField(*object, {"metadata", "ownerReferences"});
  owners.Append(std::move(reference));
  SetField(object, {"metadata", "ownerReferences"}, std::move(owners));
}

const ResourceType& ConfigMaps() { return *FindResource("", "configmaps"); }

class EmbeddedStoreTest : public ::testing::Test {
 protected:
  EmbeddedStoreTest() : store_(Make(nullptr, 10000)) {}

  std::unique_ptr<EmbeddedStore> Make(std::unique_ptr<Journal> journal, size_t window) {
    EmbeddedStore::Options options;
    options.clock = &clock_;
    options.journal = std::move(journal);
    options.history_window = window;
    options.ready_objects = 2;  // most of what these tests read was packed
    options.random = [this] {
      return random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    };
    return EmbeddedStore::Open(std::move(options)).value();
  }
  Json Created(const ResourceType& type, Json object) {
    const auto created = store_->Create(type, "default", std::move(object), {});
    EXPECT_TRUE(created.ok()) << created.status();
    return created.ok() ? **created : Json();
  }
  bool Exists(const ResourceType& type, const std::string& name) {
    return store_->Get(type, {"default", name}).ok();
  }
  Json Read(const ResourceType& type, const std::string& name) {
    return *store_->Get(type, {"default", name}).value();
  }

  FakeClock clock_{absl::FromUnixSeconds(1700000000)};
  uint64_t random_ = 1;
  std::unique_ptr<EmbeddedStore> store_;
};

TEST_F(EmbeddedStoreTest, CreatesWithMetadata) {
  const Json object = Created(ConfigMaps(), ConfigMap("a"));
  EXPECT_EQ(StringField(object, {"metadata", "creationTimestamp"}), "2023-11-14T22:13:20Z");
  EXPECT_EQ(UidOf(object).size(), 36u);
  EXPECT_EQ(NamespaceOf(object), "default");
  EXPECT_NE(RevisionOf(object), "");
  const auto again = store_->Create(ConfigMaps(), "default", ConfigMap("a"), {});
  EXPECT_TRUE(IsObjectExists(again.status()));
  EXPECT_EQ(again.status().message(), "configmaps \"a\" already exists");
  EXPECT_EQ(StatusObject(again.status()).Find("details")->Dump(),
            R"({"name":"a","kind":"configmaps"})");
}

// As a cluster keeps it; what is applied again then differs in nothing.
TEST_F(EmbeddedStoreTest, KeepsNoEmptyMetadata) {
  Json object = ConfigMap("a");
  for (const char* name : {"labels", "annotations"})
    SetField(&object, {"metadata", name}, Json::MakeObject());
  SetField(&object, {"metadata", "finalizers"}, Json::MakeArray());
  const Json made = Created(ConfigMaps(), object);
  for (const char* name : {"labels", "annotations", "finalizers"})
    EXPECT_EQ(FindField(made, {"metadata", name}), nullptr) << name;
  const Json patch = J(R"({"metadata":{"annotations":{},"labels":{"a":"b"}}})");
  const ObjectPtr patched =
      store_->Patch(ConfigMaps(), {"default", "a"}, PatchKind::kMerge, patch, {}).value();
  EXPECT_EQ(FindField(*patched, {"metadata", "annotations"}), nullptr);
  EXPECT_EQ(FindField(*patched, {"metadata", "labels"})->Dump(), R"({"a":"b"})");
}

TEST_F(EmbeddedStoreTest, RefusesBadNamesAndNamespaces) {
  EXPECT_EQ(
      HttpCodeOf(store_->Create(ConfigMaps(), "default", ConfigMap("Not_A_Name"), {}).status()),
      422);
  EXPECT_EQ(HttpCodeOf(store_->Create(ConfigMaps(), "default", ConfigMap(""), {}).status()), 422);
  EXPECT_EQ(HttpCodeOf(store_->Create(ConfigMaps(), "default", J(R"({"data":{}})"), {}).status()),
            422);
  const Status away = store_->Create(ConfigMaps(), "away", ConfigMap("a"), {}).status();
  EXPECT_TRUE(IsObjectNotFound(away));
  EXPECT_EQ(away.message(), "namespaces \"away\" not found");
  EXPECT_EQ(
      HttpCodeOf(
          store_->Create(ConfigMaps(), "default", ConfigMap("a", std::string(2 << 20, 'x')), {})
              .status()),
      422);
  Json event = J(R"({"metadata":{"name":"e"},"involvedObject":{}})");
  event.Set("message", std::string(2 << 20, 'x'));
  EXPECT_EQ(HttpCodeOf(store_->Create(Events(), "default", event, {}).status()), 413);
}

TEST_F(EmbeddedStoreTest, GeneratesNames) {
  Json object = ConfigMap("");
  SetField(&object, {"metadata", "generateName"}, "run-");
  const std::string first = NameOf(Created(ConfigMaps(), object));
  const std::string second = NameOf(Created(ConfigMaps(), object));
  EXPECT_TRUE(absl::StartsWith(first, "run-")) << first;
  EXPECT_EQ(first.size(), 9u);
  EXPECT_NE(first, second);
}

TEST_F(EmbeddedStoreTest, UpdatesOnlyTheRevisionThatTheClientSaw) {
  Json object = Created(ConfigMaps(), ConfigMap("a"));
  Json stale = object;
  SetField(&object, {"data", "key"}, "w");
  const ObjectPtr updated = store_->Update(ConfigMaps(), object, {}).value();
  EXPECT_NE(RevisionOf(*updated), RevisionOf(stale));
  const Status conflict = store_->Update(ConfigMaps(), stale, {}).status();
  EXPECT_TRUE(IsConflict(conflict)) << conflict;
  EXPECT_EQ(HttpCodeOf(conflict), 409);
  // Nothing changes, so nothing is written.
  EXPECT_EQ(RevisionOf(*store_->Update(ConfigMaps(), *updated, {}).value()), RevisionOf(*updated));
  Json other = *updated;
  SetField(&other, {"metadata", "uid"}, "another");
  EXPECT_TRUE(IsConflict(store_->Update(ConfigMaps(), other, {}).status()));
}

TEST_F(EmbeddedStoreTest, KeepsStatusAndSpecApart) {
  Json job = Created(TfJobs(), Job());
  EXPECT_EQ(IntField(job, {"metadata", "generation"}), 1);
  SetField(&job, {"status", "startTime"}, "2023-11-14T22:13:20Z");
  SetField(&job, {"spec", "successPolicy"}, "AllWorkers");
  job = *store_->Update(TfJobs(), job, {"status"}).value();
  EXPECT_EQ(StringField(job, {"spec", "successPolicy"}), "");
  EXPECT_EQ(IntField(job, {"metadata", "generation"}), 1);
  SetField(&job, {"status", "startTime"}, "other");
  SetField(&job, {"spec", "successPolicy"}, "AllWorkers");
  job = *store_->Update(TfJobs(), job, {}).value();
  EXPECT_EQ(StringField(job, {"status", "startTime"}), "2023-11-14T22:13:20Z");
  EXPECT_EQ(IntField(job, {"metadata", "generation"}), 2);
  SetField(&job, {"metadata", "resourceVersion"}, "");
  EXPECT_EQ(HttpCodeOf(store_->Update(TfJobs(), job, {}).status()), 422);
}

TEST_F(EmbeddedStoreTest, ChecksJobsWithThePathOfTheField) {
  Json job = Job();
  SetField(&job, {"spec", "tfReplicaSpecs", "Worker", "replicas"}, "two");
  const Status status = store_->Create(TfJobs(), "default", job, {}).status();
  EXPECT_EQ(HttpCodeOf(status), 422);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("spec.tfReplicaSpecs.Worker.replicas: holds \"two\""));
  EXPECT_EQ(
      StringField(StatusObject(status).Find("details")->Find("causes")->items()[0], {"field"}),
      "spec.tfReplicaSpecs.Worker.replicas");
  Json unknown = Job();
  SetField(&unknown, {"spec", "sucessPolicy"}, "");
  EXPECT_THAT(std::string(store_->Create(TfJobs(), "default", unknown, {}).status().message()),
              HasSubstr("Did you mean 'successPolicy'"));
  WriteOptions lenient;
  lenient.is_strict = false;
  EXPECT_TRUE(store_->Create(TfJobs(), "default", unknown, lenient).ok());
}

TEST_F(EmbeddedStoreTest, KeepsOldVersionsApartByTheirDefault) {
  const Json job = Created(TfJobs(), Job("v1beta1"));
  EXPECT_EQ(StringField(job, {"apiVersion"}), "kubeflow.org/v1");
  EXPECT_EQ(StringField(job, {"spec", "cleanPodPolicy"}), "Running");
}

TEST_F(EmbeddedStoreTest, FixesWhatAPodRuns) {
  Json pod = Created(Pods(), PodNamed("p"));
  EXPECT_EQ(StringField(pod, {"status", "phase"}), "Pending");
  Json changed = pod;
  SetField(&changed, {"spec", "restartPolicy"}, "Never");
  EXPECT_EQ(HttpCodeOf(store_->Update(Pods(), changed, {}).status()), 422);
  EXPECT_EQ(
      HttpCodeOf(store_->Create(Pods(), "default", J(R"({"metadata":{"name":"q"},"spec":{}})"), {})
                     .status()),
      422);
}

TEST_F(EmbeddedStoreTest, PatchesAllKindsButStrategicOfCustomTypes) {
  Created(TfJobs(), Job());
  const ObjectName name{"default", "job"};
  EXPECT_EQ(HttpCodeOf(store_->Patch(TfJobs(), name, PatchKind::kStrategic, J("{}"), {}).status()),
            415);
  const auto patched = store_->Patch(TfJobs(), name, PatchKind::kMerge,
                                     J(R"({"metadata":{"labels":{"a":"b"}}})"), {});
  EXPECT_EQ(StringField(**patched, {"metadata", "labels", "a"}), "b");
  EXPECT_EQ(IntField(**patched, {"metadata", "generation"}), 1);
  EXPECT_EQ(
      HttpCodeOf(
          store_->Patch(TfJobs(), name, PatchKind::kMerge, J(R"({"metadata":{"name":"x"}})"), {})
              .status()),
      422);
  EXPECT_TRUE(IsConflict(store_
                             ->Patch(TfJobs(), name, PatchKind::kMerge,
                                     J(R"({"metadata":{"resourceVersion":"1"}})"), {})
                             .status()));
}

TEST_F(EmbeddedStoreTest, DryRunsChangeNothing) {
  WriteOptions dry;
  dry.is_dry_run = true;
  EXPECT_TRUE(store_->Create(ConfigMaps(), "default", ConfigMap("a"), dry).ok());
  EXPECT_FALSE(Exists(ConfigMaps(), "a"));
  Json changed = Created(ConfigMaps(), ConfigMap("a"));
  DeleteOptions gone;
  gone.is_dry_run = true;
  EXPECT_TRUE(store_->Delete(ConfigMaps(), {"default", "a"}, gone).ok());
  EXPECT_TRUE(Exists(ConfigMaps(), "a"));
  SetField(&changed, {"data", "key"}, "new");
  const auto same = store_->Update(ConfigMaps(), changed, dry);
  EXPECT_EQ(StringField(**same, {"data", "key"}), "new");
  EXPECT_EQ(RevisionOf(**same), RevisionOf(changed));
}

TEST_F(EmbeddedStoreTest, SelectsByTheFieldsThatAClusterKnows) {
  Created(Pods(), PodNamed("a"));
  ListOptions options;
  options.field_selector = "status.phase=Pending,metadata.name=a";
  EXPECT_EQ(store_->List(Pods(), options)->items.size(), 1u);
  options.field_selector = "spec.containers=x";
  const Status status = store_->List(Pods(), options).status();
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("only by metadata.name"));
}

TEST_F(EmbeddedStoreTest, TellsHowSureAPodIsOfItsResources) {
  const auto quality = [&](const char* name, const char* resources) {
    Json pod = PodNamed(name);
    pod.FindMutable("spec")
        ->FindMutable("containers")
        ->mutable_items()
        ->front()
        .Set("resources", J(resources));
    return StringField(Created(Pods(), std::move(pod)), {"status", "qosClass"});
  };
  EXPECT_EQ(quality("a", "{}"), "BestEffort");
  EXPECT_EQ(quality("b", R"({"requests":{"cpu":"1"}})"), "Burstable");
  EXPECT_EQ(quality("c", R"({"limits":{"cpu":"1","memory":"1Gi"}})"), "Guaranteed");
  EXPECT_EQ(quality("d", R"({"limits":{"cpu":"2","memory":"1Gi"},"requests":{"cpu":"1"}})"),
            "Burstable");
}

TEST_F(EmbeddedStoreTest, DeletesWithPreconditions) {
  const Json object = Created(ConfigMaps(), ConfigMap("a"));
  DeleteOptions options;
  options.uid = "another";
  EXPECT_TRUE(IsConflict(store_->Delete(ConfigMaps(), {"default", "a"}, options).status()));
  options.uid = UidOf(object);
  EXPECT_TRUE(store_->Delete(ConfigMaps(), {"default", "a"}, options).ok());
  EXPECT_TRUE(IsObjectNotFound(store_->Delete(ConfigMaps(), {"default", "a"}, options).status()));
}

TEST_F(EmbeddedStoreTest, WaitsForFinalizers) {
  Json object = ConfigMap("a");
  SetField(&object, {"metadata", "finalizers"}, Json(Json::Array{Json("x/y")}));
  Created(ConfigMaps(), object);
  EXPECT_TRUE(IsTerminating(*store_->Delete(ConfigMaps(), {"default", "a"}, {}).value()));
  Json held = Read(ConfigMaps(), "a");
  EraseField(&held, {"metadata", "finalizers"});
  EraseField(&held, {"metadata", "deletionTimestamp"});  // which no client can take back
  EXPECT_TRUE(store_->Update(ConfigMaps(), held, {}).ok());
  EXPECT_FALSE(Exists(ConfigMaps(), "a"));
}

TEST_F(EmbeddedStoreTest, DeletesWhatAnObjectOwns) {
  const Json job = Created(TfJobs(), Job());
  Json child = ConfigMap("child");
  OwnedBy(job, &child);
  const Json kept_child = Created(ConfigMaps(), child);
  Json grandchild = ConfigMap("grandchild");
  OwnedBy(kept_child, &grandchild);
  Created(ConfigMaps(), grandchild);
  Json shared = ConfigMap("shared");
  OwnedBy(job, &shared);
  OwnedBy(Created(ConfigMaps(), ConfigMap("other-owner")), &shared);
  // One of them controls it.
  shared.FindMutable("metadata")
      ->FindMutable("ownerReferences")
      ->mutable_items()
      ->back()
      .Set("controller", false);
  Created(ConfigMaps(), shared);
  ASSERT_TRUE(store_->Delete(TfJobs(), {"default", "job"}, {}).ok());
  EXPECT_FALSE(Exists(ConfigMaps(), "child"));
  EXPECT_FALSE(Exists(ConfigMaps(), "grandchild"));
  EXPECT_EQ(FindField(Read(ConfigMaps(), "shared"), {"metadata", "ownerReferences"})->size(), 1u);
  // Its owner went while it was being made.
  Json late = ConfigMap("late");
  OwnedBy(job, &late);
  EXPECT_TRUE(store_->Create(ConfigMaps(), "default", late, {}).ok());
  EXPECT_FALSE(Exists(ConfigMaps(), "late"));
}

TEST_F(EmbeddedStoreTest, OrphansWhenAsked) {
  Json child = ConfigMap("child");
  OwnedBy(Created(TfJobs(), Job()), &child);
  Created(ConfigMaps(), child);
  DeleteOptions options;
  options.propagation = Propagation::kOrphan;
  ASSERT_TRUE(store_->Delete(TfJobs(), {"default", "job"}, options).ok());
  EXPECT_EQ(FindField(Read(ConfigMaps(), "child"), {"metadata", "ownerReferences"}), nullptr);
}

TEST_F(EmbeddedStoreTest, DeletesInTheForeground) {
  Json child = ConfigMap("child");
  SetField(&child, {"metadata", "finalizers"}, Json(Json::Array{Json("x/y")}));
  OwnedBy(Created(TfJobs(), Job()), &child);
  Created(ConfigMaps(), child);
  DeleteOptions options;
  options.propagation = Propagation::kForeground;
  ASSERT_TRUE(store_->Delete(TfJobs(), {"default", "job"}, options).ok());
  EXPECT_TRUE(IsTerminating(Read(TfJobs(), "job")));
  // A controller that has not heard of it makes one more: the job would never go.
  Json late = ConfigMap("late");
  OwnedBy(Read(TfJobs(), "job"), &late);
  ASSERT_TRUE(store_->Create(ConfigMaps(), "default", late, {}).ok());
  EXPECT_FALSE(Exists(ConfigMaps(), "late"));
  EXPECT_TRUE(Exists(TfJobs(), "job"));
  Json held = Read(ConfigMaps(), "child");
  EraseField(&held, {"metadata", "finalizers"});
  ASSERT_TRUE(store_->Update(ConfigMaps(), held, {}).ok());
  EXPECT_FALSE(Exists(ConfigMaps(), "child"));
  EXPECT_FALSE(Exists(TfJobs(), "job"));
}

TEST_F(EmbeddedStoreTest, GivesRunningPodsTheirGrace) {
  Created(Pods(), PodNamed("waiting"));
  ASSERT_TRUE(store_->Delete(Pods(), {"default", "waiting"}, {}).ok());
  EXPECT_FALSE(Exists(Pods(), "waiting"));
  Json pod = Created(Pods(), PodNamed("running"));
  SetField(&pod, {"spec", "nodeName"}, "here");
  ASSERT_TRUE(store_->Update(Pods(), pod, {"binding"}).ok());
  ASSERT_TRUE(store_->Delete(Pods(), {"default", "running"}, {}).ok());
  EXPECT_EQ(IntField(Read(Pods(), "running"), {"metadata", "deletionGracePeriodSeconds"}), 30);
  EXPECT_EQ(StringField(Read(Pods(), "running"), {"metadata", "deletionTimestamp"}),
            "2023-11-14T22:13:50Z");
  const std::string revision = RevisionOf(Read(Pods(), "running"));
  ASSERT_TRUE(store_->Delete(Pods(), {"default", "running"}, {}).ok());
  EXPECT_EQ(RevisionOf(Read(Pods(), "running")), revision);
  DeleteOptions now;
  now.grace_seconds = 0;
  ASSERT_TRUE(store_->Delete(Pods(), {"default", "running"}, now).ok());
  EXPECT_FALSE(Exists(Pods(), "running"));
}

TEST_F(EmbeddedStoreTest, DeletesNamespacesWithTheirContents) {
  ASSERT_TRUE(store_->Create(Namespaces(), "", J(R"({"metadata":{"name":"team"}})"), {}).ok());
  Json held = ConfigMap("held");
  SetField(&held, {"metadata", "finalizers"}, Json(Json::Array{Json("x/y")}));
  ASSERT_TRUE(store_->Create(ConfigMaps(), "team", held, {}).ok());
  ASSERT_TRUE(store_->Create(ConfigMaps(), "team", ConfigMap("free"), {}).ok());
  ASSERT_TRUE(store_->Delete(Namespaces(), {"", "team"}, {}).ok());
  EXPECT_FALSE(store_->Get(ConfigMaps(), {"team", "free"}).ok());
  EXPECT_EQ(StringField(*store_->Get(Namespaces(), {"", "team"}).value(), {"status", "phase"}),
            "Terminating");
  EXPECT_EQ(HttpCodeOf(store_->Create(ConfigMaps(), "team", ConfigMap("new"), {}).status()), 403);
  held = *store_->Get(ConfigMaps(), {"team", "held"}).value();
  EraseField(&held, {"metadata", "finalizers"});
  ASSERT_TRUE(store_->Update(ConfigMaps(), held, {}).ok());
  EXPECT_FALSE(store_->Get(Namespaces(), {"", "team"}).ok());
  EXPECT_EQ(HttpCodeOf(store_->Delete(Namespaces(), {"", "default"}, {}).status()), 403);
}

TEST_F(EmbeddedStoreTest, ListsPagesOfOneRevision) {
  for (const char* name : {"a", "b", "c", "d", "e"}) Created(ConfigMaps(), ConfigMap(name));
  ListOptions options;
  options.namespace_name = "default";
  options.limit = 2;
  ObjectList page = store_->List(ConfigMaps(), options).value();
  EXPECT_EQ(page.remaining, 3);
  std::vector<std::string> names;
  const std::string revision = page.revision;
  ASSERT_TRUE(store_->Delete(ConfigMaps(), {"default", "c"}, {}).ok());
  Created(ConfigMaps(), ConfigMap("bb"));
  while (true) {
    EXPECT_EQ(page.revision, revision);
    for (const ObjectPtr& item : page.items) names.push_back(NameOf(*item));
    if (page.continue_token.empty()) break;
    options.continue_token = page.continue_token;
    page = store_->List(ConfigMaps(), options).value();
  }
  EXPECT_THAT(names, ElementsAre("a", "b", "c", "d", "e"));
  options.continue_token = "garbage";
  EXPECT_EQ(HttpCodeOf(store_->List(ConfigMaps(), options).status()), 400);
}

TEST_F(EmbeddedStoreTest, ForgetsOldRevisions) {
  store_ = Make(nullptr, 3);
  for (const char* name : {"a", "b"}) Created(ConfigMaps(), ConfigMap(name));
  ListOptions options;
  options.limit = 1;
  const ObjectList page = store_->List(ConfigMaps(), options).value();
  for (const char* name : {"c", "d", "e", "f"}) Created(ConfigMaps(), ConfigMap(name));
  options.continue_token = page.continue_token;
  EXPECT_TRUE(IsExpired(store_->List(ConfigMaps(), options).status()));
  WatchOptions watch;
  watch.revision = page.revision;
  EXPECT_TRUE(
      IsExpired(store_->StartWatch(ConfigMaps(), watch, [](const WatchEvent&) {}).status()));
  watch.revision = "999999";
  EXPECT_EQ(HttpCodeOf(store_->StartWatch(ConfigMaps(), watch, [](const WatchEvent&) {}).status()),
            504);
  watch.revision = "x";
  EXPECT_EQ(HttpCodeOf(store_->StartWatch(ConfigMaps(), watch, [](const WatchEvent&) {}).status()),
            400);
}

std::string Letter(WatchEvent::Kind kind) {
  return std::string(1, "AMDBE"[static_cast<int>(kind)]);
}

TEST_F(EmbeddedStoreTest, TellsWatchersInOrder) {
  const Json first = Created(ConfigMaps(), ConfigMap("a"));
  std::vector<std::string> seen;
  const WatchSink sink = [&](const WatchEvent& event) {
    seen.push_back(Letter(event.kind) + NameOf(*event.object));
  };
  WatchOptions options;
  options.marks_initial_end = true;
  std::unique_ptr<Watch> watch = store_->StartWatch(ConfigMaps(), options, sink).value();
  Created(ConfigMaps(), ConfigMap("b"));
  Json changed = Read(ConfigMaps(), "a");
  SetField(&changed, {"data", "key"}, "w");
  ASSERT_TRUE(store_->Update(ConfigMaps(), changed, {}).ok());
  ASSERT_TRUE(store_->Delete(ConfigMaps(), {"default", "a"}, {}).ok());
  store_->SendBookmarks();
  EXPECT_THAT(seen, ElementsAre("Aa", "B", "Ab", "Ma", "Da", "B"));
  watch.reset();
  Created(ConfigMaps(), ConfigMap("c"));
  EXPECT_EQ(seen.size(), 6u);
  seen.clear();
  WatchOptions later;
  later.revision = RevisionOf(first);
  watch = store_->StartWatch(ConfigMaps(), later, sink).value();
  EXPECT_THAT(seen, ElementsAre("Ab", "Ma", "Da", "Ac"));
}

TEST_F(EmbeddedStoreTest, DropsEventsThatDoNotHappenAgain) {
  const auto tell = [&](const char* name) {
    Json event = ConfigMap(name);
    event.Erase("data");
    event.Set("kind", "Event");
    event.Set("lastTimestamp", FormatObjectTime(clock_.Now()));
    Created(Events(), event);
  };
  tell("once");
  tell("again");
  Created(ConfigMaps(), ConfigMap("a"));
  clock_.Advance(absl::Minutes(40));
  Json patch;
  patch.Set("lastTimestamp", FormatObjectTime(clock_.Now()));
  ASSERT_TRUE(
      store_->Patch(Events(), {"default", "again"}, PatchKind::kMerge, patch, {}).status().ok());
  ASSERT_TRUE(store_->DropEvents(absl::Hours(1)).ok());
  EXPECT_EQ(store_->List(Events(), {}).value().items.size(), 2u);
  clock_.Advance(absl::Minutes(30));
  ASSERT_TRUE(store_->DropEvents(absl::Hours(1)).ok());
  const ObjectList left = store_->List(Events(), {}).value();
  ASSERT_EQ(left.items.size(), 1u);
  EXPECT_EQ(NameOf(*left.items[0]), "again");
  EXPECT_EQ(store_->List(ConfigMaps(), {}).value().items.size(), 1u);
}

TEST_F(EmbeddedStoreTest, ShowsSelectionsToWatchers) {
  std::vector<std::string> seen;
  WatchOptions options;
  options.label_selector = "on=yes";
  options.namespace_name = "default";
  const std::unique_ptr<Watch> watch =
      store_
          ->StartWatch(
              ConfigMaps(), options,
              [&](const WatchEvent& event) {
                seen.push_back(Letter(event.kind) + StringField(*event.object, {"data", "key"}));
              })
          .value();
  Json object = ConfigMap("a", "1");
  object = Created(ConfigMaps(), object);
  SetField(&object, {"metadata", "labels", "on"}, "yes");
  object = *store_->Update(ConfigMaps(), object, {}).value();
  SetField(&object, {"data", "key"}, "2");
  object = *store_->Update(ConfigMaps(), object, {}).value();
  SetField(&object, {"metadata", "labels", "on"}, "no");
  SetField(&object, {"data", "key"}, "3");
  object = *store_->Update(ConfigMaps(), object, {}).value();
  EXPECT_THAT(seen, ElementsAre("A1", "M2", "D2"));
}

class JournalTest : public EmbeddedStoreTest {
 protected:
  JournalTest() : folder_(absl::StrCat(::testing::TempDir(), "weft-journal-", ::getpid())) {
    std::filesystem::remove_all(folder_);
  }
  ~JournalTest() override {
    store_.reset();
    std::filesystem::remove_all(folder_);
  }
  const std::string folder_;
};

TEST_F(JournalTest, KeepsObjectsAndRevisionsOverRestarts) {
  store_ = Make(SqliteJournal::Open(folder_).value(), 100);
  const Json object = Created(ConfigMaps(), ConfigMap("a"));
  Created(ConfigMaps(), ConfigMap("b"));
  ASSERT_TRUE(store_->Delete(ConfigMaps(), {"default", "b"}, {}).ok());
  const std::string revision = store_->List(ConfigMaps(), {}).value().revision;
  store_.reset();
  store_ = Make(SqliteJournal::Open(folder_).value(), 100);
  EXPECT_TRUE(SameJson(Read(ConfigMaps(), "a"), object));
  EXPECT_FALSE(Exists(ConfigMaps(), "b"));
  EXPECT_EQ(store_->List(ConfigMaps(), {}).value().revision, revision);
  EXPECT_GT(RevisionOf(Created(ConfigMaps(), ConfigMap("c"))), revision);
}

TEST_F(JournalTest, IsLockedAgainstASecondProcess) {
  const std::unique_ptr<Journal> first = SqliteJournal::Open(folder_).value();
  const Status status = SqliteJournal::Open(folder_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(absl::StrCat("in use by process ", ::getpid(), ": ", folder_)));
}

TEST_F(JournalTest, SaysThatTheDiskIsFullAndKeepsWhatItHas) {
  store_ = Make(SqliteJournal::Open(folder_, /*max_pages=*/40).value(), 100);
  Status status;
  int kept = 0;
  while (status.ok() && kept < 200) {
    status = store_
                 ->Create(ConfigMaps(), "default",
                          ConfigMap(absl::StrCat("m", kept), std::string(4000, 'x')), {})
                 .status();
    if (status.ok()) ++kept;
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(HttpCodeOf(status), 507);
  EXPECT_THAT(std::string(status.message()), HasSubstr("full"));
  ListOptions all;
  EXPECT_EQ(store_->List(ConfigMaps(), all).value().items.size(), static_cast<size_t>(kept));
  // Room again.
  ASSERT_TRUE(store_->Delete(ConfigMaps(), {"default", "m0"}, {}).ok());
  EXPECT_TRUE(store_->Create(ConfigMaps(), "default", ConfigMap("small"), {}).ok());
  store_.reset();
  store_ = Make(SqliteJournal::Open(folder_).value(), 100);
  EXPECT_EQ(store_->List(ConfigMaps(), all).value().items.size(), static_cast<size_t>(kept));
}

TEST_F(JournalTest, SaysThatTheFileIsDamaged) {
  std::filesystem::create_directories(folder_);
  RealFileSystem files;
  ASSERT_TRUE(WriteFile(files, folder_ + "/objects.db", std::string(8192, 'x')).ok());
  EXPECT_EQ(SqliteJournal::Open(folder_).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace weft::platform
