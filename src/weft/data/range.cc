// SPDX-License-Identifier: Apache-2.0
// Numbers at equal distances.
#include <utility>

#include "weft/data/dataset_op.h"

namespace weft::data::range {
namespace {

class Range final : public Dataset {
 public:
  Range(ElementSpec spec, int64_t start, int64_t step, int64_t count)
      : Dataset(std::move(spec)), start_(start), step_(step), count_(count) {}
  int64_t Cardinality() const override { return count_; }
  bool HasRandomAccess() const override { return true; }

  StatusOr<Element> At(const ContextPtr&, int64_t index) const override {
    if (index < 0 || index >= count_) {
      return OutOfRange("Index out of range [0, ", count_, "):", index);
    }
    // No overflow: the value lies between start and stop.
    const auto value =
        static_cast<int64_t>(static_cast<uint64_t>(start_) +
                             static_cast<uint64_t>(step_) * static_cast<uint64_t>(index));
    Element element;
    const bool is_number = VisitDType(spec().types[0], RealNumbers(), [&]<typename T>() {
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat16>) {
        element.push_back(Tensor::Scalar(T(static_cast<float>(value))));
      } else {
        element.push_back(Tensor::Scalar(static_cast<T>(value)));
      }
    });
    if (!is_number) {
      return InvalidArgument("Unsupported data type: ", DTypeName(spec().types[0]));
    }
    return element;
  }

  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return std::make_unique<Iterator>(Ref<const Range>(this), context);
  }

 private:
  class Iterator final : public DatasetIterator {
   public:
    Iterator(Ref<const Range> dataset, ContextPtr context)
        : dataset_(std::move(dataset)), context_(std::move(context)) {}
    StatusOr<bool> Next(Element* element) override {
      WEFT_RETURN_IF_ERROR(context_->Check());
      if (next_ >= dataset_->count_) return false;
      WEFT_ASSIGN_OR_RETURN(*element, dataset_->At(context_, next_++));
      return true;
    }

   private:
    const Ref<const Range> dataset_;
    const ContextPtr context_;
    int64_t next_ = 0;
  };

  const int64_t start_;
  const int64_t step_;
  const int64_t count_;
};

StatusOr<DatasetRef> Make(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(const int64_t start, ScalarInput<int64_t>(c, "start"));
  WEFT_ASSIGN_OR_RETURN(const int64_t stop, ScalarInput<int64_t>(c, "stop"));
  WEFT_ASSIGN_OR_RETURN(const int64_t step, ScalarInput<int64_t>(c, "step"));
  if (step == 0) return InvalidArgument("step must be a non-zero integer.");
  WEFT_ASSIGN_OR_RETURN(ElementSpec spec, DeclaredSpec(c));
  if (spec.types.size() != 1) return InvalidArgument("RangeDataset has one component");
  spec.shapes = {PartialShape(Shape())};
  uint64_t count = 0;
  const uint64_t from = static_cast<uint64_t>(start), to = static_cast<uint64_t>(stop);
  const uint64_t by = step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
  if (step > 0 && stop > start) count = (to - from - 1) / by + 1;
  if (step < 0 && stop < start) count = (from - to - 1) / by + 1;
  const auto most = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  return DatasetRef(
      MakeRef<Range>(std::move(spec), start, step, static_cast<int64_t>(std::min(count, most))));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddDataset(catalogue,
             {.name = "RangeDataset",
              .doc = "A dataset of the numbers from `start` up to, without, `stop`.",
              .inputs = {"start: int64", "stop: int64", "step: int64"},
              .attrs = {"output_types: list(type) >= 1", "output_shapes: list(shape) >= 1",
                        "metadata: string = ''", "replicate_on_split: bool = false"},
              .is_stateful = true,
              .make = Make});
}

}  // namespace weft::data::range
