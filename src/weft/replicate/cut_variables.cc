// SPDX-License-Identifier: Apache-2.0
#include "weft/replicate/cut_variables.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "absl/strings/str_cat.h"

#include "weft/graph/builder.h"
#include "weft/replicate/cut_choice.h"
#include "weft/replicate/cut_rules.h"
#include "weft/replicate/node_facts.h"

namespace weft::replicate {
namespace {

// How a tensor's rows lie on devices.
struct Layout {
  Shape shape;       // of the whole
  int64_t rows = 1;  // of each part but the last
  std::vector<std::string> devices;

  int size() const { return static_cast<int>(devices.size()); }
  int64_t RowsOf(int part) const { return std::min(rows, shape.dim(0) - part * rows); }
  // `first`, if there is one, and the sizes of a row.
  Tensor Sizes(std::vector<int32_t> first) const {
    for (int i = 1; i < shape.rank(); ++i) first.push_back(static_cast<int32_t>(shape.dim(i)));
    return Tensor::FromSpan<int32_t>(Shape{static_cast<int64_t>(first.size())}, first);
  }
  bool operator==(const Layout& other) const {
    return shape == other.shape && devices == other.devices;
  }
};

// A variable, a reference to it, its handle or its value, in parts.
struct Parts {
  std::vector<Endpoint> of;
  Layout layout;
  bool is_value = false;
};

// Which rows of a list are in which part.
struct Route {
  std::vector<Endpoint> indices;  // in each part, counted from its first row
  Endpoint parts;                 // of each index
  Endpoint flat;                  // the indices as a vector
};

class Cutter {
 public:
  explicit Cutter(Graph* graph) : graph_(graph), b_(graph) {}

  Status Run() {
    WEFT_ASSIGN_OR_RETURN(const std::vector<Node*> order, graph_->TopologicalOrder());
    for (Node* node : order) {
      WEFT_RETURN_IF_ERROR(Visit(node));
      WEFT_RETURN_IF_ERROR(b_.status());
    }
    for (const auto& [node, parts] : replaced_) {
      for (const Consumer& reader : std::vector<Consumer>(node->consumers())) {
        if (reader.port != kControlPort || replaced_.contains(reader.node)) continue;
        for (Node* part : parts) graph_->AddControlEdge(part, reader.node);
      }
    }
    for (const auto& [node, parts] : replaced_) graph_->RemoveNode(node);
    return absl::OkStatus();
  }

 private:
  using PartNodes = std::vector<Node*>;

  Status Visit(Node* node) {
    if (node->attrs().contains(kPartsAttr)) return CutVariable(node);
    if (FirstCut(*node) == nullptr) return absl::OkStatus();
    if (Follow(node)) return absl::OkStatus();
    return ReadWhole(node);
  }

  // What is known of the first input that is in parts.
  const Parts* FirstCut(const Node& node) const {
    for (const Endpoint& input : node.inputs()) {
      const auto found = cut_.find(input);
      if (found != cut_.end()) return &found->second;
    }
    return nullptr;
  }
  const Parts* CutOf(const Endpoint& tensor) const {
    const auto found = cut_.find(tensor);
    return found == cut_.end() ? nullptr : &found->second;
  }

  // Does with the parts what the node does with the whole; false if it wants the whole.
  bool Follow(Node* node) {
    switch (CutUseOf(node->schema())) {
      case CutUse::kRead:
        return OnEachPart(node);
      case CutUse::kGather:
        return GatherRows(node);
      case CutUse::kUpdate:
        return Update(node);
      case CutUse::kIsInitialized:
        return IsInitialized(node);
      case CutUse::kShape:
        return TellShape(node);
      case CutUse::kByElement:
        return ByElement(node);
      case CutUse::kSumOfSquares:
        return SumOfParts(node);
      case CutUse::kNone:
        break;
    }
    const bool passes_value = (node->traits().passes_on == PassesOn::kItself ||
                               node->traits().passes_on == PassesOn::kCopy) &&
                              node->num_inputs() == 1 && !node->input_type(0).is_ref &&
                              !node->output_type(0).is_ref &&
                              node->LowersTo(InstructionKind::kKernel) && !IsHandle(node->input(0));
    return passes_value && OnEachPart(node);
  }

