// SPDX-License-Identifier: Apache-2.0
#include "weft/session/step_engine.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_join.h"

#include "weft/compile/late_reads.h"
#include "weft/compile/place.h"
#include "weft/graph/import.h"

namespace weft::session {

// A signature as first seen, its plan and the order in which its arguments come.
struct StepEngine::Executable {
  compile::Signature signature;
  std::map<std::string, int, std::less<>> feed_index;
  std::vector<PartialShape> feed_shapes;  // what placeholders demand
  std::unique_ptr<compile::Plan> plan;
  std::unique_ptr<executor::PlanRunner> runner;
  GraphDef partition;  // for RunOptions.partition_graphs
};

namespace {

std::atomic<int64_t> next_step_id{1};

// The key of a call without building a sorted copy when the names come in the same order as before.
std::string CallKey(const StepCall& call) {
  std::string key;
  for (const Feed& feed : call.feeds) absl::StrAppend(&key, feed.first, ",");
  absl::StrAppend(&key, "|", absl::StrJoin(call.fetches, ","), "|",
                  absl::StrJoin(call.targets, ","));
  return key;
}

compile::Signature SignatureOf(const StepCall& call) {
  compile::Signature signature;
  for (const Feed& feed : call.feeds) signature.feeds.push_back(feed.first);
  signature.fetches = call.fetches;
  signature.targets = call.targets;
  return signature;
}

}  // namespace

StepEngine::StepEngine(EngineOptions options)
    : options_(std::move(options)), graph_(&options_.catalogue->ops()) {}

StepEngine::~StepEngine() = default;

Status StepEngine::Extend(const GraphDef& graph) {
  absl::MutexLock lock(&mutex_);
  WEFT_RETURN_IF_ERROR(ImportGraph(graph, ImportOptions(), &graph_));
  executables_.clear();
  return absl::OkStatus();
}

Status StepEngine::Place(Graph* step) const {
  compile::PlaceOptions place{.kernels = &options_.catalogue->kernels(),
                              .soft = options_.soft_placement};
  for (const Device* device : options_.devices) {
    WEFT_ASSIGN_OR_RETURN(DeviceName name, DeviceName::Parse(device->name()));
    place.devices.push_back(std::move(name));
  }
  place.default_device = place.devices.front();
  WEFT_RETURN_IF_ERROR(compile::PlaceGraph(place, step));
  // The devices of one process share memory and threads: a step runs as one plan on the first.
  for (Node* node : step->nodes()) node->set_assigned_device(options_.devices.front()->name());
  return compile::ReadAfterUpdates(step);
}

StatusOr<std::shared_ptr<StepEngine::Executable>> StepEngine::Compile(
    const compile::Signature& signature) {
  auto executable = std::make_shared<Executable>();
  executable->signature = signature;
  for (size_t i = 0; i < signature.feeds.size(); ++i) {
    executable->feed_index.emplace(signature.feeds[i], static_cast<int>(i));
    WEFT_ASSIGN_OR_RETURN(Endpoint fed, graph_.FindEndpoint(signature.feeds[i]));
    PartialShape shape;
    if (fed.node->op() == "Placeholder" || fed.node->op() == "PlaceholderV2") {
      shape = FindAttrOr<PartialShape>(fed.node->attrs(), "shape", PartialShape());
    }
    // Before version 24 a Placeholder without sizes meant "any shape".
    if (graph_.versions().producer < 24 && shape.rank() == 0) shape = PartialShape();
    executable->feed_shapes.push_back(std::move(shape));
  }
  WEFT_ASSIGN_OR_RETURN(Graph step, compile::CutStepGraph(graph_, signature));
  WEFT_RETURN_IF_ERROR(Place(&step));
  executable->partition = ExportGraph(step, {.assigned_devices = true});
  const compile::PlanOptions plan_options{.kernels = &options_.catalogue->kernels(),
                                          .device = options_.devices.front(),
                                          .cache = &kernels_,
                                          .fold = options_.fold,
                                          .fuse = options_.fuse};
  WEFT_ASSIGN_OR_RETURN(executable->plan, compile::Plan::Compile(std::move(step), plan_options));
  executable->runner =
      std::make_unique<executor::PlanRunner>(executable->plan.get(), options_.pool);
  return executable;
}

StatusOr<std::shared_ptr<StepEngine::Executable>> StepEngine::Prepare(const StepCall& call) {
  const std::string key = CallKey(call);
  absl::MutexLock lock(&mutex_);
  const auto known = executables_.find(key);
  if (known != executables_.end()) return known->second;
  WEFT_ASSIGN_OR_RETURN(std::shared_ptr<Executable> executable, Compile(SignatureOf(call)));
  executables_.emplace(key, executable);
  return executable;
}

Status StepEngine::CheckFeeds(const Executable& executable, const StepCall& call) const {
  for (size_t i = 0; i < call.feeds.size(); ++i) {
    const auto& [name, value] = call.feeds[i];
    if (!value.IsInitialized()) {
      return InvalidArgument("Tensor ", name,
                             " is fed a tensor that is not initialized: was it made of as many "
                             "values as its shape has elements?");
    }
    const PartialShape& shape = executable.feed_shapes[i];
    if (!shape.IsCompatibleWith(value.shape())) {
      return InvalidArgument("Cannot feed value of shape ", value.shape().ToString(),
                             " for Tensor '", name, "', which has shape ", shape.ToString());
    }
  }
  return absl::OkStatus();
}

void StepEngine::Run(StepCall call, Done done) {
  StatusOr<std::shared_ptr<Executable>> prepared = Prepare(call);
  if (!prepared.ok()) {
    done(prepared.status());
    return;
  }
  std::shared_ptr<Executable> executable = *std::move(prepared);
  if (Status s = CheckFeeds(*executable, call); !s.ok()) {
    done(s);
    return;
  }
  // Dies with the step; kept by the callback.
  auto step_resources = std::make_unique<ResourceManager>();
  executor::RunRequest request;
  request.environment = {.step_id = next_step_id.fetch_add(1, std::memory_order_relaxed),
                         .device = options_.devices.front(),
                         .cancellation = call.cancellation,
                         .step_resources = step_resources.get(),
                         .files = options_.files,
                         .container = &options_.container,
                         .deterministic = options_.deterministic,
                         .single_threaded = options_.single_threaded};
  request.trace = call.trace;
  for (Feed& feed : call.feeds) request.arguments.push_back(std::move(feed.second));
  if (call.partition_graphs != nullptr) call.partition_graphs->push_back(executable->partition);
  if (executable->plan->is_straight_line()) {
    std::vector<Tensor> results;
    const Status status = executable->runner->RunInline(request, &results);
    done(status.ok() ? StatusOr<std::vector<Tensor>>(std::move(results)) : status);
    return;
  }
  executor::PlanRunner& runner = *executable->runner;
  runner.Run(std::move(request),
             [executable, resources = std::move(step_resources), done = std::move(done)](
                 Status status, std::vector<Tensor> results) mutable {
               resources->CleanupAll();
               done(status.ok() ? StatusOr<std::vector<Tensor>>(std::move(results)) : status);
             });
}

}  // namespace weft::session
