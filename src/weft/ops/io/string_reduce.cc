// SPDX-License-Identifier: Apache-2.0
// Strings of one tensor joined: along dimensions, and by segments.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/index_values.h"

namespace weft::ops::io::string_reduce {
namespace {

// Joins along the dimensions given, the first one fastest.
class ReduceJoinKernel final : public OpKernel {
 public:
  explicit ReduceJoinKernel(KernelConstruction& c)
      : keep_dims_(c.AttrOr<bool>("keep_dims", false)),
        separator_(c.AttrOr<std::string>("separator", "")) {}

  Status Compute(KernelContext& c) override {
    const Tensor input = c.input(0);
    WEFT_ASSIGN_OR_RETURN(const IndexVector given, IndexValues(c.input(1), "reduction_indices"));
    std::vector<int> axes;
    std::vector<bool> joined(static_cast<size_t>(input.rank()), false);
    for (const int64_t axis : given) {
      if (axis < -input.rank() || axis >= input.rank()) {
        return OutOfRange("Invalid reduction dimension ", axis, " for input with ", input.rank(),
                          " dimension(s)");
      }
      const int at = static_cast<int>(axis < 0 ? axis + input.rank() : axis);
      if (joined[at]) return InvalidArgument("Duplicate reduction dimension ", at);
      joined[at] = true;
      axes.insert(axes.begin(), at);
    }
    std::vector<int64_t> strides(static_cast<size_t>(input.rank()), 1);
    for (int d = input.rank() - 2; d >= 0; --d) strides[d] = strides[d + 1] * input.dim(d + 1);
    Shape shape;
    std::vector<int> kept;
    for (int d = 0; d < input.rank(); ++d) {
      if (!joined[d]) kept.push_back(d);
      if (!joined[d] || keep_dims_) shape.AddDim(joined[d] ? 1 : input.dim(d));
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    for (int64_t i = 0; i < out->num_elements(); ++i) {
      int64_t start = 0, rest = i;
      for (auto d = kept.rbegin(); d != kept.rend(); ++d) {
        start += rest % input.dim(*d) * strides[*d];
        rest /= input.dim(*d);
      }
      std::string& text = out->data<std::string>()[i];
      text.clear();
      bool is_first = true;
      Append(input, axes, strides, 0, start, &is_first, &text);
    }
    return absl::OkStatus();
  }

 private:
  void Append(const Tensor& input, const std::vector<int>& axes,
              const std::vector<int64_t>& strides, size_t k, int64_t at, bool* is_first,
              std::string* text) const {
    if (k == axes.size()) {
      if (!*is_first) text->append(separator_);
      *is_first = false;
      text->append(input.data<std::string>()[at]);
      return;
    }
    for (int64_t i = 0; i < input.dim(axes[k]); ++i) {
      Append(input, axes, strides, k + 1, at + i * strides[axes[k]], is_first, text);
    }
  }

  const bool keep_dims_;
  const std::string separator_;
};

class SegmentJoinKernel final : public OpKernel {
 public:
  explicit SegmentJoinKernel(KernelConstruction& c)
      : separator_(c.AttrOr<std::string>("separator", "")) {}

  Status Compute(KernelContext& c) override {
    const Tensor input = c.input(0), ids = c.input(1);
    WEFT_ASSIGN_OR_RETURN(const int64_t segments, IndexScalar(c.input(2), "num_segments"));
    if (segments < 0) return InvalidArgument("Number of segments must be non-negative: ", segments);
    const auto all = input.shape().dims(), prefix = ids.shape().dims();
    if (prefix.size() > all.size() || !std::equal(prefix.begin(), prefix.end(), all.begin())) {
      return InvalidArgument("The segment_ids shape ", ids.shape().ToString(),
                             " must be a prefix of the inputs shape ", input.shape().ToString());
    }
    Dims dims = {segments};
    dims.insert(dims.end(), all.begin() + prefix.size(), all.end());
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    const int64_t inner = segments == 0 ? 0 : out->num_elements() / segments;
    std::vector<bool> started(static_cast<size_t>(segments), false);
    std::fill_n(out->data<std::string>(), out->num_elements(), std::string());
    for (int64_t i = 0; i < ids.num_elements(); ++i) {
      const int64_t id = IndexAt(ids, i);
      if (id < 0) continue;
      if (id >= segments) {
        return InvalidArgument("segment_ids[", i, "] = ", id, " is out of range [0, ", segments,
                               ")");
      }
      for (int64_t k = 0; k < inner; ++k) {
        std::string& text = out->data<std::string>()[id * inner + k];
        if (started[id]) text.append(separator_);
        text.append(input.data<std::string>()[i * inner + k]);
      }
      started[id] = true;
    }
    return absl::OkStatus();
  }

 private:
  const std::string separator_;
};

Status ReduceShape(ShapeContext& c) {
  if (!c.input(0).known_rank() || c.constant(1) == nullptr) return shapes::Unknown(c);
  WEFT_ASSIGN_OR_RETURN(const bool keep, c.Attr<bool>("keep_dims"));
  WEFT_ASSIGN_OR_RETURN(const IndexVector axes, IndexValues(*c.constant(1), "reduction_indices"));
  const int rank = c.input(0).rank();
  std::vector<bool> joined(static_cast<size_t>(rank), false);
  for (const int64_t axis : axes) {
    if (axis < -rank || axis >= rank) return shapes::Unknown(c);  // the kernel says so
    joined[axis < 0 ? axis + rank : axis] = true;
  }
  PartialShape shape{Shape()};
  for (int d = 0; d < rank; ++d) {
    if (!joined[d] || keep) shape.AddDim(joined[d] ? 1 : c.input(0).dim(d));
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("ReduceJoin")
                    .Doc("The strings along the dimensions `reduction_indices`, joined by "
                         "`separator`; the first of them fastest.\nWithout any, the input.")
                    .Input("inputs: string")
                    .Input("reduction_indices: int32")
                    .HostInput("reduction_indices")
                    .Output("output: string")
                    .Attr("keep_dims: bool = false")
                    .Attr("separator: string = ''")
                    .Shape(ReduceShape)
                    .NoGradient()
                    .Kernel(MakeKernel<ReduceJoinKernel>()));
  catalogue.Add(OpSpec("UnsortedSegmentJoin")
                    .Doc("The strings of each segment, joined by `separator` in their order.\n"
                         "The shape of segment_ids is the start of the inputs' one. A negative id "
                         "drops the string.")
                    .Input("inputs: string")
                    .Input("segment_ids: Tindices")
                    .Input("num_segments: Tnumsegments")
                    .HostInput("num_segments")
                    .Output("output: string")
                    .Attr("separator: string = ''")
                    .Attr("Tindices: {int32, int64}")
                    .Attr("Tnumsegments: {int32, int64} = DT_INT32")
                    .Shape(shapes::Unknown)
                    .NoGradient()
                    .Kernel(MakeKernel<SegmentJoinKernel>()));
}

}  // namespace weft::ops::io::string_reduce