  static bool IsHandle(const Endpoint& tensor) {
    return tensor.node->output_type(tensor.port).dtype == DType::kResource;
  }

  // --- Nodes ---

  Endpoint At(const std::string& device, absl::string_view op, const std::vector<Argument>& inputs,
              AttrMap attrs = {}, absl::string_view name = "") {
    Node* const node = b_.AddNode(op, inputs, std::move(attrs), name);
    if (node == nullptr) return {};
    node->set_assigned_device(device);
    return {node, 0};
  }
  Endpoint ConstantAt(const std::string& device, const Tensor& value) {
    AttrMap attrs;
    attrs["dtype"] = value.dtype();
    attrs["value"] = value;
    return At(device, "Const", {}, std::move(attrs));
  }
  Endpoint IndexAt(const std::string& device, int64_t value, DType dtype) {
    return ConstantAt(device, dtype == DType::kInt64
                                  ? Tensor::Scalar<int64_t>(value)
                                  : Tensor::Scalar<int32_t>(static_cast<int32_t>(value)));
  }
  Endpoint CastAt(const std::string& device, const Endpoint& x, DType to) {
    if (x.node == nullptr || x.node->output_type(x.port).dtype == to) return x;
    AttrMap attrs;
    attrs["DstT"] = to;
    return At(device, "Cast", {x}, std::move(attrs));
  }

  // What the node waits for, in the graph of parts.
  std::vector<Node*> ControlsOf(const Node& node) const {
    std::vector<Node*> controls;
    for (Node* control : node.control_inputs()) {
      const auto found = replaced_.find(control);
      if (found == replaced_.end()) {
        controls.push_back(control);
      } else {
        controls.insert(controls.end(), found->second.begin(), found->second.end());
      }
    }
    return controls;
  }

  // The same op for a part, on the part's device.
  Node* CopyForPart(const Node& node, int part, const Layout& layout,
                    const std::vector<Argument>& inputs) {
    AttrMap attrs = node.attrs();
    attrs.erase("_class");
    b_.set_control_inputs(ControlsOf(node));
    Node* const copy = b_.AddNode(node.op(), inputs, std::move(attrs),
                                  absl::StrCat(node.name(), "/of_server_", part));
    b_.set_control_inputs({});
    if (copy != nullptr) copy->set_assigned_device(layout.devices[part]);
    return copy;
  }

  // The node is done by `nodes`; if its output 0 is in parts, those are output 0 of each.
  void Replace(Node* node, PartNodes nodes, const Parts* like = nullptr) {
    if (like != nullptr) {
      Parts parts{.layout = like->layout, .is_value = like->is_value};
      for (Node* part : nodes) parts.of.push_back({part, 0});
      cut_[{node, 0}] = std::move(parts);
    }
    replaced_[node] = std::move(nodes);
  }

