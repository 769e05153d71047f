// SPDX-License-Identifier: Apache-2.0
#include "platform/placement/cost_file.h"

#include <cmath>
#include <limits>
#include <utility>

#include "net/json.h"

namespace weft::platform {
namespace {

constexpr size_t kMostBytes = size_t{1} << 30;
constexpr int kMostPort = 1 << 20;

// Of members of one object; an error names the member.
class Members {
 public:
  explicit Members(const Json& object) : object_(object) {}

  Status Text(absl::string_view name, bool is_needed, std::string* value) const {
    const Json* const found = object_.Find(name);
    if (found == nullptr) return Missing(name, is_needed);
    StatusOr<std::string> text = found->AsString();
    if (!text.ok()) return Annotate(text.status(), name);
    *value = *std::move(text);
    return absl::OkStatus();
  }

  Status Count(absl::string_view name, int64_t* value) const {
    const Json* const found = object_.Find(name);
    if (found == nullptr) return absl::OkStatus();
    const StatusOr<int64_t> number = found->AsInt();
    if (!number.ok()) return Annotate(number.status(), name);
    // So that a million of them can be added.
    if (*number < 0 || *number > (int64_t{1} << 43)) {
      return InvalidArgument(name, ": expected a number from 0 to 2^43, found ", *number);
    }
    *value = *number;
    return absl::OkStatus();
  }

  Status Seconds(absl::string_view name, double* value) const {
    const Json* const found = object_.Find(name);
    if (found == nullptr) return absl::OkStatus();
    const StatusOr<double> number = found->AsDouble();
    if (!number.ok()) return Annotate(number.status(), name);
    if (!(*number >= 0 && *number <= 1e9))
      return InvalidArgument(name, ": expected seconds from 0 to 1e9, found ", *number);
    *value = *number;
    return absl::OkStatus();
  }

  // Null where there is none.
  StatusOr<const Json*> List(absl::string_view name) const {
    const Json* const found = object_.Find(name);
    if (found != nullptr && !found->is_array())
      return InvalidArgument(name, ": expected a list, found ", found->Describe());
    return found;
  }

