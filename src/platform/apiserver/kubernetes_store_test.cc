// SPDX-License-Identifier: Apache-2.0
// The client of API servers against our own; the real one is in tests/kubernetes.
#include "platform/store/kubernetes/kubernetes_store.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/synchronization/mutex.h"

#include "base/files.h"
#include "base/threads.h"
#include "platform/apiserver/api_server.h"
#include "platform/apiserver/kubeconfig_file.h"
#include "platform/apiserver/server_identity.h"
#include "platform/object/fields.h"
#include "platform/store/api_error.h"
#include "platform/store/embedded/embedded_store.h"

namespace weft::platform {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Json ConfigMap(const std::string& name, const std::string& value = "v") {
  Json object = Json::Parse(R"({"apiVersion":"v1","kind":"ConfigMap"})").value();
  SetField(&object, {"metadata", "name"}, name);
  SetField(&object, {"data", "key"}, value);
  return object;
}

const ResourceType& ConfigMaps() { return *FindResource("", "configmaps"); }

class KubernetesStoreTest : public ::testing::Test {
 protected:
  KubernetesStoreTest() : folder_(absl::StrCat(::testing::TempDir(), "weft-client-", ::getpid())) {
    std::filesystem::create_directories(folder_);
    EmbeddedStore::Options options;
    options.clock = &clock_;
    embedded_ = EmbeddedStore::Open(std::move(options)).value();
    identity_ = LoadServerIdentity(folder_, absl::Now()).value();
    StartServer(0);
    kubeconfig_ = folder_ + "/kubeconfig";
    EXPECT_TRUE(WriteKubeconfig(kubeconfig_, "weft",
                                absl::StrCat("https://127.0.0.1:", server_->port()),
                                identity_.authority_pem, identity_.token)
                    .ok());
    store_ = KubernetesStore::Connect(ReadKubeconfig(kubeconfig_).value(), &clock_).value();
  }
  ~KubernetesStoreTest() override {
    store_.reset();
    std::filesystem::remove_all(folder_);
  }
  void StartServer(int port) {
    ApiServer::Options server;
    server.store = embedded_.get();
    server.clock = &clock_;
    server.address.port = port;
    server.identity = identity_.identity;
    server.token = identity_.token;
    server.log_path = [this](const Json&, const std::string&, bool) {
      return StatusOr<std::string>(folder_ + "/log");
    };
    server_ = ApiServer::Start(std::move(server)).value();
  }
  void Write(const std::string& name, const std::string& text) {
    RealFileSystem files;
    ASSERT_TRUE(WriteFile(files, folder_ + "/" + name, text).ok());
  }

  RealClock clock_;
  const std::string folder_;
  std::string kubeconfig_;
  std::unique_ptr<EmbeddedStore> embedded_;
  ServerIdentity identity_;
  std::unique_ptr<ApiServer> server_;
  std::unique_ptr<KubernetesStore> store_;
};

TEST_F(KubernetesStoreTest, DoesWhatAStoreDoes) {
  const ObjectPtr created = store_->Create(ConfigMaps(), "default", ConfigMap("a"), {}).value();
  EXPECT_TRUE(IsObjectExists(store_->Create(ConfigMaps(), "default", ConfigMap("a"), {}).status()));
  EXPECT_TRUE(IsObjectNotFound(store_->Get(ConfigMaps(), {"default", "none"}).status()));
  Json changed = *created;
  SetField(&changed, {"data", "key"}, "w");
  EXPECT_TRUE(store_->Update(ConfigMaps(), changed, {}).ok());
  EXPECT_TRUE(IsConflict(store_->Update(ConfigMaps(), changed, {}).status()));
  const Json patch = Json::Parse(R"({"data":{"other":"x"}})").value();
  EXPECT_TRUE(store_->Patch(ConfigMaps(), {"default", "a"}, PatchKind::kMerge, patch, {}).ok());
  EXPECT_EQ(FindField(*store_->Get(ConfigMaps(), {"default", "a"}).value(), {"data"})->size(), 2u);
  DeleteOptions options;
  options.uid = "another";
  EXPECT_TRUE(IsConflict(store_->Delete(ConfigMaps(), {"default", "a"}, options).status()));
  EXPECT_TRUE(store_->Delete(ConfigMaps(), {"default", "a"}, {}).ok());
  const Status invalid =
      store_->Create(ConfigMaps(), "default", ConfigMap("NotAName"), {}).status();
  EXPECT_EQ(HttpCodeOf(invalid), 422);
  EXPECT_THAT(StatusObject(invalid).Dump(), HasSubstr(R"("field":"metadata.name")"));
}

TEST_F(KubernetesStoreTest, CreatesInAnyVersionThatIsServed) {
  Json job = Json::Parse(R"({"apiVersion":"kubeflow.org/v1beta1","kind":"TFJob",
      "metadata":{"name":"old"},"spec":{"tfReplicaSpecs":{"Worker":{
      "template":{"spec":{"containers":[{"name":"tensorflow","image":"i"}]}}}}}})")
                 .value();
  const StatusOr<ObjectPtr> made = store_->Create(TfJobs(), "default", job, {});
  ASSERT_TRUE(made.ok()) << made.status();
  // It answers in the version of the request, and keeps its own.
  EXPECT_EQ(StringField(**made, {"apiVersion"}), "kubeflow.org/v1beta1");
  EXPECT_EQ(StringField(*store_->Get(TfJobs(), {"default", "old"}).value(), {"apiVersion"}),
            "kubeflow.org/v1");
}

