// SPDX-License-Identifier: Apache-2.0
// Pods, nodes and pod groups of a cluster as workloads of a dispatcher.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "platform/resources/cluster_state.h"
#include "platform/scheduling/dispatcher.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// Thread-compatible; calls nobody. Times are seconds.
class WorkloadBook {
 public:
  using Key = std::pair<std::string, std::string>;  // namespace and name
  struct Options {
    std::set<std::string> scheduler_names;  // whose pods are placed here; all count where they are
    std::string only_node;                  // no other is used; empty: all are
    const Order* order = nullptr;
    PlacementPolicy* placement = nullptr;
    Backfill backfill = Backfill::kEasy;
    std::vector<QueueSpec> queues;
    int most_candidates = 0;
  };
  explicit WorkloadBook(Options options);

  // What a watch says; null: it has gone.
  void SetNode(const std::string& name, const Json* node);
  void SetPod(const Key& key, const ObjectPtr& pod, double now);
  // Of the gang "namespace/name": how many start together; 0: it is not known.
  void SetGang(const std::string& gang, int64_t members, const std::string& queue);

  struct Binding {
    ObjectPtr pod;
    std::string node;
    std::string gpus;  // "0,3"
  };
  struct Eviction {
    ObjectPtr pod;
    std::string reason;
  };
  // Who is to be bound, who is to go. Both count as done at once.
  void Decide(double now, std::vector<Binding>* bindings, std::vector<Eviction>* evictions);
  // The pod is still there, has this place here, and no watch has shown it bound.
  bool Awaits(const Binding& binding) const;
  // It was not bound, or does not go.
  void TakeBack(const Binding& binding, double now);
  void TakeBack(const Eviction& eviction);

  // One that waits here, and why.
  struct Pending {
    ObjectPtr pod;
    bool is_gated = false;
    std::string why;
  };
  // Reasons of the same needs are found once.
  std::vector<Pending> ExplainPending(double now);
  // Whoever names a scheduler that is not here.
  std::vector<ObjectPtr> Foreign() const;

  const ClusterState& state() const { return state_; }
  int waiting_count() const { return dispatcher_.waiting_count(); }

 private:
  enum class Stage { kIgnored, kForeign, kGated, kWaiting, kPlaced };
  struct Entry {
    ObjectPtr pod;
    Stage stage = Stage::kIgnored;
    std::shared_ptr<const PodNeeds> needs;
    Status problem;  // the pod cannot be understood
    std::string gang;
    std::string node;  // of a placed one
    Dispatcher::Id id = -1;
  };
  struct Gang {
    int64_t members = 0;  // that start together; 0: not known
    std::string queue;
    std::set<Key> pods;
    int64_t finished = 0;
    Dispatcher::Id running = -1;
  };
  void Enter(const Key& key, Entry* entry, double now);
  void EnterPlaced(const Key& key, Entry* entry, double now);
  void Leave(const Key& key, Entry* entry, double now);
  void Withdraw(Dispatcher::Id id, double now);
  void FormGang(const std::string& name, double now);
  void Submit(const std::vector<Key>& keys, double now);
  bool IsPartial(const Gang& gang) const;
  void EvictPartialGangs(double now, std::vector<Eviction>* evictions);
  int NodeNumber(const std::string& name);
  // The queue that the pod or its PodGroup names; empty: none.
  std::string QueueNameOf(const Entry& entry) const;
  int QueueOf(const Entry& entry) const;
  // It names a queue that is none of those that were given: it waits for somebody to correct that.
  bool NamesNoQueue(const Entry& entry) const;
  std::shared_ptr<const PodNeeds> Share(std::shared_ptr<const PodNeeds> needs, const Json& pod);
  // pending_reasons.cc
  struct Ends;
  std::string WhyGangWaits(const Entry& entry) const;
  std::string WhyNamesNoQueue(const Entry& entry) const;
  std::string WhyNoQuota(const Workload& workload) const;
  std::string WhatIsMissing(const PodNeeds& needs, const Ends& ends);
  std::string WhyNoRoom(const Entry& entry, const Ends& ends);
  std::string WhyNotWhole(const Entry& entry, const Workload& workload, const Ends& ends);
  std::string WhatWouldHelp(const PodNeeds& needs, const Ends& ends);
  std::string NameForPeople(const Entry& entry) const;

  const Options options_;
  ResourceNames names_;
  ClusterState state_;
  Quotas quotas_;
  Dispatcher dispatcher_;
  std::map<Key, Entry> pods_;
  std::map<std::string, Gang> gangs_;
  std::map<Key, std::string> finished_;  // pods of gangs, and whose
  std::set<std::string> changed_gangs_;
  std::set<std::string> touched_gangs_;                 // since the last decision; those and more
  std::map<std::string, double> partial_gangs_;         // and since when
  std::map<Dispatcher::Id, std::vector<Key>> members_;  // in the order of Workload::pods
  bool has_new_capacity_ = false;
  // Pods of one template are placed alike.
  std::map<std::string, std::weak_ptr<const PodNeeds>> shared_;
};

// "namespace/name" of the gang that the pod belongs to, by the known labels; "" when to none.
std::string GangOf(const Json& pod);

}  // namespace weft::platform
