// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "platform/object/columns.h"
#include "platform/object/fields.h"
#include "platform/object/kind_spec.h"

namespace weft::platform::kinds::endpoints {
namespace {

// "10.0.0.1:80,10.0.0.2:80"
Json AddressesCell(const Json& endpoints, absl::Time /*now*/) {
  std::vector<std::string> all;
  for (const Json& subset : ListField(endpoints, {"subsets"})) {
    const Json::Array& ports = ListField(subset, {"ports"});
    for (const Json& address : ListField(subset, {"addresses"})) {
      const std::string ip = StringField(address, {"ip"});
      if (ports.empty()) all.push_back(ip);
      for (const Json& port : ports) all.push_back(absl::StrCat(ip, ":", IntField(port, {"port"})));
    }
  }
  return FirstOf(all);
}

}  // namespace

KindSpec Spec() {
  return KindSpec("", "v1", "endpoints", "Endpoints")
      .ShortNames({"ep"})
      .Column("Endpoints", &AddressesCell)
      .Age();
}

}  // namespace weft::platform::kinds::endpoints
