// SPDX-License-Identifier: Apache-2.0
#include "weft/inspect/cost_file.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"

#include "net/json.h"

namespace weft::inspect {
namespace {

// FNV-1a: the same in every process, as a file needs it.
uint64_t Mix(uint64_t hash, absl::string_view text) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return (hash ^ 0xff) * 0x100000001b3u;
}

// The order in which ops ran does not count.
std::string Fingerprint(const std::vector<OpCost>& ops) {
  uint64_t sum = 0;
  for (const OpCost& op : ops) {
    uint64_t hash = Mix(Mix(0xcbf29ce484222325u, op.name), op.op);
    for (const std::string& input : op.inputs) hash = Mix(hash, input);
    sum += hash;
  }
  return absl::StrFormat("%016x", sum);
}

Json ToJson(const executor::OutputTrace& output) {
  Json json = Json::MakeObject();
  json.Set("dtype", output.dtype == DType::kInvalid ? "none" : DTypeName(output.dtype));
  Json dims = Json::MakeArray();
  for (const int64_t dim : output.dims) dims.Append(dim);
  json.Set("dims", std::move(dims));
  json.Set("bytes", output.bytes);
  return json;
}

Json ToJson(const OpCost& op) {
  Json json = Json::MakeObject();
  json.Set("name", op.name);
  json.Set("op", op.op);
  if (!op.device.empty()) json.Set("device", op.device);
  Json inputs = Json::MakeArray();
  for (const std::string& input : op.inputs) inputs.Append(input);
  json.Set("inputs", std::move(inputs));
  Json outputs = Json::MakeArray();
  for (const executor::OutputTrace& output : op.outputs) outputs.Append(ToJson(output));
  json.Set("outputs", std::move(outputs));
  if (op.state_bytes > 0) json.Set("state_bytes", op.state_bytes);
  if (op.seconds >= 0) json.Set("seconds", op.seconds);
  if (op.least_seconds >= 0) json.Set("least_seconds", op.least_seconds);
  return json;
}

Json ToJson(const LinkCost& link) {
  Json json = Json::MakeObject();
  json.Set("from", link.from);
  json.Set("to", link.to);
  json.Set("transfers", static_cast<int64_t>(std::llround(link.transfers)));
  json.Set("bytes", static_cast<int64_t>(std::llround(link.bytes)));
  json.Set("seconds", link.seconds);
  return json;
}

}  // namespace

int64_t BatchOf(const std::vector<OpCost>& ops) {
  std::map<int64_t, int> votes;
  for (const OpCost& op : ops) {
    const bool is_source = absl::StartsWith(op.op, "Placeholder") || op.op == "_Arg" ||
                           absl::StartsWith(op.op, "IteratorGetNext") ||
                           absl::StrContains(op.op, "Dequeue");
    if (!is_source) continue;
    for (const executor::OutputTrace& output : op.outputs) {
      if (!output.dims.empty() && output.dims[0] > 1) ++votes[output.dims[0]];
    }
  }
  const auto most = std::max_element(
      votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == votes.end() ? 0 : most->first;
}

std::string FormatCosts(const StepCosts& costs) {
  Json json = Json::MakeObject();
  json.Set("format", "weft.dev/costs");
  json.Set("version", 1);
  json.Set("graph", Fingerprint(costs.ops));
  json.Set("steps", costs.steps);
  if (costs.step_seconds >= 0) json.Set("step_seconds", costs.step_seconds);
  if (costs.least_seconds >= 0) json.Set("least_seconds", costs.least_seconds);
  if (costs.batch > 0) json.Set("batch", costs.batch);
  Json ops = Json::MakeArray();
  for (const OpCost& op : costs.ops) ops.Append(ToJson(op));
  json.Set("ops", std::move(ops));
  Json links = Json::MakeArray();
  for (const LinkCost& link : costs.links) links.Append(ToJson(link));
  json.Set("links", std::move(links));
  return json.Dump(1) + "\n";
}

}  // namespace weft::inspect
