// SPDX-License-Identifier: Apache-2.0
// The one thread budget of a process. Nothing outside base/ makes a thread of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"

#include "base/process_stats.h"

namespace weft {

// A fixed set of worker threads with one queue each and stealing. Thread-safe.
// The destructor runs what is queued, then joins.
class ThreadPool {
 public:
  // `spin` is how long an idle worker polls before it sleeps, in microseconds: zero unless the
  // process owns its cores. A caller that goes on computing has workers wake on other processors
  // than its own, unless `others_are_busy` there.
  ThreadPool(std::string name, int num_threads, int spin_us = 0,
             bool (*others_are_busy)() = OthersAreBusy);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  void Schedule(absl::AnyInvocable<void()> work);
  int num_threads() const { return num_threads_; }
  // True on a thread of this pool.
  bool IsWorker() const;

  // Splits [0, total) into blocks of at least `min_block` and runs `body(begin, end)` over them on
  // the caller and idle workers; returns when all are done. Runs inline when one block is enough.
  void ParallelFor(int64_t total, int64_t min_block,
                   absl::FunctionRef<void(int64_t begin, int64_t end)> body);

 private:
  struct State;
  const int num_threads_;
  std::unique_ptr<State> state_;
};

// The pool that kernels share their loops over. One loop follows another within microseconds, so an
// idle thread polls a while for the next, unless there are more threads than cores.
class ComputePool final : public ThreadPool {
 public:
  // `num_threads`: zero or less for as many as there are cores.
  ComputePool(std::string name, int num_threads);
};

// A thread with a name, joined by its destructor: for the few loops that own one (IO, watchdogs).
class Thread {
 public:
  Thread(std::string name, absl::AnyInvocable<void()> body);
  ~Thread();
  Thread(Thread&&) = default;
  Thread& operator=(Thread&&) = default;
  void Join();

 private:
  std::thread thread_;
};

// Cores this process may use: affinity and cgroup quota, at least 1.
int UsableCores();

}  // namespace weft
