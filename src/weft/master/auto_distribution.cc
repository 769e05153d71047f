// SPDX-License-Identifier: Apache-2.0
#include "weft/master/auto_distribution.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "weft/graph/device_name.h"
#include "weft/replicate/cut_choice.h"

namespace weft::master {
namespace {

constexpr char kOptimizer[] = "weft";
constexpr char kParameter[] = "distribution";
constexpr char kCutBytes[] = "cut_bytes";
// Then a signature is no longer compiled to see whether yet another size of its feeds splits.
constexpr int kMostSizesTried = 4;

bool IsWorkerJob(const std::string& job) {
  return job == "worker" || job == "chief" || job == "master";
}

std::string CpuOf(const cluster::TaskId& task) {
  return absl::StrCat(task.DeviceTask(), "/device:CPU:0");
}

// The first node that asks for a task.
const NodeDef* FindWrittenTask(const std::vector<NodeDef>& nodes) {
  const auto found = std::find_if(nodes.begin(), nodes.end(), [](const NodeDef& node) {
    const StatusOr<DeviceName> device = DeviceName::Parse(node.device);
    return device.ok() && (device->job || device->task);
  });
  return found == nodes.end() ? nullptr : &*found;
}

bool IsVariable(const OpRegistry& ops, const NodeDef& node) {
  const OpDefinition* const op = ops.Find(node.op);
  return op != nullptr && op->schema.traits.source == ValueSource::kVariable;
}

// Whether the node is to be where another one is.
bool FollowsAnother(const NodeDef& node) {
  const auto groups = FindAttrOr<AttrValue::StringList>(node.attrs, "_class", {});
  return std::any_of(groups.begin(), groups.end(), [&](const std::string& group) {
    return group != absl::StrCat("loc:@", node.name);
  });
}

}  // namespace

StatusOr<Distribution> DistributionByName(absl::string_view name) {
  if (name.empty() || name == "written") return Distribution::kWritten;
  if (name == "auto") return Distribution::kAuto;
  if (name == "required") return Distribution::kRequired;
  return InvalidArgument("Distribution is '", name, "', expected written, auto or required");
}

void SetDistribution(const std::string& name, tensorflow::ConfigProto* config) {
  if (name.empty()) return;
  auto* const optimizer =
      config->mutable_graph_options()->mutable_rewrite_options()->add_custom_optimizers();
  optimizer->set_name(kOptimizer);
  (*optimizer->mutable_parameter_map())[kParameter].set_s(name);
}

StatusOr<DistributionWish> DistributionOf(const tensorflow::ConfigProto& config) {
  std::string name;
  DistributionWish wish;
  for (const auto& optimizer : config.graph_options().rewrite_options().custom_optimizers()) {
    const auto found = optimizer.parameter_map().find(kParameter);
    if (optimizer.name() == kOptimizer && found != optimizer.parameter_map().end())
      name = found->second.s();
    const auto bytes = optimizer.parameter_map().find(kCutBytes);
    if (optimizer.name() != kOptimizer || bytes == optimizer.parameter_map().end()) continue;
    if (bytes->second.value_case() != tensorflow::AttrValue::kI || bytes->second.i() < 0)
      return InvalidArgument("Parameter cut_bytes of the optimizer weft is not a count of bytes");
    wish.cut_bytes = bytes->second.i();
  }
  WEFT_ASSIGN_OR_RETURN(wish.mode, DistributionByName(name));
  return wish;
}

AutoDistribution::AutoDistribution(DistributionWish wish, const OpRegistry* ops,
                                   const cluster::TaskId& self,
                                   const std::vector<cluster::TaskId>& others)
    : wish_(wish), ops_(ops), is_on_(wish.mode != Distribution::kWritten) {
  std::vector<cluster::TaskId> all = {self};  // this task is the first worker, if it is one
  all.insert(all.end(), others.begin(), others.end());
  const bool named = std::any_of(all.begin(), all.end(),
                                 [](const cluster::TaskId& task) { return IsWorkerJob(task.job); });
  for (const cluster::TaskId& task : all) {
    const bool is_worker = named ? IsWorkerJob(task.job) : task.job == self.job;
    if (is_worker) workers_.push_back(CpuOf(task));
    if (task.job == "ps" && !is_worker) servers_.push_back(CpuOf(task));
    if ((is_worker || task.job == "ps") && task != self) tasks_.push_back(task);
  }
}

Status AutoDistribution::PlaceVariables(GraphDef* graph) {
  if (!is_on_) return absl::OkStatus();
  const NodeDef* written = FindWrittenTask(graph->nodes);
  for (const FunctionDef& function : graph->functions) {
    if (written == nullptr) written = FindWrittenTask(function.nodes);
  }
  if (written != nullptr) {
    const std::string why = absl::StrCat("Node '", written->name, "' asks for ", written->device,
                                         ": the distribution of this graph is written");
    if (wish_.mode == Distribution::kRequired) {
      return InvalidArgument(why, ", and the session requires an automatic one");
    }
    WEFT_LOG(INFO) << "Distribution: " << why << ", and stays as it is";
    is_on_ = false;
    return absl::OkStatus();
  }
  if (servers_.empty()) return absl::OkStatus();
  CutVariables(graph);
  absl::MutexLock lock(&mutex_);
  for (NodeDef& node : graph->nodes) {
    if (!IsVariable(*ops_, node)) continue;
    const int64_t bytes = replicate::BytesOfVariable(node);
    const bool is_cut = node.attrs.contains(replicate::kPartsAttr);
    for (const std::string& server : servers_) {
      if (is_cut) server_bytes_[server] += bytes / static_cast<int64_t>(servers_.size());
    }
    if (FollowsAnother(node)) continue;
    const std::string* least = &servers_.front();
    for (const std::string& server : servers_) {
      if (server_bytes_[server] < server_bytes_[*least]) least = &server;
    }
    if (!is_cut) server_bytes_[*least] += bytes;
    node.device = *least;
  }
  return absl::OkStatus();
}

void AutoDistribution::CutVariables(GraphDef* graph) const {
  const auto count = static_cast<int>(servers_.size());
  if (count < 2) return;
  replicate::CutWish how{.parts = count};
  if (wish_.cut_bytes) how = {count, *wish_.cut_bytes, /*only_largest=*/false};
  const std::set<std::string> cut = replicate::ChooseCuts(*ops_, graph->nodes, how);
  for (NodeDef& node : graph->nodes) {
    if (!cut.contains(node.name)) continue;
    node.attrs[replicate::kPartsAttr] = servers_;
    WEFT_LOG(INFO) << "Distribution: variable '" << node.name << "' of "
                   << replicate::BytesOfVariable(node) << " bytes is cut by rows over " << count
                   << " servers";
  }
}

bool AutoDistribution::MaySplit(const std::string& key,
                                const std::vector<step::Feed>& feeds) const {
  if (!is_on_) return false;
  absl::MutexLock lock(&mutex_);
  const auto found = outcomes_.find(key);
  if (found == outcomes_.end()) return true;
  const replicate::Replicated& outcome = found->second.step;
  std::vector<Shape> shapes;
  for (const auto& [name, value] : feeds) shapes.push_back(value.shape());
  if (outcome.refusal.empty()) return replicate::FeedsFit(outcome.feeds, shapes, num_workers());
  // Other sizes may do: whether they do is seen when the step is compiled for them.
  return outcome.is_size_of_this_feed && found->second.refused_sizes < kMostSizesTried &&
         std::any_of(shapes.begin(), shapes.end(), [&](const Shape& shape) {
           return shape.rank() > 0 && shape.dim(0) != outcome.batch && shape.dim(0) > 0 &&
                  shape.dim(0) % num_workers() == 0;
         });
}

replicate::ReplicateOptions AutoDistribution::OptionsFor(const std::vector<step::Feed>& feeds,
                                                         const std::string& client_device) const {
  replicate::ReplicateOptions options{.workers = workers_, .default_device = client_device};
  for (const auto& [name, value] : feeds)
    options.feeds.push_back({.name = name, .shape = value.shape()});
  return options;
}

Status AutoDistribution::Note(const std::string& key, const replicate::Replicated& outcome) {
  bool is_new = false;
  {
    absl::MutexLock lock(&mutex_);
    Outcome& known = outcomes_[key];
    is_new = known.step.feeds.empty() || known.step.refusal != outcome.refusal;
    known.step = outcome;
    if (outcome.is_size_of_this_feed) ++known.refused_sizes;
  }
  if (!outcome.is_training) return absl::OkStatus();
  if (is_new) WEFT_LOG(INFO) << "Distribution: a step " << outcome.Describe(num_workers());
  if (wish_.mode != Distribution::kRequired || outcome.refusal.empty() ||
      outcome.is_size_of_this_feed)
    return absl::OkStatus();
  return InvalidArgument(
      "The session requires that its training is distributed, which this step "
      "cannot be: ",
      outcome.refusal);
}

}  // namespace weft::master
