// SPDX-License-Identifier: Apache-2.0
#include "platform/apiserver/api_server.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/match.h"

#include "base/files.h"
#include "base/threads.h"
#include "net/http_client.h"
#include "platform/apiserver/kubeconfig_file.h"
#include "platform/apiserver/node_identity.h"
#include "platform/apiserver/server_identity.h"
#include "platform/object/columns.h"
#include "platform/object/fields.h"
#include "platform/store/embedded/embedded_store.h"

namespace weft::platform {
namespace {

using ::testing::HasSubstr;

constexpr char kPods[] = "/api/v1/namespaces/default/pods";
constexpr char kJobs[] = "/apis/kubeflow.org/v1/namespaces/default/tfjobs";
constexpr char kJob[] =
    R"({"apiVersion":"kubeflow.org/v1","kind":"TFJob","metadata":{"name":"job"},"spec":{"tfReplicaSpecs":{"Worker":
    {"replicas":2,"template":{"spec":{"containers":[{"name":"tensorflow","image":"i"}]}}}}}})";
constexpr char kPod[] =
    R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}})";

struct Reply {
  int code = 0;
  Json body;
};

class ApiServerTest : public ::testing::Test {
 protected:
  ApiServerTest() : folder_(absl::StrCat(::testing::TempDir(), "weft-api-", ::getpid())) {
    std::filesystem::create_directories(folder_);
    EmbeddedStore::Options options;
    options.clock = &clock_;
    options.history_window = 20;
    store_ = EmbeddedStore::Open(std::move(options)).value();
    identity_ = LoadServerIdentity(folder_, absl::Now()).value();
    ApiServer::Options server;
    server.store = store_.get();
    server.clock = &clock_;
    server.identity = identity_.identity;
    server.token = identity_.token;
    server.log_path = [this](const Json&, const std::string& container,
                             bool is_previous) -> StatusOr<std::string> {
      if (is_previous) return FailedPrecondition("there was no run before");
      return absl::StrCat(folder_, "/", container, ".log");
    };
    server_ = ApiServer::Start(std::move(server)).value();
    TlsClientOptions tls;
    tls.authority_pem = identity_.authority_pem;
    client_ = HttpClient::Create(absl::StrCat("https://127.0.0.1:", server_->port()), tls).value();
  }
  ~ApiServerTest() override { std::filesystem::remove_all(folder_); }

  HttpCall Call(const std::string& method, const std::string& path, const std::string& body = "",
                const std::string& type = "application/json") {
    HttpCall call;
    call.method = method;
    call.path = path;
    call.body = body;
    call.headers = {{"Authorization", "Bearer " + identity_.token}, {"Content-Type", type}};
    return call;
  }
  Reply Ask(const std::string& method, const std::string& path, const std::string& body = "",
            const std::string& type = "application/json") {
    const StatusOr<HttpAnswer> answer = client_->Send(Call(method, path, body, type));
    EXPECT_TRUE(answer.ok()) << answer.status();
    if (!answer.ok()) return {};
    return {answer->status, Json::Parse(answer->body).value_or(Json(answer->body))};
  }

  FakeClock clock_{absl::FromUnixSeconds(1700000000)};
  const std::string folder_;
  std::unique_ptr<EmbeddedStore> store_;
  ServerIdentity identity_;
  std::unique_ptr<ApiServer> server_;
  std::unique_ptr<HttpClient> client_;
};

TEST_F(ApiServerTest, LetsNobodyInWithoutTheToken) {
  for (const char* path : {"/api", kPods, "/version", "/openapi/v2", "/nothing"}) {
    HttpCall call;
    call.path = path;
    EXPECT_EQ(client_->Send(call)->status, 401) << path;
    call.headers = {{"Authorization", "Bearer " + identity_.token + "x"}};
    EXPECT_EQ(client_->Send(call)->status, 401) << path;
  }
  HttpCall health;
  health.path = "/livez";
  EXPECT_EQ(client_->Send(health)->body, "ok");
}

