// SPDX-License-Identifier: Apache-2.0
// Iterators as resources: steps ask them for elements, which a thread of their own makes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"

#include "base/waits.h"
#include "weft/data/iterator_context.h"
#include "weft/kernel/resource.h"

namespace weft::data {

// An element, or that there is none left.
struct NextElement {
  bool is_end = false;
  Element element;
};
using NextDone = absl::AnyInvocable<void(StatusOr<NextElement>)>;

// One way through a dataset. Element i goes to shard i modulo the number of shards, so that each of
// several consumers has its own. Thread-safe; the destructor cancels what runs and joins the
// thread.
class IteratorRun {
 public:
  struct Options {
    std::string name;  // for who asks what is waited for
    int num_shards = 1;
    int64_t most_ahead = 1;  // elements that may lie ready for a shard
    int64_t skipped = 0;     // elements that a saved iterator had given before
  };
  IteratorRun(ContextPtr context, DatasetRef dataset, IteratorPtr iterator, Options options);
  ~IteratorRun();

  // Calls `done` once, on a thread of the device's pool, or with CANCELLED on the thread that
  // cancels the step. An element that nobody waits for any more goes to who asks next.
  void Next(const KernelContext& c, int shard, NextDone done);
  const DatasetRef& dataset() const { return dataset_; }
  const ContextPtr& context() const { return context_; }
  // Elements given so far.
  int64_t given() const;

 private:
  struct State;
  void Loop();

  const ContextPtr context_;
  const DatasetRef dataset_;
  const Options options_;
  std::shared_ptr<State> state_;
};

// What IteratorV2, OneShotIterator and MultiDeviceIterator name. Thread-safe.
class IteratorResource final : public Resource {
 public:
  // `spec` may be empty, which says nothing of the elements.
  IteratorResource(std::string name, ElementSpec spec, int num_shards = 1)
      : name_(std::move(name)), spec_(std::move(spec)), num_shards_(num_shards) {}
  ~IteratorResource() override { Close(); }

  // From now on it gives the elements of `dataset`, from the first on. InvalidArgument if they are
  // not as this iterator's shall be. Returns the number of this beginning.
  StatusOr<int64_t> Begin(const KernelContext& c, const DatasetRef& dataset,
                          int64_t most_ahead = 1);
  void Next(const KernelContext& c, int shard, int64_t incarnation, NextDone done);
  // Where it stands, as tensors; and back to there, in the dataset that it was given.
  StatusOr<Element> Save() const;
  Status Restore(const KernelContext& c, const Element& saved);

  const ElementSpec& spec() const { return spec_; }
  int num_shards() const { return num_shards_; }
  bool has_begun() const;
  void Close() override;
  std::string DebugString() const override { return "Iterator " + name_; }

 private:
  std::shared_ptr<IteratorRun> run() const;
  StatusOr<int64_t> BeginAt(const KernelContext& c, const DatasetRef& dataset, int64_t most_ahead,
                            int64_t skipped, std::vector<Seeds> seeds);

  const std::string name_;
  const ElementSpec spec_;
  const int num_shards_;
  mutable absl::Mutex mutex_;
  std::shared_ptr<IteratorRun> run_ ABSL_GUARDED_BY(mutex_);
  int64_t incarnation_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace weft::data
