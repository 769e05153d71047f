// SPDX-License-Identifier: Apache-2.0
#include "weft/graph/graph_proto.h"

#include <limits>
#include <utility>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "proto/tensorflow/graph.pb.h"
#include "weft/graph/attr_proto.h"

namespace weft {
namespace {

ArgSchema ArgFromProto(const tensorflow::OpDef::ArgDef& proto, DType dtype) {
  ArgSchema arg;
  arg.name = proto.name();
  arg.dtype = dtype;
  arg.type_attr = proto.type_attr();
  arg.number_attr = proto.number_attr();
  arg.type_list_attr = proto.type_list_attr();
  arg.is_ref = proto.is_ref() || proto.type() > kRefOffset;
  return arg;
}

Status ArgsFromProto(const google::protobuf::RepeatedPtrField<tensorflow::OpDef::ArgDef>& protos,
                     std::vector<ArgSchema>* args) {
  for (const auto& proto : protos) {
    DType dtype = DType::kInvalid;
    if (proto.type() != 0) {
      const int number = proto.type() > kRefOffset ? proto.type() - kRefOffset : proto.type();
      StatusOr<DType> known = DTypeFromNumber(number);
      if (!known.ok()) {
        return Annotate(known.status(), absl::StrCat("Argument '", proto.name(), "'"));
      }
      dtype = *known;
    }
    args->push_back(ArgFromProto(proto, dtype));
  }
  return absl::OkStatus();
}

void ArgsToProto(const std::vector<ArgSchema>& args,
                 google::protobuf::RepeatedPtrField<tensorflow::OpDef::ArgDef>* protos) {
  for (const ArgSchema& arg : args) {
    tensorflow::OpDef::ArgDef* proto = protos->Add();
    proto->set_name(arg.name);
    proto->set_type(static_cast<tensorflow::DataType>(arg.dtype));
    proto->set_type_attr(arg.type_attr);
    proto->set_number_attr(arg.number_attr);
    proto->set_type_list_attr(arg.type_list_attr);
    proto->set_is_ref(arg.is_ref);
  }
}

StatusOr<AttrSchema> AttrSchemaFromProto(const tensorflow::OpDef::AttrDef& proto,
                                         AttrReader& reader) {
  AttrSchema attr;
  attr.name = proto.name();
  attr.kind = proto.type();
  if (proto.has_default_value()) {
    WEFT_ASSIGN_OR_RETURN(attr.default_value, reader.Read(proto.default_value()));
  }
  if (proto.has_minimum()) attr.minimum = proto.minimum();
  for (int number : proto.allowed_values().list().type()) {
    WEFT_ASSIGN_OR_RETURN(const DType dtype, DTypeFromNumber(number));
    attr.allowed_types.push_back(dtype);
  }
  for (const std::string& text : proto.allowed_values().list().s()) {
    attr.allowed_strings.push_back(text);
  }
  return attr;
}

StatusOr<OpSchema> ReadOpSchema(const tensorflow::OpDef& proto, AttrReader& reader) {
  OpSchema schema;
  schema.name = proto.name();
  WEFT_RETURN_IF_ERROR(ArgsFromProto(proto.input_arg(), &schema.inputs));
  WEFT_RETURN_IF_ERROR(ArgsFromProto(proto.output_arg(), &schema.outputs));
  for (const auto& attr : proto.attr()) {
    StatusOr<AttrSchema> read = AttrSchemaFromProto(attr, reader);
    if (!read.ok()) {
      return Annotate(read.status(), absl::StrCat("Attribute '", attr.name(), "'"));
    }
    schema.attrs.push_back(*std::move(read));
  }
  schema.control_outputs.assign(proto.control_output().begin(), proto.control_output().end());
  schema.is_stateful = proto.is_stateful();
  schema.is_commutative = proto.is_commutative();
  schema.is_aggregate = proto.is_aggregate();
  schema.allows_uninitialized_input = proto.allows_uninitialized_input();
  schema.is_distributed_communication = proto.is_distributed_communication();
  schema.deprecated_since = proto.deprecation().version();
  schema.deprecation = proto.deprecation().explanation();
  return schema;
}

StatusOr<NodeDef> ReadNode(const tensorflow::NodeDef& proto, AttrReader& reader) {
  NodeDef node;
  node.name = proto.name();
  node.op = proto.op();
  node.device = proto.device();
  node.inputs.assign(proto.input().begin(), proto.input().end());
  Status attrs = reader.ReadMap(proto.attr(), &node.attrs);
  if (!attrs.ok()) return Annotate(attrs, absl::StrCat("Node '", node.name, "'"));
  return node;
}

StatusOr<FunctionDef> ReadFunction(const tensorflow::FunctionDef& proto, AttrReader& reader) {
  FunctionDef function;
  const auto where = [&](const Status& status) {
    return Annotate(status, absl::StrCat("Function '", proto.signature().name(), "'"));
  };
  StatusOr<OpSchema> signature = ReadOpSchema(proto.signature(), reader);
  if (!signature.ok()) return where(signature.status());
  function.signature = *std::move(signature);
  for (const auto& node : proto.node_def()) {
    StatusOr<NodeDef> read = ReadNode(node, reader);
    if (!read.ok()) return where(read.status());
    function.nodes.push_back(*std::move(read));
  }
  for (const auto& [name, tensor] : proto.ret()) function.returns[name] = tensor;
  for (const auto& [name, node] : proto.control_ret()) function.control_returns[name] = node;
  if (Status s = reader.ReadMap(proto.attr(), &function.attrs); !s.ok()) return where(s);
  return function;
}

}  // namespace

StatusOr<GraphDef> GraphDefFromProto(const tensorflow::GraphDef& proto) {
  AttrReader reader;
  GraphDef def;
  def.nodes.reserve(static_cast<size_t>(proto.node_size()));
  for (const auto& node : proto.node()) {
    WEFT_ASSIGN_OR_RETURN(NodeDef read, ReadNode(node, reader));
    def.nodes.push_back(std::move(read));
  }
  for (const auto& function : proto.library().function()) {
    WEFT_ASSIGN_OR_RETURN(FunctionDef read, ReadFunction(function, reader));
    def.functions.push_back(std::move(read));
  }
  for (const auto& gradient : proto.library().gradient()) {
    def.gradient_functions[gradient.function_name()] = gradient.gradient_func();
  }
  def.versions.producer = proto.versions().producer();
  def.versions.min_consumer = proto.versions().min_consumer();
  def.versions.bad_consumers.assign(proto.versions().bad_consumers().begin(),
                                    proto.versions().bad_consumers().end());
  return def;
}

StatusOr<GraphDef> ParseGraphDef(absl::string_view bytes) {
  if (bytes.size() > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("A GraphDef has at most 2 GB, got bytes: ", bytes.size());
  }
  tensorflow::GraphDef proto;
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return InvalidArgument("Bytes are not a GraphDef, their number: ", bytes.size());
  }
  return GraphDefFromProto(proto);
}

