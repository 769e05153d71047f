// SPDX-License-Identifier: Apache-2.0
// Elements in batches; those of a function of each element as well.
#include <utility>

#include "weft/data/batch_rows.h"
#include "weft/data/map_dataset.h"

namespace weft::data::batch {
namespace {

class Batch final : public TransformDataset {
 public:
  Batch(DatasetRef input, int64_t size, bool drops_remainder)
      : TransformDataset(BatchedSpec(input->spec(), drops_remainder ? size : -1), input),
        size_(size),
        drops_remainder_(drops_remainder) {}
  int64_t Cardinality() const override {
    return BatchCardinality(input()->Cardinality(), size_, drops_remainder_);
  }
  bool HasRandomAccess() const override { return input()->HasRandomAccess(); }
  Status CheckRandomOrder() const override {
    if (drops_remainder_) return Dataset::CheckRandomOrder();
    return FailedPrecondition(origin() == nullptr ? "BatchDataset" : origin()->op.c_str(),
                              " does not support global shuffling with `drop_remainder=False`.");
  }
  StatusOr<Element> At(const ContextPtr& context, int64_t index) const override {
    const int64_t count = Cardinality();
    if (index < 0 || (count >= 0 && index >= count)) {
      return OutOfRange("Index out of range [0, ", count, "):", index);
    }
    const int64_t end = input()->Cardinality();
    std::vector<Element> elements;
    for (int64_t i = 0; i < size_ && (end < 0 || index * size_ + i < end); ++i) {
      WEFT_ASSIGN_OR_RETURN(elements.emplace_back(), input()->At(context, index * size_ + i));
    }
    return StackElements(elements);
  }
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return Started<Iterator>(this, context);
  }

 private:
  class Iterator final : public TransformIterator<Batch> {
   public:
    using TransformIterator::TransformIterator;
    StatusOr<bool> Next(Element* element) override {
      std::vector<Element> elements;
      while (input() != nullptr && static_cast<int64_t>(elements.size()) < dataset().size_) {
        Element one;
        WEFT_ASSIGN_OR_RETURN(const bool found, input()->Next(&one));
        if (found) {
          elements.push_back(std::move(one));
        } else {
          input().reset();
        }
      }
      const bool is_short = static_cast<int64_t>(elements.size()) < dataset().size_;
      if (elements.empty() || (is_short && dataset().drops_remainder_)) return false;
      WEFT_ASSIGN_OR_RETURN(*element, StackElements(elements));
      return true;
    }
  };

  const int64_t size_;
  const bool drops_remainder_;
};

StatusOr<DatasetRef> MakeOf(KernelContext& c, DatasetRef input, bool drops_remainder) {
  WEFT_ASSIGN_OR_RETURN(const int64_t size, ScalarInput<int64_t>(c, "batch_size"));
  if (size <= 0) return InvalidArgument("Batch size must be greater than zero.");
  return DatasetRef(MakeRef<Batch>(std::move(input), size, drops_remainder));
}

StatusOr<DatasetRef> Make(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(DatasetRef input, DatasetInput(c));
  return MakeOf(c, std::move(input), false);
}

StatusOr<DatasetRef> MakeV2(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(DatasetRef input, DatasetInput(c));
  WEFT_ASSIGN_OR_RETURN(const bool drops, ScalarInput<bool>(c, "drop_remainder"));
  return MakeOf(c, std::move(input), drops);
}

StatusOr<DatasetRef> MakeMapAndBatch(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(DatasetRef input, DatasetInput(c));
  WEFT_ASSIGN_OR_RETURN(CapturedFunction function, FunctionInput(c, "f", "other_arguments"));
  WEFT_ASSIGN_OR_RETURN(const int64_t asked, ScalarInput<int64_t>(c, "num_parallel_calls"));
  WEFT_ASSIGN_OR_RETURN(const int64_t calls, ParallelCalls(asked));
  WEFT_ASSIGN_OR_RETURN(const bool drops, ScalarInput<bool>(c, "drop_remainder"));
  // The shapes that are declared are those of batches.
  WEFT_ASSIGN_OR_RETURN(ElementSpec spec, DeclaredSpec(c));
  for (PartialShape& shape : spec.shapes) {
    if (!shape.known_rank() || shape.rank() == 0) {
      shape = PartialShape();
    } else {
      WEFT_ASSIGN_OR_RETURN(shape, PartialShape::Make(shape.dims().subspan(1)));
    }
  }
  DatasetRef mapped =
      MakeRef<MapDataset>(std::move(spec), std::move(input), std::move(function), calls,
                          FindAttrOr<bool>(c.call().attrs(), "preserve_cardinality", false));
  return MakeOf(c, std::move(mapped), drops);
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddDataset(catalogue,
             {.name = "BatchDataset",
              .doc = "A dataset of batches of `batch_size` elements; the last may be smaller.",
              .inputs = {"input_dataset: variant", "batch_size: int64"},
              .attrs = {"output_types: list(type) >= 1", "output_shapes: list(shape) >= 1",
                        "metadata: string = ''"},
              .make = Make});
  AddDataset(catalogue,
             {.name = "BatchDatasetV2",
              .doc = "A dataset of batches of `batch_size` elements; a smaller last one is left "
                     "out on demand.",
              .inputs = {"input_dataset: variant", "batch_size: int64", "drop_remainder: bool"},
              .attrs = {"parallel_copy: bool = false", "output_types: list(type) >= 1",
                        "output_shapes: list(shape) >= 1", "metadata: string = ''"},
              .make = MakeV2});
  AddDataset(catalogue,
             {.name = "ParallelBatchDataset",
              .doc = "A dataset of batches of `batch_size` elements, as BatchDatasetV2 gives.",
              .inputs = {"input_dataset: variant", "batch_size: int64", "num_parallel_calls: int64",
                         "drop_remainder: bool"},
              .attrs = {"parallel_copy: bool = false", "output_types: list(type) >= 1",
                        "output_shapes: list(shape) >= 1", "deterministic: string = 'default'",
                        "metadata: string = ''"},
              .make = MakeV2});
  AddDataset(catalogue,
             {.name = "MapAndBatchDataset",
              .doc = "A dataset of batches of `f` of each element, up to `num_parallel_calls` of "
                     "them computed at once.",
              .inputs = {"input_dataset: variant", "other_arguments: Targuments",
                         "batch_size: int64", "num_parallel_calls: int64", "drop_remainder: bool"},
              .attrs = {"f: func", "Targuments: list(type) >= 0", "output_types: list(type) >= 1",
                        "output_shapes: list(shape) >= 1", "preserve_cardinality: bool = false",
                        "metadata: string = ''"},
              .make = MakeMapAndBatch});
  AddDataset(catalogue,
             {.name = "ExperimentalMapAndBatchDataset",
              .doc = "MapAndBatchDataset under its first name.",
              .inputs = {"input_dataset: variant", "other_arguments: Targuments",
                         "batch_size: int64", "num_parallel_calls: int64", "drop_remainder: bool"},
              .attrs = {"f: func", "Targuments: list(type) >= 0", "output_types: list(type) >= 1",
                        "output_shapes: list(shape) >= 1", "preserve_cardinality: bool = false"},
              .make = MakeMapAndBatch});
}

}  // namespace weft::data::batch
