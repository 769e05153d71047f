// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/packing.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "platform/jobs/task_objects.h"
#include "platform/object/fields.h"
#include "platform/object/pod_annotations.h"
#include "platform/resources/fit.h"
#include "platform/resources/gpu_needs.h"

namespace weft::platform {
namespace {

// What `weft exec` runs at most.
constexpr size_t kMostTasks = 256;
// Bytes a second between processes of one container.
constexpr double kTogether = 5e9;
// From which gain on tasks share pods though they cannot be all together.
constexpr double kWorthwhile = 1.05;
// From which gain on a job waits for a node that has room for all of it.
constexpr double kWorthWaiting = 1.3;

// Of one task, where it can be packed at all.
struct Costs {
  double apart = 0;  // seconds of a step
  double together = 0;
  bool is_known = false;
  double gain() const { return is_known ? apart / together : 1; }
};

Costs CostsOf(const TfJob& job) {
  const TaskCosts& declared = job.extras.costs;
  Costs costs;
  costs.is_known = declared.step_seconds > 0 && declared.bytes_per_step > 0;
  if (!costs.is_known) return costs;
  costs.apart = declared.step_seconds + declared.bytes_per_step / declared.network;
  costs.together = declared.step_seconds + declared.bytes_per_step / kTogether;
  return costs;
}

std::string DescribeCosts(const Costs& costs) {
  if (!costs.is_known) return "no costs of a step are declared";
  return absl::StrFormat("a step takes about %.3g ms together and %.3g ms apart",
                         costs.together * 1000, costs.apart * 1000);
}

std::string Count(size_t count, const char* what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

Json PodOf(const TfJob& job, const ReplicaSpec& replica) {
  Json pod = replica.pod.written;
  SetField(&pod, {"metadata", "namespace"}, job.metadata.namespace_name);
  return pod;
}

// What a pod with these tasks asks for.
StatusOr<std::shared_ptr<const PodNeeds>> NeedsOf(const TfJob& job,
                                                  const std::vector<TaskId>& tasks,
                                                  ResourceNames* names) {
  auto sum = std::make_shared<PodNeeds>();
  for (const TaskId& task : tasks) {
    WEFT_ASSIGN_OR_RETURN(const auto needs, ReadPodNeeds(PodOf(job, *job.Find(task.type)), names));
    if (&task == &tasks.front()) {
      *sum = *needs;
      continue;
    }
    AddAmounts(needs->amounts, &sum->amounts);
    sum->gpu.count += needs->gpu.count;
  }
  SetAmount(&sum->amounts, kPodSlots, 1);
  return std::shared_ptr<const PodNeeds>(std::move(sum));
}

std::string DescribeNeeds(const PodNeeds& needs, const ResourceNames& names) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < needs.amounts.size(); ++i) {
    if (i == kPodSlots || needs.amounts[i] <= 0) continue;
    parts.push_back(absl::StrCat(FormatAmount(i, needs.amounts[i]), " ", names.NameOf(i)));
  }
  if (needs.gpu.count > 0) parts.push_back(Count(static_cast<size_t>(needs.gpu.count), "GPU"));
  return parts.empty() ? "what they need" : absl::StrJoin(parts, ", ");
}

// The node that holds them and keeps the least beside; -1: none does.
int NodeFor(const ClusterState& state, const PodNeeds& needs) {
  int best = -1;
  for (int i = 0; i < state.node_count(); ++i) {
    if (CheckNode(state.node(i), needs) != Misfit::kNone) continue;
    const auto rank = [&](int node) {
      return std::make_pair(state.node(node).free_gpus, AmountOf(state.node(node).free, kCpu));
    };
    if (best < 0 || rank(i) < rank(best)) best = i;
  }
  return best;
}

// As many of the type as the greatest node holds, all pods alike but for the last one.
std::vector<TaskPack> Chunks(const TfJob& job, const std::vector<TaskId>& tasks,
                             PackingNodes* nodes) {
  size_t most = 1;
  while (most < tasks.size()) {
    const std::vector<TaskId> more(tasks.begin(), tasks.begin() + static_cast<ptrdiff_t>(most + 1));
    const auto needs = NeedsOf(job, more, &nodes->names);
    if (!needs.ok() || NodeFor(nodes->empty, **needs) < 0) break;
    ++most;
  }
  std::vector<TaskPack> packs;
  if (most < 2) return packs;
  for (size_t i = 0; i + 1 < tasks.size(); i += most) {
    const size_t end = std::min(i + most, tasks.size());
    packs.emplace_back(tasks.begin() + static_cast<ptrdiff_t>(i),
                       tasks.begin() + static_cast<ptrdiff_t>(end));
  }
  return packs;
}

// Who ends the job leads: its name is the one that people look for.
std::vector<TaskId> PackableTasks(const TfJob& job) {
  std::vector<TaskId> tasks;
  for (const ReplicaType type :
       {ReplicaType::kChief, ReplicaType::kMaster, ReplicaType::kWorker, ReplicaType::kPs}) {
    const ReplicaSpec* const replica = job.Find(type);
    for (int64_t i = 0; replica != nullptr && i < replica->replicas; ++i)
      tasks.push_back({type, i});
  }
  return tasks;
}

PackingChoice Apart(std::string why) {
  return {{}, absl::StrCat("Each task has a pod of its own: ", why, ".")};
}

class Chooser {
 public:
  Chooser(const TfJob& job, PackingNodes* nodes)
      : job_(job), nodes_(nodes), tasks_(PackableTasks(job)), costs_(CostsOf(job)) {}

