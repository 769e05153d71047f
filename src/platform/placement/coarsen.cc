// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "platform/placement/step_graph.h"

namespace weft::platform {
namespace {

// Which ops have gone together: a forest with paths that halve.
class Parts {
 public:
  explicit Parts(int count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0); }
  int Find(int op) {
    while (parent_[op] != op) op = parent_[op] = parent_[parent_[op]];
    return op;
  }
  void Join(int part, int into) { parent_[part] = into; }

 private:
  std::vector<int> parent_;
};

struct Joining {
  double bytes = 0;
  int from = 0;
  int to = 0;
};

class Coarsener {
 public:
  Coarsener(const StepGraph& graph, int most_ops, bool keep_roles)
      : graph_(graph), most_ops_(most_ops), keep_roles_(keep_roles), parts_(graph.num_ops()) {
    for (const StepOp& op : graph.ops) {
      weights_.push_back(op.seconds >= 0 ? op.seconds : op.flops * 1e-11 + op.bytes * 1e-10);
      groups_.push_back(op.group);
    }
    count_ = graph.num_ops();
    heaviest_ = std::accumulate(weights_.begin(), weights_.end(), 0.0);
    most_weight_ = 2 * heaviest_ / most_ops;
  }

  StepGraph Run(std::vector<int>* part_of) {
    while (count_ > most_ops_) {
      const int before = count_;
      Round();
      if (before - count_ > before / 50) continue;
      // Hardly anything of this size goes together any more.
      if (most_weight_ >= heaviest_) break;
      most_weight_ *= 2;
    }
    if (count_ > 2 * most_ops_) JoinRuns();
    return Build(part_of);
  }

 private:
  // Ops that read `op`'s part, and those it reads: only told apart as none, one and more.
  static constexpr int kNone = -1;
  static constexpr int kMany = -2;

  void Round() {
    const int count = graph_.num_ops();
    std::vector<int> only_reader(count, kNone);
    std::vector<int> only_source(count, kNone);
    const auto note = [](int other, int* only) {
      if (*only == kNone) *only = other;
      if (*only != other) *only = kMany;
    };
    std::vector<Joining> candidates;
    for (const StepTensor& tensor : graph_.tensors) {
      const int from = parts_.Find(tensor.producer);
      for (const int consumer : tensor.consumers) {
        const int to = parts_.Find(consumer);
        if (from == to) continue;
        note(to, &only_reader[from]);
        note(from, &only_source[to]);
        candidates.push_back({tensor.bytes, from, to});
      }
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Joining& a, const Joining& b) { return a.bytes > b.bytes; });
    // A part changes once a round, so that what was noted of it holds.
    std::vector<bool> is_changed(count, false);
    for (const Joining& each : candidates) {
      if (count_ <= most_ops_) return;
      if (only_reader[each.from] != each.to && only_source[each.to] != each.from) continue;
      if (is_changed[each.from] || is_changed[each.to] || !MayJoin(each)) continue;
      is_changed[each.from] = is_changed[each.to] = true;
      Join(each.from, each.to);
    }
  }

  // Where everything is read by many: what comes one after another in an order that edges follow
  // goes together, which never makes a cycle.
  void JoinRuns() {
    const std::vector<int> order = PartsInOrder();
    const size_t length = order.size() / most_ops_ + 1;
    for (size_t first = 0; first < order.size(); first += length) {
      const size_t end = std::min(first + length, order.size());
      int into = order[first];
      for (size_t i = first + 1; i < end; ++i) {
        if (!MayJoinGroups(order[i], into)) {
          into = order[i];
          continue;
        }
        Join(order[i], into);
      }
    }
  }

  bool MayJoinGroups(int a, int b) const {
    if (keep_roles_) return groups_[a] < 0 && groups_[b] < 0;
    return groups_[a] < 0 || groups_[b] < 0 || groups_[a] == groups_[b];
  }
  bool MayJoin(const Joining& joining) const {
    if (!MayJoinGroups(joining.from, joining.to)) return false;
    return weights_[joining.from] + weights_[joining.to] <= most_weight_;
  }

