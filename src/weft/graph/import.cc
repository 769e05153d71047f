// SPDX-License-Identifier: Apache-2.0
#include "weft/graph/import.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <set>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "weft/graph/device_name.h"
#include "weft/graph/function_check.h"

namespace weft {
namespace {

constexpr int kNewNode = -2;  // a source of this import that is not made yet

// What a node of the op lowers to; a function, or no op at all, goes round no loop.
InstructionKind KindOf(const OpRegistry& ops, absl::string_view op) {
  const OpDefinition* known = ops.Find(op);
  return known == nullptr ? InstructionKind::kKernel : known->schema.traits.lowers_to;
}

bool IsLoopBack(const OpRegistry& ops, absl::string_view producer, absl::string_view consumer) {
  return KindOf(ops, producer) == InstructionKind::kNextIteration &&
         KindOf(ops, consumer) == InstructionKind::kMerge;
}

// One input as text, resolved: a node of the graph, or one of this import by index.
struct Source {
  Node* known = nullptr;
  int index = kNewNode;
  int port = 0;
};

// One run of ImportGraph. Undoes itself unless Commit is reached.
class Importer {
 public:
  Importer(GraphDef def, const ImportOptions& options, Graph* graph)
      : def_(std::move(def)), options_(options), graph_(graph), old_versions_(graph->versions()) {}
  ~Importer() {
    if (!committed_) Undo();
  }

  Status Run() {
    WEFT_RETURN_IF_ERROR(MergeVersions());
    WEFT_RETURN_IF_ERROR(CheckNodes());
    WEFT_RETURN_IF_ERROR(ResolveInputs());
    WEFT_RETURN_IF_ERROR(AddFunctions());
    WEFT_RETURN_IF_ERROR(AddNodes());
    committed_ = true;
    return absl::OkStatus();
  }

 private:
  Status MergeVersions();
  Status CheckNodes();
  Status CheckNode(const NodeDef& node) const;
  Status CheckOp(const NodeDef& node) const;
  std::string OtherUnknownOps(const std::string& known) const;
  Status ResolveInputs();
  StatusOr<Source> Resolve(const NodeDef& node, const std::string& input) const;
  Status AddFunctions();
  Status AddNodes();
  Status AddOne(int index);
  Status CycleError() const;
  void Undo();

