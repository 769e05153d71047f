// SPDX-License-Identifier: Apache-2.0
#include "weft/executor/kernel_call.h"

#include <atomic>
#include <utility>

#include "base/ref.h"

namespace weft::executor {
namespace {

// The end of one asynchronous call: the first to tell it is heard.
class CallEnd final : public RefCounted {
 public:
  explicit CallEnd(absl::AnyInvocable<void(Status)> done) : done_(std::move(done)) {}
  ~CallEnd() override {
    if (!ended_.load(std::memory_order_acquire)) {
      done_(Internal("The kernel dropped its callback without calling it"));
    }
  }
  void Tell(Status status) {
    if (!ended_.exchange(true, std::memory_order_acq_rel)) done_(std::move(status));
  }

 private:
  absl::AnyInvocable<void(Status)> done_;
  std::atomic<bool> ended_{false};
};

}  // namespace

void CallAsyncKernel(OpKernel& kernel, KernelContext& context,
                     absl::AnyInvocable<void(Status)> done) {
  const auto end = MakeRef<CallEnd>(std::move(done));
  try {
    kernel.ComputeAsync(context, [end](Status status) { end->Tell(std::move(status)); });
  } catch (...) {
    end->Tell(StatusOfException());
  }
}

}  // namespace weft::executor