  void Join(int from, int to) {
    parts_.Join(from, to);
    weights_[to] += weights_[from];
    if (groups_[to] < 0) groups_[to] = groups_[from];
    --count_;
  }

  // Parts in an order in which each comes after those it reads.
  std::vector<int> PartsInOrder() {
    const int count = graph_.num_ops();
    std::vector<std::vector<int>> readers(count);
    std::vector<int> waiting(count, 0);
    for (const StepTensor& tensor : graph_.tensors) {
      const int from = parts_.Find(tensor.producer);
      for (const int consumer : tensor.consumers) {
        const int to = parts_.Find(consumer);
        if (from == to) continue;
        readers[from].push_back(to);
        ++waiting[to];
      }
    }
    std::vector<int> order;
    for (int op = 0; op < count; ++op) {
      if (parts_.Find(op) == op && waiting[op] == 0) order.push_back(op);
    }
    for (size_t i = 0; i < order.size(); ++i) {
      for (const int reader : readers[order[i]]) {
        if (--waiting[reader] == 0) order.push_back(reader);
      }
    }
    return order;
  }

  StepGraph Build(std::vector<int>* part_of) {
    StepGraph coarse;
    coarse.name = graph_.name;
    coarse.fingerprint = graph_.fingerprint;
    coarse.batch = graph_.batch;
    coarse.step_seconds = graph_.step_seconds;
    coarse.num_groups = graph_.num_groups;
    std::vector<int> at(graph_.num_ops(), -1);
    for (const int part : PartsInOrder()) {
      at[part] =
          AddOp({.name = graph_.ops[part].name, .op = graph_.ops[part].op, .group = groups_[part]},
                {}, &coarse);
    }
    std::vector<int> parts(graph_.num_ops());
    for (int op = 0; op < graph_.num_ops(); ++op) {
      parts[op] = at[parts_.Find(op)];
      Absorb(graph_.ops[op], &coarse.ops[parts[op]]);
    }
    for (const StepTensor& tensor : graph_.tensors) AddBetween(tensor, parts, &coarse);
    if (part_of != nullptr) *part_of = std::move(parts);
    return coarse;
  }

  static void Absorb(const StepOp& op, StepOp* part) {
    if (op.seconds >= 0) part->seconds = std::max(part->seconds, 0.0) + op.seconds;
    part->flops += op.flops;
    part->bytes += op.bytes;
    part->state_bytes += op.state_bytes;
    part->output_bytes += op.output_bytes;
    if (op.role == OpRole::kVariable || part->role == OpRole::kCompute) part->role = op.role;
  }

  static void AddBetween(const StepTensor& tensor, const std::vector<int>& parts,
                         StepGraph* coarse) {
    const int from = parts[tensor.producer];
    std::vector<int> readers;
    for (const int consumer : tensor.consumers) {
      if (parts[consumer] != from) readers.push_back(parts[consumer]);
    }
    if (readers.empty()) return;
    std::sort(readers.begin(), readers.end());
    readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
    const int added = AddTensor(from, tensor.bytes, coarse);
    coarse->tensors[added].delay = tensor.delay;
    coarse->tensors[added].follows_batch = tensor.follows_batch;
    for (const int reader : readers) Connect(added, reader, coarse);
  }

  const StepGraph& graph_;
  const int most_ops_;
  const bool keep_roles_;
  int count_ = 0;
  double heaviest_ = 0;
  double most_weight_ = 0;
  Parts parts_;
  std::vector<double> weights_;
  std::vector<int> groups_;
};

}  // namespace

StepGraph Coarsen(const StepGraph& graph, int most_ops, bool keep_roles,
                  std::vector<int>* part_of) {
  return Coarsener(graph, std::max(most_ops, 1), keep_roles).Run(part_of);
}

}  // namespace weft::platform