TEST_F(ApiServerTest, ANodeWritesItsOwnAlone) {
  const auto ask = [&](const std::string& token, const std::string& method, const std::string& path,
                       const std::string& body = "", const std::string& type = "application/json") {
    HttpCall call = Call(method, path, body, type);
    call.headers = {{"Authorization", "Bearer " + token}, {"Content-Type", type}};
    const StatusOr<HttpAnswer> answer = client_->Send(call);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? Reply{answer->status, Json::Parse(answer->body).value_or(Json())}
                       : Reply();
  };
  const char* const merge = "application/merge-patch+json";
  const std::string a = NodeToken("a", identity_.token);
  EXPECT_EQ(ask(a + "0", "GET", "/api/v1/nodes").code, 401);
  EXPECT_EQ(ask("node.b" + a.substr(6), "GET", "/api/v1/nodes").code, 401);
  EXPECT_EQ(ask("node.", "GET", "/api/v1/nodes").code, 401);
  const auto node = [](const char* name) {
    return absl::StrCat(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":")", name, "\"}}");
  };
  EXPECT_EQ(ask(a, "POST", "/api/v1/nodes", node("a")).code, 201);
  EXPECT_EQ(Ask("POST", "/api/v1/nodes", node("b")).code, 201);
  EXPECT_EQ(ask(a, "POST", "/api/v1/nodes", node("c")).code, 403);
  const std::string gpus = R"({"metadata":{"annotations":{"weft.dev/gpus":"[]"}}})";
  EXPECT_EQ(ask(a, "PATCH", "/api/v1/nodes/a", gpus, merge).code, 200);
  const Reply forged = ask(a, "PATCH", "/api/v1/nodes/b", gpus, merge);
  EXPECT_EQ(forged.code, 403);
  EXPECT_THAT(forged.body.Dump(), HasSubstr("is not allowed to modify node"));
  EXPECT_EQ(ask(a, "PATCH", "/api/v1/nodes/b/status", R"({"status":{}})", merge).code, 403);
  EXPECT_EQ(ask(a, "DELETE", "/api/v1/nodes/b").code, 403);
  // Pods: those that are on it.
  const auto pod = [](const char* name, const char* place) {
    return absl::StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")", name,
                        R"("},"spec":{"nodeName":")", place,
                        R"(","containers":[{"name":"c","image":"i","envFrom":)"
                        R"([{"secretRef":{"name":"named"}}]}]}})");
  };
  ASSERT_EQ(Ask("POST", kPods, pod("mine", "a")).code, 201);
  ASSERT_EQ(Ask("POST", kPods, pod("other", "b")).code, 201);
  const std::string running = R"({"status":{"phase":"Running"}})";
  const std::string pods = kPods;
  EXPECT_EQ(ask(a, "PATCH", pods + "/mine/status", running, merge).code, 200);
  EXPECT_EQ(ask(a, "PATCH", pods + "/other/status", running, merge).code, 403);
  EXPECT_EQ(ask(a, "DELETE", pods + "/other").code, 403);
  EXPECT_EQ(ask(a, "POST", pods, pod("new", "a")).code, 403);
  EXPECT_EQ(ask(a, "GET", pods).code, 200);
  // Secrets: those that these name.
  for (const char* name : {"named", "hidden"}) {
    ASSERT_EQ(Ask("POST", "/api/v1/namespaces/default/secrets",
                  absl::StrCat(R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":")", name,
                               "\"}}"))
                  .code,
              201);
  }
  EXPECT_EQ(ask(a, "GET", "/api/v1/namespaces/default/secrets/named").code, 200);
  EXPECT_EQ(ask(a, "GET", "/api/v1/namespaces/default/secrets/hidden").code, 403);
  EXPECT_EQ(ask(a, "GET", "/api/v1/namespaces/default/secrets").code, 403);
  EXPECT_EQ(
      ask(NodeToken("c", identity_.token), "GET", "/api/v1/namespaces/default/secrets/named").code,
      403);
  EXPECT_EQ(ask(a, "POST", "/api/v1/namespaces/default/configmaps",
                R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}})")
                .code,
            403);
}

