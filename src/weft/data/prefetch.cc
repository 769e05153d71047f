// SPDX-License-Identifier: Apache-2.0
// Elements made ahead of time, by a thread of the iterator's own.
#include "weft/data/prefetch.h"

#include <utility>

namespace weft::data {

AheadIterator::AheadIterator(IteratorPtr input, ContextPtr context, int64_t most)
    : context_(std::move(context)), most_(most), input_(std::move(input)) {
  is_watched_ = context_->cancellation().Register(&token_, [this](const Status&) {
    absl::MutexLock lock(&mutex_);
    is_cancelled_ = true;
  });
  if (!is_watched_) is_cancelled_ = true;
}

AheadIterator::~AheadIterator() {
  context_->cancellation().Cancel(Cancelled("The iterator is gone"));
  if (is_watched_) context_->cancellation().Deregister(token_);
  {
    absl::MutexLock lock(&mutex_);
    is_cancelled_ = true;
  }
  thread_.reset();  // joins it
}

StatusOr<bool> AheadIterator::Next(Element* element) {
  // Nothing is made before somebody asks.
  if (thread_ == nullptr) thread_ = std::make_unique<Thread>("prefetch", [this]() { Loop(); });
  absl::MutexLock lock(&mutex_);
  const auto is_ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !ready_.empty() || is_over_ || is_cancelled_;
  };
  mutex_.Await(absl::Condition(&is_ready));
  if (!ready_.empty()) {
    StatusOr<Element> next = std::move(ready_.front());
    ready_.pop_front();
    if (!next.ok()) return next.status();
    *element = *std::move(next);
    return true;
  }
  if (is_cancelled_) return Cancelled("Iteration was cancelled");
  return false;
}

void AheadIterator::Loop() {
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      const auto has_room = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return static_cast<int64_t>(ready_.size()) < most_ || is_cancelled_;
      };
      mutex_.Await(absl::Condition(&has_room));
      if (is_cancelled_) return;
    }
    Element element;
    const StatusOr<bool> found = input_->Next(&element);
    absl::MutexLock lock(&mutex_);
    if (found.ok() && !*found) {
      is_over_ = true;
      return;
    }
    ready_.push_back(found.ok() ? StatusOr<Element>(std::move(element))
                                : StatusOr<Element>(found.status()));
  }
}

StatusOr<IteratorPtr> MakeAhead(const Dataset& dataset, const ContextPtr& context, int64_t most) {
  const ContextPtr own = context->Child();
  WEFT_ASSIGN_OR_RETURN(IteratorPtr input, dataset.MakeIterator(own));
  return IteratorPtr(std::make_unique<AheadIterator>(std::move(input), own, most));
}

namespace prefetch {
namespace {

constexpr int64_t kChosen = 8;  // where the program leaves the number to us

class Prefetch final : public TransformDataset {
 public:
  Prefetch(const DatasetRef& input, int64_t most) : TransformDataset(input), most_(most) {}
  bool HasRandomAccess() const override { return input()->HasRandomAccess(); }
  StatusOr<Element> At(const ContextPtr& context, int64_t index) const override {
    return input()->At(context, index);
  }
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    if (most_ == 0) return input()->MakeIterator(context);
    return MakeAhead(*input(), context, most_);
  }

 private:
  const int64_t most_;
};

StatusOr<DatasetRef> Make(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(const DatasetRef input, DatasetInput(c));
  WEFT_ASSIGN_OR_RETURN(const int64_t size, ScalarInput<int64_t>(c, "buffer_size"));
  if (size < -1)
    return InvalidArgument(
        "buffer_size must be >= 0 or set buffer_size to be -1 for "
        "auto-tuning");
  return DatasetRef(MakeRef<Prefetch>(input, size == -1 ? kChosen : size));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddDataset(catalogue,
             {.name = "PrefetchDataset",
              .doc = "A dataset of the same elements, up to `buffer_size` of which are made ahead "
                     "of time; -1 for as many as seem good.",
              .inputs = {"input_dataset: variant", "buffer_size: int64"},
              .attrs = {"output_types: list(type) >= 1", "output_shapes: list(shape) >= 1",
                        "slack_period: int = 0", "legacy_autotune: bool = true",
                        "buffer_size_min: int = 0", "metadata: string = ''"},
              .make = Make});
}

}  // namespace prefetch
}  // namespace weft::data
