// SPDX-License-Identifier: Apache-2.0
#include "platform/console/node_table.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "platform/object/fields.h"
#include "platform/object/node_view.h"
#include "platform/object/pod_annotations.h"
#include "platform/object/pod_view.h"
#include "platform/resources/pod_needs.h"

namespace weft::platform {
namespace {

struct Use {
  Amounts amounts;
  std::map<int, std::vector<std::string>> gpu_pods;  // by index
};

StatusOr<std::map<std::string, Use>> FindUse(ObjectStore* store, ResourceNames* names) {
  std::map<std::string, Use> by_node;
  WEFT_ASSIGN_OR_RETURN(const ObjectList pods, store->List(Pods(), {}));
  for (const ObjectPtr& pod : pods.items) {
    const std::string node = PodView(*pod).node();
    if (node.empty() || IsFinishedPod(*pod)) continue;
    const auto needs = ReadPodNeeds(*pod, names);
    if (!needs.ok()) continue;
    Use& use = by_node[node];
    AddAmounts((*needs)->amounts, &use.amounts);
    const auto gpus = ParseGpuIndices(PodView(*pod).annotation(kGpuIndicesAnnotation));
    if (!gpus.ok()) continue;
    const GpuNeeds& gpu = (*needs)->gpu;
    for (const int index : *gpus) {
      use.gpu_pods[index].push_back(absl::StrCat(
          NamespaceOf(*pod), "/", NameOf(*pod),
          gpu.memory > 0 ? absl::StrCat(" (", FormatAmount(kMemory, gpu.memory), ")") : ""));
    }
  }
  return by_node;
}

std::string StateOf(const Json& node) {
  const NodeView view(node);
  return view.is_cordoned() ? view.readiness() + ",cordoned" : view.readiness();
}

// "8 x A100", by model.
std::string DescribeGpus(const std::vector<Gpu>& gpus) {
  std::map<std::string, int> counts;
  for (const Gpu& gpu : gpus) ++counts[gpu.model.empty() ? "GPU" : gpu.model];
  std::vector<std::string> parts;
  for (const auto& [model, count] : counts) parts.push_back(absl::StrCat(count, " x ", model));
  return parts.empty() ? "-" : absl::StrJoin(parts, ", ");
}

std::string InUse(size_t resource, const Amounts& used, const Amounts& all) {
  return absl::StrCat(FormatAmount(resource, AmountOf(used, resource)), "/",
                      FormatAmount(resource, AmountOf(all, resource)));
}

using Row = std::vector<std::string>;

std::string Align(const std::vector<Row>& rows) {
  std::vector<size_t> widths;
  for (const Row& row : rows) {
    if (row.size() < 2) continue;  // a line of its own
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      text += row[i];
      if (i + 1 < row.size()) text.append(widths[i] - row[i].size() + 3, ' ');
    }
    text += "\n";
  }
  return text;
}

}  // namespace

Status ShowNodes(const Console& console, bool lists_gpus) {
  ResourceNames names;
  WEFT_ASSIGN_OR_RETURN(const ObjectList nodes, console.store->List(Nodes(), {}));
  WEFT_ASSIGN_OR_RETURN(auto by_node, FindUse(console.store, &names));
  std::vector<Row> rows = {
      {"NAME", "STATUS", "CPU", "MEMORY", "PODS", "GPUS", "WHICH", "SOCKETS", "NUMA", "RDMA"}};
  for (const ObjectPtr& node : nodes.items) {
    const StatusOr<NodeDescription> description = ReadNode(*node, &names);
    if (!description.ok()) {
      rows.push_back({absl::StrCat(NameOf(*node), ": ", description.status().message())});
      continue;
    }
    const Use& use = by_node[description->name];
    const Amounts& all = description->allocatable;
    const auto label = [&](const char* name) {
      const auto found = description->labels.find(name);
      return found == description->labels.end() ? std::string("-") : found->second;
    };
    rows.push_back({description->name, StateOf(*node), InUse(kCpu, use.amounts, all),
                    InUse(kMemory, use.amounts, all), InUse(kPodSlots, use.amounts, all),
                    absl::StrCat(use.gpu_pods.size(), "/", description->gpus.size()),
                    DescribeGpus(description->gpus), label("weft.dev/sockets"),
                    label("weft.dev/numa-nodes"), label("weft.dev/rdma-adapters")});
    if (!lists_gpus) continue;
    for (size_t i = 0; i < description->gpus.size(); ++i) {
      const Gpu& gpu = description->gpus[i];
      const auto found = use.gpu_pods.find(static_cast<int>(i));
      rows.push_back({absl::StrCat(
          "  GPU ", i, gpu.model.empty() ? "" : " " + gpu.model,
          gpu.memory > 0 ? absl::StrCat(" ", FormatAmount(kMemory, gpu.memory)) : "",
          gpu.is_healthy ? "" : " UNHEALTHY", ": ",
          found == use.gpu_pods.end() ? "free" : absl::StrJoin(found->second, ", "))});
    }
  }
  console.print(Align(rows));
  return absl::OkStatus();
}

}  // namespace weft::platform
