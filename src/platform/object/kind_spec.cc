// SPDX-License-Identifier: Apache-2.0
#include "platform/object/kind_spec.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"

#include "platform/object/all_kinds.h"
#include "platform/object/columns.h"

namespace weft::platform {
namespace {

PrinterColumn MakeColumn(absl::string_view name, absl::string_view path, KindSpec::Cell cell) {
  PrinterColumn column;
  column.name = std::string(name);
  column.type = "string";
  column.path = std::string(path);
  column.description = column.name;
  column.cell = cell;
  return column;
}

}  // namespace

KindSpec::KindSpec(absl::string_view group, absl::string_view version, absl::string_view plural,
                   absl::string_view kind)
    : type_(MakeResourceType(std::string(group), std::string(version), std::string(plural),
                             absl::AsciiStrToLower(kind), std::string(kind),
                             /*is_namespaced=*/true)) {
  type_.name_rule = &SubdomainProblems;
}

KindSpec& KindSpec::ShortNames(std::vector<std::string> names) {
  type_.short_names = std::move(names);
  return *this;
}

KindSpec& KindSpec::Categories(std::vector<std::string> names) {
  type_.categories = std::move(names);
  return *this;
}

KindSpec& KindSpec::Served(std::vector<std::string> versions) {
  type_.versions = std::move(versions);
  return *this;
}

KindSpec& KindSpec::OfCluster() {
  type_.is_namespaced = false;
  return *this;
}

KindSpec& KindSpec::HasStatus() {
  type_.has_status = true;
  return *this;
}

KindSpec& KindSpec::Scale(absl::string_view path, absl::string_view status_path) {
  type_.scale_path = std::string(path);
  type_.scale_status_path = std::string(status_path);
  return *this;
}

KindSpec& KindSpec::Serves(absl::string_view subresource, absl::string_view kind,
                           std::vector<std::string> verbs) {
  type_.subresources.push_back({std::string(subresource), std::string(kind), std::move(verbs)});
  return *this;
}

KindSpec& KindSpec::Custom() {
  type_.is_custom = true;
  return *this;
}

KindSpec& KindSpec::Named(decltype(ResourceType::name_rule) rule) {
  type_.name_rule = rule;
  return *this;
}

KindSpec& KindSpec::SelectableBy(std::vector<std::string> fields) {
  type_.selectable_fields = std::move(fields);
  return *this;
}

KindSpec& KindSpec::Defaults(decltype(ResourceType::defaults) defaults) {
  type_.defaults = defaults;
  return *this;
}

KindSpec& KindSpec::Check(decltype(ResourceType::check) check) {
  type_.check = check;
  return *this;
}

KindSpec& KindSpec::Schema(decltype(ResourceType::schema) schema) {
  type_.schema = schema;
  return *this;
}

KindSpec& KindSpec::Column(PrinterColumn column) {
  type_.columns.push_back(std::move(column));
  return *this;
}

KindSpec& KindSpec::Column(absl::string_view name, absl::string_view path,
                           absl::string_view description) {
  PrinterColumn column = MakeColumn(name, path, nullptr);
  if (!description.empty()) column.description = std::string(description);
  return Column(std::move(column));
}

KindSpec& KindSpec::Column(absl::string_view name, Cell cell) {
  return Column(MakeColumn(name, "", cell));
}

KindSpec& KindSpec::Count(absl::string_view name, absl::string_view path,
                          absl::string_view description) {
  Column(name, path, description);
  type_.columns.back().type = "integer";
  // What a definition's columns show is decided by the cluster: nothing.
  if (!type_.is_custom) type_.columns.back().missing = 0;
  return *this;
}

KindSpec& KindSpec::Wide(absl::string_view name, absl::string_view path) {
  Column(name, path);
  type_.columns.back().priority = 1;
  return *this;
}

KindSpec& KindSpec::Wide(absl::string_view name, Cell cell) {
  Column(name, cell);
  type_.columns.back().priority = 1;
  return *this;
}

KindSpec& KindSpec::Age() {
  if (!type_.is_custom) return Column("Age", &AgeCell);
  return Column({"Age", "date", ".metadata.creationTimestamp", "Time since its creation", 0});
}

ResourceType KindSpec::Build() const {
  if (!type_.columns.empty()) return type_;
  KindSpec with_age = *this;
  return with_age.Age().type_;
}

std::vector<ResourceType> KindCatalogue() {
  std::vector<ResourceType> types;
  AddAllKinds(&types);
  const auto rank = [](const ResourceType& type) {
    return std::tuple(type.is_custom, !type.group.empty(), type.group, type.plural);
  };
  std::sort(types.begin(), types.end(),
            [&](const ResourceType& a, const ResourceType& b) { return rank(a) < rank(b); });
  return types;
}

}  // namespace weft::platform
