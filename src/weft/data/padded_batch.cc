// SPDX-License-Identifier: Apache-2.0
// Batches of elements that are padded to one shape.
#include <algorithm>
#include <cstring>
#include <utility>

#include "weft/data/batch_rows.h"
#include "weft/data/transform.h"

namespace weft::data::padded_batch {
namespace {

// Copies `from` into the corner of the block of shape `block` that starts at element `at` of `to`.
void CopyCorner(const Tensor& from, const Shape& block, Tensor* to, int64_t at) {
  if (from.num_elements() == 0) return;
  if (from.rank() == 0) return CopyInto(from, to, at);
  const int last = from.rank() - 1;
  const int64_t run = from.dim(last);
  const int64_t runs = from.num_elements() / run;
  Dims index(static_cast<size_t>(last), 0);
  const Tensor flat = from.BitcastTo(from.dtype(), Shape{from.num_elements()});
  for (int64_t r = 0; r < runs; ++r) {
    int64_t offset = 0;
    for (int d = 0; d < last; ++d) offset = offset * block.dim(d) + index[d];
    CopyInto(flat.SliceRows(r * run, (r + 1) * run), to, at + offset * block.dim(last));
    for (int d = last - 1; d >= 0 && ++index[d] == from.dim(d); --d) index[d] = 0;
  }
}

Status FillWith(const Tensor& value, Tensor* to) {
  const int64_t n = to->num_elements();
  const auto fill = [&]<typename T>() { std::fill_n(to->data<T>(), n, value.scalar<T>()); };
  if (VisitDType(to->dtype(), TypeList<std::string, Variant>(), fill)) return absl::OkStatus();
  if (!IsPlain(to->dtype())) {
    return Unimplemented("Padding of ", DTypeName(to->dtype()));
  }
  const size_t size = DTypeSize(to->dtype());
  for (int64_t i = 0; i < n; ++i) {
    std::memcpy(to->bytes() + static_cast<size_t>(i) * size, value.bytes(), size);
  }
  return absl::OkStatus();
}

class PaddedBatch final : public TransformDataset {
 public:
  struct Plan {
    int64_t size = 1;
    bool drops_remainder = false;
    std::vector<PartialShape> shapes;  // -1: as large as the largest
    Element padding;
  };
  PaddedBatch(ElementSpec spec, DatasetRef input, Plan plan)
      : TransformDataset(std::move(spec), std::move(input)), plan_(std::move(plan)) {}
  int64_t Cardinality() const override {
    return BatchCardinality(input()->Cardinality(), plan_.size, plan_.drops_remainder);
  }
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return Started<Iterator>(this, context);
  }

 private:
  class Iterator final : public TransformIterator<PaddedBatch> {
   public:
    using TransformIterator::TransformIterator;
    StatusOr<bool> Next(Element* element) override {
      const Plan& plan = dataset().plan_;
      std::vector<Element> elements;
      while (input() != nullptr && static_cast<int64_t>(elements.size()) < plan.size) {
        Element one;
        WEFT_ASSIGN_OR_RETURN(const bool found, input()->Next(&one));
        if (found) {
          elements.push_back(std::move(one));
        } else {
          input().reset();
        }
      }
      const bool is_short = static_cast<int64_t>(elements.size()) < plan.size;
      if (elements.empty() || (is_short && plan.drops_remainder)) return false;
      element->clear();
      for (size_t i = 0; i < plan.shapes.size(); ++i) {
        WEFT_ASSIGN_OR_RETURN(element->emplace_back(), Pad(elements, i));
      }
      return true;
    }

