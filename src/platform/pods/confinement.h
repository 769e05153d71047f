// SPDX-License-Identifier: Apache-2.0
// Holds containers to the processors and the memory that their resources say.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "absl/time/time.h"

#include "net/json.h"
#include "platform/pods/control_group.h"
#include "platform/pods/cpu_sets.h"

namespace weft::platform {

class Confiner;

// Of one run of a container; borrowed by it, so it goes before its Confiner does.
class Confinement {
 public:
  ~Confinement();
  Confinement(const Confinement&) = delete;
  Confinement& operator=(const Confinement&) = delete;

  // For SpawnOptions.
  std::vector<int> processors() const;
  int control_group() const { return group_ == nullptr ? -1 : group_->members(); }
  void HasBegun(pid_t pid) { pid_ = pid; }
  // Why it was killed for its memory; empty: it was not.
  std::string WhyKilled() const;

 private:
  friend class Confiner;
  Confinement(Confiner* confiner, std::string id) : confiner_(confiner), id_(std::move(id)) {}

  Confiner* const confiner_;
  const std::string id_;
  int64_t memory_limit_ = 0;  // bytes; 0: none
  std::unique_ptr<ControlGroup> group_;
  std::vector<int> applied_;  // the processors that its processes have; empty: all
  pid_t pid_ = 0;
  std::string why_killed_;
};

// Memory by a control group where the system has one for us, else by a look at the processes a few
// times a second; processors by affinity, and by a control group where there is one. Not
// thread-safe.
class Confiner {
 public:
  explicit Confiner(std::vector<int> processors, ProcessorTopology topology = {});
  ~Confiner();
  Confiner(const Confiner&) = delete;
  Confiner& operator=(const Confiner&) = delete;

  // `told` gets what is in force, in words; empty when its resources set no limit.
  std::unique_ptr<Confinement> Confine(const Json& pod, const Json& container, std::string* told);
  // Moves what must move to other processors; kills what takes too much memory.
  void Watch(absl::Duration monotonic_now);
  // When Watch has something to do on its own.
  absl::Duration due() const;

 private:
  friend class Confinement;
  void Forget(const Confinement& confinement);
  ControlGroups* Groups();
  void Move();
  void Weigh(absl::Duration monotonic_now);

  CpuSets processors_;
  bool has_looked_for_groups_ = false;
  std::unique_ptr<ControlGroups> groups_;
  std::map<std::string, Confinement*> running_;  // by id
  int64_t next_id_ = 0;
  absl::Duration next_weighing_;
};

// Those that this process may run on.
std::vector<int> OurProcessors();

}  // namespace weft::platform
