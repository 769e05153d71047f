// SPDX-License-Identifier: Apache-2.0
#include "weft/eager/component_functions.h"

#include "weft/compile/function_body.h"
#include "weft/graph/graph_proto.h"
#include "weft/worker/guessed_shapes.h"

namespace weft::eager {

ComponentFunctions::ComponentFunctions(worker::Worker* worker, rendezvous::TensorSource* source,
                                       std::string session)
    : worker_(worker), source_(source), session_(std::move(session)) {}

ComponentFunctions::~ComponentFunctions() {
  absl::MutexLock lock(&mutex_);
  for (const std::string& session : sessions_) worker_->DeleteSession(session).IgnoreError();
}

Status ComponentFunctions::Add(tensorflow::eager::RegisterFunctionOp function) {
  worker::DropGuessedShapes(function.mutable_function_def());
  WEFT_ASSIGN_OR_RETURN(FunctionDef def, FunctionDefFromProto(function.function_def()));
  Graph library(&worker_->options().catalogue->ops());
  for (tensorflow::FunctionDef& called : *function.mutable_library()->mutable_function()) {
    if (called.signature().name() == def.signature.name) continue;
    worker::DropGuessedShapes(&called);
    WEFT_ASSIGN_OR_RETURN(FunctionDef read, FunctionDefFromProto(called));
    WEFT_RETURN_IF_ERROR(library.AddFunction(std::move(read)));
  }
  library.versions().producer = kGraphVersion;
  const std::string name = def.signature.name;
  absl::MutexLock lock(&mutex_);
  const auto old = parts_.find(name);
  if (old != parts_.end()) {
    for (const auto& [device, graph] : old->second.graphs)
      worker_->DeregisterGraph(graph).IgnoreError();
    parts_.erase(old);
  }
  // Nodes of two functions may have one name, and in a session these would share their state.
  const std::string session = absl::StrCat(session_, "/", sessions_.size());
  // Refused only for devices of its own, which it asks for none of.
  WEFT_RETURN_IF_ERROR(worker_->CreateSession({.handle = session}));
  sessions_.push_back(session);
  parts_.emplace(name, Part{std::move(def), std::move(library), session, {}});
  return absl::OkStatus();
}

StatusOr<uint32_t> ComponentFunctions::GraphOf(const Call& call) {
  absl::MutexLock lock(&mutex_);
  const auto found = parts_.find(call.function);
  if (found == parts_.end())
    return NotFound("Component function '", call.function, "' is not registered here");
  Part& part = found->second;
  const auto known = part.graphs.find(call.device);
  if (known != part.graphs.end()) return known->second;
  WEFT_ASSIGN_OR_RETURN(Graph body,
                        compile::InstantiateFunction(part.function, call.attrs, part.library));
  for (Node* node : body.nodes()) {
    const std::string& asked = node->requested_device();
    node->set_assigned_device(asked.empty() || node->IsCallEnd() ? call.device : asked);
  }
  WEFT_ASSIGN_OR_RETURN(const uint32_t graph,
                        worker_->RegisterGraph(part.session, std::move(body), step::PartOptions()));
  part.graphs.emplace(call.device, graph);
  return graph;
}

void ComponentFunctions::Run(Call call, Done done) {
  const StatusOr<uint32_t> graph = GraphOf(call);
  if (!graph.ok()) return done(graph.status());
  worker::TaskStep step{.graph = *graph,
                        .step = call.step,
                        .arguments = std::move(call.arguments),
                        .source = source_,
                        .cancellation = std::move(call.cancellation)};
  worker_->RunStep(std::move(step), [done = std::move(done)](step::PartReport report) mutable {
    if (!report.status.ok()) return done(report.status);
    done(std::move(report.results));
  });
}

}  // namespace weft::eager
