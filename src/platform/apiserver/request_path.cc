// SPDX-License-Identifier: Apache-2.0
#include "platform/apiserver/request_path.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "net/http_server.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

// With details that name nothing: kubectl tells by them that it is not an object that is missing.
Status NoSuchPage() {
  Json answer;
  answer.Set("reason", "NotFound");
  answer.Set("message", "the server could not find the requested resource");
  answer.Set("details", Json::MakeObject());
  return StatusFromObject(answer, 404);
}

}  // namespace

StatusOr<RequestPath> ParseRequestPath(absl::string_view path) {
  std::vector<std::string> parts;
  for (const absl::string_view part : absl::StrSplit(path.substr(path.empty() ? 0 : 1), '/')) {
    parts.push_back(DecodePercent(part));
  }
  while (!parts.empty() && parts.back().empty()) parts.pop_back();
  std::string group;
  RequestPath parsed;
  size_t at = 0;
  if (parts.size() >= 3 && parts[0] == "api") {
    parsed.version = parts[1];
    at = 2;
  } else if (parts.size() >= 4 && parts[0] == "apis") {
    group = parts[1];
    parsed.version = parts[2];
    at = 3;
  } else {
    return NoSuchPage();
  }
  // "namespaces/x" is an object, "namespaces/x/pods" lies in it; "namespaces/x/status" is the
  // object's again.
  const bool is_inside = parts[at] == "namespaces" && parts.size() >= at + 3 &&
                         parts[at + 2] != "status" && parts[at + 2] != "finalize";
  if (is_inside) {
    parsed.namespace_name = parts[at + 1];
    at += 2;
  }
  parsed.type = FindResource(group, parts[at]);
  if (parsed.type == nullptr || !parsed.type->Serves(parsed.version) ||
      (is_inside && !parsed.type->is_namespaced) || parts.size() > at + 3) {
    return NoSuchPage();
  }
  if (parts.size() > at + 1) parsed.name = parts[at + 1];
  if (parts.size() > at + 2) parsed.subresource = parts[at + 2];
  if (!parsed.name.empty() && parsed.type->is_namespaced && parsed.namespace_name.empty())
    return NoSuchPage();
  const std::string& sub = parsed.subresource;
  const bool is_known =
      sub.empty() || (sub == "status" && parsed.type->has_status) ||
      (sub == "scale" && !parsed.type->scale_path.empty()) ||
      std::any_of(parsed.type->subresources.begin(), parsed.type->subresources.end(),
                  [&](const Subresource& one) { return one.name == sub; });
  if (parsed.type == &Pods() && sub == "ephemeralcontainers") {
    return ApiError(501, "NotImplemented",
                    absl::StrCat("pods/", sub, " is not served here: see `kubectl logs ",
                                 parsed.name, "` and `kubectl exec ", parsed.name, " -- sh`"));
  }
  if (!is_known) return NoSuchPage();
  return parsed;
}

}  // namespace weft::platform
