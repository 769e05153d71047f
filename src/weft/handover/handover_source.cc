// SPDX-License-Identifier: Apache-2.0
#include "weft/handover/handover_source.h"

#include <algorithm>

#include "absl/synchronization/blocking_counter.h"

#include "base/log.h"
#include "net/socket_address.h"
#include "weft/graph/device_name.h"
#include "weft/wire/step_messages.h"

namespace weft::handover {
namespace {

// Masters go on after it if they hear nothing more: of a process that stands still.
constexpr absl::Duration kHold = absl::Seconds(30);
// Of a master that answers: steps that run end within it.
constexpr absl::Duration kMasterPatience = absl::Seconds(10);
// For the other process to connect.
constexpr absl::Duration kConnectPatience = absl::Seconds(10);

template <typename Response, typename Handle>
void AddMethod(const char* name, wire::MethodTable* methods, Handle handle) {
  methods->emplace(absl::StrCat("/weft.Handover/", name),
                   wire::Method{[handle](std::unique_ptr<wire::ServerCall> call) {
                                  wire::HandoverRequest request;
                                  Response response;
                                  Status status = wire::ParseMessage(call->request(), &request);
                                  if (status.ok()) status = handle(request, &response);
                                  call->Reply(status, status.ok() ? wire::SerializeMessage(response)
                                                                  : wire::Payload());
                                },
                                /*may_block=*/true});
}

StatusOr<cluster::TaskId> TaskNamed(const std::string& text) {
  WEFT_ASSIGN_OR_RETURN(const DeviceName name, DeviceName::Parse(text));
  if (!name.job || !name.task) return InvalidArgument("Not a task: ", text);
  return cluster::TaskId{*name.job, *name.task};
}

}  // namespace

HandoverSource::HandoverSource(HandoverSourceOptions options) : options_(std::move(options)) {
  for (Device* device : options_.devices) {
    // A supervised server has a keeper, and its tables are copied.
    if (KeeperOf(device) == nullptr) OfferKeeper(device, &notes_);
  }
}

void HandoverSource::AddMethods(wire::MethodTable* methods) {
  AddMethod<wire::HandoverBegun>(
      "Begin", methods, [this](const auto& request, auto* begun) { return Begin(request, begun); });
  AddMethod<wire::HandoverLook>(
      "Look", methods, [this](const auto& request, auto* look) { return Look(request, look); });
  AddMethod<wire::HandoverAnswer>("Send", methods,
                                  [this](const auto& request, auto*) { return Send(request); });
  AddMethod<wire::HandoverAnswer>("Hold", methods,
                                  [this](const auto& request, auto*) { return Hold(request); });
  AddMethod<wire::HandoverAnswer>("Commit", methods,
                                  [this](const auto& request, auto*) { return Commit(request); });
  AddMethod<wire::HandoverAnswer>("Abort", methods, [this](const auto& request, auto*) -> Status {
    Abort(request.incarnation(), "it gave up");
    return absl::OkStatus();
  });
  AddMethod<wire::HandoverState>(
      "State", methods, [this](const auto& request, auto* state) -> Status {
        absl::MutexLock calls(&calls_);
        absl::MutexLock lock(&mutex_);
        state->set_is_over(state_ == State::kLeft && taker_ == request.incarnation());
        return absl::OkStatus();
      });
}

void HandoverSource::Shutdown() {
  TimerQueue::Id connects = 0;
  {
    absl::MutexLock lock(&mutex_);
    connects = std::exchange(connects_, 0);
  }
  if (connects != 0) options_.timers->Cancel(connects);
  absl::MutexLock calls(&calls_);
  sender_.reset();
}

std::string HandoverSource::moved_to() const {
  absl::MutexLock lock(&mutex_);
  return moved_to_;
}

bool HandoverSource::is_leaving() const {
  absl::MutexLock lock(&mutex_);
  return state_ == State::kCopying || state_ == State::kHeld;
}

void HandoverSource::AwaitCall() { absl::MutexLock calls(&calls_); }

void HandoverSource::SetTookOver(std::vector<uint64_t> incarnations) {
  absl::MutexLock lock(&mutex_);
  took_over_ = std::move(incarnations);
}

std::vector<uint64_t> HandoverSource::took_over() const {
  absl::MutexLock lock(&mutex_);
  return took_over_;
}

void HandoverSource::SetState(State state) {
  absl::MutexLock lock(&mutex_);
  state_ = state;
}

Status HandoverSource::Check(const wire::HandoverRequest& request, std::set<State> states) const {
  absl::MutexLock lock(&mutex_);
  if (state_ == State::kLeft) {
    return FailedPrecondition(options_.stream.task, " is not here any more: it is at ", moved_to_);
  }
  if (states.contains(state_) && request.incarnation() == taker_) return absl::OkStatus();
  return FailedPrecondition("The handover of ", options_.stream.task,
                            state_ == State::kHere ? " has been taken back"
                                                   : " is at another point, or to another process");
}

Status HandoverSource::Begin(const wire::HandoverRequest& request, wire::HandoverBegun* begun) {
  absl::MutexLock calls(&calls_);
  {
    absl::MutexLock lock(&mutex_);
    if (state_ == State::kLeft) {
      begun->set_moved_to(moved_to_);
      return absl::OkStatus();
    }
    if (state_ != State::kHere) {
      return Unavailable(options_.stream.task, " is being handed over to another process already");
    }
    begun->mutable_took_over()->Add(took_over_.begin(), took_over_.end());
    begun->add_took_over(options_.stream.incarnation);
  }
  WEFT_RETURN_IF_ERROR(options_.may_leave());
  const uint64_t taker = request.incarnation();
  // On the connection's own thread: what follows may wait.
  const auto lost = [this, taker] {
    options_.setup->Schedule([this, taker] { Abort(taker, "its connection is gone"); });
  };
  WEFT_ASSIGN_OR_RETURN(
      sender_, StreamSender::Start(options_.stream, SocketAddress{options_.bind, 0}.ToString(),
                                   taker, lost));
  WEFT_ASSIGN_OR_RETURN(SocketAddress bound, ParseSocketAddress(sender_->address()));
  bound.host = options_.host;
  begun->set_data_address(bound.ToString());
  values_ = std::make_unique<VariableRounds>(options_.devices);
  notes_.NoteFor(values_.get());
  taker_ = taker;
  SetState(State::kCopying);
  {
    absl::MutexLock lock(&mutex_);
    if (connects_ != 0) options_.timers->Cancel(connects_);
    connects_ = options_.timers->Schedule(kConnectPatience, [this, taker] {
      options_.setup->Schedule([this, taker] { AbortUnconnected(taker); });
    });
  }
  WEFT_LOG(INFO) << "Another process, at " << request.address() << ", takes "
                 << options_.stream.task << " over";
  return absl::OkStatus();
}

Status HandoverSource::Look(const wire::HandoverRequest& request, wire::HandoverLook* look) {
  absl::MutexLock calls(&calls_);
  WEFT_RETURN_IF_ERROR(Check(request, {State::kCopying, State::kHeld}));
  WEFT_ASSIGN_OR_RETURN(round_, values_->Next());
  for (wire::HandedVariable& variable : round_.variables)
    *look->add_variables() = std::move(variable);
  look->set_bytes(round_.bytes);
  look->set_leases(leases_);
  return absl::OkStatus();
}

Status HandoverSource::Send(const wire::HandoverRequest& request) {
  absl::MutexLock calls(&calls_);
  WEFT_RETURN_IF_ERROR(Check(request, {State::kCopying, State::kHeld}));
  return sender_->Send(round_.ranges, *values_);
}

Status HandoverSource::TellMasters(const Masters& masters, const std::string& method,
                                   const wire::HandoverNotice& notice) {
  absl::Mutex mutex;
  Status first;
  absl::BlockingCounter left(static_cast<int>(masters.size()));
  for (const auto& [master, incarnation] : masters) {
    options_.setup->Schedule([&, master = master] {
      wire::HandoverAnswer answer;
      const StatusOr<cluster::TaskId> task = TaskNamed(master);
      Status told = task.status();
      if (task.ok()) {
        told = options_.directory->Ask(*task, absl::StrCat("/weft.Steps/", method),
                                       wire::SerializeMessage(notice), 2 * kMasterPatience,
                                       options_.stopping, &answer);
      }
      {
        absl::MutexLock lock(&mutex);
        if (!told.ok() && first.ok()) first = std::move(told);
      }
      left.DecrementCount();
    });
  }
  left.Wait();
  absl::MutexLock lock(&mutex);
  return first;
}

// In the end no master that has a session here starts a step that needs this task, no step of one
// runs, and nobody makes another session.
Status HandoverSource::HoldSteps() {
  wire::HandoverNotice notice;
  notice.set_task(options_.stream.task);
  notice.set_hold_ms(absl::ToInt64Milliseconds(kHold));
  while (true) {
    const Masters all = options_.worker->masters();
    Masters fresh;
    std::set_difference(all.begin(), all.end(), held_.begin(), held_.end(),
                        std::inserter(fresh, fresh.begin()));
    if (fresh.empty()) break;
    held_.insert(fresh.begin(), fresh.end());
    WEFT_RETURN_IF_ERROR(TellMasters(fresh, "Hold", notice));
  }
  options_.worker->Refuse(
      Unavailable("Task ", options_.stream.task, " goes to another process just now: try again"));
  for (const auto& master : options_.worker->masters()) {
    if (!held_.contains(master)) {
      return Unavailable("A session of ", master.first, " came while the task was left: try again");
    }
  }
  if (const size_t running = options_.worker->counts().running; running > 0)
    return Unavailable(running, " steps run here that no known master started");
  return options_.may_leave();
}

Status HandoverSource::Hold(const wire::HandoverRequest& request) {
  absl::MutexLock calls(&calls_);
  WEFT_RETURN_IF_ERROR(Check(request, {State::kCopying}));
  SetState(State::kHeld);
  const Status held = HoldSteps();
  if (held.ok()) {
    leases_ = options_.leaves();
    return held;
  }
  Unhold();
  SetState(State::kCopying);
  return held;
}

void HandoverSource::Unhold() {
  options_.worker->Refuse(absl::OkStatus());
  options_.stays();
  leases_.clear();
  ReleaseMasters("");
}

void HandoverSource::ReleaseMasters(const std::string& address) {
  wire::HandoverNotice notice;
  notice.set_task(options_.stream.task);
  notice.set_address(address);
  const Status told = TellMasters(held_, "End", notice);
  if (!told.ok())
    WEFT_LOG(WARNING) << "A master did not hear how a handover ended: " << told.message();
  held_.clear();
}

Status HandoverSource::Commit(const wire::HandoverRequest& request) {
  absl::MutexLock calls(&calls_);
  WEFT_RETURN_IF_ERROR(Check(request, {State::kHeld}));
  {
    // From here on nothing of the task runs here, whoever hears of it.
    absl::MutexLock lock(&mutex_);
    state_ = State::kLeft;
    moved_to_ = request.address();
  }
  options_.worker->Refuse(
      Unavailable("Task ", options_.stream.task, " is at ", request.address(), " now"));
  options_.left(request.address());
  ReleaseMasters(request.address());
  WEFT_LOG(INFO) << options_.stream.task << " is at " << request.address()
                 << " now; this process says so to who asks, until it is ended";
  notes_.NoteFor(nullptr);
  options_.setup->Schedule([values = std::move(values_)] {});  // takes a while
  return absl::OkStatus();
}

void HandoverSource::AbortUnconnected(uint64_t incarnation) {
  {
    absl::MutexLock calls(&calls_);
    if (sender_ == nullptr || sender_->is_connected()) return;
  }
  Abort(incarnation, "it does not connect");
}

void HandoverSource::Abort(uint64_t incarnation, const std::string& why) {
  absl::MutexLock calls(&calls_);
  {
    absl::MutexLock lock(&mutex_);
    if (taker_ != incarnation || state_ == State::kHere || state_ == State::kLeft) return;
  }
  WEFT_LOG(WARNING) << "The process that takes " << options_.stream.task << " over: " << why
                    << ". The task stays here";
  Unhold();
  sender_.reset();
  notes_.NoteFor(nullptr);
  values_.reset();
  taker_ = 0;
  SetState(State::kHere);
}

}  // namespace weft::handover