  Status CutVariable(Node* node) {
    WEFT_ASSIGN_OR_RETURN(const auto shape, node->Attr<PartialShape>("shape"));
    WEFT_ASSIGN_OR_RETURN(const auto devices, node->Attr<AttrValue::StringList>(kPartsAttr));
    if (!shape.IsFullyDefined() || shape.rank() < 1 || devices.empty())
      return InvalidArgument("Variable '", node->name(), "' of shape ", shape.ToString(),
                             " has no rows that could be cut");
    Parts parts;
    WEFT_ASSIGN_OR_RETURN(parts.layout.shape, shape.ToShape());
    const auto count = static_cast<int64_t>(devices.size());
    parts.layout.rows = std::max<int64_t>(1, (shape.dim(0) + count - 1) / count);
    PartNodes nodes;
    const auto shared = FindAttrOr<std::string>(node->attrs(), "shared_name", "");
    for (int i = 0; i < count && i * parts.layout.rows < shape.dim(0); ++i)
      parts.layout.devices.push_back(devices[i]);
    for (int i = 0; i < parts.layout.size(); ++i) {
      AttrMap attrs = node->attrs();
      attrs.erase("_class");
      attrs.erase(kPartsAttr);
      Shape of_part{parts.layout.RowsOf(i)};
      for (int d = 1; d < shape.rank(); ++d) of_part.AddDim(shape.dim(d));
      attrs["shape"] = of_part;
      attrs["shared_name"] = absl::StrCat(shared.empty() ? node->name() : shared, "/of_server_", i);
      nodes.push_back(b_.AddNode(node->op(), {}, std::move(attrs),
                                 absl::StrCat(node->name(), "/of_server_", i)));
      WEFT_RETURN_IF_ERROR(b_.status());
      nodes.back()->set_assigned_device(devices[i]);
    }
    Replace(node, std::move(nodes), &parts);
    return absl::OkStatus();
  }

  // --- Values ---

  // A node that wants values gets them whole.
  Status ReadWhole(Node* node) {
    for (int i = 0; i < node->num_inputs(); ++i) {
      const Endpoint source = node->input(i);
      const Parts* const parts = CutOf(source);
      if (parts == nullptr) continue;
      if (node->input_type(i).is_ref || IsHandle(source)) {
        return InvalidArgument("Node '", node->name(), "' (", node->op(), ") takes the variable '",
                               source.node->name(), "', which is cut into ", parts->layout.size(),
                               " parts over the parameter servers: ask for the distribution "
                               "'written', or add the node before the first step");
      }
      const Endpoint whole = Whole(source, *parts, node->assigned_device());
      WEFT_RETURN_IF_ERROR(b_.status());
      WEFT_RETURN_IF_ERROR(graph_->SetInput(node, i, whole));
    }
    return absl::OkStatus();
  }

  Endpoint Whole(const Endpoint& source, const Parts& parts, const std::string& device) {
    Endpoint& whole = wholes_[{source, device}];
    if (whole.node != nullptr) return whole;
    b_.PushName(source.node->name());
    std::vector<Endpoint> values;
    for (int i = 0; i < parts.layout.size(); ++i) {
      values.push_back(parts.is_value ? parts.of[i]
                                      : At(parts.layout.devices[i], "Identity", {parts.of[i]}));
    }
    if (values.size() == 1) {
      whole = values.front();
    } else {
      const Endpoint axis = ConstantAt(device, Tensor::Scalar<int32_t>(0));
      whole = At(device, "ConcatV2", {values, axis}, {}, "of_parts");
    }
    b_.PopName();
    return whole;
  }

  // The rows of each part, of a value that is there as a whole or in parts.
  std::vector<Endpoint> RowsOfParts(const Endpoint& value, const Layout& layout) {
    const Parts* const parts = CutOf(value);
    if (parts != nullptr && parts->layout == layout) return parts->of;
    if (layout.size() == 1) return {value};
    std::vector<Endpoint> rows;
    const std::string& from = value.node->assigned_device();
    if (parts == nullptr && IsFill(*value.node)) {
      for (int i = 0; i < layout.size(); ++i) {
        const std::string& device = layout.devices[i];
        const Endpoint sizes =
            ConstantAt(device, layout.Sizes({static_cast<int32_t>(layout.RowsOf(i))}));
        rows.push_back(At(device, "Fill", {sizes, value.node->input(1)}));
      }
      return rows;
    }
    const Endpoint whole = parts == nullptr ? value : Whole(value, *parts, from);
    Node*& split = splits_[whole];
    if (split == nullptr) {
      std::vector<int64_t> sizes;
      for (int i = 0; i < layout.size(); ++i) sizes.push_back(layout.RowsOf(i));
      AttrMap attrs;
      attrs["num_split"] = static_cast<int64_t>(layout.size());
      split = At(from, "SplitV",
                 {whole,
                  ConstantAt(from, Tensor::FromSpan<int64_t>(
                                       Shape{static_cast<int64_t>(sizes.size())}, sizes)),
                  ConstantAt(from, Tensor::Scalar<int32_t>(0))},
                 std::move(attrs))
                  .node;
    }
    for (int i = 0; i < layout.size(); ++i) rows.push_back({split, i});
    return rows;
  }

