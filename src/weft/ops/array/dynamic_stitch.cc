// SPDX-License-Identifier: Apache-2.0
// Distributing slices over tensors by number, and putting them back together: how embeddings are
// sharded.
#include <memory>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/array/gather_kernel.h"
#include "weft/ops/elements.h"
#include "weft/ops/index_values.h"

namespace weft::ops::array::dynamic_stitch {
namespace {

bool StartsWith(const Shape& shape, const Shape& prefix) {
  if (shape.rank() < prefix.rank()) return false;
  for (int i = 0; i < prefix.rank(); ++i) {
    if (shape.dim(i) != prefix.dim(i)) return false;
  }
  return true;
}

class DynamicPartitionKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& data = c.input(0);
    const Tensor& partitions = c.input(1);
    if (!StartsWith(data.shape(), partitions.shape())) {
      return InvalidArgument(
          "data.shape must start with partitions.shape, got data.shape = ", data.shape().ToString(),
          ", partitions.shape = ", partitions.shape().ToString());
    }
    const int parts = c.num_outputs();
    IndexVector counts(parts, 0);
    const int32_t* to = partitions.data<int32_t>();
    for (int64_t i = 0; i < partitions.num_elements(); ++i) {
      if (to[i] < 0 || to[i] >= parts) {
        return InvalidArgument("partitions", PositionText(partitions.shape(), i), " = ", to[i],
                               " is not in [0, ", parts, ")");
      }
      ++counts[to[i]];
    }
    Shape slice;
    for (int i = partitions.rank(); i < data.rank(); ++i) slice.AddDim(data.dim(i));
    absl::InlinedVector<Tensor*, 8> outputs(parts);
    for (int p = 0; p < parts; ++p) {
      Shape shape = slice;
      shape.InsertDim(0, counts[p]);
      WEFT_ASSIGN_OR_RETURN(outputs[p], c.AllocateOutput(p, shape));
    }
    IndexVector next(parts, 0);
    const int64_t size = slice.num_elements();
    for (int64_t i = 0; i < partitions.num_elements(); ++i) {
      CopyElements(data, i * size, size, outputs[to[i]], next[to[i]]++ * size);
    }
    return absl::OkStatus();
  }
};

// Rows of equal number: the last one stays (of the tensors, and inside one).
class DynamicStitchKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const int count = c.num_inputs() / 2;
    const Shape& first_data = c.input(count).shape();
    const int first_rank = c.input(0).rank();
    int64_t largest = -1;
    int64_t total = 0;
    for (int k = 0; k < count; ++k) {
      const Tensor& indices = c.input(k);
      const Tensor& data = c.input(count + k);
      if (!StartsWith(data.shape(), indices.shape())) {
        return InvalidArgument("data[", k, "].shape = ", data.shape().ToString(),
                               " does not start with indices[", k,
                               "].shape = ", indices.shape().ToString());
      }
      WEFT_RETURN_IF_ERROR(CheckSlice(first_data, first_rank, data.shape(), indices.rank(), k));
      for (const int32_t index : indices.span<int32_t>()) {
        if (index < 0) return InvalidArgument("indices[", k, "] is out of range: ", index);
        largest = std::max<int64_t>(largest, index);
      }
      total += indices.num_elements();
    }
    Dims sizes(first_data.dims().begin() + first_rank, first_data.dims().end());
    sizes.insert(sizes.begin(), largest + 1);
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(sizes));
    WEFT_ASSIGN_OR_RETURN(Tensor * merged, c.AllocateOutput(0, shape));
    if (total != largest + 1)
      ClearElements(merged, 0, merged->num_elements());  // maybe rows without a source
    const int64_t slice = largest < 0 ? 0 : merged->num_elements() / (largest + 1);
    for (int k = 0; k < count && slice > 0; ++k) {
      const Tensor& indices = c.input(k);
      for (int64_t i = 0; i < indices.num_elements(); ++i) {
        CopyElements(c.input(count + k), i * slice, slice, merged,
                     indices.data<int32_t>()[i] * slice);
      }
    }
    return absl::OkStatus();
  }

 private:
  static Status CheckSlice(const Shape& first, int first_rank, const Shape& data, int rank, int k) {
    const auto a = first.dims().subspan(static_cast<size_t>(first_rank));
    const auto b = data.dims().subspan(static_cast<size_t>(rank));
    if (a == b) return absl::OkStatus();
    return InvalidArgument("Need data[0].shape[", first_rank, ":] = data[", k, "].shape[", rank,
                           ":], got data[0].shape = ", first.ToString(), ", data[", k,
                           "].shape = ", data.ToString());
  }
};

