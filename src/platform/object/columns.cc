// SPDX-License-Identifier: Apache-2.0
#include "platform/object/columns.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "platform/object/object_time.h"

namespace weft::platform {
namespace {

Json CellOf(const PrinterColumn& column, const Json& object, absl::Time now) {
  if (column.cell != nullptr) return column.cell(object, now);
  const Json* const value = FindByJsonPath(object, column.path);
  if (value == nullptr) return column.type == "date" ? Json("<unknown>") : column.missing;
  if (column.type != "date") return *value;
  const absl::Time time = ParseObjectTime(value->AsString().value_or(""));
  return time == absl::InfinitePast() ? "<invalid>" : HumanDuration(now - time);
}

bool HasNameColumn(const ResourceType& type) {
  return std::any_of(type.columns.begin(), type.columns.end(),
                     [](const PrinterColumn& column) { return column.name == "Name"; });
}

}  // namespace

std::vector<PrinterColumn> ColumnsOf(const ResourceType& type) {
  std::vector<PrinterColumn> columns = type.columns;
  if (!HasNameColumn(type)) columns.insert(columns.begin(), {"Name", "string", "", "Name"});
  return columns;
}

std::vector<Json> CellsOf(const ResourceType& type, const Json& object, absl::Time now) {
  std::vector<Json> cells;
  if (!HasNameColumn(type)) cells.emplace_back(NameOf(object));
  for (const PrinterColumn& column : type.columns) cells.push_back(CellOf(column, object, now));
  return cells;
}

std::string HumanDuration(absl::Duration duration) {
  const int64_t seconds = absl::ToInt64Seconds(duration);
  if (seconds < -1) return "<invalid>";
  if (seconds < 120) return absl::StrCat(std::max<int64_t>(seconds, 0), "s");
  const int64_t minutes = seconds / 60;
  const auto two = [](int64_t big, const char* unit, int64_t small, const char* small_unit) {
    return small == 0 ? absl::StrCat(big, unit) : absl::StrCat(big, unit, small, small_unit);
  };
  if (minutes < 10) return two(minutes, "m", seconds % 60, "s");
  if (minutes < 180) return absl::StrCat(minutes, "m");
  const int64_t hours = minutes / 60;
  if (hours < 8) return two(hours, "h", minutes % 60, "m");
  if (hours < 48) return absl::StrCat(hours, "h");
  const int64_t days = hours / 24;
  if (days < 8) return two(days, "d", hours % 24, "h");
  if (days < 365 * 2) return absl::StrCat(days, "d");
  if (days < 365 * 8) return two(days / 365, "y", days % 365, "d");
  return absl::StrCat(days / 365, "y");
}

const Json* FindByJsonPath(const Json& object, absl::string_view path) {
  const Json* at = &object;
  while (!path.empty() && at != nullptr) {
    if (path[0] == '.') {
      const size_t end = std::min(path.find_first_of(".[", 1), path.size());
      at = at->Find(path.substr(1, end - 1));
      path.remove_prefix(end);
      continue;
    }
    const size_t close = path.find(']');
    if (path[0] != '[' || close == absl::string_view::npos || at->size() == 0) return nullptr;
    const absl::string_view index = path.substr(1, close - 1);
    uint64_t number = at->size() - 1;
    if (index != "-1:" && (!absl::SimpleAtoi(index, &number) || number >= at->items().size()))
      return nullptr;
    if (!at->is_array()) return nullptr;
    at = &at->items()[number];
    path.remove_prefix(close + 1);
  }
  return at != nullptr && at->is_null() ? nullptr : at;
}

std::string AgeOf(const Json& object, FieldPath path, absl::Time now) {
  const absl::Time time = ParseObjectTime(StringField(object, path));
  return time == absl::InfinitePast() ? "<unknown>" : HumanDuration(now - time);
}

Json AgeCell(const Json& object, absl::Time now) {
  return AgeOf(object, {"metadata", "creationTimestamp"}, now);
}

std::string OrNone(std::string text) { return text.empty() ? "<none>" : text; }

std::string FirstOf(const std::vector<std::string>& texts) {
  constexpr size_t kShown = 3;
  if (texts.size() <= kShown) return OrNone(absl::StrJoin(texts, ","));
  return absl::StrCat(absl::StrJoin(texts.begin(), texts.begin() + kShown, ","), " + ",
                      texts.size() - kShown, " more...");
}

size_t CountOf(const Json& object, FieldPath path) {
  const Json* const field = FindField(object, path);
  return field == nullptr ? 0 : field->size();
}

std::string LabelsText(const Json* labels) {
  std::vector<std::string> parts;
  if (labels == nullptr) return "<none>";
  for (const JsonMember& label : labels->members())
    parts.push_back(absl::StrCat(label.name, "=", label.value.AsString().value_or("")));
  return OrNone(absl::StrJoin(parts, ","));
}

Json NoneCell(const Json& /*object*/, absl::Time /*now*/) { return "<none>"; }

}  // namespace weft::platform
