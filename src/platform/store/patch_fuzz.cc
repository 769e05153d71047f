// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/string_view.h"

#include "platform/object/fields.h"
#include "platform/object/selector.h"
#include "platform/store/patch.h"

// Any patch applies to an object or is refused; any selector matches, or not, or is refused.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  static const auto* const target = new weft::Json(
      weft::Json::Parse(R"({"metadata":{"name":"x","labels":{"a":"b"},"finalizers":["f"]},
          "spec":{"containers":[{"name":"c","env":[{"name":"A","value":"1"}]}],"list":[1,2]}})")
          .value_or(weft::Json()));
  const weft::StatusOr<weft::platform::Selector> labels =
      weft::platform::Selector::ParseLabels(text);
  if (labels.ok()) labels->Matches(*target);
  const weft::StatusOr<weft::platform::Selector> fields =
      weft::platform::Selector::ParseFields(text);
  if (fields.ok()) fields->Matches(*target);
  const weft::StatusOr<weft::Json> patch = weft::Json::Parse(text);
  if (!patch.ok()) return 0;
  for (const auto kind : {weft::platform::PatchKind::kMerge, weft::platform::PatchKind::kJson,
                          weft::platform::PatchKind::kStrategic}) {
    weft::platform::ApplyPatch(kind, *target, *patch).status().IgnoreError();
  }
  // A merge patch applied twice is applied once.
  const weft::Json once = weft::platform::MergePatch(*target, *patch);
  if (!weft::platform::SameJson(weft::platform::MergePatch(once, *patch), once)) abort();
  return 0;
}
