// SPDX-License-Identifier: Apache-2.0
#include "weft/serving/shard_leases.h"

#include <utility>

#include <unistd.h>

#include "absl/strings/numbers.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"

#include "base/log.h"
#include "net/job_identity.h"
#include "net/socket_address.h"
#include "weft/lease/lease_call.h"

namespace weft::serving {
namespace {

constexpr char kQueue[] = "predict";
constexpr char kMethod[] = "/weft.Leases/Call";
constexpr absl::Duration kCallTimeout = absl::Seconds(20);
constexpr absl::Duration kAskAgain = absl::Milliseconds(200);
constexpr int kThreads = 2;

std::string Flat(absl::Span<const absl::string_view> parts) {
  std::string bytes;
  for (absl::string_view part : parts) absl::StrAppend(&bytes, part);
  return bytes;
}

// The keeper may be about to start, or to start again: its new book knows of nothing yet.
bool IsAway(const Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsNotFound(status);
}

StatusOr<int64_t> IntOf(const Json& answer, const char* name) {
  WEFT_ASSIGN_OR_RETURN(const Json* const value, answer.At(name));
  return value->AsInt();
}

StatusOr<lease::Lease> LeaseOf(const Json& answer) {
  lease::Lease lease;
  WEFT_ASSIGN_OR_RETURN(lease.epoch, IntOf(answer, "epoch"));
  WEFT_ASSIGN_OR_RETURN(lease.index, IntOf(answer, "index"));
  WEFT_ASSIGN_OR_RETURN(lease.begin, IntOf(answer, "begin"));
  WEFT_ASSIGN_OR_RETURN(lease.end, IntOf(answer, "end"));
  WEFT_ASSIGN_OR_RETURN(const Json* const number, answer.At("number"));
  WEFT_ASSIGN_OR_RETURN(const std::string digits, number->AsString());
  if (!absl::SimpleAtoi(digits, &lease.number))
    return InvalidArgument("A lease's number is no number: ", digits);
  return lease;
}

}  // namespace

StatusOr<std::unique_ptr<ShardLeases>> ShardLeases::Make(ShardLeaseOptions options,
                                                         FileSystem* files,
                                                         Cancellation* cancellation) {
  std::unique_ptr<ShardLeases> leases(new ShardLeases(std::move(options), files, cancellation));
  const std::optional<cluster::TaskConfig>& job = leases->options_.task;
  if (!job.has_value() || job->cluster.tasks().size() <= 1) {
    leases->worker_ = absl::StrCat("alone@", getpid());
    return leases;
  }
  const auto& [first, address] = *job->cluster.tasks().begin();
  leases->is_keeper_ = first == job->task;
  leases->worker_ = absl::StrCat(job->task.job, "-", job->task.index, "@", getpid());
  if (!leases->is_keeper_) {
    WEFT_ASSIGN_OR_RETURN(leases->keeper_, wire::GrpcChannel::ConnectFromEnvironment(address));
  }
  return leases;
}

ShardLeases::~ShardLeases() {
  if (server_ != nullptr) server_->Shutdown(absl::Seconds(1));
}

Status ShardLeases::Serve(const std::string& address) {
  WEFT_ASSIGN_OR_RETURN(
      service_, worker::LeaseService::Make({.task = worker_}, files_, &clock_, cancellation_));
  wire::MethodTable methods;
  service_->AddMethods(&methods);
  WEFT_ASSIGN_OR_RETURN(const std::optional<JobIdentity> identity, JobIdentityFromEnvironment());
  WEFT_ASSIGN_OR_RETURN(const SocketAddress listed, ParseSocketAddress(address));
  const bool is_wide = !IsLoopbackHost(listed.host);
  if (is_wide && !identity.has_value() && !options_.insecure)
    return FailedPrecondition(
        "Whoever reaches ", address,
        " could take shards: give the job a secret (WEFT_TASK_TLS), or --insecure");
  const std::string host = is_wide ? "::" : listed.host;
  pool_ = std::make_unique<ThreadPool>("weft-leases", kThreads);
  WEFT_ASSIGN_OR_RETURN(server_,
                        wire::GrpcServer::Start(SocketAddress{host, listed.port}.ToString(),
                                                std::move(methods), pool_.get(), pool_.get(),
                                                identity.has_value() ? &*identity : nullptr));
  keeper_ = wire::GrpcChannel::Connect(absl::StrCat("localhost:", server_->port()));
  return absl::OkStatus();
}

Status ShardLeases::Offer(int64_t shards) {
  if (options_.task.has_value() && options_.task->cluster.tasks().size() > 1) {
    WEFT_RETURN_IF_ERROR(Serve(options_.task->cluster.tasks().begin()->second));
  } else {
    book_ = std::make_unique<lease::LeaseBook>(&clock_);
  }
  Json call = Json::MakeObject();
  call.Set("do", "define");
  call.Set("queue", lease::JsonOf({.name = kQueue,
                                   .records = shards,
                                   .per_lease = 1,
                                   .lease_seconds = options_.lease_seconds}));
  return Ask(std::move(call)).status();
}

StatusOr<Json> ShardLeases::Ask(Json call) {
  call.Set("worker", worker_);
  if (book_ != nullptr) return lease::AnswerLeaseCall(book_.get(), call);
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<wire::ClientReply> reply,
                        keeper_->CallAndWait({.method = kMethod,
                                              .request = wire::Payload(call.Dump()),
                                              .deadline = absl::Now() + kCallTimeout,
                                              .cancellation = cancellation_}));
  return Json::Parse(Flat(reply->response()));
}

