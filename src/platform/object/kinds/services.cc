// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "platform/object/columns.h"
#include "platform/object/fields.h"
#include "platform/object/kind_spec.h"
#include "platform/object/metadata_checks.h"
#include "platform/object/own_address.h"
#include "platform/object/pod_checks.h"
#include "platform/object/probe_checks.h"

namespace weft::platform::kinds::services {
namespace {

void DefaultService(const Json* /*old*/, const std::string& /*version*/, Json* service) {
  SetDefault(service, {"spec"}, Json::MakeObject());
  SetDefault(service, {"spec", "type"}, "ClusterIP");
  SetDefault(service, {"spec", "sessionAffinity"}, "None");
  // There is no network of services here: names lead to the loopback interface, as do the
  // addresses of those that ask for one.
  const std::string own = OwnAddressOfService(*service);
  SetDefault(service, {"spec", "clusterIP"}, own.empty() ? "None" : own);
  SetDefault(service, {"spec", "clusterIPs"},
             Json(Json::Array{Json(StringField(*service, {"spec", "clusterIP"}))}));
  SetDefault(service, {"spec", "internalTrafficPolicy"}, "Cluster");
  SetDefault(service, {"spec", "ipFamilies"}, Json(Json::Array{Json("IPv4")}));
  SetDefault(service, {"spec", "ipFamilyPolicy"}, "SingleStack");
  Json* const ports = service->FindMutable("spec")->FindMutable("ports");
  if (ports != nullptr && ports->is_array()) {
    for (Json& port : *ports->mutable_items()) {
      if (!port.is_object()) continue;
      SetDefault(&port, {"protocol"}, "TCP");
      SetDefault(&port, {"targetPort"}, IntField(port, {"port"}));
    }
  }
  SetDefault(service, {"status"}, Json::MakeObject());
  SetDefault(service, {"status", "loadBalancer"}, Json::MakeObject());
}

void CheckService(const Json* /*old*/, const Json& service, Problems* problems) {
  const std::string said = StringField(service, {"spec", "type"});
  static const auto* const types =
      new std::vector<std::string>{"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"};
  if (std::find(types->begin(), types->end(), said) == types->end())
    problems->Unsupported(service, "spec.type", said, *types);
  CheckWord(*FindField(service, {"spec"}), "spec", "sessionAffinity", {"ClientIP", "None"},
            problems);
  const std::string address = StringField(service, {"spec", "clusterIP"});
  if (!address.empty() && address != "None")
    CheckIpAddress(service, "spec.clusterIPs[0]", address, problems);
  if (said == "ExternalName" && StringField(service, {"spec", "externalName"}).empty())
    problems->Required(service, "spec.externalName");
  if (const Json* const selector = FindField(service, {"spec", "selector"}))
    CheckLabels(*selector, "spec.selector", problems);
  const Json* const ports = FindField(service, {"spec", "ports"});
  std::set<std::string> names;
  for (size_t i = 0; ports != nullptr && i < ports->items().size(); ++i) {
    const Json& port = ports->items()[i];
    const std::string at = absl::StrCat("spec.ports[", i, "]");
    const std::string name = StringField(port, {"name"});
    if (name.empty() && ports->size() > 1) problems->Required(port, absl::StrCat(at, ".name"));
    if (!name.empty()) {
      CheckName(port, absl::StrCat(at, ".name"), name, LabelNameProblems, problems);
      if (!names.insert(name).second) problems->Duplicate(port, absl::StrCat(at, ".name"), name);
    }
    CheckPortNumber(port, absl::StrCat(at, ".port"), IntField(port, {"port"}), problems);
    // The port itself where none is named; then it was told already.
    const Json* const target = FindField(port, {"targetPort"});
    if (target != nullptr && target->is_int())
      CheckPortNumber(port, absl::StrCat(at, ".targetPort"), target->AsInt().value_or(0), problems);
    if (target != nullptr && target->is_string()) {
      CheckName(port, absl::StrCat(at, ".targetPort"), target->AsString().value_or(""),
                PortNameProblems, problems);
    }
    if (said == "ClusterIP" && IntField(port, {"nodePort"}) != 0) {
      problems->Forbidden(port, absl::StrCat(at, ".nodePort"),
                          "may not be used when `type` is 'ClusterIP'");
    }
    const std::string protocol = StringField(port, {"protocol"});
    if (protocol != "TCP" && protocol != "UDP" && protocol != "SCTP")
      problems->Unsupported(port, absl::StrCat(at, ".protocol"), protocol, {"SCTP", "TCP", "UDP"});
  }
}

Json AddressCell(const Json& service, absl::Time /*now*/) {
  return OrNone(StringField(service, {"spec", "clusterIP"}));
}

Json PortsCell(const Json& service, absl::Time /*now*/) {
  std::vector<std::string> ports;
  if (const Json* const list = FindField(service, {"spec", "ports"})) {
    for (const Json& port : list->items()) {
      ports.push_back(absl::StrCat(IntField(port, {"port"}), "/", StringField(port, {"protocol"})));
    }
  }
  return OrNone(absl::StrJoin(ports, ","));
}

Json SelectorCell(const Json& service, absl::Time /*now*/) {
  return LabelsText(FindField(service, {"spec", "selector"}));
}

}  // namespace

KindSpec Spec() {
  return KindSpec("", "v1", "services", "Service")
      .ShortNames({"svc"})
      .Categories({"all"})
      .HasStatus()
      .Named(&ServiceNameProblems)
      .SelectableBy({"spec.clusterIP", "spec.type"})
      .Defaults(&DefaultService)
      .Check(&CheckService)
      .Column("Type", ".spec.type")
      .Column("Cluster-IP", &AddressCell)
      .Column("External-IP", &NoneCell)
      .Column("Port(s)", &PortsCell)
      .Age()
      .Wide("Selector", &SelectorCell);
}

}  // namespace weft::platform::kinds::services