TEST_F(ApiServerTest, TellsWhatItServes) {
  EXPECT_EQ(Ask("GET", "/api").body.Find("versions")->Dump(), R"(["v1"])");
  EXPECT_THAT(Ask("GET", "/apis").body.Dump(),
              HasSubstr(R"("groupVersion":"kubeflow.org/v1beta1")"));
  EXPECT_THAT(Ask("GET", "/apis/kubeflow.org/v1").body.Dump(),
              HasSubstr(R"("name":"tfjobs/scale")"));
  EXPECT_THAT(Ask("GET", "/api/v1").body.Dump(), HasSubstr(R"("name":"pods/log")"));
  EXPECT_THAT(Ask("GET", "/openapi/v3").body.Dump(), HasSubstr("apis/kubeflow.org/v1"));
  EXPECT_THAT(Ask("GET", "/openapi/v3/apis/kubeflow.org/v1").body.Dump(),
              HasSubstr("fieldValidation"));
  HttpCall call = Call("GET", "/openapi/v2");
  call.headers.emplace_back("Accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf");
  const HttpAnswer page = client_->Send(call).value();
  EXPECT_EQ(page.status, 200);
  // Fields 1 and 2 of the document.
  EXPECT_EQ(page.body.substr(0, 17), std::string("\x0a\x03"
                                                 "2.0\x12\x0a\x0a\x04weft\x12\x02v1",
                                                 17));
  EXPECT_THAT(page.body, HasSubstr("org.kubeflow.v1beta1.TFJob"));
  EXPECT_EQ(Ask("GET", "/apis/none.org/v1").code, 404);
  EXPECT_EQ(Ask("GET", "/api/v2").code, 404);
  // kubectl looks into the details of what is not found, there or not.
  EXPECT_EQ(Ask("GET", "/api/v2").body.Find("details")->Dump(), "{}");
}