 private:
  static Status Missing(absl::string_view name, bool is_needed) {
    return is_needed ? InvalidArgument("there is no \"", name, "\"") : absl::OkStatus();
  }
  const Json& object_;
};

// "name", "name:1" and "^name", as graphs write them.
StatusOr<OpInput> ReadInput(const Json& json) {
  WEFT_ASSIGN_OR_RETURN(const std::string text, json.AsString());
  if (!text.empty() && text[0] == '^') return OpInput{text.substr(1), -1};
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return OpInput{text, 0};
  int port = 0;
  for (size_t i = colon + 1; i < text.size(); ++i) {
    if (text[i] < '0' || text[i] > '9' || port > kMostPort)
      return InvalidArgument("'", text, "' is no input, expected op, op:PORT or ^op");
    port = port * 10 + (text[i] - '0');
  }
  return OpInput{text.substr(0, colon), port};
}

StatusOr<TensorCost> ReadTensor(const Json& json) {
  TensorCost tensor;
  const Members members(json);
  WEFT_RETURN_IF_ERROR(members.Text("dtype", true, &tensor.dtype));
  WEFT_RETURN_IF_ERROR(members.Count("bytes", &tensor.bytes));
  WEFT_ASSIGN_OR_RETURN(const Json* const dims, members.List("dims"));
  if (dims == nullptr) return tensor;
  for (const Json& dim : dims->items()) {
    WEFT_ASSIGN_OR_RETURN(const int64_t size, dim.AsInt());
    if (size < -1) return InvalidArgument("dims: expected -1 or more, found ", size);
    tensor.dims.push_back(size);
  }
  return tensor;
}

StatusOr<OpCost> ReadOp(const Json& json) {
  OpCost op;
  const Members members(json);
  WEFT_RETURN_IF_ERROR(members.Text("name", true, &op.name));
  WEFT_RETURN_IF_ERROR(members.Text("op", true, &op.op));
  WEFT_RETURN_IF_ERROR(members.Text("device", false, &op.device));
  WEFT_RETURN_IF_ERROR(members.Count("state_bytes", &op.state_bytes));
  WEFT_RETURN_IF_ERROR(members.Seconds("seconds", &op.seconds));
  WEFT_RETURN_IF_ERROR(members.Seconds("least_seconds", &op.least_seconds));
  WEFT_ASSIGN_OR_RETURN(const Json* const inputs, members.List("inputs"));
  if (inputs != nullptr) {
    for (const Json& each : inputs->items()) {
      StatusOr<OpInput> input = ReadInput(each);
      if (!input.ok()) return Annotate(input.status(), absl::StrCat("'", op.name, "': inputs"));
      op.inputs.push_back(*std::move(input));
    }
  }
  WEFT_ASSIGN_OR_RETURN(const Json* const outputs, members.List("outputs"));
  if (outputs != nullptr) {
    for (const Json& each : outputs->items()) {
      StatusOr<TensorCost> tensor = ReadTensor(each);
      if (!tensor.ok()) return Annotate(tensor.status(), absl::StrCat("'", op.name, "': outputs"));
      op.outputs.push_back(*std::move(tensor));
    }
  }
  return op;
}

StatusOr<LinkCost> ReadLink(const Json& json) {
  LinkCost link;
  const Members members(json);
  WEFT_RETURN_IF_ERROR(members.Text("from", true, &link.from));
  WEFT_RETURN_IF_ERROR(members.Text("to", true, &link.to));
  WEFT_RETURN_IF_ERROR(members.Count("transfers", &link.transfers));
  WEFT_RETURN_IF_ERROR(members.Count("bytes", &link.bytes));
  WEFT_RETURN_IF_ERROR(members.Seconds("seconds", &link.seconds));
  return link;
}

Status CheckVersion(const Json& json) {
  std::string format;
  WEFT_RETURN_IF_ERROR(Members(json).Text("format", false, &format));
  if (format != kCostFormat) {
    return InvalidArgument("is no cost file: expected \"format\": \"", kCostFormat,
                           "\", which `weft server --cost_file` and `weft run --cost_file` write");
  }
  const Json* const version = json.Find("version");
  if (version == nullptr || *version != Json(kCostVersion)) {
    return InvalidArgument("is a cost file of version ",
                           version == nullptr ? "\"\"" : version->Describe(), ", this weft reads ",
                           kCostVersion, ": measure again with the weft that plans");
  }
  return absl::OkStatus();
}

StatusOr<CostFile> ReadCostFile(const Json& json) {
  if (!json.is_object()) return InvalidArgument("expected a mapping, found ", json.Describe());
  WEFT_RETURN_IF_ERROR(CheckVersion(json));
  CostFile costs;
  const Members members(json);
  WEFT_RETURN_IF_ERROR(members.Text("graph", false, &costs.graph));
  WEFT_RETURN_IF_ERROR(members.Count("steps", &costs.steps));
  WEFT_RETURN_IF_ERROR(members.Count("batch", &costs.batch));
  WEFT_RETURN_IF_ERROR(members.Seconds("step_seconds", &costs.step_seconds));
  WEFT_RETURN_IF_ERROR(members.Seconds("least_seconds", &costs.least_seconds));
  WEFT_ASSIGN_OR_RETURN(const Json* const ops, members.List("ops"));
  if (ops == nullptr || ops->size() == 0) return InvalidArgument("there are no \"ops\" in it");
  for (size_t i = 0; i < ops->size(); ++i) {
    StatusOr<OpCost> op = ReadOp(ops->items()[i]);
    if (!op.ok()) return Annotate(op.status(), absl::StrCat("ops[", i, "]"));
    costs.ops.push_back(*std::move(op));
  }
  WEFT_ASSIGN_OR_RETURN(const Json* const links, members.List("links"));
  if (links == nullptr) return costs;
  for (size_t i = 0; i < links->size(); ++i) {
    StatusOr<LinkCost> link = ReadLink(links->items()[i]);
    if (!link.ok()) return Annotate(link.status(), absl::StrCat("links[", i, "]"));
    costs.links.push_back(*std::move(link));
  }
  return costs;
}

}  // namespace

StatusOr<CostFile> ParseCostFile(const std::string& text, const std::string& file) {
  StatusOr<Json> json = Json::Parse(text, {.max_bytes = kMostBytes, .max_depth = 16});
  if (!json.ok()) return Annotate(json.status(), file);
  StatusOr<CostFile> costs = ReadCostFile(*json);
  if (!costs.ok()) return Annotate(costs.status(), file);
  return costs;
}

}  // namespace weft::platform