Status ShardLeases::Sleep(absl::Duration duration) {
  const auto woken = std::make_shared<absl::Notification>();  // shared with a late cancellation
  Cancellation::Token token = 0;
  if (!cancellation_->Register(&token, [woken](const Status&) { woken->Notify(); }))
    return cancellation_->status();
  const bool cancelled = woken->WaitForNotificationWithTimeout(duration);
  cancellation_->Deregister(token);
  return cancelled ? cancellation_->status() : absl::OkStatus();
}

Status ShardLeases::AwaitKeeper(absl::FunctionRef<bool()> is_over) {
  const absl::Time until = absl::Now() + options_.patience;
  while (true) {
    Json call = Json::MakeObject();
    call.Set("do", "counts");
    call.Set("queue", kQueue);
    const Status answered = Ask(std::move(call)).status();
    if (answered.ok() || is_over()) return absl::OkStatus();
    if (!IsAway(answered) || absl::Now() > until)
      return Annotate(answered, "The task that keeps the leases of shards");
    WEFT_RETURN_IF_ERROR(Sleep(kAskAgain));
  }
}

StatusOr<std::optional<lease::Lease>> ShardLeases::Take(absl::FunctionRef<bool()> is_over) {
  absl::Time until = absl::Now() + options_.patience;
  while (true) {
    Json call = Json::MakeObject();
    call.Set("do", "take");
    call.Set("queue", kQueue);
    const StatusOr<Json> answer = Ask(std::move(call));
    if (answer.ok()) {
      WEFT_ASSIGN_OR_RETURN(const Json* const what, answer->At("take"));
      if (*what == Json("over")) return std::nullopt;
      if (*what == Json("lease")) return LeaseOf(*answer);
      until = absl::Now() + options_.patience;
    } else {
      if (is_over()) return std::nullopt;
      if (!IsAway(answer.status()) || absl::Now() > until)
        return Annotate(answer.status(), "The task that keeps the leases of shards");
    }
    WEFT_RETURN_IF_ERROR(Sleep(kAskAgain));
  }
}

Status ShardLeases::Finish(const lease::Lease& lease) {
  Json call = Json::MakeObject();
  call.Set("do", "finish");
  call.Set("queue", kQueue);
  call.Set("epoch", lease.epoch);
  call.Set("index", lease.index);
  call.Set("number", absl::StrCat(lease.number));
  const Status told = Ask(std::move(call)).status();
  // Nobody needs to hear of it: whoever gets the shard next finds its output.
  if (IsAway(told) || absl::IsFailedPrecondition(told)) return absl::OkStatus();
  return told;
}

}  // namespace weft::serving
