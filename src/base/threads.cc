// SPDX-License-Identifier: Apache-2.0
#include "base/threads.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <deque>
#include <exception>
#include <fstream>
#include <optional>
#include <utility>

#include <pthread.h>
#include <sched.h>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/compute_threads.h"
#include "base/denormals.h"
#include "base/pause.h"

namespace weft {
namespace {
thread_local const void* current_pool = nullptr;

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
  // A worker that waits for work.
  struct Sleeper {
    const pthread_t thread = pthread_self();
    const int processor = sched_getcpu();  // on which the system wakes it in most cases
    absl::CondVar wake;
    bool is_called = false;
    std::optional<cpu_set_t> moved_from;  // its processors before it was moved

    // So that it wakes on another processor than the one it sleeps on, if it may use another.
    void Move() {
      cpu_set_t allowed;
      if (pthread_getaffinity_np(thread, sizeof(allowed), &allowed) != 0) return;
      cpu_set_t others = allowed;
      CPU_CLR(processor, &others);
      if (CPU_COUNT(&others) == 0) return;
      if (pthread_setaffinity_np(thread, sizeof(others), &others) == 0) moved_from = allowed;
    }
  };

  absl::Mutex mutex;
  std::deque<absl::AnyInvocable<void()>> queue ABSL_GUARDED_BY(mutex);
  std::vector<Sleeper*> sleepers ABSL_GUARDED_BY(mutex);
  bool stopping ABSL_GUARDED_BY(mutex) = false;
  std::atomic<int64_t> queued{0};
  bool (*others_are_busy)() = nullptr;
  int spin_us = 0;
  int most_spinners = 0;  // the caller of ParallelFor has a core too
  std::atomic<int> spinners{0};
  std::vector<std::thread> threads;

  void Sleep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    Sleeper self;
    sleepers.push_back(&self);
    while (!self.is_called) self.wake.Wait(&mutex);
    if (self.moved_from.has_value()) {
      pthread_setaffinity_np(self.thread, sizeof(cpu_set_t), &*self.moved_from);
    }
  }

