// SPDX-License-Identifier: Apache-2.0
#include "weft/server/task_handover.h"

#include <utility>

#include "absl/time/clock.h"

#include "base/log.h"
#include "weft/wire/listen_check.h"

namespace weft::server {
namespace {

// The listed address is looked at so often: its process ends when somebody ends it.
constexpr absl::Duration kListenEvery = absl::Milliseconds(500);
// Between two looks whether the task has gone to another process, or can be had from it.
constexpr absl::Duration kLookForOther = absl::Milliseconds(200);
// So many looks in a row that find no user of the task mean that it has none.
constexpr int kUnusedLooks = 5;

}  // namespace

TaskHandover::TaskHandover(TaskHandoverOptions options)
    : options_(std::move(options)), source_(options_.source) {}

TaskHandover::~TaskHandover() { Shutdown(absl::ZeroDuration()); }

void TaskHandover::Tell(wire::GetStatusExtension* status) const {
  status->set_moved_to(source_.moved_to());
  for (uint64_t incarnation : source_.took_over()) status->add_took_over(incarnation);
}

void TaskHandover::AwaitTaker(absl::Duration within, const std::function<bool()>& is_used) {
  absl::Time end = absl::Now() + within;
  bool is_told = false;
  for (int unused = 0; moved_to().empty() && absl::Now() < end;) {
    // What has been copied is not to be lost, however long the rest takes.
    const bool is_leaving = source_.is_leaving();
    if (is_leaving) end = absl::Now() + within + kLookForOther;
    // One look may miss a master that is busy.
    unused = is_leaving || is_used() ? 0 : unused + 1;
    if (unused == kUnusedLooks) return;
    if (unused == 0 && !std::exchange(is_told, true)) {
      WEFT_LOG(INFO) << options_.source.stream.task << " waits for a process that takes it over, "
                     << absl::FormatDuration(within) << " at most for its beginning";
    }
    absl::SleepFor(kLookForOther);
  }
  // Steps wait at the masters until they hear where the task is.
  source_.AwaitCall();
}

Status TaskHandover::TakeOver(const std::string& address,
                              std::function<Status(const std::string& leases)> have_all,
                              std::function<bool()> is_known) {
  const handover::HandoverSourceOptions& source = options_.source;
  const bool begins_anew = !options_.from.empty();
  const handover::TakeOverOptions options{
      .stream = source.stream,
      .from = begins_anew ? options_.from : options_.listed,
      .has_begun = begins_anew,
      .address = address,
      .identity = options_.identity,
      .devices = source.devices,
      .stopping = source.stopping,
      .have_all =
          [&](const std::vector<uint64_t>& incarnations, const std::string& leases) {
            source_.SetTookOver(incarnations);
            return have_all(leases);
          },
      .is_known = std::move(is_known)};
  while (true) {
    Status taken = TakeOverOnce(options);
    if (taken.ok() || !begins_anew || source.stopping->IsCancelled()) return taken;
    // While it lives the task is there, and what hinders the handover may pass.
    const bool is_there = handover::IsSourceThere(options);
    WEFT_LOG(WARNING) << source.stream.task
                      << (is_there ? " is not to be had yet: " : " begins anew: ")
                      << taken.message();
    if (!is_there) return absl::OkStatus();
    absl::SleepFor(kLookForOther);
  }
}

Status TaskHandover::TakeOverOnce(const handover::TakeOverOptions& options) {
  WEFT_ASSIGN_OR_RETURN(const handover::TakenOver taken, handover::TakeOver(options));
  WEFT_LOG(INFO) << options.stream.task << " was taken over: " << taken.variables
                 << " variables of " << taken.bytes << " bytes in " << taken.rounds
                 << " rounds; steps waited for " << absl::FormatDuration(taken.pause)
                 << " while the last " << taken.last_bytes << " bytes came";
  options_.metrics
      ->GetGauge("weft_handover_pause_seconds", "How long steps waited for the handover")
      .Set(absl::ToDoubleSeconds(taken.pause));
  options_.metrics->GetGauge("weft_handover_bytes", "Of variables that were taken over")
      .Set(static_cast<double>(taken.bytes));
  return absl::OkStatus();
}

void TaskHandover::ServeAtListed(wire::MethodTable methods) {
  methods_ = std::move(methods);
  ListenSoon();
}

void TaskHandover::ListenSoon() {
  absl::MutexLock lock(&mutex_);
  if (shut_down_) return;
  look_ = options_.timers->Schedule(kListenEvery,
                                    [this] { options_.setup->Schedule([this] { Listen(); }); });
}

void TaskHandover::Listen() {
  if (!wire::CheckListenAddress(options_.listed).ok()) return ListenSoon();
  StatusOr<std::unique_ptr<wire::GrpcServer>> listed =
      wire::GrpcServer::Start(options_.listed, methods_, options_.calls, options_.setup,
                              options_.identity.has_value() ? &*options_.identity : nullptr);
  if (!listed.ok()) return ListenSoon();
  absl::MutexLock lock(&mutex_);
  if (shut_down_) return;
  listed_ = *std::move(listed);
  WEFT_LOG(INFO) << options_.source.stream.task << " answers at " << options_.listed << " too";
}

void TaskHandover::Shutdown(absl::Duration grace) {
  std::unique_ptr<wire::GrpcServer> listed;
  TimerQueue::Id look = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(shut_down_, true)) return;
    listed = std::move(listed_);
    look = std::exchange(look_, 0);
  }
  if (look != 0) options_.timers->Cancel(look);
  source_.Shutdown();
  if (listed != nullptr) listed->Shutdown(grace);
}

}  // namespace weft::server
