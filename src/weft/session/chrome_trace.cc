// SPDX-License-Identifier: Apache-2.0
#include "weft/session/chrome_trace.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_join.h"

#include "net/json.h"

namespace weft::session {
namespace {

Json Named(int64_t process, int64_t thread, const char* what, const std::string& name) {
  Json event = Json::MakeObject();
  event.Set("ph", "M");
  event.Set("pid", process);
  event.Set("tid", thread);
  event.Set("name", what);
  Json args = Json::MakeObject();
  args.Set("name", name);
  event.Set("args", std::move(args));
  return event;
}

Json Slice(const executor::NodeTrace& node, int64_t process) {
  Json args = Json::MakeObject();
  args.Set("op", node.op);
  Json inputs = Json::MakeArray();
  for (const std::string& input : node.inputs) inputs.Append(input);
  args.Set("inputs", std::move(inputs));
  Json outputs = Json::MakeArray();
  for (const executor::OutputTrace& output : node.outputs) {
    outputs.Append(
        absl::StrCat(DTypeName(output.dtype), " [", absl::StrJoin(output.dims, ","), "]"));
  }
  args.Set("outputs", std::move(outputs));
  Json event = Json::MakeObject();
  event.Set("ph", "X");
  event.Set("pid", process);
  event.Set("tid", static_cast<int64_t>(node.thread));
  event.Set("ts", node.start_us);
  event.Set("dur", std::max<int64_t>(0, node.end_us - node.start_us));
  event.Set("cat", "op");
  event.Set("name", node.node);
  event.Set("args", std::move(args));
  return event;
}

}  // namespace

std::string ChromeTrace(const std::vector<executor::NodeTrace>& nodes) {
  Json events = Json::MakeArray();
  std::map<std::string, int64_t> processes;
  for (const executor::NodeTrace& node : nodes) {
    const auto [process, is_new] =
        processes.try_emplace(node.device, static_cast<int64_t>(processes.size()) + 1);
    if (is_new) events.Append(Named(process->second, 0, "process_name", node.device));
    events.Append(Slice(node, process->second));
  }
  Json trace = Json::MakeObject();
  trace.Set("displayTimeUnit", "ms");
  trace.Set("traceEvents", std::move(events));
  return trace.Dump();
}

}  // namespace weft::session
