// SPDX-License-Identifier: Apache-2.0
// The controller on the embedded store with a clock of the test's own; the test is the kubelet.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "platform/jobs/tfjob_controller.h"
#include "platform/object/fields.h"
#include "platform/store/embedded/embedded_store.h"

namespace weft::platform {

// What tfReplicaSpecs has of one type; an empty policy is left out.
Json Replica(int64_t replicas, const std::string& policy);
// A TFJob named "job", without replicas.
Json Job(const std::string& version = "v1");
Json JobOf(std::initializer_list<std::pair<const char*, Json>> replicas,
           const std::string& version = "v1");
// With a worker, and parameter servers that programs know as so many tasks, in so many pods.
Json ServerJob(int64_t pods, int64_t tasks);

class ControllerFixture : public ::testing::Test {
 protected:
  ControllerFixture();
  // As after a crash: nothing is left but the store.
  void MakeController();
  void Submit(const Json& job);
  void Settle();
  void Advance(absl::Duration by);
  std::string Names(const ResourceType& type);
  Json Pod(const std::string& name);
  Json JobNow();
  // What the kubelet would write; a negative code: no container status.
  void Fate(const std::string& name, const std::string& phase, int64_t code = 0,
            int64_t restarts = 0);
  // What a node writes of the lines that the pod's program prints.
  void Tell(const std::string& name, const std::string& report);
  // "Created+ Running-"
  std::string Conditions();
  Json TfConfig(const std::string& pod);
  int64_t Revision();

  FakeClock clock_{absl::FromUnixSeconds(1700000000)};
  std::unique_ptr<EmbeddedStore> store_;
  TfJobController::Options options_;
  std::unique_ptr<TfJobController> controller_;
};

}  // namespace weft::platform
