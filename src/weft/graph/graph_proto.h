// SPDX-License-Identifier: Apache-2.0
// GraphDef, NodeDef, FunctionDef, OpSchema and AttrValue <-> their protos. Reading checks what a
// message says by itself (shapes, tensors, element types); import.h checks the graph. Thread-safe.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

#include "base/status.h"
#include "weft/graph/node_def.h"

namespace tensorflow {
class AttrValue;
class FunctionDef;
class GraphDef;
class NodeDef;
class OpDef;
}  // namespace tensorflow

namespace weft {

// From the wire. InvalidArgument names the node or function and the attribute. Attributes of kinds
// this version does not know become OpaqueAttr. Constants that repeat one value may grow to 4 GiB
// together.
StatusOr<GraphDef> ParseGraphDef(absl::string_view bytes);
StatusOr<GraphDef> GraphDefFromProto(const tensorflow::GraphDef& proto);
StatusOr<NodeDef> NodeDefFromProto(const tensorflow::NodeDef& proto);
StatusOr<FunctionDef> FunctionDefFromProto(const tensorflow::FunctionDef& proto);
StatusOr<OpSchema> OpSchemaFromProto(const tensorflow::OpDef& proto);
StatusOr<AttrValue> AttrValueFromProto(const tensorflow::AttrValue& proto);

// To the wire; `proto` is replaced. Equal graphs give equal bytes. Unimplemented for a constant
// that cannot leave the process, InvalidArgument for one that protobuf cannot carry (2 GB).
StatusOr<std::string> SerializeGraphDef(const GraphDef& def);
Status GraphDefToProto(const GraphDef& def, tensorflow::GraphDef* proto);
Status NodeDefToProto(const NodeDef& def, tensorflow::NodeDef* proto);
Status FunctionDefToProto(const FunctionDef& def, tensorflow::FunctionDef* proto);
Status OpSchemaToProto(const OpSchema& schema, tensorflow::OpDef* proto);
Status AttrValueToProto(const AttrValue& value, tensorflow::AttrValue* proto);

}  // namespace weft
