// SPDX-License-Identifier: Apache-2.0
#include "weft/handover/take_over.h"

#include <map>
#include <memory>
#include <utility>

#include "absl/time/clock.h"

#include "base/log.h"
#include "net/socket_address.h"
#include "proto/weft/handover.pb.h"
#include "weft/kernel/variable.h"
#include "weft/wire/grpc_service.h"
#include "weft/wire/step_messages.h"

namespace weft::handover {
namespace {

// For the old process to answer at all.
constexpr absl::Duration kFindPatience = absl::Seconds(30);
// For it to say that it is still there.
constexpr absl::Duration kAnswerPatience = absl::Seconds(3);
// A call; bytes are waited for elsewhere.
constexpr absl::Duration kCallTimeout = absl::Minutes(2);
// When the answer to Commit is lost.
constexpr absl::Duration kDoubt = absl::Seconds(20);
constexpr absl::Duration kAskAgain = absl::Milliseconds(200);
constexpr int kAsksForEnd = 5;
// What goes over in a moment anyway.
constexpr uint64_t kLittle = uint64_t{16} << 20;
constexpr int kMostRounds = 8;
// From process to process of a task that has moved.
constexpr int kMostMoves = 16;

// Asked some times, in case that it listens again in a moment.
bool HasEnded(const std::string& address) {
  const StatusOr<SocketAddress> parsed = ParseSocketAddress(address);
  if (!parsed.ok()) return false;
  for (int i = 0; i < kAsksForEnd; ++i) {
    if (i > 0) absl::SleepFor(kAskAgain);
    if (!IsRefused(*parsed)) return false;
  }
  return true;
}

class Taker {
 public:
  explicit Taker(const TakeOverOptions& options) : options_(options) { GoTo(options.from); }

  StatusOr<TakenOver> Run() {
    wire::HandoverBegun begun;
    if (options_.has_begun && HasEnded(from_)) return Unavailable("Nobody listens at ", from_);
    Status found = Ask("Begin", &begun, kFindPatience);
    // Another that tried to may not have been given up yet.
    for (const absl::Time end = absl::Now() + kFindPatience;
         absl::IsUnavailable(found) && absl::Now() < end && !options_.stopping->IsCancelled();) {
      absl::SleepFor(kAskAgain);
      found = Ask("Begin", &begun, kFindPatience);
    }
    WEFT_RETURN_IF_ERROR(found);
    if (!begun.moved_to().empty()) {
      if (++moves_ == kMostMoves) return Unavailable("The task moves faster than it can be found");
      GoTo(begun.moved_to());
      return Run();
    }
    const Status copied = Copy(begun);
    if (!copied.ok()) {
      wire::HandoverAnswer answer;
      if (!committing_) Ask("Abort", &answer).IgnoreError();
      return copied;
    }
    taken_.variables = static_cast<int64_t>(values_.size());
    for (const auto& [number, value] : values_) taken_.bytes += value.second.size_bytes();
    return std::move(taken_);
  }

 private:
  void GoTo(const std::string& address) {
    from_ = address;
    channel_ = wire::GrpcChannel::Connect(
        address, options_.identity.has_value() ? &*options_.identity : nullptr);
  }

  Status Ask(const char* method, google::protobuf::MessageLite* response,
             absl::Duration timeout = kCallTimeout) {
    wire::HandoverRequest request;
    request.set_incarnation(options_.stream.incarnation);
    request.set_address(options_.address);
    StatusOr<std::unique_ptr<wire::ClientReply>> reply =
        channel_->CallAndWait({.method = absl::StrCat("/weft.Handover/", method),
                               .request = wire::SerializeMessage(request),
                               .deadline = absl::Now() + timeout,
                               .wait_for_ready = timeout == kFindPatience,
                               .cancellation = options_.stopping});
    if (!reply.ok()) {
      return Annotate(reply.status(),
                      absl::StrCat("The process that has ", options_.stream.task, ", at ", from_));
    }
    return wire::ParseMessage((*reply)->response(), response);
  }

  Status Copy(const wire::HandoverBegun& begun) {
    // Where it answers, whatever its own name leads to: that of a service may mean us already.
    WEFT_ASSIGN_OR_RETURN(SocketAddress stream, ParseSocketAddress(begun.data_address()));
    WEFT_ASSIGN_OR_RETURN(const SocketAddress source, ParseSocketAddress(from_));
    stream.host = source.host;
    WEFT_ASSIGN_OR_RETURN(stream_, StreamReceiver::Connect(options_.stream, stream.ToString()));
    // While steps go on, as long as it becomes less.
    uint64_t before = 0;
    do {
      before = last_;
      WEFT_RETURN_IF_ERROR(NextRound());
    } while (last_ > kLittle && taken_.rounds < kMostRounds &&
             (taken_.rounds == 1 || last_ < before / 4 * 3));
    const absl::Time held = absl::Now();
    wire::HandoverAnswer answer;
    WEFT_RETURN_IF_ERROR(Ask("Hold", &answer));
    WEFT_RETURN_IF_ERROR(NextRound());
    taken_.last_bytes = last_;
    WEFT_RETURN_IF_ERROR(Install());
    WEFT_RETURN_IF_ERROR(
        options_.have_all({begun.took_over().begin(), begun.took_over().end()}, leases_));
    committing_ = true;
    Status committed = Ask("Commit", &answer);
    if (!committed.ok()) committed = ResolveDoubt(std::move(committed));
    taken_.pause = absl::Now() - held;
    return committed;
  }

