// SPDX-License-Identifier: Apache-2.0
// Any bytes as a GraphDef: an error that leaves the graph as it was, or a graph that exports and
// imports again to the same bytes.
#include <cstdlib>

#include <google/protobuf/stubs/logging.h>

#include "weft/graph/graph_proto.h"
#include "weft/graph/import.h"

namespace {

weft::OpSchema Schema(const char* name, std::initializer_list<const char*> attrs,
                      std::initializer_list<const char*> inputs,
                      std::initializer_list<const char*> outputs) {
  weft::OpSchema schema;
  schema.name = name;
  for (const char* text : attrs) schema.attrs.push_back(*weft::ParseAttrSchema(text));
  for (const char* text : inputs) {
    schema.inputs.push_back(*weft::ParseArgSchema(text, schema.attrs));
  }
  for (const char* text : outputs) {
    schema.outputs.push_back(*weft::ParseArgSchema(text, schema.attrs));
  }
  return schema;
}

// Short names, so that random bytes hit them.
const weft::OpRegistry& Ops() {
  static const weft::OpRegistry* const ops = [] {
    auto* made = new weft::OpRegistry();
    for (weft::OpSchema schema :
         {Schema("C", {"value: tensor", "dtype: type"}, {}, {"output: dtype"}),
          Schema("N", {}, {}, {}), Schema("A", {"T: type"}, {"x: T"}, {"z: T"}),
          Schema("I", {}, {"x: int32"}, {"z: int32"}),
          Schema("Merge", {"T: type", "N: int >= 1"}, {"inputs: N * T"}, {"output: T"}),
          Schema("NextIteration", {"T: type"}, {"data: T"}, {"output: T"})}) {
      if (schema.name == "Merge") schema.traits.lowers_to = weft::InstructionKind::kMerge;
      if (schema.name == "NextIteration")
        schema.traits.lowers_to = weft::InstructionKind::kNextIteration;
      weft::OpDefinition definition;
      definition.schema = std::move(schema);
      if (!made->Add(std::move(definition)).ok()) abort();
    }
    return made;
  }();
  return *ops;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  google::protobuf::SetLogHandler(nullptr);  // it reports each string that is not UTF-8
  weft::StatusOr<weft::GraphDef> def =
      weft::ParseGraphDef({reinterpret_cast<const char*>(data), size});
  if (!def.ok()) return 0;
  weft::Graph graph(&Ops());
  if (!weft::ImportGraph(*std::move(def), {}, &graph).ok()) {
    if (graph.num_nodes() != 0 || !graph.functions().empty()) abort();
    return 0;
  }
  weft::StatusOr<std::string> bytes = weft::SerializeGraphDef(weft::ExportGraph(graph));
  if (!bytes.ok()) abort();
  weft::StatusOr<weft::GraphDef> again = weft::ParseGraphDef(*bytes);
  if (!again.ok()) abort();
  weft::Graph copy(&Ops());
  if (!weft::ImportGraph(*std::move(again), {}, &copy).ok()) abort();
  return 0;
}
