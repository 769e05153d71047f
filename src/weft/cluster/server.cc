// SPDX-License-Identifier: Apache-2.0
#include "weft/cluster/server.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/log.h"
#include "base/threads.h"
#include "base/timers.h"
#include "weft/cluster/grpc_service.h"
#include "weft/cluster/listen_check.h"
#include "weft/cluster/local_cluster.h"
#include "weft/cluster/master.h"
#include "weft/cluster/master_service.h"
#include "weft/device/cpu/cpu_device.h"

namespace weft::cluster {
namespace {

// Calls that set things up may wait for other tasks; they get threads of their own.
constexpr int kCallThreads = 8;

class TaskServer final : public Server {
 public:
  explicit TaskServer(const ServerOptions& options)
      : task_(options.task),
        compute_("weft-compute", options.num_threads > 0 ? options.num_threads : UsableCores()),
        calls_("weft-calls", std::max(kCallThreads, compute_.num_threads())) {}

  ~TaskServer() override { Shutdown(absl::ZeroDuration()); }

  Status Init(const ServerOptions& options) {
    WEFT_ASSIGN_OR_RETURN(const std::string own, options.cluster.AddressOf(options.task));
    WEFT_ASSIGN_OR_RETURN(const auto host_port, SplitHostPort(own));
    if (!options.root.empty()) {
      WEFT_ASSIGN_OR_RETURN(files_, RootedFileSystem::Create(options.root));
    } else {
      files_ = std::make_unique<RealFileSystem>();
    }
    const DeviceName task{.job = options.task.job, .replica = 0, .task = options.task.index};
    session::EngineOptions engine{.catalogue = options.catalogue,
                                  .pool = &compute_,
                                  .files = files_.get(),
                                  .single_threaded = compute_.num_threads() == 1};
    for (int i = 0; i < std::max(1, options.num_cpu_devices); ++i) {
      devices_.push_back(MakeCpuDevice(task, i, &compute_));
      engine.devices.push_back(devices_.back().get());
    }
    cluster_ = std::make_unique<LocalCluster>(task, std::move(engine));
    master_.emplace(MasterOptions{.lease = options.session_lease}, cluster_.get(), &timers_);
    return Listen(host_port.first, host_port.second, options.bind);
  }

  int port() const override { return grpc_->port(); }
  std::string target() const override { return absl::StrCat("grpc://", JoinHostPort(host_, port())); }

  void Shutdown(absl::Duration grace) override {
    if (shut_down_.exchange(true)) return;
    if (master_) master_->Shutdown();
    if (grpc_) grpc_->Shutdown(grace);
  }

 private:
  Status Listen(const std::string& host, int port, const std::string& bind) {
    host_ = host;
    std::string at = bind;
    if (at.empty()) at = IsLoopbackHost(host) ? host : "::";
    if (!IsLoopbackHost(at)) {
      WEFT_LOG(WARNING) << "Listening at " << JoinHostPort(at, port)
                        << " WITHOUT ENCRYPTION OR PASSWORD: whoever reaches this port can run any "
                           "graph here. Keep it inside a private network, or use --bind.";
    }
    MethodTable methods;
    AddMasterMethods(&*master_, &methods);
    WEFT_ASSIGN_OR_RETURN(grpc_, GrpcServer::Start(JoinHostPort(at, port), std::move(methods), &calls_));
    WEFT_LOG(INFO) << task_.ToString() << " serves at " << target();
    return absl::OkStatus();
  }

  // In the order in which they need each other: the last goes first.
  const TaskId task_;
  std::string host_;
  std::unique_ptr<FileSystem> files_;
  ThreadPool compute_;
  TimerQueue timers_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::unique_ptr<ClusterAccess> cluster_;
  std::optional<Master> master_;
  ThreadPool calls_;
  std::unique_ptr<GrpcServer> grpc_;
  std::atomic<bool> shut_down_{false};
};

}  // namespace

StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options) {
  if (options.catalogue == nullptr) return InvalidArgument("A server needs a catalogue of ops");
  WEFT_RETURN_IF_ERROR(options.catalogue->status());
  auto server = std::make_unique<TaskServer>(options);
  WEFT_RETURN_IF_ERROR(server->Init(options));
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace weft::cluster
