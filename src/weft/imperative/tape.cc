// SPDX-License-Identifier: Apache-2.0
#include "weft/imperative/tape.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"

#include "weft/gradients/gradients.h"
#include "weft/imperative/backward.h"
#include "weft/imperative/graph_call.h"

namespace weft::imperative {

Tape::Tape(Runtime& runtime, bool persistent) : runtime_(runtime), persistent_(persistent) {
  runtime_.tapes_.push_back(this);
}

Tape::~Tape() { Stop(); }

void Tape::Stop() {
  auto& tapes = runtime_.tapes_;
  tapes.erase(std::remove(tapes.begin(), tapes.end(), this), tapes.end());
}

void Tape::Watch(const Array& array) {
  if (array) followed_.insert(array.id());
}

bool Tape::Follows(absl::Span<const Array> inputs) {
  bool follows = false;
  for (const Array& input : inputs) {
    // Handles of variables.
    if (input.dtype() == DType::kResource) followed_.insert(input.id());
    follows = follows || followed_.contains(input.id());
  }
  return follows;
}

void Tape::Record(const OpKind& kind, absl::Span<const Array> inputs,
                  absl::Span<const Array> outputs) {
  if (kind.call.definition().has_no_gradient || outputs.empty() || !Follows(inputs)) return;
  for (const Array& output : outputs) followed_.insert(output.id());
  entries_.push_back({.kind = &kind,
                      .inputs = {inputs.begin(), inputs.end()},
                      .outputs = {outputs.begin(), outputs.end()}});
}

void Tape::RecordCall(std::shared_ptr<const GraphCall> function, absl::Span<const Array> inputs,
                      absl::Span<const Array> outputs) {
  if (outputs.empty() || !Follows(inputs)) return;
  for (const Array& output : outputs) followed_.insert(output.id());
  entries_.push_back({.function = std::move(function),
                      .inputs = {inputs.begin(), inputs.end()},
                      .outputs = {outputs.begin(), outputs.end()}});
}

std::vector<Array> Tape::Gradient(const std::vector<Array>& ys, const std::vector<Array>& xs,
                                  const std::vector<Array>& weights) {
  if (!runtime_.ok()) return {};
  if (has_given_ && !persistent_) {
    runtime_.Fail(FailedPrecondition(
        "A tape that is not persistent has given its gradients: make it persistent"));
    return {};
  }
  has_given_ = true;
  if (!persistent_) Stop();
  StatusOr<std::vector<Array>> gradients = Differentiate(ys, xs, weights);
  if (!persistent_) entries_.clear();
  if (gradients.ok()) return *std::move(gradients);
  runtime_.Fail(Annotate(gradients.status(), "Gradient"));
  return {};
}

StatusOr<std::vector<Array>> Tape::Differentiate(const std::vector<Array>& ys,
                                                 const std::vector<Array>& xs,
                                                 const std::vector<Array>& weights) {
  absl::flat_hash_map<int64_t, Array> flowing;  // by the array that they are of
  const auto add = [&](const Array& to, Array gradient) {
    const auto [at, is_first] = flowing.try_emplace(to.id(), gradient);
    if (!is_first) at->second = runtime_.Op("AddV2", {at->second, gradient});
  };
  for (size_t i = 0; i < ys.size(); ++i) {
    if (!ys[i]) return InvalidArgument("y ", i, " is nothing");
    if (!gradients::CarriesGradients(ys[i].dtype()))
      return InvalidArgument("y ", i, " is ", DTypeName(ys[i].dtype()), ", which has no gradient");
    const bool is_weighted = i < weights.size() && weights[i];
    add(ys[i], is_weighted ? weights[i] : runtime_.Op("OnesLike", {ys[i]}));
  }
  // What is recorded meanwhile (a persistent tape records its own gradients) comes behind.
  for (size_t i = entries_.size(); i-- > 0 && runtime_.ok();) {
    const Entry entry = entries_[i];
    std::vector<Array> of_outputs;
    std::vector<bool> has_gradient;
    for (const Array& output : entry.outputs) {
      const auto found = flowing.find(output.id());
      has_gradient.push_back(found != flowing.end());
      of_outputs.push_back(found == flowing.end() ? Array() : found->second);
    }
    if (std::find(has_gradient.begin(), has_gradient.end(), true) == has_gradient.end()) continue;
    std::vector<Array> of_inputs;
    if (entry.kind != nullptr) {
      WEFT_ASSIGN_OR_RETURN(const std::shared_ptr<const Backward> backward,
                            Backward::Of(runtime_, *entry.kind, has_gradient));
      WEFT_ASSIGN_OR_RETURN(of_inputs,
                            backward->Run(runtime_, entry.inputs, entry.outputs, of_outputs));
    } else {
      WEFT_ASSIGN_OR_RETURN(
          of_inputs, entry.function->Backward(runtime_, entry.inputs, entry.outputs, of_outputs,
                                              has_gradient));
    }
    for (size_t input = 0; input < of_inputs.size(); ++input) {
      if (of_inputs[input] && followed_.contains(entry.inputs[input].id()))
        add(entry.inputs[input], of_inputs[input]);
    }
  }
  WEFT_RETURN_IF_ERROR(runtime_.status());
  std::vector<Array> results;
  for (const Array& x : xs) {
    const auto found = flowing.find(x.id());
    results.push_back(found == flowing.end() ? Array() : found->second);
  }
  return results;
}

}  // namespace weft::imperative
