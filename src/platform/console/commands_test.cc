// SPDX-License-Identifier: Apache-2.0
#include "platform/console/commands.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/synchronization/mutex.h"

#include "base/cancellation.h"
#include "base/files.h"
#include "base/threads.h"
#include "platform/console/manifests.h"
#include "platform/object/fields.h"
#include "platform/store/api_error.h"
#include "platform/store/embedded/embedded_store.h"
#include "platform/store/passing_store.h"

namespace weft::platform {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kJob[] = R"(apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: job}
spec:
  tfReplicaSpecs:
    Worker:
      replicas: 2
      template:
        spec:
          containers: [{name: tensorflow, image: i}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: conf}
data: {a: "1", b: "2"}
)";

class ConsoleTest : public ::testing::Test {
 protected:
  ConsoleTest() : file_(absl::StrCat(::testing::TempDir(), "weft-console-", ::getpid(), ".yaml")) {
    EmbeddedStore::Options options;
    options.clock = &clock_;
    store_ = EmbeddedStore::Open(std::move(options)).value();
    console_.store = store_.get();
    console_.clock = &clock_;
    console_.print = [this](absl::string_view text) { out_.append(text.data(), text.size()); };
  }
  ~ConsoleTest() override { std::remove(file_.c_str()); }
  void Write(const std::string& text) {
    RealFileSystem files;
    ASSERT_TRUE(WriteFile(files, file_, text).ok());
  }
  std::string Apply(const std::string& text, bool is_dry_run = false) {
    Write(text);
    const Status status = ApplyFiles(console_, {file_}, is_dry_run);
    return status.ok() ? std::exchange(out_, "") : std::string(status.message());
  }
  std::string Get(std::vector<std::string> words, const std::string& form = "") {
    Selection selection;
    selection.words = std::move(words);
    const Status status = GetObjects(console_, selection, {form});
    return status.ok() ? std::exchange(out_, "") : std::string(status.message());
  }

  FakeClock clock_{absl::FromUnixSeconds(1700000000)};
  const std::string file_;
  std::unique_ptr<EmbeddedStore> store_;
  Console console_;
  std::string out_;
};

TEST_F(ConsoleTest, AppliesAsOftenAsAsked) {
  EXPECT_EQ(
      Apply(kJob, true),
      "tfjob.kubeflow.org/job created (server dry run)\nconfigmap/conf created (server dry run)\n");
  EXPECT_EQ(Apply(kJob), "tfjob.kubeflow.org/job created\nconfigmap/conf created\n");
  EXPECT_EQ(Apply(kJob), "tfjob.kubeflow.org/job unchanged\nconfigmap/conf unchanged\n");
}

TEST_F(ConsoleTest, TellsTheNameThatTheServerMade) {
  const std::string told = Apply(
      "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: "
      "{generateName: conf-}}\n");
  ASSERT_EQ(told.size(), std::string("configmap/conf-12345 created\n").size()) << told;
  EXPECT_EQ(told.rfind("configmap/conf-", 0), 0u) << told;
}

TEST_F(ConsoleTest, RemovesWhatAFileHeldBefore) {
  Apply(kJob);
  // Of somebody else.
  ASSERT_TRUE(store_
                  ->Patch(*FindResource("", "configmaps"), {"default", "conf"}, PatchKind::kMerge,
                          Json::Parse(R"({"data":{"theirs":"x"}})").value(), {})
                  .ok());
  std::string changed = kJob;
  changed.replace(changed.find(R"(a: "1", b: "2")"), 14, R"(a: "3")");
  EXPECT_EQ(Apply(changed), "tfjob.kubeflow.org/job unchanged\nconfigmap/conf configured\n");
  EXPECT_EQ(FindField(*store_->Get(*FindResource("", "configmaps"), {"default", "conf"}).value(),
                      {"data"})
                ->Dump(),
            R"({"a":"3","theirs":"x"})");
}

