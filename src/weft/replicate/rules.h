// SPDX-License-Identifier: Apache-2.0
// How ops pass shares on: one rule a kind of op.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include "weft/graph/graph.h"
#include "weft/replicate/share.h"

namespace weft::replicate {

// A node as a rule sees it. Shapes are those of the whole step: the batch's size in them is
// unknown.
struct OpView {
  const Node& node;
  absl::Span<const Share> inputs;
  absl::Span<const PartialShape> shapes;         // of the inputs
  absl::Span<const PartialShape> output_shapes;  // of the outputs

  int rank(int i) const { return shapes[i].rank(); }  // -1: not known
  // An integer of the input's elements, the same for the whole step and on workers; none if it is
  // not known.
  std::optional<int64_t> Integer(int input, int element = 0) const;
  // All of them.
  std::optional<std::vector<int64_t>> Integers(int input) const;
  // Like Integer, counted from the front: -1 is the last of `rank`.
  std::optional<int> Axis(int input, int rank) const;
  bool AnySlice() const;
};

using Shares = std::vector<Share>;
// The outputs' shares on workers that compute the op of such inputs; none if they would be none.
// Sound: what one device computes follows from them as Share says.
using Rule = std::optional<Shares> (*)(const OpView& op);

struct OpRule {
  Rule rule = nullptr;
  // Costs so much that to run it on the whole batch is no distribution.
  bool is_heavy = false;
};

// The rule's outputs; those that are zero, because the op is linear in inputs that are, are told
// so.
std::optional<Shares> ApplyRule(const OpRule& rule, const OpView& op);

// Null for an op of which nothing is known.
const OpRule* FindRule(absl::string_view op);
// May run once on a whole batch at little cost, or has an effect that must happen once.
bool IsLight(const Node& node);
// Draws numbers of a shape: once for the whole batch, whose rows the workers then get.
bool IsRandom(const Node& node);

// Draws candidates beside the true classes of each row: once, and each worker gets how often those
// of its rows are expected.
bool IsSampler(const Node& node);

// The input that says what sizes the output has, of ops with such a one; else -1.
int SizesInput(absl::string_view op);

// The families; each adds its ops.
using RuleTable = std::map<absl::string_view, OpRule>;
void AddElementwiseRules(RuleTable* table);
void AddSizeRules(RuleTable* table);
void AddLayoutRules(RuleTable* table);
void AddProductRules(RuleTable* table);
void AddRowRules(RuleTable* table);
void AddListRules(RuleTable* table);

// What rules share.
namespace rules {
// The first input as it is, also parts and scaled ones: for ops that are linear in it.
std::optional<Shares> Pass(const OpView& op);
// All inputs are slices of the same dimension, counted from the last, that nobody scaled, or whole
// with size 1 there; so is each output.
std::optional<Shares> Pointwise(const OpView& op);
// The dimension of the slices among inputs that broadcast, of an output of `rank`; none if they
// are not in line, or another input has more than one row there.
std::optional<int> SliceInBroadcast(const OpView& op, int rank);
// The scale that slices of scales a and b have in common, where zeros have any.
std::optional<int> SameScale(const Share& a, const Share& b);
}  // namespace rules

}  // namespace weft::replicate
