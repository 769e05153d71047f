// SPDX-License-Identifier: Apache-2.0
#include "apps/plan_inputs.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "base/clock.h"
#include "base/files.h"
#include "base/memory_limit.h"
#include "base/threads.h"
#include "platform/placement/cost_file.h"
#include "platform/placement/price_file.h"
#include "platform/resources/node_shape.h"
#include "platform/scheduling/trace.h"
#include "platform/store/kubernetes/kubernetes_store.h"
#include "weft/inspect/graph_costs.h"
#include "weft/inspect/graph_file.h"
#include "weft/ops/catalogue.h"

namespace weft::apps {
namespace {

constexpr uint64_t kMostFileBytes = uint64_t{1} << 30;
constexpr int64_t kUsualBatch = 32;

platform::NodeShape ShapeOfThisMachine() {
  return {.name = "this-machine",
          .processors = static_cast<double>(UsableCores()),
          .memory = static_cast<int64_t>(MachineMemory())};
}

Status ReadPrices(const std::string& path, const std::vector<std::string>& types,
                  std::vector<platform::NodeShape>* nodes) {
  WEFT_ASSIGN_OR_RETURN(const auto prices, ReadPriceFile(path));
  for (size_t i = 0; i < nodes->size(); ++i) {
    const auto found = prices.find(types[i]);
    if (found != prices.end()) (*nodes)[i].price = found->second;
  }
  return absl::OkStatus();
}

}  // namespace

platform::DeviceProfile ThisMachine() {
  return platform::CpuProfile(static_cast<double>(UsableCores()),
                              static_cast<int64_t>(MachineMemory()));
}

StatusOr<std::map<std::string, double>> ReadPriceFile(const std::string& path) {
  RealFileSystem files;
  WEFT_ASSIGN_OR_RETURN(const std::string text, ReadFile(files, path, kMostFileBytes));
  return platform::ParsePrices(text, path);
}

StatusOr<platform::Cluster> ReadCluster(const std::string& nodes, const std::string& shapes,
                                        const std::string& prices) {
  if (!nodes.empty() && !shapes.empty())
    return InvalidArgument("Either --nodes or --shape: which nodes are there?");
  std::vector<platform::NodeShape> all;
  std::vector<std::string> types;
  if (!nodes.empty()) {
    RealFileSystem files;
    WEFT_ASSIGN_OR_RETURN(const std::string text, ReadFile(files, nodes, kMostFileBytes));
    WEFT_ASSIGN_OR_RETURN(const auto described, platform::ParseNodes(text, nodes));
    for (const platform::NodeDescription& node : described) {
      all.push_back(platform::ShapeOfNode(node));
      const auto type = node.labels.find(platform::kInstanceTypeLabel);
      types.push_back(type == node.labels.end() ? "" : type->second);
    }
  } else if (!shapes.empty()) {
    WEFT_ASSIGN_OR_RETURN(all, platform::ParseShapes(shapes));
    for (const platform::NodeShape& shape : all)
      types.push_back(shape.name.substr(0, shape.name.rfind('-')));
  } else {
    all = {ShapeOfThisMachine()};
    types = {""};
  }
  if (!prices.empty()) WEFT_RETURN_IF_ERROR(ReadPrices(prices, types, &all));
  return platform::MakeCluster(all);
}

StatusOr<platform::Cluster> ReadLiveCluster(const ClusterFlags& flags, const std::string& prices) {
  WEFT_ASSIGN_OR_RETURN(const platform::ClusterAccess access, FindCluster(flags));
  RealClock clock;
  WEFT_ASSIGN_OR_RETURN(const auto store, platform::KubernetesStore::Connect(access, &clock));
  StatusOr<platform::ObjectList> nodes = store->List(platform::Nodes(), {});
  if (!nodes.ok()) return Annotate(nodes.status(), absl::StrCat("Nodes of ", access.server));
  std::vector<platform::NodeShape> all;
  std::vector<std::string> types;
  platform::ResourceNames names;
  for (const platform::ObjectPtr& object : nodes->items) {
    WEFT_ASSIGN_OR_RETURN(const platform::NodeDescription node,
                          platform::ReadNode(*object, &names));
    if (node.is_unschedulable) continue;
    all.push_back(platform::ShapeOfNode(node));
    const auto type = node.labels.find(platform::kInstanceTypeLabel);
    types.push_back(type == node.labels.end() ? "" : type->second);
  }
  if (all.empty()) return NotFound("The cluster at ", access.server, " has no nodes for pods");
  if (!prices.empty()) WEFT_RETURN_IF_ERROR(ReadPrices(prices, types, &all));
  return platform::MakeCluster(all);
}

StatusOr<platform::StepGraph> ReadStep(const StepSource& source) {
  RealFileSystem files;
  std::string text;
  if (absl::EndsWith(source.path, ".json")) {
    WEFT_ASSIGN_OR_RETURN(text, ReadFile(files, source.path, kMostFileBytes));
  } else {
    WEFT_ASSIGN_OR_RETURN(const inspect::GraphFile file,
                          inspect::ReadGraphFile(files, source.path));
    WEFT_ASSIGN_OR_RETURN(
        inspect::StepCosts costs,
        inspect::CostsOfGraph(file.graphs.front().graph_def(), StandardCatalogue(), source.targets,
                              source.batch > 0 ? source.batch : kUsualBatch));
    text = inspect::FormatCosts(costs);
  }
  WEFT_ASSIGN_OR_RETURN(platform::CostFile costs, platform::ParseCostFile(text, source.path));
  if (source.batch > 0) costs.batch = source.batch;
  return platform::MakeStepGraph(costs, source.path,
                                 source.least ? platform::OpTime::kLeast : platform::OpTime::kMean);
}

}  // namespace weft::apps