// As files from before 2018 have it, without a selector.
TEST_F(ConsoleTest, AppliesReplicaSetsOfTheFirstGroup) {
  EXPECT_EQ(Apply(R"(kind: ReplicaSet
apiVersion: extensions/v1beta1
metadata: {name: mnist-ps-0}
spec:
  replicas: 1
  template:
    metadata:
      name: ps-0
      labels: {name: mnist, job: ps, task: "0"}
    spec:
      containers:
      - {name: ps-container, image: "i:latest", ports: [{containerPort: 2222}], volumeMounts: }
)"),
            "replicaset.apps/mnist-ps-0 created\n");
  EXPECT_EQ(FindField(*store_->Get(ReplicaSets(), {"default", "mnist-ps-0"}).value(),
                      {"spec", "selector", "matchLabels"})
                ->Dump(),
            R"({"name":"mnist","job":"ps","task":"0"})");
}

TEST_F(ConsoleTest, SaysWhatIsWrongWithAFile) {
  EXPECT_THAT(Apply("kind: TFJob\n"), HasSubstr("apiVersion and kind are missing"));
  EXPECT_THAT(Apply("apiVersion: kubeflow.org/v1\nkind: TFJobb\n"),
              HasSubstr("Did you mean TFJob?"));
  EXPECT_THAT(Apply("apiVersion: v1\nkind: Pod\n"), HasSubstr("metadata.name is missing"));
  EXPECT_THAT(Apply("- 1\n"), HasSubstr("expected an object"));
  EXPECT_THAT(Apply(""), HasSubstr("there is no object"));
  std::string bad = kJob;
  bad.replace(bad.find("replicas: 2"), 11, "replicas: x");
  EXPECT_THAT(Apply(bad), HasSubstr("spec.tfReplicaSpecs.Worker.replicas: holds \"x\""));
}

TEST_F(ConsoleTest, ShowsObjects) {
  EXPECT_EQ(Get({"tfjobs"}), "No resources found in default namespace.\n");
  Apply(kJob);
  EXPECT_EQ(Get({"tfjob", "job"}),
            "NAME   STATE   PROGRESS   LEFT   AGE\njob                              0s\n");
  EXPECT_EQ(Get({"tfjob/job"}, "name"), "tfjob.kubeflow.org/job\n");
  EXPECT_THAT(Get({"tfjob", "job"}, "yaml"),
              StartsWith("apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata:\n"));
  EXPECT_THAT(Get({"tfjob,cm"}, "json"), HasSubstr("\"kind\": \"List\""));
  EXPECT_EQ(Get({"frog"}), "There is no type of objects named 'frog'");
  EXPECT_THAT(Get({"tfjb"}), HasSubstr("Did you mean 'tfjob'?"));
  EXPECT_THAT(Get({"tfjob", "none"}), HasSubstr("not found"));
  EXPECT_THAT(Get({"tfjob"}, "xml"), HasSubstr("no output form 'xml'"));
  EXPECT_THAT(Get({}), HasSubstr("Say which objects"));
  Selection selection;
  selection.words = {"tfjob", "job"};
  EXPECT_TRUE(DescribeObjects(console_, selection).ok());
  EXPECT_THAT(out_, HasSubstr("Events:  <none>"));
}