  GraphDef def_;
  const ImportOptions& options_;
  Graph* const graph_;
  const Versions old_versions_;
  bool committed_ = false;
  absl::flat_hash_map<std::string, int> index_of_;
  std::vector<std::vector<Source>> sources_;  // by node of def_, data then control
  std::vector<std::vector<int>> readers_;     // by node of def_; loop back edges left out
  std::vector<int> pending_;                  // sources of this import not yet made
  std::vector<Node*> made_;                   // by node of def_
  struct BackEdge {
    int reader;
    int input;
    Source source;
  };
  std::vector<BackEdge> back_edges_;
  std::vector<std::string> added_functions_;
};

Status CheckVersions(const Versions& versions) {
  if (versions.producer < 0) {
    return InvalidArgument("GraphDef producer version ", versions.producer,
                           " below min producer 0");
  }
  if (versions.min_consumer > kGraphVersion) {
    return InvalidArgument("GraphDef min consumer version ", versions.min_consumer,
                           " above current version ", kGraphVersion);
  }
  const auto& bad = versions.bad_consumers;
  if (std::find(bad.begin(), bad.end(), kGraphVersion) != bad.end()) {
    return InvalidArgument("GraphDef disallows consumer version ", kGraphVersion);
  }
  return absl::OkStatus();
}

Status Importer::MergeVersions() {
  WEFT_RETURN_IF_ERROR(CheckVersions(def_.versions));
  Versions& versions = graph_->versions();
  if (graph_->num_nodes() == 0) {
    versions = def_.versions;
    return absl::OkStatus();
  }
  if (def_.nodes.empty() && def_.versions.producer == 0) return absl::OkStatus();
  if (versions.producer != def_.versions.producer) {
    return InvalidArgument("Can't extend GraphDef at version ", versions.producer,
                           " with graph at version ", def_.versions.producer, ".");
  }
  versions.min_consumer = std::max(versions.min_consumer, def_.versions.min_consumer);
  for (int bad : def_.versions.bad_consumers) {
    if (std::find(versions.bad_consumers.begin(), versions.bad_consumers.end(), bad) ==
        versions.bad_consumers.end()) {
      versions.bad_consumers.push_back(bad);
    }
  }
  return absl::OkStatus();
}

Status Importer::CheckNode(const NodeDef& node) const {
  if (static_cast<int64_t>(node.name.size()) > options_.max_name_length) {
    return InvalidArgument("Node name is too long, at most ", options_.max_name_length,
                           " bytes are allowed: '", node.name.substr(0, 100), "...'");
  }
  WEFT_RETURN_IF_ERROR(CheckNodeName(node.name, options_.allow_internal));
  if (absl::StartsWith(node.op, "_") && !options_.allow_internal) {
    return InvalidArgument("Op ", node.op, " of node '", node.name,
                           "' is internal: a client's graph may not use it");
  }
  StatusOr<DeviceName> device = DeviceName::Parse(node.device);
  if (!device.ok()) {
    return Annotate(device.status(), absl::StrCat("Node '", node.name, "'"));
  }
  return absl::OkStatus();
}

Status Importer::CheckNodes() {
  if (static_cast<int64_t>(def_.nodes.size()) + graph_->num_nodes() > options_.max_nodes) {
    return InvalidArgument("Graph has too many nodes: ", def_.nodes.size(), " more than the ",
                           graph_->num_nodes(), " it has; at most ", options_.max_nodes,
                           " are allowed");
  }
  index_of_.reserve(def_.nodes.size());
  for (size_t i = 0; i < def_.nodes.size(); ++i) {
    const NodeDef& node = def_.nodes[i];
    WEFT_RETURN_IF_ERROR(CheckNode(node));
    if (graph_->Find(node.name) != nullptr) {
      return InvalidArgument("GraphDef argument to Extend includes node '", node.name,
                             "', which was created by a previous call to Create or Extend in this "
                             "session.");
    }
    if (!index_of_.emplace(node.name, static_cast<int>(i)).second) {
      return InvalidArgument("Node '", node.name, "' is not unique");
    }
  }
  return absl::OkStatus();
}

StatusOr<Source> Importer::Resolve(const NodeDef& node, const std::string& input) const {
  StatusOr<TensorName> name = ParseTensorName(input);
  if (!name.ok()) return Annotate(name.status(), absl::StrCat("Node '", node.name, "'"));
  Source source;
  source.port = name->port;
  const auto found = index_of_.find(name->node);
  if (found != index_of_.end()) {
    source.index = found->second;
    return source;
  }
  source.known = graph_->Find(name->node);
  if (source.known == nullptr) {
    return InvalidArgument("Node '", node.name, "': Unknown input node '", input, "'");
  }
  return source;
}

Status Importer::ResolveInputs() {
  const size_t count = def_.nodes.size();
  sources_.resize(count);
  readers_.resize(count);
  pending_.resize(count, 0);
  made_.resize(count, nullptr);
  for (size_t i = 0; i < count; ++i) {
    const NodeDef& node = def_.nodes[i];
    bool controls = false;
    for (const std::string& input : node.inputs) {
      WEFT_ASSIGN_OR_RETURN(const Source source, Resolve(node, input));
      if (controls && source.port != kControlPort) {
        return InvalidArgument("Node '", node.name,
                               "': Control dependencies must come after regular dependencies");
      }
      controls = controls || source.port == kControlPort;
      const auto position = static_cast<int>(sources_[i].size());
      sources_[i].push_back(source);
      if (source.known != nullptr) continue;
      if (!controls && IsLoopBack(graph_->ops(), def_.nodes[source.index].op, node.op)) {
        back_edges_.push_back({static_cast<int>(i), position, source});
        continue;
      }
      readers_[source.index].push_back(static_cast<int>(i));
      ++pending_[i];
    }
  }
  return absl::OkStatus();
}

Status Importer::AddFunctions() {
  WEFT_RETURN_IF_ERROR(CheckFunctions(def_, *graph_));
  for (FunctionDef& function : def_.functions) {
    const std::string name = function.signature.name;
    const bool is_new = graph_->FindFunction(name) == nullptr;
    WEFT_RETURN_IF_ERROR(graph_->AddFunction(std::move(function)));
    if (is_new) added_functions_.push_back(name);
  }
  for (const auto& [function, gradient] : def_.gradient_functions) {
    const std::string* known = graph_->FindGradientFunction(function);
    if (known != nullptr && *known != gradient) {
      return InvalidArgument("Cannot assign gradient function '", gradient, "' to '", function,
                             "' because it already has gradient function '", *known, "'");
    }
  }
  return absl::OkStatus();
}

// Names what else is missing, so that one attempt tells all; empty if nothing is.
std::string Importer::OtherUnknownOps(const std::string& known) const {
  std::set<std::string> others;
  for (size_t i = 0; i < def_.nodes.size(); ++i) {
    const std::string& op = def_.nodes[i].op;
    if (made_[i] == nullptr && op != known && !graph_->FindOp(op).ok()) others.insert(op);
  }
  if (others.empty()) return "";
  return absl::StrCat("; nor are these ops of the graph: ", absl::StrJoin(others, ", "));
}

Status Importer::CheckOp(const NodeDef& node) const {
  StatusOr<const OpDefinition*> op = graph_->FindOp(node.op);
  if (!op.ok()) {
    const Status first = Annotate(op.status(), absl::StrCat("Node '", node.name, "'"));
    return Status(first.code(), absl::StrCat(first.message(), OtherUnknownOps(node.op)));
  }
  const OpSchema& schema = (*op)->schema;
  const int producer = graph_->versions().producer;
  if (schema.deprecated_since > 0 && producer >= schema.deprecated_since) {
    return Unimplemented("Op ", schema.name, " is not available in GraphDef version ", producer,
                         ". It has been removed in version ", schema.deprecated_since, ". ",
                         schema.deprecation, ". (node '", node.name, "')");
  }
  return absl::OkStatus();
}

Status Importer::AddOne(int index) {
  NodeDef& node = def_.nodes[index];
  WEFT_RETURN_IF_ERROR(CheckOp(node));
  std::vector<Endpoint> inputs;
  std::vector<Node*> controls;
  for (const Source& source : sources_[index]) {
    Node* from = source.known != nullptr ? source.known : made_[source.index];
    if (source.port == kControlPort) {
      controls.push_back(from);
    } else {
      inputs.push_back({from, from == nullptr ? 0 : source.port});
    }
  }
  WEFT_ASSIGN_OR_RETURN(made_[index], graph_->AddNode(std::move(node), inputs, controls));
  return absl::OkStatus();
}

Status Importer::AddNodes() {
  // Among the nodes that are ready the first of the client's order goes first.
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (size_t i = 0; i < pending_.size(); ++i) {
    if (pending_[i] == 0) ready.push(static_cast<int>(i));
  }
  size_t count = 0;
  while (!ready.empty()) {
    const int index = ready.top();
    ready.pop();
    WEFT_RETURN_IF_ERROR(AddOne(index));
    ++count;
    for (int reader : readers_[index]) {
      if (--pending_[reader] == 0) ready.push(reader);
    }
  }
  if (count != def_.nodes.size()) return CycleError();
  for (const BackEdge& edge : back_edges_) {
    WEFT_RETURN_IF_ERROR(graph_->SetInput(made_[edge.reader], edge.input,
                                          {made_[edge.source.index], edge.source.port}));
  }
  for (const auto& [function, gradient] : def_.gradient_functions) {
    graph_->SetGradientFunction(function, gradient);
  }
  return absl::OkStatus();
}

// Every node still pending reads another that is: walking back over them must come round.
Status Importer::CycleError() const {
  const auto pending_source = [&](int index) {
    for (const Source& source : sources_[index]) {
      if (source.known != nullptr || pending_[source.index] == 0) continue;
      if (IsLoopBack(graph_->ops(), def_.nodes[source.index].op, def_.nodes[index].op)) continue;
      return source.index;
    }
    return kNewNode;
  };
  const auto first = std::find_if(pending_.begin(), pending_.end(), [](int n) { return n > 0; });
  absl::flat_hash_map<int, size_t> seen;
  std::vector<std::string> path;
  int at = static_cast<int>(first - pending_.begin());
  while (at != kNewNode && seen.emplace(at, path.size()).second) {
    path.push_back(def_.nodes[at].name);
    at = pending_source(at);
  }
  if (at == kNewNode) return Internal("Import order is inconsistent at node '", path.back(), "'");
  path.erase(path.begin(), path.begin() + static_cast<int64_t>(seen[at]));
  constexpr size_t kShown = 10;
  const bool cut = path.size() > kShown;
  if (cut) path.resize(kShown);
  return InvalidArgument("Graph is invalid, contains a cycle through: ",
                         absl::StrJoin(path, " <- "), cut ? " <- ..." : "");
}

void Importer::Undo() {
  for (auto node = made_.rbegin(); node != made_.rend(); ++node) {
    if (*node != nullptr) graph_->RemoveNode(*node);
  }
  for (const std::string& name : added_functions_) graph_->RemoveFunction(name);
  graph_->versions() = old_versions_;
}

}  // namespace

bool IsValidNodeName(absl::string_view name, bool allow_internal) {
  bool first = true;
  for (absl::string_view part : absl::StrSplit(name, '>')) {
    if (part.empty()) return false;
    const auto head = static_cast<unsigned char>(part.front());
    const bool internal = head == '_' && allow_internal && first;
    if (!absl::ascii_isalnum(head) && head != '.' && !internal) return false;
    for (char c : part) {
      if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '-' && c != '.' &&
          c != '/') {
        return false;
      }
    }
    first = false;
  }
  return true;
}

