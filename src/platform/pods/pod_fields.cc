// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/pod_fields.h"

#include <map>
#include <vector>

#include <unistd.h>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "base/threads.h"
#include "platform/object/fields.h"
#include "platform/object/own_address.h"
#include "platform/object/pod_view.h"
#include "platform/object/quantity.h"

namespace weft::platform {
namespace {

// What the machine has, of what has no limit.
int64_t WholeOf(absl::string_view resource) {
  if (resource == "cpu") return int64_t{UsableCores()} * 1000;
  if (resource == "memory") return ::sysconf(_SC_PHYS_PAGES) * ::sysconf(_SC_PAGESIZE) * 1000;
  return 0;
}

std::string AllOf(const Json* map) {
  std::map<std::string, std::string> sorted;
  if (map != nullptr) {
    for (const JsonMember& member : map->members())
      sorted[member.name] = member.value.AsString().value_or("");
  }
  std::string text;
  for (const auto& [name, value] : sorted)
    absl::StrAppend(&text, text.empty() ? "" : "\n", name, "=\"", absl::CEscape(value), "\"");
  return text;
}

}  // namespace

StatusOr<std::string> PodFieldText(const Json& pod, absl::string_view path) {
  for (const char* map : {"metadata.labels", "metadata.annotations"}) {
    const absl::string_view name = absl::string_view(map).substr(9);
    if (path == map) return AllOf(FindField(pod, {"metadata", name}));
    absl::string_view rest = path;
    if (!absl::ConsumePrefix(&rest, absl::StrCat(map, "['")) || !absl::ConsumeSuffix(&rest, "']"))
      continue;
    return StringField(pod, {"metadata", name, rest});
  }
  if (absl::StrContains(path, "IP")) {
    const std::string own = absl::StrContains(path, "podIP") ? OwnAddressOfPod(pod) : "";
    return own.empty() ? std::string("127.0.0.1") : own;
  }
  const Json* at = &pod;
  for (const absl::string_view name : absl::StrSplit(path, '.')) {
    at = at->Find(name);
    if (at == nullptr && path == "spec.serviceAccountName") return std::string("default");
    if (at == nullptr) return InvalidArgument("A pod has no field ", path);
  }
  return at->AsString();
}

StatusOr<std::string> ResourceFieldText(const Json& pod, const Json& container,
                                        const Json& reference) {
  const std::string named = StringField(reference, {"containerName"});
  const Json* of = named.empty() ? nullptr : PodView(pod).FindContainer(named);
  if (of == nullptr) of = &container;
  const std::string asked = StringField(reference, {"resource"});
  const std::vector<std::string> parts = absl::StrSplit(asked, absl::MaxSplits('.', 1));
  if (parts.size() != 2 || (parts[0] != "limits" && parts[0] != "requests"))
    return InvalidArgument("There is no resource ", asked, ": limits.cpu, requests.memory, ...");
  const Json* held = FindField(*of, {"resources", parts[0], parts[1]});
  if (held == nullptr && parts[0] == "requests")
    held = FindField(*of, {"resources", "limits", parts[1]});
  int64_t amount = parts[0] == "limits" ? WholeOf(parts[1]) : 0;
  if (held != nullptr) {
    WEFT_ASSIGN_OR_RETURN(amount, ParseQuantity(*held));
  }
  int64_t divisor = 1000;
  if (const Json* const said = FindField(reference, {"divisor"})) {
    WEFT_ASSIGN_OR_RETURN(divisor, ParseQuantity(*said));
    if (divisor <= 0) divisor = 1000;  // as 0, which stands for 1
  }
  return absl::StrCat((amount + divisor - 1) / divisor);
}

}  // namespace weft::platform
