// SPDX-License-Identifier: Apache-2.0
// Sparse tensors as three strings (or variants) each, which queues and records can hold.
#include <string>
#include <utility>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/sparse/parts_kernel.h"
#include "weft/tensor/tensor_proto.h"

namespace weft::ops::sparse::serialize {
namespace {

// Writes the three tensors as elements `at` and those behind it.
Status Store(const SparseParts& parts, int64_t at, Tensor* out) {
  for (const Tensor* tensor : {&parts.indices, &parts.values, &parts.shape}) {
    if (out->dtype() == DType::kString) {
      WEFT_ASSIGN_OR_RETURN(out->data<std::string>()[at], SerializeTensorProto(*tensor));
    } else {
      out->data<Variant>()[at].value = MakeRef<TensorInVariant>(*tensor);
    }
    ++at;
  }
  return absl::OkStatus();
}

StatusOr<Tensor> LoadOne(const Tensor& serialized, int64_t at) {
  if (serialized.dtype() == DType::kString) {
    return ParseTensorProto(serialized.data<std::string>()[at]);
  }
  const auto* held =
      dynamic_cast<const TensorInVariant*>(serialized.data<Variant>()[at].value.get());
  if (held != nullptr) return held->tensor();
  return InvalidArgument("Element ", at, " of the serialized sparse tensors is not a tensor");
}

StatusOr<SparseParts> Load(const Tensor& serialized, int64_t at, DType dtype) {
  SparseParts parts;
  WEFT_ASSIGN_OR_RETURN(parts.indices, LoadOne(serialized, at));
  WEFT_ASSIGN_OR_RETURN(parts.values, LoadOne(serialized, at + 1));
  WEFT_ASSIGN_OR_RETURN(parts.shape, LoadOne(serialized, at + 2));
  WEFT_RETURN_IF_ERROR(CheckParts(parts, dtype));
  return parts;
}

class SerializeKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const SparseInput input{&c.input(0), &c.input(1), &c.input(2)};
    WEFT_RETURN_IF_ERROR(input.Check());
    const SparseParts parts{c.input(0), c.input(1), c.input(2)};
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape{3}));
    return Store(parts, 0, out);
  }
};

class SerializeManyKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const std::vector<SparseParts> rows,
                          SplitRows({&c.input(0), &c.input(1), &c.input(2)}));
    const auto count = static_cast<int64_t>(rows.size());
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape{count, 3}));
    for (int64_t i = 0; i < count; ++i) WEFT_RETURN_IF_ERROR(Store(rows[i], 3 * i, out));
    return absl::OkStatus();
  }
};

// DeserializeManySparse takes [N, 3], DeserializeSparse any number of leading dimensions.
class DeserializeKernel final : public OpKernel {
 public:
  explicit DeserializeKernel(KernelConstruction& k) : one_dim_(k.op() == "DeserializeManySparse") {}
  Status Compute(KernelContext& c) override {
    const Tensor serialized = c.input(0);
    const int rank = serialized.rank();
    if (rank < 1 || (one_dim_ && rank != 2) || serialized.dim(rank - 1) != 3) {
      return InvalidArgument("Serialized sparse should have 3 as the last dimension",
                             one_dim_ ? " of two" : "", ", has shape ",
                             serialized.shape().ToString());
    }
    std::vector<SparseParts> parts;
    for (int64_t at = 0; at < serialized.num_elements(); at += 3) {
      WEFT_ASSIGN_OR_RETURN(SparseParts one, Load(serialized, at, c.output_dtype(1)));
      parts.push_back(std::move(one));
    }
    return GiveJoined(c, serialized.shape().dims().subspan(0, rank - 1), parts);
  }

 private:
  const bool one_dim_;
};

OpSpec Named(const char* name, const char* doc) {
  OpSpec spec(name);
  spec.Doc(doc).NoGradient();
  return spec;
}

Status SparseShape(ShapeContext& c) {
  c.set_output(0, PartialShape({-1, -1}));
  c.set_output(1, PartialShape({-1}));
  c.set_output(2, PartialShape({-1}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  OpSpec one = Named("SerializeSparse",
                     "A sparse tensor as three strings or variants: positions, "
                     "values, shape."),
         many = Named("SerializeManySparse",
                      "Each row of a sparse tensor as three strings or variants.\nIts positions "
                      "must come in the order of rows.");
  one.Shape([](ShapeContext& c) {
    c.set_output(0, PartialShape({3}));
    return absl::OkStatus();
  });
  many.Shape([](ShapeContext& c) {
    c.set_output(0, PartialShape({-1, 3}));
    return absl::OkStatus();
  });
  one.Kernel(MakeKernel<SerializeKernel>());
  many.Kernel(MakeKernel<SerializeManyKernel>());
  for (OpSpec* spec : {&one, &many}) {
    spec->Input("sparse_indices: int64")
        .Input("sparse_values: T")
        .Input("sparse_shape: int64")
        .Output("serialized_sparse: out_type")
        .Attr("T: type")
        .Attr("out_type: {string, variant} = DT_STRING");
    catalogue.Add(std::move(*spec));
  }
  OpSpec back = Named("DeserializeSparse",
                      "The sparse tensor that serialized ones are the parts of.\n"
                      "The last dimension of the input is 3, the others lead the output's."),
         rows = Named("DeserializeManySparse",
                      "The sparse tensor whose rows were serialized.\nThe input is [N, 3].");
  back.Input("serialized_sparse: Tserialized");
  rows.Input("serialized_sparse: string");
  for (OpSpec* spec : {&back, &rows}) {
    spec->Output("sparse_indices: int64")
        .Output("sparse_values: dtype")
        .Output("sparse_shape: int64")
        .Attr("dtype: type")
        .Shape(SparseShape)
        .Kernel(MakeKernel<DeserializeKernel>());
  }
  back.Attr("Tserialized: {string, variant} = DT_STRING");
  catalogue.Add(std::move(back));
  catalogue.Add(std::move(rows));
}

}  // namespace weft::ops::sparse::serialize
