// SPDX-License-Identifier: Apache-2.0
#include "platform/apiserver/pod_metrics.h"

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "platform/apiserver/object_requests.h"
#include "platform/object/fields.h"
#include "platform/object/object_time.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

std::string MetricsApiVersion() { return absl::StrCat(kMetricsGroup, "/", kMetricsVersion); }

struct UsedAmounts {
  double processors = 0;
  int64_t memory_bytes = 0;
};

Json UsageOf(const UsedAmounts& amounts) {
  Json usage;
  usage.Set("cpu", absl::StrCat(std::llround(amounts.processors * 1e9), "n"));
  usage.Set("memory", absl::StrCat(amounts.memory_bytes / 1024, "Ki"));
  return usage;
}

// What a request asks for: one by its name, or all that the labels say.
struct MetricsPath {
  bool is_nodes = false;
  ObjectName name;
};

StatusOr<MetricsPath> ParseMetricsPath(absl::string_view path) {
  std::vector<std::string> parts;
  for (const absl::string_view part : absl::StrSplit(path, '/', absl::SkipEmpty()))
    parts.push_back(DecodePercent(part));
  MetricsPath parsed;
  size_t at = 0;
  if (parts.size() >= 2 && parts[0] == "namespaces") {
    parsed.name.namespace_name = parts[1];
    at = 2;
  }
  const bool is_known = parts.size() > at && parts.size() <= at + 2 &&
                        (parts[at] == "pods" || (at == 0 && parts[at] == "nodes"));
  if (!is_known)
    return ApiError(404, "NotFound", "the server could not find the requested resource");
  parsed.is_nodes = parts[at] == "nodes";
  if (parts.size() > at + 1) parsed.name.name = parts[at + 1];
  return parsed;
}

class MetricsAnswerer {
 public:
  MetricsAnswerer(ObjectStore* store, PodUsage usage, std::map<std::string, std::string> query)
      : store_(store), usage_(std::move(usage)), query_(std::move(query)) {}

  StatusOr<Json> Answer(const MetricsPath& path) {
    const ResourceType& type = path.is_nodes ? Nodes() : Pods();
    std::vector<ObjectPtr> objects;
    if (path.name.name.empty()) {
      ListOptions options;
      options.namespace_name = path.name.namespace_name;
      options.label_selector = query_["labelSelector"];
      options.field_selector = query_["fieldSelector"];
      WEFT_ASSIGN_OR_RETURN(ObjectList list, store_->List(type, options));
      objects = std::move(list.items);
    } else {
      WEFT_ASSIGN_OR_RETURN(ObjectPtr object, store_->Get(type, path.name));
      objects.push_back(std::move(object));
    }
    Json items = Json::MakeArray();
    for (const ObjectPtr& object : objects) {
      std::optional<Json> metrics = path.is_nodes ? OfNode(*object) : OfPod(*object);
      if (metrics.has_value() && !path.name.name.empty()) return *std::move(metrics);
      if (metrics.has_value()) items.Append(*std::move(metrics));
    }
    if (!path.name.name.empty()) return ObjectNotFound(type, path.name.name);
    Json list;
    list.Set("kind", path.is_nodes ? "NodeMetricsList" : "PodMetricsList");
    list.Set("apiVersion", MetricsApiVersion());
    list.Set("metadata", Json::MakeObject());
    list.Set("items", std::move(items));
    return list;
  }

 private:
  Json Head(const char* kind, const Json& object) const {
    Json metrics;
    metrics.Set("kind", kind);
    metrics.Set("apiVersion", MetricsApiVersion());
    SetField(&metrics, {"metadata", "name"}, NameOf(object));
    if (!NamespaceOf(object).empty())
      SetField(&metrics, {"metadata", "namespace"}, NamespaceOf(object));
    if (const Json* const labels = FindField(object, {"metadata", "labels"}))
      SetField(&metrics, {"metadata", "labels"}, *labels);
    SetField(&metrics, {"metadata", "creationTimestamp"}, FormatObjectTime(usage_.time));
    metrics.Set("timestamp", FormatObjectTime(usage_.time));
    metrics.Set("window", absl::StrCat(absl::ToInt64Milliseconds(usage_.window), "ms"));
    return metrics;
  }

  // Nothing of a pod that does not run.
  std::optional<Json> OfPod(const Json& pod) const {
    Json containers = Json::MakeArray();
    for (const ContainerUsage& usage : usage_.containers) {
      if (usage.pod.name != NameOf(pod) || usage.pod.namespace_name != NamespaceOf(pod)) continue;
      Json container;
      container.Set("name", usage.container);
      container.Set("usage", UsageOf({usage.processors, usage.memory_bytes}));
      containers.Append(std::move(container));
    }
    if (containers.size() == 0) return std::nullopt;
    Json metrics = Head("PodMetrics", pod);
    metrics.Set("containers", std::move(containers));
    return metrics;
  }

  // What its pods use: other programs of the machine are not the cluster's.
  std::optional<Json> OfNode(const Json& node) const {
    UsedAmounts sum;
    for (const ContainerUsage& usage : usage_.containers) {
      if (usage.node != NameOf(node)) continue;
      sum.processors += usage.processors;
      sum.memory_bytes += usage.memory_bytes;
    }
    Json metrics = Head("NodeMetrics", node);
    metrics.Set("usage", UsageOf(sum));
    return metrics;
  }

  ObjectStore* const store_;
  const PodUsage usage_;
  std::map<std::string, std::string> query_;
};

StatusOr<Json> AnswerMetrics(PodAccess* pods, ObjectStore* store, const HttpRequest& http,
                             absl::string_view path) {
  if (http.method != "GET") {
    return ApiError(405, "MethodNotAllowed",
                    "the server does not allow this method on the requested resource");
  }
  WEFT_ASSIGN_OR_RETURN(const MetricsPath parsed, ParseMetricsPath(path));
  WEFT_ASSIGN_OR_RETURN(PodUsage usage, pods->Measure());
  return MetricsAnswerer(store, std::move(usage), ParseHttpQuery(http.query)).Answer(parsed);
}

}  // namespace

std::optional<HttpResponse> AnswerPodMetrics(PodAccess* pods, ObjectStore* store,
                                             const HttpRequest& http) {
  absl::string_view path = http.path;
  if (pods == nullptr ||
      !absl::ConsumePrefix(&path, absl::StrCat("/apis/", MetricsApiVersion(), "/")))
    return std::nullopt;
  const StatusOr<Json> answer = AnswerMetrics(pods, store, http, path);
  return answer.ok() ? JsonResponse(200, *answer) : ErrorResponse(answer.status());
}

Json MetricsResources() {
  Json list;
  list.Set("kind", "APIResourceList");
  list.Set("apiVersion", "v1");
  list.Set("groupVersion", MetricsApiVersion());
  Json resources = Json::MakeArray();
  for (const auto& [plural, kind] :
       {std::pair{"nodes", "NodeMetrics"}, std::pair{"pods", "PodMetrics"}}) {
    Json resource;
    resource.Set("name", plural);
    resource.Set("singularName", "");
    resource.Set("namespaced", std::string(plural) == "pods");
    resource.Set("kind", kind);
    resource.Set("verbs", Json(Json::Array{Json("get"), Json("list")}));
    resources.Append(std::move(resource));
  }
  list.Set("resources", std::move(resources));
  return list;
}

}  // namespace weft::platform
