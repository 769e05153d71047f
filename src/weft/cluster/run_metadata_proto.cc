// SPDX-License-Identifier: Apache-2.0
#include "weft/cluster/run_metadata_proto.h"

#include <map>

#include "proto/tensorflow/config.pb.h"
#include "weft/graph/graph_proto.h"

namespace weft::cluster {

StatusOr<std::string> SerializeRunMetadata(const session::RunMetadata& metadata) {
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
    stats->set_timeline_label(absl::StrCat(node.node, " = ", node.op, "()"));
    stats->set_thread_id(static_cast<uint32_t>(node.thread));
  }
  for (const GraphDef& graph : metadata.partition_graphs) {
    WEFT_RETURN_IF_ERROR(GraphDefToProto(graph, proto.add_partition_graphs()));
  }
  return proto.SerializeAsString();
}

Status ReadRunMetadata(const tensorflow::RunMetadata& proto, session::RunMetadata* metadata) {
  for (const auto& device : proto.step_stats().dev_stats()) {
    for (const auto& node : device.node_stats()) {
      // "name = Op()", as written above.
      const std::string& label = node.timeline_label();
      const size_t equals = label.find(" = ");
      const std::string op = equals == std::string::npos
                                 ? std::string()
                                 : label.substr(equals + 3, label.find('(', equals) - equals - 3);
      metadata->trace.push_back({.node = node.node_name(),
                                 .op = op,
                                 .device = device.device(),
                                 .start_us = node.all_start_micros(),
                                 .end_us = node.all_start_micros() + node.all_end_rel_micros(),
                                 .thread = node.thread_id()});
    }
  }
  for (const auto& graph : proto.partition_graphs()) {
    WEFT_ASSIGN_OR_RETURN(GraphDef parsed, GraphDefFromProto(graph));
    metadata->partition_graphs.push_back(std::move(parsed));
  }
  return absl::OkStatus();
}

}  // namespace weft::cluster
