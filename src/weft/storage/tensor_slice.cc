// SPDX-License-Identifier: Apache-2.0
#include "weft/storage/tensor_slice.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "proto/tensorflow/tensor_shape.pb.h"

namespace weft::storage {
namespace {

Status BadSlice(absl::string_view text) {
  return InvalidArgument(
      "Bad tensor slice, expected \"start,length\" or \"-\" for each dimension with \":\" "
      "between: ",
      text);
}

// Positions of dimension `d`'s elements in a row-major box of these extents.
Dims Strides(const TensorSlice& slice) {
  Dims strides(slice.extents.size(), 1);
  for (int d = static_cast<int>(strides.size()) - 2; d >= 0; --d) {
    strides[d] = strides[d + 1] * slice.extents[d + 1].length;
  }
  return strides;
}

template <typename T>
void CopyRun(const Tensor& from, int64_t from_index, Tensor* to, int64_t to_index, int64_t count) {
  std::copy_n(from.data<T>() + from_index, count, to->data<T>() + to_index);
}

void CopyElements(const Tensor& from, int64_t from_index, Tensor* to, int64_t to_index,
                  int64_t count) {
  switch (from.dtype()) {
    case DType::kString:
      return CopyRun<std::string>(from, from_index, to, to_index, count);
    case DType::kVariant:
      return CopyRun<Variant>(from, from_index, to, to_index, count);
    case DType::kResource:
      return CopyRun<ResourceHandle>(from, from_index, to, to_index, count);
    default: {
      const size_t size = DTypeSize(from.dtype());
      std::memcpy(to->bytes() + static_cast<size_t>(to_index) * size,
                  from.bytes() + static_cast<size_t>(from_index) * size,
                  static_cast<size_t>(count) * size);
    }
  }
}

}  // namespace

StatusOr<TensorSlice> TensorSlice::Parse(absl::string_view text) {
  TensorSlice slice;
  if (text.empty()) return slice;
  for (absl::string_view part : absl::StrSplit(text, ':')) {
    Extent extent;
    if (part != "-") {
      const std::vector<absl::string_view> numbers = absl::StrSplit(part, ',');
      if (numbers.size() != 2 || !absl::SimpleAtoi(numbers[0], &extent.start) ||
          !absl::SimpleAtoi(numbers[1], &extent.length) || extent.start < 0 || extent.length < 1) {
        return BadSlice(text);
      }
    }
    slice.extents.push_back(extent);
  }
  return slice;
}

StatusOr<TensorSlice> TensorSlice::FromProto(const tensorflow::TensorSliceProto& proto) {
  TensorSlice slice;
  for (const auto& extent : proto.extent()) {
    const bool whole =
        extent.has_length_case() == tensorflow::TensorSliceProto::Extent::HAS_LENGTH_NOT_SET;
    slice.extents.push_back({extent.start(), whole ? kWhole : extent.length()});
    if (whole ? extent.start() != 0 : (extent.start() < 0 || extent.length() < 1)) {
      return BadSlice(slice.ToString());
    }
  }
  return slice;
}

TensorSlice TensorSlice::Full(int rank) {
  TensorSlice slice;
  slice.extents.resize(static_cast<size_t>(rank));
  return slice;
}

void TensorSlice::ToProto(tensorflow::TensorSliceProto* proto) const {
  proto->Clear();
  for (const Extent& extent : extents) {
    auto* out = proto->add_extent();
    if (extent.length == kWhole) continue;
    out->set_start(extent.start);
    out->set_length(extent.length);
  }
}

std::string TensorSlice::ToString() const {
  return absl::StrJoin(extents, ":", [](std::string* out, const Extent& extent) {
    extent.length == kWhole ? absl::StrAppend(out, "-")
                            : absl::StrAppend(out, extent.start, ",", extent.length);
  });
}

StatusOr<TensorSlice> TensorSlice::Within(const Shape& full) const {
  TensorSlice inside = *this;
  bool fits = static_cast<int>(extents.size()) == full.rank();
  for (int d = 0; fits && d < full.rank(); ++d) {
    Extent& extent = inside.extents[d];
    if (extent.length == kWhole) extent = {0, full.dim(d)};
    fits = extent.start >= 0 && extent.length >= 0 && extent.start <= full.dim(d) &&
           extent.length <= full.dim(d) - extent.start;
  }
  if (fits) return inside;
  return InvalidArgument("Slice ", ToString(), " does not lie in a tensor of shape ",
                         full.ToString());
}

Shape TensorSlice::shape() const {
  Shape shape;
  for (const Extent& extent : extents) shape.AddDim(extent.length);
  return shape;
}

StatusOr<ShapeAndSlice> ShapeAndSlice::Parse(absl::string_view text) {
  ShapeAndSlice result;
  if (text.empty()) return result;
  std::vector<absl::string_view> parts = absl::StrSplit(text, ' ');
  const absl::string_view slice = parts.back();
  parts.pop_back();
  Dims dims;
  for (absl::string_view part : parts) {
    int64_t size = 0;
    if (!absl::SimpleAtoi(part, &size)) {
      return InvalidArgument("Bad shape_and_slice, expected sizes and a slice: ", text);
    }
    dims.push_back(size);
  }
  WEFT_ASSIGN_OR_RETURN(result.full_shape, Shape::Make(dims));
  WEFT_ASSIGN_OR_RETURN(result.slice, TensorSlice::Parse(slice));
  WEFT_RETURN_IF_ERROR(result.slice.Within(result.full_shape).status());
  result.whole = false;
  return result;
}

bool Intersect(const TensorSlice& a, const TensorSlice& b, TensorSlice* both) {
  both->extents.clear();
  for (size_t d = 0; d < a.extents.size(); ++d) {
    const int64_t start = std::max(a.extents[d].start, b.extents[d].start);
    const int64_t end = std::min(a.extents[d].start + a.extents[d].length,
                                 b.extents[d].start + b.extents[d].length);
    if (end <= start) return false;
    both->extents.push_back({start, end - start});
  }
  return true;
}

void CopyShared(const TensorSlice& from_slice, const Tensor& from, const TensorSlice& to_slice,
                Tensor* to) {
  TensorSlice both;
  if (!Intersect(from_slice, to_slice, &both)) return;
  const int rank = static_cast<int>(both.extents.size());
  if (rank == 0) return CopyElements(from, 0, to, 0, 1);
  const Dims from_strides = Strides(from_slice), to_strides = Strides(to_slice);
  // Inner dimensions that are whole on both sides belong to one run.
  int run_dim = rank - 1;
  while (run_dim > 0 && both.extents[run_dim].length == from_slice.extents[run_dim].length &&
         both.extents[run_dim].length == to_slice.extents[run_dim].length) {
    --run_dim;
  }
  const int64_t run = both.extents[run_dim].length * from_strides[run_dim];
  Dims at(static_cast<size_t>(run_dim), 0);  // which run, counted inside `both`
  while (true) {
    int64_t from_index = 0, to_index = 0;
    for (int d = 0; d < rank; ++d) {
      const int64_t position = both.extents[d].start + (d < run_dim ? at[d] : 0);
      from_index += (position - from_slice.extents[d].start) * from_strides[d];
      to_index += (position - to_slice.extents[d].start) * to_strides[d];
    }
    CopyElements(from, from_index, to, to_index, run);
    int d = run_dim - 1;
    while (d >= 0 && ++at[d] == both.extents[d].length) at[d--] = 0;
    if (d < 0) return;
  }
}

}  // namespace weft::storage
