// SPDX-License-Identifier: Apache-2.0
#include "weft/compile/partition.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

#include "weft/compile/drive_loops.h"

namespace weft::compile {
namespace {

// Deadness of a node and of its outputs may differ.
bool MayKillOutputs(const Node& node) { return node.LowersTo(InstructionKind::kSwitch); }

// A crossing value: what it is and where it goes.
struct Crossing {
  const Node* node;
  int port;
  std::string place;
  bool operator==(const Crossing&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const Crossing& c) {
    return H::combine(std::move(h), c.node, c.port, c.place);
  }
};

class Partitioner {
 public:
  // `drivers` are null where no loop spans places.
  Partitioner(const Graph& graph, const PartitionOptions& options, const LoopDrivers* drivers)
      : graph_(graph),
        options_(options),
        drivers_(drivers),
        twins_(graph.max_id()),
        places_(graph.max_id()),
        next_edge_(options.first_edge) {}

  StatusOr<Partitioned> Run() {
    WEFT_ASSIGN_OR_RETURN(const std::vector<Node*> order, graph_.TopologicalOrder());
    for (const Node* node : order) {
      if (node->assigned_device().empty())
        return Internal("Node '", node->name(), "' has no device");
      places_[node->id()] = options_.place_of(node->assigned_device());
      result_.parts.try_emplace(places_[node->id()], graph_.EmptyTwin());
      has_branches_ = has_branches_ || MayKillOutputs(*node);
    }
    for (const Node* node : order) WEFT_RETURN_IF_ERROR(Copy(*node));
    for (const auto& [node, index] : open_inputs_) {
      const Endpoint& source = node->input(index);
      WEFT_RETURN_IF_ERROR(
          part(places_[node->id()])
              .SetInput(twins_[node->id()], index, {twins_[source.node->id()], source.port}));
    }
    for (const auto& [node, driver] : driven_) {
      part(places_[driver->id()]).AddControlEdge(twins_[driver->id()], node);
    }
    result_.next_edge = next_edge_;
    return std::move(result_);
  }

 private:
  Graph& part(const std::string& place) { return result_.parts.find(place)->second; }

  // What drives the loop that `node` runs in at `place`; null outside of loops that span places.
  const Node* DriverOf(const Node& node, const std::string& place) const {
    if (drivers_ == nullptr) return nullptr;
    const auto found = drivers_->merges.find({drivers_->layout.runs_in[node.id()], place});
    return found == drivers_->merges.end() ? nullptr : found->second;
  }

  Status Copy(const Node& node) {
    const std::string& place = places_[node.id()];
    std::vector<Endpoint> inputs;
    for (int i = 0; i < node.num_inputs(); ++i) {
      const Endpoint& source = node.input(i);
      if (source.node == nullptr) {
        return InvalidArgument("Input ", i, " of node '", node.name(), "' is not connected");
      }
      if (places_[source.node->id()] == place) {
        Node* twin = twins_[source.node->id()];
        if (twin == nullptr) open_inputs_.push_back({&node, i});  // the way back of a loop
        inputs.push_back(twin == nullptr ? Endpoint() : Endpoint{twin, source.port});
        continue;
      }
      if (node.input_type(i).is_ref) {
        return InvalidArgument("Input ", i, " of node '", node.name(), "' at ", place,
                               " needs a reference to '", source.node->name(), "', which is at ",
                               places_[source.node->id()]);
      }
      WEFT_ASSIGN_OR_RETURN(Node * receive, Receive(source, node));
      inputs.push_back({receive, 0});
    }
    std::vector<Node*> controls;
    absl::flat_hash_set<const Node*> joined;
    WEFT_RETURN_IF_ERROR(JoinControls(node, &controls, &joined));
    bool is_driven = false;
    for (const Node* control : node.control_inputs()) {
      // As alive as the driver of the same loop here.
      if (places_[control->id()] != place && DriverOf(node, place) != nullptr &&
          control->attrs().contains(kDriverAttr)) {
        is_driven = true;
        continue;
      }
      if (joined.contains(control)) continue;
      WEFT_ASSIGN_OR_RETURN(Node * local, LocalControl(*control, node, node));
      controls.push_back(local);
    }
    NodeDef def{.name = node.name(), .op = node.op(), .device = node.assigned_device()};
    def.attrs = node.attrs();
    WEFT_ASSIGN_OR_RETURN(Node * twin, part(place).AddNode(std::move(def), inputs, controls));
    twin->set_assigned_device(node.assigned_device());
    twins_[node.id()] = twin;
    if (is_driven) driven_.emplace_back(twin, DriverOf(node, place));
    return absl::OkStatus();
  }

