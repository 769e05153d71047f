// SPDX-License-Identifier: Apache-2.0
#include "weft/worker/lease_service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

#include "base/log.h"
#include "weft/lease/lease_call.h"

namespace weft::worker {
namespace {

constexpr char kMethod[] = "/weft.Leases/Call";
// The keeper may be about to start again.
constexpr absl::Duration kPatience = absl::Seconds(60);
// Within this time a task that lives is known to live.
constexpr absl::Duration kBecomesKnown = absl::Seconds(5);

// What ends does not wait longer for answers to others.
constexpr absl::Duration kDrain = absl::Seconds(2);
// The answer of a process that ends, and in it the address where the keeper is.
constexpr char kMoved[] = "moved";
// So many of these one after another are followed.
constexpr int kMostNames = 8;

std::string Flat(absl::Span<const absl::string_view> parts) {
  std::string bytes;
  for (absl::string_view part : parts) absl::StrAppend(&bytes, part);
  return bytes;
}

std::shared_ptr<wire::GrpcChannel> ConnectTo(const std::string& keeper,
                                             const std::optional<JobIdentity>& identity) {
  return wire::GrpcChannel::Connect(keeper, identity.has_value() ? &*identity : nullptr);
}

void Tell(int ranges, absl::string_view holder) {
  if (ranges > 0)
    WEFT_LOG(WARNING) << ranges << " ranges of data that " << holder << " held are to do again";
}

}  // namespace

StatusOr<std::unique_ptr<LeaseService>> LeaseService::Make(LeaseServiceOptions options,
                                                           FileSystem* files, Clock* clock,
                                                           Cancellation* stopping) {
  std::unique_ptr<LeaseService> service(new LeaseService(std::move(options), stopping));
  service->address_ = service->options_.keeper;
  if (!service->options_.keeper.empty()) return service;
  if (service->options_.folder.empty()) {
    service->book_ = std::make_unique<lease::LeaseBook>(clock);
    return service;
  }
  WEFT_ASSIGN_OR_RETURN(service->book_,
                        lease::LeaseBook::Open(files, service->options_.folder, clock));
  return service;
}

void LeaseService::AddMethods(wire::MethodTable* methods) {
  methods->emplace(kMethod, wire::Method{[this](std::unique_ptr<wire::ServerCall> call) {
                     Answer(std::move(call));
                   }});
}

void LeaseService::Answer(std::unique_ptr<wire::ServerCall> call) {
  StatusOr<Json> request = Json::Parse(Flat(call->request()));
  if (!request.ok()) return call->Reply(request.status(), wire::Payload());
  // A program asks its own task, which says who that is.
  if (request->Find("worker") == nullptr)
    request->Set("worker", absl::StrCat(options_.task, "@", options_.incarnation));
  bool is_here = false;
  {
    absl::MutexLock lock(&mutex_);
    if (is_leaving_) {
      waiting_.emplace_back(std::move(call), *std::move(request));
      return;
    }
    is_here = address_.empty();
  }
  is_here ? AnswerHere(std::move(call), *request) : HandOn(std::move(call), *request);
}

void LeaseService::AnswerHere(std::unique_ptr<wire::ServerCall> call, const Json& request) {
  const StatusOr<Json> answer = lease::AnswerLeaseCall(book_.get(), request);
  if (living_ && answer.ok() && answer->Find("take") != nullptr &&
      *answer->Find("take") == Json("wait"))
    Tell(book_->KeepLiving(living_(), kBecomesKnown), "tasks that are gone");
  call->Reply(answer.status(), answer.ok() ? wire::Payload(answer->Dump()) : wire::Payload());
}

struct LeaseService::Asked {
  ~Asked() {
    absl::MutexLock lock(&count->mutex);
    --count->calls;
  }
  std::shared_ptr<Count> count;
  std::unique_ptr<wire::ServerCall> call;
  std::string request;
  std::string address;
  std::shared_ptr<wire::GrpcChannel> keeper;
  const std::optional<JobIdentity>* identity = nullptr;  // the service's, which outlives its calls
  Cancellation* stopping = nullptr;
};

void LeaseService::HandOn(std::unique_ptr<wire::ServerCall> call, const Json& request) {
  auto asked = std::make_shared<Asked>();
  asked->count = in_flight_;
  {
    absl::MutexLock lock(&in_flight_->mutex);
    ++in_flight_->calls;
  }
  bool is_ending = false;
  {
    absl::MutexLock lock(&mutex_);
    asked->address = address_;
    is_ending = is_ending_;
    if (keeper_ == nullptr && !is_ending) {
      keeper_ = ConnectTo(address_, options_.identity);
    }
    asked->keeper = keeper_;
  }
  if (is_ending) {
    Json answer;
    answer.Set(kMoved, asked->address);
    return call->Reply(absl::OkStatus(), wire::Payload(answer.Dump()));
  }
  asked->call = std::move(call);
  asked->request = request.Dump();
  asked->identity = &options_.identity;
  asked->stopping = stopping_;
  Ask(std::move(asked), kMostNames);
}

void LeaseService::Ask(std::shared_ptr<Asked> asked, int names_left) {
  wire::ClientCall ask{.method = kMethod,
                       .request = wire::Payload(asked->request),
                       .deadline = absl::Now() + kPatience,
                       .wait_for_ready = true,
                       .cancellation = asked->stopping};
  wire::GrpcChannel* const keeper = asked->keeper.get();
  keeper->Call(std::move(ask), [asked = std::move(asked), names_left](
                                   StatusOr<std::unique_ptr<wire::ClientReply>> reply) mutable {
    if (!reply.ok()) {
      return asked->call->Reply(
          Annotate(reply.status(), absl::StrCat("The keeper of leases, ", asked->address)),
          wire::Payload());
    }
    std::string answer = Flat((*reply)->response());
    const StatusOr<Json> told = Json::Parse(answer);
    const Json* const moved = told.ok() ? told->Find(kMoved) : nullptr;
    if (moved != nullptr && moved->is_string() && names_left > 0) {
      asked->address = *moved->text();
      asked->keeper = ConnectTo(asked->address, *asked->identity);
      return Ask(std::move(asked), names_left - 1);
    }
    asked->call->Reply(absl::OkStatus(), wire::Payload(std::move(answer)));
  });
}

void LeaseService::Drain() {
  {
    absl::MutexLock lock(&mutex_);
    is_ending_ = true;
  }
  const auto none = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(in_flight_->mutex) {
    return in_flight_->calls == 0;
  };
  absl::MutexLock lock(&in_flight_->mutex);
  in_flight_->mutex.AwaitWithTimeout(absl::Condition(&none), kDrain);
}

std::string LeaseService::Leave() {
  absl::MutexLock lock(&mutex_);
  is_leaving_ = true;
  return address_.empty() ? book_->Snapshot() : "";
}

void LeaseService::Stay() { GoOn(); }

void LeaseService::GoTo(const std::string& keeper) {
  {
    absl::MutexLock lock(&mutex_);
    if (address_.empty()) address_ = keeper;
  }
  GoOn();
}

void LeaseService::GoOn() {
  std::vector<std::pair<std::unique_ptr<wire::ServerCall>, Json>> waiting;
  bool is_here = false;
  {
    absl::MutexLock lock(&mutex_);
    is_leaving_ = false;
    waiting.swap(waiting_);
    is_here = address_.empty();
  }
  for (auto& [call, request] : waiting)
    is_here ? AnswerHere(std::move(call), request) : HandOn(std::move(call), request);
}

Status LeaseService::Take(absl::string_view queues) {
  return book_ == nullptr ? absl::OkStatus() : book_->Restore(queues);
}

void LeaseService::TaskLost(const std::string& task) {
  if (book_ != nullptr) Tell(book_->TaskLost(task), task);
}

}  // namespace weft::worker
