// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/pod_executor.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

#include "base/files.h"
#include "net/http_server.h"
#include "platform/object/fields.h"
#include "platform/pods/probe.h"
#include "platform/store/api_error.h"
#include "platform/store/embedded/embedded_store.h"

namespace weft::platform {
namespace {

using ::testing::HasSubstr;

Json Words(std::initializer_list<const char*> words) {
  Json list = Json::MakeArray();
  for (const char* word : words) list.Append(word);
  return list;
}

Json PodThatRuns(const std::string& script, const std::string& policy = "Never") {
  Json container;
  container.Set("name", "main");
  container.Set("image", "i");
  container.Set("command", Words({"sh", "-c", script.c_str()}));
  Json pod = Json::Parse(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}})").value();
  SetField(&pod, {"spec", "containers"}, Json(Json::Array{std::move(container)}));
  SetField(&pod, {"spec", "restartPolicy"}, policy);
  return pod;
}

Json* FirstContainer(Json* pod) {
  return &(*pod->FindMutable("spec")->FindMutable("containers")->mutable_items())[0];
}

TEST(ServiceAddressesTest, LeadsNamesToLoopback) {
  ServiceAddresses services;
  const std::string one = services.Rewrite("job-ps-0.default.svc:2222").value();
  EXPECT_TRUE(absl::StartsWith(one, "127.0.0.1:")) << one;
  EXPECT_EQ(services.Rewrite("job-ps-0.default.svc:2222").value(), one);
  EXPECT_EQ(services.Rewrite("job-ps-0.default.svc.cluster.local:2222").value(), one);
  EXPECT_NE(services.Rewrite("job-ps-0.default.svc:2223").value(), one);
  EXPECT_NE(services.Rewrite("job-ps-0.other.svc:2222").value(), one);
  EXPECT_EQ(services.Rewrite(R"({"ps":["job-ps-0.default.svc:2222"],"x":1})").value(),
            absl::StrCat(R"({"ps":[")", one, R"("],"x":1})"));
  EXPECT_EQ(
      services.Rewrite("--ps_hosts=job-ps-0.default.svc:2222,job-ps-0.default.svc:2222").value(),
      absl::StrCat("--ps_hosts=", one, ",", one));
  for (const char* text :
       {"", ".svc:1", "a.svc:1", "a.b.svc", "a.b.svc:", "a.b.svc:x", "a.b.svc:70000", "a.b.c.svc:1",
        "a..svc:1", ".b.svc:1", "a.b.service:1", "photo.svc"}) {
    EXPECT_EQ(services.Rewrite(text).value(), text);
  }
}

TEST(ServiceAddressesTest, KnowsShortNamesOfServices) {
  ServiceAddresses services;
  const ServiceAddresses::ShortNames names = {
      "default", [](const std::string& service, const std::string& space) {
        return service == "web" && (space == "default" || space == "other");
      }};
  const std::string full = services.Rewrite("web.default.svc:80").value();
  EXPECT_EQ(services.Rewrite("http://web:80/x", 1, names).value(),
            absl::StrCat("http://", full, "/x"));
  EXPECT_EQ(services.Rewrite("web.default:80", 1, names).value(), full);
  EXPECT_NE(services.Rewrite("web.other:80", 1, names).value(), full);
  for (const char* text : {"db:80", "web", "web:x", "web.away:80", "a:b:web", "12:30", ":80"})
    EXPECT_EQ(services.Rewrite(text, 1, names).value(), text);
}

TEST(ServiceAddressesTest, LeavesRoomForSeveralProcesses) {
  ServiceAddresses services;
  int last = 0;
  for (int i = 0; i < 20; ++i) {
    const std::string text =
        services.Rewrite(absl::StrCat("s", i, ".default.svc:2222"), 100).value();
    int port = 0;
    ASSERT_TRUE(absl::SimpleAtoi(text.substr(text.find(':') + 1), &port)) << text;
    EXPECT_GE(std::abs(port - last), 100);  // at first from 0
    last = port;
  }
}

