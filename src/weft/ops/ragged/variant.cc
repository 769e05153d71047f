// SPDX-License-Identifier: Apache-2.0
// Ragged tensors as elements of variant tensors, whole or row by row.
#include "weft/tensor/variant.h"

#include <string>
#include <utility>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/elements.h"
#include "weft/ops/ragged/ragged_value_kernel.h"

namespace weft::ops::ragged::variant {
namespace {

class ToVariantKernel final : public OpKernel {
 public:
  explicit ToVariantKernel(KernelConstruction& c)
      : levels_(c.num_inputs() - 1), by_rows_(c.AttrOr<bool>("batched_input", false)) {}

  Status Compute(KernelContext& c) override {
    const Tensor values = c.input(levels_);
    if (levels_ > 0 && values.rank() < 1) {
      return InvalidArgument("rt_dense_values must have rank >= 1");
    }
    WEFT_ASSIGN_OR_RETURN(std::vector<Splits> levels,
                          NestedSplitsOf(c, 0, levels_, levels_ > 0 ? values.dim(0) : 0));
    if (!by_rows_) {
      c.SetOutput(0, Tensor::Scalar(Variant{MakeRef<RaggedValue>(std::move(levels), values)}));
      return absl::OkStatus();
    }
    if (levels_ == 0 && values.rank() < 1) {
      return InvalidArgument("A batch must have one dimension or more");
    }
    const int64_t rows = levels_ > 0 ? static_cast<int64_t>(levels[0].size()) - 1 : values.dim(0);
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape{rows}));
    for (int64_t row = 0; row < rows; ++row) {
      WEFT_ASSIGN_OR_RETURN(out->data<Variant>()[row].value, RowOf(levels, values, row));
    }
    return absl::OkStatus();
  }

 private:
  static StatusOr<Ref<VariantValue>> RowOf(const std::vector<Splits>& levels, const Tensor& values,
                                           int64_t row) {
    if (levels.empty()) {
      Shape shape = values.shape();
      shape.RemoveDim(0);
      WEFT_ASSIGN_OR_RETURN(Tensor own, values.SliceRows(row, row + 1).Reshaped(shape));
      return Ref<VariantValue>(MakeRef<RaggedValue>(std::vector<Splits>(), std::move(own)));
    }
    int64_t begin = levels[0][row], end = levels[0][row + 1];
    std::vector<Splits> splits;
    for (size_t level = 1; level < levels.size(); ++level) {
      const Splits& all = levels[level];
      Splits own;
      for (int64_t i = begin; i <= end; ++i) own.push_back(all[i] - all[begin]);
      const int64_t next = all[begin];
      end = all[end];
      begin = next;
      splits.push_back(std::move(own));
    }
    return Ref<VariantValue>(MakeRef<RaggedValue>(std::move(splits), values.SliceRows(begin, end)));
  }

  const int levels_;
  const bool by_rows_;
};

class FromVariantKernel final : public OpKernel {
 public:
  explicit FromVariantKernel(KernelConstruction& c)
      : held_levels_(c.AttrOr<int64_t>("input_ragged_rank", -1)), levels_(c.num_outputs() - 1) {}

  Status Compute(KernelContext& c) override {
    const Tensor encoded = c.input(0);
    const int held = held_levels_ < 0 ? levels_ - encoded.rank() : static_cast<int>(held_levels_);
    if (held < 0 || held + encoded.rank() != levels_) {
      return InvalidArgument(
          "output_ragged_rank must be equal to input_ragged_rank + "
          "encoded_ragged.dims(); got ",
          levels_, ", ", held, " and ", encoded.rank());
    }
    std::vector<const RaggedValue*> parts;
    for (int64_t i = 0; i < encoded.num_elements(); ++i) {
      const auto* part = dynamic_cast<const RaggedValue*>(encoded.data<Variant>()[i].value.get());
      if (part == nullptr) {
        return InvalidArgument("Input Variant element at index ", i,
                               " doesn't hold a RaggedTensorVariant");
      }
      if (static_cast<int>(part->splits().size()) != held) {
        return InvalidArgument("Encoded input RaggedTensorVariant has ragged_rank=",
                               part->splits().size(), ". Expected ragged_rank=", held);
      }
      if (part->values().dtype() != c.output_dtype(levels_)) {
        return InvalidArgument("Expected values Tensor dtype: ", DTypeName(c.output_dtype(levels_)),
                               ", found: ", DTypeName(part->values().dtype()));
      }
      if (encoded.rank() > 0 && part->values().rank() < 1) {
        return InvalidArgument("Ragged values must have rank >= 1 to be put together");
      }
      parts.push_back(part);
    }
    if (encoded.rank() == 0) return GiveWhole(c, *parts[0]);
    return GiveJoined(c, encoded.shape(), parts, held);
  }

