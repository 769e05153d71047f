// SPDX-License-Identifier: Apache-2.0
// The rows of elements as elements, and batches of other sizes.
#include <algorithm>
#include <utility>

#include "weft/data/batch_rows.h"
#include "weft/data/transform.h"

namespace weft::data::unbatch {
namespace {

StatusOr<int64_t> RowsOf(const Element& element) {
  if (element.empty()) return InvalidArgument("An element without components has no rows");
  for (const Tensor& tensor : element) {
    if (tensor.rank() == 0) {
      return InvalidArgument("Input element must have a non-scalar value in each component.");
    }
    if (tensor.dim(0) != element[0].dim(0)) {
      return InvalidArgument(
          "Input element must have the same batch size in each component. "
          "Component 0 had size ",
          element[0].dim(0), " but another had size ", tensor.dim(0), ".");
    }
  }
  return element[0].dim(0);
}

ElementSpec RowSpec(const ElementSpec& spec) {
  ElementSpec rows{spec.types, {}};
  for (const PartialShape& shape : spec.shapes) {
    PartialShape row;
    if (shape.known_rank() && shape.rank() > 0) {
      row = PartialShape(std::initializer_list<int64_t>{});
      for (int d = 1; d < shape.rank(); ++d) row.AddDim(shape.dim(d));
    }
    rows.shapes.push_back(std::move(row));
  }
  return rows;
}

class Unbatch final : public TransformDataset {
 public:
  explicit Unbatch(const DatasetRef& input) : TransformDataset(RowSpec(input->spec()), input) {}
  int64_t Cardinality() const override {
    const int64_t n = input()->Cardinality();
    if (n == kInfinite || n == 0) return n;
    const auto& shapes = input()->spec().shapes;
    for (const PartialShape& shape : shapes) {
      int64_t all;
      if (n > 0 && shape.known_rank() && shape.rank() > 0 && shape.dim(0) >= 0 &&
          !__builtin_mul_overflow(n, shape.dim(0), &all)) {
        return all;
      }
    }
    return kUnknown;
  }
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return Started<Iterator>(this, context);
  }

 private:
  class Iterator final : public TransformIterator<Unbatch> {
   public:
    using TransformIterator::TransformIterator;
    StatusOr<bool> Next(Element* element) override {
      while (row_ >= rows_) {
        WEFT_RETURN_IF_ERROR(context()->Check());
        WEFT_ASSIGN_OR_RETURN(const bool found, input()->Next(&batch_));
        if (!found) return false;
        row_ = rows_ = 0;
        WEFT_ASSIGN_OR_RETURN(rows_, RowsOf(batch_));
      }
      element->clear();
      for (const Tensor& tensor : batch_) {
        WEFT_ASSIGN_OR_RETURN(element->emplace_back(), RowOf(tensor, row_));
      }
      ++row_;
      return true;
    }

   private:
    Element batch_;
    int64_t row_ = 0;
    int64_t rows_ = 0;
  };
};

// Cuts batches anew, into sizes that come round in turn.
class Rebatch final : public TransformDataset {
 public:
  Rebatch(ElementSpec spec, DatasetRef input, std::vector<int64_t> sizes, bool drops_remainder)
      : TransformDataset(std::move(spec), std::move(input)),
        sizes_(std::move(sizes)),
        drops_remainder_(drops_remainder) {}
  int64_t Cardinality() const override { return kUnknown; }
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return Started<Iterator>(this, context);
  }

 private:
  class Iterator final : public TransformIterator<Rebatch> {
   public:
    using TransformIterator::TransformIterator;
    StatusOr<bool> Next(Element* element) override {
      const std::vector<int64_t>& sizes = dataset().sizes_;
      const int64_t wanted = sizes[turn_++ % sizes.size()];
      std::vector<Element> rows;
      while (static_cast<int64_t>(rows.size()) < wanted) {
        if (row_ >= rows_) {
          WEFT_RETURN_IF_ERROR(context()->Check());
          if (input() == nullptr) break;
          WEFT_ASSIGN_OR_RETURN(const bool found, input()->Next(&batch_));
          row_ = rows_ = 0;
          if (!found) {
            input().reset();
            break;
          }
          WEFT_ASSIGN_OR_RETURN(rows_, RowsOf(batch_));
          continue;
        }
        Element& row = rows.emplace_back();
        for (const Tensor& tensor : batch_) {
          WEFT_ASSIGN_OR_RETURN(row.emplace_back(), RowOf(tensor, row_));
        }
        ++row_;
      }
      if (static_cast<int64_t>(rows.size()) < wanted && dataset().drops_remainder_) return false;
      if (rows.empty()) {
        // An empty batch where one was asked for and there is more to come.
        if (wanted > 0 || (input() == nullptr && row_ >= rows_) || batch_.empty()) return false;
        element->clear();
        for (const Tensor& tensor : batch_) element->push_back(tensor.SliceRows(0, 0));
        return true;
      }
      WEFT_ASSIGN_OR_RETURN(*element, StackElements(rows));
      return true;
    }

   private:
    Element batch_;
    int64_t row_ = 0;
    int64_t rows_ = 0;
    size_t turn_ = 0;
  };

