// SPDX-License-Identifier: Apache-2.0
// Servers at an address that others reach: who may call what, and which way in each is told of.
#include <map>
#include <set>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "net/certificate.h"
#include "net/job_identity.h"
#include "net/socket_address.h"
#include "weft/client/session.h"
#include "weft/device/cpu/cpu_device.h"
#include "weft/graph/builder.h"
#include "weft/graph/import.h"
#include "weft/handover/handover_source.h"
#include "weft/master/master_service.h"
#include "weft/master/step_gate.h"
#include "weft/ops/catalogue.h"
#include "weft/server/server.h"
#include "weft/wire/grpc_service.h"
#include "weft/worker/worker_service.h"

namespace weft::server {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

// An IPv4 address of this machine that is not loopback; empty if it has none.
std::string WideHost() {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return "";
  std::string host;
  for (const ifaddrs* at = all; host.empty() && at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
    if ((at->ifa_flags & IFF_LOOPBACK) != 0 || (at->ifa_flags & IFF_UP) == 0) continue;
    char text[INET_ADDRSTRLEN] = {};
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(at->ifa_addr)->sin_addr, text,
                sizeof(text));
    host = text;
  }
  ::freeifaddrs(all);
  return host;
}

class ServerIdentityTest : public ::testing::Test {
 protected:
  void SetUp() override {
    host_ = WideHost();
    if (host_.empty()) GTEST_SKIP() << "this machine has no address beside loopback";
    const Identity authority = *MakeAuthority("shared", absl::Now(), absl::Hours(1));
    job_ = Issue(authority, "one.weft-job");
    other_job_ = Issue(authority, "two.weft-job");
    const StatusOr<std::vector<int>> ports = FindFreeLoopbackPorts(2);
    ASSERT_TRUE(ports.ok()) << ports.status();
    ports_ = *ports;
  }

  static JobIdentity Issue(const Identity& authority, const std::string& name) {
    CertificateRequest request;
    request.common_name = "weft task";
    request.dns_names = {name};
    request.validity = absl::Hours(1);
    request.for_clients_too = true;
    const Identity made = *IssueServerCertificate(authority, request, absl::Now());
    return {authority.certificate_pem, made.certificate_pem, made.key_pem, name};
  }

  ServerOptions OptionsOf(const std::string& job) const {
    ServerOptions options{.task = {job, 0},
                          .catalogue = &StandardCatalogue(),
                          .devices = &StandardDevices(),
                          .num_threads = 2};
    options.cluster = *cluster::ClusterSpec::FromJson(
        absl::StrCat(R"({"ps":[")", host_, ":", ports_[0], R"("],"worker":[")", host_, ":",
                     ports_[1], R"("]})"));
    return options;
  }
  Status Start(ServerOptions options) {
    const std::string job = options.task.job;
    WEFT_ASSIGN_OR_RETURN(servers_[job], Server::Start(options));
    return absl::OkStatus();
  }
  void StartBoth() {
    for (const char* job : {"ps", "worker"}) {
      ServerOptions options = OptionsOf(job);
      options.identity = job_;
      ASSERT_EQ(Start(options), absl::OkStatus());
    }
  }
  // With "dns:///" before it an address on loopback is called inside TLS, too.
  static Status Call(const std::string& address, const JobIdentity* identity,
                     const std::string& method) {
    wire::ClientCall call{.method = method, .deadline = absl::Now() + absl::Seconds(30)};
    return wire::GrpcChannel::Connect(address, identity)->CallAndWait(std::move(call)).status();
  }
  std::string Wide(int task = 0) const { return absl::StrCat(host_, ":", ports_[task]); }
  std::string Loopback(int task = 0) const { return absl::StrCat("127.0.0.1:", ports_[task]); }

  std::unique_ptr<session::Session> LocalSession() {
    return *client::NewSession({.target = absl::StrCat("grpc://", Loopback(1)),
                                .soft_placement = false,
                                .always_dial = true});
  }

  std::string host_;
  std::vector<int> ports_;
  JobIdentity job_, other_job_;
  std::map<std::string, std::unique_ptr<Server>> servers_;
};

