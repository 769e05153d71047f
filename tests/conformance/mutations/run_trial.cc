// SPDX-License-Identifier: Apache-2.0
#include "run_trial.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <utility>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

#include "base/files.h"
#include "base/memory_files.h"
#include "weft/client/session.h"
#include "weft/device/cpu/cpu_device.h"
#include "weft/graph/graph_proto.h"
#include "weft/ops/catalogue.h"
#include "weft/session/direct_session.h"
#include "weft/tensor/tensor_proto.h"

namespace weft::mutations {
namespace {

Status RunSteps(const Trial& trial, session::Session* session) {
  WEFT_ASSIGN_OR_RETURN(const GraphDef graph, ParseGraphDef(trial.graph));
  WEFT_RETURN_IF_ERROR(session->Extend(graph));
  Status first;
  for (const tensorflow::RunStepRequest& step : trial.steps) {
    std::vector<session::Feed> feeds;
    for (const auto& feed : step.feed()) {
      WEFT_ASSIGN_OR_RETURN(Tensor tensor, TensorFromProto(feed.tensor()));
      feeds.emplace_back(feed.name(), std::move(tensor));
    }
    std::vector<Tensor> results;
    Status status =
        session->Run({.timeout = kStepTime}, feeds, {step.fetch().begin(), step.fetch().end()},
                     {step.target().begin(), step.target().end()}, &results, nullptr);
    for (const Tensor& result : results) {
      tensorflow::TensorProto proto;
      if (status.ok()) status = TensorToProto(result, &proto);
    }
    if (first.ok()) first = std::move(status);
  }
  return first;
}

// Free a moment ago; a server that finds it taken ends at once.
StatusOr<int> FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{.sin_family = AF_INET};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  const bool found = bind(fd, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  close(fd);
  if (!found) return Unavailable("No port is free");
  return ntohs(address.sin_port);
}

bool Answers(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(static_cast<uint16_t>(port))};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool connected = connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  close(fd);
  return connected;
}

}  // namespace

StatusOr<std::unique_ptr<OwnServer>> OwnServer::Start(const std::string& program, uint64_t memory) {
  std::unique_ptr<OwnServer> server(new OwnServer());
  char name[] = "/tmp/weft-mutations-XXXXXX";
  if (mkdtemp(name) == nullptr) return Unavailable("No folder for a server");
  server->folder_ = name;
  RealFileSystem files;
  WEFT_RETURN_IF_ERROR(files.MakeDirectories(server->folder_ + "/root/files"));
  WEFT_ASSIGN_OR_RETURN(const int port, FreePort());
  const std::string cluster = absl::StrCat("{\"local\":[\"127.0.0.1:", port, "\"]}");
  const std::string root = server->folder_ + "/root";
  const std::string log = server->folder_ + "/log";
  server->target_ = absl::StrCat("grpc://127.0.0.1:", port);
  const char* const words[] = {
      program.c_str(), "server",    "--cluster", cluster.c_str(), "--job_name", "local", "--root",
      root.c_str(),    "--threads", "2",         "--grace",       "0",          nullptr};
  server->pid_ = fork();
  if (server->pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const rlimit limit{memory, memory};
    setrlimit(RLIMIT_AS, &limit);
    const int fd = open(log.c_str(), O_WRONLY | O_CREAT, 0600);
    dup2(fd, 1);
    dup2(fd, 2);
    execv(program.c_str(), const_cast<char* const*>(words));
    _exit(127);
  }
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  while (!Answers(port)) {
    if (std::string death = server->Death(); !death.empty()) return Unavailable(death);
    if (absl::Now() > deadline) return Unavailable("A server does not answer after a minute");
    absl::SleepFor(absl::Milliseconds(20));
  }
  return server;
}

std::string OwnServer::Death() {
  int status = 0;
  if (pid_ < 0 || waitpid(pid_, &status, WNOHANG) != pid_) return "";
  pid_ = -1;
  RealFileSystem files;
  const StatusOr<std::string> log = ReadFile(files, folder_ + "/log");
  const std::string tail =
      log.ok() ? log->substr(log->size() - std::min<size_t>(log->size(), 2000)) : "";
  return absl::StrCat(WIFSIGNALED(status) ? absl::StrCat("signal ", WTERMSIG(status))
                                          : absl::StrCat("exit code ", WEXITSTATUS(status)),
                      " ended the server, which had said:\n", tail);
}

OwnServer::~OwnServer() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (!folder_.empty()) std::system(absl::StrCat("rm -rf '", folder_, "'").c_str());
}

Status RunTrial(const Trial& trial, const std::string& target) {
  MemoryFileSystem files;
  if (!target.empty()) {
    client::SessionOptions options;
    options.target = target;
    WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<session::Session> session,
                          client::NewSession(options));
    const Status status = RunSteps(trial, session.get());
    session->Close().IgnoreError();
    return status;
  }
  WEFT_RETURN_IF_ERROR(files.MakeDirectories("files"));
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<session::Session> session,
                        session::NewDirectSession({.catalogue = &StandardCatalogue(),
                                                   .devices = &StandardDevices(),
                                                   .num_threads = trial.two_threads ? 2 : 1,
                                                   .fold = trial.fold,
                                                   .fuse = trial.fuse,
                                                   .files = &files}));
  return RunSteps(trial, session.get());
}

}  // namespace weft::mutations
