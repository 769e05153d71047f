// SPDX-License-Identifier: Apache-2.0
// Objects as the rows of meta.k8s.io/v1 Tables, which is how `kubectl get` shows them.
#pragma once

#include <vector>

#include "absl/time/time.h"

#include "platform/store/object_store.h"

namespace weft::platform {

enum class RowObject { kNone, kMetadata, kObject };

// "Table" with columns (unless `with_columns` is false) and a row for each object.
Json MakeTable(const ResourceType& type, const std::vector<ObjectPtr>& objects, absl::Time now,
               bool with_columns, RowObject row_object);
// apiVersion meta.k8s.io/v1, kind PartialObjectMetadata.
Json PartialMetadata(const Json& object);

}  // namespace weft::platform