  Status NextRound() {
    ++taken_.rounds;
    wire::HandoverLook look;
    WEFT_RETURN_IF_ERROR(Ask("Look", &look));
    for (const wire::HandedVariable& variable : look.variables())
      WEFT_RETURN_IF_ERROR(Place(variable));
    last_ = look.bytes();
    leases_ = look.leases();
    expected_ += look.bytes();
    wire::HandoverAnswer answer;
    WEFT_RETURN_IF_ERROR(Ask("Send", &answer));
    return stream_->WaitFor(expected_);
  }

  Status Place(const wire::HandedVariable& variable) {
    if (variable.dtype() == 0) {
      values_.erase(variable.number());
      return absl::OkStatus();
    }
    const int dtype = variable.dtype();
    if (dtype < 0 || dtype >= kNumDTypes || !IsPlain(static_cast<DType>(dtype)))
      return InvalidArgument("'", variable.name(), "' is of type ", dtype, ", which there is not");
    if (variable.device() < 0 || variable.device() >= static_cast<int>(options_.devices.size())) {
      return FailedPrecondition("'", variable.name(), "' is on device ", variable.device(),
                                " of the task, of which there are ", options_.devices.size(),
                                " here: --cpu_devices must be the same");
    }
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(absl::Span<const int64_t>(
                                                 variable.dim().data(), variable.dim().size())));
    WEFT_ASSIGN_OR_RETURN(Tensor value, Tensor::Allocate(static_cast<DType>(dtype), shape));
    stream_->Receive(variable.number(), value);
    values_[variable.number()] = {variable, std::move(value)};
    return absl::OkStatus();
  }

  Status Install() {
    for (auto& [number, known] : values_) {
      const auto& [variable, value] = known;
      PartialShape declared;
      if (variable.declares_rank()) {
        WEFT_ASSIGN_OR_RETURN(declared,
                              PartialShape::Make(absl::Span<const int64_t>(
                                  variable.declared_dim().data(), variable.declared_dim().size())));
      }
      Device* const device = options_.devices[static_cast<size_t>(variable.device())];
      WEFT_ASSIGN_OR_RETURN(
          const Ref<Variable> made,
          device->resources().LookupOrCreate<Variable>(
              variable.container(), variable.name(), [&]() -> StatusOr<Ref<Variable>> {
                return MakeRef<Variable>(variable.name(), value.dtype(), declared);
              }));
      made->Assign(value);
    }
    return absl::OkStatus();
  }

  // The old process may have given the task away without our hearing of it.
  Status ResolveDoubt(Status why) {
    const absl::Time end = absl::Now() + kDoubt;
    while (absl::Now() < end && !options_.stopping->IsCancelled()) {
      wire::HandoverState state;
      if (options_.is_known()) return absl::OkStatus();
      const Status asked = Ask("State", &state, kAskAgain * 5);
      if (asked.ok()) return state.is_over() ? absl::OkStatus() : why;
      absl::SleepFor(kAskAgain);
    }
    return why;
  }

  const TakeOverOptions& options_;
  std::string from_;
  std::shared_ptr<wire::GrpcChannel> channel_;  // shared with its calls
  int moves_ = 0;
  std::unique_ptr<StreamReceiver> stream_;
  std::map<uint32_t, std::pair<wire::HandedVariable, Tensor>> values_;
  uint64_t last_ = 0, expected_ = 0;  // bytes: of the last round, of all
  std::string leases_;
  bool committing_ = false;
  TakenOver taken_;
};

}  // namespace

StatusOr<TakenOver> TakeOver(const TakeOverOptions& options) {
  WEFT_LOG(INFO) << options.stream.task << " is taken over from the process at " << options.from;
  return Taker(options).Run();
}

bool IsSourceThere(const TakeOverOptions& options) {
  if (options.has_begun && HasEnded(options.from)) return false;
  const auto channel = wire::GrpcChannel::Connect(
      options.from, options.identity.has_value() ? &*options.identity : nullptr);
  return channel
      ->CallAndWait({.method = "/weft.Handover/State",
                     .request = wire::SerializeMessage(wire::HandoverRequest()),
                     .deadline = absl::Now() + kAnswerPatience,
                     .wait_for_ready = true,
                     .cancellation = options.stopping})
      .ok();
}

}  // namespace weft::handover
