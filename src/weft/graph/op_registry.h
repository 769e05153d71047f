// SPDX-License-Identifier: Apache-2.0
// What the graph half knows of each op: signature, shape function, gradient, documentation.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

#include "base/status.h"
#include "weft/graph/op_schema.h"

namespace weft {

class ShapeContext;
class GradientContext;

using ShapeFunction = std::function<Status(ShapeContext&)>;
using GradientFunction = std::function<Status(GradientContext&)>;

struct OpDefinition {
  OpSchema schema;
  ShapeFunction shape;        // empty: shapes are unknown
  GradientFunction gradient;  // empty: see has_no_gradient
  // The op is known not to be differentiable: gradients stop here without an error.
  bool has_no_gradient = false;
  std::string documentation;
};

// Read-only after start-up, then safe on any thread. Definitions keep their address.
class OpRegistry {
 public:
  Status Add(OpDefinition definition);
  // Null if unknown.
  const OpDefinition* Find(absl::string_view name) const;
  // NotFound with the nearest name if unknown.
  StatusOr<const OpDefinition*> Get(absl::string_view name) const;
  std::vector<const OpDefinition*> All() const;  // by name

 private:
  absl::flat_hash_map<std::string, std::unique_ptr<OpDefinition>> definitions_;
};

}  // namespace weft