// Every method of every service, for everyone who may knock.
TEST_F(ServerIdentityTest, OnlyTheJobAndItsOwnHostMayCallAnything) {
  StartBoth();
  wire::MethodTable methods;
  master::AddMasterMethods({}, &methods);
  cluster::TaskDirectory directory(cluster::ClusterSpec(), {}, nullptr);
  worker::AddWorkerMethods(nullptr, nullptr, {}, &directory, nullptr, nullptr, &methods);
  master::AddGateMethods(nullptr, &directory, &methods);
  handover::HandoverSource source({});
  source.AddMethods(&methods);
  ASSERT_GT(methods.size(), 23u);
  const JobIdentity stranger = *MakeJobIdentity("one.weft-job", absl::Now(), absl::Hours(1));
  const JobIdentity expired =
      *MakeJobIdentity("one.weft-job", absl::Now() - absl::Hours(2), absl::Hours(1));
  struct Knock {
    const char* who;
    std::string address;
    const JobIdentity* identity;
    bool is_let_in;
    absl::StatusCode code;
    const char* told;
  };
  const std::string tls = absl::StrCat("dns:///", Loopback());
  const Knock knocks[] = {
      {"the job, from anywhere", Wide(), &job_, true, {}, ""},
      {"the job, in TLS on loopback", tls, &job_, true, {}, ""},
      {"anybody on this host", Loopback(), nullptr, true, {}, ""},
      {"anybody from elsewhere", Wide(), nullptr, false, absl::StatusCode::kUnauthenticated,
       "grpc://127.0.0.1"},
      {"another job of the same authority", Wide(), &other_job_, false,
       absl::StatusCode::kUnavailable, ""},
      {"one with a certificate of its own making", Wide(), &stranger, false,
       absl::StatusCode::kUnavailable, ""},
      {"one whose time is over", Wide(), &expired, false, absl::StatusCode::kUnavailable, ""},
  };
  for (const auto& [path, method] : methods) {
    // A RecvTensor or the like that waits for its step would wait until the deadline.
    for (const Knock& knock : knocks) {
      if (knock.is_let_in && path != "/tensorflow.MasterService/ListDevices" &&
          path != "/tensorflow.WorkerService/GetStatus") {
        continue;
      }
      const Status status = Call(knock.address, knock.identity, path);
      if (knock.is_let_in) {
        EXPECT_EQ(status, absl::OkStatus()) << knock.who << ", " << path;
      } else {
        EXPECT_EQ(status.code(), knock.code) << knock.who << ", " << path << ": " << status;
        EXPECT_THAT(std::string(status.message()), HasSubstr(knock.told));
      }
    }
  }
}

// The other side's check is left out by a client of ours, but not by the server.
TEST_F(ServerIdentityTest, AServerChecksTheNameItself) {
  StartBoth();
  JobIdentity careless = other_job_;
  careless.name = job_.name;  // expects what the server shows
  const Status status = Call(Wide(), &careless, "/tensorflow.WorkerService/GetStatus");
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("another job"));
}

TEST_F(ServerIdentityTest, StepsCrossTasksInsideTlsAndAreDrivenFromLoopback) {
  StartBoth();
  Graph graph(&StandardCatalogue().ops());
  GraphBuilder builder(&graph);
  builder.set_device("/job:ps/task:0");
  const Endpoint big = builder.Op(
      "Fill", {builder.Constant(Tensor::Vector<int32_t>({1 << 20})), builder.Scalar<float>(2)}, {});
  builder.set_device("/job:worker/task:0");
  builder.Op("Sum", {big, builder.Scalar<int32_t>(0)}, {{"Tidx", DType::kInt32}}, "sum");
  ASSERT_TRUE(builder.ok()) << builder.status();
  const std::unique_ptr<session::Session> session = LocalSession();
  ASSERT_EQ(session->Extend(ExportGraph(graph)), absl::OkStatus());
  std::vector<Tensor> results;
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(session->Run({}, {"sum"}, {}, &results), absl::OkStatus());
    EXPECT_EQ(results[0].data<float>()[0], 2 << 20);
  }
}

