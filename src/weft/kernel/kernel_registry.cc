// SPDX-License-Identifier: Apache-2.0
#include "weft/kernel/kernel_registry.h"

#include <algorithm>
#include <utility>

namespace weft {
namespace {

bool TypesFit(const KernelDef& def, const AttrMap& attrs) {
  for (const auto& [attr, allowed] : def.types) {
    const auto found = attrs.find(attr);
    if (found == attrs.end()) return false;
    const auto is_allowed = [&types = allowed](DType dtype) {
      return std::find(types.begin(), types.end(), dtype) != types.end();
    };
    if (const DType* dtype = found->second.As<DType>()) {
      if (!is_allowed(*dtype)) return false;
    } else if (const auto* list = found->second.As<AttrValue::TypeList>()) {
      if (!std::all_of(list->begin(), list->end(), is_allowed)) return false;
    }
  }
  return true;
}

std::string TypesText(const AttrMap& attrs) {
  std::string text;
  for (const auto& [name, value] : attrs) {
    if (value.As<DType>() == nullptr) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", name, "=", value.ToString());
  }
  return text;
}

}  // namespace

void KernelRegistry::Add(KernelDef def) {
  std::vector<KernelDef>& list = kernels_[def.op];
  list.push_back(std::move(def));
}

void KernelRegistry::AddTile(const std::string& op, TileBody body) { tiles_[op].push_back(body); }

StatusOr<const KernelDef*> KernelRegistry::Find(const OpCall& call,
                                                const std::string& device_type) const {
  StatusOr<const KernelDef*> found = Find(call.op(), call.attrs(), device_type);
  if (found.ok()) return found;
  return Annotate(found.status(), absl::StrCat("Node '", call.name(), "'"));
}

StatusOr<const KernelDef*> KernelRegistry::Find(const std::string& op, const AttrMap& attrs,
                                                const std::string& device_type) const {
  const std::vector<KernelDef>* list = KernelsOf(op);
  if (list != nullptr) {
    for (const KernelDef& def : *list) {
      if (def.device_type == device_type && TypesFit(def, attrs)) return &def;
    }
    for (const KernelDef& def : *list) {
      if (def.any_device && TypesFit(def, attrs)) return &def;
    }
  }
  return InvalidArgument("No kernel for op ", op, " (", TypesText(attrs), ") on device type ",
                         device_type, list == nullptr ? ": the op has no kernels yet" : "");
}

const std::vector<KernelDef>* KernelRegistry::KernelsOf(const std::string& op) const {
  const auto found = kernels_.find(op);
  return found == kernels_.end() ? nullptr : &found->second;
}

const TileBody* KernelRegistry::FindTile(const std::string& op, DType input) const {
  const auto found = tiles_.find(op);
  if (found == tiles_.end()) return nullptr;
  for (const TileBody& body : found->second) {
    if (body.input == input) return &body;
  }
  return nullptr;
}

}  // namespace weft
