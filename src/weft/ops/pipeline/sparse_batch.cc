// SPDX-License-Identifier: Apache-2.0
// Batches of elements of different sizes as sparse tensors.
#include <algorithm>
#include <utility>

#include "weft/data/transform.h"
#include "weft/ops/elements.h"
#include "weft/ops/sparse/parts_kernel.h"

namespace weft::ops::pipeline::sparse_batch {
namespace {

using weft::data::ContextPtr;
using weft::data::DatasetRef;
using weft::data::Element;
using weft::data::ElementSpec;
using weft::data::IteratorPtr;

class SparseBatch final : public weft::data::TransformDataset {
 public:
  SparseBatch(ElementSpec spec, DatasetRef input, int64_t size, PartialShape row)
      : TransformDataset(std::move(spec), std::move(input)), size_(size), row_(std::move(row)) {}
  int64_t Cardinality() const override {
    const int64_t n = input()->Cardinality();
    return n < 0 ? n : n / size_ + (n % size_ == 0 ? 0 : 1);
  }
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return weft::data::Started<Iterator>(this, context);
  }

 private:
  class Iterator final : public weft::data::TransformIterator<SparseBatch> {
   public:
    using TransformIterator::TransformIterator;
    StatusOr<bool> Next(Element* element) override {
      std::vector<Tensor> rows;
      while (input() != nullptr && static_cast<int64_t>(rows.size()) < dataset().size_) {
        Element one;
        WEFT_ASSIGN_OR_RETURN(const bool found, input()->Next(&one));
        if (!found) {
          input().reset();
        } else if (one.size() != 1) {
          return InvalidArgument("Elements must have one component, got ", one.size());
        } else {
          rows.push_back(std::move(one[0]));
        }
      }
      if (rows.empty()) return false;
      WEFT_ASSIGN_OR_RETURN(Tensor batch, dataset().Joined(rows));
      *element = {std::move(batch)};
      return true;
    }
  };

  // Sizes that row_shape leaves open are those of the largest row.
  StatusOr<Tensor> Joined(const std::vector<Tensor>& rows) const {
    const int rank = row_.rank();
    Dims largest(row_.dims().begin(), row_.dims().end());
    int64_t total = 0;
    for (const Tensor& row : rows) {
      if (row.rank() != rank) {
        return InvalidArgument("Input element had shape (", row.shape().ToString(),
                               ") that is incompatible with the row shape (", row_.ToString(),
                               ").");
      }
      for (int d = 0; d < rank; ++d) {
        if (row_.dim(d) >= 0 && row.dim(d) > row_.dim(d)) {
          return DataLoss("Input element had shape (", row.shape().ToString(),
                          ") that is incompatible with the row shape (", row_.ToString(), ").");
        }
        largest[d] = std::max(largest[d], row.dim(d));
      }
      total += row.num_elements();
    }
    WEFT_ASSIGN_OR_RETURN(Tensor indices, Tensor::Allocate(DType::kInt64, Shape{total, rank + 1}));
    WEFT_ASSIGN_OR_RETURN(Tensor values, Tensor::Allocate(rows[0].dtype(), Shape{total}));
    int64_t at = 0;
    int64_t* index = indices.data<int64_t>();
    for (size_t r = 0; r < rows.size(); ++r) {
      const Tensor& row = rows[r];
      if (row.dtype() != values.dtype()) {
        return InvalidArgument("Elements must be of one type, got ", DTypeName(row.dtype()),
                               " beside ", DTypeName(values.dtype()));
      }
      for (int64_t i = 0; i < row.num_elements(); ++i) {
        *index = static_cast<int64_t>(r);
        int64_t rest = i;
        for (int d = rank; d-- > 0;) {
          index[d + 1] = rest % row.dim(d);
          rest /= row.dim(d);
        }
        index += rank + 1;
      }
      CopyElements(row, 0, row.num_elements(), &values, at);
      at += row.num_elements();
    }
    return Parts(std::move(indices), std::move(values), largest, rows.size());
  }

  static StatusOr<Tensor> Parts(Tensor indices, Tensor values, const Dims& row, size_t count) {
    std::vector<int64_t> sizes{static_cast<int64_t>(count)};
    for (const int64_t size : row) sizes.push_back(std::max<int64_t>(size, 0));
    const Tensor shape = Tensor::FromSpan<int64_t>(Shape{static_cast<int64_t>(sizes.size())},
                                                   absl::MakeConstSpan(sizes));
    WEFT_ASSIGN_OR_RETURN(Tensor parts, Tensor::Zeros(DType::kVariant, Shape{3}));
    int64_t at = 0;
    for (const Tensor* part : {&std::as_const(indices), &std::as_const(values), &shape}) {
      parts.data<Variant>()[at++].value = MakeRef<sparse::TensorInVariant>(*part);
    }
    return parts;
  }

  const int64_t size_;
  const PartialShape row_;
};

StatusOr<DatasetRef> Make(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(DatasetRef input, weft::data::DatasetInput(c));
  WEFT_ASSIGN_OR_RETURN(const auto size, weft::data::ScalarInput<int64_t>(c, "batch_size"));
  if (size <= 0) return InvalidArgument("Batch size must be greater than zero.");
  if (input->spec().types.size() != 1) {
    return InvalidArgument(
        "DenseToSparseBatchDataset only supports inputs with a single component.");
  }
  WEFT_ASSIGN_OR_RETURN(const Tensor row, weft::data::OneInput(c, "row_shape"));
  if (!row.shape().IsVector()) return InvalidArgument("row_shape must be a vector");
  for (const int64_t size_of_row : row.span<int64_t>()) {
    if (size_of_row < -1) {
      return InvalidArgument("Dimension ", size_of_row, " must be >= -1");
    }
  }
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, PartialShape::Make(row.span<int64_t>()));
  WEFT_ASSIGN_OR_RETURN(ElementSpec spec, weft::data::DeclaredSpec(c));
  spec.types = {DType::kVariant};
  spec.shapes = {PartialShape({3})};
  return DatasetRef(
      MakeRef<SparseBatch>(std::move(spec), std::move(input), size, std::move(shape)));
}

weft::data::DatasetOpSpec Spec(const char* name, const char* doc) {
  return {.name = name,
          .doc = doc,
          .inputs = {"input_dataset: variant", "batch_size: int64", "row_shape: int64"},
          .attrs = {"output_types: list(type) >= 1", "output_shapes: list(shape) >= 1"},
          .make = Make};
}

}  // namespace

void Register(Catalogue& catalogue) {
  weft::data::AddDataset(
      catalogue,
      Spec("DenseToSparseBatchDataset",
           "A dataset of batches of `batch_size` elements of different sizes, each a "
           "sparse tensor of shape [batch] + row_shape in three variants.\nA size of "
           "-1 is that of the largest element. DataLoss for an element that is larger."));
  weft::data::AddDataset(catalogue, Spec("ExperimentalDenseToSparseBatchDataset",
                                         "DenseToSparseBatchDataset under its first name."));
}

}  // namespace weft::ops::pipeline::sparse_batch