Status DynamicPartitionShape(ShapeContext& c) {
  const PartialShape& data = c.input(0);
  const PartialShape& partitions = c.input(1);
  PartialShape part;
  if (data.known_rank() && partitions.known_rank()) {
    if (partitions.rank() > data.rank()) {
      return InvalidArgument("data.shape must start with partitions.shape: ", data.ToString(),
                             " and ", partitions.ToString());
    }
    Dims sizes(data.dims().begin() + partitions.rank(), data.dims().end());
    sizes.insert(sizes.begin(), -1);
    WEFT_ASSIGN_OR_RETURN(part, PartialShape::Make(sizes));
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, part);
  return absl::OkStatus();
}

Status DynamicStitchShape(ShapeContext& c) {
  const int count = c.num_inputs() / 2;
  int64_t rows = 0;
  PartialShape slice;
  for (int k = 0; k < count; ++k) {
    const PartialShape& indices = c.input(k);
    const PartialShape& data = c.input(count + k);
    if (indices.known_rank() && data.known_rank()) {
      if (indices.rank() > data.rank()) {
        return InvalidArgument("data[", k, "].shape does not start with indices[", k, "].shape");
      }
      WEFT_ASSIGN_OR_RETURN(
          const PartialShape rest,
          PartialShape::Make(data.dims().subspan(static_cast<size_t>(indices.rank()))));
      WEFT_ASSIGN_OR_RETURN(slice, slice.MergeWith(rest));
    }
    if (c.constant(k) == nullptr) {
      rows = -1;
    } else if (rows >= 0) {
      for (const int32_t index : c.constant(k)->span<int32_t>())
        rows = std::max<int64_t>(rows, int64_t{index} + 1);
    }
  }
  if (!slice.known_rank()) return absl::OkStatus();
  Dims sizes(slice.dims().begin(), slice.dims().end());
  sizes.insert(sizes.begin(), rows);
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, PartialShape::Make(sizes));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// Where each slice went is computed by partitioning its position.
Status DynamicPartitionGradient(GradientContext& c) {
  GraphBuilder& b = c.builder();
  WEFT_ASSIGN_OR_RETURN(const int64_t parts, c.Attr<int64_t>("num_partitions"));
  const Endpoint shape = c.Op("Shape", {c.input(1)});
  const Endpoint count = c.Op("Size", {c.input(1)});
  const Endpoint positions =
      c.Op("Reshape", {c.Op("Range", {b.Scalar<int32_t>(0), count, b.Scalar<int32_t>(1)}), shape});
  Node* moved = b.AddNode("DynamicPartition", {positions, c.input(1)}, {{"num_partitions", parts}});
  if (moved == nullptr) return b.status();
  std::vector<Endpoint> indices;
  std::vector<Endpoint> gradients;
  for (int i = 0; i < parts; ++i) {
    indices.push_back({moved, i});
    gradients.push_back(c.gradient(i) ? c.gradient(i) : c.Op("ZerosLike", {c.output(i)}));
  }
  const Endpoint whole = c.Op("ParallelDynamicStitch", {indices, gradients});
  c.set_input(0, c.Op("Reshape", {whole, c.Op("Shape", {c.input(0)})}));
  return absl::OkStatus();
}

Status DynamicStitchGradient(GradientContext& c) {
  const int count = c.node().num_inputs() / 2;
  for (int k = 0; k < count; ++k) {
    c.set_input(count + k,
                c.Op("GatherV2", {c.gradient(), c.input(k), c.builder().Scalar<int32_t>(0)}));
  }
  return absl::OkStatus();
}

void AddStitch(Catalogue& catalogue, const char* name, const char* doc) {
  catalogue.Add(OpSpec(name)
                    .Doc(doc)
                    .Input("indices: N * int32")
                    .HostInput("indices")
                    .Input("data: N * T")
                    .Output("merged: T")
                    .Attr("N: int >= 1")
                    .Attr("T: type")
                    .Shape(DynamicStitchShape)
                    .Gradient(DynamicStitchGradient)
                    .Kernel(MakeKernel<DynamicStitchKernel>()));
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("DynamicPartition")
                    .Doc("Sends slice i of `data` to output partitions[i], keeping their order.\n"
                         "InvalidArgument for a number out of range.")
                    .Input("data: T")
                    .Input("partitions: int32")
                    .Output("outputs: num_partitions * T")
                    .Attr("num_partitions: int >= 1")
                    .Attr("T: type")
                    .Shape(DynamicPartitionShape)
                    .Gradient(DynamicPartitionGradient)
                    .Kernel(MakeKernel<DynamicPartitionKernel>()));
  AddStitch(catalogue, "DynamicStitch",
            "Puts slice data[k][i] at row indices[k][i] of one tensor; where two meet, the later "
            "one stays.\n"
            "Rows that nobody names are zeros.");
  AddStitch(catalogue, "ParallelDynamicStitch", "DynamicStitch for rows that are named once.");
}

}  // namespace weft::ops::array::dynamic_stitch
