// SPDX-License-Identifier: Apache-2.0
#include "platform/console/job_commands.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "base/nearest_name.h"
#include "platform/console/selection.h"
#include "platform/object/fields.h"
#include "platform/object/quantity.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

// Of a field's path such as ".spec.worker_count" or "spec.a.b" the patch that sets it.
Json PatchOfPath(const std::string& path, Json value) {
  const std::vector<std::string> parts = absl::StrSplit(path, '.', absl::SkipEmpty());
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    Json outer;
    outer.Set(*part, std::move(value));
    value = std::move(outer);
  }
  return value;
}

// Of a TFJob: as its spec writes that type, whatever the case of what was typed.
StatusOr<std::string> ReplicaField(const Json& job, const std::string& replica_type) {
  const Json* const replicas = FindField(job, {"spec", "tfReplicaSpecs"});
  std::vector<std::string> names;
  if (replicas != nullptr) {
    for (const JsonMember& member : replicas->members()) {
      if (absl::EqualsIgnoreCase(member.name, replica_type)) return member.name;
      names.push_back(member.name);
    }
  }
  return InvalidArgument("The job '", NameOf(job), "' has no replicas of type ", replica_type,
                         "; it has ", absl::StrJoin(names, ", "));
}

StatusOr<std::string> ScalePath(const Console& console, const Target& target,
                                const std::string& replica_type) {
  if (target.type->scale_path.empty()) {
    return InvalidArgument("A ", target.type->singular,
                           " has no replicas to scale: jobs, deployments, replicasets and "
                           "statefulsets have");
  }
  if (target.type == &TfJobs()) {
    WEFT_ASSIGN_OR_RETURN(const ObjectPtr job, console.store->Get(*target.type, target.name));
    WEFT_ASSIGN_OR_RETURN(const std::string field,
                          ReplicaField(*job, replica_type.empty() ? "worker" : replica_type));
    return absl::StrCat("spec.tfReplicaSpecs.", field, ".replicas");
  }
  if (replica_type.empty()) return target.type->scale_path;
  if (target.type == &Tensorflows()) {
    if (absl::EqualsIgnoreCase(replica_type, "worker")) return std::string("spec.worker_count");
    if (absl::EqualsIgnoreCase(replica_type, "ps")) return std::string("spec.ps_count");
    return InvalidArgument("A tensorflow has replicas of type ps and worker, not ", replica_type);
  }
  return InvalidArgument("A ", target.type->singular,
                         " has replicas of one type: leave out "
                         "--replica_type");
}

// Where "suspend" stands; null: the type has none.
const char* SuspendPath(const ResourceType& type) {
  if (&type == &TfJobs()) return "spec.runPolicy.suspend";
  if (&type == &Tensorflows() || &type == &BatchJobs()) return "spec.suspend";
  return nullptr;
}

Status PatchAll(const Console& console, const std::vector<Target>& targets, const char* word,
                const std::function<StatusOr<Json>(const Target& target)>& patch_of) {
  if (targets.empty()) return NotFound("no matching resources found");
  Failures failures;
  for (const Target& target : targets) {
    const StatusOr<Json> patch = patch_of(target);
    if (!patch.ok()) {
      if (!failures.Add(patch.status())) break;
      continue;
    }
    const Status patched =
        console.store->Patch(*target.type, target.name, PatchKind::kMerge, *patch, WriteOptions())
            .status();
    if (patched.ok()) {
      console.print(absl::StrCat(DisplayName(*target.type, target.name.name), " ", word, "\n"));
    } else if (!failures.Add(patched)) {
      break;
    }
  }
  return failures.ToStatus();
}

// The types of metrics.k8s.io, which exist where somebody measures.
const ResourceType& MetricsType(bool is_nodes) {
  static const ResourceType nodes = MakeResourceType("metrics.k8s.io", "v1beta1", "nodes", "node",
                                                     "NodeMetrics", /*is_namespaced=*/false);
  static const ResourceType pods = MakeResourceType("metrics.k8s.io", "v1beta1", "pods", "pod",
                                                    "PodMetrics", /*is_namespaced=*/true);
  return is_nodes ? nodes : pods;
}

struct UsedSum {
  int64_t thousandths = 0;  // of a processor
  int64_t bytes = 0;
};

void AddUsage(const Json& holder, UsedSum* sum) {
  const auto amount = [&](const char* name) {
    const Json* const value = FindField(holder, {"usage", name});
    return value == nullptr ? 0 : ParseQuantity(*value).value_or(0);
  };
  sum->thousandths += amount("cpu");
  sum->bytes += amount("memory") / 1000;
}