  // The node of one input that gives its value, part by part.
  bool OnEachPart(Node* node) {
    const Parts from = *CutOf(node->input(0));
    PartNodes nodes;
    for (int i = 0; i < from.layout.size(); ++i)
      nodes.push_back(CopyForPart(*node, i, from.layout, {from.of[i]}));
    const Parts like{.layout = from.layout, .is_value = true};
    Replace(node, std::move(nodes), &like);
    return true;
  }

  // Of tensors that lie alike, and scalars, or sums of any.
  bool ByElement(Node* node) {
    const Parts first = *FirstCut(*node);
    const bool is_sum =
        node->num_inputs() > 0 && !node->schema().inputs.front().number_attr.empty();
    for (int i = 0; i < node->num_inputs(); ++i) {
      const Parts* const parts = CutOf(node->input(i));
      const bool lies_alike = parts != nullptr && parts->is_value && parts->layout == first.layout;
      if (!lies_alike && !is_sum && b_.ShapeOf(node->input(i)).rank() != 0) return false;
      if (parts != nullptr && !lies_alike) return false;
    }
    PartNodes nodes;
    std::vector<std::vector<Endpoint>> inputs;
    for (int i = 0; i < node->num_inputs(); ++i) {
      const bool is_rows = is_sum || CutOf(node->input(i)) != nullptr;
      inputs.push_back(is_rows ? RowsOfParts(node->input(i), first.layout)
                               : std::vector<Endpoint>(first.layout.size(), node->input(i)));
    }
    for (int part = 0; part < first.layout.size(); ++part) {
      std::vector<Endpoint> here;
      for (const std::vector<Endpoint>& input : inputs) here.push_back(input[part]);
      std::vector<Argument> arguments(here.begin(), here.end());
      if (is_sum) arguments = {Argument(here)};
      nodes.push_back(CopyForPart(*node, part, first.layout, arguments));
    }
    Replace(node, std::move(nodes), &first);
    return true;
  }

  bool SumOfParts(Node* node) {
    const Parts from = *CutOf(node->input(0));
    if (!from.is_value) return false;
    std::vector<Endpoint> sums;
    for (int i = 0; i < from.layout.size(); ++i)
      sums.push_back({CopyForPart(*node, i, from.layout, {from.of[i]}), 0});
    if (!b_.ok()) return true;
    const Endpoint sum =
        At(node->assigned_device(), "AddN", {sums}, {}, absl::StrCat(node->name(), "/of_parts"));
    RedirectTo(node, sum);
    return true;
  }

  // The node's readers read `other`, which does what it did.
  void RedirectTo(Node* node, const Endpoint& other) {
    if (!b_.ok()) return;
    graph_->RedirectConsumers({node, 0}, other);
    Replace(node, {other.node});
  }

  // --- Rows ---

  // Cached by indices and layout: a gather and the update of its rows go the same way.
  const Route& RouteOf(const Endpoint& indices, const Layout& layout) {
    Route& route = routes_[{indices, {layout.rows, layout.size()}}];
    if (route.flat.node != nullptr) return route;
    const std::string& device = indices.node->assigned_device();
    const DType dtype = indices.node->output_type(indices.port).dtype;
    b_.PushName(absl::StrCat(indices.node->name(), "/route"));
    route.flat =
        b_.ShapeOf(indices).rank() == 1
            ? indices
            : At(device, "Reshape", {indices, ConstantAt(device, Tensor::Vector<int32_t>({-1}))});
    const Endpoint rows = IndexAt(device, layout.rows, dtype);
    // An index out of range goes to the first or last part, which refuses it.
    Endpoint part = At(device, "FloorDiv", {route.flat, rows});
    part = At(device, "Maximum", {part, IndexAt(device, 0, dtype)});
    part = At(device, "Minimum", {part, IndexAt(device, layout.size() - 1, dtype)});
    const Endpoint local =
        At(device, "Sub", {route.flat, At(device, "Mul", {part, rows})}, {}, "local");
    route.parts = CastAt(device, part, DType::kInt32);
    route.indices = Partition(local, route, layout);
    b_.PopName();
    return route;
  }

