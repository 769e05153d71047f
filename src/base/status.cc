// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include "absl/strings/cord.h"

namespace weft {

Status Annotate(const Status& status, absl::string_view context) {
  if (status.ok()) return status;
  Status annotated(status.code(), absl::StrCat(context, ": ", status.message()));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    annotated.SetPayload(url, payload);
  });
  return annotated;
}

}  // namespace weft