 private:
  Status GiveWhole(KernelContext& c, const RaggedValue& value) const {
    for (int i = 0; i < levels_; ++i) WEFT_RETURN_IF_ERROR(GiveSplits(c, i, value.splits()[i]));
    c.SetOutput(levels_, value.values());
    return absl::OkStatus();
  }

  Status GiveJoined(KernelContext& c, const Shape& batch,
                    const std::vector<const RaggedValue*>& parts, int held) const {
    int64_t rows = 1;
    for (int d = 0; d + 1 < batch.rank(); ++d) {
      rows *= batch.dim(d);
      Splits splits(static_cast<size_t>(rows) + 1);
      for (size_t i = 0; i < splits.size(); ++i) {
        splits[i] = static_cast<int64_t>(i) * batch.dim(d + 1);
      }
      WEFT_RETURN_IF_ERROR(GiveSplits(c, d, splits));
    }
    Splits lengths = {0};
    for (const RaggedValue* part : parts) lengths.push_back(lengths.back() + part->rows());
    WEFT_RETURN_IF_ERROR(GiveSplits(c, batch.rank() - 1, lengths));
    for (int level = 0; level < held; ++level) {
      Splits splits = {0};
      for (const RaggedValue* part : parts) {
        const Splits& own = part->splits()[level];
        const int64_t offset = splits.back();
        for (size_t i = 1; i < own.size(); ++i) splits.push_back(offset + own[i]);
      }
      WEFT_RETURN_IF_ERROR(GiveSplits(c, batch.rank() + level, splits));
    }
    return GiveValues(c, parts);
  }

  Status GiveValues(KernelContext& c, const std::vector<const RaggedValue*>& parts) const {
    Shape shape = parts.empty() ? Shape{0} : parts[0]->values().shape();
    int64_t total = 0;
    for (const RaggedValue* part : parts) {
      Shape own = part->values().shape();
      total += own.dim(0);
      own.SetDim(0, shape.dim(0));
      if (own == shape) continue;
      return InvalidArgument("All flat_values must have compatible shapes. Shape of the first: ",
                             shape.ToString(), ", of another: ", part->values().shape().ToString());
    }
    shape.SetDim(0, total);
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(levels_, shape));
    int64_t at = 0;
    for (const RaggedValue* part : parts) {
      CopyElements(part->values(), 0, part->values().num_elements(), out, at);
      at += part->values().num_elements();
    }
    return absl::OkStatus();
  }

  const int64_t held_levels_;
  const int levels_;
};

// Of the values that went into variants, the gradients that come back in variants. One that holds
// nothing stands for zeros.
class ToVariantGradientKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor &encoded = c.input(0), &splits = c.input(1);
    WEFT_ASSIGN_OR_RETURN(const Shape shape, ShapeFromValues(c.input(2), "dense_values_shape"));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    ClearElements(out, 0, out->num_elements());
    const int64_t pieces = encoded.num_elements();
    Splits begins;
    if (splits.rank() == 1 && splits.dim(0) > 0 && encoded.rank() > 0) {
      WEFT_ASSIGN_OR_RETURN(begins, SplitsOf(splits));
      if (static_cast<int64_t>(begins.size()) != pieces + 1) {
        return InvalidArgument("There are ", pieces, " variants and ", begins.size(), " splits");
      }
    }
    const int64_t rows = shape.rank() > 0 ? shape.dim(0) : 1;
    const int64_t width = rows == 0 ? 0 : shape.num_elements() / rows;
    int64_t at = 0;
    for (int64_t i = 0; i < pieces; ++i) {
      const int64_t count = !begins.empty()       ? (begins[i + 1] - begins[i]) * width
                            : encoded.rank() == 0 ? shape.num_elements()
                                                  : width;
      const Ref<VariantValue>& value = encoded.data<Variant>()[i].value;
      if (count > out->num_elements() - at) {
        return InvalidArgument("The splits end behind the ", rows, " rows of dense_values_shape");
      }
      if (value) WEFT_RETURN_IF_ERROR(CopyPiece(*value, count, i, at, out));
      at += count;
    }
    return absl::OkStatus();
  }

 private:
  static Status CopyPiece(const VariantValue& value, int64_t count, int64_t i, int64_t at,
                          Tensor* out) {
    const auto* part = dynamic_cast<const RaggedValue*>(&value);
    if (part == nullptr) {
      return InvalidArgument("Input Variant element at index ", i,
                             " doesn't hold a RaggedTensorVariant");
    }
    if (part->values().dtype() != out->dtype() || part->values().num_elements() != count) {
      return InvalidArgument("The gradient of row ", i, " has ", part->values().num_elements(),
                             " elements of ", DTypeName(part->values().dtype()), ", expected ",
                             count, " of ", DTypeName(out->dtype()));
    }
    CopyElements(part->values(), 0, count, out, at);
    return absl::OkStatus();
  }
};

