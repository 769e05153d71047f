// SPDX-License-Identifier: Apache-2.0
#include "platform/console/printing.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "net/yaml.h"
#include "platform/apiserver/table.h"
#include "platform/console/manifests.h"
#include "platform/object/columns.h"
#include "platform/object/fields.h"
#include "platform/object/object_time.h"

namespace weft::platform {
namespace {

constexpr size_t kGap = 3;

std::string CellText(const Json& cell) {
  return cell.is_string() ? cell.AsString().value_or("") : cell.Dump();
}

std::string LayOut(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const std::vector<std::string>& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      text.append(row[i]);
      if (i + 1 < row.size()) text.append(widths[i] - row[i].size() + kGap, ' ');
    }
    text.push_back('\n');
  }
  return text;
}

std::string EventAge(const Json& event, absl::Time now) {
  const absl::Time last = ParseObjectTime(StringField(event, {"lastTimestamp"}));
  if (last == absl::InfinitePast()) return "<unknown>";
  const int64_t count = IntField(event, {"count"}, 1);
  const std::string age = HumanDuration(now - last);
  if (count < 2) return age;
  const absl::Time first = ParseObjectTime(StringField(event, {"firstTimestamp"}));
  return absl::StrCat(age, " (x", count, " over ", HumanDuration(now - first), ")");
}

}  // namespace

std::string PrintTable(const ResourceType& type, const std::vector<ObjectPtr>& objects,
                       absl::Time now, bool is_wide, bool with_namespace, bool with_head) {
  const Json table = MakeTable(type, objects, now, true, RowObject::kNone);
  const Json::Array& columns = table.Find("columnDefinitions")->items();
  std::vector<std::vector<std::string>> rows;
  const auto is_shown = [&](size_t i) {
    return is_wide || IntField(columns[i], {"priority"}) == 0;
  };
  if (with_head) {
    std::vector<std::string> head;
    if (with_namespace) head.push_back("NAMESPACE");
    for (size_t i = 0; i < columns.size(); ++i) {
      if (is_shown(i)) head.push_back(absl::AsciiStrToUpper(StringField(columns[i], {"name"})));
    }
    rows.push_back(std::move(head));
  }
  const Json::Array& lines = table.Find("rows")->items();
  for (size_t line = 0; line < lines.size(); ++line) {
    std::vector<std::string> row;
    if (with_namespace) row.push_back(NamespaceOf(*objects[line]));
    const Json::Array& cells = lines[line].Find("cells")->items();
    for (size_t i = 0; i < cells.size() && i < columns.size(); ++i) {
      if (is_shown(i)) row.push_back(CellText(cells[i]));
    }
    rows.push_back(std::move(row));
  }
  return LayOut(rows);
}

StatusOr<std::string> PrintObjects(const std::string& form, const ResourceType& type,
                                   const std::vector<ObjectPtr>& objects, bool is_single) {
  if (form == "name") {
    std::string text;
    for (const ObjectPtr& object : objects)
      absl::StrAppend(&text, DisplayName(type, NameOf(*object)), "\n");
    return text;
  }
  if (form != "json" && form != "yaml") {
    return InvalidArgument("There is no output form '", form,
                           "': name, wide, yaml and json are known");
  }
  Json shown;
  if (is_single && objects.size() == 1) {
    shown = *objects[0];
  } else {
    shown.Set("apiVersion", "v1");
    shown.Set("kind", "List");
    Json items = Json::MakeArray();
    for (const ObjectPtr& object : objects) items.Append(*object);
    shown.Set("items", std::move(items));
  }
  return form == "json" ? absl::StrCat(shown.Dump(4), "\n") : DumpYaml(shown);
}

std::string DescribeObject(const Json& object, const std::vector<ObjectPtr>& events,
                           absl::Time now) {
  Json shown = object;
  EraseField(&shown,
             {"metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"});
  EraseField(&shown, {"metadata", "managedFields"});
  std::string text = DumpYaml(shown);
  if (events.empty()) return absl::StrCat(text, "Events:  <none>\n");
  std::vector<std::vector<std::string>> rows = {{"  Type", "Reason", "Age", "From", "Message"}};
  for (const ObjectPtr& event : events) {
    rows.push_back({absl::StrCat("  ", StringField(*event, {"type"})),
                    StringField(*event, {"reason"}), EventAge(*event, now),
                    StringField(*event, {"source", "component"}),
                    StringField(*event, {"message"})});
  }
  return absl::StrCat(text, "Events:\n", LayOut(rows));
}

}  // namespace weft::platform