  const std::vector<int64_t> sizes_;
  const bool drops_remainder_;
};

// Each batch in `replicas` parts, as even as can be; the first ones are the larger.
class Split final : public TransformDataset {
 public:
  Split(ElementSpec spec, DatasetRef input, int64_t replicas)
      : TransformDataset(std::move(spec), std::move(input)), replicas_(replicas) {}
  int64_t Cardinality() const override { return kUnknown; }
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return Started<Iterator>(this, context);
  }

 private:
  class Iterator final : public TransformIterator<Split> {
   public:
    using TransformIterator::TransformIterator;
    StatusOr<bool> Next(Element* element) override {
      const int64_t parts = dataset().replicas_;
      if (part_ >= parts) {
        WEFT_ASSIGN_OR_RETURN(const bool found, input()->Next(&batch_));
        if (!found) return false;
        WEFT_ASSIGN_OR_RETURN(rows_, RowsOf(batch_));
        part_ = 0;
      }
      const int64_t size = (rows_ + parts - 1) / parts;
      const int64_t begin = std::min(rows_, part_ * size);
      const int64_t end = std::min(rows_, begin + size);
      ++part_;
      element->clear();
      for (const Tensor& tensor : batch_) element->push_back(tensor.SliceRows(begin, end));
      return true;
    }

   private:
    Element batch_;
    int64_t rows_ = 0;
    int64_t part_ = std::numeric_limits<int64_t>::max();
  };

  const int64_t replicas_;
};

StatusOr<DatasetRef> MakeUnbatch(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(const DatasetRef input, DatasetInput(c));
  for (const PartialShape& shape : input->spec().shapes) {
    if (shape.known_rank() && shape.rank() == 0) {
      return InvalidArgument("Cannot unbatch a dataset with scalar components.");
    }
  }
  return DatasetRef(MakeRef<Unbatch>(input));
}

StatusOr<DatasetRef> MakeSplit(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(DatasetRef input, DatasetInput(c));
  WEFT_ASSIGN_OR_RETURN(const int64_t replicas, ScalarInput<int64_t>(c, "num_replicas"));
  if (replicas <= 0) return InvalidArgument("num_replicas must be greater than zero.");
  WEFT_ASSIGN_OR_RETURN(ElementSpec spec, DeclaredSpec(c));
  return DatasetRef(MakeRef<Split>(std::move(spec), std::move(input), replicas));
}

StatusOr<DatasetRef> MakeRebatch(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(DatasetRef input, DatasetInput(c));
  WEFT_ASSIGN_OR_RETURN(std::vector<int64_t> sizes, VectorInput<int64_t>(c, "batch_sizes"));
  WEFT_ASSIGN_OR_RETURN(const bool drops, ScalarInput<bool>(c, "drop_remainder"));
  if (sizes.empty() || std::all_of(sizes.begin(), sizes.end(), [](int64_t n) { return n <= 0; }) ||
      *std::min_element(sizes.begin(), sizes.end()) < 0) {
    return InvalidArgument("batch_sizes must have positive sizes");
  }
  WEFT_ASSIGN_OR_RETURN(ElementSpec spec, DeclaredSpec(c));
  return DatasetRef(MakeRef<Rebatch>(std::move(spec), std::move(input), std::move(sizes), drops));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddDataset(catalogue, {.name = "UnbatchDataset",
                         .doc = "A dataset of the rows of each element.",
                         .inputs = {"input_dataset: variant"},
                         .attrs = {"output_types: list(type) >= 1",
                                   "output_shapes: list(shape) >= 1", "metadata: string = ''"},
                         .make = MakeUnbatch});
  AddDataset(catalogue,
             {.name = "ExperimentalUnbatchDataset",
              .doc = "UnbatchDataset under its first name.",
              .inputs = {"input_dataset: variant"},
              .attrs = {"output_types: list(type) >= 1", "output_shapes: list(shape) >= 1"},
              .make = MakeUnbatch});
  AddDataset(catalogue, {.name = "RebatchDataset",
                         .doc = "A dataset of each batch in `num_replicas` parts.",
                         .inputs = {"input_dataset: variant", "num_replicas: int64"},
                         .attrs = {"output_types: list(type) >= 1",
                                   "output_shapes: list(shape) >= 1", "use_fallback: bool = true"},
                         .make = MakeSplit});
  AddDataset(catalogue, {.name = "ExperimentalRebatchDataset",
                         .doc = "RebatchDataset under its first name.",
                         .inputs = {"input_dataset: variant", "num_replicas: int64"},
                         .attrs = {"output_types: list(type) >= 1",
                                   "output_shapes: list(shape) >= 1", "use_fallback: bool = true"},
                         .make = MakeSplit});
  AddDataset(catalogue,
             {.name = "RebatchDatasetV2",
              .doc = "A dataset of the rows of all batches in batches of `batch_sizes`, in turn.",
              .inputs = {"input_dataset: variant", "batch_sizes: int64", "drop_remainder: bool"},
              .attrs = {"output_types: list(type) >= 1", "output_shapes: list(shape) >= 1"},
              .make = MakeRebatch});
}

}  // namespace weft::data::unbatch