class PodExecutorTest : public ::testing::Test {
 protected:
  PodExecutorTest()
      : folder_(absl::StrCat(::testing::TempDir(), "weft-pods-", ::getpid())),
        guard_(ProcessGuard::Start().value()) {
    EmbeddedStore::Options options;
    options.clock = &clock_;
    store_ = EmbeddedStore::Open(std::move(options)).value();
    StartExecutor();
  }
  ~PodExecutorTest() override {
    executor_.reset();
    std::filesystem::remove_all(folder_);
  }
  void StartExecutor() {
    executor_.reset();
    PodExecutor::Options options;
    options.store = store_.get();
    options.clock = &clock_;
    options.guard = guard_.get();
    options.takes_all_pods = true;
    options.log_folder = folder_;
    options.environment = {"PATH=/usr/local/bin:/usr/bin:/bin", "INHERITED=yes"};
    executor_ = std::make_unique<PodExecutor>(options);
    executor_->Start();
  }
  void Create(const Json& pod) {
    const auto created = store_->Create(Pods(), "default", pod, {});
    ASSERT_TRUE(created.ok()) << created.status();
  }
  // Waits until the pod is as `done` says; the last state of it.
  Json Await(const std::function<bool(const Json&)>& done) {
    const absl::Time deadline = absl::Now() + absl::Seconds(60);
    Json pod;
    while (absl::Now() < deadline) {
      const auto found = store_->Get(Pods(), {"default", "p"});
      pod = found.ok() ? **found : Json();
      if (done(pod)) return pod;
      absl::SleepFor(absl::Milliseconds(5));
    }
    ADD_FAILURE() << "It stays " << pod.Dump(1);
    return pod;
  }
  Json AwaitPhase(const std::string& phase) {
    return Await([&](const Json& pod) { return StringField(pod, {"status", "phase"}) == phase; });
  }
  Json StateOf(const Json& pod) {
    const Json* const statuses = FindField(pod, {"status", "containerStatuses"});
    return statuses == nullptr || statuses->size() == 0 ? Json() : statuses->items()[0];
  }
  std::string Log(const Json& pod, bool is_previous = false) {
    const auto path = PodExecutor::LogPath(folder_, pod, "main", is_previous);
    if (!path.ok()) return std::string(path.status().message());
    RealFileSystem files;
    std::string text;
    for (absl::string_view line : absl::StrSplit(ReadFile(files, *path).value_or(""), '\n')) {
      absl::StrAppend(&text, line.substr(std::min(line.size(), line.find(' ') + 1)), "\n");
    }
    return text;
  }

  RealClock clock_;
  const std::string folder_;
  std::unique_ptr<ProcessGuard> guard_;
  std::unique_ptr<EmbeddedStore> store_;
  std::unique_ptr<PodExecutor> executor_;
};

TEST_F(PodExecutorTest, RunsAPodToItsEnd) {
  Json pod =
      PodThatRuns("echo out $INHERITED $OWN $NAME $ADDRESS $KEY $ACCOUNT $(ARG); echo err >&2");
  FirstContainer(&pod)->Set("args", Words({"ignored"}));
  Json data = Json::Parse(R"({"metadata":{"name":"conf"},"data":{"k":"from-map"}})").value();
  ASSERT_TRUE(store_->Create(*FindResource("", "configmaps"), "default", data, {}).ok());
  FirstContainer(&pod)->Set("env", Json::Parse(R"([{"name":"OWN","value":"a"},
      {"name":"NAME","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}},
      {"name":"ACCOUNT","valueFrom":{"fieldRef":{"fieldPath":"spec.serviceAccountName"}}},
      {"name":"ADDRESS","value":"$(OWN)-x.default.svc:80"},{"name":"ARG","value":"true"},
      {"name":"KEY","valueFrom":{"configMapKeyRef":{"name":"conf","key":"k"}}}])")
                                       .value());
  Create(pod);
  const Json done = AwaitPhase("Succeeded");
  EXPECT_EQ(IntField(StateOf(done), {"state", "terminated", "exitCode"}, -1), 0);
  EXPECT_EQ(StringField(StateOf(done), {"state", "terminated", "reason"}), "Completed");
  EXPECT_EQ(StringField(done, {"spec", "nodeName"}), "local");
  EXPECT_THAT(Log(done), HasSubstr("out yes a p 127.0.0.1:"));
  EXPECT_THAT(Log(done), HasSubstr(" from-map default"));
  EXPECT_THAT(Log(done), HasSubstr("err\n"));
  const ObjectPtr node = store_->Get(Nodes(), {"", "local"}).value();
  // All that a node must have by the API's schema.
  for (const char* name :
       {"architecture", "bootID", "containerRuntimeVersion", "kernelVersion", "kubeProxyVersion",
        "kubeletVersion", "machineID", "operatingSystem", "osImage", "systemUUID"}) {
    EXPECT_NE(FindField(*node, {"status", "nodeInfo", name}), nullptr) << name;
  }
}

