// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/tfjob_controller.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

#include "platform/jobs/tfjob_kind.h"
#include "platform/object/fields.h"

namespace weft::platform {
namespace {

constexpr size_t kOwnedPods = 0;  // of TfJobKind::Owns

}  // namespace

Controller::Options FrameOptions(const TfJobController::Options& options) {
  Controller::Options frame;
  frame.store = options.store;
  frame.clock = options.clock;
  frame.namespace_name = options.namespace_name;
  frame.metrics = options.metrics;
  frame.pool = options.pool;
  frame.relist = options.relist;
  frame.packs_copies = options.packs_copies;
  frame.gather = options.gather;
  return frame;
}

TfJobController::TfJobController(Options options)
    : options_(std::move(options)),
      logs_(options_.read_log == nullptr
                ? nullptr
                : std::make_unique<LogProgress>(options_.read_log, options_.clock)),
      controller_(FrameOptions(options_), std::make_unique<TfJobKind>(options_, logs_.get())) {}

TfJobController::~TfJobController() {
  is_ending_.Notify();
  log_thread_.reset();
}

void TfJobController::Start(int threads) {
  controller_.Start(threads);
  if (options_.read_log == nullptr) return;
  log_thread_ = std::make_unique<Thread>("logs", [this] {
    while (!is_ending_.WaitForNotificationWithTimeout(options_.log_period)) ReadLogs();
  });
}

// One after the other, so that many jobs do not become many calls at once.
void TfJobController::ReadLogs() {
  std::set<std::string> running;
  for (const ObjectPtr& pod : controller_.ListOwned(kOwnedPods)) {
    const Json* const owner = ControllerOf(*pod);
    if (owner == nullptr || !LogProgress::IsWanted(*pod)) continue;
    if (is_ending_.HasBeenNotified()) return;
    running.insert(UidOf(*pod));
    if (logs_->Look(*pod)) {
      controller_.LookAgain(absl::StrCat(NamespaceOf(*pod), "/", StringField(*owner, {"name"})));
    }
  }
  logs_->Keep(running);
}

}  // namespace weft::platform
