// SPDX-License-Identifier: Apache-2.0
#include "platform/object/event_columns.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "platform/object/columns.h"
#include "platform/object/fields.h"

namespace weft::platform {
namespace {

// The field by its core name, or by its name in events.k8s.io.
const Json* Either(const Json& event, const char* core, const char* other) {
  const Json* const found = event.Find(core);
  return found != nullptr ? found : event.Find(other);
}

std::string TextOf(const Json* field) {
  return field == nullptr ? "" : field->AsString().value_or("");
}

Json ObjectCell(const Json& event, absl::Time /*now*/) {
  const Json* const object = Either(event, "involvedObject", "regarding");
  if (object == nullptr) return "";
  const std::string kind = absl::AsciiStrToLower(StringField(*object, {"kind"}));
  const std::string name = StringField(*object, {"name"});
  return name.empty() ? kind : absl::StrCat(kind, "/", name);
}

// Events of the newer form have one time, and a series where they came again.
std::string FirstSeen(const Json& event, absl::Time now) {
  const bool is_core = !TextOf(event.Find("firstTimestamp")).empty();
  const bool is_old = is_core || !TextOf(event.Find("deprecatedFirstTimestamp")).empty();
  if (!is_old) return AgeOf(event, {"eventTime"}, now);
  return AgeOf(event, {is_core ? "firstTimestamp" : "deprecatedFirstTimestamp"}, now);
}

Json FirstSeenCell(const Json& event, absl::Time now) { return FirstSeen(event, now); }

Json LastSeenCell(const Json& event, absl::Time now) {
  if (event.Find("series") != nullptr) return AgeOf(event, {"series", "lastObservedTime"}, now);
  for (const char* const name : {"lastTimestamp", "deprecatedLastTimestamp"})
    if (!TextOf(event.Find(name)).empty()) return AgeOf(event, {name}, now);
  return FirstSeen(event, now);
}

Json SourceCell(const Json& event, absl::Time /*now*/) {
  const Json* const source = Either(event, "source", "deprecatedSource");
  std::string component = source == nullptr ? "" : StringField(*source, {"component"});
  std::string host = source == nullptr ? "" : StringField(*source, {"host"});
  if (component.empty()) {
    component = TextOf(Either(event, "reportingComponent", "reportingController"));
    host = StringField(event, {"reportingInstance"});
  }
  return host.empty() ? component : absl::StrCat(component, ", ", host);
}

Json MessageCell(const Json& event, absl::Time /*now*/) {
  return TextOf(Either(event, "message", "note"));
}

Json CountCell(const Json& event, absl::Time /*now*/) {
  if (event.Find("series") != nullptr) return IntField(event, {"series", "count"});
  const Json* const count = Either(event, "count", "deprecatedCount");
  return std::max<int64_t>(count == nullptr ? 1 : count->AsInt().value_or(1), 1);
}

}  // namespace

KindSpec WithEventColumns(KindSpec spec) {
  PrinterColumn count = {"Count", "integer", "", "Count", 1};
  count.cell = &CountCell;
  spec.Column("Last Seen", &LastSeenCell)
      .Column("Type", ".type")
      .Column("Reason", ".reason")
      .Column("Object", &ObjectCell)
      .Wide("Source", &SourceCell)
      .Column("Message", &MessageCell)
      .Wide("First Seen", &FirstSeenCell)
      .Column(std::move(count))
      .Wide("Name", ".metadata.name");
  return spec;
}

}  // namespace weft::platform
