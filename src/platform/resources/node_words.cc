// SPDX-License-Identifier: Apache-2.0
#include "platform/resources/node_words.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "platform/object/fields.h"
#include "platform/object/names.h"
#include "platform/object/quantity.h"
#include "platform/resources/node_description.h"

namespace weft::platform {
namespace {

constexpr char kForm[] =
    "a node is written as NAME,cpu=8,memory=32Gi,gpu=4,label:KEY=VALUE,taint:KEY=VALUE:NoSchedule";

bool IsName(absl::string_view name) {
  if (name.empty() || name.size() > 253) return false;
  for (const char c : name) {
    if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-' && c != '.') return false;
  }
  return name.front() != '-' && name.front() != '.' && name.back() != '-' && name.back() != '.';
}

Status AddTaint(absl::string_view part, Json* taints) {
  const std::pair<std::string, std::string> ends = absl::StrSplit(part, absl::MaxSplits(':', 1));
  const auto& [what, effect] = ends;
  if (effect != "NoSchedule" && effect != "PreferNoSchedule" && effect != "NoExecute") {
    return InvalidArgument("taint:", part,
                           " does not end in :NoSchedule, :PreferNoSchedule or :NoExecute");
  }
  const std::pair<std::string, std::string> pair = absl::StrSplit(what, absl::MaxSplits('=', 1));
  Json taint;
  taint.Set("key", pair.first);
  if (!pair.second.empty()) taint.Set("value", pair.second);
  taint.Set("effect", effect);
  taints->Append(std::move(taint));
  return absl::OkStatus();
}

struct GpuWords {
  int64_t count = 0;
  Json one;
};

Status AddAmount(const std::string& name, const std::string& value, GpuWords* gpus, Json* node) {
  if (name == "gpu-model") {
    gpus->one.Set("model", value);
    return absl::OkStatus();
  }
  static constexpr absl::string_view kPlain[] = {"cpu", "memory",     "pods",
                                                 "gpu", "gpu-memory", "ephemeral-storage"};
  if (!absl::StrContains(name, '/') && !absl::StartsWith(name, "hugepages-") &&
      std::find(std::begin(kPlain), std::end(kPlain), name) == std::end(kPlain)) {
    return InvalidArgument("there is no resource '", name, "': ", absl::StrJoin(kPlain, ", "),
                           ", gpu-model, hugepages-2Mi or one with a domain, as "
                           "example.com/thing, is allowed");
  }
  const StatusOr<int64_t> thousandths = ParseQuantity(Json(value));
  if (!thousandths.ok()) return Annotate(thousandths.status(), name);
  if (name == "gpu-memory") {
    gpus->one.Set("memory", value);
    return absl::OkStatus();
  }
  const std::string resource = name == "gpu" ? "nvidia.com/gpu" : name;
  if (resource == "nvidia.com/gpu") {
    gpus->count = *thousandths / 1000;
    if (*thousandths % 1000 != 0 || gpus->count > kMostGpus)
      return InvalidArgument(name, " holds ", value, ", a whole number up to ", kMostGpus,
                             " is allowed");
  }
  SetField(node, {"status", "allocatable", resource}, value);
  return absl::OkStatus();
}

}  // namespace

StatusOr<Json> ParseNodeWord(absl::string_view word) {
  const std::vector<std::string> parts = absl::StrSplit(word, ',');
  if (!IsName(parts.front())) {
    return InvalidArgument("'", parts.front(), "' cannot be the name of a node: ", kForm);
  }
  Json node;
  node.Set("apiVersion", "v1");
  node.Set("kind", "Node");
  SetField(&node, {"metadata", "name"}, parts.front());
  GpuWords gpus;
  std::set<std::string> named;
  Json taints = Json::MakeArray();
  for (size_t i = 1; i < parts.size(); ++i) {
    absl::string_view part = parts[i];
    if (absl::ConsumePrefix(&part, "taint:")) {
      WEFT_RETURN_IF_ERROR(AddTaint(part, &taints));
      continue;
    }
    const bool is_label = absl::ConsumePrefix(&part, "label:");
    const size_t equals = part.find('=');
    if (equals == 0 || equals == absl::string_view::npos)
      return InvalidArgument("'", parts[i], "' of node ", parts.front(), ": ", kForm);
    const std::string name(part.substr(0, equals));
    const std::string value(part.substr(equals + 1));
    if (!named.insert(parts[i].substr(0, parts[i].find('='))).second)
      return InvalidArgument("node ", parts.front(), " has '", name, "' twice");
    if (is_label) {
      for (const NameProblems& wrong : {QualifiedNameProblems(name), LabelValueProblems(value)}) {
        if (!wrong.empty())
          return InvalidArgument("'", parts[i], "' of node ", parts.front(), ": ", wrong.front());
      }
      SetField(&node, {"metadata", "labels", name}, value);
    } else {
      WEFT_RETURN_IF_ERROR(Annotate(AddAmount(name, value, &gpus, &node), "node " + parts.front()));
    }
  }
  if (taints.size() > 0) SetField(&node, {"spec", "taints"}, std::move(taints));
  if (gpus.count > 0 && gpus.one.size() > 0) {
    SetField(&node, {"metadata", "annotations", kGpusAnnotation},
             Json(Json::Array(static_cast<size_t>(gpus.count), gpus.one)).Dump());
  }
  return node;
}

}  // namespace weft::platform
