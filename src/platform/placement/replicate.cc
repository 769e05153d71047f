// SPDX-License-Identifier: Apache-2.0
#include "platform/placement/replicate.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"

namespace weft::platform {
namespace {

// Less than this is not worth cutting.
constexpr double kLeastCut = 1 << 20;
// Scalars beside a gradient (a learning rate) are the same everywhere.
constexpr double kLeastGradient = 16;

class Replicator {
 public:
  Replicator(const StepGraph& step, const Replication& replication, const Cluster& cluster)
      : step_(step),
        replication_(replication),
        cluster_(cluster),
        has_servers_(!replication.servers.empty()),
        num_workers_(static_cast<int>(replication.workers.size())),
        parts_(step.num_groups),
        made_(step.tensors.size()),
        is_shared_(step.num_ops(), false) {}

  ReplicatedStep Run() {
    result_.graph.name = step_.name;
    result_.graph.fingerprint = step_.fingerprint;
    result_.graph.batch = step_.batch * (replication_.spreads_batch ? 1 : num_workers_);
    ChooseServers();
    for (int op = 0; op < step_.num_ops(); ++op) Emit(op);
    return std::move(result_);
  }

 private:
  // What a base tensor has become: by worker (one entry: for all), by part (one entry: whole).
  using Copies = std::vector<std::vector<int>>;

  bool IsState(const StepOp& op) const { return op.role != OpRole::kCompute && op.group >= 0; }

  // Bytes that come and go with a variable's group in a step.
  std::vector<double> TrafficOfGroups() const {
    std::vector<double> traffic(step_.num_groups, 0);
    for (const StepTensor& tensor : step_.tensors) {
      const StepOp& producer = step_.ops[tensor.producer];
      for (const int consumer : tensor.consumers) {
        const StepOp& reader = step_.ops[consumer];
        if (producer.group == reader.group) continue;
        if (IsState(producer)) traffic[producer.group] += tensor.bytes;
        if (IsState(reader)) traffic[reader.group] += tensor.bytes;
      }
    }
    return traffic;
  }

  void ChooseServers() {
    std::vector<double> held(step_.num_groups, 0);
    std::vector<std::string> names(step_.num_groups);
    for (const StepOp& op : step_.ops) {
      if (!IsState(op)) continue;
      held[op.group] += op.state_bytes;
      // Of a variable and its slots the shortest name is the variable's.
      std::string& name = names[op.group];
      if (op.role == OpRole::kVariable && (name.empty() || op.name.size() < name.size()))
        name = op.name;
    }
    if (!has_servers_) return;
    const std::vector<double> traffic = TrafficOfGroups();
    const double all_held = std::accumulate(held.begin(), held.end(), 0.0);
    const double all_traffic = std::accumulate(traffic.begin(), traffic.end(), 0.0);
    const int servers = static_cast<int>(replication_.servers.size());
    std::vector<double> load(servers, 0);
    std::vector<int> order(step_.num_groups);
    std::iota(order.begin(), order.end(), 0);
    // By their parts of what moves and of what is held.
    const auto weight = [&](int group) {
      return (all_traffic > 0 ? traffic[group] / all_traffic : 0) +
             (all_held > 0 ? held[group] / all_held : 0) * 0.1;
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return weight(a) > weight(b); });
    for (const int group : order) {
      const bool is_large =
          held[group] > all_held / servers || traffic[group] > all_traffic / servers;
      if (servers > 1 && is_large && held[group] > kLeastCut) {
        parts_[group].resize(servers);
        std::iota(parts_[group].begin(), parts_[group].end(), 0);
        for (double& each : load) each += weight(group) / servers;
      } else {
        const auto least = std::min_element(load.begin(), load.end());
        parts_[group] = {static_cast<int>(least - load.begin())};
        *least += weight(group);
      }
      if (held[group] > 0) result_.variables.push_back({names[group], held[group], parts_[group]});
    }
  }

  // Adds a copy of an op; its inputs are connected by the caller.
  int AddCopy(const StepOp& base, const std::string& suffix, int device, double part) {
    StepOp op = base;
    op.name = absl::StrCat(base.name, suffix);
    op.group = -1;
    op.inputs.clear();
    op.outputs.clear();
    op.flops *= part;
    op.bytes *= part;
    op.state_bytes *= part;
    op.output_bytes *= part;
    if (op.seconds > 0) op.seconds *= part;
    result_.device_of.push_back(device);
    return AddOp(std::move(op), {}, &result_.graph);
  }

  void ConnectAll(const std::vector<int>& tensors, int op) {
    for (const int tensor : tensors) Connect(tensor, op, &result_.graph);
  }

