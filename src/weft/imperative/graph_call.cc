// SPDX-License-Identifier: Apache-2.0
#include "weft/imperative/graph_call.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"

#include "weft/compile/place.h"
#include "weft/compile/prune.h"
#include "weft/gradients/gradients.h"
#include "weft/graph/builder.h"
#include "weft/imperative/runtime.h"
#include "weft/imperative/tape.h"
#include "weft/rendezvous/step_rendezvous.h"

namespace weft::imperative {
namespace {

std::string NameOf(const Endpoint& tensor) {
  return absl::StrCat(tensor.node->name(), ":", tensor.port);
}

// The same place in a clone.
Endpoint Twin(const Graph& graph, const Endpoint& original) {
  return {graph.Find(original.node->name()), original.port};
}

}  // namespace

StatusOr<std::shared_ptr<GraphCall>> GraphCall::Make(Runtime& runtime, TracedGraph traced) {
  std::shared_ptr<GraphCall> call(new GraphCall(std::move(traced)));  // shared with tapes
  const TracedGraph& made = call->traced_;
  call->num_outputs_ = made.outputs.size();
  compile::Signature signature;
  for (const Endpoint& input : made.inputs) signature.feeds.push_back(NameOf(input));
  for (const Endpoint& output : made.outputs) signature.fetches.push_back(NameOf(output));
  for (const Endpoint& value : made.stateful) signature.fetches.push_back(NameOf(value));
  if (made.last_effect != nullptr) signature.targets.push_back(made.last_effect->name());
  WEFT_ASSIGN_OR_RETURN(Graph step, compile::CutStepGraph(made.graph, signature));
  compile::PlaceOptions place{.kernels = &runtime.catalogue_.kernels(), .soft = true};
  for (const auto& device : runtime.devices_) {
    WEFT_ASSIGN_OR_RETURN(DeviceName name, DeviceName::Parse(device->name()));
    place.devices.push_back(std::move(name));
  }
  place.default_device = place.devices[runtime.device_];
  for (Node* node : step.nodes()) {
    if (node->IsCallEnd()) node->set_assigned_device(runtime.devices_[runtime.device_]->name());
  }
  WEFT_RETURN_IF_ERROR(compile::PlaceGraph(place, &step));
  WEFT_ASSIGN_OR_RETURN(
      call->part_, step::CompileTaskPart(std::move(step), step::PartOptions(), runtime.catalogue_,
                                         runtime.session_devices_, &runtime.pool_));
  return call;
}

StatusOr<std::vector<Tensor>> GraphCall::Compute(Runtime& runtime,
                                                 const std::vector<Array>& inputs) const {
  Cancellation cancellation(&runtime.cancellation_);
  step::PartCall call{.part = part_, .step = runtime.next_step_++, .cancellation = &cancellation};
  for (const Array& input : inputs) {
    if (!input.tensor().IsInitialized())
      return InvalidArgument("A function got an array without a value");
    call.arguments.push_back(input.tensor());
  }
  if (part_->exchanges) {
    call.rendezvous = MakeRef<rendezvous::StepRendezvous>(call.step, "/job:localhost/task:0",
                                                          nullptr, &runtime.waits_);
  }
  struct Outcome {
    absl::Notification ended;
    step::PartReport report;
  };
  const auto outcome = std::make_shared<Outcome>();  // outlives a callback still in Notify
  step::RunTaskPart(runtime.task_, std::move(call), [outcome](step::PartReport report) {
    outcome->report = std::move(report);
    outcome->ended.Notify();
  });
  outcome->ended.WaitForNotification();
  WEFT_RETURN_IF_ERROR(outcome->report.status);
  return std::move(outcome->report.results);
}

StatusOr<std::vector<Array>> GraphCall::Run(Runtime& runtime, std::vector<Array> inputs) const {
  if (runtime.tracing_ != nullptr)
    return Unimplemented("A function's gradient is not part of another function");
  WEFT_ASSIGN_OR_RETURN(std::vector<Tensor> results, Compute(runtime, inputs));
  std::vector<Array> outputs;
  for (Tensor& result : results) outputs.emplace_back(std::move(result));
  for (Tape* tape : runtime.tapes_) tape->RecordCall(shared_from_this(), inputs, outputs);
  outputs.resize(num_outputs_);
  return outputs;
}

StatusOr<GraphCall::Reverse> GraphCall::MakeReverse(Runtime& runtime,
                                                    const std::vector<bool>& has_gradient) const {
  TracedGraph made(traced_.graph.Clone());
  GraphBuilder b(&made.graph);
  Reverse reverse;
  for (const Endpoint& input : traced_.inputs) made.inputs.push_back(Twin(made.graph, input));
  const std::vector<Endpoint> xs_of_inputs = made.inputs;
  std::vector<Endpoint> ys, weights, xs = xs_of_inputs;
  for (size_t i = 0; i < traced_.outputs.size() + traced_.stateful.size(); ++i) {
    const bool is_own = i < traced_.outputs.size();
    const Endpoint value = Twin(
        made.graph, is_own ? traced_.outputs[i] : traced_.stateful[i - traced_.outputs.size()]);
    if (!has_gradient[i] || !gradients::CarriesGradients(value.node->output_type(value.port).dtype))
      continue;
    ys.push_back(value);
    weights.push_back(
        b.Op("Placeholder", {}, {{"dtype", value.node->output_type(value.port).dtype}}));
  }
  std::erase_if(xs, [](const Endpoint& x) {
    return !gradients::CarriesGradients(x.node->output_type(0).dtype);
  });
  WEFT_ASSIGN_OR_RETURN(const std::vector<TensorGradient> flowing,
                        gradients::AddGradients(b, ys, xs, weights));
  size_t next = 0;
  for (const Endpoint& input : xs_of_inputs) {
    reverse.result_of.push_back(-1);
    if (next >= xs.size() || !(xs[next] == input)) continue;
    const TensorGradient& gradient = flowing[next++];
    if (gradient.empty()) continue;
    reverse.result_of.back() = static_cast<int>(made.outputs.size());
    made.outputs.push_back(gradients::Densify(b, gradient));
  }
  WEFT_RETURN_IF_ERROR(b.status());
  if (made.outputs.empty()) return reverse;
  // What has effects has had them: its values are given.
  for (const Endpoint& value : traced_.stateful) {
    const Endpoint twin = Twin(made.graph, value);
    const Endpoint given =
        b.Op("Placeholder", {}, {{"dtype", twin.node->output_type(twin.port).dtype}});
    WEFT_RETURN_IF_ERROR(b.status());
    made.graph.RedirectConsumers(twin, given);
    for (Endpoint& output : made.outputs) {
      if (output == twin) output = given;
    }
    made.inputs.push_back(given);
  }
  // Those that something still waits for are waited for no more.
  for (Node* node : made.graph.nodes()) {
    const std::vector<Node*> controls = node->control_inputs();
    for (Node* control : controls) {
      if (control->schema().is_stateful) made.graph.RemoveControlEdge(control, node);
    }
  }
  made.inputs.insert(made.inputs.end(), weights.begin(), weights.end());
  WEFT_ASSIGN_OR_RETURN(reverse.call, Make(runtime, std::move(made)));
  return reverse;
}

StatusOr<std::vector<Array>> GraphCall::Backward(Runtime& runtime, const std::vector<Array>& inputs,
                                                 const std::vector<Array>& outputs,
                                                 const std::vector<Array>& of_outputs,
                                                 const std::vector<bool>& has_gradient) const {
  auto known = reverse_.find(has_gradient);
  if (known == reverse_.end()) {
    WEFT_ASSIGN_OR_RETURN(Reverse made, MakeReverse(runtime, has_gradient));
    known = reverse_.emplace(has_gradient, std::move(made)).first;
  }
  const Reverse& reverse = known->second;
  std::vector<Array> results(inputs.size());
  if (reverse.call == nullptr) return results;
  std::vector<Array> given = inputs;
  given.insert(given.end(), outputs.begin() + static_cast<int64_t>(num_outputs_), outputs.end());
  for (size_t i = 0; i < of_outputs.size(); ++i) {
    if (has_gradient[i] && gradients::CarriesGradients(outputs[i].dtype()))
      given.push_back(of_outputs[i]);
  }
  WEFT_ASSIGN_OR_RETURN(const std::vector<Array> flowing,
                        reverse.call->Run(runtime, std::move(given)));
  for (size_t i = 0; i < results.size(); ++i) {
    if (reverse.result_of[i] >= 0) results[i] = flowing[static_cast<size_t>(reverse.result_of[i])];
  }
  return results;
}

}  // namespace weft::imperative