TEST_F(KubernetesStoreTest, ListsInPages) {
  for (const char* name : {"a", "b", "c"})
    ASSERT_TRUE(store_->Create(ConfigMaps(), "default", ConfigMap(name), {}).ok());
  ListOptions options;
  options.limit = 2;
  const ObjectList first = store_->List(ConfigMaps(), options).value();
  EXPECT_EQ(first.items.size(), 2u);
  EXPECT_EQ(first.remaining, 1);
  options.continue_token = first.continue_token;
  EXPECT_EQ(NameOf(*store_->List(ConfigMaps(), options).value().items[0]), "c");
  ListOptions selected;
  selected.field_selector = "metadata.name=b";
  EXPECT_EQ(store_->List(ConfigMaps(), selected).value().items.size(), 1u);
  // Of all of them it asks for some at a time itself.
  for (int i = 0; i < 600; ++i)
    ASSERT_TRUE(
        embedded_->Create(ConfigMaps(), "default", ConfigMap(absl::StrCat("m", i)), {}).ok());
  const ObjectList all = store_->List(ConfigMaps(), {}).value();
  EXPECT_EQ(all.items.size(), 603u);
  EXPECT_EQ(all.revision, embedded_->List(ConfigMaps(), {}).value().revision);
}

TEST_F(KubernetesStoreTest, WatchesFromAListOn) {
  ASSERT_TRUE(store_->Create(ConfigMaps(), "default", ConfigMap("a"), {}).ok());
  absl::Mutex mutex;
  std::vector<std::string> seen;
  WatchOptions options;
  options.marks_initial_end = true;
  std::unique_ptr<Watch> watch =
      store_
          ->StartWatch(
              ConfigMaps(), options,
              [&](const WatchEvent& event) {
                absl::MutexLock lock(&mutex);
                const char kind = "AMDBE"[static_cast<int>(event.kind)];
                seen.push_back(kind + (event.object == nullptr ? "" : NameOf(*event.object)));
              })
          .value();
  const auto await = [&](size_t count) {
    absl::MutexLock lock(&mutex);
    const auto has_come = [&] { return seen.size() >= count; };
    return mutex.AwaitWithTimeout(absl::Condition(&has_come), absl::Seconds(30));
  };
  ASSERT_TRUE(await(2));
  ASSERT_TRUE(embedded_->Create(ConfigMaps(), "default", ConfigMap("b"), {}).ok());
  ASSERT_TRUE(embedded_->Delete(ConfigMaps(), {"default", "a"}, {}).ok());
  ASSERT_TRUE(await(4));
  // The server goes: the watch says so.
  server_.reset();
  ASSERT_TRUE(await(5));
  EXPECT_THAT(seen, ElementsAre("Aa", "B", "Ab", "Da", "E"));
}

TEST_F(KubernetesStoreTest, WaitsForAServerThatComesBack) {
  const int port = server_->port();
  server_.reset();
  Thread restart("restart", [&] {
    absl::SleepFor(absl::Milliseconds(300));
    StartServer(port);
  });
  EXPECT_TRUE(store_->List(ConfigMaps(), {}).ok());
  restart.Join();
}

TEST_F(KubernetesStoreTest, ReadsLogs) {
  const Json pod =
      Json::Parse(R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}})")
          .value();
  ASSERT_TRUE(store_->Create(Pods(), "default", pod, {}).ok());
  Write("log", "t one\nt two\n");
  std::string text;
  LogOptions options;
  options.tail_lines = 1;
  const auto take = [&](absl::string_view piece) {
    text.append(piece.data(), piece.size());
    return absl::OkStatus();
  };
  EXPECT_TRUE(store_->StreamLog({"default", "p"}, options, take, nullptr).ok());
  EXPECT_EQ(text, "two\n");
  EXPECT_TRUE(IsObjectNotFound(store_->StreamLog({"default", "q"}, options, take, nullptr)));
}