Status CheckNodeName(absl::string_view name, bool allow_internal) {
  if (IsValidNodeName(name, allow_internal)) return absl::OkStatus();
  return InvalidArgument("Illegal op instance name '", name,
                         "': letters, digits and '_-./' are allowed, and '>' between parts");
}

Status ImportGraph(GraphDef def, const ImportOptions& options, Graph* graph) {
  return Importer(std::move(def), options, graph).Run();
}

NodeDef ExportNode(const Node& node, const ExportOptions& options) {
  NodeDef def;
  def.name = node.name();
  def.op = node.op();
  def.device = options.assigned_devices && !node.assigned_device().empty()
                   ? node.assigned_device()
                   : node.requested_device();
  for (const Endpoint& input : node.inputs()) {
    if (input.node == nullptr) continue;
    def.inputs.push_back(input.port == 0 ? input.node->name()
                                         : absl::StrCat(input.node->name(), ":", input.port));
  }
  for (const Node* control : node.control_inputs()) {
    def.inputs.push_back(absl::StrCat("^", control->name()));
  }
  for (const auto& [name, value] : node.attrs()) {
    const AttrSchema* schema = options.strip_defaults ? node.schema().FindAttr(name) : nullptr;
    if (schema != nullptr && schema->default_value && *schema->default_value == value) continue;
    def.attrs.emplace(name, value);
  }
  return def;
}

GraphDef ExportGraph(const Graph& graph, const ExportOptions& options) {
  GraphDef def;
  def.versions = graph.versions();
  for (const Node* node : graph.nodes()) def.nodes.push_back(ExportNode(*node, options));
  for (const FunctionDef* function : graph.functions()) {
    def.functions.push_back(*function);
    const std::string& name = function->signature.name;
    if (const std::string* gradient = graph.FindGradientFunction(name)) {
      def.gradient_functions[name] = *gradient;
    }
  }
  return def;
}

}  // namespace weft
