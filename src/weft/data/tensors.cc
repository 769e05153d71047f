// SPDX-License-Identifier: Apache-2.0
// Datasets of tensors that are there: one, their rows, the rows of a sparse one, a list.
#include <utility>

#include "weft/data/dataset_op.h"
#include "weft/kernel/scratch.h"

namespace weft::data::tensors {
namespace {

// Element i comes from a function of i: what all datasets of a known length are made of.
class Indexed : public Dataset {
 public:
  Indexed(ElementSpec spec, int64_t size) : Dataset(std::move(spec)), size_(size) {}
  int64_t Cardinality() const override { return size_; }
  bool HasRandomAccess() const override { return true; }
  StatusOr<Element> At(const ContextPtr&, int64_t index) const override {
    if (index < 0 || index >= size_) {
      return OutOfRange("Index out of range [0, ", size_, "):", index);
    }
    return Make(index);
  }
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return std::make_unique<Iterator>(Ref<const Indexed>(this), context);
  }
  virtual StatusOr<Element> Make(int64_t index) const = 0;

 private:
  class Iterator final : public DatasetIterator {
   public:
    Iterator(Ref<const Indexed> dataset, ContextPtr context)
        : dataset_(std::move(dataset)), context_(std::move(context)) {}
    StatusOr<bool> Next(Element* element) override {
      WEFT_RETURN_IF_ERROR(context_->Check());
      if (next_ >= dataset_->size_) return false;
      WEFT_ASSIGN_OR_RETURN(*element, dataset_->Make(next_++));
      return true;
    }

   private:
    const Ref<const Indexed> dataset_;
    const ContextPtr context_;
    int64_t next_ = 0;
  };
  const int64_t size_;
};

class OneTensor final : public Indexed {
 public:
  OneTensor(ElementSpec spec, Element element)
      : Indexed(std::move(spec), 1), element_(std::move(element)) {}
  StatusOr<Element> Make(int64_t) const override { return element_; }

 private:
  const Element element_;
};

class Slices final : public Indexed {
 public:
  Slices(ElementSpec spec, int64_t size, Element tensors)
      : Indexed(std::move(spec), size), tensors_(std::move(tensors)) {}
  StatusOr<Element> Make(int64_t index) const override {
    Element element;
    for (const Tensor& tensor : tensors_) {
      WEFT_ASSIGN_OR_RETURN(element.emplace_back(), RowOf(tensor, index));
    }
    return element;
  }

 private:
  const Element tensors_;
};

class Listed final : public Indexed {
 public:
  Listed(ElementSpec spec, Element tensors, size_t width)
      : Indexed(std::move(spec), static_cast<int64_t>(tensors.size() / width)),
        tensors_(std::move(tensors)),
        width_(width) {}
  StatusOr<Element> Make(int64_t index) const override {
    const auto at = tensors_.begin() + index * static_cast<int64_t>(width_);
    return Element(at, at + static_cast<int64_t>(width_));
  }

 private:
  const Element tensors_;
  const size_t width_;
};

// Row i of a sparse tensor as indices, values and shape.
class SparseRows final : public Indexed {
 public:
  SparseRows(ElementSpec spec, int64_t size, Element parts, std::vector<int64_t> starts)
      : Indexed(std::move(spec), size), parts_(std::move(parts)), starts_(std::move(starts)) {}
  StatusOr<Element> Make(int64_t index) const override {
    const Tensor &indices = parts_[0], &values = parts_[1], &shape = parts_[2];
    const int64_t begin = starts_[static_cast<size_t>(index)];
    const int64_t count = starts_[static_cast<size_t>(index) + 1] - begin;
    const int64_t rank = shape.num_elements() - 1;
    WEFT_ASSIGN_OR_RETURN(Tensor row_indices, Tensor::Allocate(DType::kInt64, Shape{count, rank}));
    WEFT_ASSIGN_OR_RETURN(Tensor row_shape, Tensor::Allocate(DType::kInt64, Shape{rank}));
    for (int64_t i = 0; i < count; ++i) {
      std::copy_n(indices.data<int64_t>() + (begin + i) * (rank + 1) + 1, rank,
                  row_indices.data<int64_t>() + i * rank);
    }
    std::copy_n(shape.data<int64_t>() + 1, rank, row_shape.data<int64_t>());
    return Element{std::move(row_indices), values.SliceRows(begin, begin + count),
                   std::move(row_shape)};
  }

