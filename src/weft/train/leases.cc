// SPDX-License-Identifier: Apache-2.0
#include "weft/train/leases.h"

#include <utility>

#include "absl/strings/strip.h"
#include "absl/time/clock.h"

#include "net/json.h"
#include "weft/lease/lease_book.h"
#include "weft/wire/grpc_service.h"

namespace weft::train {
namespace {

constexpr char kMethod[] = "/weft.Leases/Call";
constexpr absl::Duration kPatience = absl::Seconds(70);
constexpr absl::Duration kBetweenQuestions = absl::Milliseconds(200);

class Client final : public LeaseQueueClient {
 public:
  Client(std::shared_ptr<wire::GrpcChannel> channel, std::string queue)
      : channel_(std::move(channel)), queue_(std::move(queue)) {}

  Status Define(const LeaseQueueOptions& options) {
    Json call = Json::MakeObject();
    call.Set("do", "define");
    call.Set("queue", lease::JsonOf(options));
    return Ask(call).status();
  }

  StatusOr<LeasedRange> Take() override {
    while (true) {
      WEFT_ASSIGN_OR_RETURN(const Json answer, Ask(CallOf("take")));
      WEFT_ASSIGN_OR_RETURN(const Json* what, answer.At("take"));
      if (*what == Json("over")) return NotFound("Every record of '", queue_, "' is done");
      if (*what == Json("lease")) return RangeOf(answer);
      absl::SleepFor(kBetweenQuestions);
    }
  }

  StatusOr<bool> Finish(const LeasedRange& range) override {
    const StatusOr<Json> answer = Ask(CallOf("finish", range));
    // The lease was another's meanwhile.
    if (answer.status().code() == absl::StatusCode::kFailedPrecondition) return false;
    WEFT_RETURN_IF_ERROR(answer.status());
    WEFT_ASSIGN_OR_RETURN(const Json* counted, answer->At("counted"));
    return counted->AsBool();
  }

  Status GiveBack(const LeasedRange& range) override {
    return Ask(CallOf("give_back", range)).status();
  }

  StatusOr<LeaseCounts> Counts() override {
    WEFT_ASSIGN_OR_RETURN(const Json answer, Ask(CallOf("counts")));
    LeaseCounts counts;
    WEFT_ASSIGN_OR_RETURN(counts.records_done, IntOf(answer, "records_done"));
    WEFT_ASSIGN_OR_RETURN(counts.leased_again, IntOf(answer, "leased_again"));
    WEFT_ASSIGN_OR_RETURN(const Json* over, answer.At("is_over"));
    WEFT_ASSIGN_OR_RETURN(counts.is_over, over->AsBool());
    return counts;
  }

 private:
  Json CallOf(const char* what) const {
    Json call = Json::MakeObject();
    call.Set("do", what);
    call.Set("queue", queue_);
    return call;
  }
  Json CallOf(const char* what, const LeasedRange& range) const {
    Json call = CallOf(what);
    call.Set("epoch", range.epoch);
    call.Set("index", range.index);
    call.Set("begin", range.begin);
    call.Set("end", range.end);
    call.Set("number", range.number);
    return call;
  }

  static StatusOr<int64_t> IntOf(const Json& answer, const char* name) {
    WEFT_ASSIGN_OR_RETURN(const Json* value, answer.At(name));
    return value->AsInt();
  }
  static StatusOr<LeasedRange> RangeOf(const Json& answer) {
    LeasedRange range;
    WEFT_ASSIGN_OR_RETURN(range.epoch, IntOf(answer, "epoch"));
    WEFT_ASSIGN_OR_RETURN(range.index, IntOf(answer, "index"));
    WEFT_ASSIGN_OR_RETURN(range.begin, IntOf(answer, "begin"));
    WEFT_ASSIGN_OR_RETURN(range.end, IntOf(answer, "end"));
    WEFT_ASSIGN_OR_RETURN(const Json* number, answer.At("number"));
    WEFT_ASSIGN_OR_RETURN(range.number, number->AsString());
    return range;
  }

  StatusOr<Json> Ask(const Json& call) {
    WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<wire::ClientReply> reply,
                          channel_->CallAndWait({.method = kMethod,
                                                 .request = wire::Payload(call.Dump()),
                                                 .deadline = absl::Now() + kPatience,
                                                 .wait_for_ready = true}));
    std::string text;
    for (const absl::string_view part : reply->response()) absl::StrAppend(&text, part);
    return Json::Parse(text);
  }

  const std::shared_ptr<wire::GrpcChannel> channel_;  // shared with its calls
  const std::string queue_;
};

}  // namespace

StatusOr<std::unique_ptr<LeaseQueueClient>> LeaseQueueClient::Create(
    const Task& task, const LeaseQueueOptions& options) {
  if (task.target.empty()) {
    return FailedPrecondition("Leases need this task's server, and this program is alone");
  }
  WEFT_ASSIGN_OR_RETURN(std::shared_ptr<wire::GrpcChannel> channel,
                        wire::GrpcChannel::ConnectFromEnvironment(
                            std::string(absl::StripPrefix(task.target, "grpc://"))));
  auto client = std::make_unique<Client>(std::move(channel), options.name);
  WEFT_RETURN_IF_ERROR(client->Define(options));
  return client;
}

Status LeaseQueueClient::ForEach(const std::function<Status(const LeasedRange&)>& use) {
  while (true) {
    const StatusOr<LeasedRange> range = Take();
    if (range.status().code() == absl::StatusCode::kNotFound) return absl::OkStatus();
    WEFT_RETURN_IF_ERROR(range.status());
    if (const Status used = use(*range); !used.ok()) {
      GiveBack(*range).IgnoreError();
      return used;
    }
    WEFT_RETURN_IF_ERROR(Finish(*range).status());
  }
}

}  // namespace weft::train
