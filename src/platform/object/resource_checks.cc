// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "platform/object/container_checks.h"
#include "platform/object/fields.h"
#include "platform/object/metadata_checks.h"
#include "platform/object/quantity.h"

namespace weft::platform {
namespace {

constexpr char kHugePages[] = "hugepages-";

// Of Kubernetes itself, as cpu is.
bool IsNative(absl::string_view name) {
  return !absl::StrContains(name, '/') || absl::StrContains(name, "kubernetes.io/");
}

bool IsStandard(absl::string_view name) {
  static constexpr absl::string_view kNames[] = {"cpu",
                                                 "memory",
                                                 "ephemeral-storage",
                                                 "storage",
                                                 "requests.cpu",
                                                 "requests.memory",
                                                 "requests.storage",
                                                 "requests.ephemeral-storage",
                                                 "limits.cpu",
                                                 "limits.memory",
                                                 "limits.ephemeral-storage",
                                                 "pods",
                                                 "services",
                                                 "secrets",
                                                 "replicationcontrollers",
                                                 "resourcequotas",
                                                 "configmaps",
                                                 "persistentvolumeclaims"};
  return absl::StartsWith(name, kHugePages) ||
         std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

bool IsOfContainers(absl::string_view name) {
  return name == "cpu" || name == "memory" || name == "ephemeral-storage" ||
         absl::StartsWith(name, kHugePages);
}

// More may be asked for than there is.
bool MayOvercommit(absl::string_view name) {
  return IsNative(name) && !absl::StartsWith(name, kHugePages);
}

// Counted in whole pieces, as GPUs are.
bool IsExtended(absl::string_view name) {
  return !IsNative(name) && !absl::StartsWith(name, "requests.") &&
         QualifiedNameProblems(absl::StrCat("requests.", name)).empty();
}

void CheckResourceName(const Json& at, const std::string& path, const std::string& name,
                       Problems* problems) {
  const bool is_good = QualifiedNameProblems(name).empty();
  for (const std::string& problem : QualifiedNameProblems(name))
    problems->InvalidAs(at, path, name, problem);
  if (!absl::StrContains(name, '/')) {
    if (is_good && !IsStandard(name))
      problems->InvalidAs(at, path, name, "must be a standard resource type or fully qualified");
    if (!IsOfContainers(name))
      problems->InvalidAs(at, path, name, "must be a standard resource for containers");
  } else if (!IsNative(name) && !IsExtended(name)) {
    problems->InvalidAs(at, path, name, "doesn't follow extended resource name standard");
  }
}

void CheckAmount(const Json& value, const std::string& path, const std::string& name,
                 const Quantity& amount, Problems* problems) {
  CheckResourceName(value, path, name, problems);
  if (amount.is_negative())
    problems->Invalid(value, path, amount.ToString(), "must be greater than or equal to 0");
  if (IsExtended(name) && !amount.is_whole())
    problems->Invalid(value, path, amount.ToString(), "must be an integer");
  if (!absl::StartsWith(name, kHugePages)) return;
  const StatusOr<Quantity> page = Quantity::Parse(name.substr(sizeof(kHugePages) - 1));
  if (page.ok() && !amount.IsMultipleOf(*page)) {
    problems->Invalid(
        value, path, amount.ToString(),
        absl::StrCat(amount.ToString(), " is not positive integer multiple of ", name));
  }
}

// In which parts a variable or a file may tell of it: whole ones by powers of 1000 and of 1024,
// processors also by thousandths.
bool IsKnownDivisor(absl::string_view resource, const std::string& divisor) {
  static const auto* const of_bytes = new std::vector<std::string>{
      "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"};
  if (resource == "cpu") return divisor == "1" || divisor == "1m";
  return std::find(of_bytes->begin(), of_bytes->end(), divisor) != of_bytes->end();
}

}  // namespace

void CheckResourceReference(const Json& reference, const std::string& path, Problems* problems) {
  static const auto* const known =
      new std::vector<std::string>{"limits.cpu",   "limits.ephemeral-storage",   "limits.memory",
                                   "requests.cpu", "requests.ephemeral-storage", "requests.memory"};
  const std::string named = StringField(reference, {"resource"});
  const std::string at = absl::StrCat(path, ".resource");
  if (named.empty()) return problems->Required(reference, at);
  const absl::string_view resource = absl::string_view(named).substr(named.find('.') + 1);
  const bool is_page = absl::StartsWith(resource, kHugePages);
  if (std::find(known->begin(), known->end(), named) == known->end() && !is_page)
    return problems->Unsupported(reference, at, named, *known);
  const Json* const divisor = FindField(reference, {"divisor"});
  if (divisor == nullptr) return;
  const StatusOr<Quantity> amount = Quantity::Parse(*divisor);
  if (!amount.ok() || *amount == Quantity() || IsKnownDivisor(resource, amount->ToString())) return;
  problems->Invalid(
      reference, absl::StrCat(path, ".divisor"), named,
      resource == "cpu"
          ? "only divisor's values 1m and 1 are supported with the cpu resource"
          : absl::StrCat("only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, "
                         "1Pi, 1Ei are supported with the ",
                         is_page                ? "hugepages"
                         : resource == "memory" ? "memory"
                                                : "local ephemeral storage",
                         " resource"));
}

void CheckResourceRequirements(const Json& resources, const std::string& path, Problems* problems) {
  const Json empty = Json::MakeObject();
  const Json* limits = FindField(resources, {"limits"});
  const Json* requests = FindField(resources, {"requests"});
  limits = limits == nullptr ? &empty : limits;
  requests = requests == nullptr ? &empty : requests;
  bool has_pages = false;
  bool has_usual = false;
  const auto note = [&](absl::string_view name) {
    has_pages = has_pages || absl::StartsWith(name, kHugePages);
    has_usual = has_usual || name == "cpu" || name == "memory";
  };
  for (const JsonMember& member : limits->members()) {
    const StatusOr<Quantity> amount = Quantity::Parse(member.value);
    if (!amount.ok()) continue;  // of another kind, which was told
    note(member.name);
    CheckAmount(member.value, absl::StrCat(path, ".limits[", member.name, "]"), member.name,
                *amount, problems);
  }
  const std::string of_requests = absl::StrCat(path, ".requests");
  for (const JsonMember& member : requests->members()) {
    const StatusOr<Quantity> amount = Quantity::Parse(member.value);
    if (!amount.ok()) continue;
    note(member.name);
    CheckAmount(member.value, absl::StrCat(of_requests, "[", member.name, "]"), member.name,
                *amount, problems);
    const Json* const written = limits->Find(member.name);
    if (written == nullptr) {
      if (!MayOvercommit(member.name)) {
        problems->Required(member.value, absl::StrCat(path, ".limits"),
                           "Limit must be set for non overcommitable resources");
      }
      continue;
    }
    const StatusOr<Quantity> limit = Quantity::Parse(*written);
    if (!limit.ok()) continue;
    const char* const relation = !MayOvercommit(member.name) && !(*amount == *limit)
                                     ? "must be equal to "
                                 : *limit < *amount ? "must be less than or equal to "
                                                    : nullptr;
    if (relation == nullptr) continue;
    problems->Invalid(member.value, of_requests, amount->ToString(),
                      absl::StrCat(relation, member.name, " limit of ", limit->ToString()));
  }
  if (has_pages && !has_usual)
    problems->Forbidden(resources, path, "HugePages require cpu or memory");
}

}  // namespace weft::platform
