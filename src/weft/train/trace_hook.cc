// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "base/files.h"
#include "base/log.h"
#include "weft/session/chrome_trace.h"
#include "weft/train/hooks.h"

namespace weft::train {
namespace {

class TraceHook final : public Hook {
 public:
  TraceHook(std::string folder, int64_t steps)
      : folder_(std::move(folder)), steps_(std::max<int64_t>(1, steps)) {}

  Status AfterCreate(session::Session&, int64_t global_step) override {
    last_step_ = global_step;
    next_ = global_step + 1;
    return files_.MakeDirectories(folder_);
  }
  // The step that is about to run brings the global step to at least one more.
  bool WantsTrace() override { return last_step_ + 1 >= next_; }
  Status AfterRun(const StepContext& context) override {
    last_step_ = context.global_step;
    if (context.metadata == nullptr || context.metadata->trace.empty() ||
        context.global_step < next_) {
      return absl::OkStatus();
    }
    next_ = context.global_step + steps_;
    const std::string path = absl::StrCat(folder_, "/trace-", context.global_step, ".json");
    // A full disk must not end training.
    const Status written = WriteFile(files_, path, session::ChromeTrace(context.metadata->trace));
    if (!written.ok()) WEFT_LOG(WARNING) << "No trace was written: " << written.message();
    return absl::OkStatus();
  }

 private:
  const std::string folder_;
  const int64_t steps_;
  RealFileSystem files_;
  int64_t next_ = 0;
  int64_t last_step_ = 0;
};

}  // namespace

std::unique_ptr<Hook> WriteTraces(std::string folder, int64_t steps) {
  return std::make_unique<TraceHook>(std::move(folder), steps);
}

}  // namespace weft::train
