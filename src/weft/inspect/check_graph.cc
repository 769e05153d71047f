// SPDX-License-Identifier: Apache-2.0
#include "weft/inspect/check_graph.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_join.h"

#include "base/nearest_name.h"
#include "weft/compile/plan.h"
#include "weft/graph/device_name.h"
#include "weft/graph/graph_proto.h"
#include "weft/graph/import.h"
#include "weft/kernel/make_op_kernel.h"

namespace weft::inspect {
namespace {

using Kind = Problem::Kind;

class Checker {
 public:
  Checker(const tensorflow::GraphDef& graph, const Catalogue& catalogue, Device* device)
      : graph_(graph), catalogue_(catalogue), device_(device) {}

  CheckReport Run() {
    for (const auto& function : graph_.library().function())
      functions_.insert(function.signature().name());
    for (const auto& node : graph_.node()) CheckNode(node, "");
    for (const auto& function : graph_.library().function()) {
      for (const auto& node : function.node_def()) CheckNode(node, function.signature().name());
    }
    if (all_known_) CheckWhole();
    report_.num_functions = graph_.library().function_size();
    report_.num_ops = static_cast<int64_t>(ops_.size());
    for (auto& [key, problem] : problems_) report_.problems.push_back(std::move(problem));
    AddNotes();
    return std::move(report_);
  }

 private:
  void Add(Kind kind, const std::string& what, const std::string& node,
           const std::string& function) {
    Problem& problem = problems_[{kind, what}];
    problem.kind = kind;
    problem.what = what;
    if (node.empty()) return;
    problem.nodes.push_back(function.empty() ? node
                                             : absl::StrCat(node, " in function ", function));
  }

  void CheckNode(const tensorflow::NodeDef& proto, const std::string& function) {
    ++report_.num_nodes;
    ops_.insert(proto.op());
    const StatusOr<DeviceName> asked = DeviceName::Parse(proto.device());
    if (asked.ok() && asked->type && *asked->type != device_->type()) ++on_device_[*asked->type];
    if (functions_.contains(proto.op())) return;
    const OpDefinition* op = catalogue_.ops().Find(proto.op());
    if (op == nullptr) {
      all_known_ = false;
      Add(Kind::kUnknownOp, proto.op(), proto.name(), function);
      return;
    }
    StatusOr<NodeDef> node = NodeDefFromProto(proto);
    if (!node.ok()) {
      all_known_ = false;
      Add(Kind::kMalformed, std::string(node.status().message()), proto.name(), function);
      return;
    }
    CheckKernel(*std::move(node), op->schema, function);
  }

  void CheckKernel(NodeDef node, const OpSchema& schema, const std::string& function) {
    // In a function some attributes come from the caller.
    const bool is_generic = std::any_of(node.attrs.begin(), node.attrs.end(), [](const auto& attr) {
      return attr.second.template As<AttrPlaceholder>() != nullptr;
    });
    if (!is_generic) {
      const Status complete = CompleteAttrs(schema, &node.attrs);
      if (!complete.ok()) {
        all_known_ = false;
        Add(Kind::kAttribute, absl::StrCat(node.op, ": ", complete.message()), node.name, function);
        return;
      }
    }
    if (schema.traits.lowers_to != InstructionKind::kKernel) return;
    const Status found = catalogue_.kernels().Find(node.op, node.attrs, device_->type()).status();
    if (!found.ok()) {
      no_kernel_.insert(node.name);
      Add(Kind::kNoKernel, std::string(found.message()), node.name, function);
    }
  }

