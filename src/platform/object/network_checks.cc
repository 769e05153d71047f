// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

#include "platform/object/fields.h"
#include "platform/object/metadata_checks.h"
#include "platform/object/pod_checks.h"

namespace weft::platform {
namespace {

const Json::Array& ItemsAt(const Json& object, FieldPath path) {
  static const auto* const empty = new Json::Array;
  const Json* const list = FindField(object, path);
  return list == nullptr ? *empty : list->items();
}

void CheckNameServers(const Json& spec, const std::string& path, Problems* problems) {
  const bool is_alone = StringField(spec, {"dnsPolicy"}) == "None";
  const std::string at = absl::StrCat(path, ".dnsConfig");
  const Json* const config = FindField(spec, {"dnsConfig"});
  if (config == nullptr) {
    if (is_alone) problems->Required(spec, at, "must provide `dnsConfig` when `dnsPolicy` is None");
    return;
  }
  const Json::Array& servers = ItemsAt(*config, {"nameservers"});
  if (is_alone && servers.empty()) {
    problems->Required(*config, absl::StrCat(at, ".nameservers"),
                       "must provide at least one DNS nameserver when `dnsPolicy` is None");
  }
  for (size_t i = 0; i < servers.size(); ++i)
    CheckIpAddress(servers[i], absl::StrCat(at, ".nameservers[", i, "]"),
                   servers[i].AsString().value_or(""), problems);
  size_t index = 0;
  for (const Json& search : ItemsAt(*config, {"searches"})) {
    const std::string of_search = absl::StrCat(at, ".searches[", index++, "]");
    const std::string name = search.AsString().value_or("");
    if (name == ".") continue;
    // Here alone an underscore may stand in a domain.
    const std::string plain = absl::StrReplaceAll(absl::StripSuffix(name, "."), {{"_", "a"}});
    for (const std::string& problem : SubdomainProblems(plain)) {
      problems->Invalid(
          search, of_search, name,
          absl::StrReplaceAll(problem, {{"characters, '-'", "characters, '_', '-'"}}));
    }
  }
}

void CheckHostAliases(const Json& spec, const std::string& path, Problems* problems) {
  size_t index = 0;
  for (const Json& alias : ItemsAt(spec, {"hostAliases"})) {
    const std::string at = absl::StrCat(path, ".hostAliases[", index++, "]");
    CheckIpAddress(alias, absl::StrCat(at, ".ip"), StringField(alias, {"ip"}), problems);
    const Json::Array& names = ItemsAt(alias, {"hostnames"});
    for (size_t i = 0; i < names.size(); ++i)
      CheckName(names[i], absl::StrCat(at, ".hostnames[", i, "]"), names[i].AsString().value_or(""),
                SubdomainProblems, problems);
  }
}

}  // namespace

void CheckIpAddress(const Json& at, const std::string& path, const std::string& address,
                    Problems* problems) {
  in6_addr bytes = {};
  if (::inet_pton(AF_INET, address.c_str(), &bytes) == 1 ||
      ::inet_pton(AF_INET6, address.c_str(), &bytes) == 1)
    return;
  problems->Invalid(at, path, address,
                    "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
}

void CheckPodNetwork(const Json& spec, const std::string& path, Problems* problems) {
  CheckNameServers(spec, path, problems);
  CheckHostAliases(spec, path, problems);
  if (!BoolField(spec, {"hostNetwork"})) return;
  size_t index = 0;
  for (const Json& container : ItemsAt(spec, {"containers"})) {
    const std::string at = absl::StrCat(path, ".containers[", index++, "].ports[");
    const Json::Array& ports = ItemsAt(container, {"ports"});
    for (size_t i = 0; i < ports.size(); ++i) {
      const int64_t on_host = IntField(ports[i], {"hostPort"});
      if (on_host == 0 || on_host == IntField(ports[i], {"containerPort"})) continue;
      problems->Invalid(ports[i], absl::StrCat(at, i, "].hostPort"), on_host,
                        "must match `containerPort` when `hostNetwork` is true");
    }
  }
}

}  // namespace weft::platform
