// SPDX-License-Identifier: Apache-2.0
#include "weft/graph/op_registry.h"

#include <algorithm>
#include <utility>

#include "base/nearest_name.h"
#include "weft/graph/refused_ops.h"

namespace weft {

Status OpRegistry::Add(OpDefinition definition) {
  std::string name = definition.schema.name;
  auto [slot, added] = definitions_.try_emplace(name, nullptr);
  if (!added) return AlreadyExists("Op is registered twice: ", name);
  slot->second = std::make_unique<OpDefinition>(std::move(definition));
  return absl::OkStatus();
}

const OpDefinition* OpRegistry::Find(absl::string_view name) const {
  const auto found = definitions_.find(name);
  return found == definitions_.end() ? nullptr : found->second.get();
}

StatusOr<const OpDefinition*> OpRegistry::Get(absl::string_view name) const {
  if (const OpDefinition* found = Find(name)) return found;
  if (const absl::string_view why = WhyRefused(name); !why.empty()) {
    return NotFound("Op type not registered: '", name, "': ", why);
  }
  std::vector<std::string> names;
  for (const auto& [known, definition] : definitions_) names.push_back(known);
  const std::string nearest = NearestName(name, names);
  return NotFound("Op type not registered: '", name, "'",
                  nearest.empty() ? "" : absl::StrCat(". Did you mean '", nearest, "'?"));
}

std::vector<const OpDefinition*> OpRegistry::All() const {
  std::vector<const OpDefinition*> all;
  for (const auto& [name, definition] : definitions_) all.push_back(definition.get());
  std::sort(all.begin(), all.end(),
            [](const auto* a, const auto* b) { return a->schema.name < b->schema.name; });
  return all;
}

}  // namespace weft
