// SPDX-License-Identifier: Apache-2.0
// Ops that compute each element of its own, and what is made like them.
#include <algorithm>

#include "weft/replicate/rules.h"

namespace weft::replicate {
namespace {

using rules::Pointwise;
using rules::SameScale;
using rules::SliceInBroadcast;

int OutputRank(const OpView& op) {
  int rank = -1;
  for (size_t i = 0; i < op.inputs.size(); ++i) rank = std::max(rank, op.rank(i));
  return rank;
}

std::optional<Shares> One(Share share) { return Shares{std::move(share)}; }

// f(a, b) of each element of two integer vectors; a scalar goes with all elements of the other.
template <typename F>
std::optional<Elements> Zip(const Share& a, const Share& b, F f) {
  if (!a.elements || !b.elements) return std::nullopt;
  const Elements &x = *a.elements, &y = *b.elements;
  if (x.size() != y.size() && x.size() != 1 && y.size() != 1) return std::nullopt;
  Elements out;
  for (size_t i = 0; i < std::max(x.size(), y.size()); ++i) {
    const std::optional<Element> element = f(x[x.size() == 1 ? 0 : i], y[y.size() == 1 ? 0 : i]);
    if (!element) return std::nullopt;
    out.push_back(*element);
  }
  return out;
}

// x and y where both are known and the same on workers.
template <typename F>
auto OfKnown(F f) {
  return [f](const Element& x, const Element& y) -> std::optional<Element> {
    if (x.power != 0 || y.power != 0) return std::nullopt;
    if (x.value == Element::kUnknown || y.value == Element::kUnknown) return Element{};
    return Element{.value = f(x.value, y.value)};
  };
}

// The outputs of an op of values that are the same on each worker.
std::optional<Shares> Equal(std::optional<Elements> elements) {
  if (!elements) return std::nullopt;
  return One(Share::Sizes(*std::move(elements)));
}

std::optional<Shares> AddTwo(const OpView& op) {
  const Share &a = op.inputs[0], &b = op.inputs[1];
  if (a.is_same() && b.is_same()) {
    const bool minus = op.node.op() == "Sub";
    const auto sum = Zip(a, b, [&](const Element& x, const Element& y) -> std::optional<Element> {
      if (y.Is(0)) return x;
      if (x.Is(0) && !minus) return y;
      if (x.power != y.power) return std::nullopt;
      Element element{.power = x.power};
      if (x.IsKnown() && y.IsKnown()) element.value = minus ? x.value - y.value : x.value + y.value;
      return element;
    });
    if (sum) return Equal(sum);
    if (!a.UniformPower() || a.UniformPower() != b.UniformPower()) return std::nullopt;
    return One(Share::Equal(*a.UniformPower()));
  }
  if (a.is_slice() || b.is_slice()) {
    if (a.is_part() || b.is_part()) return std::nullopt;
    const auto scaled = [](const Share& s) {
      return s.is_slice() ? s : Share{.scale = s.UniformPower().value_or(99), .zero = s.zero};
    };
    const std::optional<int> scale = SameScale(scaled(a), scaled(b));
    const std::optional<int> dim = SliceInBroadcast(op, OutputRank(op));
    if (!scale || !dim || *scale == 99) return std::nullopt;
    return One(Share::Slice(*dim, *scale));
  }
  if (a.is_part() && b.is_part()) {
    if (a.scale != b.scale) return std::nullopt;
    return One(Share::Part(a.scale));
  }
  // A mean over the workers of x + c is the mean of x, plus c.
  const Share &part = a.is_part() ? a : b, &same = a.is_part() ? b : a;
  if (same.zero && (a.is_part() || op.node.op() != "Sub")) return One(Share::Part(part.scale));
  if (part.scale != 1 || same.UniformPower() != 0) return std::nullopt;
  return One(Share::Part(1));
}

std::optional<Shares> AddMany(const OpView& op) {
  const auto is_nothing = [](const Share& share) {
    return share.is_same() && share.zero && !share.is_list;
  };
  const auto first = std::find_if_not(op.inputs.begin(), op.inputs.end(), is_nothing);
  Share sum = first == op.inputs.end() ? op.inputs[0] : *first;
  sum.late = sum.cut = false;
  for (const Share& share : op.inputs) {
    if (is_nothing(share) && sum.is_part()) continue;
    const std::optional<int> scale = SameScale(sum, share);
    if (share.kind != sum.kind || share.dim != sum.dim || !scale || share.elements)
      return std::nullopt;
    sum.scale = *scale;
    sum.zero = sum.zero && share.zero;
  }
  return One(sum);
}

std::optional<Shares> MultiplyTwo(const OpView& op) {
  const Share &a = op.inputs[0], &b = op.inputs[1];
  if (a.is_same() && b.is_same()) {
    const auto product = Zip(a, b, [](const Element& x, const Element& y) {
      Element element{.power = x.power + y.power};
      if (x.IsKnown() && y.IsKnown()) element.value = x.value * y.value;
      return std::optional<Element>(element);
    });
    if (product) return Equal(product);
    if (!a.UniformPower() || !b.UniformPower()) return std::nullopt;
    return One(Share::Equal(*a.UniformPower() + *b.UniformPower()));
  }
  if (a.is_slice() || b.is_slice()) {
    if (a.is_part() || b.is_part()) return std::nullopt;
    const auto scale = [](const Share& s) { return s.is_slice() ? s.scale : s.UniformPower(); };
    const std::optional<int> dim = SliceInBroadcast(op, OutputRank(op));
    if (!dim || !scale(a) || !scale(b)) return std::nullopt;
    Share out = Share::Slice(*dim, *scale(a) + *scale(b));
    out.zero = a.zero || b.zero;
    return One(out);
  }
  if (a.is_part() && b.is_part()) return std::nullopt;
  const Share &part = a.is_part() ? a : b, &same = a.is_part() ? b : a;
  if (!same.UniformPower()) return std::nullopt;
  return One(Share::Part(part.scale + *same.UniformPower()));
}

// Sizes that are whole multiples, as a step's batch is of the workers' number.
std::optional<Element> Divide(const Element& x, const Element& y) {
  Element element{.power = x.power - y.power};
  if (x.IsKnown() && y.IsKnown()) {
    if (y.value == 0) return std::nullopt;
    element.value = x.value / y.value;
  }
  // 7 / 2 rounds the same everywhere only if both are the same everywhere.
  if (y.power == 0 && x.power != 0 && !y.IsKnown()) return std::nullopt;
  return element;
}

std::optional<Shares> Quotient(const OpView& op) {
  const Share &a = op.inputs[0], &b = op.inputs[1];
  const bool is_exact = IsFloating(op.node.output_type(0).dtype) && op.node.op() != "FloorDiv" &&
                        op.node.op() != "TruncateDiv";
  if (a.is_same() && b.is_same()) {
    if (a.elements && b.elements) return Equal(Zip(a, b, Divide));
    if (!is_exact || !a.UniformPower() || !b.UniformPower()) return std::nullopt;
    return One(Share::Equal(*a.UniformPower() - *b.UniformPower()));
  }
  if (!is_exact) return Pointwise(op);
  if (b.is_part()) return std::nullopt;
  if (a.is_slice() || b.is_slice()) {
    if (a.is_part()) return std::nullopt;
    const auto scale = [](const Share& s) { return s.is_slice() ? s.scale : s.UniformPower(); };
    const std::optional<int> dim = SliceInBroadcast(op, OutputRank(op));
    if (!dim || !scale(a) || !scale(b)) return std::nullopt;
    Share out = Share::Slice(*dim, *scale(a) - *scale(b));
    out.zero = a.zero;
    return One(out);
  }
  if (!b.UniformPower()) return std::nullopt;
  return One(Share::Part(a.scale - *b.UniformPower()));
}

// max(batch, 1) and its like guard against division by nothing: of no less than one row, they are
// the size itself.
std::optional<Shares> Maximum(const OpView& op) {
  const Share &a = op.inputs[0], &b = op.inputs[1];
  if (!a.is_same() || !b.is_same()) return Pointwise(op);
  const auto known = Zip(a, b, [](const Element& x, const Element& y) -> std::optional<Element> {
    if (x.power < 0 && y.Is(1)) return x;
    if (y.power < 0 && x.Is(1)) return y;
    return OfKnown([](int64_t p, int64_t q) { return std::max(p, q); })(x, y);
  });
  return known ? Equal(known) : Pointwise(op);
}

std::optional<Shares> FloorMod(const OpView& op) {
  const auto known = Zip(op.inputs[0], op.inputs[1], OfKnown([](int64_t x, int64_t y) {
                           return y == 0 ? Element::kUnknown : ((x % y) + y) % y;
                         }));
  return known ? Equal(known) : Pointwise(op);
}

// condition ? x : y, each of which may be scaled.
std::optional<Shares> Select(const OpView& op) {
  const Share &condition = op.inputs[0], &x = op.inputs[1], &y = op.inputs[2];
  for (const Share& share : op.inputs) {
    if (share.is_part() || (share.is_equal() && share.UniformPower() != 0)) return std::nullopt;
  }
  if (condition.is_slice() && condition.scale != 0) return std::nullopt;
  if (!op.AnySlice()) return One(Share::Equal());
  // Select takes a vector of conditions for the rows of its operands.
  const bool by_row = op.node.op() == "Select" && op.rank(0) == 1 && op.rank(1) > 1;
  std::optional<int> dim;
  if (by_row) {
    if (!condition.is_slice() || !x.is_slice() || !y.is_slice() || x.dim != 0 || y.dim != 0)
      return std::nullopt;
    dim = 0;
  } else {
    dim = SliceInBroadcast(op, OutputRank(op));
  }
  const std::optional<int> scale = SameScale(x, y);
  if (!dim || !scale) return std::nullopt;
  return One(Share::Slice(*dim, *scale));
}

std::optional<Shares> Cast(const OpView& op) {
  const DType from = op.node.input_type(0).dtype, to = op.node.output_type(0).dtype;
  const bool is_linear =
      to != DType::kBool && from != DType::kBool && (IsFloating(to) || !IsFloating(from));
  return is_linear ? rules::Pass(op) : Pointwise(op);
}

// An op that is linear in the input `linear`, which has the shape of the others.
template <int kLinear>
std::optional<Shares> LinearIn(const OpView& op) {
  std::optional<int> dim;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const Share& share = op.inputs[i];
    if (!share.is_slice() || (dim && *dim != share.dim)) return std::nullopt;
    if (static_cast<int>(i) != kLinear && share.scale != 0 && !share.zero) return std::nullopt;
    dim = share.dim;
  }
  Share out = Share::Slice(*dim, op.inputs[kLinear].scale);
  out.zero = op.inputs[kLinear].zero;
  return One(out);
}

std::optional<Shares> ZerosLike(const OpView& op) {
  const Share& x = op.inputs[0];
  if (x.is_list) {
    Share zeros = x.OnWorkers();
    zeros.zero = true;
    return One(zeros);
  }
  Share zeros = x.is_slice() ? Share::Slice(x.dim) : Share::Equal();
  zeros.zero = true;
  return One(zeros);
}

std::optional<Shares> OnesLike(const OpView& op) {
  const Share& x = op.inputs[0];
  return One(x.is_slice() ? Share::Slice(x.dim) : Share::Equal());
}

// Half the sum of squares.
std::optional<Shares> L2Loss(const OpView& op) {
  const Share& x = op.inputs[0];
  if (!x.is_slice() || x.scale != 0) return std::nullopt;
  return One(Share::Part(0));
}

// Data of a condition that is the same everywhere: all workers go the same way.
std::optional<Shares> Switch(const OpView& op) {
  if (op.inputs[1].UniformPower() != 0) return std::nullopt;
  return Shares(op.node.num_outputs(), op.inputs[0].OnWorkers());
}

std::optional<Shares> Merge(const OpView& op) {
  std::optional<Share> out = op.inputs[0].OnWorkers();
  for (const Share& share : op.inputs) {
    if (out) out = Join(*out, share);
  }
  if (!out) return std::nullopt;
  return Shares{*out, Share::Equal()};
}

}  // namespace