TEST_F(PodExecutorTest, TellsAProgramItsResources) {
  Json pod = PodThatRuns("echo $A $B $C $D");
  FirstContainer(&pod)->Set("resources",
                            Json::Parse(R"({"limits":{"cpu":"1500m","memory":"64Mi"}})").value());
  FirstContainer(&pod)->Set("env", Json::Parse(R"([
      {"name":"A","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu"}}},
      {"name":"B","valueFrom":{"resourceFieldRef":{"resource":"requests.cpu","divisor":"1m"}}},
      {"name":"C","valueFrom":{"resourceFieldRef":{"resource":"limits.memory","divisor":"1Mi"}}},
      {"name":"D","valueFrom":{"resourceFieldRef":{"resource":"limits.memory","divisor":"0"}}}])")
                                       .value());
  Create(pod);
  EXPECT_THAT(Log(AwaitPhase("Succeeded")), HasSubstr("2 1500 64 67108864\n"));
}

TEST_F(PodExecutorTest, TellsHowItFailed) {
  Create(PodThatRuns("exit 3"));
  EXPECT_EQ(IntField(StateOf(AwaitPhase("Failed")), {"state", "terminated", "exitCode"}), 3);
}

TEST_F(PodExecutorTest, TellsTheSignal) {
  Create(PodThatRuns("kill -9 $$$$"));
  const Json state = StateOf(AwaitPhase("Failed"));
  EXPECT_EQ(IntField(state, {"state", "terminated", "exitCode"}), 137);
  EXPECT_EQ(IntField(state, {"state", "terminated", "signal"}), 9);
}

TEST_F(PodExecutorTest, SaysWhatCannotRun) {
  Json pod = PodThatRuns("");
  FirstContainer(&pod)->Erase("command");
  Create(pod);
  Json state = StateOf(AwaitPhase("Failed"));
  EXPECT_THAT(StringField(state, {"state", "terminated", "message"}),
              HasSubstr("write its command"));
  EXPECT_EQ(IntField(state, {"state", "terminated", "exitCode"}), 127);
  ASSERT_TRUE(store_->Delete(Pods(), {"default", "p"}, {}).ok());
  FirstContainer(&pod)->Set("command", Words({"no-such-program-here"}));
  Create(pod);
  state = StateOf(AwaitPhase("Failed"));
  EXPECT_THAT(StringField(state, {"state", "terminated", "message"}),
              HasSubstr("no-such-program-here"));
}

TEST_F(PodExecutorTest, RestartsByItsPolicy) {
  Create(PodThatRuns(
      "echo here; test -e " + folder_ + "/mark || { touch " + folder_ + "/mark; exit 1; }",
      "OnFailure"));
  const Json done = AwaitPhase("Succeeded");
  EXPECT_EQ(IntField(StateOf(done), {"restartCount"}), 1);
  EXPECT_EQ(IntField(StateOf(done), {"lastState", "terminated", "exitCode"}), 1);
  EXPECT_THAT(Log(done, true), HasSubstr("here"));
}