   private:
    StatusOr<Tensor> Pad(const std::vector<Element>& elements, size_t i) const {
      const PartialShape& wanted = dataset().plan_.shapes[i];
      Dims dims(wanted.dims().begin(), wanted.dims().end());
      for (const Element& one : elements) {
        const Shape& shape = one[i].shape();
        if (shape.rank() != static_cast<int>(dims.size())) {
          return InvalidArgument(
              "All elements in a batch must have the same rank as the padded shape for component",
              i, ": expected rank ", dims.size(), " but got element with rank ", shape.rank());
        }
        for (int d = 0; d < shape.rank(); ++d) {
          if (wanted.dim(d) < 0) {
            dims[d] = std::max(dims[d], shape.dim(d));
          } else if (shape.dim(d) > wanted.dim(d)) {
            return DataLoss("Attempted to pad to a smaller size than the input element.");
          }
        }
      }
      for (int64_t& dim : dims) dim = std::max<int64_t>(dim, 0);
      WEFT_ASSIGN_OR_RETURN(const Shape block, Shape::Make(dims));
      dims.insert(dims.begin(), static_cast<int64_t>(elements.size()));
      WEFT_ASSIGN_OR_RETURN(const Shape all, Shape::Make(dims));
      const Tensor& padding = dataset().plan_.padding[i];
      WEFT_ASSIGN_OR_RETURN(Tensor batch, Tensor::Allocate(padding.dtype(), all));
      WEFT_RETURN_IF_ERROR(FillWith(padding, &batch));
      for (size_t e = 0; e < elements.size(); ++e) {
        CopyCorner(elements[e][i], block, &batch, static_cast<int64_t>(e) * block.num_elements());
      }
      return batch;
    }
  };

  const Plan plan_;
};

StatusOr<DatasetRef> MakePadded(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(DatasetRef input, DatasetInput(c));
  PaddedBatch::Plan plan;
  WEFT_ASSIGN_OR_RETURN(plan.size, ScalarInput<int64_t>(c, "batch_size"));
  if (plan.size <= 0) return InvalidArgument("Batch size must be greater than zero.");
  if (InputsNamed(c, "drop_remainder").ok()) {
    WEFT_ASSIGN_OR_RETURN(plan.drops_remainder, ScalarInput<bool>(c, "drop_remainder"));
  }
  WEFT_ASSIGN_OR_RETURN(const Element shapes, ListInput(c, "padded_shapes"));
  WEFT_ASSIGN_OR_RETURN(plan.padding, ListInput(c, "padding_values"));
  const ElementSpec& of = input->spec();
  if (shapes.size() != of.types.size() || plan.padding.size() != of.types.size()) {
    return InvalidArgument(
        "Number of padded shapes (", shapes.size(),
        ") must match the number of components in the input dataset's elements (", of.types.size(),
        ")");
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (shapes[i].rank() != 1) return InvalidArgument("All padded shapes must be vectors");
    WEFT_ASSIGN_OR_RETURN(plan.shapes.emplace_back(),
                          PartialShape::Make(shapes[i].span<int64_t>()));
    if (!plan.padding[i].shape().IsScalar()) {
      return InvalidArgument("All padding values must be scalars");
    }
    if (plan.padding[i].dtype() != of.types[i]) {
      return InvalidArgument("Mismatched type between padding value ", i,
                             " and input dataset's component ", i, ": ",
                             DTypeName(plan.padding[i].dtype()), " vs. ", DTypeName(of.types[i]));
    }
  }
  ElementSpec spec = BatchedSpec({of.types, plan.shapes}, plan.drops_remainder ? plan.size : -1);
  return DatasetRef(MakeRef<PaddedBatch>(std::move(spec), std::move(input), std::move(plan)));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddDataset(catalogue,
             {.name = "PaddedBatchDataset",
              .doc = "A dataset of batches of elements that are padded to `padded_shapes`, where "
                     "-1 is as large as the largest.",
              .inputs = {"input_dataset: variant", "batch_size: int64", "padded_shapes: N * int64",
                         "padding_values: Toutput_types"},
              .attrs = {"Toutput_types: list(type) >= 1", "output_shapes: list(shape) >= 1",
                        "N: int >= 1", "metadata: string = ''"},
              .make = MakePadded});
  AddDataset(catalogue,
             {.name = "PaddedBatchDatasetV2",
              .doc = "A dataset of batches of elements that are padded to `padded_shapes`, where "
                     "-1 is as large as the largest.",
              .inputs = {"input_dataset: variant", "batch_size: int64", "padded_shapes: N * int64",
                         "padding_values: Toutput_types", "drop_remainder: bool"},
              .attrs = {"parallel_copy: bool = false", "Toutput_types: list(type) >= 1",
                        "output_shapes: list(shape) >= 1", "N: int >= 1", "metadata: string = ''"},
              .make = MakePadded});
}

}  // namespace weft::data::padded_batch
