// SPDX-License-Identifier: Apache-2.0
#include "weft/graph/op_list.h"

#include "google/protobuf/util/json_util.h"

#include "proto/tensorflow/graph.pb.h"
#include "weft/graph/graph_proto.h"

namespace weft {

StatusOr<std::string> OpListJson(const OpRegistry& ops) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string json = "[";
  for (const OpDefinition* op : ops.All()) {
    tensorflow::OpDef proto;
    WEFT_RETURN_IF_ERROR(OpSchemaToProto(op->schema, &proto));
    std::string one;
    if (!google::protobuf::util::MessageToJsonString(proto, &one, options).ok()) {
      return Internal("Cannot write as JSON the op ", op->schema.name);
    }
    if (json.size() > 1) json += ",\n";
    json += one;
  }
  return json + "]\n";
}

}  // namespace weft
