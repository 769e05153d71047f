// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/service_addresses.h"

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "net/socket_address.h"

namespace weft::platform {
namespace {

constexpr int kTries = 100;

bool IsHostCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.';
}

// "<service>.<namespace>" of a host's name; empty: it names no service. A name with "svc" says so
// itself, a short one must be that of a service that is there.
std::string ServiceOf(absl::string_view host, const ServiceAddresses::ShortNames& short_names) {
  const std::vector<std::string> parts = absl::StrSplit(host, '.');
  if (parts[0].empty() || (parts.size() > 1 && parts[1].empty())) return "";
  if (parts.size() > 2)
    return parts[2] == "svc" ? absl::StrCat(parts[0], ".", parts[1]) : std::string();
  const std::string& space = parts.size() == 2 ? parts[1] : short_names.namespace_name;
  if (short_names.is_service == nullptr || !short_names.is_service(parts[0], space)) return "";
  return absl::StrCat(parts[0], ".", space);
}

}  // namespace

StatusOr<int> ServiceAddresses::PortOf(const std::string& service, int port, int64_t in_a_row) {
  const std::string key = absl::StrCat(service, ":", port);
  if (const auto found = ports_.find(key); found != ports_.end()) return found->second;
  for (int i = 0; i < kTries; ++i) {
    WEFT_ASSIGN_OR_RETURN(const std::vector<int> free, FindFreeLoopbackPorts(1));
    bool is_good = true;
    for (int64_t next = free[0]; next < free[0] + in_a_row && is_good; ++next) {
      // One that nobody listens on yet may be promised to a pod that has not begun.
      is_good = taken_.count(static_cast<int>(next)) == 0 &&
                (next == free[0] || ListenTcp({"127.0.0.1", static_cast<int>(next)}, 1).ok());
    }
    if (!is_good) continue;
    for (int64_t next = free[0]; next < free[0] + in_a_row; ++next)
      taken_.insert(static_cast<int>(next));
    ports_[key] = free[0];
    return free[0];
  }
  return ResourceExhausted("There is no free loopback port for the service ", key);
}

StatusOr<std::string> ServiceAddresses::PlaceOf(const std::string& service, int port,
                                                int64_t in_a_row, const ShortNames& short_names) {
  // Asked once for each name: jobs of thousands of tasks name each other in every pod.
  const int known = Find(service, port);
  if (known == 0 && short_names.address_of != nullptr) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(service, '.');
    const std::string own = short_names.address_of(parts.first, parts.second);
    if (!own.empty()) return absl::StrCat(own, ":", port);
  }
  WEFT_ASSIGN_OR_RETURN(const int local, PortOf(service, port, in_a_row));
  return absl::StrCat("127.0.0.1:", local);
}

int ServiceAddresses::Find(const std::string& service, int port) const {
  const auto found = ports_.find(absl::StrCat(service, ":", port));
  return found == ports_.end() ? 0 : found->second;
}

StatusOr<std::string> ServiceAddresses::Rewrite(absl::string_view text, int64_t in_a_row,
                                                const ShortNames& short_names) {
  std::string out;
  size_t copied = 0;
  for (size_t colon = text.find(':'); colon != absl::string_view::npos;
       colon = text.find(':', colon + 1)) {
    size_t begin = colon;
    while (begin > copied && IsHostCharacter(text[begin - 1])) --begin;
    size_t end = colon + 1;
    while (end < text.size() && absl::ascii_isdigit(static_cast<unsigned char>(text[end]))) ++end;
    int port = 0;
    if (!absl::SimpleAtoi(text.substr(colon + 1, end - colon - 1), &port) || port <= 0 ||
        port >= 65536)
      continue;
    const std::string service = ServiceOf(text.substr(begin, colon - begin), short_names);
    if (service.empty()) continue;
    WEFT_ASSIGN_OR_RETURN(const std::string place, PlaceOf(service, port, in_a_row, short_names));
    absl::StrAppend(&out, text.substr(copied, begin - copied), place);
    copied = end;
    colon = end - 1;
  }
  absl::StrAppend(&out, text.substr(copied));
  return out;
}

}  // namespace weft::platform
