// SPDX-License-Identifier: Apache-2.0
// Ops that tell sizes and compute with them, and ops that make tensors of them.
#include <algorithm>
#include <numeric>

#include "weft/replicate/rules.h"

namespace weft::replicate {
namespace {

constexpr size_t kMostSizes = 64;

// The sizes of input i as a vector. None where the rank is unknown.
std::optional<Elements> SizesOf(const OpView& op, int i) {
  if (op.rank(i) < 0) return std::nullopt;
  Elements sizes;
  for (int d = 0; d < op.rank(i); ++d) {
    const int64_t size = op.shapes[i].dim(d);
    const bool is_batch = op.inputs[i].is_slice() && op.inputs[i].dim == d;
    sizes.push_back(
        {.value = is_batch || size < 0 ? Element::kUnknown : size, .power = is_batch ? -1 : 0});
  }
  return sizes;
}

Element ProductOf(const Elements& elements) {
  Element product{.value = 1};
  for (const Element& element : elements) {
    product.power += element.power;
    product.value = element.IsKnown() && product.value != Element::kUnknown
                        ? product.value * element.value
                        : Element::kUnknown;
  }
  return product;
}

std::optional<Shares> ShapesOf(const OpView& op) {
  Shares out;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const std::optional<Elements> sizes = SizesOf(op, static_cast<int>(i));
    if (sizes) {
      out.push_back(Share::Sizes(*sizes));
    } else if (!op.inputs[i].is_slice()) {
      out.push_back(Share::Equal());
    } else {
      return std::nullopt;
    }
  }
  return out;
}

std::optional<Shares> Size(const OpView& op) {
  const std::optional<Elements> sizes = SizesOf(op, 0);
  if (sizes) return Shares{Share::Sizes({ProductOf(*sizes)})};
  if (op.inputs[0].is_slice()) return std::nullopt;
  return Shares{Share::Equal()};
}

std::optional<Shares> RankOf(const OpView& op) {
  if (op.rank(0) < 0) return Shares{Share::Equal()};
  return Shares{Share::Sizes({{.value = op.rank(0)}})};
}

std::optional<Shares> Range(const OpView& op) {
  const auto start = op.Integer(0), limit = op.Integer(1), step = op.Integer(2);
  if (!start || !limit || !step || *step == 0) {
    for (const Share& share : op.inputs) {
      if (share.UniformPower() != 0) return std::nullopt;
    }
    return Shares{Share::Equal()};
  }
  Elements out;
  for (int64_t i = *start; *step > 0 ? i < *limit : i > *limit; i += *step) {
    if (out.size() > kMostSizes) return std::nullopt;
    out.push_back({.value = i});
  }
  return Shares{Share::Sizes(std::move(out))};
}

// Of a variable, which is the same for all.
std::optional<Shares> VariableShape(const OpView& op) {
  if (op.inputs[0].UniformPower() != 0) return std::nullopt;
  return Shares{Share::Equal()};
}

// The product, or the greatest, of a vector of sizes; none for other shapes.
std::optional<Shares> ProductOfSizes(const OpView& op) {
  const Share& x = op.inputs[0];
  if (!x.is_same() || !x.elements || op.rank(0) != 1 || !op.Integers(1)) return std::nullopt;
  if (op.Integers(1)->size() != 1) return std::nullopt;
  return Shares{Share::Sizes({ProductOf(*x.elements)})};
}

std::optional<Shares> Fill(const OpView& op) {
  const Share &sizes = op.inputs[0], &value = op.inputs[1];
  if (!sizes.is_same() || !value.UniformPower()) return std::nullopt;
  if (!sizes.elements) {
    if (sizes.UniformPower() != 0) return std::nullopt;
    Share same = Share::Equal(*value.UniformPower());
    same.zero = value.zero || op.Integer(1) == 0;
    return Shares{same};
  }
  std::optional<int> dim;
  for (size_t d = 0; d < sizes.elements->size(); ++d) {
    const Element& size = (*sizes.elements)[d];
    if (size.power == 0) continue;
    if (size.power != -1 || dim) return std::nullopt;
    dim = static_cast<int>(d);
  }
  if (!dim && value.elements && value.elements->size() == 1 && sizes.elements->size() <= 1) {
    const auto count = sizes.elements->empty() ? 1 : op.Integer(0);
    if (count && *count >= 0 && *count <= static_cast<int64_t>(kMostSizes))
      return Shares{Share::Sizes(Elements(*count, value.elements->front()))};
  }
  Share out = dim ? Share::Slice(*dim) : Share::Equal();
  out.scale = *value.UniformPower();
  out.zero = value.zero || op.Integer(1) == 0;
  return Shares{out};
}

// A tensor with one row, repeated as often as the batch is large; or rows whose insides are
// repeated.
std::optional<Shares> Tile(const OpView& op) {
  const Share &x = op.inputs[0], &times = op.inputs[1];
  if (!times.is_same() || !times.elements || x.is_part()) return std::nullopt;
  std::optional<int> dim;
  for (size_t d = 0; d < times.elements->size(); ++d) {
    const Element& count = (*times.elements)[d];
    if (x.is_slice() && x.dim == static_cast<int>(d)) {
      if (!count.Is(1)) return std::nullopt;
    } else if (count.power != 0) {
      if (count.power != -1 || dim || op.shapes[0].dim(static_cast<int>(d)) != 1)
        return std::nullopt;
      dim = static_cast<int>(d);
    }
  }
  if (x.is_slice()) return dim ? std::nullopt : rules::Pass(op);
  if (!x.UniformPower()) return std::nullopt;
  if (!dim) return Shares{Share::Equal(*x.UniformPower())};
  return Shares{Share::Slice(*dim, *x.UniformPower())};
}

std::optional<Shares> BroadcastTo(const OpView& op) {
  const Share &x = op.inputs[0], &sizes = op.inputs[1];
  if (!sizes.is_same() || !sizes.elements || op.rank(0) < 0 || x.is_part()) return std::nullopt;
  const int rank = static_cast<int>(sizes.elements->size());
  std::optional<int> dim;
  for (int d = 0; d < rank; ++d) {
    if ((*sizes.elements)[d].power == 0) continue;
    if ((*sizes.elements)[d].power != -1 || dim) return std::nullopt;
    dim = d;
  }
  if (x.is_slice()) {
    if (!dim || x.dim + rank - op.rank(0) != *dim) return std::nullopt;
    return Shares{Share::Slice(*dim, x.scale)};
  }
  if (!x.UniformPower()) return std::nullopt;
  if (!dim) return Shares{Share::Equal(*x.UniformPower())};
  const int here = *dim - (rank - op.rank(0));
  if (here >= 0 && op.shapes[0].dim(here) != 1) return std::nullopt;
  return Shares{Share::Slice(*dim, *x.UniformPower())};
}

// Over which dimensions the gradients of two operands that broadcast are summed.
std::optional<Shares> BroadcastGradientArgs(const OpView& op) {
  if (!op.inputs[0].elements || !op.inputs[1].elements) return std::nullopt;
  const Elements &a = *op.inputs[0].elements, &b = *op.inputs[1].elements;
  const int rank = static_cast<int>(std::max(a.size(), b.size()));
  const auto at = [&](const Elements& sizes, int d) {
    const int i = d - (rank - static_cast<int>(sizes.size()));
    return i < 0 ? Element{.value = 1} : sizes[i];
  };
  Elements over_a, over_b;
  for (int d = 0; d < rank; ++d) {
    const Element x = at(a, d), y = at(b, d);
    const bool same_batch = x.power == -1 && y.power == -1;
    if (same_batch || (x.IsKnown() && y.IsKnown() && x.value == y.value && x.value != 1)) continue;
    // One that is not known may be 1, which would be summed over; nothing would be lost by that
    // for a batch of one row, but it is not known what is.
    const bool batch_or_known_a = x.IsKnown() || x.power == -1;
    const bool batch_or_known_b = y.IsKnown() || y.power == -1;
    if (!batch_or_known_a || !batch_or_known_b) return std::nullopt;
    if (x.Is(1)) over_a.push_back({.value = d});
    if (y.Is(1)) over_b.push_back({.value = d});
    if (!x.Is(1) && !y.Is(1)) return std::nullopt;
  }
  return Shares{Share::Sizes(over_a), Share::Sizes(over_b)};
}

// Vectors put together by their indices; of sizes only.
std::optional<Shares> DynamicStitch(const OpView& op) {
  const int n = static_cast<int>(op.inputs.size()) / 2;
  Elements out;
  for (int i = 0; i < n; ++i) {
    const auto indices = op.Integers(i);
    const Share& data = op.inputs[n + i];
    if (!indices || !data.is_same() || !data.elements || op.rank(i) != op.rank(n + i))
      return std::nullopt;
    for (size_t k = 0; k < indices->size() && k < data.elements->size(); ++k) {
      const int64_t index = (*indices)[k];
      if (index < 0 || index > static_cast<int64_t>(kMostSizes)) return std::nullopt;
      if (index >= static_cast<int64_t>(out.size())) out.resize(index + 1);
      out[index] = (*data.elements)[k];
    }
  }
  return Shares{Share::Sizes(std::move(out))};
}

// Where each of several tensors begins in their concatenation.
std::optional<Shares> ConcatOffset(const OpView& op) {
  const auto axis = op.Integer(0);
  if (!axis || !op.inputs[1].elements) return std::nullopt;
  const int rank = static_cast<int>(op.inputs[1].elements->size());
  const int along = static_cast<int>(*axis < 0 ? *axis + rank : *axis);
  Shares out;
  Element begin{.value = 0};
  for (size_t i = 1; i < op.inputs.size(); ++i) {
    if (!op.inputs[i].elements || static_cast<int>(op.inputs[i].elements->size()) != rank)
      return std::nullopt;
    Elements offset(rank, Element{.value = 0});
    if (along < 0 || along >= rank || (*op.inputs[i].elements)[along].power != 0)
      return std::nullopt;
    offset[along] = begin;
    const Element& size = (*op.inputs[i].elements)[along];
    begin.value = begin.IsKnown() && size.IsKnown() ? begin.value + size.value : Element::kUnknown;
    out.push_back(Share::Sizes(std::move(offset)));
  }
  return out;
}

std::optional<Shares> InvertPermutation(const OpView& op) {
  const auto permutation = op.Integers(0);
  if (!permutation) return std::nullopt;
  Elements out(permutation->size());
  for (size_t i = 0; i < permutation->size(); ++i) {
    const int64_t to = (*permutation)[i];
    if (to < 0 || to >= static_cast<int64_t>(out.size())) return std::nullopt;
    out[to].value = static_cast<int64_t>(i);
  }
  return Shares{Share::Sizes(std::move(out))};
}

}  // namespace

void AddSizeRules(RuleTable* table) {
  (*table)["Shape"] = (*table)["ShapeN"] = {ShapesOf};
  (*table)["Size"] = {Size};
  (*table)["VariableShape"] = {VariableShape};
  (*table)["Rank"] = {RankOf};
  (*table)["Range"] = {Range};
  (*table)["Fill"] = {Fill};
  (*table)["Tile"] = {Tile};
  (*table)["BroadcastTo"] = {BroadcastTo};
  (*table)["BroadcastGradientArgs"] = {BroadcastGradientArgs};
  (*table)["DynamicStitch"] = {DynamicStitch};
  (*table)["ConcatOffset"] = {ConcatOffset};
  (*table)["InvertPermutation"] = {InvertPermutation};
  // Of other tensors than sizes: rules_products.cc.
  (*table)["Prod"] = {ProductOfSizes};
}

}  // namespace weft::replicate
