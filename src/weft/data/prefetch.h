// SPDX-License-Identifier: Apache-2.0
// An iterator that makes elements before they are asked for.
#pragma once

#include <deque>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/threads.h"
#include "weft/data/transform.h"

namespace weft::data {

// Its thread starts with the first element that is asked for and ends with the iterator.
class AheadIterator final : public DatasetIterator {
 public:
  // `context` is that of `input` and of nobody else.
  AheadIterator(IteratorPtr input, ContextPtr context, int64_t most);
  ~AheadIterator() override;
  StatusOr<bool> Next(Element* element) override;

 private:
  void Loop();

  const ContextPtr context_;
  const int64_t most_;
  const IteratorPtr input_;
  Cancellation::Token token_ = 0;
  bool is_watched_ = false;
  absl::Mutex mutex_;
  std::deque<StatusOr<Element>> ready_ ABSL_GUARDED_BY(mutex_);
  bool is_over_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<Thread> thread_;
};

// An iterator of `dataset` that is up to `most` elements ahead.
StatusOr<IteratorPtr> MakeAhead(const Dataset& dataset, const ContextPtr& context, int64_t most);

}  // namespace weft::data