StatusOr<NodeDef> NodeDefFromProto(const tensorflow::NodeDef& proto) {
  AttrReader reader;
  return ReadNode(proto, reader);
}

StatusOr<FunctionDef> FunctionDefFromProto(const tensorflow::FunctionDef& proto) {
  AttrReader reader;
  return ReadFunction(proto, reader);
}

StatusOr<OpSchema> OpSchemaFromProto(const tensorflow::OpDef& proto) {
  AttrReader reader;
  return ReadOpSchema(proto, reader);
}

StatusOr<std::string> SerializeGraphDef(const GraphDef& def) {
  tensorflow::GraphDef proto;
  WEFT_RETURN_IF_ERROR(GraphDefToProto(def, &proto));
  const size_t size = proto.ByteSizeLong();
  if (size > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    return InvalidArgument("The GraphDef is over 2 GB, which protobuf cannot carry; its bytes: ",
                           size);
  }
  std::string bytes;
  bytes.reserve(size);
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);  // maps in order of their keys
    proto.SerializeWithCachedSizes(&coded);
  }
  return bytes;
}

Status GraphDefToProto(const GraphDef& def, tensorflow::GraphDef* proto) {
  proto->Clear();
  for (const NodeDef& node : def.nodes) {
    WEFT_RETURN_IF_ERROR(NodeDefToProto(node, proto->add_node()));
  }
  for (const FunctionDef& function : def.functions) {
    WEFT_RETURN_IF_ERROR(FunctionDefToProto(function, proto->mutable_library()->add_function()));
  }
  for (const auto& [function, gradient] : def.gradient_functions) {
    tensorflow::GradientDef* added = proto->mutable_library()->add_gradient();
    added->set_function_name(function);
    added->set_gradient_func(gradient);
  }
  proto->mutable_versions()->set_producer(def.versions.producer);
  proto->mutable_versions()->set_min_consumer(def.versions.min_consumer);
  for (int version : def.versions.bad_consumers) {
    proto->mutable_versions()->add_bad_consumers(version);
  }
  return absl::OkStatus();
}

