// SPDX-License-Identifier: Apache-2.0
// Checkpoints while training goes on.
#include <optional>
#include <utility>

#include "absl/synchronization/mutex.h"

#include "base/log.h"
#include "base/threads.h"
#include "weft/train/hooks.h"
#include "weft/train/schedule.h"

namespace weft::train {
namespace {

// A full disk must not end training: the last good checkpoint is still there.
Status UnlessFull(const Status& saved) {
  if (!absl::IsResourceExhausted(saved)) return saved;
  WEFT_LOG(WARNING) << saved.message() << "; training goes on";
  return absl::OkStatus();
}

class SaveHook final : public Hook {
 public:
  SaveHook(Saver* saver, std::string folder, const Every& every, const Clock& clock)
      : saver_(saver), folder_(std::move(folder)), schedule_(every, clock) {}

  Status AfterCreate(session::Session& session, int64_t global_step) override {
    return SaveOnce(session, global_step);
  }
  Status AfterRun(const StepContext& context) override {
    if (!schedule_.IsDue(context.global_step)) return absl::OkStatus();
    return SaveOnce(*context.session, context.global_step);
  }
  // Nobody tries again after this one: what it says is how training ended.
  Status End(session::Session& session, int64_t global_step) override {
    if (global_step == last_saved_) return absl::OkStatus();
    return saver_->Save(session, folder_, global_step).status();
  }

 private:
  Status SaveOnce(session::Session& session, int64_t step) {
    schedule_.Done(step);
    if (step == last_saved_) return absl::OkStatus();
    const Status saved = saver_->Save(session, folder_, step).status();
    if (saved.ok()) last_saved_ = step;
    return UnlessFull(saved);
  }

  Saver* const saver_;
  const std::string folder_;
  Schedule schedule_;  // of tries
  int64_t last_saved_ = -1;
};

// Takes the values between two steps and writes them beside the steps that follow. One write at a
// time: while one lasts, none is due.
class BackgroundSaveHook final : public Hook {
 public:
  BackgroundSaveHook(Saver* saver, std::string folder, const Every& every, const Clock& clock)
      : saver_(saver), folder_(std::move(folder)), schedule_(every, clock) {}
  ~BackgroundSaveHook() override { Join().IgnoreError(); }

  Status AfterCreate(session::Session& session, int64_t global_step) override {
    return Start(session, global_step);
  }
  Status AfterRun(const StepContext& context) override {
    if (IsWriting() || !schedule_.IsDue(context.global_step)) return absl::OkStatus();
    WEFT_RETURN_IF_ERROR(UnlessFull(Join()));
    return Start(*context.session, context.global_step);
  }
  // The last one is written in the foreground: what it says is how training ended.
  Status End(session::Session& session, int64_t global_step) override {
    const Status before = Join();
    if (!before.ok()) WEFT_LOG(WARNING) << before.message();
    if (global_step == last_saved_) return absl::OkStatus();
    return saver_->Save(session, folder_, global_step).status();
  }
  // The session was closed, which ends a write that still ran: the checkpoint before stays.
  void AfterClose() override {
    const Status ended = Join();
    if (!ended.ok()) WEFT_LOG(WARNING) << ended.message();
  }

 private:
  Status Start(session::Session& session, int64_t step) {
    schedule_.Done(step);
    if (step == last_saved_) return absl::OkStatus();
    WEFT_RETURN_IF_ERROR(saver_->Take(session));
    {
      const absl::MutexLock lock(&mutex_);
      written_.reset();
    }
    writer_.emplace("weft-save", [this, &session, step] {
      const Status saved = saver_->SaveTaken(session, folder_, step).status();
      const absl::MutexLock lock(&mutex_);
      if (saved.ok()) last_saved_ = step;
      written_ = saved;
    });
    return absl::OkStatus();
  }
  bool IsWriting() const {
    const absl::MutexLock lock(&mutex_);
    return writer_.has_value() && !written_.has_value();
  }
  // Waits for the write that runs, and says how it ended; once.
  Status Join() {
    if (!writer_.has_value()) return absl::OkStatus();
    writer_.reset();
    const absl::MutexLock lock(&mutex_);
    return *std::exchange(written_, std::nullopt);
  }

  Saver* const saver_;
  const std::string folder_;
  Schedule schedule_;
  mutable absl::Mutex mutex_;
  std::optional<Status> written_ ABSL_GUARDED_BY(mutex_);
  int64_t last_saved_ = -1;       // read only while nothing is written
  std::optional<Thread> writer_;  // the last: it uses all others
};

}  // namespace

std::unique_ptr<Hook> SaveCheckpoints(Saver* saver, std::string folder, Every every,
                                      const Clock* clock) {
  return std::make_unique<SaveHook>(saver, std::move(folder), every, ClockOr(clock));
}
std::unique_ptr<Hook> SaveCheckpointsInBackground(Saver* saver, std::string folder, Every every,
                                                  const Clock* clock) {
  return std::make_unique<BackgroundSaveHook>(saver, std::move(folder), every, ClockOr(clock));
}

}  // namespace weft::train