  std::vector<Endpoint> Partition(const Endpoint& rows, const Route& route, const Layout& layout) {
    AttrMap attrs;
    attrs["num_partitions"] = static_cast<int64_t>(layout.size());
    const Endpoint split = At(route.flat.node->assigned_device(), "DynamicPartition",
                              {rows, route.parts}, std::move(attrs));
    std::vector<Endpoint> parts;
    for (int i = 0; i < layout.size(); ++i) parts.push_back({split.node, i});
    return parts;
  }

  bool GatherRows(Node* node) {
    const Parts* const found = CutOf(node->input(0));
    if (found == nullptr || CutOf(node->input(1)) != nullptr || !GathersRows(*node)) return false;
    const Parts from = *found;
    const Endpoint indices = node->input(1);
    const std::string device = indices.node->assigned_device();
    const Route route = RouteOf(indices, from.layout);
    if (!b_.ok()) return true;
    b_.PushName(node->name());
    std::vector<Endpoint> rows;
    for (int i = 0; i < from.layout.size(); ++i) {
      std::vector<Argument> inputs = {from.of[i], route.indices[i]};
      if (node->num_inputs() > 2) inputs.emplace_back(node->input(2));
      b_.PopName();
      rows.push_back({CopyForPart(*node, i, from.layout, inputs), 0});
      b_.PushName(node->name());
    }
    // Where each row was in the list of indices.
    const Endpoint count = At(device, "Size", {route.flat});
    const Endpoint places =
        At(device, "Range",
           {IndexAt(device, 0, DType::kInt32), count, IndexAt(device, 1, DType::kInt32)});
    const std::vector<Endpoint> of_parts = Partition(places, route, from.layout);
    Endpoint result = At(device, "DynamicStitch", {of_parts, rows}, {}, "rows");
    if (route.flat != indices)
      result = At(device, "Reshape", {result, SizesOfRows(indices, from.layout)});
    b_.PopName();
    RedirectTo(node, result);
    return true;
  }

  // --- Updates ---

  bool Update(Node* node) {
    const OpSchema& schema = node->schema();
    const Parts first = *FirstCut(*node);
    Endpoint indices;
    for (int i = 0; i < node->num_inputs(); ++i) {
      if (CutInputOf(schema.inputs[i]) == CutInput::kIndices) indices = node->input(i);
      // What changes another variable by this one's value, or several that do not lie alike.
      const Parts* const parts = CutOf(node->input(i));
      const bool is_variable = CutInputOf(schema.inputs[i]) == CutInput::kVariable;
      if (is_variable && (parts == nullptr || !(parts->layout == first.layout))) return false;
    }
    const Layout layout = first.layout;
    const Route* const route = indices.node == nullptr ? nullptr : &RouteOf(indices, layout);
    if (!b_.ok()) return true;
    b_.PushName(node->name());
    std::vector<std::vector<Endpoint>> inputs;
    for (int i = 0; i < node->num_inputs(); ++i) {
      switch (CutInputOf(schema.inputs[i])) {
        case CutInput::kVariable:
          inputs.push_back(CutOf(node->input(i))->of);
          break;
        case CutInput::kIndices:
          inputs.push_back(route->indices);
          break;
        case CutInput::kRows:
          inputs.push_back(route == nullptr
                               ? RowsOfParts(node->input(i), layout)
                               : Partition(RowsOfIndices(node->input(i), indices, *route, layout),
                                           *route, layout));
          break;
        case CutInput::kOther:
          inputs.emplace_back(layout.size(), WholeInput(*node, i));
          break;
      }
    }
    b_.PopName();
    PartNodes nodes;
    for (int part = 0; part < layout.size(); ++part) {
      std::vector<Argument> here;
      for (const std::vector<Endpoint>& input : inputs) here.emplace_back(input[part]);
      nodes.push_back(CopyForPart(*node, part, layout, here));
    }
    const Parts like{.layout = layout};
    Replace(node, std::move(nodes), node->num_outputs() > 0 ? &like : nullptr);
    return true;
  }

