// SPDX-License-Identifier: Apache-2.0
// Seeds of one epoch after another: always the same ones, or those that a generator draws.
#pragma once

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "weft/data/dataset_op.h"
#include "weft/data/philox.h"

namespace weft::data {

// Thread-safe.
class SeedGenerator final : public Resource {
 public:
  // As after it has given `given` epochs their seeds.
  SeedGenerator(const Seeds& seeds, bool reshuffles, uint64_t given = 0)
      : seeds_(seeds), reshuffles_(reshuffles), words_(seeds) {
    while (reshuffles_ && given_ < given) Next();
  }
  std::string DebugString() const override { return "Seed generator"; }
  bool reshuffles() const { return reshuffles_; }
  const Seeds& seeds() const { return seeds_; }
  uint64_t given() {
    absl::MutexLock lock(&mutex_);
    return given_;
  }
  // Of the next epoch.
  Seeds Next() {
    if (!reshuffles_) return seeds_;
    absl::MutexLock lock(&mutex_);
    ++given_;
    const uint64_t first = words_.Next();
    return {first, words_.Next()};
  }

 private:
  const Seeds seeds_;
  const bool reshuffles_;
  absl::Mutex mutex_;
  RandomWords words_ ABSL_GUARDED_BY(mutex_);
  uint64_t given_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Where a dataset gets its seeds from: the resource of `seed_generator` if the op has such an input
// that leads to one, else a generator of its own. Where both numbers are 0 its iterators draw some.
class SeedSource {
 public:
  static StatusOr<SeedSource> OfKernel(const KernelContext& c, bool reshuffles);
  // A generator for the iterators of `context`; the same for all of this dataset, so that every
  // epoch is another. Where it stands as the context's way begins is kept for those who save it.
  Ref<SeedGenerator> For(const ContextPtr& context) const;

 private:
  struct State {
    absl::Mutex mutex;
    Ref<SeedGenerator> generator ABSL_GUARDED_BY(mutex);
    uint64_t way ABSL_GUARDED_BY(mutex) = 0;  // that asked last
  };
  Seeds seeds_;
  bool reshuffles_ = false;
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace weft::data
