// SPDX-License-Identifier: Apache-2.0
// The truth of a simulation: what the API server holds, what the nodes do, and what may never be.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "platform/simulation/random.h"
#include "platform/simulation/setting.h"
#include "platform/store/embedded/embedded_store.h"

namespace weft::platform::simulation {

// Text of what is there, by object, without times, uids and revisions: equal when two runs came to
// the same end.
using State = std::map<std::string, std::string>;
// One line for each entry in which they differ.
std::string Difference(const State& wanted, const State& found);

// Stands still until it is told, without a lock.
class StillClock : public Clock {
 public:
  absl::Time Now() const override { return absl::FromUnixSeconds(1700000000) + elapsed_; }
  absl::Duration Monotonic() const override { return elapsed_; }
  void Advance(absl::Duration by) { elapsed_ += by; }

 private:
  absl::Duration elapsed_;
};

// An embedded store that always answers, nodes that run every pod until a script ends it, a
// scheduler of gangs, and an eye on each change. Not thread-safe.
class SimulatedCluster {
 public:
  SimulatedCluster(uint64_t seed, const Setting& setting);
  ~SimulatedCluster();

  EmbeddedStore* store() { return store_.get(); }
  StillClock* clock() { return &clock_; }
  const Setting& setting() const { return setting_; }
  const State& state() const { return state_; }
  uint64_t changes() const { return changes_; }
  // What happened that may not: two live pods of a task, a finished job that makes pods, ...
  const std::vector<std::string>& violations() const { return violations_; }
  void Complain(const std::string& what) { violations_.push_back(what); }
  // Pods and services whose owner is no more.
  void CheckOrphans();

  // When a node or the scheduler has something to do, infinite when never; and one such thing.
  absl::Duration NextNodeWork() const;
  void DoNodeWork();

  // A pod ends, as its node tells. Code -1: it was evicted and nobody knows one. False: there is no
  // such pod.
  bool EndPod(const std::string& name, int64_t code);
  // Its container was started again on its node.
  bool RestartInPlace(const std::string& name);
  // Whether the scheduler lets gangs in.
  void OpenQueue(bool is_open);
  bool IsQueueOpen() const { return is_queue_open_; }
  ObjectPtr Job(const std::string& name) const;
  // Which no job owns.
  bool HasForeignPod(const std::string& name) const;
  // Names of pods that have ended; of pods that run and are not about to end. In order.
  std::vector<std::string> EndedPods(const std::string& job) const;
  std::vector<std::string> RunningPods(const std::string& job) const;
  std::vector<std::string> ServicesOf(const std::string& job) const;
  bool IsBoard(const std::string& pod) const;

 private:
  void OnJob(const WatchEvent& event);
  void OnPod(const WatchEvent& event);
  void OnService(const WatchEvent& event);
  void OnGroup(const WatchEvent& event);
  void CheckNewPod(const Json& pod);
  void CheckOneLivePod(const Json& pod);
  void CheckAttempts(const Json& pod);
  void CheckAdmission(const Json& pod);
  void CheckJob(const Json& previous, const Json& job);
  void DoPodWork(const std::string& name);
  void DoGroupWork(const std::string& name);
  // Whether all are there who start together with this pod.
  bool IsGangComplete(const Json& pod) const;
  void WakeGangs();
  void Set(const std::string& key, const std::string& text);
  void Drop(const std::string& key);

  const Setting setting_;
  Random random_;
  StillClock clock_;
  State state_;
  uint64_t changes_ = 0;
  std::vector<std::string> violations_;
  std::map<std::string, ObjectPtr> jobs_;
  std::map<std::string, ObjectPtr> pods_;
  std::map<std::string, ObjectPtr> services_;
  std::set<std::string> pod_uids_;
  std::map<std::string, int64_t> runs_;  // pods of a name that ever ran
  std::map<std::string, ObjectPtr> groups_;
  bool is_queue_open_ = true;
  std::map<std::string, absl::Duration> node_work_;
  std::map<std::string, absl::Duration> group_work_;
  std::unique_ptr<EmbeddedStore> store_;
  std::vector<std::unique_ptr<Watch>> watches_;
};

}  // namespace weft::platform::simulation