  // The copy for a worker of what an op reads; whole, whatever it is cut into.
  const std::vector<int>& ForWorker(int tensor, int worker) const {
    const Copies& copies = made_[tensor];
    return copies[copies.size() == 1 ? 0 : worker];
  }

  void Emit(int number) {
    const StepOp& base = step_.ops[number];
    if (IsFed(base)) {
      EmitFed(base);
    } else if (!IsState(base)) {
      for (int worker = 0; worker < num_workers_; ++worker) EmitForWorker(base, worker);
    } else if (!has_servers_) {
      for (int worker = 0; worker < num_workers_; ++worker) EmitReplicatedState(base, worker);
    } else {
      EmitOnServers(number, base);
    }
  }

  // What a worker has of a tensor.
  double BytesOfWorker(int tensor) const {
    const StepTensor& whole = step_.tensors[tensor];
    return whole.follows_batch ? whole.bytes * WorkersPart() : whole.bytes;
  }
  double WorkersPart() const {
    return replication_.spreads_batch ? 1 / static_cast<double>(num_workers_) : 1;
  }
  // The batch of a program for one device is fed to the first worker, which sends the others
  // theirs.
  bool IsFed(const StepOp& op) const {
    return replication_.spreads_batch && op.inputs.empty() && op.role == OpRole::kCompute &&
           std::any_of(op.outputs.begin(), op.outputs.end(),
                       [&](int output) { return step_.tensors[output].follows_batch; });
  }

  void EmitFed(const StepOp& base) {
    const int op = AddCopy(base, "", replication_.workers[0], 1);
    for (const int output : base.outputs) {
      made_[output].resize(num_workers_);
      for (std::vector<int>& of_worker : made_[output])
        of_worker = {AddTensor(op, BytesOfWorker(output), &result_.graph)};
    }
  }

  void EmitForWorker(const StepOp& base, int worker) {
    const int op =
        AddCopy(base, absl::StrCat("@", worker), replication_.workers[worker], WorkersPart());
    for (const int input : base.inputs) ConnectAll(ForWorker(input, worker), op);
    for (const int output : base.outputs) {
      made_[output].resize(num_workers_);
      made_[output][worker] = {AddTensor(op, BytesOfWorker(output), &result_.graph)};
    }
  }

  // On every worker a copy of the variable; an update reads the sum that the ring made.
  void EmitReplicatedState(const StepOp& base, int worker) {
    if (base.role == OpRole::kUpdate && worker == 0 && num_workers_ > 1) SumInRing(base);
    const int op = AddCopy(base, absl::StrCat("@", worker), replication_.workers[worker], 1);
    for (const int input : base.inputs) {
      const auto summed = summed_.find(input);
      if (base.role == OpRole::kUpdate && summed != summed_.end()) {
        Connect(summed->second[worker], op, &result_.graph);
      } else {
        ConnectAll(ForWorker(input, worker), op);
      }
    }
    for (const int output : base.outputs) {
      made_[output].resize(num_workers_);
      made_[output][worker] = {AddTensor(op, step_.tensors[output].bytes, &result_.graph)};
    }
  }

  bool IsGradient(int tensor) const {
    return !IsState(step_.ops[step_.tensors[tensor].producer]) &&
           step_.tensors[tensor].bytes >= kLeastGradient;
  }

  // Whether only rows of the variable are read: what changes it are rows then too.
  bool HasRows(int group) const {
    for (const StepOp& op : step_.ops) {
      if (op.group != group || op.role != OpRole::kLookup) continue;
      for (const int input : op.inputs) {
        if (step_.ops[step_.tensors[input].producer].group != group) return true;
      }
    }
    return false;
  }

  // A ring moves 2(n-1)/n of a gradient over each link, in 2(n-1) rounds; rows, which differ from
  // worker to worker, cannot be summed on the way and go around as they are.
  void SumInRing(const StepOp& update) {
    const double n = num_workers_;
    const double factor = HasRows(update.group) ? n - 1 : 2 * (n - 1) / n;
    for (const int input : update.inputs) {
      if (!IsGradient(input) || summed_.contains(input)) continue;
      const double bytes = BytesOfWorker(input);
      std::vector<int> moved;
      std::vector<int> ready;
      for (int worker = 0; worker < num_workers_; ++worker) {
        const int op =
            AddCopy({.name = "ring_part", .op = "RingPart"}, absl::StrCat("_", input, "@", worker),
                    replication_.workers[worker], 1);
        ConnectAll(ForWorker(input, worker), op);
        moved.push_back(AddTensor(op, factor * bytes, &result_.graph));
        ready.push_back(AddTensor(op, 0, &result_.graph));
      }
      std::vector<int>& sums = summed_[input];
      for (int worker = 0; worker < num_workers_; ++worker) {
        const int before = (worker + num_workers_ - 1) % num_workers_;
        const int device = replication_.workers[worker];
        // All rounds but the first wait for a message each before the sum is whole.
        result_.graph.tensors[moved[before]].delay =
            (2 * (n - 1) - 1) * cluster_.Latency(replication_.workers[before], device);
        const int op =
            AddCopy({.name = "ring_sum", .op = "RingSum", .flops = bytes / 4, .bytes = bytes},
                    absl::StrCat("_", input, "@", worker), device, 1);
        Connect(moved[before], op, &result_.graph);
        for (const int other : ready) Connect(other, op, &result_.graph);
        sums.push_back(AddTensor(op, bytes, &result_.graph));
      }
    }
  }

