// SPDX-License-Identifier: Apache-2.0
#include "weft/replicate/cut_rules.h"

#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"

#include "weft/replicate/node_facts.h"

namespace weft::replicate {
namespace {

const std::map<absl::string_view, CutUse>& Uses() {
  static const auto* const uses = new std::map<absl::string_view, CutUse>({
      {"ReadVariableOp", CutUse::kRead},
      {"ResourceGather", CutUse::kGather},
      {"Gather", CutUse::kGather},
      {"GatherV2", CutUse::kGather},
      {"Assign", CutUse::kUpdate},
      {"AssignAdd", CutUse::kUpdate},
      {"AssignSub", CutUse::kUpdate},
      {"AssignVariableOp", CutUse::kUpdate},
      {"AssignAddVariableOp", CutUse::kUpdate},
      {"AssignSubVariableOp", CutUse::kUpdate},
      {"ScatterAdd", CutUse::kUpdate},
      {"ScatterSub", CutUse::kUpdate},
      {"ScatterMul", CutUse::kUpdate},
      {"ScatterDiv", CutUse::kUpdate},
      {"ScatterMin", CutUse::kUpdate},
      {"ScatterMax", CutUse::kUpdate},
      {"ScatterUpdate", CutUse::kUpdate},
      {"VarIsInitializedOp", CutUse::kIsInitialized},
      {"IsVariableInitialized", CutUse::kIsInitialized},
      {"VariableShape", CutUse::kShape},
      {"L2Loss", CutUse::kSumOfSquares},
      {"Add", CutUse::kByElement},
      {"AddV2", CutUse::kByElement},
      {"AddN", CutUse::kByElement},
      {"Sub", CutUse::kByElement},
      {"Mul", CutUse::kByElement},
      {"RealDiv", CutUse::kByElement},
      {"Square", CutUse::kByElement},
      {"Sqrt", CutUse::kByElement},
      {"Rsqrt", CutUse::kByElement},
      {"Neg", CutUse::kByElement},
      {"Maximum", CutUse::kByElement},
      {"Minimum", CutUse::kByElement},
  });
  return *uses;
}

}  // namespace

CutUse CutUseOf(const OpSchema& op) {
  absl::string_view name = op.name;
  const auto found = Uses().find(name);
  if (found != Uses().end()) return found->second;
  if (!absl::ConsumePrefix(&name, "Resource")) {
    absl::ConsumePrefix(&name, "Sparse");
    return absl::StartsWith(name, "Apply") ? CutUse::kUpdate : CutUse::kNone;
  }
  const auto by_reference = Uses().find(name);
  if (absl::StartsWith(name, "Scatter") && by_reference != Uses().end())
    return by_reference->second;
  absl::ConsumePrefix(&name, "Sparse");
  return absl::StartsWith(name, "Apply") ? CutUse::kUpdate : CutUse::kNone;
}

CutInput CutInputOf(const ArgSchema& input) {
  if (input.is_ref || input.dtype == DType::kResource) return CutInput::kVariable;
  if (input.name == "indices") return CutInput::kIndices;
  static const auto* const rows =
      new std::set<absl::string_view>({"grad", "gradient", "delta", "value", "updates"});
  return rows->contains(input.name) ? CutInput::kRows : CutInput::kOther;
}

bool GathersRows(const Node& node) {
  if (FindAttrOr<int64_t>(node.attrs(), "batch_dims", 0) != 0) return false;
  if (node.num_inputs() < 3) return true;
  const Node& axis = *node.input(2).node;
  if (axis.traits().source != ValueSource::kConstant) return false;
  const StatusOr<Tensor> value = axis.Attr<Tensor>("value");
  const std::optional<Elements> elements = value.ok() ? ElementsOf(*value) : std::nullopt;
  return elements && elements->size() == 1 && elements->front().Is(0);
}

bool IsFill(const Node& node) { return node.op() == "Fill"; }

}  // namespace weft::replicate
