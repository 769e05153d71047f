// SPDX-License-Identifier: Apache-2.0
#include "platform/apiserver/table.h"

#include <utility>

#include "platform/object/columns.h"

namespace weft::platform {
namespace {

Json ColumnDefinitions(const std::vector<PrinterColumn>& columns) {
  Json list = Json::MakeArray();
  for (const PrinterColumn& column : columns) {
    Json definition;
    definition.Set("name", column.name);
    definition.Set("type", column.type);
    definition.Set("format", column.name == "Name" ? "name" : "");
    definition.Set("description", column.description);
    definition.Set("priority", column.priority);
    list.Append(std::move(definition));
  }
  return list;
}

}  // namespace

Json PartialMetadata(const Json& object) {
  Json partial;
  partial.Set("kind", "PartialObjectMetadata");
  partial.Set("apiVersion", "meta.k8s.io/v1");
  if (const Json* const meta = object.Find("metadata")) partial.Set("metadata", *meta);
  return partial;
}

Json MakeTable(const ResourceType& type, const std::vector<ObjectPtr>& objects, absl::Time now,
               bool with_columns, RowObject row_object) {
  Json table;
  table.Set("kind", "Table");
  table.Set("apiVersion", "meta.k8s.io/v1");
  table.Set("metadata", Json::MakeObject());
  table.Set("columnDefinitions", with_columns ? ColumnDefinitions(ColumnsOf(type)) : Json());
  Json rows = Json::MakeArray();
  for (const ObjectPtr& object : objects) {
    Json row;
    row.Set("cells", Json(CellsOf(type, *object, now)));
    if (row_object == RowObject::kMetadata) row.Set("object", PartialMetadata(*object));
    if (row_object == RowObject::kObject) row.Set("object", *object);
    rows.Append(std::move(row));
  }
  table.Set("rows", std::move(rows));
  return table;
}

}  // namespace weft::platform