 private:
  const Element parts_;
  const std::vector<int64_t> starts_;
};

ElementSpec SpecOf(const Element& components) {
  ElementSpec spec;
  for (const Tensor& tensor : components) {
    spec.types.push_back(tensor.dtype());
    spec.shapes.push_back(tensor.shape());
  }
  return spec;
}

StatusOr<DatasetRef> MakeTensor(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(Element components, ListInput(c, "components"));
  WEFT_ASSIGN_OR_RETURN(const auto shapes, c.call().Attr<AttrValue::ShapeList>("output_shapes"));
  ElementSpec spec = SpecOf(components);
  WEFT_RETURN_IF_ERROR(CheckSpec({spec.types, shapes}, spec));
  return DatasetRef(MakeRef<OneTensor>(std::move(spec), std::move(components)));
}

StatusOr<DatasetRef> MakeSlices(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(Element components, ListInput(c, "components"));
  WEFT_ASSIGN_OR_RETURN(const auto shapes, c.call().Attr<AttrValue::ShapeList>("output_shapes"));
  ElementSpec spec;
  for (const Tensor& tensor : components) {
    if (tensor.rank() == 0) {
      return InvalidArgument("All components must be at least 1-dimensional");
    }
    if (tensor.dim(0) != components[0].dim(0)) {
      return InvalidArgument("All components must have the same size in the 0th dimension");
    }
    spec.types.push_back(tensor.dtype());
    WEFT_ASSIGN_OR_RETURN(spec.shapes.emplace_back(),
                          PartialShape::Make(tensor.shape().dims().subspan(1)));
  }
  WEFT_RETURN_IF_ERROR(CheckSpec({spec.types, shapes}, spec));
  const int64_t size = components.empty() ? 0 : components[0].dim(0);
  return DatasetRef(MakeRef<Slices>(std::move(spec), size, std::move(components)));
}

StatusOr<DatasetRef> MakeList(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(Element tensors, ListInput(c, "tensors"));
  WEFT_ASSIGN_OR_RETURN(ElementSpec spec, DeclaredSpec(c));
  const size_t width = spec.types.size();
  if (width == 0 || tensors.size() % width != 0) {
    return InvalidArgument("ListDataset has ", tensors.size(), " tensors for elements of ", width);
  }
  return DatasetRef(MakeRef<Listed>(std::move(spec), std::move(tensors), width));
}

StatusOr<DatasetRef> MakeSparse(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(const Tensor indices, OneInput(c, "indices"));
  WEFT_ASSIGN_OR_RETURN(const Tensor values, OneInput(c, "values"));
  WEFT_ASSIGN_OR_RETURN(const Tensor shape, OneInput(c, "dense_shape"));
  if (!indices.shape().IsMatrix()) {
    return InvalidArgument("Input indices must be a matrix. Got: ", indices.shape().ToString());
  }
  if (!values.shape().IsVector()) {
    return InvalidArgument("Input values must be a vector. Got: ", values.shape().ToString());
  }
  if (!shape.shape().IsVector() || shape.num_elements() == 0) {
    return InvalidArgument("Input shape must be a vector. Got: ", shape.shape().ToString());
  }
  const int64_t count = indices.dim(0), rank = shape.num_elements();
  if (count != values.dim(0)) {
    return InvalidArgument("Number of values must match first dimension of indices. Got ",
                           values.dim(0), " values, indices shape: ", indices.shape().ToString());
  }
  if (indices.dim(1) != rank) {
    return InvalidArgument("Number of dimensions must match second dimension of indices. Got ",
                           rank, " dimensions, indices shape: ", indices.shape().ToString());
  }
  const int64_t size = shape.data<int64_t>()[0];
  if (size < 0 || size > (int64_t{1} << 40)) {
    return InvalidArgument("dense_shape[0] is ", size);
  }
  std::vector<int64_t> starts{0};
  WEFT_RETURN_IF_ERROR(CheckRoomFor(size + 1, sizeof(int64_t), "rows of a sparse tensor"));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = indices.data<int64_t>()[i * rank];
    if (row < 0 || row >= size) {
      return InvalidArgument("indices[", i, ", 0] = ", row, " is not in [0, ", size, ")");
    }
    if (row < static_cast<int64_t>(starts.size()) - 1) {
      return Unimplemented(
          "The SparseTensor must be ordered in the batch dimension; handling "
          "arbitrarily ordered input is not currently supported.");
    }
    while (static_cast<int64_t>(starts.size()) <= row) starts.push_back(i);
  }
  while (static_cast<int64_t>(starts.size()) <= size) starts.push_back(count);
  ElementSpec spec{{DType::kInt64, values.dtype(), DType::kInt64},
                   {PartialShape({-1, rank - 1}), PartialShape({-1}), PartialShape({rank - 1})}};
  return DatasetRef(
      MakeRef<SparseRows>(std::move(spec), size, Element{indices, values, shape}, starts));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddDataset(catalogue, {.name = "TensorDataset",
                         .doc = "A dataset of one element: `components`.",
                         .inputs = {"components: Toutput_types"},
                         .attrs = {"Toutput_types: list(type) >= 1",
                                   "output_shapes: list(shape) >= 1", "metadata: string = ''"},
                         .is_stateful = true,
                         .make = MakeTensor});
  AddDataset(catalogue, {.name = "TensorSliceDataset",
                         .doc = "A dataset of the rows of `components`, which have equally many.",
                         .inputs = {"components: Toutput_types"},
                         .attrs = {"Toutput_types: list(type) >= 1",
                                   "output_shapes: list(shape) >= 1", "is_files: bool = false",
                                   "metadata: string = ''", "replicate_on_split: bool = false"},
                         .is_stateful = true,
                         .make = MakeSlices});
  AddDataset(catalogue, {.name = "SparseTensorSliceDataset",
                         .doc = "A dataset of the rows of a sparse tensor, whose indices are in "
                                "order: each as indices, values and shape.",
                         .inputs = {"indices: int64", "values: Tvalues", "dense_shape: int64"},
                         .attrs = {"Tvalues: type"},
                         .is_stateful = true,
                         .make = MakeSparse});
  AddDataset(catalogue, {.name = "ListDataset",
                         .doc = "A dataset whose elements follow each other in `tensors`.",
                         .inputs = {"tensors: Tinput_types"},
                         .attrs = {"Tinput_types: list(type) >= 1", "output_types: list(type) >= 1",
                                   "output_shapes: list(shape) >= 1", "metadata: string = ''"},
                         .is_stateful = true,
                         .make = MakeList});
}

}  // namespace weft::data::tensors
