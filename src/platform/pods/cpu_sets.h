// SPDX-License-Identifier: Apache-2.0
// Which processors each container runs on. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "net/json.h"

namespace weft::platform {

struct ProcessorWish {
  int64_t own = 0;                // processors that nobody else gets; 0: none
  int64_t limit_thousandths = 0;  // 0: no limit
};
// Own ones for a limit in whole processors in a pod of the class Guaranteed, as a kubelet's static
// policy gives them.
ProcessorWish ReadProcessorWish(const Json& pod, const Json& container);

struct ProcessorShare {
  std::vector<int> processors;  // in order
  bool is_own = false;          // nobody else has them
  bool operator==(const ProcessorShare&) const = default;
};

// Own processors come from those that are shared, of which one at least stays. The others share the
// rest: with a limit of 1.5 two of them, the least used ones, else all. A wish for own ones that
// cannot be met counts as a limit. Not thread-safe.
class CpuSets {
 public:
  explicit CpuSets(std::vector<int> processors) : all_(std::move(processors)), shared_(all_) {}

  void Take(const std::string& id, const ProcessorWish& wish);
  void Release(const std::string& id);
  // As it is now: what others take and give back changes it.
  ProcessorShare ShareOf(const std::string& id) const;
  const std::vector<int>& all() const { return all_; }

 private:
  struct Holder {
    std::vector<int> own;
    size_t most = 0;  // of shared ones; 0: all
    std::vector<int> narrowed;
  };
  int UsersOf(int processor) const;
  // The least used of the shared ones that are not in `but`.
  int LeastUsed(const std::vector<int>& but) const;
  void Narrow();

  const std::vector<int> all_;
  std::vector<int> shared_;
  std::map<std::string, Holder> holders_;
};

// "0-3,6"
std::string FormatProcessors(const std::vector<int>& processors);

}  // namespace weft::platform
