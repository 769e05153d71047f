// SPDX-License-Identifier: Apache-2.0
#include "weft/lease/lease_call.h"

#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace weft::lease {
namespace {

StatusOr<std::string> Word(const Json& call, absl::string_view name) {
  WEFT_ASSIGN_OR_RETURN(const Json* const value, call.At(name));
  StatusOr<std::string> word = value->AsString();
  if (!word.ok()) return Annotate(word.status(), name);
  return word;
}

StatusOr<Lease> LeaseFrom(const Json& call) {
  Lease lease;
  WEFT_ASSIGN_OR_RETURN(const Json* const epoch, call.At("epoch"));
  WEFT_ASSIGN_OR_RETURN(lease.epoch, epoch->AsInt());
  WEFT_ASSIGN_OR_RETURN(const Json* const index, call.At("index"));
  WEFT_ASSIGN_OR_RETURN(lease.index, index->AsInt());
  WEFT_ASSIGN_OR_RETURN(const std::string number, Word(call, "number"));
  if (!absl::SimpleAtoi(number, &lease.number))
    return InvalidArgument("number: expected digits, got '", number, "'");
  return lease;
}

Json JsonOf(const LeaseBook::Taken& taken) {
  Json json = Json::MakeObject();
  switch (taken.what) {
    case LeaseQueue::Taken::kWait:
      json.Set("take", "wait");
      return json;
    case LeaseQueue::Taken::kOver:
      json.Set("take", "over");
      return json;
    case LeaseQueue::Taken::kLease:
      json.Set("take", "lease");
  }
  json.Set("epoch", taken.lease.epoch);
  json.Set("index", taken.lease.index);
  json.Set("begin", taken.lease.begin);
  json.Set("end", taken.lease.end);
  json.Set("number", absl::StrCat(taken.lease.number));
  return json;
}

Json JsonOf(const QueueCounts& counts) {
  Json json = Json::MakeObject();
  json.Set("epoch", counts.epoch);
  json.Set("to_do", counts.to_do);
  json.Set("held", counts.held);
  json.Set("records_done", counts.records_done);
  json.Set("leased_again", counts.leased_again);
  json.Set("is_over", counts.is_over);
  return json;
}

}  // namespace

StatusOr<Json> AnswerLeaseCall(LeaseBook* book, const Json& call) {
  WEFT_ASSIGN_OR_RETURN(const std::string what, Word(call, "do"));
  Json answer = Json::MakeObject();
  if (what == "define") {
    WEFT_ASSIGN_OR_RETURN(const Json* const queue, call.At("queue"));
    WEFT_ASSIGN_OR_RETURN(const QueueSpec spec, QueueSpecFrom(*queue));
    WEFT_RETURN_IF_ERROR(book->Define(spec));
    return answer;
  }
  WEFT_ASSIGN_OR_RETURN(const std::string queue, Word(call, "queue"));
  if (what == "counts") {
    WEFT_ASSIGN_OR_RETURN(const QueueCounts counts, book->Counts(queue));
    return JsonOf(counts);
  }
  WEFT_ASSIGN_OR_RETURN(const std::string worker, Word(call, "worker"));
  if (what == "take") {
    WEFT_ASSIGN_OR_RETURN(const LeaseBook::Taken taken, book->Take(queue, worker));
    return JsonOf(taken);
  }
  if (what == "finish") {
    WEFT_ASSIGN_OR_RETURN(const Lease lease, LeaseFrom(call));
    WEFT_ASSIGN_OR_RETURN(const bool counted, book->Finish(queue, worker, lease));
    answer.Set("counted", counted);
    return answer;
  }
  if (what == "give_back") {
    WEFT_ASSIGN_OR_RETURN(const Lease lease, LeaseFrom(call));
    WEFT_RETURN_IF_ERROR(book->GiveBack(queue, lease));
    return answer;
  }
  return InvalidArgument("do: expected define, take, finish, give_back or counts, got '", what,
                         "'");
}

}  // namespace weft::lease
