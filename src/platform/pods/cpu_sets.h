// SPDX-License-Identifier: Apache-2.0
// Which processors each container runs on. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "net/json.h"
#include "platform/resources/processor_topology.h"

namespace weft::platform {

struct ProcessorWish {
  int64_t own = 0;                // processors that nobody else gets; 0: none
  int64_t limit_thousandths = 0;  // 0: no limit
  std::string job;                // those of one job go near each other; empty: it is alone
  int64_t job_own = 0;            // instead of `own`: of all containers of the job together
  std::string problem;            // what of it makes no sense; empty: nothing
};
// Own ones for a limit in whole processors in a pod of the class Guaranteed, as a kubelet's static
// policy gives them; by the annotation all of a job together.
ProcessorWish ReadProcessorWish(const Json& pod, const Json& container);

struct ProcessorShare {
  std::vector<int> processors;  // in order
  bool is_own = false;          // nobody else has them, but for those of its job
  bool operator==(const ProcessorShare&) const = default;
};

// Own processors come from those that are shared, of which one at least stays: of one NUMA node and
// of one cache where that goes, whole cores first, near those of the same job and far from others.
// The others share the rest: with a limit of 1.5 two of them, those that have the least to do, else
// all. A wish for own ones that cannot be met counts as a limit. Not thread-safe.
class CpuSets {
 public:
  explicit CpuSets(std::vector<int> processors, ProcessorTopology topology = {});

  void Take(const std::string& id, const ProcessorWish& wish);
  void Release(const std::string& id);
  // As it is now: what others take and give back changes it.
  ProcessorShare ShareOf(const std::string& id) const;
  const std::vector<int>& all() const { return all_; }
  // NUMA nodes of these, in order.
  std::vector<int> NumaNodesOf(const std::vector<int>& processors) const;

 private:
  struct Holder {
    std::vector<int> own;
    size_t most = 0;  // of shared ones; 0: all
    int64_t thousandths = 0;
    std::string job;
    std::string group;  // whose own ones are shared with it; empty: none
    std::vector<int> narrowed;
  };
  struct Group {
    std::vector<int> own;
    std::string job;
    int members = 0;
  };
  ProcessorPlace PlaceOf(int processor) const;
  bool JoinGroup(const ProcessorWish& wish, Holder* holder);
  std::vector<int> TakeOwn(int64_t count, const std::string& job);
  void GiveBack(const std::vector<int>& own);
  // Processors that containers of the job have, own and narrowed ones.
  std::vector<int> ProcessorsOf(const std::string& job) const;
  // The next one of the shared ones after `chosen`, for `wanted` own ones.
  int BestOwn(size_t wanted, const std::vector<int>& chosen, const std::vector<int>& mates) const;
  std::tuple<int64_t, int64_t, int, int64_t, int> SharedRank(int processor,
                                                             const Holder& holder) const;
  int64_t LoadOf(int processor, const Holder* but, const std::string& but_job) const;
  void Narrow();

  const std::vector<int> all_;
  const ProcessorTopology topology_;
  std::vector<int> shared_;
  std::map<std::string, Holder> holders_;
  std::map<std::string, Group> groups_;  // by job
};

// "0-3,6"
std::string FormatProcessors(const std::vector<int>& processors);

}  // namespace weft::platform
