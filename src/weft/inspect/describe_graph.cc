// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "weft/inspect/describe_kinds.h"
#include "weft/tensor/shape_proto.h"
#include "weft/tensor/tensor_proto.h"

namespace weft::inspect {
namespace {

using tensorflow::GraphDef;
using tensorflow::MetaGraphDef;
using tensorflow::NodeDef;

bool IsVariable(const std::string& op) {
  return op == "VarHandleOp" || op == "VariableV2" || op == "Variable";
}
bool IsInput(const std::string& op) {
  return op == "Placeholder" || op == "PlaceholderV2" || op == "PlaceholderWithDefault";
}

DType TypeOf(int number) {
  const StatusOr<DType> dtype = DTypeFromNumber(number);
  return dtype.ok() ? *dtype : DType::kInvalid;
}

PartialShape ShapeOf(const tensorflow::TensorShapeProto& proto) {
  StatusOr<PartialShape> shape = PartialShapeFromProto(proto);
  return shape.ok() ? *shape : PartialShape();
}

// A variable or an input.
struct Typed {
  std::string name;
  DType dtype = DType::kInvalid;
  PartialShape shape;
};

Typed TypedNode(const NodeDef& node) {
  Typed typed{.name = node.name()};
  const auto dtype = node.attr().find("dtype");
  const auto shape = node.attr().find("shape");
  if (dtype != node.attr().end()) typed.dtype = TypeOf(dtype->second.type());
  if (shape != node.attr().end()) typed.shape = ShapeOf(shape->second.shape());
  return typed;
}

void AddTyped(const char* title, const char* key, const std::vector<Typed>& list, std::string* text,
              Json* json) {
  Json items = Json::MakeArray();
  if (!list.empty()) absl::StrAppend(text, "  ", title, ":\n");
  for (const Typed& typed : list) {
    absl::StrAppendFormat(text, "    %-48s %s\n", typed.name, TypeText(typed.dtype, typed.shape));
    Json item = Json::MakeObject();
    item.Set("name", typed.name);
    item.Set("dtype", DTypeName(typed.dtype));
    item.Set("shape", ShapeJson(typed.shape));
    items.Append(std::move(item));
  }
  json->Set(key, std::move(items));
}

template <typename Map>
std::vector<Typed> TypedInfos(const Map& infos) {
  std::vector<Typed> list;
  for (const auto& [key, info] : infos) {
    list.push_back({absl::StrCat(key, " = ", info.name()), TypeOf(info.dtype()),
                    ShapeOf(info.tensor_shape())});
  }
  std::sort(list.begin(), list.end(),
            [](const Typed& a, const Typed& b) { return a.name < b.name; });
  return list;
}

void AddSignatures(const MetaGraphDef& meta, std::string* text, Json* json) {
  Json signatures = Json::MakeObject();
  const std::map<std::string, tensorflow::SignatureDef> sorted(meta.signature_def().begin(),
                                                               meta.signature_def().end());
  for (const auto& [key, signature] : sorted) {
    Json item = Json::MakeObject();
    item.Set("method", signature.method_name());
    absl::StrAppend(text, "  Signature ", key, ":\n");
    std::string lines;
    AddTyped("takes", "inputs", TypedInfos(signature.inputs()), &lines, &item);
    AddTyped("gives", "outputs", TypedInfos(signature.outputs()), &lines, &item);
    *text += lines;
    signatures.Set(key, std::move(item));
  }
  if (!sorted.empty()) json->Set("signatures", std::move(signatures));
}

void AddOps(const GraphDef& graph, std::string* text, Json* json) {
  std::map<std::string, int64_t> by_op;
  for (const NodeDef& node : graph.node()) ++by_op[node.op()];
  std::vector<std::pair<int64_t, std::string>> counts;
  for (const auto& [op, count] : by_op) counts.emplace_back(-count, op);
  std::sort(counts.begin(), counts.end());
  Json ops = Json::MakeObject();
  std::vector<std::string> words;
  for (const auto& [count, op] : counts) {
    ops.Set(op, -count);
    words.push_back(absl::StrCat(-count, " ", op));
  }
  if (!words.empty()) absl::StrAppend(text, "  Nodes by op: ", absl::StrJoin(words, ", "), "\n");
  json->Set("ops", std::move(ops));
}

// Nodes that nothing reads: where a graph ends.
std::vector<std::string> Ends(const GraphDef& graph) {
  std::set<std::string> read;
  for (const NodeDef& node : graph.node()) {
    for (const std::string& input : node.input()) {
      const size_t start = !input.empty() && input[0] == '^' ? 1 : 0;
      read.insert(input.substr(
          start, input.find(':') == std::string::npos ? input.npos : input.find(':') - start));
    }
  }
  std::vector<std::string> ends;
  for (const NodeDef& node : graph.node()) {
    if (!read.contains(node.name())) ends.push_back(node.name());
  }
  return ends;
}

void AddGraph(const MetaGraphDef& meta, std::string* text, Json* json) {
  const GraphDef& graph = meta.graph_def();
  std::vector<Typed> variables;
  std::vector<Typed> inputs;
  std::set<std::string> devices;
  for (const NodeDef& node : graph.node()) {
    if (IsVariable(node.op())) variables.push_back(TypedNode(node));
    if (IsInput(node.op())) inputs.push_back(TypedNode(node));
    if (!node.device().empty()) devices.insert(node.device());
  }
  AddTyped("Variables", "variables", variables, text, json);
  AddTyped("Inputs", "inputs", inputs, text, json);
  const std::vector<std::string> ends = Ends(graph);
  constexpr size_t kShown = 20;
  const std::vector<std::string> first(
      ends.begin(), ends.begin() + static_cast<int64_t>(std::min(ends.size(), kShown)));
  if (!ends.empty()) {
    absl::StrAppend(
        text, "  Read by no other node: ", absl::StrJoin(first, ", "),
        ends.size() > kShown ? absl::StrCat(" and ", ends.size() - kShown, " more") : "", "\n");
  }
  if (!devices.empty()) absl::StrAppend(text, "  Devices: ", absl::StrJoin(devices, ", "), "\n");
  AddSignatures(meta, text, json);
  AddOps(graph, text, json);
  Json names = Json::MakeArray();
  for (const std::string& name : ends) names.Append(name);
  json->Set("ends", std::move(names));
  Json places = Json::MakeArray();
  for (const std::string& device : devices) places.Append(device);
  json->Set("devices", std::move(places));
  Json functions = Json::MakeArray();
  for (const auto& function : graph.library().function())
    functions.Append(function.signature().name());
  json->Set("functions", std::move(functions));
}

StatusOr<Description> DescribeConstant(const GraphFile& file, const DescribeOptions& options) {
  for (const MetaGraphDef& meta : file.graphs) {
    for (const NodeDef& node : meta.graph_def().node()) {
      if (node.name() != options.tensor) continue;
      const auto value = node.attr().find("value");
      if (value == node.attr().end() || !value->second.has_tensor()) {
        return InvalidArgument("Node '", node.name(), "' of ", file.path, " is a ", node.op(),
                               ": only constants have values");
      }
      WEFT_ASSIGN_OR_RETURN(const Tensor tensor, TensorFromProto(value->second.tensor()));
      return DescribeValues(node.name(), tensor, options.max_values);
    }
  }
  return NotFound("Graph ", file.path, " has no node '", options.tensor, "'");
}

}  // namespace

StatusOr<Description> DescribeGraph(const GraphFile& file, const DescribeOptions& options) {
  if (!options.tensor.empty()) return DescribeConstant(file, options);
  Description description;
  Json graphs = Json::MakeArray();
  for (const MetaGraphDef& meta : file.graphs) {
    const auto& tags = meta.meta_info_def().tags();
    const GraphDef& graph = meta.graph_def();
    absl::StrAppend(&description.text, file.path, ": ", file.form,
                    tags.empty() ? "" : absl::StrCat(" for ", absl::StrJoin(tags, ", ")), ", ",
                    graph.node_size(), " nodes, ", graph.library().function_size(),
                    " functions, producer version ", graph.versions().producer(), "\n");
    Json json = Json::MakeObject();
    json.Set("nodes", graph.node_size());
    json.Set("producer", graph.versions().producer());
    Json tag_list = Json::MakeArray();
    for (const std::string& tag : tags) tag_list.Append(tag);
    json.Set("tags", std::move(tag_list));
    AddGraph(meta, &description.text, &json);
    graphs.Append(std::move(json));
  }
  description.json = Json::MakeObject();
  description.json.Set("kind", "graph");
  description.json.Set("path", file.path);
  description.json.Set("form", file.form);
  description.json.Set("graphs", std::move(graphs));
  return description;
}

}  // namespace weft::inspect
