// SPDX-License-Identifier: Apache-2.0
// The masters of this process: a program that runs a server talks to it without a socket.
#pragma once

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "weft/master/master.h"
#include "weft/master/master_service.h"

namespace weft::master {

// A master that may go while sessions still name it. Thread-safe.
class LocalMaster {
 public:
  LocalMaster(Master* master, StepMetrics* metrics) : master_(master), metrics_(metrics) {}

  // Calls between Enter and Leave keep the master alive; null once it is gone.
  Master* Enter();
  void Leave();
  // Waits until nobody is inside; the master's steps must have been cancelled.
  void Retire();
  StepMetrics& metrics() { return *metrics_; }

 private:
  absl::Mutex mutex_;
  Master* master_ ABSL_GUARDED_BY(mutex_);
  StepMetrics* const metrics_;
  int inside_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Puts a master under its target ("grpc://host:port") while the registration lives.
class LocalMasterRegistration {
 public:
  LocalMasterRegistration(std::string target, Master* master, StepMetrics* metrics);
  ~LocalMasterRegistration();
  LocalMasterRegistration(const LocalMasterRegistration&) = delete;
  LocalMasterRegistration& operator=(const LocalMasterRegistration&) = delete;

 private:
  const std::string target_;
  const std::shared_ptr<LocalMaster> master_;  // shared with sessions
};

// The master of this process at `target`; null if it is not here.
std::shared_ptr<LocalMaster> FindLocalMaster(const std::string& target);

}  // namespace weft::master
