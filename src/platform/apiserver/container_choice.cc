// SPDX-License-Identifier: Apache-2.0
#include "platform/apiserver/container_choice.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/store/api_error.h"

namespace weft::platform {

StatusOr<std::string> ChooseContainer(const Json& pod, const std::string& asked) {
  std::vector<std::string> names;
  for (const char* list : {"containers", "initContainers"}) {
    const Json* const containers = FindField(pod, {"spec", list});
    if (containers == nullptr) continue;
    for (const Json& container : containers->items())
      names.push_back(StringField(container, {"name"}));
    if (asked.empty() && names.size() == 1) return names[0];
  }
  if (std::find(names.begin(), names.end(), asked) != names.end()) return asked;
  std::string list;
  for (const std::string& name : names) absl::StrAppend(&list, list.empty() ? "" : " ", name);
  if (asked.empty()) {
    return ApiError(400, "BadRequest",
                    absl::StrCat("a container name must be specified for pod ", NameOf(pod),
                                 ", choose one of: [", list, "]"));
  }
  return ApiError(400, "BadRequest",
                  absl::StrCat("container ", asked, " is not valid for pod ", NameOf(pod),
                               ", there are: [", list, "]"));
}

}  // namespace weft::platform
