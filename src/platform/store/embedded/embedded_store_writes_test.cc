// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"

#include "base/threads.h"
#include "platform/object/fields.h"
#include "platform/store/embedded/embedded_store.h"

namespace weft::platform {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const ResourceType& Maps() { return *FindResource("", "configmaps"); }

Json MapNamed(const std::string& name) {
  Json object = Json::Parse(R"({"apiVersion":"v1","kind":"ConfigMap"})").value();
  SetField(&object, {"metadata", "name"}, name);
  return object;
}

// Holds the first write that it is to hold until it is let go; refuses writes with an object named
// "bad".
class SlowJournal : public Journal {
 public:
  struct Script {
    absl::Notification has_come;
    absl::Notification may_go;
    absl::Mutex mutex;
    std::vector<std::vector<std::string>> written ABSL_GUARDED_BY(mutex);
  };
  explicit SlowJournal(Script* script) : script_(script) {}
  StatusOr<int64_t> Load(
      const std::function<void(const ObjectKey& key, Json object)>& /*take*/) override {
    return 0;
  }
  Status Write(int64_t /*revision*/, absl::Span<const Change> changes) override {
    std::vector<std::string> names;
    for (const Change& change : changes) names.push_back(change.key.name);
    if (names[0] == "first") {
      script_->has_come.Notify();
      script_->may_go.WaitForNotification();
    }
    for (const std::string& name : names) {
      if (name == "bad") return ResourceExhausted("no room for ", name);
    }
    absl::MutexLock lock(&script_->mutex);
    if (names[0] != "default") script_->written.push_back(std::move(names));
    return absl::OkStatus();
  }

 private:
  Script* const script_;
};

class EmbeddedStoreWritesTest : public ::testing::Test {
 protected:
  EmbeddedStoreWritesTest() {
    EmbeddedStore::Options options;
    options.clock = &clock_;
    options.journal = std::make_unique<SlowJournal>(&script_);
    store_ = EmbeddedStore::Open(std::move(options)).value();
    absl::MutexLock lock(&script_.mutex);
    script_.written.clear();
  }
  // Each on a thread of its own, all while the first one is being written.
  std::vector<Status> CreateTogether(const std::vector<std::string>& names) {
    std::vector<Status> results(names.size());
    std::vector<std::unique_ptr<Thread>> threads;
    threads.push_back(std::make_unique<Thread>("first", [&] {
      EXPECT_TRUE(store_->Create(Maps(), "default", MapNamed("first"), {}).ok());
    }));
    script_.has_come.WaitForNotification();
    for (size_t i = 0; i < names.size(); ++i) {
      threads.push_back(std::make_unique<Thread>("writer", [&, i] {
        results[i] = store_->Create(Maps(), "default", MapNamed(names[i]), {}).status();
      }));
    }
    // Nobody can say that they wait: but they have nothing else to do.
    absl::SleepFor(absl::Milliseconds(200));
    script_.may_go.Notify();
    threads.clear();
    return results;
  }
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    const ObjectList list = store_->List(Maps(), {}).value();
    for (const ObjectPtr& each : list.items) names.push_back(NameOf(*each));
    return names;
  }

  RealClock clock_;
  SlowJournal::Script script_;
  std::unique_ptr<EmbeddedStore> store_;
};

TEST_F(EmbeddedStoreWritesTest, WhatWaitsTogetherIsWrittenTogether) {
  std::vector<std::string> told;
  WatchOptions options;
  options.revision = store_->List(Maps(), {}).value().revision;
  const auto watch = store_->StartWatch(
      Maps(), options, [&](const WatchEvent& event) { told.push_back(RevisionOf(*event.object)); });
  for (const Status& status : CreateTogether({"a", "b", "c", "d"})) EXPECT_TRUE(status.ok());
  EXPECT_THAT(Names(), ElementsAre("a", "b", "c", "d", "first"));
  absl::MutexLock lock(&script_.mutex);
  ASSERT_GE(script_.written.size(), 2u);
  EXPECT_LT(script_.written.size(), 5u);
  EXPECT_THAT(script_.written[0], ElementsAre("first"));
  // Watchers hear of all of them, in the order of their revisions.
  ASSERT_EQ(told.size(), 5u);
  for (size_t i = 1; i < told.size(); ++i)
    EXPECT_EQ(std::stoll(told[i]), std::stoll(told[i - 1]) + 1);
}

