// SPDX-License-Identifier: Apache-2.0
// Takes the node, and on it the GPU, where the free GPUs lose least of their use for the pods that
// are expected: fragmentation gradient descent (Weng et al., USENIX ATC 2023).
#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

#include "platform/resources/fit.h"
#include "platform/resources/placement.h"

namespace weft::platform {
namespace {

// The most frequent kinds of pods; rare ones hardly change the sum.
constexpr size_t kMostKinds = 64;

struct Kind {
  int64_t cpu = 0;
  int64_t memory = 0;
  int64_t gpus = 0;
  int64_t thousandths = 0;  // of each
  double part = 0;          // of all pods
};

// What of a node counts here, small enough to be copied and changed.
struct Left {
  int64_t cpu = 0;
  int64_t memory = 0;
  absl::InlinedVector<int64_t, 8> gpus;  // free thousandths
};

Left LeftOf(const NodeState& node) {
  Left left;
  left.cpu = AmountOf(node.free, kCpu);
  left.memory = AmountOf(node.free, kMemory);
  for (const GpuState& gpu : node.gpus) left.gpus.push_back(gpu.free_thousandths);
  return left;
}

// Free thousandths of GPUs that this kind of pod could not use here.
double LostTo(const Left& left, const Kind& kind) {
  int64_t all = 0;
  int64_t too_small = 0;
  int64_t fitting = 0;
  for (const int64_t free : left.gpus) {
    all += free;
    if (free < kind.thousandths) {
      too_small += free;
    } else {
      ++fitting;
    }
  }
  const bool runs =
      kind.gpus > 0 && kind.cpu <= left.cpu && kind.memory <= left.memory && fitting >= kind.gpus;
  return static_cast<double>(runs ? too_small : all);
}

class Fragmentation : public PlacementPolicy {
 public:
  const char* name() const override { return "fragmentation"; }
  Walk walk() const override { return Walk::kAll; }

  void Expect(const std::vector<std::shared_ptr<const PodNeeds>>& pods) override {
    std::map<std::tuple<int64_t, int64_t, int64_t, int64_t>, int64_t> counts;
    for (const auto& pod : pods) {
      const int64_t part = pod->gpu.thousandths < kWholeGpu ? pod->gpu.thousandths : kWholeGpu;
      ++counts[{AmountOf(pod->amounts, kCpu), AmountOf(pod->amounts, kMemory), pod->gpu.count,
                pod->gpu.count == 0 ? 0 : part}];
    }
    std::vector<Kind> kinds;
    for (const auto& [key, count] : counts) {
      kinds.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), std::get<3>(key),
                       static_cast<double>(count) / static_cast<double>(pods.size())});
    }
    std::stable_sort(kinds.begin(), kinds.end(),
                     [](const Kind& a, const Kind& b) { return a.part > b.part; });
    if (kinds.size() > kMostKinds) kinds.resize(kMostKinds);
    kinds_ = std::move(kinds);
    known_.clear();
  }

  double Score(const ClusterState& state, int number, const PodNeeds& needs,
               const GangProgress& /*gang*/) override {
    const NodeState& node = state.node(number);
    // What a GPU pod and one without mean to a node hangs on the node and the needs alone.
    std::vector<Known>& row = known_[KeyOf(needs)];
    if (row.size() <= static_cast<size_t>(number)) row.resize(static_cast<size_t>(number) + 1);
    Known& known = row[static_cast<size_t>(number)];
    if (known.version != node.version) {
      absl::InlinedVector<int, 8> gpus;
      known = {node.version, -Increase(node, needs, &gpus)};
    }
    return known.score;
  }

  bool ChooseGpus(const NodeState& node, const PodNeeds& needs,
                  absl::InlinedVector<int, 8>* gpus) override {
    if (needs.gpu.count != 1 || !needs.gpu.is_shared())
      return platform::ChooseGpus(node, needs.gpu, gpus);
    Increase(node, needs, gpus);
    return !gpus->empty();
  }

 private:
  struct Known {
    uint64_t version = 0;
    double score = 0;
  };
  using Key = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t>;

  static Key KeyOf(const PodNeeds& needs) {
    return {AmountOf(needs.amounts, kCpu), AmountOf(needs.amounts, kMemory), needs.gpu.count,
            needs.gpu.thousandths, needs.gpu.memory};
  }

  double LossOf(const Left& left) const {
    double sum = 0;
    for (const Kind& kind : kinds_) sum += kind.part * LostTo(left, kind);
    return sum;
  }

  // By how much the pod raises the loss, in whole GPUs, where it does least; `gpus` are those.
  double Increase(const NodeState& node, const PodNeeds& needs, absl::InlinedVector<int, 8>* gpus) {
    gpus->clear();
    const Left before = LeftOf(node);
    const double loss = LossOf(before);
    Left after = before;
    after.cpu -= AmountOf(needs.amounts, kCpu);
    after.memory -= AmountOf(needs.amounts, kMemory);
    if (needs.gpu.count != 1 || !needs.gpu.is_shared()) {
      if (!platform::ChooseGpus(node, needs.gpu, gpus)) return 1e9;
      for (const int index : *gpus) {
        const auto at = static_cast<size_t>(index);
        after.gpus[at] -= ThousandthsOf(needs.gpu, node.description->gpus[at]);
      }
      return (LossOf(after) - loss) / kWholeGpu;
    }
    double least = 1e9;
    for (size_t i = 0; i < node.gpus.size(); ++i) {
      if (!GpuFits(node.description->gpus[i], node.gpus[i], needs.gpu)) continue;
      const int64_t part = ThousandthsOf(needs.gpu, node.description->gpus[i]);
      after.gpus[i] -= part;
      const double increase = (LossOf(after) - loss) / kWholeGpu;
      after.gpus[i] += part;
      if (increase < least) {
        least = increase;
        gpus->assign(1, static_cast<int>(i));
      }
    }
    return least;
  }

  std::vector<Kind> kinds_;
  absl::flat_hash_map<Key, std::vector<Known>> known_;
};

}  // namespace

std::unique_ptr<PlacementPolicy> MakeFragmentation() { return std::make_unique<Fragmentation>(); }

}  // namespace weft::platform
