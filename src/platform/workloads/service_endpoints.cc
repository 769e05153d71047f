// SPDX-License-Identifier: Apache-2.0
#include "platform/workloads/service_endpoints.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/object/pod_view.h"
#include "platform/reconcile/owned_objects.h"
#include "platform/store/api_error.h"
#include "platform/workloads/owned_pods.h"

namespace weft::platform {
namespace {

constexpr size_t kMostAddresses = 1000;  // of Endpoints, as a cluster holds it
constexpr size_t kMostInSlice = 100;
constexpr char kHeadless[] = "service.kubernetes.io/headless";
constexpr char kLoopback[] = "127.0.0.1";

// What of a pod concerns its services.
Json KeepOfPod(const Json& pod) {
  Json kept;
  const auto keep = [&](const char* part, const char* field) {
    if (const Json* const held = FindField(pod, {part, field}))
      SetField(&kept, {part, field}, *held);
  };
  for (const char* field :
       {"name", "namespace", "uid", "resourceVersion", "labels", "deletionTimestamp"})
    keep("metadata", field);
  keep("spec", "nodeName");
  keep("status", "phase");
  keep("status", "podIP");
  Json containers = Json::MakeArray();
  for (const Json& container : PodView(pod).containers()) {
    Json ports;
    if (const Json* const held = container.Find("ports")) ports.Set("ports", *held);
    containers.Append(std::move(ports));
  }
  SetField(&kept, {"spec", "containers"}, std::move(containers));
  if (const Json* const ready = ConditionOf(pod, "Ready"))
    SetField(&kept, {"status", "conditions"}, Json(Json::Array{*ready}));
  return kept;
}

bool SameButRevision(Json a, Json b) {
  EraseField(&a, {"metadata", "resourceVersion"});
  EraseField(&b, {"metadata", "resourceVersion"});
  return SameJson(a, b);
}

bool IsReady(const Json& service, const Json& pod) {
  return BoolField(service, {"spec", "publishNotReadyAddresses"}) || PodView(pod).is_ready();
}

std::string AddressOf(const Json& pod) {
  const std::string address = StringField(pod, {"status", "podIP"});
  return address.empty() ? kLoopback : address;
}

// Where the container listens: the number itself, or that of the port of that name. 0: none.
int64_t TargetOf(const Json& port, const Json& pod) {
  const Json* const target = port.Find("targetPort");
  if (target == nullptr) return IntField(port, {"port"});
  if (target->is_int()) return target->AsInt().value_or(0);
  for (const Json& container : PodView(pod).containers()) {
    const Json* const ports = container.Find("ports");
    if (ports == nullptr) continue;
    for (const Json& held : ports->items()) {
      const std::string protocol = StringField(held, {"protocol"});
      if (StringField(held, {"name"}) == target->AsString().value_or("") &&
          (protocol.empty() ? "TCP" : protocol) == StringField(port, {"protocol"}))
        return IntField(held, {"containerPort"});
    }
  }
  return 0;
}

// Of the service, as this pod serves them. `with_names`: also where a port has none.
Json PortsFor(const Json& service, const Json& pod, bool with_names) {
  Json ports = Json::MakeArray();
  const Json* const list = FindField(service, {"spec", "ports"});
  if (list == nullptr) return ports;
  for (const Json& port : list->items()) {
    const int64_t target = TargetOf(port, pod);
    if (target == 0) continue;
    Json entry;
    const std::string name = StringField(port, {"name"});
    if (with_names || !name.empty()) entry.Set("name", name);
    entry.Set("port", target);
    entry.Set("protocol", StringField(port, {"protocol"}));
    const std::string application = StringField(port, {"appProtocol"});
    if (!application.empty()) entry.Set("appProtocol", application);
    ports.Append(std::move(entry));
  }
  return ports;
}

Json TargetRef(const Json& pod) {
  Json reference;
  reference.Set("kind", "Pod");
  reference.Set("namespace", NamespaceOf(pod));
  reference.Set("name", NameOf(pod));
  reference.Set("uid", UidOf(pod));
  return reference;
}

Json MetadataFor(const Json& service, const std::string& name) {
  Json metadata;
  metadata.Set("name", name);
  metadata.Set("namespace", NamespaceOf(service));
  metadata.Set("ownerReferences", Json(Json::Array{ControllerReference(service)}));
  if (const Json* const labels = FindField(service, {"metadata", "labels"}))
    metadata.Set("labels", *labels);
  if (StringField(service, {"spec", "clusterIP"}) == "None")
    SetField(&metadata, {"labels", kHeadless}, "");
  return metadata;
}

// By the ports that they serve, since one list of ports stands for all addresses beside it.
std::map<std::string, std::vector<ObjectPtr>> ByPorts(const Json& service,
                                                      const std::vector<ObjectPtr>& pods) {
  std::map<std::string, std::vector<ObjectPtr>> groups;
  for (const ObjectPtr& pod : pods) {
    if (PodView(*pod).is_running() && PodView(*pod).is_bound())
      groups[PortsFor(service, *pod, true).Dump()].push_back(pod);
  }
  return groups;
}

std::string SliceName(const Json& service, size_t number) {
  return NameWithSuffix(absl::StrCat(NameOf(service), "-"),
                        absl::StrCat(UidOf(service), "/", number));
}

Json MakeSlice(const Json& service, size_t number) {
  Json slice;
  slice.Set("apiVersion", EndpointSlices().ApiVersion());
  slice.Set("kind", EndpointSlices().kind);
  Json metadata = MetadataFor(service, SliceName(service, number));
  SetField(&metadata, {"labels", "endpointslice.kubernetes.io/managed-by"},
           "endpointslice-controller.k8s.io");
  SetField(&metadata, {"labels", "kubernetes.io/service-name"}, NameOf(service));
  slice.Set("metadata", std::move(metadata));
  slice.Set("addressType", "IPv4");
  slice.Set("endpoints", Json::MakeArray());
  slice.Set("ports", Json::MakeArray());
  return slice;
}

Json EndpointOf(const Json& service, const Json& pod) {
  const bool is_ready = IsReady(service, pod);
  const bool ends = IsTerminating(pod);
  Json endpoint;
  endpoint.Set("addresses", Json(Json::Array{Json(AddressOf(pod))}));
  Json conditions;
  conditions.Set("ready", is_ready && !ends);
  conditions.Set("serving", is_ready);
  conditions.Set("terminating", ends);
  endpoint.Set("conditions", std::move(conditions));
  endpoint.Set("nodeName", PodView(pod).node());
  endpoint.Set("targetRef", TargetRef(pod));
  return endpoint;
}

}  // namespace

Json MakeEndpoints(const Json& service, const std::vector<ObjectPtr>& pods) {
  Json endpoints;
  endpoints.Set("apiVersion", Endpoints().ApiVersion());
  endpoints.Set("kind", Endpoints().kind);
  endpoints.Set("metadata", MetadataFor(service, NameOf(service)));
  Json subsets = Json::MakeArray();
  size_t count = 0;
  for (const auto& [ports, group] : ByPorts(service, pods)) {
    Json subset;
    for (const ObjectPtr& pod : group) {
      if (IsTerminating(*pod) || ++count > kMostAddresses) continue;
      Json address;
      address.Set("ip", AddressOf(*pod));
      address.Set("nodeName", PodView(*pod).node());
      address.Set("targetRef", TargetRef(*pod));
      const char* const list = IsReady(service, *pod) ? "addresses" : "notReadyAddresses";
      if (subset.Find(list) == nullptr) subset.Set(list, Json::MakeArray());
      subset.FindMutable(list)->Append(std::move(address));
    }
    if (subset.is_null()) continue;
    Json served = PortsFor(service, *group.front(), false);
    if (served.size() > 0) subset.Set("ports", std::move(served));
    subsets.Append(std::move(subset));
  }
  if (count > kMostAddresses) {
    SetField(&endpoints, {"metadata", "annotations", "endpoints.kubernetes.io/over-capacity"},
             "truncated");
  }
  if (subsets.size() > 0) endpoints.Set("subsets", std::move(subsets));
  return endpoints;
}

std::vector<Json> MakeEndpointSlices(const Json& service, const std::vector<ObjectPtr>& pods) {
  std::vector<Json> slices;
  for (const auto& [ports, group] : ByPorts(service, pods)) {
    for (size_t i = 0; i < group.size(); ++i) {
      if (i % kMostInSlice == 0) {
        slices.push_back(MakeSlice(service, slices.size()));
        slices.back().Set("ports", PortsFor(service, *group[i], true));
      }
      slices.back().FindMutable("endpoints")->Append(EndpointOf(service, *group[i]));
    }
  }
  return slices;
}

ServiceEndpoints::ServiceEndpoints(ObjectStore* store, const Clock* clock)
    : store_(store),
      queue_(clock),
      services_(store, Services(), {}, clock),
      pods_(store, Pods(), {.keep = &KeepOfPod}, clock) {
  services_.AddHandler([this](const ObjectPtr& previous, const ObjectPtr& service) {
    OnService(previous, service);
  });
  pods_.AddHandler(
      [this](const ObjectPtr& previous, const ObjectPtr& pod) { OnPod(previous, pod); });
}

ServiceEndpoints::~ServiceEndpoints() { loop_.reset(); }

void ServiceEndpoints::Start() {
  loop_ = std::make_unique<ControllerLoop>(
      "endpoints", &queue_, std::vector<Informer*>{&pods_, &services_},
      [this](const std::string& key) { return Look(key); }, 1);
}

void ServiceEndpoints::Settle() {
  pods_.Maintain();
  services_.Maintain();
  while (ControllerLoop::Step(
      "endpoints", &queue_, [this](const std::string& key) { return Look(key); },
      absl::ZeroDuration())) {
  }
}

void ServiceEndpoints::OnService(const ObjectPtr& previous, const ObjectPtr& service) {
  const Json& of = service == nullptr ? *previous : *service;
  const std::string key = KeyOfObject(of);
  absl::MutexLock lock(&mutex_);
  if (const auto held = label_of_.find(key); held != label_of_.end()) {
    Names& names = services_at_[held->second];
    names.erase(key);
    if (names.empty()) services_at_.erase(held->second);
    label_of_.erase(held);
  }
  const Json* const selector =
      service == nullptr ? nullptr : FindField(*service, {"spec", "selector"});
  if (selector == nullptr || selector->size() == 0) return;
  Label best;
  size_t fewest = SIZE_MAX;
  for (const JsonMember& member : selector->members()) {
    Label label(NamespaceOf(of), member.name, member.value.AsString().value_or(""));
    const auto there = services_at_.find(label);
    const size_t count = there == services_at_.end() ? 0 : there->second.size();
    if (count < fewest) {
      fewest = count;
      best = std::move(label);
    }
  }
  services_at_[best].insert(key);
  label_of_[key] = best;
  queue_.Add(key);
}

void ServiceEndpoints::OnPod(const ObjectPtr& previous, const ObjectPtr& pod) {
  if (previous != nullptr && pod != nullptr && SameButRevision(*previous, *pod)) return;
  absl::MutexLock lock(&mutex_);
  for (const bool is_new : {false, true}) {
    const ObjectPtr& of = is_new ? pod : previous;
    const Json* const labels = of == nullptr ? nullptr : FindField(*of, {"metadata", "labels"});
    if (labels == nullptr) continue;
    for (const JsonMember& member : labels->members()) {
      const Label label(NamespaceOf(*of), member.name, member.value.AsString().value_or(""));
      Names& names = pods_at_[label];
      is_new ? (void)names.insert(NameOf(*of)) : (void)names.erase(NameOf(*of));
      if (names.empty()) pods_at_.erase(label);
      const auto services = services_at_.find(label);
      if (services == services_at_.end()) continue;
      for (const std::string& key : services->second) queue_.Add(key);
    }
  }
}

std::vector<ObjectPtr> ServiceEndpoints::PodsOf(const Json& service) const {
  const Json* const selector = FindField(service, {"spec", "selector"});
  Names names;
  {
    absl::MutexLock lock(&mutex_);
    bool is_first = true;
    for (const JsonMember& member : selector->members()) {
      const auto there =
          pods_at_.find({NamespaceOf(service), member.name, member.value.AsString().value_or("")});
      if (there == pods_at_.end()) return {};
      if (is_first || there->second.size() < names.size()) names = there->second;
      is_first = false;
    }
  }
  std::vector<ObjectPtr> pods;
  for (const std::string& name : names) {
    ObjectPtr pod = pods_.Get(NamespaceOf(service), name);
    const bool is_meant =
        pod != nullptr &&
        std::all_of(
            selector->members().begin(), selector->members().end(), [&](const JsonMember& member) {
              return PodView(*pod).label(member.name) == member.value.AsString().value_or("");
            });
    if (is_meant) pods.push_back(std::move(pod));
  }
  return pods;
}

StatusOr<absl::Duration> ServiceEndpoints::Look(const std::string& key) {
  const auto [space, name] = SplitKey(key);
  const ObjectPtr service = services_.Get(space, name);
  const Json* const selector =
      service == nullptr ? nullptr : FindField(*service, {"spec", "selector"});
  if (selector == nullptr || selector->size() == 0 || IsTerminating(*service) ||
      StringField(*service, {"spec", "type"}) == "ExternalName")
    return absl::InfiniteDuration();
  const std::vector<ObjectPtr> pods = PodsOf(*service);
  WEFT_RETURN_IF_ERROR(Keep(Endpoints(), *service, MakeEndpoints(*service, pods)));
  const std::vector<Json> slices = MakeEndpointSlices(*service, pods);
  for (const Json& slice : slices) WEFT_RETURN_IF_ERROR(Keep(EndpointSlices(), *service, slice));
  WEFT_RETURN_IF_ERROR(DropSlicesFrom(slices.size(), *service));
  return absl::InfiniteDuration();
}

Status ServiceEndpoints::Keep(const ResourceType& type, const Json& service, Json wanted) {
  const ObjectName name{NamespaceOf(wanted), NameOf(wanted)};
  const StatusOr<ObjectPtr> held = store_->Get(type, name);
  if (!held.ok()) {
    if (!IsObjectNotFound(held.status())) return held.status();
    // Nobody asks for what never was; a service may wait long for its first pod.
    if (type == Endpoints() && wanted.Find("subsets") == nullptr) return absl::OkStatus();
    return store_->Create(type, name.namespace_name, std::move(wanted), {}).status();
  }
  // Made by somebody by hand: that is theirs.
  if (!IsControlledBy(**held, UidOf(service))) return absl::OkStatus();
  Json next = **held;
  for (const char* field : {"subsets", "endpoints", "ports"}) {
    const Json* const value = wanted.Find(field);
    value == nullptr ? (void)next.Erase(field) : next.Set(field, *value);
  }
  for (const char* field : {"labels", "annotations"}) {
    const Json* const value = FindField(wanted, {"metadata", field});
    value == nullptr ? EraseField(&next, {"metadata", field})
                     : SetField(&next, {"metadata", field}, *value);
  }
  if (SameJson(next, **held)) return absl::OkStatus();
  return store_->Update(type, std::move(next), {}).status();
}

Status ServiceEndpoints::DropSlicesFrom(size_t first, const Json& service) {
  for (size_t number = first;; ++number) {
    const ObjectName name{NamespaceOf(service), SliceName(service, number)};
    const StatusOr<ObjectPtr> held = store_->Get(EndpointSlices(), name);
    if (IsObjectNotFound(held.status())) return absl::OkStatus();
    WEFT_RETURN_IF_ERROR(held.status());
    const Status gone = store_->Delete(EndpointSlices(), name, {}).status();
    if (!gone.ok() && !IsObjectNotFound(gone)) return gone;
  }
}

}  // namespace weft::platform
