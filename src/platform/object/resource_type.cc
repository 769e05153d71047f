// SPDX-License-Identifier: Apache-2.0
#include "platform/object/resource_type.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace weft::platform {
namespace {

// A number without a sign and without a zero in front; -1: there is none.
int64_t TakeNumber(absl::string_view* text) {
  size_t digits = 0;
  while (digits < text->size() && absl::ascii_isdigit(static_cast<unsigned char>((*text)[digits])))
    ++digits;
  int64_t number = -1;
  if (digits == 0 || (*text)[0] == '0' || !absl::SimpleAtoi(text->substr(0, digits), &number))
    return -1;
  text->remove_prefix(digits);
  return number;
}

// What is larger goes first: how stable (3 for v1 and its kin, 0 for a name of another form), then
// the numbers.
std::tuple<int, int64_t, int64_t> RankOf(absl::string_view version) {
  const std::tuple<int, int64_t, int64_t> other = {0, 0, 0};
  if (!absl::ConsumePrefix(&version, "v")) return other;
  const int64_t major = TakeNumber(&version);
  if (major < 0) return other;
  if (version.empty()) return {3, major, 0};
  const bool is_beta = absl::ConsumePrefix(&version, "beta");
  if (!is_beta && !absl::ConsumePrefix(&version, "alpha")) return other;
  const int64_t minor = TakeNumber(&version);
  if (minor < 0 || !version.empty()) return other;
  return {is_beta ? 2 : 1, major, minor};
}

}  // namespace

ResourceType MakeResourceType(std::string group, std::string version, std::string plural,
                              std::string singular, std::string kind, bool is_namespaced) {
  ResourceType type;
  type.group = std::move(group);
  type.version = version;
  type.versions = {std::move(version)};
  type.plural = std::move(plural);
  type.singular = std::move(singular);
  type.kind = std::move(kind);
  type.is_namespaced = is_namespaced;
  return type;
}

bool IsPreferredVersion(absl::string_view version, absl::string_view to) {
  const auto rank = RankOf(version);
  const auto other = RankOf(to);
  return rank != other ? rank > other : std::get<0>(rank) == 0 && version < to;
}

std::string ResourceType::Id() const {
  return group.empty() ? plural : absl::StrCat(plural, ".", group);
}

std::string ResourceType::ApiVersion() const {
  return group.empty() ? version : absl::StrCat(group, "/", version);
}

bool ResourceType::Serves(absl::string_view candidate) const {
  return std::any_of(versions.begin(), versions.end(),
                     [&](const std::string& name) { return name == candidate; });
}

}  // namespace weft::platform
