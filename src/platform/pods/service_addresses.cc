// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/service_addresses.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "net/socket_address.h"

namespace weft::platform {
namespace {

constexpr int kTries = 100;

bool IsHostCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.';
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

StatusOr<std::string> ServiceAddresses::Rewrite(absl::string_view text, int64_t in_a_row) {
  std::string out;
  size_t copied = 0;
  for (size_t at = text.find(".svc"); at != absl::string_view::npos;
       at = text.find(".svc", at + 4)) {
    size_t begin = at;
    while (begin > copied && IsHostCharacter(text[begin - 1])) --begin;
    const absl::string_view name = text.substr(begin, at - begin);
    size_t end = at + 4;
    const bool has_domain = end < text.size() && text[end] == '.';
    while (has_domain && end < text.size() && IsHostCharacter(text[end])) ++end;
    // "<service>.<namespace>", then a colon and digits.
    const size_t dot = name.find('.');
    size_t digits = end + 1;
    while (digits < text.size() && absl::ascii_isdigit(static_cast<unsigned char>(text[digits])))
      ++digits;
    int port = 0;
    const bool is_address = dot != absl::string_view::npos && dot > 0 && dot + 1 < name.size() &&
                            name.find('.', dot + 1) == absl::string_view::npos &&
                            end < text.size() && text[end] == ':' &&
                            absl::SimpleAtoi(text.substr(end + 1, digits - end - 1), &port) &&
                            port > 0 && port < 65536;
    if (!is_address) continue;
    WEFT_ASSIGN_OR_RETURN(const int local, PortOf(std::string(name), port, in_a_row));
    absl::StrAppend(&out, text.substr(copied, begin - copied), "127.0.0.1:", local);
    copied = digits;
  }
  absl::StrAppend(&out, text.substr(copied));
  return out;
}

}  // namespace weft::platform
