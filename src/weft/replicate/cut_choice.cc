// SPDX-License-Identifier: Apache-2.0
#include "weft/replicate/cut_choice.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"

#include "weft/replicate/cut_rules.h"

namespace weft::replicate {
namespace {

struct Reader {
  const NodeDef* node = nullptr;
  int input = 0;
};

class Choice {
 public:
  Choice(const OpRegistry& ops, const std::vector<NodeDef>& nodes, const CutWish& wish)
      : ops_(ops), wish_(wish) {
    for (const NodeDef& node : nodes) {
      by_name_[node.name] = &node;
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const StatusOr<TensorName> input = ParseTensorName(node.inputs[i]);
        if (input.ok() && input->port != kControlPort)
          readers_[input->node].push_back({&node, static_cast<int>(i)});
      }
    }
    for (const NodeDef& node : nodes) {
      if (!IsVariable(node)) continue;
      all_bytes_ += BytesOfVariable(node);
      leader_[node.name] = node.name;
    }
  }

  std::set<std::string> Run() {
    for (const auto& [name, leader] : leader_) {
      if (!CanBeCut(*by_name_.at(name))) whole_.insert(name);
    }
    std::map<std::string, std::vector<std::string>> groups;
    for (const auto& [name, leader] : leader_) groups[Leader(name)].push_back(name);
    std::set<std::string> chosen;
    for (const auto& [leader, group] : groups) {
      if (IsToCut(group)) chosen.insert(group.begin(), group.end());
    }
    return chosen;
  }

 private:
  const OpSchema* SchemaOf(const NodeDef& node) const {
    const OpDefinition* const op = ops_.Find(node.op);
    return op == nullptr ? nullptr : &op->schema;
  }
  bool IsVariable(const NodeDef& node) const {
    const OpSchema* const schema = SchemaOf(node);
    return schema != nullptr && schema->traits.source == ValueSource::kVariable;
  }
  static PartialShape ShapeOf(const NodeDef& node) {
    return FindAttrOr<PartialShape>(node.attrs, "shape", PartialShape());
  }

  bool CanBeCut(const NodeDef& variable) {
    const PartialShape shape = ShapeOf(variable);
    if (!shape.IsFullyDefined() || shape.rank() < 1 || shape.dim(0) < wish_.parts) return false;
    if (!IsPlain(FindAttrOr<DType>(variable.attrs, "dtype", DType::kInvalid))) return false;
    std::vector<const NodeDef*> givers = {&variable};  // of references to it, or its handle
    for (size_t i = 0; i < givers.size(); ++i) {
      for (const Reader& reader : readers_[givers[i]->name]) {
        if (!CanRead(variable, reader)) return false;
        const OpSchema& schema = *SchemaOf(*reader.node);
        const bool passes_on = !schema.outputs.empty() && schema.outputs.front().is_ref;
        if (passes_on && std::find(givers.begin(), givers.end(), reader.node) == givers.end())
          givers.push_back(reader.node);
      }
    }
    return true;
  }

  // Also notes which variables the reader changes together with this one.
  bool CanRead(const NodeDef& variable, const Reader& reader) {
    const OpSchema* const schema = SchemaOf(*reader.node);
    if (schema == nullptr) return false;  // a function
    const bool is_reference =
        !SchemaOf(variable)->outputs.empty() && SchemaOf(variable)->outputs.front().is_ref;
    const CutUse use = CutUseOf(*schema);
    const bool reads_value =
        is_reference && std::none_of(schema->inputs.begin(), schema->inputs.end(),
                                     [](const ArgSchema& input) { return input.is_ref; });
    if (reads_value) return true;
    if (use == CutUse::kNone || reader.input >= static_cast<int>(schema->inputs.size()))
      return false;
    // Assignments by reference say so where values may be of another shape.
    if (is_reference && !FindAttrOr<bool>(reader.node->attrs, "validate_shape", true)) return false;
    if (FindAttrOr<int64_t>(reader.node->attrs, "batch_dims", 0) != 0) return false;
    if (use != CutUse::kUpdate) return true;
    for (size_t i = 0; i < schema->inputs.size(); ++i) {
      if (CutInputOf(schema->inputs[i]) != CutInput::kVariable) continue;
      const StatusOr<TensorName> other = ParseTensorName(reader.node->inputs[i]);
      if (!other.ok()) return false;
      if (static_cast<int>(i) == reader.input) continue;
      if (!leader_.contains(other->node)) return false;
      leader_[Leader(other->node)] = Leader(variable.name);
    }
    return true;
  }

  std::string Leader(const std::string& name) const {
    std::string leader = name;
    while (leader_.at(leader) != leader) leader = leader_.at(leader);
    return leader;
  }

  bool IsToCut(const std::vector<std::string>& group) const {
    int64_t bytes = 0;
    const PartialShape shape = ShapeOf(*by_name_.at(group.front()));
    for (const std::string& name : group) {
      if (whole_.contains(name) || !(ShapeOf(*by_name_.at(name)) == shape)) return false;
      bytes += BytesOfVariable(*by_name_.at(name));
    }
    return bytes >= wish_.least_bytes && (!wish_.only_largest || bytes > all_bytes_ / wish_.parts);
  }

  const OpRegistry& ops_;
  const CutWish& wish_;
  absl::flat_hash_map<std::string, const NodeDef*> by_name_;
  absl::flat_hash_map<std::string, std::vector<Reader>> readers_;
  std::map<std::string, std::string> leader_;  // of variables, up to one that leads itself
  std::set<std::string> whole_;                // cannot be cut
  int64_t all_bytes_ = 0;
};

}  // namespace

int64_t BytesOfVariable(const NodeDef& node) {
  const auto dtype = FindAttrOr<DType>(node.attrs, "dtype", DType::kFloat);
  const auto shape = FindAttrOr<PartialShape>(node.attrs, "shape", PartialShape());
  return static_cast<int64_t>(DTypeSize(dtype)) * std::max<int64_t>(1, shape.num_elements());
}

std::set<std::string> ChooseCuts(const OpRegistry& ops, const std::vector<NodeDef>& nodes,
                                 const CutWish& wish) {
  return Choice(ops, nodes, wish).Run();
}

}  // namespace weft::replicate
