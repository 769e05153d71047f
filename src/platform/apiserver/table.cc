// SPDX-License-Identifier: Apache-2.0
#include "platform/apiserver/table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "platform/apiserver/workload_cells.h"
#include "platform/object/fields.h"
#include "platform/store/object_time.h"

namespace weft::platform {
namespace {

using Cells = std::vector<Json>;

std::string AgeOf(const Json& object, FieldPath path, absl::Time now) {
  const absl::Time time = ParseObjectTime(StringField(object, path));
  return time == absl::InfinitePast() ? "<unknown>" : HumanDuration(now - time);
}

std::string Age(const Json& object, absl::Time now) {
  return AgeOf(object, {"metadata", "creationTimestamp"}, now);
}

std::string OrNone(std::string text) { return text.empty() ? "<none>" : text; }

size_t CountOf(const Json& object, FieldPath path) {
  const Json* const field = FindField(object, path);
  return field == nullptr ? 0 : field->size();
}

// The pod's containers as its columns tell of them.
struct PodSummary {
  std::string reason;  // why it is where it is
  int64_t ready = 0;
  int64_t restarts = 0;
  absl::Time last_restart = absl::InfinitePast();
};

bool IsSidecar(const Json& pod, const std::string& name) {
  const Json* const specs = FindField(pod, {"spec", "initContainers"});
  return specs != nullptr &&
         std::any_of(specs->items().begin(), specs->items().end(), [&](const Json& spec) {
           return StringField(spec, {"name"}) == name &&
                  StringField(spec, {"restartPolicy"}) == "Always";
         });
}

void CountRestarts(const Json& status, PodSummary* summary) {
  summary->restarts += IntField(status, {"restartCount"});
  summary->last_restart =
      std::max(summary->last_restart,
               ParseObjectTime(StringField(status, {"lastState", "terminated", "finishedAt"})));
}

std::string ReasonOfEnd(const Json& state) {
  const std::string reason = StringField(state, {"terminated", "reason"});
  if (!reason.empty()) return reason;
  const int64_t signal = IntField(state, {"terminated", "signal"});
  return signal != 0 ? absl::StrCat("Signal:", signal)
                     : absl::StrCat("ExitCode:", IntField(state, {"terminated", "exitCode"}));
}

// False: the main containers have not begun.
bool SummarizeInits(const Json& pod, PodSummary* summary) {
  const Json* const statuses = FindField(pod, {"status", "initContainerStatuses"});
  if (statuses == nullptr) return true;
  PodSummary sidecars;
  for (size_t i = 0; i < statuses->size(); ++i) {
    const Json& status = statuses->items()[i];
    const Json* const state = FindField(status, {"state"});
    const bool is_sidecar = IsSidecar(pod, StringField(status, {"name"}));
    CountRestarts(status, summary);
    if (is_sidecar) CountRestarts(status, &sidecars);
    if (state == nullptr) continue;
    const bool is_done =
        state->Find("terminated") != nullptr && IntField(*state, {"terminated", "exitCode"}) == 0;
    if (is_done && !is_sidecar) continue;
    if (is_sidecar && BoolField(status, {"started"})) {
      summary->ready += BoolField(status, {"ready"}) ? 1 : 0;
      continue;
    }
    const std::string waits = StringField(*state, {"waiting", "reason"});
    summary->reason = state->Find("terminated") != nullptr ? "Init:" + ReasonOfEnd(*state)
                      : !waits.empty() && waits != "PodInitializing"
                          ? "Init:" + waits
                          : absl::StrCat("Init:", i, "/", statuses->size());
    return false;
  }
  // Of what is done nobody counts the tries any more.
  summary->restarts = sidecars.restarts;
  summary->last_restart = sidecars.last_restart;
  return true;
}

bool IsInitialized(const Json& pod) {
  const Json* const conditions = FindField(pod, {"status", "conditions"});
  return conditions != nullptr &&
         std::any_of(conditions->items().begin(), conditions->items().end(), [](const Json& item) {
           return StringField(item, {"type"}) == "Initialized" &&
                  StringField(item, {"status"}) == "True";
         });
}

PodSummary Summarize(const Json& pod) {
  PodSummary summary;
  const std::string phase = StringField(pod, {"status", "phase"});
  summary.reason = StringField(pod, {"status", "reason"});
  if (summary.reason.empty()) summary.reason = phase;
  const bool has_begun = SummarizeInits(pod, &summary) || IsInitialized(pod);
  const Json* const statuses = FindField(pod, {"status", "containerStatuses"});
  if (statuses == nullptr || !has_begun) return summary;
  for (const Json& status : statuses->items()) {
    summary.ready += BoolField(status, {"ready"}) ? 1 : 0;
    CountRestarts(status, &summary);
    const std::string waits = StringField(status, {"state", "waiting", "reason"});
    if (!waits.empty()) summary.reason = waits;
    if (const Json* const state = FindField(status, {"state"});
        state != nullptr && state->Find("terminated") != nullptr)
      summary.reason = ReasonOfEnd(*state);
  }
  return summary;
}

size_t CountSidecars(const Json& pod) {
  const Json* const specs = FindField(pod, {"spec", "initContainers"});
  if (specs == nullptr) return 0;
  return static_cast<size_t>(std::count_if(
      specs->items().begin(), specs->items().end(),
      [](const Json& spec) { return StringField(spec, {"restartPolicy"}) == "Always"; }));
}

Cells PodCells(const Json& pod, absl::Time now) {
  const PodSummary summary = Summarize(pod);
  const bool has_restarted = summary.restarts > 0 && summary.last_restart != absl::InfinitePast();
  return {
      NameOf(pod),
      absl::StrCat(summary.ready, "/", CountOf(pod, {"spec", "containers"}) + CountSidecars(pod)),
      IsTerminating(pod) ? "Terminating" : summary.reason,
      has_restarted
          ? absl::StrCat(summary.restarts, " (", HumanDuration(now - summary.last_restart), " ago)")
          : absl::StrCat(summary.restarts),
      Age(pod, now),
      OrNone(StringField(pod, {"status", "podIP"})),
      OrNone(StringField(pod, {"spec", "nodeName"})),
      "<none>",
      "<none>"};
}

Cells ServiceCells(const Json& service, absl::Time now) {
  std::vector<std::string> ports;
  if (const Json* const list = FindField(service, {"spec", "ports"})) {
    for (const Json& port : list->items()) {
      ports.push_back(absl::StrCat(IntField(port, {"port"}), "/", StringField(port, {"protocol"})));
    }
  }
  std::vector<std::string> selector;
  if (const Json* const labels = FindField(service, {"spec", "selector"})) {
    for (const JsonMember& label : labels->members()) {
      selector.push_back(absl::StrCat(label.name, "=", label.value.AsString().value_or("")));
    }
  }
  return {NameOf(service),
          StringField(service, {"spec", "type"}),
          OrNone(StringField(service, {"spec", "clusterIP"})),
          "<none>",
          OrNone(absl::StrJoin(ports, ",")),
          Age(service, now),
          OrNone(absl::StrJoin(selector, ","))};
}

Cells EventCells(const Json& event, absl::Time now) {
  const std::string object =
      absl::StrCat(absl::AsciiStrToLower(StringField(event, {"involvedObject", "kind"})), "/",
                   StringField(event, {"involvedObject", "name"}));
  const std::string first = AgeOf(event, {"firstTimestamp"}, now);
  std::string last = AgeOf(event, {"lastTimestamp"}, now);
  return {last,
          StringField(event, {"type"}),
          StringField(event, {"reason"}),
          object,
          StringField(event, {"source", "component"}),
          StringField(event, {"message"}),
          first,
          IntField(event, {"count"}, 1),
          NameOf(event)};
}

Cells DataCells(const Json& object, absl::Time now) {
  return {NameOf(object), static_cast<int64_t>(CountOf(object, {"data"})), Age(object, now)};
}

std::string ShortAccessModes(const Json* modes) {
  std::vector<std::string> words;
  if (modes == nullptr) return "";
  for (const auto& [mode, word] :
       {std::pair{"ReadWriteOnce", "RWO"}, std::pair{"ReadOnlyMany", "ROX"},
        std::pair{"ReadWriteMany", "RWX"}, std::pair{"ReadWriteOncePod", "RWOP"}}) {
    for (const Json& item : modes->items())
      if (item == Json(mode)) words.push_back(word);
  }
  return absl::StrJoin(words, ",");
}

Cells ClaimCells(const Json& claim, absl::Time now) {
  const std::string mode = StringField(claim, {"spec", "volumeMode"});
  return {NameOf(claim),
          IsTerminating(claim) ? "Terminating" : StringField(claim, {"status", "phase"}),
          StringField(claim, {"spec", "volumeName"}),
          StringField(claim, {"status", "capacity", "storage"}),
          ShortAccessModes(FindField(claim, {"status", "accessModes"})),
          StringField(claim, {"spec", "storageClassName"}),
          "<unset>",
          Age(claim, now),
          mode.empty() ? "<unset>" : mode};
}

Cells SecretCells(const Json& object, absl::Time now) {
  return {NameOf(object), StringField(object, {"type"}),
          static_cast<int64_t>(CountOf(object, {"data"})), Age(object, now)};
}

Cells NamespaceCells(const Json& object, absl::Time now) {
  return {NameOf(object), StringField(object, {"status", "phase"}), Age(object, now)};
}

Cells NodeCells(const Json& node, absl::Time now) {
  std::string state = "Unknown";
  if (const Json* const conditions = FindField(node, {"status", "conditions"})) {
    for (const Json& condition : conditions->items()) {
      if (StringField(condition, {"type"}) != "Ready") continue;
      state = StringField(condition, {"status"}) == "True" ? "Ready" : "NotReady";
    }
  }
  return {NameOf(node), state, "<none>", Age(node, now),
          StringField(node, {"status", "nodeInfo", "kubeletVersion"})};
}

Cells LeaseCells(const Json& object, absl::Time now) {
  return {NameOf(object), StringField(object, {"spec", "holderIdentity"}), Age(object, now)};
}

Cells PlainCells(const Json& object, absl::Time now) { return {NameOf(object), Age(object, now)}; }

PrinterColumn ColumnOf(const char* name, const char* type = "string", int priority = 0) {
  return {name, type, "", name, priority};
}

Layout LayoutOf(const ResourceType& type) {
  const PrinterColumn name = ColumnOf("Name");
  const PrinterColumn age = ColumnOf("Age");
  if (type.plural == "pods") {
    return {{name, ColumnOf("Ready"), ColumnOf("Status"), ColumnOf("Restarts"), age,
             ColumnOf("IP", "string", 1), ColumnOf("Node", "string", 1),
             ColumnOf("Nominated Node", "string", 1), ColumnOf("Readiness Gates", "string", 1)},
            &PodCells};
  }
  if (type.plural == "services") {
    return {{name, ColumnOf("Type"), ColumnOf("Cluster-IP"), ColumnOf("External-IP"),
             ColumnOf("Port(s)"), age, ColumnOf("Selector", "string", 1)},
            &ServiceCells};
  }
  if (type.plural == "events") {
    return {
        {ColumnOf("Last Seen"), ColumnOf("Type"), ColumnOf("Reason"), ColumnOf("Object"),
         ColumnOf("Source", "string", 1), ColumnOf("Message"), ColumnOf("First Seen", "string", 1),
         ColumnOf("Count", "integer", 1), ColumnOf("Name", "string", 1)},
        &EventCells};
  }
  if (type.plural == "configmaps") return {{name, ColumnOf("Data", "integer"), age}, &DataCells};
  if (type.plural == "secrets")
    return {{name, ColumnOf("Type"), ColumnOf("Data", "integer"), age}, &SecretCells};
  if (type.plural == "persistentvolumeclaims") {
    return {{name, ColumnOf("Status"), ColumnOf("Volume"), ColumnOf("Capacity"),
             ColumnOf("Access Modes"), ColumnOf("StorageClass"), ColumnOf("VolumeAttributesClass"),
             age, ColumnOf("VolumeMode", "string", 1)},
            &ClaimCells};
  }
  if (type.plural == "namespaces") return {{name, ColumnOf("Status"), age}, &NamespaceCells};
  if (type.plural == "nodes")
    return {{name, ColumnOf("Status"), ColumnOf("Roles"), age, ColumnOf("Version")}, &NodeCells};
  if (type.plural == "leases") return {{name, ColumnOf("Holder"), age}, &LeaseCells};
  const Layout workload = WorkloadLayoutOf(type);
  return workload.columns.empty() ? Layout{{name, age}, &PlainCells} : workload;
}

Cells CustomCells(const ResourceType& type, const Json& object, absl::Time now) {
  Cells cells = {NameOf(object)};
  for (const PrinterColumn& column : type.columns) {
    const Json* const value = FindByJsonPath(object, column.path);
    if (value == nullptr) {
      cells.push_back(column.type == "date" ? Json("<unknown>") : Json(""));
    } else if (column.type == "date") {
      const absl::Time time = ParseObjectTime(value->AsString().value_or(""));
      cells.push_back(time == absl::InfinitePast() ? "<invalid>" : HumanDuration(now - time));
    } else {
      cells.push_back(*value);
    }
  }
  return cells;
}

Json ColumnDefinitions(const std::vector<PrinterColumn>& columns) {
  Json list = Json::MakeArray();
  for (const PrinterColumn& column : columns) {
    Json definition;
    definition.Set("name", column.name);
    definition.Set("type", column.type);
    definition.Set("format", column.name == "Name" ? "name" : "");
    definition.Set("description", column.description);
    definition.Set("priority", column.priority);
    list.Append(std::move(definition));
  }
  return list;
}

}  // namespace

std::string HumanDuration(absl::Duration duration) {
  const int64_t seconds = absl::ToInt64Seconds(duration);
  if (seconds < -1) return "<invalid>";
  if (seconds < 120) return absl::StrCat(std::max<int64_t>(seconds, 0), "s");
  const int64_t minutes = seconds / 60;
  const auto two = [](int64_t big, const char* unit, int64_t small, const char* small_unit) {
    return small == 0 ? absl::StrCat(big, unit) : absl::StrCat(big, unit, small, small_unit);
  };
  if (minutes < 10) return two(minutes, "m", seconds % 60, "s");
  if (minutes < 180) return absl::StrCat(minutes, "m");
  const int64_t hours = minutes / 60;
  if (hours < 8) return two(hours, "h", minutes % 60, "m");
  if (hours < 48) return absl::StrCat(hours, "h");
  const int64_t days = hours / 24;
  if (days < 8) return two(days, "d", hours % 24, "h");
  if (days < 365 * 2) return absl::StrCat(days, "d");
  if (days < 365 * 8) return two(days / 365, "y", days % 365, "d");
  return absl::StrCat(days / 365, "y");
}

const Json* FindByJsonPath(const Json& object, absl::string_view path) {
  const Json* at = &object;
  while (!path.empty() && at != nullptr) {
    if (path[0] == '.') {
      const size_t end = std::min(path.find_first_of(".[", 1), path.size());
      at = at->Find(path.substr(1, end - 1));
      path.remove_prefix(end);
      continue;
    }
    const size_t close = path.find(']');
    if (path[0] != '[' || close == absl::string_view::npos || at->size() == 0) return nullptr;
    const absl::string_view index = path.substr(1, close - 1);
    uint64_t number = at->size() - 1;
    if (index != "-1:" && (!absl::SimpleAtoi(index, &number) || number >= at->items().size()))
      return nullptr;
    if (!at->is_array()) return nullptr;
    at = &at->items()[number];
    path.remove_prefix(close + 1);
  }
  return at != nullptr && at->is_null() ? nullptr : at;
}

Json PartialMetadata(const Json& object) {
  Json partial;
  partial.Set("kind", "PartialObjectMetadata");
  partial.Set("apiVersion", "meta.k8s.io/v1");
  if (const Json* const meta = object.Find("metadata")) partial.Set("metadata", *meta);
  return partial;
}

Json MakeTable(const ResourceType& type, const std::vector<ObjectPtr>& objects, absl::Time now,
               bool with_columns, RowObject row_object) {
  Json table;
  table.Set("kind", "Table");
  table.Set("apiVersion", "meta.k8s.io/v1");
  table.Set("metadata", Json::MakeObject());
  const Layout layout = LayoutOf(type);
  if (with_columns) {
    std::vector<PrinterColumn> columns = layout.columns;
    if (type.is_custom) {
      columns = {ColumnOf("Name")};
      columns.insert(columns.end(), type.columns.begin(), type.columns.end());
    }
    table.Set("columnDefinitions", ColumnDefinitions(columns));
  } else {
    table.Set("columnDefinitions", Json());
  }
  Json rows = Json::MakeArray();
  for (const ObjectPtr& object : objects) {
    Json row;
    row.Set("cells", Json(Json::Array(type.is_custom ? CustomCells(type, *object, now)
                                                     : layout.cells(*object, now))));
    if (row_object == RowObject::kMetadata) row.Set("object", PartialMetadata(*object));
    if (row_object == RowObject::kObject) row.Set("object", *object);
    rows.Append(std::move(row));
  }
  table.Set("rows", std::move(rows));
  return table;
}

}  // namespace weft::platform
