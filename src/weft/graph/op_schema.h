// SPDX-License-Identifier: Apache-2.0
// What an op takes, gives and is parameterised by (op_def.proto in memory).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "base/status.h"
#include "weft/graph/attr_value.h"
#include "weft/graph/op_traits.h"

namespace weft {

// An input or output: one tensor, N tensors of one type (number_attr), or a list of types.
struct ArgSchema {
  std::string name;
  DType dtype = DType::kInvalid;  // fixed type, unless one of the attrs below is set
  std::string type_attr;
  std::string number_attr;
  std::string type_list_attr;
  bool is_ref = false;
  bool on_host = false;  // stays in the host's memory on every device
};

struct AttrSchema {
  std::string name;
  std::string kind;  // "int", "list(type)", ...
  std::optional<AttrValue> default_value;
  std::optional<int64_t> minimum;    // of an int, or of a list's length
  std::vector<DType> allowed_types;  // empty = all
  std::vector<std::string> allowed_strings;
};

struct OpSchema {
  std::string name;
  std::vector<ArgSchema> inputs;
  std::vector<ArgSchema> outputs;
  std::vector<AttrSchema> attrs;
  std::vector<std::string> control_outputs;  // of functions
  bool is_stateful = false;
  bool is_commutative = false;
  bool is_aggregate = false;
  bool allows_uninitialized_input = false;
  bool is_distributed_communication = false;
  OpTraits traits;
  int deprecated_since = 0;  // GraphDef producer version; 0 = not deprecated
  std::string deprecation;

  const AttrSchema* FindAttr(absl::string_view attr_name) const;
};

// Parsers of the signature language of TensorFlow's op registrations:
//   inputs and outputs  "x: float", "x: T", "values: N * T", "components: Tcomponents", "ref:
//   Ref(T)" attributes          "T: {float, double}", "N: int >= 1", "axis: int = 0", "Tin:
//   list(type) >= 1",
//                       "T: numbertype", "T: realnumbertype = DT_FLOAT", "mode: {'a', 'b'} = 'a'"
// Args refer to attributes by name, so parse attributes first and pass them.
StatusOr<AttrSchema> ParseAttrSchema(absl::string_view text);
StatusOr<ArgSchema> ParseArgSchema(absl::string_view text, const std::vector<AttrSchema>& attrs);

// The types of an op's inputs or outputs once its attributes are known, one entry a tensor.
struct ArgType {
  DType dtype = DType::kInvalid;
  bool is_ref = false;
  bool on_host = false;  // as in ArgSchema
  bool operator==(const ArgType& other) const {
    return dtype == other.dtype && is_ref == other.is_ref;
  }
};
StatusOr<std::vector<ArgType>> ResolveArgs(const std::vector<ArgSchema>& args,
                                           const AttrMap& attrs);

// Checks kind, range and allowed values of each attribute, fills in defaults, ignores unknown ones.
// InvalidArgument names the attribute.
Status CompleteAttrs(const OpSchema& schema, AttrMap* attrs);

}  // namespace weft
