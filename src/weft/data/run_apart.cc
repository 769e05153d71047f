// SPDX-License-Identifier: Apache-2.0
#include "weft/data/run_apart.h"

#include <memory>
#include <utility>

#include "absl/synchronization/mutex.h"

#include "base/threads.h"

namespace weft::data {

void RunApart(KernelContext& c, absl::AnyInvocable<Status()> body, OpKernel::Done done) {
  struct Apart {
    absl::Mutex mutex;
    std::unique_ptr<Thread> thread;
  };
  auto apart = std::make_shared<Apart>();
  ThreadPool& pool = c.device().threads();
  absl::MutexLock starting(&apart->mutex);
  apart->thread = std::make_unique<Thread>(
      "dataset", [&pool, apart, body = std::move(body), done = std::move(done)]() mutable {
        Status status = body();
        // The pool joins this thread, which then has nothing left to do.
        pool.Schedule([apart = std::move(apart), status = std::move(status),
                       done = std::move(done)]() mutable {
          std::unique_ptr<Thread> thread;
          {
            absl::MutexLock lock(&apart->mutex);
            thread = std::move(apart->thread);
          }
          thread.reset();
          done(std::move(status));
        });
      });
}

}  // namespace weft::data