  void Call(std::vector<Sleeper*>::iterator sleeper) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    (*sleeper)->is_called = true;
    (*sleeper)->wake.Signal();
    sleepers.erase(sleeper);
  }

  // Linux often wakes a thread where it ran last even if the caller goes on computing there and
  // another processor is idle: of two processors, one was idle for a third of the time. So a caller
  // that computes calls whoever slept elsewhere, or moves one if nobody did; among equals whoever
  // slept last, whose memory is near. Where other processes want the processors the system chooses,
  // and whoever slept longest is called: with the other, steps of three servers on two processors
  // took 1.1 times as long.
  void CallOne(bool is_crowded) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (sleepers.empty()) return;
    auto chosen = is_crowded ? sleepers.begin() : sleepers.end() - 1;
    if (!is_crowded && ThisThreadComputes()) {
      const int here = sched_getcpu();
      const auto elsewhere =
          std::find_if(sleepers.begin(), sleepers.end(),
                       [here](const Sleeper* one) { return one->processor != here; });
      if (elsewhere != sleepers.end()) {
        chosen = elsewhere;
      } else {
        (*chosen)->Move();
      }
    }
    Call(chosen);
  }

  bool Take(absl::AnyInvocable<void()>* work) {
    absl::MutexLock lock(&mutex);
    while (queue.empty()) {
      if (stopping) return false;
      Sleep();
    }
    *work = std::move(queue.front());
    queue.pop_front();
    queued.fetch_sub(1, std::memory_order_relaxed);
    return true;
  }

  // Polls until `ready` or the budget is spent. With `yields`, whoever else could use the processor
  // has it first.
  template <typename Ready>
  void Spin(bool yields, Ready ready) const {
    if (spin_us <= 0) return;
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(spin_us);
    while (!ready() && std::chrono::steady_clock::now() < end) {
      for (int i = 0; i < 32 && !ready(); ++i) Pause();
      if (yields) sched_yield();
    }
  }

  void SpinForWork() {
    if (most_spinners == 0) return;
    if (spinners.fetch_add(1, std::memory_order_relaxed) < most_spinners) {
      // Nothing comes soon where nobody computes.
      Spin(/*yields=*/true, [this] {
        return queued.load(std::memory_order_relaxed) > 0 || ComputingThreads() == 0;
      });
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

ThreadPool::ThreadPool(std::string name, int num_threads, int spin_us, bool (*others_are_busy)())
    : num_threads_(std::max(1, num_threads)), state_(std::make_unique<State>()) {
  SkipLockCycleChecks();
  state_->spin_us = spin_us;
  state_->others_are_busy = others_are_busy;
  state_->most_spinners = spin_us > 0 ? num_threads_ - 1 : 0;
  for (int i = 0; i < num_threads_; ++i) {
    state_->threads.emplace_back([this, name] {
      NameThisThread(name);
      current_pool = this;
      const ScopedFlushDenormals flush;
      state_->Run();
    });
  }
}

ThreadPool::~ThreadPool() {
  {
    absl::MutexLock lock(&state_->mutex);
    state_->stopping = true;
    while (!state_->sleepers.empty()) state_->Call(state_->sleepers.begin());
  }
  for (std::thread& thread : state_->threads) thread.join();
}

void ThreadPool::Schedule(absl::AnyInvocable<void()> work) {
  const bool is_crowded = state_->others_are_busy();  // may read a file: not under the lock
  absl::MutexLock lock(&state_->mutex);
  state_->queue.push_back(std::move(work));
  state_->queued.fetch_add(1, std::memory_order_relaxed);
  state_->CallOne(is_crowded);
}

bool ThreadPool::IsWorker() const { return current_pool == this; }

namespace {

// One loop that several threads take blocks of.
class SharedLoop {
 public:
  SharedLoop(int64_t total, int64_t block, int64_t num_blocks,
             absl::FunctionRef<void(int64_t, int64_t)> body)
      : total_(total), block_(block), num_blocks_(num_blocks), body_(body) {}

  // Runs the next block; false when there was none left. The claim of a helper ends with its last
  // block, before the caller hears of it: the caller's next loop may want it at once.
  bool RunBlock(std::optional<ClaimedThread>* claim) {
    const int64_t index = next_.fetch_add(1, std::memory_order_relaxed);
    if (index >= num_blocks_) return false;
    try {
      body_(index * block_, std::min(total_, (index + 1) * block_));
    } catch (...) {
      // It ends the call of the loop, on the caller's thread, and not the process.
      absl::MutexLock lock(&mutex_);
      if (exception_ == nullptr) exception_ = std::current_exception();
    }
    if (claim != nullptr && next_.load(std::memory_order_relaxed) >= num_blocks_) claim->reset();
    if (blocks_done_.fetch_add(1, std::memory_order_acq_rel) + 1 == num_blocks_) {
      absl::MutexLock lock(&mutex_);
      done_.SignalAll();
    }
    return true;
  }

  // Blocks that nobody has begun, but for the one that the caller of the loop will take.
  int64_t blocks_left() const { return num_blocks_ - next_.load(std::memory_order_relaxed) - 1; }
  bool IsDone() const { return blocks_done_.load(std::memory_order_acquire) >= num_blocks_; }
  void Wait() {
    absl::MutexLock lock(&mutex_);
    while (!IsDone()) done_.Wait(&mutex_);
  }
  // On the caller's thread, after the last block.
  void RethrowException() {
    std::exception_ptr caught;
    {
      absl::MutexLock lock(&mutex_);
      caught = std::exchange(exception_, nullptr);
    }
    if (caught != nullptr) std::rethrow_exception(std::move(caught));
  }

 private:
  const int64_t total_;
  const int64_t block_;
  const int64_t num_blocks_;
  const absl::FunctionRef<void(int64_t, int64_t)> body_;
  std::atomic<int64_t> next_{0};
  std::atomic<int64_t> blocks_done_{0};
  absl::Mutex mutex_;
  absl::CondVar done_;
  std::exception_ptr exception_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

void ThreadPool::ParallelFor(int64_t total, int64_t min_block,
                             absl::FunctionRef<void(int64_t, int64_t)> body) {
  if (total <= 0) return;
  const int64_t most = std::min<int64_t>(num_threads_ * 4, total / std::max<int64_t>(1, min_block));
  if (most <= 1 || num_threads_ == 1) {
    body(0, total);
    return;
  }
  CountSplitLoop();
  const int64_t block = (total + most - 1) / most;
  const int64_t num_blocks = (total + block - 1) / block;
  // Shared with helpers that may start late, after the caller has returned.
  auto loop = std::make_shared<SharedLoop>(total, block, num_blocks, body);
  const ComputeScope computing;
  int64_t helpers = 0;
  // Threads that others need now may be idle at one of the next blocks.
  const auto call_helpers = [&] {
    const int64_t most_helpers = std::min<int64_t>(num_threads_ - 1, loop->blocks_left());
    if (helpers >= most_helpers) return;
    const int more = ClaimComputeThreads(static_cast<int>(most_helpers - helpers), num_threads_);
    helpers += more;
    for (int i = 0; i < more; ++i) {
      Schedule([loop] {
        std::optional<ClaimedThread> claim(std::in_place);
        while (loop->RunBlock(&claim)) {
        }
      });
    }
  };
  do {
    call_helpers();
  } while (loop->RunBlock(nullptr));
  const auto all_done = [&] { return loop->IsDone(); };
  state_->Spin(/*yields=*/false, all_done);
  if (!all_done()) {
    const ComputePause waiting;
    loop->Wait();
  }
  loop->RethrowException();
}

namespace {
constexpr int kComputeSpin = 40;  // microseconds
}  // namespace

ComputePool::ComputePool(std::string name, int num_threads)
    : ThreadPool(std::move(name), num_threads > 0 ? num_threads : UsableCores(),
                 num_threads <= UsableCores() ? kComputeSpin : 0) {}

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