TEST_F(EmbeddedStoreWritesTest, OneThatCannotBeWrittenTakesNobodyAlong) {
  const std::vector<Status> results = CreateTogether({"a", "bad", "b", "a"});
  EXPECT_EQ(results[1].code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(results[1].message()), HasSubstr("no room for bad"));
  EXPECT_TRUE(results[2].ok());
  EXPECT_NE(results[0].ok(), results[3].ok());  // one of them came later
  EXPECT_THAT(Names(), ElementsAre("a", "b", "first"));
  // Nothing of what was undone is left: its revision belongs to the next one.
  const std::string before = store_->List(Maps(), {}).value().revision;
  const ObjectPtr next = store_->Create(Maps(), "default", MapNamed("next"), {}).value();
  EXPECT_EQ(std::stoll(RevisionOf(*next)), std::stoll(before) + 1);
}

// A pod whose spec is as large as that of a task of a large job.
Json LargePod(const std::string& name, const std::string& image) {
  Json pod = Json::Parse(R"({"apiVersion":"v1","kind":"Pod",
      "spec":{"containers":[{"name":"c"}]},"status":{"phase":"Pending"}})")
                 .value();
  SetField(&pod, {"metadata", "name"}, name);
  Json& container = pod.FindMutable("spec")->FindMutable("containers")->mutable_items()->front();
  container.Set("image", image);
  std::string text;
  for (int i = 0; i < 2000; ++i) absl::StrAppend(&text, "\"many-worker-", i, ".svc:2222\",");
  Json variable;
  variable.Set("name", "TF_CONFIG");
  variable.Set("value", text);
  container.Set("env", Json(Json::Array{std::move(variable)}));
  return pod;
}

class LargeSpecTest : public ::testing::Test {
 protected:
  LargeSpecTest() : folder_(absl::StrCat(::testing::TempDir(), "weft-specs-", ::getpid())) {
    std::filesystem::remove_all(folder_);
    Reopen();
  }
  ~LargeSpecTest() override {
    store_.reset();
    std::filesystem::remove_all(folder_);
  }
  void Reopen() {
    store_.reset();
    EmbeddedStore::Options options;
    options.clock = &clock_;
    options.journal = SqliteJournal::Open(folder_).value();
    store_ = EmbeddedStore::Open(std::move(options)).value();
  }
  // The kernel's count of what this process gave to disks.
  static int64_t Written() {
    std::ifstream file("/proc/self/io");
    std::string name;
    int64_t value = 0;
    while (file >> name >> value) {
      if (name == "wchar:") return value;
    }
    return 0;
  }

  RealClock clock_;
  const std::string folder_;
  std::unique_ptr<EmbeddedStore> store_;
};

TEST_F(LargeSpecTest, ComesBackAndIsWrittenOnlyWhenItChanges) {
  Json pod = *store_->Create(Pods(), "default", LargePod("p", "i:1"), {}).value();
  const size_t size = pod.Dump().size();
  ASSERT_GT(size, 50000u);
  const int64_t before = Written();
  for (int i = 0; i < 10; ++i) {
    SetField(&pod, {"status", "message"}, absl::StrCat("look ", i));
    WriteOptions options;
    options.subresource = "status";
    pod = *store_->Update(Pods(), pod, options).value();
  }
  // Less than the spec alone takes, once.
  EXPECT_LT(Written() - before, static_cast<int64_t>(10 * size) / 2);
  Reopen();
  EXPECT_EQ(store_->Get(Pods(), {"default", "p"}).value()->Dump(), pod.Dump());
  // Another spec, then none.
  SetField(&pod, {"spec", "activeDeadlineSeconds"}, 5);
  pod = *store_->Update(Pods(), pod, {}).value();
  Reopen();
  EXPECT_EQ(store_->Get(Pods(), {"default", "p"}).value()->Dump(), pod.Dump());
  EXPECT_TRUE(store_->Delete(Pods(), {"default", "p"}, {}).ok());
  EXPECT_TRUE(store_->Create(Pods(), "default", LargePod("p", "i:2"), {}).ok());
  Reopen();
  EXPECT_THAT(store_->Get(Pods(), {"default", "p"}).value()->Dump(), HasSubstr("i:2"));
}

}  // namespace
}  // namespace weft::platform
