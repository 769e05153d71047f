// SPDX-License-Identifier: Apache-2.0
// The fields of Kubernetes' own kinds and what they hold: facts, generated from the OpenAPI of an
// API server (kubernetes_types.txt).
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "net/json.h"
#include "platform/object/field_reader.h"

namespace weft::platform {

struct TypeFacts;

struct FieldFacts {
  enum class Holds {
    kAny,
    kString,
    kBool,
    kInt32,
    kInt64,
    kNumber,
    kBytes,
    kTime,
    kMicroTime,  // with six digits of a second, always
    kQuantity,
    kIntOrString,
    kObject
  };
  enum class Shape { kOne, kList, kMap };

  std::string name;
  Holds holds = Holds::kAny;
  Shape shape = Shape::kOne;
  bool is_required = false;
  const TypeFacts* type = nullptr;  // of kObject; lives as long as the process
};

struct TypeFacts {
  std::string name;                // "PodSpec"
  std::vector<FieldFacts> fields;  // by name

  // Null when there is none.
  const FieldFacts* Find(absl::string_view field) const;
  std::vector<std::string> Names() const;
};

// Null for a type that is not known.
const TypeFacts* FindTypeFacts(absl::string_view name);
// All of them, by name.
const std::vector<TypeFacts>& AllTypeFacts();

// What a server could not read: values of another kind, and fields that it does not know (as
// is_unknown_field). True when there are none of the former.
bool CheckFields(const Json& value, const TypeFacts& type, const std::string& path,
                 Problems* problems);

// The same of one field at `path`.
bool CheckField(const Json& value, const FieldFacts& field, const std::string& path,
                Problems* problems);

// As a server keeps what it could read: without the fields that it does not know, without nulls,
// quantities in their shortest form.
void KeepKnownFields(const TypeFacts& type, Json* value);

}  // namespace weft::platform