  PackingChoice Choose() {
    const bool is_asked = job_.extras.packing == Packing::kNode;
    if (tasks_.size() < 2) return Apart("there are no others");
    if (tasks_.size() > kMostTasks)
      return Apart(absl::StrCat("a pod runs at most ", kMostTasks, " tasks"));
    const std::string why_not = WhyNotOneContainer(job_, tasks_);
    if (!why_not.empty()) return Apart(why_not);
    if (nodes_ == nullptr && is_asked)
      return Whole("the nodes are not known, and weft.dev/packing is node");
    if (nodes_ == nullptr) return Apart("the nodes cannot be read");
    const auto needs = NeedsOf(job_, tasks_, &nodes_->names);
    if (!needs.ok()) return Apart(std::string(needs.status().message()));
    const std::string wanted = DescribeNeeds(**needs, nodes_->names);
    const int now = NodeFor(nodes_->now, **needs);
    if (now >= 0) {
      return Whole(absl::StrCat("node ", nodes_->now.node(now).description->name, " has room for ",
                                wanted, ", and ", DescribeCosts(costs_)));
    }
    const int empty = NodeFor(nodes_->empty, **needs);
    if (empty >= 0 && (is_asked || costs_.gain() >= kWorthWaiting)) {
      return Whole(absl::StrCat("node ", nodes_->empty.node(empty).description->name, " holds ",
                                wanted, " when others have ended, and ", DescribeCosts(costs_)));
    }
    if (empty >= 0)
      return Apart(absl::StrCat("no node has room for ", wanted, " now, and ",
                                DescribeCosts(costs_), ", which is not worth the wait"));
    return InParts(absl::StrCat("no node is large enough for ", wanted), is_asked);
  }

 private:
  PackingChoice Whole(const std::string& why) const {
    return {{tasks_}, absl::StrCat(Count(tasks_.size(), "task"), " share one pod: ", why, ".")};
  }

  // Parameter servers stay where they are: a worker's pod must not take them along.
  PackingChoice InParts(const std::string& why, bool is_asked) {
    const bool has_ps = job_.Find(ReplicaType::kPs) != nullptr;
    if (!is_asked && (has_ps || costs_.gain() < kWorthwhile)) {
      return Apart(absl::StrCat(why, has_ps ? ", and with parameter servers each step leaves it"
                                            : ", and " + DescribeCosts(costs_)));
    }
    std::vector<TaskId> workers;
    for (const TaskId& task : tasks_) {
      if (task.type == ReplicaType::kWorker) workers.push_back(task);
    }
    PackingChoice choice;
    choice.packs = Chunks(job_, workers, nodes_);
    if (choice.packs.empty()) return Apart(why + " or for two workers");
    choice.reason =
        absl::StrCat(Count(workers.size(), "worker"), " share pods of ",
                     choice.packs.front().size(), ": ", why, ", and ", DescribeCosts(costs_), ".");
    return choice;
  }