  Endpoint WholeInput(const Node& node, int i) {
    const Parts* const parts = CutOf(node.input(i));
    return parts == nullptr ? node.input(i) : Whole(node.input(i), *parts, node.assigned_device());
  }

  // The sizes of what has a row for each index.
  Endpoint SizesOfRows(const Endpoint& indices, const Layout& layout) {
    const std::string& device = indices.node->assigned_device();
    return At(device, "ConcatV2",
              {std::vector<Endpoint>{At(device, "Shape", {indices}),
                                     ConstantAt(device, layout.Sizes({}))},
               ConstantAt(device, Tensor::Scalar<int32_t>(0))});
  }

  // A list of rows, one for each index: updates may be one number for all.
  Endpoint RowsOfIndices(const Endpoint& given, const Endpoint& indices, const Route& route,
                         const Layout& layout) {
    const std::string& device = route.flat.node->assigned_device();
    const Parts* const parts = CutOf(given);
    Endpoint updates = parts == nullptr ? given : Whole(given, *parts, device);
    if (b_.ShapeOf(updates).rank() < 1)
      updates = At(device, "BroadcastTo", {updates, SizesOfRows(indices, layout)});
    if (route.flat == indices) return updates;
    return At(device, "Reshape", {updates, ConstantAt(device, layout.Sizes({-1}))});
  }

  // --- What is asked of variables ---

  bool IsInitialized(Node* node) {
    const Parts from = *CutOf(node->input(0));
    Endpoint all;
    for (int i = 0; i < from.layout.size(); ++i) {
      const Endpoint one = {CopyForPart(*node, i, from.layout, {from.of[i]}), 0};
      if (!b_.ok()) return true;
      all = all.node == nullptr ? one : At(node->assigned_device(), "LogicalAnd", {all, one});
    }
    RedirectTo(node, all);
    return true;
  }

  bool TellShape(Node* node) {
    const Shape& shape = CutOf(node->input(0))->layout.shape;
    std::vector<int64_t> wide;
    for (int i = 0; i < shape.rank(); ++i) wide.push_back(shape.dim(i));
    const std::vector<int32_t> narrow(wide.begin(), wide.end());
    const Shape list{shape.rank()};
    const Tensor sizes = node->output_type(0).dtype == DType::kInt64
                             ? Tensor::FromSpan<int64_t>(list, wide)
                             : Tensor::FromSpan<int32_t>(list, narrow);
    b_.set_control_inputs(ControlsOf(*node));
    const Endpoint constant = ConstantAt(node->assigned_device(), sizes);
    b_.set_control_inputs({});
    RedirectTo(node, constant);
    return true;
  }

  Graph* const graph_;
  GraphBuilder b_;
  absl::flat_hash_map<Endpoint, Parts> cut_;
  absl::flat_hash_map<Node*, PartNodes> replaced_;
  absl::flat_hash_map<std::pair<Endpoint, std::string>, Endpoint> wholes_;
  absl::flat_hash_map<Endpoint, Node*> splits_;
  absl::node_hash_map<std::pair<Endpoint, std::pair<int64_t, int>>, Route> routes_;
};

}  // namespace

Status CutVariables(Graph* step) {
  const std::vector<Node*> nodes = step->nodes();
  const bool any = std::any_of(nodes.begin(), nodes.end(),
                               [](const Node* node) { return node->attrs().contains(kPartsAttr); });
  return any ? Cutter(step).Run() : absl::OkStatus();
}

}  // namespace weft::replicate
