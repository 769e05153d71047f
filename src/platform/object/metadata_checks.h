// SPDX-License-Identifier: Apache-2.0
// What an API server checks of every object's metadata, in its words.
#pragma once

#include <string>
#include <vector>

#include "net/json.h"
#include "platform/object/field_reader.h"
#include "platform/object/names.h"

namespace weft::platform {

// Each problem of the name at `path`.
void CheckName(const Json& at, const std::string& path, absl::string_view name,
               NameProblems (*check)(absl::string_view), Problems* problems);

// One of some words, or nothing, in a field of the object at `path`.
void CheckWord(const Json& object, const std::string& path, const char* field,
               const std::vector<std::string>& allowed, Problems* problems);

// A mapping of label keys to values, as `labels`, `nodeSelector` and `matchLabels` are.
void CheckLabels(const Json& labels, const std::string& path, Problems* problems);

// Labels, annotations, owners and finalizers; not the name, which each kind checks in its own way.
void CheckMetadata(const Json& metadata, const std::string& path, Problems* problems);

// A label selector: matchLabels and matchExpressions.
void CheckLabelSelector(const Json& selector, const std::string& path, Problems* problems);

}  // namespace weft::platform