TEST_F(PodExecutorTest, WaitsBeforeItRestartsAgain) {
  Create(PodThatRuns("exit 1", "Always"));
  const Json pod = Await([&](const Json& now) {
    return StringField(StateOf(now), {"state", "waiting", "reason"}) == "CrashLoopBackOff";
  });
  EXPECT_EQ(StringField(pod, {"status", "phase"}), "Running");
  EXPECT_EQ(IntField(StateOf(pod), {"restartCount"}), 1);
}

TEST_F(PodExecutorTest, EndsProcessesOfDeletedPods) {
  Create(PodThatRuns("trap 'echo asked; exit 0' TERM; echo ready; while :; do sleep 0.05; done"));
  const Json pod = Await([&](const Json& now) { return absl::StrContains(Log(now), "ready"); });
  const auto terminating = store_->Delete(Pods(), {"default", "p"}, {});
  ASSERT_TRUE(terminating.ok());
  EXPECT_TRUE(IsTerminating(**terminating));
  Await([](const Json& now) { return now.is_null(); });
  // The logs go with it.
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  while (std::filesystem::exists(absl::StrCat(folder_, "/", UidOf(pod))) &&
         absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_FALSE(std::filesystem::exists(absl::StrCat(folder_, "/", UidOf(pod))));
}

TEST_F(PodExecutorTest, KillsWhatDoesNotListen) {
  Json pod = PodThatRuns("trap '' TERM; echo ready; while :; do sleep 0.05; done");
  SetField(&pod, {"spec", "terminationGracePeriodSeconds"}, 1);
  Create(pod);
  Await([&](const Json& now) { return absl::StrContains(Log(now), "ready"); });
  ASSERT_TRUE(store_->Delete(Pods(), {"default", "p"}, {}).ok());
  Await([](const Json& now) { return now.is_null(); });
}

TEST_F(PodExecutorTest, InitContainersComeFirst) {
  Json pod = PodThatRuns("cat " + folder_ + "/made");
  Json init = *FirstContainer(&pod);
  init.Set("name", "init");
  init.Set("command", Words({"sh", "-c", ("echo by-init > " + folder_ + "/made").c_str()}));
  SetField(&pod, {"spec", "initContainers"}, Json(Json::Array{std::move(init)}));
  std::filesystem::create_directories(folder_);
  Create(pod);
  EXPECT_THAT(Log(AwaitPhase("Succeeded")), HasSubstr("by-init"));
}

TEST_F(PodExecutorTest, IsReadyWhenItsProbeSaysSo) {
  Json pod = PodThatRuns("touch " + folder_ + "/up; sleep 1000");
  std::filesystem::create_directories(folder_);
  FirstContainer(&pod)->Set("readinessProbe",
                            Json::Parse(R"({"periodSeconds":1,"exec":{"command":["test","-e",")" +
                                        folder_ + R"(/ready"]}})")
                                .value());
  Create(pod);
  const Json unready = Await([&](const Json& now) {
    return std::filesystem::exists(folder_ + "/up") &&
           StringField(now, {"status", "phase"}) == "Running";
  });
  EXPECT_FALSE(BoolField(StateOf(unready), {"ready"}));
  std::filesystem::create_directories(folder_ + "/ready");
  const Json ready = Await([&](const Json& now) { return BoolField(StateOf(now), {"ready"}); });
  EXPECT_EQ(IntField(StateOf(ready), {"restartCount"}), 0);
}

TEST_F(PodExecutorTest, StartsAgainWhatItsProbeFindsDead) {
  Json pod = PodThatRuns(
      "test -e " + folder_ + "/dead && exit 0; touch " + folder_ + "/dead; exec sleep 1000",
      "OnFailure");
  std::filesystem::create_directories(folder_);
  FirstContainer(&pod)->Set("livenessProbe", Json::Parse(R"({"periodSeconds":1,"failureThreshold":2,
      "tcpSocket":{"port":1}})")
                                                 .value());
  Create(pod);
  const Json done = AwaitPhase("Succeeded");
  EXPECT_EQ(IntField(StateOf(done), {"lastState", "terminated", "exitCode"}), 143);
}