// As in a cluster, where the task's name leads to the next process and that finds the one before by
// its own address.
TEST_F(ServerIdentityTest, ATaskMovesInsideTls) {
  StartBoth();
  servers_["ps"].reset();
  ServerOptions first = OptionsOf("ps");
  first.identity = job_;
  first.hand_over_within = absl::Minutes(1);
  ASSERT_EQ(Start(first), absl::OkStatus());
  Graph graph(&StandardCatalogue().ops());
  GraphBuilder b(&graph);
  b.set_device("/job:ps/task:0");
  const Endpoint w = b.Op(
      "VarHandleOp", {}, {{"dtype", DType::kFloat}, {"shape", Shape{}}, {"shared_name", "w"}}, "w");
  b.Op("AssignVariableOp", {w, b.Scalar<float>(0)}, {}, "init");
  b.Op("AssignAddVariableOp", {w, b.Scalar<float>(1)}, {}, "grow");
  b.Op("ReadVariableOp", {w}, {{"dtype", DType::kFloat}}, "now");
  ASSERT_TRUE(b.ok()) << b.status();
  const std::unique_ptr<session::Session> session = LocalSession();
  ASSERT_EQ(session->Extend(ExportGraph(graph)), absl::OkStatus());
  ASSERT_EQ(session->Run({}, {}, {"init"}, nullptr), absl::OkStatus());
  ASSERT_EQ(session->Run({}, {}, {"grow"}, nullptr), absl::OkStatus());

  ServerOptions next = OptionsOf("ps");
  next.take_over = absl::StrCat(host_, ":0");
  next.take_over_from = Wide();
  next.identity = job_;
  auto taker = Server::Start(next);
  ASSERT_TRUE(taker.ok()) << taker.status();
  servers_["ps"]->HandOver();  // is over at once
  servers_["ps"].reset();
  ASSERT_EQ(session->Run({}, {}, {"grow"}, nullptr), absl::OkStatus());
  std::vector<Tensor> results;
  ASSERT_EQ(session->Run({}, {"now"}, {}, &results), absl::OkStatus());
  EXPECT_EQ(results[0].scalar<float>(), 2);
  // The one whom nobody uses any more waits for nobody.
  ASSERT_EQ(session->Close(), absl::OkStatus());
  (*taker)->HandOver();
}

TEST_F(ServerIdentityTest, WithoutASecretAWidePortHasToBeAskedFor) {
  ServerOptions options = OptionsOf("ps");
  const Status refused = Start(options);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("--task_tls"), HasSubstr("weft secret"), HasSubstr("--insecure")));
  options.insecure = true;
  ASSERT_EQ(Start(options), absl::OkStatus());
  EXPECT_EQ(Call(Wide(), nullptr, "/tensorflow.WorkerService/GetStatus"), absl::OkStatus());
}

TEST_F(ServerIdentityTest, ATakenPortIsFound) {
  StartBoth();
  ServerOptions options = OptionsOf("ps");
  options.identity = job_;
  const Status taken = Server::Start(options).status();
  EXPECT_TRUE(absl::IsUnavailable(taken)) << taken;
  EXPECT_THAT(std::string(taken.message()), HasSubstr("Address already in use"));
  options.bind = "127.0.0.1";
  EXPECT_TRUE(absl::IsUnavailable(Server::Start(options).status()));
}

TEST_F(ServerIdentityTest, ThoseWhoSayNothingOrHalfAreNotInTheWay) {
  StartBoth();
  std::vector<OwnedFd> silent;
  for (int i = 0; i < 300; ++i) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(ports_[0]));
    ASSERT_EQ(::inet_pton(AF_INET, host_.c_str(), &address.sin_addr), 1);
    silent.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(
        ::connect(silent.back().get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    ASSERT_GE(::send(silent.back().get(), "\x16\x03\x01", i % 2 == 0 ? 3 : 0, MSG_NOSIGNAL), 0);
  }
  EXPECT_EQ(Call(Wide(), &job_, "/tensorflow.WorkerService/GetStatus"), absl::OkStatus());
  EXPECT_EQ(Call(Loopback(), nullptr, "/tensorflow.WorkerService/GetStatus"), absl::OkStatus());
}

TEST_F(ServerIdentityTest, FilesStayInTheWorkingDirectory) {
  StartBoth();
  Graph graph(&StandardCatalogue().ops());
  GraphBuilder builder(&graph);
  builder.set_device("/job:ps/task:0");
  builder.Op("ReadFile", {builder.Constant(Tensor::Scalar<std::string>("/etc/hostname"))}, {},
             "content");
  ASSERT_TRUE(builder.ok()) << builder.status();
  const std::unique_ptr<session::Session> session = LocalSession();
  ASSERT_EQ(session->Extend(ExportGraph(graph)), absl::OkStatus());
  std::vector<Tensor> results;
  const Status status = session->Run({}, {"content"}, {}, &results);
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("leads out of the folder"));
}

}  // namespace
}  // namespace weft::server