TEST_F(ApiServerTest, TellsCallersWhatTheyMayDo) {
  const std::string access = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
  // Whatever the encoding of the question.
  for (const char* type : {"application/json", "application/vnd.kubernetes.protobuf"}) {
    const Reply answer = Ask("POST", access, "{}", type);
    EXPECT_EQ(answer.code, 201);
    EXPECT_TRUE(BoolField(answer.body, {"status", "allowed"})) << answer.body.Dump();
  }
  const Reply who = Ask("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "{}");
  EXPECT_EQ(StringField(who.body, {"kind"}), "SelfSubjectReview");
  EXPECT_EQ(StringField(who.body, {"status", "userInfo", "username"}), "weft");
  const Reply rules = Ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", "{}");
  EXPECT_THAT(rules.body.Dump(), HasSubstr(R"("resources":["*"])"));
  EXPECT_EQ(Ask("GET", access).code, 404);
}

TEST_F(ApiServerTest, AnswersWithTheStatusThatClientsExpect) {
  struct Row {
    const char* method;
    std::string path;
    const char* body;
    const char* type;
    int code;
    const char* reason;
  };
  ASSERT_EQ(Ask("POST", kJobs, kJob).code, 201);
  const std::string jobs = kJobs;
  const std::string pods = kPods;
  const Row rows[] = {
      {"GET", jobs + "/none", "", "", 404, "NotFound"},
      {"GET", "/api/v1/namespaces/default/frogs", "", "", 404, "NotFound"},
      {"GET", jobs + "/job/log", "", "", 404, "NotFound"},
      {"POST", pods + "/p/exec", "", "", 501, "NotImplemented"},
      {"PATCH", pods + "/p/ephemeralcontainers", "{}", "application/json", 501, "NotImplemented"},
      {"GET", "/apis/kubeflow.org/v2/tfjobs", "", "", 404, "NotFound"},
      {"POST", jobs, kJob, "application/json", 409, "AlreadyExists"},
      {"POST", jobs, "{", "application/json", 400, "BadRequest"},
      {"POST", jobs, "", "application/json", 400, "BadRequest"},
      {"POST", jobs, kPod, "application/json", 400, "BadRequest"},
      {"POST", jobs, kJob, "application/vnd.kubernetes.protobuf", 400, "BadRequest"},
      {"POST", jobs, kJob, "application/cbor", 415, "UnsupportedMediaType"},
      {"POST", jobs + "?dryRun=Some", kJob, "application/json", 400, "BadRequest"},
      {"POST", jobs + "?fieldValidation=Maybe", kJob, "application/json", 400, "BadRequest"},
      {"POST", pods, R"({"metadata":{"name":"x"},"spec":{}})", "application/json", 422, "Invalid"},
      {"POST", "/api/v1/namespaces/away/pods", kPod, "application/json", 404, "NotFound"},
      {"POST", "/api/v1/pods", kPod, "application/json", 405, "MethodNotAllowed"},
      {"PUT", jobs, kJob, "application/json", 405, "MethodNotAllowed"},
      {"PUT", jobs + "/job", kJob, "application/json", 422, "Invalid"},
      {"PUT", jobs + "/other", kJob, "application/json", 400, "BadRequest"},
      {"OPTIONS", jobs, "", "", 405, "MethodNotAllowed"},
      {"PATCH", jobs + "/job", kJob, "application/apply-patch+yaml", 422, "Invalid"},
      {"PATCH", jobs + "/job?fieldManager=me", "{}", "application/apply-patch+yaml", 400,
       "BadRequest"},
      {"PATCH", jobs + "/job?fieldManager=me", kJob, "application/apply-patch+cbor", 415,
       "UnsupportedMediaType"},
      {"PATCH", jobs + "/job", "{}", "application/strategic-merge-patch+json", 415,
       "UnsupportedMediaType"},
      {"PATCH", jobs + "/job", "{}", "application/json-patch+json", 400, "BadRequest"},
      {"PATCH", jobs + "/job", R"({"metadata":{"resourceVersion":"1"}})",
       "application/merge-patch+json", 409, "Conflict"},
      {"DELETE", jobs + "/job?propagationPolicy=Sideways", "", "", 400, "BadRequest"},
      {"GET", jobs + "?labelSelector=%3D", "", "", 400, "BadRequest"},
      {"GET", jobs + "?limit=-1", "", "", 400, "BadRequest"},
      {"GET", jobs + "?resourceVersion=zero", "", "", 400, "BadRequest"},
      {"DELETE", "/api/v1/namespaces/default", "", "", 403, "Forbidden"},
  };
  for (const Row& row : rows) {
    const Reply reply = Ask(row.method, row.path, row.body, row.type);
    EXPECT_EQ(reply.code, row.code) << row.method << " " << row.path << " " << reply.body.Dump();
    EXPECT_EQ(StringField(reply.body, {"reason"}), row.reason) << row.method << " " << row.path;
    EXPECT_EQ(IntField(reply.body, {"code"}), row.code);
    EXPECT_EQ(StringField(reply.body, {"kind"}), "Status");
  }
}

TEST_F(ApiServerTest, RefusesBodiesThatAreTooLongWithAStatus) {
  const Reply reply = Ask("POST", kPods, std::string((3 << 20) + 1, ' '));
  EXPECT_EQ(reply.code, 413);
  EXPECT_EQ(StringField(reply.body, {"kind"}), "Status");
  EXPECT_EQ(StringField(reply.body, {"reason"}), "RequestEntityTooLarge");
  EXPECT_THAT(StringField(reply.body, {"message"}), HasSubstr("at most 3145728 are taken"));
}

TEST_F(ApiServerTest, AppliesForSeveralManagers) {
  const std::string path = "/api/v1/namespaces/default/configmaps/shared?fieldManager=";
  const auto apply = [&](const std::string& manager, const std::string& data) {
    return Ask(
        "PATCH", path + manager,
        absl::StrCat("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared}\ndata: ", data),
        "application/apply-patch+yaml");
  };
  EXPECT_EQ(apply("one", "{a: \"1\"}").code, 201);
  const Reply shared = apply("two", "{b: \"2\"}");
  EXPECT_EQ(shared.code, 200);
  EXPECT_EQ(FindField(shared.body, {"metadata", "managedFields"})->size(), 2u);
  EXPECT_EQ(RevisionOf(apply("two", "{b: \"2\"}").body), RevisionOf(shared.body));
  const Reply conflict = apply("two", "{a: \"3\", b: \"2\"}");
  EXPECT_EQ(conflict.code, 409);
  EXPECT_THAT(StringField(conflict.body, {"message"}), HasSubstr("conflict with \"one\""));
  EXPECT_EQ(StringField(FindField(conflict.body, {"details", "causes"})->items()[0], {"field"}),
            ".data.a");
  EXPECT_EQ(apply("two&force=true", "{a: \"3\", b: \"2\"}").code, 200);
  // Another kind of write takes fields, too, and no field is kept for who no longer wants it.
  ASSERT_EQ(
      Ask("PATCH", path + "hand", R"({"data":{"b":"9"}})", "application/merge-patch+json").code,
      200);
  EXPECT_EQ(apply("two", "{b: \"2\"}").code, 409);
  const Reply left = apply("two", "{a: \"3\"}");
  EXPECT_EQ(FindField(left.body, {"data"})->Dump(), R"({"a":"3","b":"9"})");
}

TEST_F(ApiServerTest, ServesTheVersionThatIsAskedFor) {
  std::string old = kJob;
  old.replace(old.find("org/v1"), 6, "org/v1beta1");
  ASSERT_EQ(Ask("POST", "/apis/kubeflow.org/v1beta1/namespaces/default/tfjobs", old).code, 201);
  EXPECT_EQ(StringField(Ask("GET", std::string(kJobs) + "/job").body, {"apiVersion"}),
            "kubeflow.org/v1");
  const Json list = Ask("GET", "/apis/kubeflow.org/v1beta1/tfjobs").body;
  EXPECT_EQ(StringField(list, {"kind"}), "TFJobList");
  EXPECT_EQ(StringField(list.Find("items")->items()[0], {"apiVersion"}), "kubeflow.org/v1beta1");
}

TEST_F(ApiServerTest, ShowsTables) {
  ASSERT_EQ(Ask("POST", kPods, kPod).code, 201);
  clock_.Advance(absl::Seconds(185));
  HttpCall call = Call("GET", kPods);
  call.headers.push_back(
      {"Accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"});
  const Json table = Json::Parse(client_->Send(call)->body).value();
  EXPECT_EQ(StringField(table, {"kind"}), "Table");
  EXPECT_EQ(table.Find("rows")->items()[0].Find("cells")->Dump(),
            R"(["p","0/1","Pending","0","3m5s","<none>","<none>","<none>","<none>"])");
  call.headers.back().second = "application/vnd.kubernetes.protobuf";
  EXPECT_EQ(client_->Send(call)->status, 406);
  call.headers.back().second = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
  EXPECT_EQ(StringField(Json::Parse(client_->Send(call)->body).value(), {"kind"}),
            "PartialObjectMetadataList");
}

TEST_F(ApiServerTest, ScalesAndBinds) {
  ASSERT_EQ(Ask("POST", kJobs, kJob).code, 201);
  const std::string scale = std::string(kJobs) + "/job/scale";
  EXPECT_EQ(IntField(Ask("GET", scale).body, {"spec", "replicas"}), 2);
  EXPECT_EQ(Ask("PATCH", scale, R"({"spec":{"replicas":5}})", "application/merge-patch+json").code,
            200);
  EXPECT_EQ(IntField(Ask("GET", scale).body, {"spec", "replicas"}), 5);
  EXPECT_EQ(Ask("PUT", scale, R"({"spec":{"replicas":-5}})").code, 422);
  ASSERT_EQ(Ask("POST", kPods, kPod).code, 201);
  EXPECT_EQ(Ask("POST", std::string(kPods) + "/p/binding", R"({"target":{"name":"here"}})").code,
            201);
  EXPECT_EQ(Ask("POST", std::string(kPods) + "/p/binding", R"({"target":{"name":"there"}})").code,
            409);
}

TEST_F(ApiServerTest, DeletesOneAndAll) {
  ASSERT_EQ(Ask("POST", kJobs, kJob).code, 201);
  ASSERT_EQ(Ask("POST", kPods, kPod).code, 201);
  const Json status =
      Ask("DELETE", std::string(kJobs) + "/job", R"({"propagationPolicy":"Background"})").body;
  EXPECT_EQ(StringField(status, {"status"}), "Success");
  EXPECT_EQ(UidOf(Json()).size(), 0u);
  EXPECT_EQ(StringField(status, {"details", "uid"}).size(), 36u);
  EXPECT_EQ(Ask("DELETE", std::string(kPods) + "?labelSelector=none").code, 200);
  EXPECT_EQ(Ask("GET", std::string(kPods) + "/p").code, 200);
  EXPECT_EQ(Ask("DELETE", kPods).code, 200);
  EXPECT_EQ(Ask("GET", std::string(kPods) + "/p").code, 404);
}

TEST_F(ApiServerTest, StreamsWatches) {
  ASSERT_EQ(Ask("POST", kPods, kPod).code, 201);
  std::string text;
  const auto watch = [&](const std::string& query, int lines) {
    text.clear();
    return client_
        ->Stream(Call("GET", std::string(kPods) + "?watch=true&" + query),
                 [&](absl::string_view piece) {
                   text.append(piece.data(), piece.size());
                   // Nothing else writes, so the rest comes once this one has seen the first event.
                   if (std::count(text.begin(), text.end(), '\n') == 1 && lines > 1) {
                     EXPECT_TRUE(store_->Delete(Pods(), {"default", "p"}, {}).ok());
                   }
                   return std::count(text.begin(), text.end(), '\n') >= lines ? Cancelled("enough")
                                                                              : absl::OkStatus();
                 })
        .status();
  };
  EXPECT_TRUE(absl::IsCancelled(watch("", 2)));
  EXPECT_TRUE(absl::StartsWith(text, R"({"type":"ADDED","object":{"apiVersion":"v1")")) << text;
  EXPECT_THAT(text, HasSubstr(R"({"type":"DELETED")"));
  EXPECT_TRUE(absl::IsCancelled(watch("sendInitialEvents=True&allowWatchBookmarks=True", 1)));
  EXPECT_THAT(text, HasSubstr("k8s.io/initial-events-end"));
  for (int i = 0; i < 15; ++i) {
    ASSERT_EQ(Ask("POST", kPods, kPod).code, 201);
    ASSERT_EQ(Ask("DELETE", std::string(kPods) + "/p").code, 200);
  }
  for (const char* yes : {"watch=true", "watch=True", "watch=1", "watch=", "watch"})
    EXPECT_EQ(Ask("GET", absl::StrCat(kPods, "?", yes, "&resourceVersion=1")).code, 410) << yes;
  for (const char* no : {"watch=false", "watch=False", "watch=0"})
    EXPECT_EQ(Ask("GET", absl::StrCat(kPods, "?", no, "&resourceVersion=1")).code, 200) << no;
  // A watch ends by itself.
  EXPECT_TRUE(watch("timeoutSeconds=1", 9).ok());
}

TEST_F(ApiServerTest, ServesLogs) {
  ASSERT_EQ(Ask("POST", kPods, kPod).code, 201);
  const std::string log = std::string(kPods) + "/p/log";
  EXPECT_EQ(Ask("GET", log).code, 404);
  RealFileSystem files;
  ASSERT_TRUE(
      WriteFile(
          files, folder_ + "/c.log",
          "2023-11-14T22:13:20.5Z one\n2023-11-14T22:13:21Z two words\n2023-11-14T22:13:22Z three")
          .ok());
  const auto read = [&](const std::string& query) {
    return client_->Send(Call("GET", log + query))->body;
  };
  EXPECT_EQ(read(""), "one\ntwo words\nthree\n");
  EXPECT_EQ(read("?tailLines=2"), "two words\nthree\n");
  EXPECT_EQ(read("?tailLines=1&timestamps=True"), "2023-11-14T22:13:22Z three\n");
  EXPECT_EQ(read("?tailLines=0"), "");
  EXPECT_EQ(read("?tailLines=99"), "one\ntwo words\nthree\n");
  EXPECT_EQ(read("?limitBytes=5"), "one\nt");
  EXPECT_EQ(read("?timestamps=true&tailLines=1"), "2023-11-14T22:13:22Z three\n");
  EXPECT_EQ(read("?sinceTime=2023-11-14T22%3A13%3A21Z"), "two words\nthree\n");
  EXPECT_EQ(Ask("GET", log + "?container=none").code, 400);
  EXPECT_EQ(Ask("GET", log + "?previous=true").code, 400);
  EXPECT_EQ(Ask("GET", log + "?tailLines=x").code, 400);
}

TEST_F(ApiServerTest, FollowsALogUntilThePodEnds) {
  ASSERT_EQ(Ask("POST", kPods, kPod).code, 201);
  RealFileSystem files;
  ASSERT_TRUE(WriteFile(files, folder_ + "/c.log", "t one\n").ok());
  std::string text;
  const Status status =
      client_
          ->Stream(Call("GET", std::string(kPods) + "/p/log?follow=true"),
                   [&](absl::string_view piece) {
                     text.append(piece.data(), piece.size());
                     if (text == "one\n") {
                       auto file = files.OpenWrite(folder_ + "/c.log", WriteMode::kAppend).value();
                       EXPECT_TRUE(file->Append("t two\n").ok());
                       Json pod = *store_->Get(Pods(), {"default", "p"}).value();
                       SetField(&pod, {"status", "phase"}, "Succeeded");
                       EXPECT_TRUE(store_->Update(Pods(), pod, {"status"}).ok());
                     }
                     return absl::OkStatus();
                   })
          .status();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(text, "one\ntwo\n");
}

TEST_F(ApiServerTest, StaysTheSameServer) {
  const ServerIdentity again = LoadServerIdentity(folder_, absl::Now()).value();
  EXPECT_EQ(again.token, identity_.token);
  EXPECT_EQ(again.identity.certificate_pem, identity_.identity.certificate_pem);
  EXPECT_NE(LoadServerIdentity(folder_, absl::Now() + absl::Hours(24 * 350)).value().token,
            identity_.token);
  ASSERT_TRUE(WriteKubeconfig(folder_ + "/kc", "weft", "https://x", "PEM", "secret").ok());
  struct stat info = {};
  ASSERT_EQ(::stat((folder_ + "/kc").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST(TableTest, WordsAges) {
  const std::pair<int, const char*> rows[] = {{0, "0s"},
                                              {119, "119s"},
                                              {120, "2m"},
                                              {185, "3m5s"},
                                              {600, "10m"},
                                              {3 * 3600, "3h"},
                                              {3 * 3600 + 60, "3h1m"},
                                              {9 * 3600, "9h"},
                                              {50 * 3600, "2d2h"},
                                              {10 * 86400, "10d"}};
  for (const auto& [seconds, want] : rows) EXPECT_EQ(HumanDuration(absl::Seconds(seconds)), want);
}

TEST(TableTest, FindsByPath) {
  const Json object = Json::Parse(R"({"a":{"list":[{"x":1},{"x":2}]}})").value();
  EXPECT_EQ(FindByJsonPath(object, ".a.list[-1:].x")->AsInt().value_or(0), 2);
  EXPECT_EQ(FindByJsonPath(object, ".a.list[0].x")->AsInt().value_or(0), 1);
  for (const char* path :
       {".a.none", ".a.list[7].x", ".a.list[x]", ".a[0]", ".a.list[", ".b[-1:].x"}) {
    EXPECT_EQ(FindByJsonPath(object, path), nullptr) << path;
  }
}

}  // namespace
}  // namespace weft::platform