TEST(ProbeTest, ReadsWhatAContainerSays) {
  const Json container = Json::Parse(R"({"ports":[{"name":"web","containerPort":8080}],
      "livenessProbe":{"httpGet":{"port":"web","path":"/h","scheme":"HTTPS",
        "httpHeaders":[{"name":"A","value":"b"}]},"timeoutSeconds":3,"failureThreshold":5},
      "readinessProbe":{"grpc":{"port":1,"service":"s"}}})")
                             .value();
  const ProbeSpec spec = ReadProbe(container, "livenessProbe").value();
  EXPECT_EQ(spec.port, 8080);
  EXPECT_EQ(spec.path, "/h");
  EXPECT_TRUE(spec.is_tls);
  EXPECT_EQ(spec.timeout, absl::Seconds(3));
  EXPECT_EQ(spec.failure_threshold, 5);
  EXPECT_EQ(spec.headers.size(), 1u);
  const ProbeSpec grpc = ReadProbe(container, "readinessProbe").value();
  EXPECT_TRUE(grpc.is_grpc);
  EXPECT_EQ(grpc.service, "s");
  EXPECT_FALSE(ReadProbe(container, "startupProbe").has_value());
}

TEST(ProbeTest, AsksAServer) {
  const auto server =
      HttpServer::Start({}, {{"/good", [](const HttpRequest&) { return HttpResponse(); }},
                             {"/bad",
                              [](const HttpRequest&) {
                                HttpResponse response;
                                response.status = 500;
                                return response;
                              }}})
          .value();
  ProbeSpec spec;
  spec.port = server->port();
  spec.timeout = absl::Seconds(30);
  EXPECT_TRUE(TryProbe(spec, {}, nullptr).ok());
  spec.path = "/good";
  EXPECT_TRUE(TryProbe(spec, {}, nullptr).ok());
  spec.path = "/bad";
  EXPECT_THAT(std::string(TryProbe(spec, {}, nullptr).message()), HasSubstr("500"));
}

TEST(ProbeTest, AsksAGrpcServer) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  grpc::CallbackGenericService other;  // there must be one
  builder.RegisterCallbackGenericService(&other);
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  const auto server = builder.BuildAndStart();
  const std::string long_name(200, 'x');
  server->GetHealthCheckService()->SetServingStatus("good", true);
  server->GetHealthCheckService()->SetServingStatus("bad", false);
  server->GetHealthCheckService()->SetServingStatus(long_name, true);
  ProbeSpec spec;
  spec.is_grpc = true;
  spec.port = port;
  spec.timeout = absl::Seconds(30);
  for (const std::string& name : {std::string(), std::string("good"), long_name}) {
    spec.service = name;
    EXPECT_TRUE(TryProbe(spec, {}, nullptr).ok()) << TryProbe(spec, {}, nullptr);
  }
  spec.service = "bad";
  EXPECT_THAT(std::string(TryProbe(spec, {}, nullptr).message()), HasSubstr("NOT_SERVING"));
  spec.service = "none";
  EXPECT_FALSE(TryProbe(spec, {}, nullptr).ok());
  server->Shutdown();
  spec.service = "";
  EXPECT_FALSE(TryProbe(spec, {}, nullptr).ok());
}

TEST_F(PodExecutorTest, WhatRanBeforeARestartIsLost) {
  Create(PodThatRuns("sleep 1000"));
  AwaitPhase("Running");
  StartExecutor();
  const Json pod = AwaitPhase("Failed");
  EXPECT_EQ(IntField(StateOf(pod), {"state", "terminated", "exitCode"}), 137);
}

