// SPDX-License-Identifier: Apache-2.0
#include "weft/train/meta_graph.h"

#include <algorithm>
#include <utility>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>

#include "proto/tensorflow/collections.pb.h"
#include "proto/tensorflow/saved_model.pb.h"
#include "weft/graph/graph_proto.h"
#include "weft/graph/import.h"
#include "weft/tensor/shape_proto.h"
#include "weft/tensor/tensor_proto.h"

namespace weft::train {
namespace {

using tensorflow::MetaGraphDef;

constexpr const char* kVariables = "variables";
constexpr const char* kTrainable = "trainable_variables";
constexpr const char* kLocal = "local_variables";
constexpr const char* kGlobalStep = "global_step";

template <typename Message>
Status Parse(absl::string_view bytes, const char* what, Message* message) {
  google::protobuf::LogSilencer silence;
  if (bytes.size() <= INT32_MAX &&
      message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::OkStatus();
  }
  return InvalidArgument("These ", bytes.size(), " bytes are not a ", what);
}

// With maps in the order of their keys.
StatusOr<std::string> Serialize(const google::protobuf::Message& message, const char* what) {
  if (message.ByteSizeLong() > INT32_MAX) {
    return InvalidArgument("A ", what, " of ", message.ByteSizeLong(),
                           " bytes is more than protobuf carries (2 GB)");
  }
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  if (!message.SerializeToCodedStream(&coded)) return Internal("A ", what, " was not written");
  coded.Trim();
  return bytes;
}

// The strings of a collection.
template <typename List>
std::vector<std::string> ValuesOf(const List& list) {
  std::vector<std::string> values;
  for (int i = 0; i < list.value_size(); ++i) values.push_back(list.value(i));
  return values;
}

StatusOr<SignatureTensor> TensorInfoFromProto(const tensorflow::TensorInfo& proto) {
  SignatureTensor tensor;
  tensor.dtype = static_cast<DType>(proto.dtype());
  if (proto.has_tensor_shape()) {
    WEFT_ASSIGN_OR_RETURN(tensor.shape, PartialShapeFromProto(proto.tensor_shape()));
  }
  if (proto.encoding_case() == tensorflow::TensorInfo::kCooSparse) {
    tensor.name = proto.coo_sparse().values_tensor_name();
    tensor.indices = proto.coo_sparse().indices_tensor_name();
    tensor.dense_shape = proto.coo_sparse().dense_shape_tensor_name();
  } else if (proto.encoding_case() == tensorflow::TensorInfo::kCompositeTensor) {
    tensor.serialized = proto.SerializeAsString();
  } else {
    tensor.name = proto.name();
  }
  return tensor;
}

Status TensorInfoToProto(const SignatureTensor& tensor, tensorflow::TensorInfo* proto) {
  if (!tensor.serialized.empty()) return Parse(tensor.serialized, "TensorInfo", proto);
  proto->set_dtype(static_cast<tensorflow::DataType>(tensor.dtype));
  ShapeToProto(tensor.shape, proto->mutable_tensor_shape());
  if (tensor.indices.empty()) {
    proto->set_name(tensor.name);
    return absl::OkStatus();
  }
  proto->mutable_coo_sparse()->set_values_tensor_name(tensor.name);
  proto->mutable_coo_sparse()->set_indices_tensor_name(tensor.indices);
  proto->mutable_coo_sparse()->set_dense_shape_tensor_name(tensor.dense_shape);
  return absl::OkStatus();
}

StatusOr<Signature> SignatureFromProto(const tensorflow::SignatureDef& proto) {
  Signature signature;
  signature.method = proto.method_name();
  for (const auto& [name, info] : proto.inputs()) {
    WEFT_ASSIGN_OR_RETURN(signature.inputs[name], TensorInfoFromProto(info));
  }
  for (const auto& [name, info] : proto.outputs()) {
    WEFT_ASSIGN_OR_RETURN(signature.outputs[name], TensorInfoFromProto(info));
  }
  for (const auto& [name, value] : proto.defaults()) {
    WEFT_ASSIGN_OR_RETURN(signature.defaults[name], TensorFromProto(value));
  }
  return signature;
}

Status SignatureToProto(const Signature& signature, tensorflow::SignatureDef* proto) {
  proto->set_method_name(signature.method);
  for (const auto& [name, tensor] : signature.inputs) {
    WEFT_RETURN_IF_ERROR(TensorInfoToProto(tensor, &(*proto->mutable_inputs())[name]));
  }
  for (const auto& [name, tensor] : signature.outputs) {
    WEFT_RETURN_IF_ERROR(TensorInfoToProto(tensor, &(*proto->mutable_outputs())[name]));
  }
  for (const auto& [name, value] : signature.defaults) {
    WEFT_RETURN_IF_ERROR(TensorToProto(value, &(*proto->mutable_defaults())[name]));
  }
  return absl::OkStatus();
}

// Reads collection `key`, which names variables: those that are new are added, others only marked.
Status ReadVariables(const MetaGraphDef& proto, const char* key, MetaGraph* meta) {
  const auto found = proto.collection_def().find(key);
  if (found == proto.collection_def().end()) return absl::OkStatus();
  for (const std::string& bytes : ValuesOf(found->second.bytes_list())) {
    tensorflow::VariableDef def;
    WEFT_RETURN_IF_ERROR(Parse(bytes, "VariableDef", &def));
    auto variable = std::find_if(
        meta->variables.begin(), meta->variables.end(),
        [&def](const VariableNames& other) { return other.variable == def.variable_name(); });
    if (variable == meta->variables.end()) {
      VariableNames names{.variable = def.variable_name(),
                          .initializer = def.initializer_name(),
                          .value = def.snapshot_name(),
                          .initial_value = def.initial_value_name(),
                          .is_resource = def.is_resource(),
                          .is_trainable = false};
      const tensorflow::SaveSliceInfoDef& slice = def.save_slice_info_def();
      names.whole_name = slice.full_name();
      names.whole_shape.assign(slice.full_shape().begin(), slice.full_shape().end());
      names.begin.assign(slice.var_offset().begin(), slice.var_offset().end());
      names.size.assign(slice.var_shape().begin(), slice.var_shape().end());
      variable = meta->variables.insert(meta->variables.end(), std::move(names));
    }
    variable->is_trainable |= absl::string_view(key) == kTrainable;
    variable->is_local |= absl::string_view(key) == kLocal;
  }
  return absl::OkStatus();
}

tensorflow::VariableDef VariableToProto(const VariableNames& names) {
  tensorflow::VariableDef def;
  def.set_variable_name(names.variable);
  def.set_initializer_name(names.initializer);
  def.set_snapshot_name(names.value);
  def.set_initial_value_name(names.initial_value);
  def.set_is_resource(names.is_resource);
  def.set_trainable(names.is_trainable);
  if (!names.whole_name.empty()) {
    tensorflow::SaveSliceInfoDef* slice = def.mutable_save_slice_info_def();
    slice->set_full_name(names.whole_name);
    for (const int64_t size : names.whole_shape) slice->add_full_shape(size);
    for (const int64_t begin : names.begin) slice->add_var_offset(begin);
    for (const int64_t size : names.size) slice->add_var_shape(size);
  }
  return def;
}

void WriteVariables(const MetaGraph& meta, MetaGraphDef* proto) {
  auto& collections = *proto->mutable_collection_def();
  for (const char* key : {kVariables, kTrainable, kLocal}) collections.erase(key);
  const bool knows_step = collections.contains(kGlobalStep);  // whatever its name is
  const auto add = [&collections](const char* key, const std::string& bytes) {
    collections[key].mutable_bytes_list()->add_value(bytes);
  };
  for (const VariableNames& names : meta.variables) {
    if (names.initializer.empty()) continue;  // TensorFlow takes none without
    const std::string bytes = VariableToProto(names).SerializeAsString();
    add(names.is_local ? kLocal : kVariables, bytes);
    if (names.is_trainable) add(kTrainable, bytes);
    if (!knows_step && names.variable == "global_step:0") add(kGlobalStep, bytes);
  }
}

StatusOr<MetaGraph> FromProto(MetaGraphDef proto) {
  MetaGraph meta;
  WEFT_ASSIGN_OR_RETURN(meta.graph, GraphDefFromProto(proto.graph_def()));
  const MetaGraphDef::MetaInfoDef& info = proto.meta_info_def();
  meta.tags.assign(info.tags().begin(), info.tags().end());
  meta.tensorflow_version = info.tensorflow_version();
  for (const auto& [name, signature] : proto.signature_def()) {
    StatusOr<Signature> read = SignatureFromProto(signature);
    if (!read.ok()) return Annotate(read.status(), absl::StrCat("Signature '", name, "'"));
    meta.signatures[name] = *std::move(read);
  }
  for (const char* key : {kVariables, kLocal, kTrainable}) {
    WEFT_RETURN_IF_ERROR(ReadVariables(proto, key, &meta));
  }
  for (const auto& [key, collection] : proto.collection_def()) {
    if (!collection.has_node_list()) continue;
    meta.collections[key] = ValuesOf(collection.node_list());
  }
  for (const tensorflow::AssetFileDef& asset : proto.asset_file_def()) {
    meta.assets.push_back({asset.tensor_info().name(), asset.filename()});
  }
  meta.saver = {.path = proto.saver_def().filename_tensor_name(),
                .save = proto.saver_def().save_tensor_name(),
                .restore = proto.saver_def().restore_op_name()};
  proto.clear_graph_def();
  proto.clear_signature_def();
  meta.rest = proto.SerializeAsString();
  return meta;
}

Status ToProto(const MetaGraph& meta, MetaGraphDef* proto) {
  if (!meta.rest.empty()) WEFT_RETURN_IF_ERROR(Parse(meta.rest, "MetaGraphDef", proto));
  WEFT_RETURN_IF_ERROR(GraphDefToProto(meta.graph, proto->mutable_graph_def()));
  MetaGraphDef::MetaInfoDef* info = proto->mutable_meta_info_def();
  info->clear_tags();
  for (const std::string& tag : meta.tags) info->add_tags(tag);
  info->set_tensorflow_version(meta.tensorflow_version);
  for (const auto& [name, signature] : meta.signatures) {
    WEFT_RETURN_IF_ERROR(SignatureToProto(signature, &(*proto->mutable_signature_def())[name]));
  }
  WriteVariables(meta, proto);
  for (const auto& [key, names] : meta.collections) {
    auto* list = (*proto->mutable_collection_def())[key].mutable_node_list();
    list->clear_value();
    for (const std::string& name : names) list->add_value(name);
  }
  proto->clear_asset_file_def();
  for (const AssetFile& asset : meta.assets) {
    tensorflow::AssetFileDef* file = proto->add_asset_file_def();
    file->mutable_tensor_info()->set_name(asset.tensor);
    file->set_filename(asset.file);
  }
  if (meta.saver.restore.empty()) return absl::OkStatus();
  tensorflow::SaverDef* saver = proto->mutable_saver_def();
  saver->set_filename_tensor_name(meta.saver.path);
  saver->set_save_tensor_name(meta.saver.save);
  saver->set_restore_op_name(meta.saver.restore);
  saver->set_version(tensorflow::SaverDef::V2);
  return absl::OkStatus();
}

}  // namespace

Signature MakeSignature(GraphBuilder& builder, const std::map<std::string, Endpoint>& inputs,
                        const std::map<std::string, Endpoint>& outputs) {
  Signature signature;
  const auto describe = [&builder](const std::map<std::string, Endpoint>& tensors,
                                   std::map<std::string, SignatureTensor>* out) {
    for (const auto& [name, tensor] : tensors) {
      if (!tensor) {
        builder.Fail(InvalidArgument("The tensor '", name, "' of a signature is empty"));
        continue;
      }
      (*out)[name] = {.name = NameOf(tensor),
                      .dtype = tensor.node->output_type(tensor.port).dtype,
                      .shape = builder.ShapeOf(tensor)};
    }
  };
  describe(inputs, &signature.inputs);
  describe(outputs, &signature.outputs);
  return signature;
}

StatusOr<MetaGraph> ParseMetaGraph(absl::string_view bytes) {
  MetaGraphDef proto;
  WEFT_RETURN_IF_ERROR(Parse(bytes, "MetaGraphDef", &proto));
  return FromProto(std::move(proto));
}

StatusOr<std::vector<MetaGraph>> ParseSavedModel(absl::string_view bytes) {
  tensorflow::SavedModel proto;
  WEFT_RETURN_IF_ERROR(Parse(bytes, "SavedModel", &proto));
  std::vector<MetaGraph> graphs;
  for (MetaGraphDef& meta : *proto.mutable_meta_graphs()) {
    WEFT_ASSIGN_OR_RETURN(graphs.emplace_back(), FromProto(std::move(meta)));
  }
  return graphs;
}

StatusOr<std::string> SerializeMetaGraph(const MetaGraph& meta) {
  MetaGraphDef proto;
  WEFT_RETURN_IF_ERROR(ToProto(meta, &proto));
  return Serialize(proto, "MetaGraphDef");
}

StatusOr<std::string> SerializeSavedModel(const std::vector<MetaGraph>& graphs) {
  tensorflow::SavedModel proto;
  proto.set_saved_model_schema_version(1);
  for (const MetaGraph& meta : graphs) {
    WEFT_RETURN_IF_ERROR(ToProto(meta, proto.add_meta_graphs()));
  }
  return Serialize(proto, "SavedModel");
}

MetaGraph MetaGraphOf(Program& program, const Saver* saver) {
  MetaGraph meta;
  meta.graph = ExportGraph(program.graph());
  if (saver != nullptr) meta.saver = saver->names();
  for (const Variable& variable : program.variables()) {
    VariableNames names{
        .variable = NameOf(variable.handle),
        .initializer = variable.initializer != nullptr ? variable.initializer->name() : "",
        .value = NameOf(variable.value),
        .initial_value = NameOf(variable.initial_value),
        .is_trainable = variable.trainable,
        .is_local = variable.local};
    if (variable.IsPart()) {
      names.whole_name = variable.whole_name;
      names.whole_shape.assign(variable.whole_shape.dims().begin(),
                               variable.whole_shape.dims().end());
      names.begin.assign(names.whole_shape.size(), 0);
      names.begin[static_cast<size_t>(variable.part_axis)] = variable.part_begin;
      names.size.assign(variable.shape.dims().begin(), variable.shape.dims().end());
    }
    meta.variables.push_back(std::move(names));
  }
  return meta;
}

}  // namespace weft::train
