// SPDX-License-Identifier: Apache-2.0
#include "platform/resources/pod_needs.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/resources/gpu_needs.h"

namespace weft::platform {
namespace {

const Json::Array& ItemsAt(const Json& object, FieldPath path) {
  static const Json::Array* const kNone = new Json::Array();
  const Json* const list = FindField(object, path);
  return list == nullptr ? *kNone : list->items();
}

// Requests, and limits where no request is.
StatusOr<Amounts> RequestsOf(const Json& container, ResourceNames* names) {
  WEFT_ASSIGN_OR_RETURN(Amounts requests,
                        ReadAmounts(FindField(container, {"resources", "requests"}), names));
  WEFT_ASSIGN_OR_RETURN(const Amounts limits,
                        ReadAmounts(FindField(container, {"resources", "limits"}), names));
  const Json* const written = FindField(container, {"resources", "requests"});
  for (size_t i = 0; i < limits.size(); ++i) {
    if (written == nullptr || written->Find(names->NameOf(i)) == nullptr)
      if (limits[i] > 0) SetAmount(&requests, i, limits[i]);
  }
  return requests;
}

// As a kubelet reckons: the containers and sidecars run together, each init container beside the
// sidecars that began before it.
StatusOr<Amounts> SumOfContainers(const Json& pod, ResourceNames* names) {
  Amounts sidecars;
  Amounts most;
  for (const Json& container : ItemsAt(pod, {"spec", "initContainers"})) {
    WEFT_ASSIGN_OR_RETURN(Amounts requests, RequestsOf(container, names));
    if (StringField(container, {"restartPolicy"}) == "Always") {
      AddAmounts(requests, &sidecars);
      RaiseAmounts(sidecars, &most);
    } else {
      AddAmounts(sidecars, &requests);
      RaiseAmounts(requests, &most);
    }
  }
  Amounts together = sidecars;
  for (const Json& container : ItemsAt(pod, {"spec", "containers"})) {
    WEFT_ASSIGN_OR_RETURN(const Amounts requests, RequestsOf(container, names));
    AddAmounts(requests, &together);
  }
  RaiseAmounts(together, &most);
  WEFT_ASSIGN_OR_RETURN(const Amounts overhead,
                        ReadAmounts(FindField(pod, {"spec", "overhead"}), names));
  AddAmounts(overhead, &most);
  AddAmounts(Amounts({0, 0, 1}), &most);
  return most;
}

StatusOr<NodeTerm> ReadNodeTerm(const Json& json) {
  NodeTerm term;
  for (const Json& expression : ItemsAt(json, {"matchExpressions"})) {
    WEFT_ASSIGN_OR_RETURN(LabelRequirement requirement, ReadLabelRequirement(expression));
    term.labels.push_back(std::move(requirement));
  }
  for (const Json& expression : ItemsAt(json, {"matchFields"})) {
    WEFT_ASSIGN_OR_RETURN(LabelRequirement requirement, ReadLabelRequirement(expression));
    term.fields.push_back(std::move(requirement));
  }
  return term;
}

Status ReadNodeAffinity(const Json& affinity, PodNeeds* needs) {
  const Json* const required =
      FindField(affinity, {"requiredDuringSchedulingIgnoredDuringExecution"});
  if (required != nullptr) {
    needs->has_node_terms = true;
    for (const Json& json : ItemsAt(*required, {"nodeSelectorTerms"})) {
      WEFT_ASSIGN_OR_RETURN(NodeTerm term, ReadNodeTerm(json));
      needs->node_terms.push_back(std::move(term));
    }
  }
  for (const Json& json : ItemsAt(affinity, {"preferredDuringSchedulingIgnoredDuringExecution"})) {
    const Json* const preference = json.Find("preference");
    if (preference == nullptr) continue;
    WEFT_ASSIGN_OR_RETURN(NodeTerm term, ReadNodeTerm(*preference));
    needs->preferred_nodes.emplace_back(IntField(json, {"weight"}, 1), std::move(term));
  }
  return absl::OkStatus();
}

StatusOr<PodTerm> ReadPodTerm(const Json& json, const std::string& namespace_name) {
  PodTerm term;
  WEFT_ASSIGN_OR_RETURN(term.selector, ReadLabelSelector(FindField(json, {"labelSelector"})));
  term.topology_key = StringField(json, {"topologyKey"});
  for (const Json& name : ItemsAt(json, {"namespaces"}))
    term.namespaces.push_back(name.AsString().value_or(""));
  // Labels of namespaces are not known here: the empty selector means all of them, others none but
  // those that are named.
  const Json* const selector = FindField(json, {"namespaceSelector"});
  term.is_all_namespaces = selector != nullptr && selector->size() == 0;
  if (selector == nullptr && term.namespaces.empty()) term.namespaces = {namespace_name};
  return term;
}

Status ReadPodAffinity(const Json& affinity, int64_t sign, PodNeeds* needs) {
  for (const Json& json : ItemsAt(affinity, {"requiredDuringSchedulingIgnoredDuringExecution"})) {
    WEFT_ASSIGN_OR_RETURN(PodTerm term, ReadPodTerm(json, needs->namespace_name));
    (sign > 0 ? needs->affinity : needs->anti_affinity).push_back(std::move(term));
  }
  for (const Json& json : ItemsAt(affinity, {"preferredDuringSchedulingIgnoredDuringExecution"})) {
    const Json* const inner = json.Find("podAffinityTerm");
    if (inner == nullptr) continue;
    WEFT_ASSIGN_OR_RETURN(PodTerm term, ReadPodTerm(*inner, needs->namespace_name));
    term.weight = sign * IntField(json, {"weight"}, 1);
    needs->preferred_affinity.push_back(std::move(term));
  }
  return absl::OkStatus();
}

Status ReadConstraints(const Json& pod, PodNeeds* needs) {
  for (const auto& [key, value] : ReadLabels(FindField(pod, {"spec", "nodeSelector"})))
    needs->node_selector.push_back({key, LabelRequirement::Operator::kIn, {value}});
  if (const Json* const affinity = FindField(pod, {"spec", "affinity", "nodeAffinity"}))
    WEFT_RETURN_IF_ERROR(ReadNodeAffinity(*affinity, needs));
  if (const Json* const affinity = FindField(pod, {"spec", "affinity", "podAffinity"}))
    WEFT_RETURN_IF_ERROR(ReadPodAffinity(*affinity, 1, needs));
  if (const Json* const affinity = FindField(pod, {"spec", "affinity", "podAntiAffinity"}))
    WEFT_RETURN_IF_ERROR(ReadPodAffinity(*affinity, -1, needs));
  for (const Json& json : ItemsAt(pod, {"spec", "tolerations"})) {
    needs->tolerations.push_back({StringField(json, {"key"}), StringField(json, {"value"}),
                                  StringField(json, {"effect"}),
                                  StringField(json, {"operator"}) == "Exists"});
  }
  for (const Json& json : ItemsAt(pod, {"spec", "topologySpreadConstraints"})) {
    Spread spread;
    spread.max_skew = IntField(json, {"maxSkew"}, 1);
    spread.topology_key = StringField(json, {"topologyKey"});
    spread.is_required = StringField(json, {"whenUnsatisfiable"}) != "ScheduleAnyway";
    WEFT_ASSIGN_OR_RETURN(spread.selector, ReadLabelSelector(FindField(json, {"labelSelector"})));
    needs->spread.push_back(std::move(spread));
  }
  return absl::OkStatus();
}

void ReadPorts(const Json& pod, PodNeeds* needs) {
  for (const char* list : {"containers", "initContainers"}) {
    for (const Json& container : ItemsAt(pod, {"spec", list})) {
      for (const Json& port : ItemsAt(container, {"ports"})) {
        const int64_t number = IntField(port, {"hostPort"});
        if (number <= 0) continue;
        const std::string protocol = StringField(port, {"protocol"});
        needs->host_ports.push_back(absl::StrCat(protocol.empty() ? "TCP" : protocol, "/", number));
      }
    }
  }
}

bool FieldHolds(const LabelRequirement& requirement, const NodeDescription& node) {
  return Matches(requirement, Labels({{"metadata.name", node.name}}));
}

}  // namespace

bool Tolerates(const std::vector<Toleration>& tolerations, const Taint& taint) {
  return std::any_of(tolerations.begin(), tolerations.end(), [&](const Toleration& each) {
    if (!each.effect.empty() && each.effect != taint.effect) return false;
    if (each.key.empty()) return each.is_any_value;
    if (each.key != taint.key) return false;
    return each.is_any_value || each.value == taint.value;
  });
}

bool Matches(const NodeTerm& term, const NodeDescription& node) {
  // A term that asks for nothing matches no node, as on clusters.
  if (term.labels.empty() && term.fields.empty()) return false;
  return std::all_of(term.labels.begin(), term.labels.end(),
                     [&](const LabelRequirement& each) { return Matches(each, node.labels); }) &&
         std::all_of(term.fields.begin(), term.fields.end(),
                     [&](const LabelRequirement& each) { return FieldHolds(each, node); });
}

StatusOr<std::shared_ptr<const PodNeeds>> ReadPodNeeds(const Json& pod, ResourceNames* names) {
  auto needs = std::make_shared<PodNeeds>();
  needs->namespace_name = NamespaceOf(pod);
  needs->labels = ReadLabels(FindField(pod, {"metadata", "labels"}));
  WEFT_ASSIGN_OR_RETURN(needs->amounts, SumOfContainers(pod, names));
  WEFT_ASSIGN_OR_RETURN(needs->gpu, ReadGpuNeeds(pod));
  WEFT_RETURN_IF_ERROR(ReadConstraints(pod, needs.get()));
  ReadPorts(pod, needs.get());
  return std::shared_ptr<const PodNeeds>(std::move(needs));
}

}  // namespace weft::platform
