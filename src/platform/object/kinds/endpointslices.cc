// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "platform/object/columns.h"
#include "platform/object/fields.h"
#include "platform/object/kind_spec.h"

namespace weft::platform::kinds::endpointslices {
namespace {

Json PortsCell(const Json& slice, absl::Time /*now*/) {
  std::vector<std::string> ports;
  for (const Json& port : ListField(slice, {"ports"}))
    ports.push_back(absl::StrCat(IntField(port, {"port"})));
  return ports.empty() ? Json("<unset>") : FirstOf(ports);
}

Json AddressesCell(const Json& slice, absl::Time /*now*/) {
  std::vector<std::string> all;
  for (const Json& endpoint : ListField(slice, {"endpoints"})) {
    for (const Json& address : ListField(endpoint, {"addresses"}))
      all.push_back(address.AsString().value_or(""));
  }
  return all.empty() ? Json("<unset>") : FirstOf(all);
}

}  // namespace

KindSpec Spec() {
  return KindSpec("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
      .Column("AddressType", ".addressType")
      .Column("Ports", &PortsCell)
      .Column("Endpoints", &AddressesCell)
      .Age();
}

}  // namespace weft::platform::kinds::endpointslices
