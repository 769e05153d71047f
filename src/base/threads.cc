// SPDX-License-Identifier: Apache-2.0
#include "base/threads.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <deque>
#include <fstream>
#include <utility>

#include <pthread.h>
#include <sched.h>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace weft {
namespace {
thread_local const void* current_pool = nullptr;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void NameThisThread(const std::string& name) {
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
}

// Debian's Abseil looks for lock cycles at every Lock, which costs more than the locks do. Builds
// with a sanitizer look for them their own way.
void SkipLockCycleChecks() {
  static const bool done = [] {
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
    return true;
  }();
  static_cast<void>(done);
}
}  // namespace

struct ThreadPool::State {
  absl::Mutex mutex;
  absl::CondVar wake;
  std::deque<absl::AnyInvocable<void()>> queue ABSL_GUARDED_BY(mutex);
  int sleeping ABSL_GUARDED_BY(mutex) = 0;
  bool stopping ABSL_GUARDED_BY(mutex) = false;
  std::atomic<int64_t> queued{0};
  int spin_us = 0;
  int most_spinners = 0;  // the caller of ParallelFor has a core too
  std::atomic<int> spinners{0};
  std::vector<std::thread> threads;

  bool Take(absl::AnyInvocable<void()>* work) {
    absl::MutexLock lock(&mutex);
    while (queue.empty()) {
      if (stopping) return false;
      ++sleeping;
      wake.Wait(&mutex);
      --sleeping;
    }
    *work = std::move(queue.front());
    queue.pop_front();
    queued.fetch_sub(1, std::memory_order_relaxed);
    return true;
  }

  // Polls until `ready` or the budget is spent.
  template <typename Ready>
  void Spin(Ready ready) const {
    if (spin_us <= 0) return;
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(spin_us);
    while (!ready() && std::chrono::steady_clock::now() < end) {
      for (int i = 0; i < 32; ++i) Pause();
    }
  }

  void SpinForWork() {
    if (most_spinners == 0) return;
    if (spinners.fetch_add(1, std::memory_order_relaxed) < most_spinners) {
      Spin([this] { return queued.load(std::memory_order_relaxed) > 0; });
    }
    spinners.fetch_sub(1, std::memory_order_relaxed);
  }

  void Run() {
    absl::AnyInvocable<void()> work;
    while (true) {
      SpinForWork();
      if (!Take(&work)) return;
      work();
      work = nullptr;
    }
  }
};

ThreadPool::ThreadPool(std::string name, int num_threads, int spin_us)
    : num_threads_(std::max(1, num_threads)), state_(std::make_unique<State>()) {
  SkipLockCycleChecks();
  state_->spin_us = spin_us;
  state_->most_spinners = spin_us > 0 ? num_threads_ - 1 : 0;
  for (int i = 0; i < num_threads_; ++i) {
    state_->threads.emplace_back([this, name] {
      NameThisThread(name);
      current_pool = this;
      state_->Run();
    });
  }
}

ThreadPool::~ThreadPool() {
  {
    absl::MutexLock lock(&state_->mutex);
    state_->stopping = true;
    state_->wake.SignalAll();
  }
  for (std::thread& thread : state_->threads) thread.join();
}

void ThreadPool::Schedule(absl::AnyInvocable<void()> work) {
  absl::MutexLock lock(&state_->mutex);
  state_->queue.push_back(std::move(work));
  state_->queued.fetch_add(1, std::memory_order_relaxed);
  if (state_->sleeping > 0) state_->wake.Signal();
}

bool ThreadPool::IsWorker() const { return current_pool == this; }

void ThreadPool::ParallelFor(int64_t total, int64_t min_block,
                             absl::FunctionRef<void(int64_t, int64_t)> body) {
  if (total <= 0) return;
  const int64_t most = std::min<int64_t>(num_threads_ * 4, total / std::max<int64_t>(1, min_block));
  if (most <= 1 || num_threads_ == 1) {
    body(0, total);
    return;
  }
  // Shared by helpers that may start late, after the caller has returned.
  struct Loop {
    std::atomic<int64_t> next{0};
    std::atomic<int64_t> blocks_done{0};
    absl::Mutex mutex;
    absl::CondVar done;
  };
  const int64_t block = (total + most - 1) / most;
  const int64_t num_blocks = (total + block - 1) / block;
  auto loop = std::make_shared<Loop>();  // shared with helpers that outlive this call
  auto* body_pointer = &body;
  auto work = [loop, block, num_blocks, total, body_pointer] {
    while (true) {
      const int64_t index = loop->next.fetch_add(1, std::memory_order_relaxed);
      if (index >= num_blocks) return;
      (*body_pointer)(index * block, std::min(total, (index + 1) * block));
      if (loop->blocks_done.fetch_add(1, std::memory_order_acq_rel) + 1 == num_blocks) {
        absl::MutexLock lock(&loop->mutex);
        loop->done.SignalAll();
      }
    }
  };
  const int helpers = static_cast<int>(std::min<int64_t>(num_threads_ - 1, num_blocks - 1));
  for (int i = 0; i < helpers; ++i) Schedule(work);
  work();
  const auto all_done = [&] {
    return loop->blocks_done.load(std::memory_order_acquire) >= num_blocks;
  };
  state_->Spin(all_done);
  if (all_done()) return;
  absl::MutexLock lock(&loop->mutex);
  while (!all_done()) loop->done.Wait(&loop->mutex);
}

Thread::Thread(std::string name, absl::AnyInvocable<void()> body)
    : thread_([name = std::move(name), body = std::move(body)]() mutable {
        NameThisThread(name);
        body();
      }) {}

Thread::~Thread() { Join(); }

void Thread::Join() {
  if (thread_.joinable()) thread_.join();
}

int UsableCores() {
  cpu_set_t set;
  int cores = static_cast<int>(std::thread::hardware_concurrency());
  if (sched_getaffinity(0, sizeof(set), &set) == 0) cores = CPU_COUNT(&set);
  std::ifstream cgroup("/sys/fs/cgroup/cpu.max");
  double quota = 0, period = 0;
  if (cgroup >> quota >> period && period > 0) {
    cores = std::min(cores, static_cast<int>(std::ceil(quota / period)));
  }
  return std::max(1, cores);
}

}  // namespace weft
