// SPDX-License-Identifier: Apache-2.0
// Sparse tensors one after the other.
#include <algorithm>
#include <utility>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/elements.h"
#include "weft/ops/index_values.h"
#include "weft/ops/sparse/sparse_input.h"

namespace weft::ops::sparse::concat {
namespace {

class ConcatKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const int64_t axis, c.Attr<int64_t>("concat_dim"));
    WEFT_ASSIGN_OR_RETURN(const int64_t count, c.Attr<int64_t>("N"));
    return std::make_unique<ConcatKernel>(axis, static_cast<int>(count));
  }
  ConcatKernel(int64_t axis, int count) : axis_(axis), count_(count) {}

  Status Compute(KernelContext& c) override {
    std::vector<SparseInput> inputs;
    int64_t total = 0;
    for (int k = 0; k < count_; ++k) {
      inputs.push_back({&c.input(k), &c.input(count_ + k), &c.input(2 * count_ + k)});
      WEFT_RETURN_IF_ERROR(inputs.back().Check());
      total += inputs.back().count();
    }
    const SparseInput& first = inputs[0];
    WEFT_ASSIGN_OR_RETURN(const int axis,
                          CanonicalAxis(axis_, static_cast<int>(first.rank()), "concat_dim"));
    std::vector<int64_t> offsets = {0};  // of each input along the axis
    for (const SparseInput& input : inputs) {
      WEFT_RETURN_IF_ERROR(CheckFits(first, input, axis));
      offsets.push_back(offsets.back() + input.size(axis));
    }
    std::vector<int64_t> sizes(first.shape->data<int64_t>(),
                               first.shape->data<int64_t>() + first.rank());
    sizes[static_cast<size_t>(axis)] = offsets.back();
    c.SetOutput(2, Tensor::FromSpan<int64_t>(Shape{first.rank()}, sizes));
    return Write(c, inputs, axis, offsets, total);
  }

 private:
  static Status CheckFits(const SparseInput& first, const SparseInput& other, int axis) {
    if (other.rank() != first.rank()) {
      return InvalidArgument("Ranks of all input tensors must match: expected ", first.rank(),
                             " but got ", other.rank());
    }
    for (int64_t d = 0; d < first.rank(); ++d) {
      if (d == axis || other.size(d) == first.size(d)) continue;
      return InvalidArgument("Input shapes must match: expected ", first.size(d), " for dimension ",
                             d, " but got ", other.size(d));
    }
    return absl::OkStatus();
  }

  // Everything in row-major order of where it ends up.
  static Status Write(KernelContext& c, const std::vector<SparseInput>& inputs, int axis,
                      const std::vector<int64_t>& offsets, int64_t total) {
    const int64_t rank = inputs[0].rank();
    std::vector<std::pair<size_t, int64_t>> entries;  // input, its entry
    std::vector<int64_t> moved;                       // positions, in the order of `entries`
    for (size_t k = 0; k < inputs.size(); ++k) {
      for (int64_t i = 0; i < inputs[k].count(); ++i) {
        entries.emplace_back(k, i);
        moved.insert(moved.end(), inputs[k].position(i), inputs[k].position(i) + rank);
        moved[moved.size() - static_cast<size_t>(rank - axis)] += offsets[k];
      }
    }
    std::vector<int64_t> order(entries.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      const int64_t *left = moved.data() + a * rank, *right = moved.data() + b * rank;
      return std::lexicographical_compare(left, left + rank, right, right + rank);
    });
    WEFT_ASSIGN_OR_RETURN(Tensor * indices, c.AllocateOutput(0, Shape{total, rank}));
    WEFT_ASSIGN_OR_RETURN(Tensor * values, c.AllocateOutput(1, Shape{total}));
    int64_t to = 0;
    for (const int64_t from : order) {
      const auto& [input, entry] = entries[static_cast<size_t>(from)];
      std::copy_n(moved.data() + from * rank, rank, indices->data<int64_t>() + to * rank);
      CopyElements(*inputs[input].values, entry, 1, values, to++);
    }
    return absl::OkStatus();
  }

  const int64_t axis_;
  const int count_;
};

Status ConcatShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const int64_t count, c.Attr<int64_t>("N"));
  PartialShape shape;
  int64_t columns = -1;
  for (int k = 0; k < static_cast<int>(count); ++k) {
    WEFT_ASSIGN_OR_RETURN(const PartialShape indices, c.WithRank(k, 2));
    WEFT_RETURN_IF_ERROR(c.WithRank(static_cast<int>(count) + k, 1).status());
    WEFT_ASSIGN_OR_RETURN(shape, shape.MergeWith(c.input(2 * static_cast<int>(count) + k)));
    columns = std::max(columns, indices.dim(1));
  }
  c.set_output(0, PartialShape({-1, columns}));
  c.set_output(1, PartialShape({-1}));
  c.set_output(2, std::move(shape));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("SparseConcat")
                    .Doc("Sparse tensors joined along concat_dim, in row-major order.\nAll other "
                         "sizes are the same. A negative concat_dim counts from the end.")
                    .Input("indices: N * int64")
                    .Input("values: N * T")
                    .Input("shapes: N * int64")
                    .HostInput("shapes")
                    .Output("output_indices: int64")
                    .Output("output_values: T")
                    .Output("output_shape: int64")
                    .HostOutput("output_shape")
                    .Attr("concat_dim: int")
                    .Attr("N: int >= 2")
                    .Attr("T: type")
                    .Shape(ConcatShape)
                    .NoGradient()
                    .Kernel(MakeKernel<ConcatKernel>()));
}

}  // namespace weft::ops::sparse::concat