  // What can only be said of the graph as a whole, and of kernels in it.
  void CheckWhole() {
    StatusOr<GraphDef> def = GraphDefFromProto(graph_);
    if (!def.ok()) return Add(Kind::kMalformed, std::string(def.status().message()), "", "");
    Graph graph(&catalogue_.ops());
    const Status imported = ImportGraph(*std::move(def), ImportOptions(), &graph);
    if (!imported.ok()) return Add(Kind::kMalformed, std::string(imported.message()), "", "");
    for (Node* node : graph.nodes()) {
      if (!node->LowersTo(InstructionKind::kKernel) || no_kernel_.contains(node->name())) {
        continue;
      }
      const StatusOr<const KernelDef*> kernel =
          catalogue_.kernels().Find(node->call(), device_->type());
      if (!kernel.ok()) continue;
      const Status made = MakeOpKernel(**kernel, node->call(), device_).status();
      if (!made.ok())
        Add(Kind::kAttribute, absl::StrCat(node->op(), ": ", made.message()), node->name(), "");
    }
  }

  void AddNotes() {
    for (Problem& problem : report_.problems) {
      if (problem.kind == Kind::kUnknownOp) problem.nearest = Nearest(problem.what);
    }
    for (const auto& [type, count] : on_device_) {
      report_.notes.push_back(
          absl::StrCat(count, " nodes ask for a ", type,
                       ": they run on the CPU with allow_soft_placement, else not at all"));
    }
  }

  std::string Nearest(const std::string& op) const {
    std::vector<std::string> known;
    for (const OpDefinition* definition : catalogue_.ops().All())
      known.push_back(definition->schema.name);
    return NearestName(op, known);
  }

  const tensorflow::GraphDef& graph_;
  const Catalogue& catalogue_;
  Device* const device_;
  CheckReport report_;
  std::set<std::string> functions_;
  std::set<std::string> ops_;
  std::set<std::string> no_kernel_;
  std::map<std::string, int64_t> on_device_;
  std::map<std::pair<Kind, std::string>, Problem> problems_;
  bool all_known_ = true;
};

const char* Word(Kind kind) {
  switch (kind) {
    case Kind::kUnknownOp:
      return "unknown_op";
    case Kind::kNoKernel:
      return "no_kernel";
    case Kind::kAttribute:
      return "attribute";
    case Kind::kMalformed:
      break;
  }
  return "malformed";
}

std::string Sentence(const Problem& problem) {
  if (problem.kind != Kind::kUnknownOp) return problem.what;
  return absl::StrCat(
      "There is no op ", problem.what, " yet",
      problem.nearest.empty() ? "" : absl::StrCat(" (is ", problem.nearest, " meant?)"));
}

}  // namespace

std::string CheckReport::Text() const {
  constexpr size_t kShown = 5;
  std::string text;
  for (const Problem& problem : problems) {
    absl::StrAppend(&text, "  ", Sentence(problem));
    const size_t count = problem.nodes.size();
    if (count > 0) {
      const std::vector<std::string> first(problem.nodes.begin(),
                                           problem.nodes.begin() + std::min(count, kShown));
      absl::StrAppend(&text, "\n    ", count,
                      count == 1 ? " node: " : " nodes: ", absl::StrJoin(first, ", "),
                      count > kShown ? ", ..." : "");
    }
    text += "\n";
  }
  for (const std::string& note : notes) absl::StrAppend(&text, "  Note: ", note, "\n");
  return text;
}

Json CheckReport::AsJson() const {
  Json json = Json::MakeObject();
  json.Set("runs", ok());
  json.Set("nodes", num_nodes);
  json.Set("functions", num_functions);
  json.Set("ops", num_ops);
  Json list = Json::MakeArray();
  for (const Problem& problem : problems) {
    Json item = Json::MakeObject();
    item.Set("kind", Word(problem.kind));
    item.Set("what", problem.what);
    if (!problem.nearest.empty()) item.Set("nearest", problem.nearest);
    Json nodes = Json::MakeArray();
    for (const std::string& node : problem.nodes) nodes.Append(node);
    item.Set("nodes", std::move(nodes));
    list.Append(std::move(item));
  }
  json.Set("problems", std::move(list));
  Json told = Json::MakeArray();
  for (const std::string& note : notes) told.Append(note);
  json.Set("notes", std::move(told));
  return json;
}

CheckReport CheckGraph(const tensorflow::GraphDef& graph, const Catalogue& catalogue,
                       Device* device) {
  return Checker(graph, catalogue, device).Run();
}

}  // namespace weft::inspect
