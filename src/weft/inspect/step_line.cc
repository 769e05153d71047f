// SPDX-License-Identifier: Apache-2.0
#include "weft/inspect/step_line.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "net/json.h"

namespace weft::inspect {
namespace {

constexpr size_t kMostShown = 500;

}  // namespace

std::string SendOf(const std::string& receive) {
  const size_t at = receive.rfind("/_recv_");
  if (at == std::string::npos) return "";
  return absl::StrCat(receive.substr(0, at), "/_send_", receive.substr(at + 7));
}

std::string StepLine(const std::vector<executor::NodeTrace>& trace, int64_t step) {
  std::vector<const executor::NodeTrace*> shown;
  int64_t begin = INT64_MAX;
  for (const executor::NodeTrace& node : trace) {
    if (node.end_us <= 0) continue;  // fed
    begin = std::min(begin, node.start_us);
    shown.push_back(&node);
  }
  std::stable_sort(shown.begin(), shown.end(), [](const auto* a, const auto* b) {
    return a->end_us - a->start_us > b->end_us - b->start_us;
  });
  const size_t left = shown.size() - std::min(shown.size(), kMostShown);
  shown.resize(shown.size() - left);
  std::map<std::string, int64_t> devices;
  std::map<absl::string_view, int64_t> places;
  for (const executor::NodeTrace* const node : shown) {
    devices.try_emplace(node->device, static_cast<int64_t>(devices.size()));
    places.try_emplace(node->node, static_cast<int64_t>(places.size()));
  }
  Json::Array names(devices.size());
  for (const auto& [device, number] : devices) names[static_cast<size_t>(number)] = Json(device);
  Json ops = Json::MakeArray();
  for (const executor::NodeTrace* const node : shown) {
    Json inputs = Json::MakeArray();
    const auto add = [&](const std::string& name) {
      const auto found = places.find(name);
      if (found != places.end()) inputs.Append(found->second);
    };
    for (const std::string& input : node->inputs) add(input);
    if (node->op == "_Recv") add(SendOf(node->node));
    Json op = Json::MakeArray();
    op.Append(devices[node->device]);
    op.Append(node->start_us - begin);
    op.Append(std::max<int64_t>(node->end_us - node->start_us, 0));
    op.Append(node->node);
    op.Append(node->op);
    op.Append(std::move(inputs));
    ops.Append(std::move(op));
  }
  Json line = Json::MakeObject();
  line.Set("step", step);
  line.Set("left", static_cast<int64_t>(left));
  line.Set("devices", Json(std::move(names)));
  line.Set("ops", std::move(ops));
  return absl::StrCat("weft-step ", line.Dump());
}

}  // namespace weft::inspect
