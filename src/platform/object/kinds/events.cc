// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "platform/object/columns.h"
#include "platform/object/fields.h"
#include "platform/object/kind_spec.h"

namespace weft::platform::kinds::events {
namespace {

Json ObjectCell(const Json& event, absl::Time /*now*/) {
  return absl::StrCat(absl::AsciiStrToLower(StringField(event, {"involvedObject", "kind"})), "/",
                      StringField(event, {"involvedObject", "name"}));
}

Json FirstSeenCell(const Json& event, absl::Time now) {
  return AgeOf(event, {"firstTimestamp"}, now);
}

Json LastSeenCell(const Json& event, absl::Time now) {
  return AgeOf(event, {"lastTimestamp"}, now);
}

}  // namespace

KindSpec Spec() {
  PrinterColumn count = {"Count", "integer", ".count", "Count", 1};
  count.missing = 1;
  return KindSpec("", "v1", "events", "Event")
      .ShortNames({"ev"})
      .SelectableBy({"involvedObject.kind", "involvedObject.namespace", "involvedObject.name",
                     "involvedObject.uid", "involvedObject.apiVersion",
                     "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason",
                     "reportingComponent", "source", "type"})
      .Column("Last Seen", &LastSeenCell)
      .Column("Type", ".type")
      .Column("Reason", ".reason")
      .Column("Object", &ObjectCell)
      .Wide("Source", ".source.component")
      .Column("Message", ".message")
      .Wide("First Seen", &FirstSeenCell)
      .Column(count)
      .Wide("Name", ".metadata.name");
}

}  // namespace weft::platform::kinds::events
