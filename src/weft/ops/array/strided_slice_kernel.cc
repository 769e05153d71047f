// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/array/strided_slice_kernel.h"

#include <algorithm>
#include <array>
#include <utility>

#include "weft/ops/broadcast.h"
#include "weft/ops/elements.h"

namespace weft::ops::array {
namespace {

constexpr int64_t kNewAxis = -2;
constexpr int64_t kShrunk = -1;
constexpr size_t kMaxEntries = 32;  // as many as the masks of TensorFlow's clients have bits

// One entry a dimension of the input.
struct DenseEntry {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t stride = 1;
  bool begin_masked = true;
  bool end_masked = true;
  bool is_known = true;  // begin and end have values
  bool shrinks = false;
};

struct DenseSpec {
  absl::InlinedVector<DenseEntry, 8> entries;
  IndexVector output_dims;  // an input dimension, kNewAxis or kShrunk
};

bool Bit(int64_t mask, size_t i) { return i < 64 && ((mask >> i) & 1) != 0; }

// Spreads the entries over the input's dimensions; an ellipsis takes what the others leave.
StatusOr<DenseSpec> Spread(int rank, const IndexVector* begin, const IndexVector* end,
                           const IndexVector& strides, const SliceMasks& masks) {
  const size_t count = strides.size();
  size_t ellipsis = count;
  size_t new_axes_after = 0;
  for (size_t i = 0; i < count; ++i) {
    if (Bit(masks.ellipsis, i)) {
      if (ellipsis != count) return InvalidArgument("Multiple ellipses in slice spec not allowed");
      ellipsis = i;
    } else if (ellipsis != count && Bit(masks.new_axis, i)) {
      ++new_axes_after;
    }
  }
  DenseSpec spec;
  const auto rank_size = static_cast<size_t>(rank);
  for (size_t i = 0; i <= count; ++i) {
    const size_t full = spec.entries.size();
    if (i == ellipsis) {  // without one, it stands at the end
      const int64_t left = i == count ? rank
                                      : static_cast<int64_t>(rank_size + 1 + i + new_axes_after) -
                                            static_cast<int64_t>(count);
      for (auto d = static_cast<int64_t>(full); d < std::min<int64_t>(left, rank); ++d) {
        spec.output_dims.push_back(d);
        spec.entries.push_back({});
      }
      continue;
    }
    if (i == count) break;
    if (Bit(masks.new_axis, i)) {
      spec.output_dims.push_back(kNewAxis);
      continue;
    }
    if (full >= rank_size) {
      return InvalidArgument("Index out of range using input dim ", full, "; input has only ", rank,
                             " dims");
    }
    DenseEntry entry;
    entry.is_known = begin != nullptr && end != nullptr;
    if (begin != nullptr) entry.begin = (*begin)[i];
    if (end != nullptr) entry.end = (*end)[i];
    entry.stride = strides[i];
    entry.begin_masked = Bit(masks.begin, i);
    entry.end_masked = Bit(masks.end, i);
    entry.shrinks = Bit(masks.shrink_axis, i);
    spec.output_dims.push_back(entry.shrinks ? kShrunk : static_cast<int64_t>(full));
    spec.entries.push_back(entry);
  }
  return spec;
}

// A begin or end index as a position in [0, size] (in [-1, size - 1] when walking backwards).
int64_t Clamp(int64_t index, bool masked, bool is_begin, int64_t size, int64_t stride) {
  const int64_t low = stride > 0 ? 0 : -1;
  const int64_t high = stride > 0 ? size : size - 1;
  if (masked) return (stride > 0) == is_begin ? low : high;
  return std::clamp(index < 0 ? size + index : index, low, high);
}

// The first index and the count of one dimension of known size.
Status Place(const DenseEntry& entry, size_t dim, int64_t size, int64_t* begin, int64_t* count) {
  if (entry.shrinks) {
    *count = 1;
    // A masked begin means the start; TensorFlow ignores the mask of a shrunk entry.
    *begin = entry.begin < 0 ? size + entry.begin : entry.begin;
    if (!entry.is_known) return absl::OkStatus();
    if (*begin < 0 || *begin >= size) {
      return InvalidArgument("slice index ", entry.begin, " of dimension ", dim, " out of bounds.");
    }
    return absl::OkStatus();
  }
  if (!entry.is_known && !(entry.begin_masked && entry.end_masked)) {
    *count = -1;
    return absl::OkStatus();
  }
  *begin = Clamp(entry.begin, entry.begin_masked, true, size, entry.stride);
  const int64_t end = Clamp(entry.end, entry.end_masked, false, size, entry.stride);
  const int64_t length = end - *begin;
  if (length == 0 || (length < 0) != (entry.stride < 0)) {
    *count = 0;
    *begin = 0;
  } else {
    *count = length / entry.stride + (length % entry.stride != 0 ? 1 : 0);
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<SliceMasks> SliceMasks::FromAttrs(const AttrMap& attrs) {
  SliceMasks masks;
  WEFT_ASSIGN_OR_RETURN(masks.begin, FindAttr<int64_t>(attrs, "begin_mask"));
  WEFT_ASSIGN_OR_RETURN(masks.end, FindAttr<int64_t>(attrs, "end_mask"));
  WEFT_ASSIGN_OR_RETURN(masks.ellipsis, FindAttr<int64_t>(attrs, "ellipsis_mask"));
  WEFT_ASSIGN_OR_RETURN(masks.new_axis, FindAttr<int64_t>(attrs, "new_axis_mask"));
  WEFT_ASSIGN_OR_RETURN(masks.shrink_axis, FindAttr<int64_t>(attrs, "shrink_axis_mask"));
  return masks;
}

StridedCopy SlicePlan::CopyOut(const Shape& input) const {
  const IndexVector input_strides = StridesOf(input);
  StridedCopy copy;
  for (size_t i = 0; i < sizes.size(); ++i) {
    copy.source_offset += begin[i] * input_strides[i];
    copy.AddDim(sizes[i], strides[i] * input_strides[i], 0);
  }
  copy.MakeTargetDense();
  return copy;
}

bool SlicePlan::IsWhole(const Shape& input) const {
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (strides[i] != 1 || begin[i] != 0 || sizes[i] != input.dim(static_cast<int>(i)))
      return false;
  }
  return true;
}

StatusOr<SlicePlan> PlanSlice(const PartialShape& input, const IndexVector* begin,
                              const IndexVector* end, const IndexVector& strides,
                              SliceMasks masks) {
  if (strides.size() > kMaxEntries) {
    return InvalidArgument("Slices have at most ", kMaxEntries, " entries, got ", strides.size());
  }
  WEFT_ASSIGN_OR_RETURN(const DenseSpec spec, Spread(input.rank(), begin, end, strides, masks));
  SlicePlan plan;
  for (size_t i = 0; i < spec.entries.size(); ++i) {
    const DenseEntry& entry = spec.entries[i];
    if (entry.stride == 0) return InvalidArgument("strides[", i, "] must be non-zero");
    if (entry.shrinks && entry.stride <= 0) {
      return InvalidArgument("only stride 1 allowed on non-range indexing.");
    }
    const int64_t size = input.dim(static_cast<int>(i));
    int64_t first = 0;
    int64_t count = entry.shrinks ? 1 : -1;
    if (size >= 0) WEFT_RETURN_IF_ERROR(Place(entry, i, size, &first, &count));
    plan.begin.push_back(first);
    // One element is no walk: an absurd stride must not overflow.
    plan.strides.push_back(count == 1 ? 1 : entry.stride);
    plan.sizes.push_back(count);
  }
  for (const int64_t dim : spec.output_dims) {
    if (dim == kNewAxis) plan.final_sizes.push_back(1);
    if (dim >= 0) plan.final_sizes.push_back(plan.sizes[static_cast<size_t>(dim)]);
  }
  return plan;
}

StatusOr<SlicePlan> PlanSlice(const PartialShape& input, const Tensor* begin, const Tensor* end,
                              const Tensor& strides, const SliceMasks& masks) {
  WEFT_ASSIGN_OR_RETURN(const IndexVector steps, IndexValues(strides, "strides"));
  IndexVector from;
  IndexVector to;
  if (begin != nullptr) {
    WEFT_ASSIGN_OR_RETURN(from, IndexValues(*begin, "begin"));
  }
  if (end != nullptr) {
    WEFT_ASSIGN_OR_RETURN(to, IndexValues(*end, "end"));
  }
  if (strides.rank() != 1 || (begin != nullptr && from.size() != steps.size()) ||
      (end != nullptr && to.size() != steps.size())) {
    return InvalidArgument(
        "Expected begin, end, and strides to be 1D equal size tensors, but got shapes ",
        begin != nullptr ? begin->shape().ToString() : "?", ", ",
        end != nullptr ? end->shape().ToString() : "?", ", and ", strides.shape().ToString(),
        " instead.");
  }
  return PlanSlice(input, begin != nullptr ? &from : nullptr, end != nullptr ? &to : nullptr, steps,
                   masks);
}

StridedCopy SlicePlan::CopyInto(const Shape& input) const {
  StridedCopy copy = CopyOut(input);
  std::swap(copy.source_strides, copy.target_strides);
  std::swap(copy.source_offset, copy.target_offset);
  return copy;
}

StatusOr<Tensor> FillSlice(const KernelContext& c, const Tensor& value, const SlicePlan& plan) {
  WEFT_ASSIGN_OR_RETURN(const Shape expected, Shape::Make(plan.final_sizes));
  if (value.shape() == expected) return value;
  const StatusOr<Shape> common = BroadcastShapes(value.shape(), expected);
  if (!common.ok() || !(*common == expected)) {
    return InvalidArgument("Cannot broadcast input shape ", value.shape().ToString(),
                           " into final shape ", expected.ToString());
  }
  WEFT_ASSIGN_OR_RETURN(Tensor filled, c.AllocateTemporary(value.dtype(), expected));
  const BroadcastLoops<1> loops = MakeBroadcastLoops<1>(expected, {&value.shape()});
  loops.ForEachRow(0, loops.num_rows(), [&](const std::array<int64_t, 1>& from, int64_t to) {
    for (int64_t i = 0; i < loops.inner.size; ++i) {
      CopyElements(value, from[0] + i * loops.inner.stride[0], 1, &filled, to + i);
    }
  });
  return filled;
}

OpSpec& AddMasks(OpSpec& spec) {
  return spec.Attr("begin_mask: int = 0")
      .Attr("end_mask: int = 0")
      .Attr("ellipsis_mask: int = 0")
      .Attr("new_axis_mask: int = 0")
      .Attr("shrink_axis_mask: int = 0");
}

}  // namespace weft::ops::array