Status ToVariantGradient(GradientContext& c) {
  const int levels = c.node().num_inputs() - 1;
  WEFT_ASSIGN_OR_RETURN(const auto dtype, c.Attr<DType>("Tvalues"));
  WEFT_ASSIGN_OR_RETURN(const auto splits, c.Attr<DType>("Tsplits"));
  const Endpoint rows = levels > 0                ? c.input(0)
                        : splits == DType::kInt32 ? c.builder().Scalar<int32_t>(0)
                                                  : c.builder().Scalar<int64_t>(0);
  c.set_input(levels, c.Op("RaggedTensorToVariantGradient",
                           {c.gradient(), rows, c.Op("Shape", {c.input(levels)})},
                           {{"Tvalues", dtype}, {"Tsplits", splits}}));
  return absl::OkStatus();
}

Status FromVariantGradient(GradientContext& c) {
  const int levels = c.node().num_outputs() - 1;
  if (!c.gradient(levels)) return absl::OkStatus();
  WEFT_ASSIGN_OR_RETURN(const auto splits, c.Attr<DType>("Tsplits"));
  const PartialShape encoded = c.builder().ShapeOf(c.input(0));
  if (encoded.known_rank() && encoded.rank() > 1) {
    return Unimplemented(
        "RaggedTensorFromVariant has a gradient for a scalar or a vector of "
        "variants, not for ",
        encoded.ToString());
  }
  const bool by_rows = encoded.known_rank() ? encoded.rank() == 1 : levels > 0;
  std::vector<Endpoint> nested;
  for (int i = 0; i < levels; ++i) nested.push_back(c.output(i));
  c.set_input(0, c.Op("RaggedTensorToVariant", {nested, c.gradient(levels)},
                      {{"RAGGED_RANK", levels}, {"Tsplits", splits}, {"batched_input", by_rows}}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("RaggedTensorToVariant")
                    .Doc("The ragged tensor as one variant, or, if `batched_input`, one a row.")
                    .Input("rt_nested_splits: RAGGED_RANK * Tsplits")
                    .Input("rt_dense_values: Tvalues")
                    .Output("encoded_ragged: variant")
                    .Attr("RAGGED_RANK: int >= 0")
                    .Attr("Tvalues: type")
                    .Attr("Tsplits: {int32, int64} = DT_INT64")
                    .Attr("batched_input: bool")
                    .Shape(shapes::Unknown)
                    .Gradient(ToVariantGradient)
                    .Kernel(MakeKernel<ToVariantKernel>()));
  catalogue.Add(OpSpec("RaggedTensorFromVariant")
                    .Doc("The ragged tensor that variants hold; several are rows of it.\n"
                         "input_ragged_rank is that of each variant's own tensor, -1 for what the "
                         "output's leaves over.")
                    .Input("encoded_ragged: variant")
                    .Output("output_nested_splits: output_ragged_rank * Tsplits")
                    .Output("output_dense_values: Tvalues")
                    .Attr("input_ragged_rank: int >= -1")
                    .Attr("output_ragged_rank: int >= 0")
                    .Attr("Tvalues: type")
                    .Attr("Tsplits: {int32, int64} = DT_INT64")
                    .Shape(shapes::Unknown)
                    .Gradient(FromVariantGradient)
                    .Kernel(MakeKernel<FromVariantKernel>()));
  catalogue.Add(OpSpec("RaggedTensorToVariantGradient")
                    .Doc("The gradient of the values of RaggedTensorToVariant: what the variants "
                         "hold, one behind the other.\nrow_splits: those of the outermost rows, or "
                         "a scalar. dense_values_shape: the values' shape.")
                    .Input("encoded_ragged_grad: variant")
                    .Input("row_splits: Tsplits")
                    .Input("dense_values_shape: int32")
                    .HostInput("dense_values_shape")
                    .Output("dense_values_grad: Tvalues")
                    .Attr("Tvalues: type")
                    .Attr("Tsplits: {int32, int64} = DT_INT64")
                    .Shape(shapes::Unknown)
                    .NoGradient()
                    .Kernel(MakeKernel<ToVariantGradientKernel>()));
}

}  // namespace weft::ops::ragged::variant
