// SPDX-License-Identifier: Apache-2.0
// For tests: a parameter server and workers, whole servers in this process.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/str_join.h"

#include "weft/client/session.h"
#include "weft/device/cpu/cpu_device.h"
#include "weft/ops/catalogue.h"
#include "weft/server/server.h"

namespace weft::train::testing {

// Thread-safe after construction. Failures are test failures.
class LocalCluster {
 public:
  explicit LocalCluster(int num_workers, int num_ps = 1) {
    const std::vector<std::string> ps = FreeAddresses(num_ps);
    const std::vector<std::string> workers = FreeAddresses(num_workers);
    spec_ = absl::StrCat(R"({"ps":[")", absl::StrJoin(ps, "\",\""), R"("],"worker":[")",
                         absl::StrJoin(workers, "\",\""), "\"]}");
    for (int i = 0; i < num_ps; ++i) servers_.push_back(Start("ps", i));
    for (int i = 0; i < num_workers; ++i) workers_.push_back(Start("worker", i));
  }

  // Of that worker, for who makes sessions.
  std::string target(int worker) const {
    return workers_[worker] == nullptr ? "" : workers_[worker]->target();
  }
  // A session at that worker's master which needs the tasks of `filters` only.
  StatusOr<std::unique_ptr<session::Session>> NewSession(int worker,
                                                         std::vector<std::string> filters) {
    if (workers_[worker] == nullptr) return FailedPrecondition("The server did not start");
    return client::NewSession({.target = workers_[worker]->target(),
                               .device_filters = std::move(filters),
                               .soft_placement = false});
  }

 private:
  static std::vector<std::string> FreeAddresses(int count) {
    std::vector<int> sockets;
    std::vector<std::string> addresses;
    for (int i = 0; i < count; ++i) {
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      socklen_t size = sizeof(address);
      sockets.push_back(socket(AF_INET, SOCK_STREAM, 0));
      EXPECT_EQ(bind(sockets.back(), reinterpret_cast<sockaddr*>(&address), size), 0);
      EXPECT_EQ(getsockname(sockets.back(), reinterpret_cast<sockaddr*>(&address), &size), 0);
      addresses.push_back(absl::StrCat("127.0.0.1:", ntohs(address.sin_port)));
    }
    for (const int socket : sockets) close(socket);
    return addresses;
  }

  std::unique_ptr<server::Server> Start(const std::string& job, int index) {
    StatusOr<cluster::ClusterSpec> spec = cluster::ClusterSpec::FromJson(spec_);
    EXPECT_TRUE(spec.ok()) << spec.status();
    if (!spec.ok()) return nullptr;
    StatusOr<std::unique_ptr<server::Server>> server =
        server::Server::Start({.cluster = *spec,
                               .task = {job, index},
                               .catalogue = &StandardCatalogue(),
                               .devices = &StandardDevices(),
                               .num_threads = 2});
    EXPECT_TRUE(server.ok()) << server.status();
    return server.ok() ? *std::move(server) : nullptr;
  }

  std::string spec_;
  std::vector<std::unique_ptr<server::Server>> servers_;
  std::vector<std::unique_ptr<server::Server>> workers_;
};

}  // namespace weft::train::testing