Status NodeDefToProto(const NodeDef& def, tensorflow::NodeDef* proto) {
  proto->Clear();
  proto->set_name(def.name);
  proto->set_op(def.op);
  proto->set_device(def.device);
  for (const std::string& input : def.inputs) proto->add_input(input);
  for (const auto& [name, value] : def.attrs) {
    Status written = AttrValueToProto(value, &(*proto->mutable_attr())[name]);
    if (!written.ok()) {
      return Annotate(written, absl::StrCat("Node '", def.name, "', attribute '", name, "'"));
    }
  }
  return absl::OkStatus();
}

Status FunctionDefToProto(const FunctionDef& def, tensorflow::FunctionDef* proto) {
  proto->Clear();
  WEFT_RETURN_IF_ERROR(OpSchemaToProto(def.signature, proto->mutable_signature()));
  for (const NodeDef& node : def.nodes) {
    WEFT_RETURN_IF_ERROR(NodeDefToProto(node, proto->add_node_def()));
  }
  for (const auto& [name, tensor] : def.returns) (*proto->mutable_ret())[name] = tensor;
  for (const auto& [name, node] : def.control_returns) (*proto->mutable_control_ret())[name] = node;
  for (const auto& [name, value] : def.attrs) {
    WEFT_RETURN_IF_ERROR(AttrValueToProto(value, &(*proto->mutable_attr())[name]));
  }
  return absl::OkStatus();
}

Status OpSchemaToProto(const OpSchema& schema, tensorflow::OpDef* proto) {
  proto->Clear();
  proto->set_name(schema.name);
  ArgsToProto(schema.inputs, proto->mutable_input_arg());
  ArgsToProto(schema.outputs, proto->mutable_output_arg());
  for (const AttrSchema& attr : schema.attrs) {
    tensorflow::OpDef::AttrDef* added = proto->add_attr();
    added->set_name(attr.name);
    added->set_type(attr.kind);
    if (attr.default_value) {
      WEFT_RETURN_IF_ERROR(AttrValueToProto(*attr.default_value, added->mutable_default_value()));
    }
    if (attr.minimum) {
      added->set_has_minimum(true);
      added->set_minimum(*attr.minimum);
    }
    for (DType dtype : attr.allowed_types) {
      added->mutable_allowed_values()->mutable_list()->add_type(
          static_cast<tensorflow::DataType>(dtype));
    }
    for (const std::string& text : attr.allowed_strings) {
      added->mutable_allowed_values()->mutable_list()->add_s(text);
    }
  }
  for (const std::string& name : schema.control_outputs) proto->add_control_output(name);
  proto->set_is_stateful(schema.is_stateful);
  proto->set_is_commutative(schema.is_commutative);
  proto->set_is_aggregate(schema.is_aggregate);
  proto->set_allows_uninitialized_input(schema.allows_uninitialized_input);
  proto->set_is_distributed_communication(schema.is_distributed_communication);
  if (schema.deprecated_since > 0) {
    proto->mutable_deprecation()->set_version(schema.deprecated_since);
    proto->mutable_deprecation()->set_explanation(schema.deprecation);
  }
  return absl::OkStatus();
}

}  // namespace weft
