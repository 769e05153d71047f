// SPDX-License-Identifier: Apache-2.0
// Ops that move elements and compute none: reshaping, cutting, joining, picking.
#include <algorithm>

#include "weft/replicate/rules.h"

namespace weft::replicate {
namespace {

std::optional<Shares> Moved(const Share& from, int dim) {
  Share out = from;
  out.dim = dim;
  out.cut = out.late = false;
  return Shares{out};
}

// What is not sliced keeps its share through an op whose other inputs are the same everywhere.
std::optional<Shares> Kept(const OpView& op) {
  const Share& x = op.inputs[0];
  if (x.is_slice()) return std::nullopt;
  for (size_t i = 1; i < op.inputs.size(); ++i) {
    if (op.inputs[i].UniformPower() != 0) return std::nullopt;
  }
  if (x.is_part()) return Shares(op.node.num_outputs(), Share::Part(x.scale));
  if (!x.UniformPower()) return std::nullopt;
  return Shares(op.node.num_outputs(), Share::Equal(*x.UniformPower()));
}

// How many of the first sizes are 1.
int LeadingOnes(const PartialShape& shape) {
  int ones = 0;
  while (ones < shape.rank() && shape.dim(ones) == 1) ++ones;
  return ones;
}

// Rows that lie one after the other stay so, whatever becomes of what is in them.
std::optional<Shares> Reshape(const OpView& op) {
  const Share &x = op.inputs[0], &sizes = op.inputs[1];
  if (!x.is_slice()) {
    if (x.is_same() && x.elements && op.output_shapes[0].rank() <= 1 && sizes.UniformPower() == 0)
      return Shares{Share::Sizes(*x.elements)};
    return Kept(op);
  }
  if (!sizes.is_same() || !sizes.elements || op.rank(0) < 0) return std::nullopt;
  const Elements& to = *sizes.elements;
  const int rank = static_cast<int>(to.size());
  int dim = 0;
  if (x.dim > LeadingOnes(op.shapes[0])) {
    // What is before the rows must stay as it is.
    for (; dim < x.dim; ++dim) {
      if (dim >= rank || !to[dim].IsKnown() || to[dim].value != op.shapes[0].dim(dim))
        return std::nullopt;
    }
  } else {
    while (dim < rank && to[dim].Is(1)) ++dim;
  }
  if (dim >= rank || (to[dim].power != -1 && !to[dim].Is(-1))) return std::nullopt;
  for (int d = dim + 1; d < rank; ++d) {
    if (to[d].power != 0) return std::nullopt;
  }
  return Moved(x, dim);
}

std::optional<Shares> ExpandDims(const OpView& op) {
  const Share& x = op.inputs[0];
  if (!x.is_slice()) {
    if (x.elements && op.rank(0) == 0) return Shares{Share::Sizes(*x.elements)};
    return Kept(op);
  }
  const std::optional<int> axis = op.rank(0) < 0 ? std::nullopt : op.Axis(1, op.rank(0) + 1);
  if (!axis) return std::nullopt;
  return Moved(x, x.dim + (*axis <= x.dim ? 1 : 0));
}

std::optional<Shares> Squeeze(const OpView& op) {
  const Share& x = op.inputs[0];
  if (!x.is_slice()) {
    if (x.elements && x.elements->size() == 1) return Shares{Share::Sizes(*x.elements)};
    return Kept(op);
  }
  // Without them a worker's last row would be squeezed away where the batch's rows are not.
  const auto dims = FindAttrOr<AttrValue::IntList>(op.node.attrs(), "squeeze_dims", {});
  if (op.rank(0) < 0 || dims.empty()) return std::nullopt;
  int dim = x.dim;
  for (int64_t squeezed : dims) {
    if (squeezed < 0) squeezed += op.rank(0);
    if (squeezed == x.dim) return std::nullopt;
    if (squeezed < x.dim) --dim;
  }
  return Moved(x, dim);
}

std::optional<Shares> Transpose(const OpView& op) {
  const Share& x = op.inputs[0];
  if (!x.is_slice()) return Kept(op);
  const auto permutation = op.Integers(1);
  if (!permutation) return std::nullopt;
  const auto found = std::find(permutation->begin(), permutation->end(), x.dim);
  if (found == permutation->end()) return std::nullopt;
  auto moved = Moved(x, static_cast<int>(found - permutation->begin()));
  if (op.rank(0) == static_cast<int>(permutation->size())) {
    PartialShape shape = PartialShape::UnknownOfRank(op.rank(0));
    for (int d = 0; d < shape.rank(); ++d) {
      const int64_t from = (*permutation)[d];
      if (from < 0 || from >= op.rank(0)) return std::nullopt;
      shape.SetDim(d, op.shapes[0].dim(static_cast<int>(from)));
    }
    moved->front().shape = shape;
  }
  return moved;
}

// Of tensors `first` to `last`: slices in line and of one scale. None if one is not.
std::optional<Share> InLine(const OpView& op, int first, int last) {
  Share out = op.inputs[first];
  for (int i = first; i < last; ++i) {
    const Share& share = op.inputs[i];
    const std::optional<int> scale = rules::SameScale(out, share);
    if (!share.is_slice() || share.dim != out.dim || !scale || op.rank(i) < 0) return std::nullopt;
    out.scale = *scale;
    out.zero = out.zero && share.zero;
  }
  return out;
}

// The elements of vectors of sizes one after the other; none if not all are known.
std::optional<Shares> JoinSizes(const OpView& op, int first, int last) {
  Elements joined;
  for (int i = first; i < last; ++i) {
    if (!op.inputs[i].is_same() || !op.inputs[i].elements) return std::nullopt;
    joined.insert(joined.end(), op.inputs[i].elements->begin(), op.inputs[i].elements->end());
  }
  return Shares{Share::Sizes(std::move(joined))};
}

// Parts of sums one after the other, and zeros among them, are a part of the sum of all.
std::optional<Shares> JoinParts(const OpView& op, int first, int last) {
  std::optional<int> scale;
  for (int i = first; i < last; ++i) {
    const Share& share = op.inputs[i];
    if (share.is_same() && share.zero) continue;
    if (!share.is_part() || (scale && *scale != share.scale)) return std::nullopt;
    scale = share.scale;
  }
  if (!scale) return std::nullopt;
  return Shares{Share::Part(*scale)};
}

std::optional<Shares> Concat(const OpView& op) {
  const int last = static_cast<int>(op.inputs.size()) - 1;
  if (!op.AnySlice()) {
    const auto sizes = op.rank(0) == 1 ? JoinSizes(op, 0, last) : std::nullopt;
    return sizes ? sizes : JoinParts(op, 0, last);
  }
  const std::optional<Share> slice = InLine(op, 0, last);
  const std::optional<int> axis = op.Axis(last, op.rank(0));
  if (!slice || !axis || *axis == slice->dim) return std::nullopt;
  return Moved(*slice, slice->dim);
}

std::optional<Shares> Pack(const OpView& op) {
  const int n = static_cast<int>(op.inputs.size());
  if (!op.AnySlice()) {
    const auto sizes = op.rank(0) == 0 ? JoinSizes(op, 0, n) : std::nullopt;
    return sizes ? sizes : JoinParts(op, 0, n);
  }
  const std::optional<Share> slice = InLine(op, 0, n);
  int64_t axis = FindAttrOr<int64_t>(op.node.attrs(), "axis", 0);
  if (!slice) return std::nullopt;
  if (axis < 0) axis += op.rank(0) + 1;
  return Moved(*slice, slice->dim + (axis <= slice->dim ? 1 : 0));
}

std::optional<Shares> Unpack(const OpView& op) {
  const Share& x = op.inputs[0];
  const int n = op.node.num_outputs();
  if (!x.is_slice()) {
    if (x.elements && static_cast<int>(x.elements->size()) == n) {
      Shares out;
      for (const Element& element : *x.elements) out.push_back(Share::Sizes({element}));
      return out;
    }
    return Kept(op);
  }
  int64_t axis = FindAttrOr<int64_t>(op.node.attrs(), "axis", 0);
  if (op.rank(0) < 0) return std::nullopt;
  if (axis < 0) axis += op.rank(0);
  if (axis == x.dim) return std::nullopt;
  Share out = x;
  out.cut = out.late = false;
  out.dim = x.dim - (axis < x.dim ? 1 : 0);
  return Shares(n, out);
}

// Split (axis first) and SplitV (axis last).
template <int kData, int kAxis>
std::optional<Shares> Split(const OpView& op) {
  const Share& x = op.inputs[kData];
  if (!x.is_slice()) return std::nullopt;
  const std::optional<int> axis = op.Axis(kAxis, op.rank(kData));
  if (!axis || *axis == x.dim) return std::nullopt;
  Share out = x;
  out.cut = out.late = false;
  return Shares(op.node.num_outputs(), out);
}

bool HasBit(const OpView& op, const char* mask, int i) {
  return ((FindAttrOr<int64_t>(op.node.attrs(), mask, 0) >> i) & 1) != 0;
}

// One range of a vector of sizes.
std::optional<Shares> PickSizes(const OpView& op) {
  const Elements& all = *op.inputs[0].elements;
  const auto n = static_cast<int64_t>(all.size());
  const auto begin = op.Integer(1), end = op.Integer(2), step = op.Integer(3);
  if (op.rank(0) != 1 || !begin || !step || *step == 0 || op.inputs[1].elements->size() != 1)
    return std::nullopt;
  const auto at = [n](int64_t i) { return i < 0 ? i + n : i; };
  if (HasBit(op, "shrink_axis_mask", 0)) {
    if (at(*begin) < 0 || at(*begin) >= n) return std::nullopt;
    return Shares{Share::Sizes({all[at(*begin)]})};
  }
  if (*step < 0 || (!end && !HasBit(op, "end_mask", 0))) return std::nullopt;
  const int64_t first = HasBit(op, "begin_mask", 0) ? 0 : std::max<int64_t>(0, at(*begin));
  const int64_t last = HasBit(op, "end_mask", 0) ? n : std::min(n, at(*end));
  Elements picked;
  for (int64_t i = first; i < last; i += *step) picked.push_back(all[i]);
  return Shares{Share::Sizes(std::move(picked))};
}

// Where the dimension `dim` of `rank` is after a range of each dimension was picked, and what is
// known of the shape then.
struct PickedRows {
  int dim = 0;
  PartialShape shape;
};

// None if not all rows are picked, in their order. `first` is the input that says where ranges
// begin; ends and strides follow.
std::optional<PickedRows> PickRows(const OpView& op, int first, int rank, int dim,
                                   const PartialShape& from) {
  const int64_t ranges = op.rank(first) == 1 ? op.shapes[first].dim(0) : -1;
  if (ranges < 0 || rank < 0) return std::nullopt;
  int more = 0;  // ranges of dimensions that are there
  for (int i = 0; i < ranges; ++i) more += HasBit(op, "new_axis_mask", i) ? 0 : 1;
  more -= FindAttrOr<int64_t>(op.node.attrs(), "ellipsis_mask", 0) != 0 ? 1 : 0;
  PickedRows picked{.dim = -1, .shape = PartialShape::UnknownOfRank(0)};
  int at = 0;
  const auto keep = [&](int64_t size) {
    if (at == dim) picked.dim = picked.shape.rank();
    picked.shape.AddDim(size);
    ++at;
  };
  for (int i = 0; i < ranges; ++i) {
    if (HasBit(op, "ellipsis_mask", i)) {
      for (const int end = rank - (more - at); at < end;) keep(from.dim(at));
      continue;
    }
    if (HasBit(op, "new_axis_mask", i)) {
      picked.shape.AddDim(1);
      continue;
    }
    if (at >= rank) return std::nullopt;
    const bool begins = HasBit(op, "begin_mask", i) || op.Integer(first, i) == 0;
    const bool is_all = begins && HasBit(op, "end_mask", i) && op.Integer(first + 2, i) == 1 &&
                        !HasBit(op, "shrink_axis_mask", i);
    if (at == dim && !is_all) return std::nullopt;
    if (HasBit(op, "shrink_axis_mask", i)) {
      ++at;
    } else {
      keep(is_all ? from.dim(at) : -1);
    }
  }
  while (at < rank) keep(from.dim(at));
  if (picked.dim < 0) return std::nullopt;
  return picked;
}

// All rows, in order; what is picked of them is the same on each worker.
std::optional<Shares> StridedSlice(const OpView& op) {
  const Share& x = op.inputs[0];
  if (x.is_same() && x.elements) return PickSizes(op);
  if (!x.is_slice()) return Kept(op);
  for (size_t i = 1; i < op.inputs.size(); ++i) {
    if (op.inputs[i].UniformPower() != 0) return std::nullopt;
  }
  const auto picked = PickRows(op, 1, op.rank(0), x.dim, op.shapes[0]);
  if (!picked) return std::nullopt;
  auto moved = Moved(x, picked->dim);
  moved->front().shape = picked->shape;
  return moved;
}

// shape, begin, end, strides, gradient: the rows at their place, or a part of a sum in a larger
// one.
std::optional<Shares> StridedSliceGrad(const OpView& op) {
  const Share &sizes = op.inputs[0], &gradient = op.inputs[4];
  for (int i = 1; i < 4; ++i) {
    if (op.inputs[i].UniformPower() != 0) return std::nullopt;
  }
  if (gradient.is_part() && sizes.UniformPower() == 0) return Shares{Share::Part(gradient.scale)};
  if (!sizes.is_same() || !sizes.elements || !gradient.is_slice()) return std::nullopt;
  int dim = -1;
  const int rank = static_cast<int>(sizes.elements->size());
  PartialShape from = PartialShape::UnknownOfRank(rank);
  for (int d = 0; d < rank; ++d) {
    const Element& size = (*sizes.elements)[d];
    if (size.IsKnown()) from.SetDim(d, size.value);
    if (size.power == 0) continue;
    if (size.power != -1 || dim >= 0) return std::nullopt;
    dim = d;
  }
  if (dim < 0) return std::nullopt;
  const auto picked = PickRows(op, 1, rank, dim, from);
  if (!picked || picked->dim != gradient.dim) return std::nullopt;
  auto moved = Moved(gradient, dim);
  moved->front().shape = from;
  return moved;
}

std::optional<Shares> Slice(const OpView& op) {
  const Share &x = op.inputs[0], &begin = op.inputs[1], &size = op.inputs[2];
  if (x.is_same() && x.elements && op.rank(0) == 1) {
    const auto from = op.Integer(1), count = op.Integer(2);
    const auto all = static_cast<int64_t>(x.elements->size());
    if (!from || !count || *from < 0 || *from > all) return std::nullopt;
    const int64_t end = *count < 0 ? all : std::min(all, *from + *count);
    return Shares{Share::Sizes({x.elements->begin() + *from, x.elements->begin() + end})};
  }
  if (!x.is_slice()) return Kept(op);
  if (!begin.is_same() || !size.is_same() || !begin.elements || !size.elements ||
      begin.elements->size() != size.elements->size())
    return std::nullopt;
  for (int d = 0; d < static_cast<int>(size.elements->size()); ++d) {
    const Element &from = (*begin.elements)[d], &count = (*size.elements)[d];
    const bool all_rows = from.Is(0) && (count.power == -1 || count.Is(-1));
    if (d == x.dim ? !all_rows : from.power != 0 || count.power != 0) return std::nullopt;
  }
  return Moved(x, x.dim);
}

// Nothing is added before or behind the rows: a constant table of two columns says so.
std::optional<Shares> Pad(const OpView& op) {
  const Share& x = op.inputs[0];
  const Node& amounts = *op.node.input(1).node;
  const bool pads_zeros = op.inputs.size() < 3 || op.inputs[2].zero;
  if (!x.is_slice() || (x.scale != 0 && !pads_zeros) ||
      amounts.traits().source != ValueSource::kConstant)
    return std::nullopt;
  const StatusOr<Tensor> table = amounts.Attr<Tensor>("value");
  if (!table.ok() || table->dtype() != DType::kInt32 || table->num_elements() <= 2 * x.dim + 1)
    return std::nullopt;
  const int32_t* const row = table->data<int32_t>() + 2 * x.dim;
  if (row[0] != 0 || row[1] != 0) return std::nullopt;
  std::optional<Shares> padded = Moved(x, x.dim);
  if (!pads_zeros) padded->front().zero = false;
  return padded;
}

// Rows of a table by the indices of a worker; or, of sizes, those that the indices name.
std::optional<Shares> Gather(const OpView& op) {
  const Share &table = op.inputs[0], &indices = op.inputs[1];
  const bool has_axis = op.inputs.size() > 2;
  const std::optional<int> axis = has_axis ? op.Axis(2, std::max(1, op.rank(0))) : 0;
  if (FindAttrOr<int64_t>(op.node.attrs(), "batch_dims", 0) != 0 || !axis) return std::nullopt;
  if (table.is_same() && table.elements && op.rank(0) == 1 && op.rank(1) <= 1 &&
      op.inputs[1].elements && op.Integers(1)) {
    Elements picked;
    const std::vector<int64_t> wanted = *op.Integers(1);
    for (const int64_t i : wanted) {
      if (i < 0 || i >= static_cast<int64_t>(table.elements->size())) return std::nullopt;
      picked.push_back((*table.elements)[i]);
    }
    return Shares{Share::Sizes(std::move(picked))};
  }
  if (indices.is_slice() && indices.scale == 0 && table.UniformPower() == 0)
    return Moved(indices, *axis + indices.dim);
  if (table.is_slice() && indices.UniformPower() == 0 && *axis != table.dim && op.rank(1) >= 0)
    return Moved(table, table.dim + (*axis < table.dim ? op.rank(1) - 1 : 0));
  return std::nullopt;
}

std::optional<Shares> ResourceGather(const OpView& op) {
  const Share& indices = op.inputs[1];
  if (!op.inputs[0].is_whole() || !indices.is_slice() || indices.scale != 0 ||
      FindAttrOr<int64_t>(op.node.attrs(), "batch_dims", 0) != 0)
    return std::nullopt;
  return Moved(indices, indices.dim);
}

std::optional<Shares> GatherNd(const OpView& op) {
  const Share &table = op.inputs[0], &indices = op.inputs[1];
  if (!indices.is_slice() || indices.scale != 0 || table.UniformPower() != 0 || op.rank(1) < 0 ||
      indices.dim == op.rank(1) - 1)
    return std::nullopt;
  return Moved(indices, indices.dim);
}

// indices, depth, on, off.
std::optional<Shares> OneHot(const OpView& op) {
  const Share& indices = op.inputs[0];
  if (!indices.is_slice() || indices.scale != 0 || op.rank(0) < 0) return std::nullopt;
  for (int i = 1; i < 4; ++i) {
    if (op.inputs[i].UniformPower() != 0) return std::nullopt;
  }
  int64_t axis = FindAttrOr<int64_t>(op.node.attrs(), "axis", -1);
  if (axis < 0) axis += op.rank(0) + 1;
  return Moved(indices, indices.dim + (axis <= indices.dim ? 1 : 0));
}

std::optional<Shares> IdentityN(const OpView& op) {
  Shares out(op.inputs.begin(), op.inputs.end());
  for (Share& share : out) {
    share.cut = share.late = false;
    if (share.is_whole()) share.kind = Share::Kind::kEqual;
  }
  return out;
}

}  // namespace

void AddLayoutRules(RuleTable* table) {
  (*table)["Reshape"] = {Reshape};
  (*table)["ExpandDims"] = {ExpandDims};
  (*table)["Squeeze"] = {Squeeze};
  (*table)["Transpose"] = {Transpose};
  (*table)["ConcatV2"] = {Concat};
  (*table)["Pack"] = {Pack};
  (*table)["Unpack"] = {Unpack};
  (*table)["Split"] = {Split<1, 0>};
  (*table)["SplitV"] = {Split<0, 2>};
  (*table)["StridedSlice"] = {StridedSlice};
  (*table)["StridedSliceGrad"] = {StridedSliceGrad};
  (*table)["Slice"] = {Slice};
  (*table)["Pad"] = (*table)["PadV2"] = {Pad};
  (*table)["Gather"] = (*table)["GatherV2"] = {Gather};
  (*table)["ResourceGather"] = {ResourceGather};
  (*table)["GatherNd"] = {GatherNd};
  (*table)["OneHot"] = {OneHot};
  (*table)["IdentityN"] = {IdentityN};
}

}  // namespace weft::replicate