TEST_F(ConsoleTest, WaitsForConditions) {
  Apply(kJob);
  Selection selection;
  selection.words = {"tfjob"};
  EXPECT_THAT(
      std::string(WaitForObjects(console_, selection, "condition=Succeeded", absl::ZeroDuration())
                      .message()),
      HasSubstr("--all"));
  selection.is_all = true;
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      WaitForObjects(console_, selection, "condition=Succeeded", absl::Milliseconds(20))));
  EXPECT_TRUE(absl::IsInvalidArgument(
      WaitForObjects(console_, selection, "Succeeded", absl::ZeroDuration())));
  Thread finisher("finisher", [this] {
    absl::SleepFor(absl::Milliseconds(30));
    Json job = *store_->Get(TfJobs(), {"default", "job"}).value();
    SetField(&job, {"status", "conditions"},
             Json::Parse(R"([{"type":"Succeeded","status":"True"}])").value());
    EXPECT_TRUE(store_->Update(TfJobs(), job, {"status"}).ok());
  });
  EXPECT_TRUE(WaitForObjects(console_, selection, "condition=succeeded", absl::Seconds(60)).ok());
  finisher.Join();
  EXPECT_EQ(out_, "tfjob.kubeflow.org/job condition met\n");
  selection.words = {"tfjob", "none"};
  EXPECT_TRUE(WaitForObjects(console_, selection, "delete", absl::Seconds(60)).ok());
}

TEST_F(ConsoleTest, Deletes) {
  Apply(kJob);
  Selection selection;
  selection.words = {"tfjob"};
  EXPECT_TRUE(absl::IsInvalidArgument(DeleteObjects(console_, selection, {})));
  selection.words.push_back("job");
  EXPECT_TRUE(DeleteObjects(console_, selection, {}).ok());
  EXPECT_EQ(out_, "tfjob.kubeflow.org \"job\" deleted\n");
  EXPECT_TRUE(IsObjectNotFound(DeleteObjects(console_, selection, {})));
  DeleteRequest lenient;
  lenient.ignores_missing = true;
  EXPECT_TRUE(DeleteObjects(console_, selection, lenient).ok());
  Selection files;
  files.files = {file_};
  EXPECT_TRUE(DeleteObjects(console_, files, lenient).ok());
  EXPECT_THAT(out_, HasSubstr("configmap \"conf\" deleted"));
}

TEST_F(ConsoleTest, OneThatFailsDoesNotKeepTheOthersBack) {
  std::string text = kJob;
  text.replace(text.find("{name: job}"), 11, "{name: job, namespace: away}");
  Write(text);
  const Status applied = ApplyFiles(console_, {file_ + "-none", file_}, false);
  EXPECT_EQ(std::exchange(out_, ""), "configmap/conf created\n");
  EXPECT_THAT(std::string(applied.message()), HasSubstr("Cannot open"));
  EXPECT_THAT(std::string(applied.message()), HasSubstr("namespaces \"away\" not found"));

  Selection named;
  named.words = {"cm", "none", "conf", "neither"};
  const Status got = GetObjects(console_, named, {"name"});
  EXPECT_EQ(std::exchange(out_, ""), "configmap/conf\n");
  EXPECT_EQ(got.message(), "configmaps \"none\" not found\nconfigmaps \"neither\" not found");
  EXPECT_TRUE(IsObjectNotFound(DescribeObjects(console_, named)));
  EXPECT_THAT(std::exchange(out_, ""), HasSubstr("Events:  <none>"));

  Selection files;
  files.files = {file_};
  const Status deleted = DeleteObjects(console_, files, {});
  EXPECT_EQ(out_, "configmap \"conf\" deleted\n");
  EXPECT_EQ(deleted.message(), "tfjobs.kubeflow.org \"job\" not found");
}

TEST_F(ConsoleTest, AFolderIsTheFilesOfObjectsInIt) {
  const std::string folder = absl::StrCat(file_, "-folder");
  RealFileSystem files;
  ASSERT_TRUE(files.MakeDirectories(folder).ok());
  const auto write = [&](const std::string& name, const std::string& text) {
    ASSERT_TRUE(WriteFile(files, JoinPath(folder, name), text).ok());
  };
  write("README.md", "no object");
  Selection named;
  named.files = {folder};
  EXPECT_THAT(std::string(ApplyFiles(console_, {folder}, false).message()),
              HasSubstr("holds no file that ends in .yaml, .yml or .json"));
  EXPECT_FALSE(DeleteObjects(console_, named, {}).ok());
  write("b.yml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}");
  write("a.json", R"({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})");
  write("c.yaml", "kind: [");
  const Status applied = ApplyFiles(console_, {folder}, false);
  EXPECT_EQ(std::exchange(out_, ""), "configmap/a created\nconfigmap/b created\n");
  EXPECT_THAT(std::string(applied.message()), HasSubstr("c.yaml:1:"));
  ASSERT_TRUE(files.Delete(JoinPath(folder, "c.yaml")).ok());
  EXPECT_TRUE(DeleteObjects(console_, named, {}).ok());
  EXPECT_EQ(out_, "configmap \"a\" deleted\nconfigmap \"b\" deleted\n");
  std::filesystem::remove_all(folder);
}

