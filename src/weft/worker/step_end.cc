// SPDX-License-Identifier: Apache-2.0
#include "weft/worker/step_end.h"

#include <utility>

#include "proto/weft/cluster.pb.h"
#include "weft/graph/graph_proto.h"

namespace weft::worker {

std::string EncodeStepEnd(const step::PartReport& report) {
  wire::StepEnd proto;
  proto.set_code(static_cast<int>(report.status.code()));
  proto.set_message(std::string(report.status.message()));
  report.status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    (*proto.mutable_payloads())[std::string(url)] = std::string(payload);
  });
  for (const executor::NodeTrace& node : report.metadata.trace) {
    wire::StepEnd::Node* out = proto.add_trace();
    out->set_name(node.node);
    out->set_op(node.op);
    out->set_device(node.device);
    out->set_start_us(node.start_us);
    out->set_end_us(node.end_us);
    out->set_thread(node.thread);
    for (const std::string& input : node.inputs) out->add_input(input);
    for (const executor::OutputTrace& output : node.outputs) {
      wire::StepEnd::Output* traced = out->add_output();
      traced->set_dtype(static_cast<int>(output.dtype));
      for (int64_t dim : output.dims) traced->add_dim(dim);
      traced->set_bytes(output.bytes);
    }
  }
  for (const GraphDef& graph : report.metadata.partition_graphs) {
    // A graph that cannot travel is left out: it is only shown to people.
    StatusOr<std::string> bytes = SerializeGraphDef(graph);
    if (bytes.ok()) proto.add_partition_graphs(*std::move(bytes));
  }
  return proto.SerializeAsString();
}

StatusOr<step::PartReport> ParseStepEnd(absl::string_view bytes) {
  wire::StepEnd proto;
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Internal("The end of a step is malformed");
  }
  step::PartReport report;
  if (proto.code() != 0) {
    report.status = Status(static_cast<absl::StatusCode>(proto.code()), proto.message());
    for (const auto& [url, payload] : proto.payloads()) {
      report.status.SetPayload(url, absl::Cord(payload));
    }
  }
  for (const wire::StepEnd::Node& node : proto.trace()) {
    report.metadata.trace.push_back({.node = node.name(),
                                     .op = node.op(),
                                     .device = node.device(),
                                     .start_us = node.start_us(),
                                     .end_us = node.end_us(),
                                     .thread = node.thread(),
                                     .inputs = {node.input().begin(), node.input().end()}});
    for (const wire::StepEnd::Output& output : node.output()) {
      report.metadata.trace.back().outputs.push_back(
          {.dtype = static_cast<DType>(output.dtype()),
           .dims = {output.dim().begin(), output.dim().end()},
           .bytes = output.bytes()});
    }
  }
  for (const std::string& graph : proto.partition_graphs()) {
    WEFT_ASSIGN_OR_RETURN(GraphDef parsed, ParseGraphDef(graph));
    report.metadata.partition_graphs.push_back(std::move(parsed));
  }
  return report;
}

}  // namespace weft::worker
