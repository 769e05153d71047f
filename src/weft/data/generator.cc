// SPDX-License-Identifier: Apache-2.0
// What a function gives, call after call, until it says that there is no more. TensorFlow makes it
// of iterators on other devices, and of Python generators, which a server cannot call.
#include <utility>

#include "weft/data/transform.h"

namespace weft::data::generator {
namespace {

class Generated final : public Dataset {
 public:
  struct Functions {
    CapturedFunction init;
    CapturedFunction next;
    CapturedFunction finalize;
  };
  Generated(ElementSpec spec, Functions functions)
      : Dataset(std::move(spec)), functions_(std::move(functions)) {}
  int64_t Cardinality() const override { return kUnknown; }
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return std::make_unique<Iterator>(Ref<const Generated>(this), context);
  }

 private:
  class Iterator final : public DatasetIterator {
   public:
    Iterator(Ref<const Generated> dataset, ContextPtr context)
        : dataset_(std::move(dataset)), context_(std::move(context)) {}

    StatusOr<bool> Next(Element* element) override {
      const Functions& functions = dataset_->functions_;
      if (stage_ == Stage::kEnded) return false;
      if (stage_ == Stage::kNew) {
        WEFT_ASSIGN_OR_RETURN(state_, context_->CallAndWait(functions.init, {}));
        stage_ = Stage::kBegun;
      }
      StatusOr<Element> next = context_->CallAndWait(functions.next, state_);
      if (next.ok()) {
        *element = *std::move(next);
        return true;
      }
      if (!absl::IsOutOfRange(next.status())) return next.status();
      stage_ = Stage::kEnded;
      WEFT_RETURN_IF_ERROR(context_->CallAndWait(functions.finalize, std::move(state_)).status());
      return false;
    }

   private:
    enum class Stage { kNew, kBegun, kEnded };
    const Ref<const Generated> dataset_;
    const ContextPtr context_;
    Stage stage_ = Stage::kNew;
    Element state_;
  };

  const Functions functions_;
};

StatusOr<DatasetRef> Make(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(ElementSpec spec, DeclaredSpec(c));
  WEFT_ASSIGN_OR_RETURN(CapturedFunction init,
                        FunctionInput(c, "init_func", "init_func_other_args"));
  WEFT_ASSIGN_OR_RETURN(CapturedFunction next,
                        FunctionInput(c, "next_func", "next_func_other_args"));
  WEFT_ASSIGN_OR_RETURN(CapturedFunction finalize,
                        FunctionInput(c, "finalize_func", "finalize_func_other_args"));
  return DatasetRef(MakeRef<Generated>(
      std::move(spec),
      Generated::Functions{std::move(init), std::move(next), std::move(finalize)}));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddDataset(
      catalogue,
      {.name = "GeneratorDataset",
       .doc = "A dataset of what `next_func` gives for the state of `init_func`, until OutOfRange.",
       .inputs = {"init_func_other_args: Tinit_func_args", "next_func_other_args: Tnext_func_args",
                  "finalize_func_other_args: Tfinalize_func_args"},
       .attrs = {"init_func: func", "next_func: func", "finalize_func: func",
                 "Tinit_func_args: list(type) >= 0", "Tnext_func_args: list(type) >= 0",
                 "Tfinalize_func_args: list(type) >= 0", "output_types: list(type) >= 1",
                 "output_shapes: list(shape) >= 1", "metadata: string = ''"},
       .is_stateful = true,
       .make = Make});
}

}  // namespace weft::data::generator
