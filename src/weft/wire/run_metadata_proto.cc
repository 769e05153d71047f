// SPDX-License-Identifier: Apache-2.0
#include "weft/wire/run_metadata_proto.h"

#include <map>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "proto/tensorflow/config.pb.h"
#include "weft/graph/graph_proto.h"

namespace weft::wire {
namespace {

void AddOutputs(const executor::NodeTrace& node, tensorflow::NodeExecStats* stats) {
  for (size_t slot = 0; slot < node.outputs.size(); ++slot) {
    const executor::OutputTrace& output = node.outputs[slot];
    if (output.dtype == DType::kInvalid) continue;
    tensorflow::NodeOutput* out = stats->add_output();
    out->set_slot(static_cast<int>(slot));
    tensorflow::TensorDescription* description = out->mutable_tensor_description();
    description->set_dtype(static_cast<tensorflow::DataType>(output.dtype));
    for (int64_t dim : output.dims) description->mutable_shape()->add_dim()->set_size(dim);
    description->mutable_allocation_description()->set_requested_bytes(output.bytes);
    description->mutable_allocation_description()->set_allocator_name("cpu");
  }
}

void ReadOutputs(const tensorflow::NodeExecStats& stats, executor::NodeTrace* node) {
  for (const tensorflow::NodeOutput& out : stats.output()) {
    const tensorflow::TensorDescription& description = out.tensor_description();
    executor::OutputTrace output{.dtype = static_cast<DType>(description.dtype()),
                                 .bytes = description.allocation_description().requested_bytes()};
    for (const auto& dim : description.shape().dim()) output.dims.push_back(dim.size());
    node->outputs.push_back(std::move(output));
  }
}

// "name = Op(input, input)", as written below.
void ReadLabel(const std::string& label, executor::NodeTrace* node) {
  const size_t equals = label.find(" = ");
  const size_t open = equals == std::string::npos ? equals : label.find('(', equals);
  if (open == std::string::npos) return;
  node->op = label.substr(equals + 3, open - equals - 3);
  const size_t close = label.rfind(')');
  if (close == std::string::npos || close <= open + 1) return;
  node->inputs = absl::StrSplit(label.substr(open + 1, close - open - 1), ", ");
}

}  // namespace

StatusOr<std::string> SerializeRunMetadata(const step::RunMetadata& metadata) {
  tensorflow::RunMetadata proto;
  std::map<std::string, tensorflow::DeviceStepStats*> devices;
  for (const executor::NodeTrace& node : metadata.trace) {
    tensorflow::DeviceStepStats*& device = devices[node.device];
    if (device == nullptr) {
      device = proto.mutable_step_stats()->add_dev_stats();
      device->set_device(node.device);
    }
    tensorflow::NodeExecStats* stats = device->add_node_stats();
    stats->set_node_name(node.node);
    stats->set_all_start_micros(node.start_us);
    stats->set_op_end_rel_micros(node.end_us - node.start_us);
    stats->set_all_end_rel_micros(node.end_us - node.start_us);
    // The form that TensorFlow's timeline takes apart.
    stats->set_timeline_label(
        absl::StrCat(node.node, " = ", node.op, "(", absl::StrJoin(node.inputs, ", "), ")"));
    stats->set_thread_id(static_cast<uint32_t>(node.thread));
    AddOutputs(node, stats);
  }
  for (const GraphDef& graph : metadata.partition_graphs) {
    WEFT_RETURN_IF_ERROR(GraphDefToProto(graph, proto.add_partition_graphs()));
  }
  return proto.SerializeAsString();
}

Status ReadRunMetadata(const tensorflow::RunMetadata& proto, step::RunMetadata* metadata) {
  for (const auto& device : proto.step_stats().dev_stats()) {
    for (const auto& node : device.node_stats()) {
      executor::NodeTrace traced{.node = node.node_name(),
                                 .device = device.device(),
                                 .start_us = node.all_start_micros(),
                                 .end_us = node.all_start_micros() + node.all_end_rel_micros(),
                                 .thread = node.thread_id()};
      ReadLabel(node.timeline_label(), &traced);
      ReadOutputs(node, &traced);
      metadata->trace.push_back(std::move(traced));
    }
  }
  for (const auto& graph : proto.partition_graphs()) {
    WEFT_ASSIGN_OR_RETURN(GraphDef parsed, GraphDefFromProto(graph));
    metadata->partition_graphs.push_back(std::move(parsed));
  }
  return absl::OkStatus();
}

}  // namespace weft::wire