  // The node at the reader's place that gives `source`'s value.
  StatusOr<Node*> Receive(const Endpoint& source, const Node& reader) {
    const bool is_ref = source.node->output_type(source.port).is_ref;
    const Crossing crossing{source.node, source.port, places_[reader.id()]};
    if (!is_ref) {
      const auto known = receives_.find(crossing);
      if (known != receives_.end()) return known->second;
    }
    std::vector<Node*> controls;
    if (is_ref) {
      // What the reader waits for may change the variable: read it after.
      for (const Node* control : reader.control_inputs()) {
        const bool is_here = places_[control->id()] == places_[source.node->id()];
        // In one task TensorFlow's readers see a variable as it is when they run, and elsewhere as
        // it was when it was sent.
        if (!is_here && TaskOf(*source.node) != TaskOf(reader)) continue;
        WEFT_ASSIGN_OR_RETURN(Node * local, LocalControl(*control, reader, *source.node));
        controls.push_back(local);
      }
    }
    WEFT_ASSIGN_OR_RETURN(Node * receive, Cross({twins_[source.node->id()], source.port},
                                                source.node->output_type(source.port).dtype,
                                                *source.node, reader, reader, controls));
    if (!is_ref) receives_.emplace(crossing, receive);
    if (!MayKillOutputs(*source.node))
      controls_.try_emplace({source.node, kControlPort, places_[reader.id()]}, receive);
    return receive;
  }

  // Of several nodes of one place that the node waits for one token comes, when all have run: a
  // step ends with the updates of all variables. `joined` are those, `controls` what stands for
  // them.
  Status JoinControls(const Node& node, std::vector<Node*>* controls,
                      absl::flat_hash_set<const Node*>* joined) {
    if (has_branches_ || drivers_ != nullptr) return absl::OkStatus();
    const std::string& place = places_[node.id()];
    std::map<std::string, std::vector<const Node*>> elsewhere;
    for (const Node* control : node.control_inputs()) {
      if (places_[control->id()] != place && !controls_.contains({control, kControlPort, place}))
        elsewhere[places_[control->id()]].push_back(control);
    }
    for (const auto& [from, waited] : elsewhere) {
      if (waited.size() < 2) continue;
      std::vector<Node*> twins;
      for (const Node* control : waited) twins.push_back(twins_[control->id()]);
      Node*& receive = joined_[{place, waited}];
      if (receive == nullptr) {
        WEFT_ASSIGN_OR_RETURN(receive, CrossToken(*waited.front(), twins, node, node));
      }
      controls->push_back(receive);
      joined->insert(waited.begin(), waited.end());
    }
    return absl::OkStatus();
  }

  // What stands for `control` where `at` is, in the loop that `reader` runs in.
  StatusOr<Node*> LocalControl(const Node& control, const Node& reader, const Node& at) {
    const std::string& place = places_[at.id()];
    if (places_[control.id()] == place) return twins_[control.id()];
    const Crossing crossing{&control, kControlPort, place};
    const auto known = controls_.find(crossing);
    if (known != controls_.end()) return AsControl(crossing, known->second);
    WEFT_ASSIGN_OR_RETURN(Node * receive, CrossToken(control, {twins_[control.id()]}, reader, at));
    controls_.emplace(crossing, receive);
    return AsControl(crossing, receive);
  }

  // The receive of a token that is sent from where `source` is after the nodes there.
  StatusOr<Node*> CrossToken(const Node& source, const std::vector<Node*>& after,
                             const Node& reader, const Node& at) {
    Graph& source_part = part(places_[source.id()]);
    NodeDef token{.name = source_part.UniqueName(absl::StrCat(source.name(), "/_token")),
                  .op = "Const",
                  .device = source.assigned_device()};
    WEFT_ASSIGN_OR_RETURN(Tensor nothing, Tensor::Zeros(DType::kFloat, Shape{0}));
    token.attrs["dtype"] = DType::kFloat;
    token.attrs["value"] = std::move(nothing);
    WEFT_ASSIGN_OR_RETURN(Node * made, source_part.AddNode(std::move(token), {}, after));
    made->set_assigned_device(source.assigned_device());
    return Cross({made, 0}, DType::kFloat, source, reader, at, {});
  }