TEST_F(PodExecutorTest, WaitsForASecretThatIsNotThere) {
  Json pod = PodThatRuns("echo $S");
  FirstContainer(&pod)->Set(
      "env", Json::Parse(R"([{"name":"S","valueFrom":{"secretKeyRef":{"name":"late","key":"k"}}}])")
                 .value());
  Create(pod);
  const Json waits = Await([&](const Json& held) {
    return StringField(StateOf(held), {"state", "waiting", "reason"}) ==
           "CreateContainerConfigError";
  });
  EXPECT_THAT(StringField(StateOf(waits), {"state", "waiting", "message"}),
              HasSubstr("secrets \"late\" not found"));
  EXPECT_EQ(StringField(waits, {"status", "phase"}), "Pending");
  const Json secret =
      Json::Parse(R"({"metadata":{"name":"late"},"stringData":{"k":"here"}})").value();
  ASSERT_TRUE(store_->Create(*FindResource("", "secrets"), "default", secret, {}).ok());
  EXPECT_THAT(Log(AwaitPhase("Succeeded")), HasSubstr("here\n"));
}

TEST_F(PodExecutorTest, TellsWhatKeepsAPodFromRunning) {
  const auto await_event = [&](const std::string& reason, const std::string& message) {
    std::string told;
    Await([&](const Json& /*pod*/) {
      told.clear();
      const ObjectList events = store_->List(*FindResource("", "events"), {}).value();
      for (const ObjectPtr& event : events.items) {
        absl::StrAppend(&told, StringField(*event, {"reason"}), ": ",
                        StringField(*event, {"message"}), "\n");
      }
      return absl::StrContains(told, absl::StrCat(reason, ": ", message));
    });
    EXPECT_THAT(told, HasSubstr(absl::StrCat(reason, ": ", message)));
  };
  Json pod = PodThatRuns("", "Always");
  FirstContainer(&pod)->Set("command", Words({"/no/such/program"}));
  Create(pod);
  await_event("Failed", "Container main cannot run: ");
  await_event("BackOff",
              "Container main ended with exit code 127 and waits before it is started again");
  pod = PodThatRuns("exec sleep 1000");
  SetField(&pod, {"metadata", "name"}, "probed");
  // As many tries as the exit code has, so that the second is done after the first.
  for (const auto& [probe, tries] : {std::pair("readinessProbe", 1), {"livenessProbe", 3}}) {
    Json* const container = FirstContainer(&pod);
    SetField(container, {probe, "exec", "command"},
             Words({"sh", "-c", absl::StrCat("exit ", tries).c_str()}));
    SetField(container, {probe, "periodSeconds"}, 1);
    SetField(container, {probe, "failureThreshold"}, tries);
  }
  Create(pod);
  await_event("Unhealthy", "Container main is not ready: its readiness probe fails: exit code 1");
  await_event("Unhealthy", "Container main is ended: its liveness probe fails: exit code 3");
}

// A name that would lead out of the folder of logs; whoever may write a status could ask for it.
TEST_F(PodExecutorTest, ReadsAndWritesLogsInTheirFolderAlone) {
  Json pod;
  SetField(&pod, {"metadata", "uid"}, "uid");
  for (const std::string name : {"../../outside", "/etc", "..", "a/b", ""}) {
    Json status;
    status.Set("name", name);
    SetField(&pod, {"status", "containerStatuses"}, Json(Json::Array{status}));
    const auto path = PodExecutor::LogPath(folder_, pod, name, false);
    EXPECT_EQ(path.status().code(), absl::StatusCode::kInvalidArgument) << name;
  }
  const std::string outside = absl::StrCat(folder_, "-outside");
  ContainerOutput output;
  output.log_folder = folder_;
  ContainerRun run(absl::StrCat("../", outside.substr(outside.rfind('/') + 1)),
                   ContainerRun::Kind::kMain, output, RestartPacing());
  ContainerCommand command;
  command.argv = {"/bin/true"};
  run.Start(command, guard_.get(), clock_.Now());
  EXPECT_FALSE(std::filesystem::exists(outside));
}

}  // namespace
}  // namespace weft::platform
