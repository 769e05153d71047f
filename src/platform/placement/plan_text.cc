// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "platform/placement/plan.h"

namespace weft::platform {
namespace {

constexpr char kPlanFormat[] = "weft.dev/plan";
constexpr int kPlanVersion = 1;
constexpr size_t kMostListed = 12;

std::vector<std::string> NamesOf(const std::vector<int>& devices, const Cluster& cluster) {
  std::vector<std::string> names;
  for (const int device : devices) names.push_back(cluster.devices[device].name);
  return names;
}

std::string Listed(const std::vector<std::string>& names) {
  if (names.size() <= kMostListed) return absl::StrJoin(names, ", ");
  const std::vector<std::string> first(names.begin(), names.begin() + kMostListed);
  return absl::StrCat(absl::StrJoin(first, ", "), ", and ", names.size() - kMostListed, " more");
}

std::string FormatBytes(double bytes) {
  if (bytes >= 1e9) return absl::StrFormat("%.2f GB", bytes * 1e-9);
  if (bytes >= 1e6) return absl::StrFormat("%.1f MB", bytes * 1e-6);
  return absl::StrFormat("%.1f kB", bytes * 1e-3);
}

std::string FormatVariables(const PlanChoice& choice) {
  if (choice.variables.empty()) return "";
  std::string text;
  std::vector<VariablePlace> largest = choice.variables;
  std::stable_sort(
      largest.begin(), largest.end(),
      [](const VariablePlace& a, const VariablePlace& b) { return a.bytes > b.bytes; });
  for (size_t i = 0; i < largest.size() && i < kMostListed; ++i) {
    const VariablePlace& place = largest[i];
    absl::StrAppend(&text, "    ", place.name, " (", FormatBytes(place.bytes), ") on server ",
                    absl::StrJoin(place.servers, ", "),
                    place.servers.size() > 1 ? ", a part on each\n" : "\n");
  }
  if (largest.size() > kMostListed)
    absl::StrAppend(&text, "    and ", largest.size() - kMostListed, " smaller ones\n");
  return text;
}

std::string FormatTried(const DistributionPlan& plan) {
  std::string text = "\nWhat was tried:\n";
  for (size_t i = 0; i < plan.tried.size(); ++i) {
    const PlanChoice& each = plan.tried[i];
    absl::StrAppendFormat(&text, "  %s %-30s ", i == plan.best ? "*" : " ", each.Describe());
    if (!each.misfit.empty()) {
      absl::StrAppend(&text, "does not fit: ", each.misfit, "\n");
      continue;
    }
    absl::StrAppendFormat(&text, "%10.3f ms", each.seconds * 1e3);
    if (each.examples_per_second > 0)
      absl::StrAppendFormat(&text, " %12.1f examples/s", each.examples_per_second);
    if (each.epoch_cost > 0) absl::StrAppendFormat(&text, " %10.4f $ an epoch", each.epoch_cost);
    absl::StrAppend(&text, "  ", each.limit, "\n");
  }
  return text;
}

}  // namespace

std::string FormatPlan(const DistributionPlan& plan, const Cluster& cluster, bool explain) {
  const PlanChoice& choice = plan.choice();
  std::string text =
      absl::StrFormat("%s on %d nodes (%d devices)\n  use       %s\n", plan.step,
                      cluster.nodes.size(), cluster.devices.size(), choice.Describe());
  absl::StrAppend(&text, choice.form == Form::kSplit ? "  devices   " : "  workers   ",
                  Listed(NamesOf(choice.workers, cluster)), "\n");
  if (!choice.servers.empty())
    absl::StrAppend(&text, "  servers   ", Listed(NamesOf(choice.servers, cluster)), "\n");
  absl::StrAppend(&text, FormatVariables(choice));
  if (plan.batch > 0) absl::StrAppend(&text, "  batch     ", plan.batch, " a worker\n");
  absl::StrAppendFormat(&text, "  step      %.3f ms", choice.seconds * 1e3);
  if (plan.predicted_single > 0 && choice.form != Form::kSingle)
    absl::StrAppendFormat(&text, " (on one device alone %.3f ms)", plan.predicted_single * 1e3);
  text += "\n";
  if (choice.examples_per_second > 0)
    absl::StrAppendFormat(&text, "  rate      %.1f examples/s\n", choice.examples_per_second);
  if (choice.price > 0) absl::StrAppendFormat(&text, "  price     %.2f $ an hour\n", choice.price);
  if (choice.epoch_cost > 0)
    absl::StrAppendFormat(&text, "  epoch     %.4f $\n", choice.epoch_cost);
  if (!plan.goal.empty()) absl::StrAppend(&text, "  goal      ", plan.goal, "\n");
  absl::StrAppend(&text, "  limit     ", choice.limit, "\n");
  if (explain) text += FormatTried(plan);
  return text;
}

Json PlanToJson(const DistributionPlan& plan, const Cluster& cluster) {
  const PlanChoice& choice = plan.choice();
  Json json = Json::MakeObject();
  json.Set("format", kPlanFormat);
  json.Set("version", kPlanVersion);
  json.Set("step", plan.step);
  json.Set("graph", plan.fingerprint);
  json.Set("form", FormName(choice.form));
  json.Set("batch", plan.batch);
  json.Set("step_seconds", choice.seconds);
  json.Set("examples_per_second", choice.examples_per_second);
  json.Set("price", choice.price);
  json.Set("epoch_cost", choice.epoch_cost);
  json.Set("limit", choice.limit);
  if (!plan.goal.empty()) json.Set("goal", plan.goal);
  const auto list = [](const std::vector<std::string>& names) {
    Json array = Json::MakeArray();
    for (const std::string& name : names) array.Append(name);
    return array;
  };
  json.Set("workers", list(NamesOf(choice.workers, cluster)));
  json.Set("servers", list(NamesOf(choice.servers, cluster)));
  Json variables = Json::MakeArray();
  for (const VariablePlace& place : choice.variables) {
    Json variable = Json::MakeObject();
    variable.Set("name", place.name);
    variable.Set("bytes", place.bytes);
    Json servers = Json::MakeArray();
    for (const int server : place.servers) servers.Append(server);
    variable.Set("servers", std::move(servers));
    variables.Append(std::move(variable));
  }
  json.Set("variables", std::move(variables));
  Json ops = Json::MakeArray();
  const PlacementProblem& problem = *plan.problem;
  for (int op = 0; op < problem.graph().num_ops(); ++op) {
    Json placed = Json::MakeObject();
    placed.Set("name", problem.graph().ops[op].name);
    placed.Set("device", cluster.devices[plan.assignment[problem.unit_of(op)]].name);
    ops.Append(std::move(placed));
  }
  json.Set("ops", std::move(ops));
  return json;
}

StatusOr<PlanCounts> ReadPlan(const std::string& text, const std::string& file,
                              const std::string& fingerprint) {
  StatusOr<Json> json = Json::Parse(text, {.max_bytes = size_t{256} << 20});
  if (!json.ok()) return Annotate(json.status(), file);
  const Json* const format = json->Find("format");
  const Json* const version = json->Find("version");
  if (format == nullptr || *format != Json(kPlanFormat))
    return InvalidArgument(file, " is no plan, which `weft plan --output` writes");
  if (version == nullptr || *version != Json(kPlanVersion)) {
    return InvalidArgument(file, " is a plan of version ",
                           version == nullptr ? "\"\"" : version->Describe(), ", this weft reads ",
                           kPlanVersion);
  }
  PlanCounts counts;
  for (const auto& [name, value] :
       {std::pair{"form", &counts.form}, std::pair{"graph", &counts.fingerprint}}) {
    WEFT_ASSIGN_OR_RETURN(const Json* const found, json->At(name));
    WEFT_ASSIGN_OR_RETURN(*value, found->AsString());
  }
  if (!fingerprint.empty() && fingerprint != counts.fingerprint) {
    return InvalidArgument(file, " was made for another graph (", counts.fingerprint,
                           "), the graph is ", fingerprint,
                           " now: it has changed since, plan anew");
  }
  WEFT_ASSIGN_OR_RETURN(const Json* const workers, json->At("workers"));
  WEFT_ASSIGN_OR_RETURN(const Json* const servers, json->At("servers"));
  counts.workers = static_cast<int>(workers->size());
  counts.servers = static_cast<int>(servers->size());
  return counts;
}

}  // namespace weft::platform