  void EmitOnServers(int number, const StepOp& base) {
    const std::vector<int>& parts = parts_[base.group];
    const double part = 1 / static_cast<double>(parts.size());
    const bool reads_state_alone =
        std::all_of(base.inputs.begin(), base.inputs.end(),
                    [&](int input) { return is_shared_[step_.tensors[input].producer]; });
    // A read serves all workers, rows are another worker's other ones, an update waits for all.
    const bool is_once = base.role != OpRole::kLookup || reads_state_alone;
    is_shared_[number] = is_once;
    const int copies = is_once ? 1 : num_workers_;
    for (const int output : base.outputs) made_[output].assign(copies, {});
    for (int worker = 0; worker < copies; ++worker) {
      for (size_t i = 0; i < parts.size(); ++i) {
        const std::string suffix = absl::StrCat(is_once ? "" : absl::StrCat("@", worker),
                                                parts.size() > 1 ? absl::StrCat("/part_", i) : "");
        const int op = AddCopy(base, suffix, replication_.servers[parts[i]],
                               is_once ? part : part * WorkersPart());
        for (const int input : base.inputs) {
          if (is_once && base.role == OpRole::kUpdate) {
            ConnectUpdate(input, op, i, parts.size());
          } else {
            ConnectPart(ForWorker(input, worker), op, i, parts.size());
          }
        }
        for (const int output : base.outputs) {
          const double bytes = is_once ? step_.tensors[output].bytes : BytesOfWorker(output);
          made_[output][worker].push_back(AddTensor(op, bytes * part, &result_.graph));
        }
      }
    }
  }

  // What a part of a variable reads: the same part where its input is cut alike, else its share of
  // the whole, for which the tensor's producer makes a slice.
  void ConnectPart(const std::vector<int>& tensors, int op, size_t part, size_t parts) {
    if (parts > 1 && tensors.size() == parts) {
      Connect(tensors[part], op, &result_.graph);
      return;
    }
    for (const int tensor : tensors) {
      if (parts == 1) {
        Connect(tensor, op, &result_.graph);
        continue;
      }
      const int producer = result_.graph.tensors[tensor].producer;
      const double bytes = result_.graph.tensors[tensor].bytes / static_cast<double>(parts);
      Connect(AddTensor(producer, bytes, &result_.graph), op, &result_.graph);
    }
  }

  void ConnectUpdate(int input, int op, size_t part, size_t parts) {
    const Copies& copies = made_[input];
    // The gradients of all workers are summed here, one after another.
    const double more = IsGradient(input) ? static_cast<double>(copies.size() - 1) : 0;
    StepOp& update = result_.graph.ops[op];
    const double bytes = BytesOfWorker(input) / static_cast<double>(parts);
    update.flops += more * bytes / 4;
    update.bytes += more * bytes;
    if (update.seconds >= 0 && update.bytes > more * bytes && more > 0)
      update.seconds *= update.bytes / (update.bytes - more * bytes);
    const size_t sources = IsGradient(input) ? copies.size() : std::min<size_t>(copies.size(), 1);
    for (size_t worker = 0; worker < sources; ++worker)
      ConnectPart(copies[worker], op, part, parts);
  }

  const StepGraph& step_;
  const Replication& replication_;
  const Cluster& cluster_;
  const bool has_servers_;
  const int num_workers_;
  std::vector<std::vector<int>> parts_;     // by group: servers
  std::vector<Copies> made_;                // by tensor of the step
  std::vector<bool> is_shared_;             // by op of the step: made once for all workers
  std::map<int, std::vector<int>> summed_;  // by gradient: the sum on each worker
  ReplicatedStep result_;
};

}  // namespace

ReplicatedStep Replicate(const StepGraph& step, const Replication& replication,
                         const Cluster& cluster) {
  return Replicator(step, replication, cluster).Run();
}

}  // namespace weft::platform