  // What may be waited for in place of the node whose output `receive` gives. A receive of a dead
  // tensor has run, and so is alive itself; an Identity of it is as dead as the node was.
  StatusOr<Node*> AsControl(const Crossing& crossing, Node* receive) {
    if (!has_branches_ || receive->traits().exchange != Exchange::kReceives) return receive;
    Graph& to = part(crossing.place);
    NodeDef def{.name = to.UniqueName(absl::StrCat(receive->name(), "/_alive")),
                .op = "Identity",
                .device = receive->assigned_device()};
    def.attrs["T"] = receive->output_type(0).dtype;
    const Endpoint value[] = {{receive, 0}};
    WEFT_ASSIGN_OR_RETURN(Node * alive, to.AddNode(std::move(def), value));
    alive->set_assigned_device(receive->assigned_device());
    controls_[crossing] = alive;
    return alive;
  }

  // Adds the pair for one crossing, from the place of `source` to that of `at`; gives the receive.
  StatusOr<Node*> Cross(Endpoint value, DType dtype, const Node& source, const Node& reader,
                        const Node& at, const std::vector<Node*>& controls) {
    const int64_t edge = next_edge_++;
    AttrMap attrs;
    attrs["tensor_name"] = absl::StrCat("edge_", edge, "_", source.name());
    attrs["send_device"] = source.assigned_device();
    attrs["send_device_incarnation"] =
        static_cast<int64_t>(options_.incarnation_of(source.assigned_device()));
    attrs["recv_device"] = at.assigned_device();
    attrs["client_terminated"] = false;
    attrs["_src"] = source.name();
    attrs["_dst"] = reader.name();
    attrs[kEdgeAttr] = edge;

    Graph& from = part(places_[source.id()]);
    NodeDef send{.name = from.UniqueName(absl::StrCat(source.name(), "/_send_", edge)),
                 .op = "_Send",
                 .device = source.assigned_device(),
                 .attrs = attrs};
    send.attrs["T"] = dtype;
    WEFT_ASSIGN_OR_RETURN(Node * sent, from.AddNode(std::move(send), {value}, controls));
    sent->set_assigned_device(source.assigned_device());

    Graph& to = part(places_[at.id()]);
    NodeDef receive{.name = to.UniqueName(absl::StrCat(source.name(), "/_recv_", edge)),
                    .op = "_Recv",
                    .device = at.assigned_device(),
                    .attrs = std::move(attrs)};
    receive.attrs["tensor_type"] = dtype;
    WEFT_ASSIGN_OR_RETURN(Node * received, to.AddNode(std::move(receive), {}));
    received->set_assigned_device(at.assigned_device());
    if (const Node* driver = DriverOf(reader, places_[at.id()])) {
      driven_.emplace_back(received, driver);
    }
    return received;
  }

  const Graph& graph_;
  const PartitionOptions& options_;
  const LoopDrivers* const drivers_;
  Partitioned result_;
  std::vector<Node*> twins_;         // by id
  std::vector<std::string> places_;  // by id
  int64_t next_edge_;
  bool has_branches_ = false;
  absl::flat_hash_map<Crossing, Node*> receives_;
  absl::flat_hash_map<Crossing, Node*> controls_;
  // By the place of those who wait, and the nodes that they wait for.
  std::map<std::pair<std::string, std::vector<const Node*>>, Node*> joined_;
  std::vector<std::pair<const Node*, int>> open_inputs_;
  std::vector<std::pair<Node*, const Node*>>
      driven_;  // of a part, and the driver that it waits for
};

}  // namespace

StatusOr<Partitioned> PartitionGraph(const Graph& graph, const PartitionOptions& options) {
  WEFT_ASSIGN_OR_RETURN(const bool has_spanning_loops, HasSpanningLoops(graph, options.place_of));
  if (!has_spanning_loops) return Partitioner(graph, options, nullptr).Run();
  Graph driven = graph.Clone();
  WEFT_ASSIGN_OR_RETURN(const LoopDrivers drivers, DriveLoops(options.place_of, &driven));
  return Partitioner(driven, options, &drivers).Run();
}

}  // namespace weft::compile