UsedSum SumOf(const Json& metrics) {
  UsedSum sum;
  AddUsage(metrics, &sum);
  if (const Json* const containers = FindField(metrics, {"containers"})) {
    for (const Json& container : containers->items()) AddUsage(container, &sum);
  }
  return sum;
}

std::string TopTable(const std::vector<std::pair<std::string, UsedSum>>& rows) {
  size_t width = 4;
  for (const auto& [name, sum] : rows) width = std::max(width, name.size());
  const auto pad = [](std::string text, size_t size) {
    text.resize(std::max(text.size(), size), ' ');
    return text;
  };
  std::string table = absl::StrCat(pad("NAME", width), "   CPU(cores)   MEMORY(bytes)\n");
  for (const auto& [name, sum] : rows) {
    absl::StrAppend(&table, pad(name, width), "   ", pad(absl::StrCat(sum.thousandths, "m"), 10),
                    "   ", sum.bytes >> 20, "Mi\n");
  }
  return table;
}

// Which rows are meant, of pods that are all measured.
struct TopQuery {
  bool is_nodes = false;
  std::vector<std::string> names;  // empty: all
  std::string label_selector;
};

StatusOr<TopQuery> ReadTopQuery(const Selection& selection) {
  TopQuery query;
  query.label_selector = selection.label_selector;
  if (selection.words.empty()) return query;
  WEFT_ASSIGN_OR_RETURN(const std::vector<Group> groups, GroupsOf(selection.words));
  const Group& group = groups[0];
  query.is_nodes = group.type == &Nodes();
  if (IsJob(*group.type) && groups.size() == 1 && group.names.size() == 1) {
    query.label_selector = absl::StrCat("training.kubeflow.org/job-name=", group.names[0]);
    return query;
  }
  if (!query.is_nodes && group.type != &Pods()) {
    return InvalidArgument("weft top shows nodes, pods, or the pods of one job (tfjob/NAME), not ",
                           group.type->plural);
  }
  for (const Group& one : groups)
    query.names.insert(query.names.end(), one.names.begin(), one.names.end());
  return query;
}

}  // namespace

Status ScaleObjects(const Console& console, const Selection& selection, int64_t replicas,
                    const std::string& replica_type) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<Target> targets, TargetsOf(console, selection));
  return PatchAll(console, targets, "scaled", [&](const Target& target) -> StatusOr<Json> {
    WEFT_ASSIGN_OR_RETURN(const std::string path, ScalePath(console, target, replica_type));
    return PatchOfPath(path, Json(replicas));
  });
}

Status SuspendJobs(const Console& console, const Selection& selection, bool is_suspended) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<Target> targets, TargetsOf(console, selection));
  return PatchAll(console, targets, is_suspended ? "suspended" : "resumed",
                  [&](const Target& target) -> StatusOr<Json> {
                    const char* const path = SuspendPath(*target.type);
                    if (path != nullptr) return PatchOfPath(path, Json(is_suspended));
                    return InvalidArgument("A ", target.type->singular,
                                           " cannot be suspended: jobs can (tfjob, tensorflow, "
                                           "job)");
                  });
}

Status ShowTop(const Console& console, const Selection& selection) {
  WEFT_ASSIGN_OR_RETURN(const TopQuery query, ReadTopQuery(selection));
  ListOptions options;
  if (!query.is_nodes && !selection.all_namespaces) options.namespace_name = console.namespace_name;
  options.label_selector = query.label_selector;
  const StatusOr<ObjectList> metrics = console.store->List(MetricsType(query.is_nodes), options);
  if (HttpCodeOf(metrics.status()) == 404 || HttpCodeOf(metrics.status()) == 503) {
    return FailedPrecondition(
        "This cluster does not measure what pods use: it needs a metrics-server "
        "(`weft up` has one)");
  }
  WEFT_RETURN_IF_ERROR(metrics.status());
  std::vector<std::pair<std::string, UsedSum>> rows;
  for (const ObjectPtr& item : metrics->items) {
    const bool is_wanted = query.names.empty() || std::find(query.names.begin(), query.names.end(),
                                                            NameOf(*item)) != query.names.end();
    if (!is_wanted) continue;
    rows.emplace_back(selection.all_namespaces && !query.is_nodes
                          ? absl::StrCat(NamespaceOf(*item), "/", NameOf(*item))
                          : NameOf(*item),
                      SumOf(*item));
  }
  if (rows.empty()) return NotFound("Nothing of that runs now");
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.second.thousandths > b.second.thousandths;
  });
  console.print(TopTable(rows));
  return absl::OkStatus();
}

}  // namespace weft::platform
