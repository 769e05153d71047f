// SPDX-License-Identifier: Apache-2.0
#include "weft/data/iterator_context.h"

#include <atomic>
#include <map>
#include <random>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"

namespace weft::data {

struct IteratorContext::Shared {
  Device* device = nullptr;
  WaitRegistry* waits = nullptr;
  FileSystem* files = nullptr;
  absl::Mutex mutex;
  // The runner keeps its library alive.
  std::map<const FunctionLibrary*, std::unique_ptr<FunctionRunner>> runners ABSL_GUARDED_BY(mutex);
  static inline std::atomic<uint64_t> ways{0};
  const uint64_t way = ways.fetch_add(1) + 1;
  std::vector<Seeds> drawn ABSL_GUARDED_BY(mutex);
  std::vector<Seeds> to_draw ABSL_GUARDED_BY(mutex);
};

IteratorContext::IteratorContext(std::shared_ptr<Shared> shared, Cancellation* parent)
    : shared_(std::move(shared)), cancellation_(std::make_unique<Cancellation>(parent)) {}

ContextPtr IteratorContext::OfKernel(const KernelContext& c) {
  auto shared = std::make_shared<Shared>();
  shared->device = &c.device();
  shared->waits = c.environment().waits;
  shared->files = c.environment().files;
  return ContextPtr(new IteratorContext(std::move(shared), nullptr));
}

ContextPtr IteratorContext::OfStep(const KernelContext& c) {
  auto shared = std::make_shared<Shared>();
  shared->device = &c.device();
  shared->waits = c.environment().waits;
  shared->files = c.environment().files;
  return ContextPtr(new IteratorContext(std::move(shared), &c.cancellation()));
}

ContextPtr IteratorContext::Child() {
  return ContextPtr(new IteratorContext(shared_, cancellation_.get()));
}

Device& IteratorContext::device() const { return *shared_->device; }
WaitRegistry* IteratorContext::waits() const { return shared_->waits; }

StatusOr<FileSystem*> IteratorContext::files() const {
  if (shared_->files == nullptr) return FailedPrecondition("This session has no file system");
  return shared_->files;
}

Status IteratorContext::Check() const {
  if (!cancellation_->IsCancelled()) [[likely]]
    return absl::OkStatus();
  return Cancelled("Iteration was cancelled: ", cancellation_->status().message());
}

FunctionRunner& IteratorContext::RunnerOf(const std::shared_ptr<const FunctionLibrary>& library) {
  absl::MutexLock lock(&shared_->mutex);
  std::unique_ptr<FunctionRunner>& runner = shared_->runners[library.get()];
  if (runner == nullptr) runner = library->NewRunner();
  return *runner;
}

void IteratorContext::Call(const CapturedFunction& function, Element arguments, Done done) {
  if (const Status status = Check(); !status.ok()) return done(status);
  if (function.library == nullptr) {
    return done(FailedPrecondition("Function '", function.function.name,
                                   "' cannot be called where there is no graph"));
  }
  arguments.insert(arguments.end(), function.captured.begin(), function.captured.end());
  RunnerOf(function.library)
      .Run(function.function, std::move(arguments), cancellation_.get(), std::move(done));
}

StatusOr<Element> IteratorContext::CallAndWait(const CapturedFunction& function,
                                               Element arguments) {
  StatusOr<Element> results = Element();
  absl::Notification ended;
  Call(function, std::move(arguments), [&](StatusOr<Element> got) {
    results = std::move(got);
    ended.Notify();
  });
  ended.WaitForNotification();
  return results;
}

Seeds RandomSeeds() {
  std::random_device entropy;
  const auto word = [&entropy] { return uint64_t{entropy()} << 32 | entropy(); };
  const uint64_t first = word();
  return {first, word()};
}

Seeds IteratorContext::Resolve(Seeds asked) {
  if (asked.first != 0 || asked.second != 0) return asked;
  return Keep(RandomSeeds());
}

Seeds IteratorContext::Keep(Seeds current) {
  absl::MutexLock lock(&shared_->mutex);
  const size_t next = shared_->drawn.size();
  if (next < shared_->to_draw.size()) current = shared_->to_draw[next];
  shared_->drawn.push_back(current);
  return current;
}

uint64_t IteratorContext::way() const { return shared_->way; }

std::vector<Seeds> IteratorContext::drawn() const {
  absl::MutexLock lock(&shared_->mutex);
  return shared_->drawn;
}

void IteratorContext::Draw(std::vector<Seeds> seeds) {
  absl::MutexLock lock(&shared_->mutex);
  shared_->drawn.clear();
  shared_->to_draw = std::move(seeds);
}

}  // namespace weft::data