  const TfJob& job_;
  PackingNodes* const nodes_;
  const std::vector<TaskId> tasks_;
  const Costs costs_;
};

// A template without what may differ from task to task.
Json CommonPart(const Json& written) {
  Json common = written;
  EraseField(&common, {"spec", "restartPolicy"});
  Json* const spec = common.FindMutable("spec");
  Json* const containers = spec == nullptr ? nullptr : spec->FindMutable("containers");
  if (containers == nullptr || !containers->is_array()) return common;
  for (Json& container : *containers->mutable_items()) {
    if (StringField(container, {"name"}) != kTrainingContainer) continue;
    for (const char* field : {"command", "args", "env", "resources", "workingDir", "ports"})
      container.Erase(field);
  }
  return common;
}

// Variables with a source of their own have to be alike in all, since a process gets plain text.
std::string WhyNotVariables(const ReplicaSpec& first, const ReplicaSpec& other) {
  const auto sources_of = [](const ReplicaSpec& replica) {
    std::vector<std::string> sources;
    for (const Json& container : FindField(replica.pod.written, {"spec", "containers"})->items()) {
      const Json* const variables = container.Find("env");
      if (StringField(container, {"name"}) != kTrainingContainer || variables == nullptr) continue;
      for (const Json& variable : variables->items())
        if (variable.Find("valueFrom") != nullptr) sources.push_back(variable.Dump());
    }
    return sources;
  };
  if (sources_of(first) == sources_of(other)) return "";
  return absl::StrCat(ReplicaTypeName(first.type), " and ", ReplicaTypeName(other.type),
                      " have variables from different sources");
}

}  // namespace

PackingNodes ReadPackingNodes(const std::vector<ObjectPtr>& nodes,
                              const std::vector<ObjectPtr>& pods) {
  PackingNodes read;
  for (const ObjectPtr& node : nodes) {
    StatusOr<NodeDescription> description = ReadNode(*node, &read.names);
    if (!description.ok()) continue;
    const auto shared = std::make_shared<const NodeDescription>(*std::move(description));
    read.now.SetNode(shared);
    read.empty.SetNode(shared);
  }
  for (const ObjectPtr& pod : pods) {
    const int node = read.now.FindNode(StringField(*pod, {"spec", "nodeName"}));
    if (node < 0 || IsFinishedPod(*pod)) continue;
    const auto needs = ReadPodNeeds(*pod, &read.names);
    if (!needs.ok()) continue;
    Place place;
    place.node = node;
    const auto gpus =
        ParseGpuIndices(StringField(*pod, {"metadata", "annotations", kGpuIndicesAnnotation}));
    if (gpus.ok() && !gpus->empty()) {
      place.gpus.assign(gpus->begin(), gpus->end());
    } else if ((*needs)->gpu.count > 0) {
      ChooseGpus(read.now.node(node), (*needs)->gpu, &place.gpus);
    }
    read.now.Occupy(*needs, place);
  }
  return read;
}

PackingChoice ChoosePacking(const TfJob& job, PackingNodes* nodes) {
  if (job.extras.packing == Packing::kNever) return Apart("weft.dev/packing is never");
  return Chooser(job, nodes).Choose();
}

std::string WhyNotOneContainer(const TfJob& job, const std::vector<TaskId>& tasks) {
  if (job.enable_dynamic_worker) return "workers may come and go (enableDynamicWorker)";
  if (job.elastic.has_value()) return "workers may come and go (elasticPolicy)";
  std::optional<Json> common;
  const ReplicaSpec* first = nullptr;
  for (const TaskId& task : tasks) {
    const ReplicaSpec& replica = *job.Find(task.type);
    if (task.index != 0) continue;
    const Container* const container = replica.TensorFlowContainer();
    const std::string type(ReplicaTypeName(replica.type));
    if (container == nullptr || container->command.empty())
      return absl::StrCat("the container of ", type,
                          " has no command, and what its image would run is not known");
    ResourceNames names;
    const auto needs = ReadPodNeeds(PodOf(job, replica), &names);
    if (!needs.ok()) return std::string(needs.status().message());
    if ((*needs)->gpu.is_shared() || !(*needs)->gpu.indices.empty())
      return absl::StrCat(type, " asks for certain GPUs or for parts of one");
    if (first == nullptr) {
      first = &replica;
      common = CommonPart(replica.pod.written);
      continue;
    }
    if (!SameJson(*common, CommonPart(replica.pod.written))) {
      return absl::StrCat("the templates of ", ReplicaTypeName(first->type), " and ", type,
                          " differ in more than command, variables, ports and resources");
    }
    const std::string why = WhyNotVariables(*first, replica);
    if (!why.empty()) return why;
  }
  return "";
}

}  // namespace weft::platform
