// SPDX-License-Identifier: Apache-2.0
#include "weft/replicate/rules.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"

namespace weft::replicate {
namespace {

const RuleTable& Table() {
  static const RuleTable* const table = [] {
    auto* made = new RuleTable();
    AddElementwiseRules(made);
    AddSizeRules(made);
    AddLayoutRules(made);
    AddProductRules(made);
    AddRowRules(made);
    AddListRules(made);
    return made;
  }();
  return *table;
}

}  // namespace

std::optional<int64_t> OpView::Integer(int input, int element) const {
  if (input >= static_cast<int>(inputs.size())) return std::nullopt;
  const Share& share = inputs[input];
  if (!share.is_same() || !share.elements) return std::nullopt;
  if (element >= static_cast<int>(share.elements->size())) return std::nullopt;
  const Element& found = (*share.elements)[element];
  if (!found.IsKnown()) return std::nullopt;
  return found.value;
}

std::optional<std::vector<int64_t>> OpView::Integers(int input) const {
  if (input >= static_cast<int>(inputs.size()) || !inputs[input].is_same() ||
      !inputs[input].elements) {
    return std::nullopt;
  }
  std::vector<int64_t> values;
  for (const Element& element : *inputs[input].elements) {
    if (!element.IsKnown()) return std::nullopt;
    values.push_back(element.value);
  }
  return values;
}

std::optional<int> OpView::Axis(int input, int rank) const {
  const std::optional<int64_t> axis = Integer(input);
  if (!axis || rank < 0 || *axis >= rank || *axis < -rank) return std::nullopt;
  return static_cast<int>(*axis < 0 ? *axis + rank : *axis);
}

bool OpView::AnySlice() const {
  return std::any_of(inputs.begin(), inputs.end(), [](const Share& s) { return s.is_slice(); });
}

std::optional<Shares> ApplyRule(const OpRule& rule, const OpView& op) {
  std::optional<Shares> outputs = rule.rule(op);
  // If f(K x) = K f(x), then f(0) = 0: so says the rule itself, asked what becomes of the scale.
  std::vector<Share> scaled(op.inputs.begin(), op.inputs.end());
  bool has_zeros = false;
  for (Share& input : scaled) {
    if (!input.zero || input.is_list || !(input.is_slice() || input.is_part())) continue;
    has_zeros = true;
    input.zero = false;
    ++input.scale;
  }
  if (!outputs || !has_zeros) return outputs;
  const std::optional<Shares> probe = rule.rule({op.node, scaled, op.shapes, op.output_shapes});
  if (!probe || probe->size() != outputs->size()) return outputs;
  for (size_t i = 0; i < outputs->size(); ++i) {
    Share& output = (*outputs)[i];
    const bool follows = output.kind == (*probe)[i].kind && (output.is_slice() || output.is_part());
    if (follows && !output.is_list && (*probe)[i].scale == output.scale + 1) output.zero = true;
  }
  return outputs;
}

const OpRule* FindRule(absl::string_view op) {
  const auto found = Table().find(op);
  return found == Table().end() ? nullptr : &found->second;
}

bool IsRandom(const Node& node) {
  static const auto* const names = new std::set<absl::string_view>(
      {"RandomUniform", "RandomStandardNormal", "TruncatedNormal", "RandomUniformInt",
       "StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal",
       "StatelessRandomUniformV2", "StatelessRandomNormalV2", "StatelessTruncatedNormalV2"});
  return names->contains(node.op());
}

bool IsSampler(const Node& node) { return absl::EndsWith(node.op(), "CandidateSampler"); }

bool IsLight(const Node& node) {
  if (node.IsCallEnd() || node.traits().changes_variable || IsRandom(node) || IsSampler(node))
    return true;
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (node.input_type(i).is_ref) return true;
  }
  static const auto* const names = new std::set<absl::string_view>({"Unique",
                                                                    "UniqueV2",
                                                                    "UnsortedSegmentSum",
                                                                    "SegmentSum",
                                                                    "SparseSegmentSum",
                                                                    "Assert",
                                                                    "Print",
                                                                    "PrintV2",
                                                                    "StringFormat",
                                                                    "AsString",
                                                                    "StringJoin",
                                                                    "CheckNumerics",
                                                                    "Where",
                                                                    "ScalarSummary",
                                                                    "HistogramSummary",
                                                                    "TensorSummary",
                                                                    "TensorSummaryV2",
                                                                    "ImageSummary",
                                                                    "MergeSummary",
                                                                    "WriteSummary",
                                                                    "WriteScalarSummary",
                                                                    "WriteHistogramSummary",
                                                                    "ConfusionMatrix",
                                                                    "SparseToDense",
                                                                    "SetSize",
                                                                    "ScatterNd",
                                                                    "ComputeAccidentalHits",
                                                                    "DenseToDenseSetOperation",
                                                                    "Bincount",
                                                                    "UniqueWithCounts",
                                                                    "IsFinite",
                                                                    "IsNan",
                                                                    "IsInf"});
  if (names->contains(node.op())) return true;
  const OpRule* const rule = FindRule(node.op());
  return rule != nullptr && !rule->is_heavy;
}

int SizesInput(absl::string_view op) {
  if (op == "Reshape" || op == "BroadcastTo" || op == "SparseToDense") return 1;
  if (op == "ScatterNd") return 2;
  const bool is_first = op == "Fill" || op == "Conv2DBackpropInput" ||
                        op == "DepthwiseConv2dNativeBackpropInput" || op == "StridedSliceGrad";
  return is_first ? 0 : -1;
}

namespace rules {

std::optional<Shares> Pass(const OpView& op) {
  return Shares(op.node.num_outputs(), op.inputs[0].OnWorkers());
}

std::optional<int> SameScale(const Share& a, const Share& b) {
  if (a.zero) return b.scale;
  if (b.zero || a.scale == b.scale) return a.scale;
  return std::nullopt;
}

std::optional<int> SliceInBroadcast(const OpView& op, int rank) {
  std::optional<int> from_end;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    if (!op.inputs[i].is_slice()) continue;
    if (op.rank(i) < 0) return std::nullopt;
    const int here = op.rank(i) - op.inputs[i].dim;
    if (from_end && *from_end != here) return std::nullopt;
    from_end = here;
  }
  if (!from_end || rank < 0) return std::nullopt;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    if (op.inputs[i].is_slice()) continue;
    if (op.rank(i) < 0) return std::nullopt;
    if (op.rank(i) >= *from_end && op.shapes[i].dim(op.rank(i) - *from_end) != 1)
      return std::nullopt;
  }
  return rank - *from_end;
}

std::optional<Shares> Pointwise(const OpView& op) {
  int rank = -1;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const Share& share = op.inputs[i];
    if (share.is_part()) return std::nullopt;
    if (share.is_slice() && share.scale != 0 && !share.zero) return std::nullopt;
    if (share.is_equal() && share.UniformPower() != 0) return std::nullopt;
    rank = std::max(rank, op.rank(i));
  }
  if (!op.AnySlice()) return Shares(op.node.num_outputs(), Share::Equal());
  const std::optional<int> dim = SliceInBroadcast(op, rank);
  if (!dim) return std::nullopt;
  return Shares(op.node.num_outputs(), Share::Slice(*dim));
}

}  // namespace rules
}  // namespace weft::replicate