void AddElementwiseRules(RuleTable* table) {
  for (const char* op :
       {"Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Digamma",
        "Elu", "Erf", "Erfc", "Erfinv", "Exp", "Expm1", "Floor", "Inv", "IsFinite", "IsInf",
        "IsNan", "LeakyRelu", "Lgamma", "Log", "Log1p", "LogicalNot", "Reciprocal", "Relu", "Relu6",
        "Rint", "Round", "Rsqrt", "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign",
        "Sqrt", "Square", "Tan", "Tanh",
        // Two that broadcast.
        "ApproximateEqual", "Atan2", "Equal", "FloorDiv", "Greater", "GreaterEqual", "Less",
        "LessEqual", "LogicalAnd", "LogicalOr", "Minimum", "Mod", "NotEqual", "Pow",
        "SquaredDifference", "TruncateMod", "Xdivy", "Xlogy", "ClipByValue"}) {
    (*table)[op] = {Pointwise};
  }
  for (const char* op : {"Identity", "Neg", "StopGradient", "PreventGradient", "Snapshot",
                         "PlaceholderWithDefault", "CheckNumerics", "EnsureShape"}) {
    (*table)[op] = {rules::Pass};
  }
  (*table)["Neg"] = {[](const OpView& op) {
    std::optional<Shares> out = rules::Pass(op);
    if (op.inputs[0].elements && !op.inputs[0].UniformPower()) return std::optional<Shares>();
    if (op.inputs[0].elements) (*out)[0] = Share::Equal(*op.inputs[0].UniformPower());
    return out;
  }};
  (*table)["CheckNumerics"] = {Pointwise};
  (*table)["EnsureShape"] = {Pointwise};
  for (const char* op : {"Add", "AddV2", "Sub"}) (*table)[op] = {AddTwo};
  for (const char* op : {"Div", "RealDiv", "TruncateDiv", "FloorDiv", "DivNoNan"})
    (*table)[op] = {Quotient};
  for (const char* op : {"ReluGrad", "Relu6Grad", "EluGrad", "SeluGrad", "SoftplusGrad",
                         "SoftsignGrad", "LeakyReluGrad"}) {
    (*table)[op] = {LinearIn<0>};
  }
  for (const char* op :
       {"TanhGrad", "SigmoidGrad", "SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad"}) {
    (*table)[op] = {LinearIn<1>};
  }
  (*table)["AddN"] = {AddMany};
  (*table)["Mul"] = {MultiplyTwo};
  (*table)["Maximum"] = {Maximum};
  (*table)["FloorMod"] = {FloorMod};
  (*table)["Select"] = (*table)["SelectV2"] = {Select};
  (*table)["Cast"] = {Cast};
  (*table)["ZerosLike"] = {ZerosLike};
  (*table)["OnesLike"] = {OnesLike};
  (*table)["L2Loss"] = {L2Loss};
  (*table)["Switch"] = {Switch};
  (*table)["Merge"] = {Merge};
}

}  // namespace weft::replicate