// Whose watches can be made to break off.
class BreakingStore : public PassingStore {
 public:
  using PassingStore::PassingStore;

  StatusOr<std::unique_ptr<Watch>> StartWatch(const ResourceType& type, const WatchOptions& options,
                                              WatchSink sink) override {
    {
      absl::MutexLock lock(&mutex_);
      sink_ = sink;
      ++watches_;
    }
    return below_->StartWatch(type, options, std::move(sink));
  }

  void Break(const Status& why) {
    WatchEvent event;
    event.kind = WatchEvent::Kind::kError;
    event.error = why;
    absl::MutexLock lock(&mutex_);
    sink_(event);
  }
  int watches() const {
    absl::MutexLock lock(&mutex_);
    return watches_;
  }

 private:
  mutable absl::Mutex mutex_;
  WatchSink sink_ ABSL_GUARDED_BY(mutex_);
  int watches_ ABSL_GUARDED_BY(mutex_) = 0;
};

TEST_F(ConsoleTest, GoesOnWatchingWhenItsConnectionEnds) {
  Apply(kJob);
  BreakingStore breaking(store_.get());
  absl::Mutex mutex;
  std::string text;
  Console console = console_;
  console.store = &breaking;
  console.print = [&](absl::string_view more) {
    absl::MutexLock lock(&mutex);
    text.append(more.data(), more.size());
  };
  const auto await = [&](const std::function<bool()>& is_so) {
    const absl::Time deadline = absl::Now() + absl::Seconds(60);
    while (!is_so() && absl::Now() < deadline) {
      clock_.Advance(absl::Seconds(1));  // over any pause between two tries
      absl::SleepFor(absl::Milliseconds(5));
    }
    EXPECT_TRUE(is_so());
  };
  const auto lines = [&] {
    absl::MutexLock lock(&mutex);
    return std::count(text.begin(), text.end(), '\n');
  };
  const auto change = [&](const char* patch) {
    const Json parsed = Json::Parse(patch).value();
    EXPECT_TRUE(store_
                    ->Patch(*FindResource("", "configmaps"), {"default", "conf"}, PatchKind::kMerge,
                            parsed, {})
                    .ok());
  };
  Cancellation cancellation;
  Thread watcher("watcher", [&] {
    Selection selection;
    selection.words = {"configmaps"};
    EXPECT_TRUE(GetObjects(console, selection, {"", true, &cancellation}).ok());
  });
  await([&] { return breaking.watches() == 1 && lines() == 2; });
  change(R"({"data":{"c":"3"}})");
  await([&] { return lines() == 3; });
  breaking.Break(Unavailable("the connection was closed"));
  // While nobody looks.
  change(R"({"data":{"d":"4"}})");
  await([&] { return lines() == 4; });
  breaking.Break(RevisionExpired("too old"));
  await([&] { return breaking.watches() == 3; });
  ASSERT_TRUE(store_->Delete(*FindResource("", "configmaps"), {"default", "conf"}, {}).ok());
  await([&] { return lines() == 5; });
  cancellation.Cancel(absl::CancelledError("enough"));
  watcher.Join();
  EXPECT_EQ(lines(), 5) << text;
}

}  // namespace
}  // namespace weft::platform
