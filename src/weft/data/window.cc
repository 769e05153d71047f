// SPDX-License-Identifier: Apache-2.0
// Windows of elements: as datasets of their own, or stacked.
#include <algorithm>
#include <deque>
#include <utility>

#include "weft/data/batch_rows.h"
#include "weft/data/held_dataset.h"

namespace weft::data::window {
namespace {

class Window final : public TransformDataset {
 public:
  struct Plan {
    int64_t size = 1;
    int64_t shift = 1;
    int64_t stride = 1;
    bool drops_remainder = false;
    bool is_stacked = false;  // the elements of a window as one
  };
  Window(ElementSpec spec, DatasetRef input, const Plan& plan)
      : TransformDataset(std::move(spec), std::move(input)), plan_(plan) {}
  int64_t Cardinality() const override {
    const int64_t n = input()->Cardinality();
    if (n < 0) return n;
    if (!plan_.drops_remainder) return n / plan_.shift + (n % plan_.shift == 0 ? 0 : 1);
    const int64_t reach = Reach();
    return n < reach ? 0 : (n - reach) / plan_.shift + 1;
  }
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return Started<Iterator>(this, context);
  }

 private:
  // From the first element of a window to its last.
  int64_t Reach() const {
    int64_t reach;
    if (__builtin_mul_overflow(plan_.size - 1, plan_.stride, &reach)) return int64_t{1} << 62;
    return std::min(reach, int64_t{1} << 62) + 1;
  }

  class Iterator final : public TransformIterator<Window> {
   public:
    using TransformIterator::TransformIterator;
    StatusOr<bool> Next(Element* element) override {
      const Plan& plan = dataset().plan_;
      const int64_t reach = dataset().Reach();
      while (input() != nullptr && static_cast<int64_t>(held_.size()) < reach) {
        Element one;
        WEFT_ASSIGN_OR_RETURN(const bool found, input()->Next(&one));
        if (!found) {
          input().reset();
        } else if (to_skip_ > 0) {
          --to_skip_;
        } else {
          held_.push_back(std::move(one));
        }
      }
      const bool is_short = static_cast<int64_t>(held_.size()) < reach;
      if (held_.empty() || (is_short && plan.drops_remainder)) {
        held_.clear();
        return false;
      }
      std::vector<Element> chosen;
      for (size_t i = 0; i < held_.size() && static_cast<int64_t>(chosen.size()) < plan.size;
           i += static_cast<size_t>(plan.stride)) {
        chosen.push_back(held_[i]);
      }
      const auto passed = std::min<int64_t>(plan.shift, static_cast<int64_t>(held_.size()));
      held_.erase(held_.begin(), held_.begin() + passed);
      to_skip_ += plan.shift - passed;
      if (plan.is_stacked) {
        WEFT_ASSIGN_OR_RETURN(*element, StackElements(chosen));
        return true;
      }
      *element = DatasetsOfComponents(dataset().input()->spec(), chosen);
      return true;
    }

   private:
    std::deque<Element> held_;
    int64_t to_skip_ = 0;
  };

  const Plan plan_;
};

Status CheckSizes(const Window::Plan& plan) {
  if (plan.size <= 0) return InvalidArgument("Window size must be greater than zero.");
  if (plan.shift <= 0) return InvalidArgument("Window shift must be greater than zero.");
  if (plan.stride <= 0) return InvalidArgument("Window stride must be greater than zero.");
  return absl::OkStatus();
}

StatusOr<DatasetRef> Make(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(DatasetRef input, DatasetInput(c));
  Window::Plan plan;
  WEFT_ASSIGN_OR_RETURN(plan.size, ScalarInput<int64_t>(c, "size"));
  WEFT_ASSIGN_OR_RETURN(plan.shift, ScalarInput<int64_t>(c, "shift"));
  WEFT_ASSIGN_OR_RETURN(plan.stride, ScalarInput<int64_t>(c, "stride"));
  WEFT_ASSIGN_OR_RETURN(plan.drops_remainder, ScalarInput<bool>(c, "drop_remainder"));
  WEFT_RETURN_IF_ERROR(CheckSizes(plan));
  const size_t width = input->spec().types.size();
  ElementSpec spec{AttrValue::TypeList(width, DType::kVariant),
                   AttrValue::ShapeList(width, PartialShape(Shape()))};
  return DatasetRef(MakeRef<Window>(std::move(spec), std::move(input), plan));
}

StatusOr<DatasetRef> MakeSliding(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(DatasetRef input, DatasetInput(c));
  Window::Plan plan{.drops_remainder = true, .is_stacked = true};
  WEFT_ASSIGN_OR_RETURN(plan.size, ScalarInput<int64_t>(c, "window_size"));
  WEFT_ASSIGN_OR_RETURN(plan.shift, ScalarInput<int64_t>(c, "window_shift"));
  WEFT_ASSIGN_OR_RETURN(plan.stride, ScalarInput<int64_t>(c, "window_stride"));
  plan.drops_remainder = FindAttrOr<bool>(c.call().attrs(), "drop_remainder", true);
  WEFT_RETURN_IF_ERROR(CheckSizes(plan));
  ElementSpec spec = BatchedSpec(input->spec(), -1);
  return DatasetRef(MakeRef<Window>(std::move(spec), std::move(input), plan));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddDataset(catalogue,
             {.name = "WindowDataset",
              .doc = "A dataset of windows of `size` elements, each a dataset for each component.",
              .inputs = {"input_dataset: variant", "size: int64", "shift: int64", "stride: int64",
                         "drop_remainder: bool"},
              .attrs = {"output_types: list(type) >= 1", "output_shapes: list(shape) >= 1",
                        "metadata: string = ''"},
              .make = Make});
  AddDataset(catalogue, {.name = "SlidingWindowDataset",
                         .doc = "A dataset of windows of `window_size` elements, stacked.",
                         .inputs = {"input_dataset: variant", "window_size: int64",
                                    "window_shift: int64", "window_stride: int64"},
                         .attrs = {"drop_remainder: bool = true", "output_types: list(type) >= 1",
                                   "output_shapes: list(shape) >= 1"},
                         .make = MakeSliding});
  AddDataset(catalogue,
             {.name = "ExperimentalSlidingWindowDataset",
              .doc = "SlidingWindowDataset under its first name.",
              .inputs = {"input_dataset: variant", "window_size: int64", "window_shift: int64",
                         "window_stride: int64"},
              .attrs = {"output_types: list(type) >= 1", "output_shapes: list(shape) >= 1"},
              .make = MakeSliding});
}

}  // namespace weft::data::window