TEST_F(KubernetesStoreTest, RefusesWrongCredentials) {
  ClusterAccess access = ReadKubeconfig(kubeconfig_).value();
  access.token = "wrong";
  const Status status =
      KubernetesStore::Connect(access, &clock_).value()->List(ConfigMaps(), {}).status();
  EXPECT_EQ(HttpCodeOf(status), 401) << status;
  access = ReadKubeconfig(kubeconfig_).value();
  access.tls.authority_pem =
      MakeAuthority("other", absl::Now(), absl::Hours(1)).value().certificate_pem;
  EXPECT_TRUE(absl::IsUnauthenticated(
      KubernetesStore::Connect(access, &clock_).value()->List(ConfigMaps(), {}).status()));
}

TEST_F(KubernetesStoreTest, NamesTheFileOfAWrongAuthority) {
  ClusterAccess access = ReadKubeconfig(kubeconfig_).value();
  access.tls.authority_pem = "no certificate";
  const std::string message(KubernetesStore::Connect(access, &clock_).status().message());
  EXPECT_THAT(message,
              HasSubstr(absl::StrCat("as user 'weft' of ", kubeconfig_, ": The certificate")));
}

TEST_F(KubernetesStoreTest, AsksForTheServerThatTheConfigurationNames) {
  ClusterAccess access = ReadKubeconfig(kubeconfig_).value();
  access.tls.server_name = "kubernetes.default";
  EXPECT_TRUE(KubernetesStore::Connect(access, &clock_).value()->List(ConfigMaps(), {}).ok());
  access.tls.server_name = "api.elsewhere";
  EXPECT_TRUE(absl::IsUnauthenticated(
      KubernetesStore::Connect(access, &clock_).value()->List(ConfigMaps(), {}).status()));
}

TEST_F(KubernetesStoreTest, TakesTokensOfFilesAndPlugins) {
  ClusterAccess access = ReadKubeconfig(kubeconfig_).value();
  const std::string token = access.token;
  access.token.clear();
  Write("token", token + "\n");
  access.token_file = folder_ + "/token";
  EXPECT_TRUE(KubernetesStore::Connect(access, &clock_).value()->List(ConfigMaps(), {}).ok());
  access.token_file.clear();
  Write("plugin.sh", "#!/bin/sh\necho \"{\\\"status\\\":{\\\"token\\\":\\\"$GIVEN\\\"}}\"\n");
  access.exec.argv = {"sh", folder_ + "/plugin.sh"};
  access.exec.environment = {{"GIVEN", token}};
  EXPECT_TRUE(KubernetesStore::Connect(access, &clock_).value()->List(ConfigMaps(), {}).ok());
  Write(
      "plugin.sh",
      "#!/bin/sh\necho '{\"status\":{\"clientCertificateData\":\"c\",\"clientKeyData\":\"k\"}}'\n");
  EXPECT_THAT(std::string(KubernetesStore::Connect(access, &clock_)
                              .value()
                              ->List(ConfigMaps(), {})
                              .status()
                              .message()),
              HasSubstr("of the kubeconfig only"));
  Write("plugin.sh", "#!/bin/sh\necho no luck >&2; exit 3\n");
  const Status status =
      KubernetesStore::Connect(access, &clock_).value()->List(ConfigMaps(), {}).status();
  EXPECT_TRUE(absl::IsUnauthenticated(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("exit code 3: no luck"));
}

TEST_F(KubernetesStoreTest, SaysWhatIsWrongWithAKubeconfig) {
  const std::pair<const char*, const char*> rows[] = {
      {"", "no kubeconfig"},
      {"[1]", "no kubeconfig"},
      {"a: b", "no current-context"},
      {"current-context: x", "contexts has no 'x'"},
      {"current-context: x\ncontexts: [{name: x, context: {cluster: c}}]", "clusters has no 'c'"},
      {"current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\nclusters: [{name: c, "
       "cluster: {a: b}}]",
       "has no server"},
      {"current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"
       "clusters: [{name: c, cluster: {server: 'https://h'}}]",
       "users has no 'u'"},
      {"current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\n"
       "clusters: [{name: c, cluster: {server: 'https://h', certificate-authority-data: '*'}}]",
       "not base64"},
  };
  for (const auto& [text, want] : rows) {
    Write("bad", text);
    EXPECT_THAT(std::string(ReadKubeconfig(folder_ + "/bad").status().message()), HasSubstr(want))
        << text;
  }
  EXPECT_TRUE(absl::IsNotFound(ReadKubeconfig(folder_ + "/none").status()));
}

}  // namespace
}  // namespace weft::platform
