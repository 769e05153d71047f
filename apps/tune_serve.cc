// SPDX-License-Identifier: Apache-2.0
#include "apps/tune_serve.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "net/json.h"

namespace weft::apps {
namespace {

using platform::SearchTrial;

constexpr int64_t kMostAsked = 10000;

class StudyServer {
 public:
  StudyServer(platform::Study* study, platform::StudyJournal* journal)
      : study_(*study), journal_(*journal) {}

  StatusOr<Json> Answer(const Json& question) {
    if (const Json* const count = question.Find("ask")) return Ask(*count);
    if (const Json* const number = question.Find("tell")) return Tell(*number, question);
    if (const Json* const number = question.Find("fail")) return Fail(*number);
    if (question.Find("best") != nullptr) return Best();
    if (question.Find("front") != nullptr) return Front();
    if (question.Find("trials") != nullptr) return Trials();
    return InvalidArgument("expected ask, tell, fail, best, front or trials, found ",
                           question.Describe());
  }

 private:
  Json Describe(const SearchTrial& trial) const {
    Json values = Json::MakeObject();
    for (const auto& [name, text] : study_.space().Assign(trial.values)) values.Set(name, text);
    Json json;
    json.Set("trial", trial.number);
    json.Set("values", std::move(values));
    if (trial.parent >= 0) json.Set("parent", trial.parent);
    return json;
  }

  StatusOr<Json> Ask(const Json& count_json) {
    WEFT_ASSIGN_OR_RETURN(const int64_t count, count_json.AsInt());
    if (count < 1 || count > kMostAsked)
      return InvalidArgument("ask is ", count, ": 1 to ", kMostAsked, " are allowed");
    Json trials = Json::MakeArray();
    const char* state = "ok";
    for (int64_t i = 0; i < count; ++i) {
      const StatusOr<SearchTrial> trial = study_.Ask();
      if (absl::IsUnavailable(trial.status()) || absl::IsOutOfRange(trial.status())) {
        state = absl::IsUnavailable(trial.status()) ? "wait" : "end";
        break;
      }
      WEFT_RETURN_IF_ERROR(trial.status());
      WEFT_RETURN_IF_ERROR(journal_.Started(study_.space(), *trial));
      trials.Append(Describe(*trial));
    }
    Json answer;
    answer.Set("trials", std::move(trials));
    answer.Set("state", state);
    return answer;
  }

  StatusOr<Json> Tell(const Json& number_json, const Json& question) {
    WEFT_ASSIGN_OR_RETURN(const int64_t number, number_json.AsInt());
    platform::TrialResult result;
    if (const Json* const values = question.Find("values")) {
      for (const Json& item : values->items()) {
        WEFT_ASSIGN_OR_RETURN(const double value, item.AsDouble());
        result.objectives.push_back(value);
      }
    } else {
      WEFT_ASSIGN_OR_RETURN(const Json* const value, question.At("value"));
      WEFT_ASSIGN_OR_RETURN(const double number_of_value, value->AsDouble());
      result.objectives.push_back(number_of_value);
    }
    if (const Json* const violation = question.Find("violation")) {
      WEFT_ASSIGN_OR_RETURN(result.violation, violation->AsDouble());
    }
    WEFT_RETURN_IF_ERROR(study_.Tell(number, result));
    const SearchTrial& trial = study_.trials()[static_cast<size_t>(number)];
    const bool has_failed = trial.state == SearchTrial::State::kFailed;
    WEFT_RETURN_IF_ERROR(journal_.Ended(trial, {}, has_failed ? "no number" : ""));
    return Json::MakeObject();
  }

  StatusOr<Json> Fail(const Json& number_json) {
    WEFT_ASSIGN_OR_RETURN(const int64_t number, number_json.AsInt());
    WEFT_RETURN_IF_ERROR(study_.Fail(number));
    WEFT_RETURN_IF_ERROR(
        journal_.Ended(study_.trials()[static_cast<size_t>(number)], {}, "failed"));
    return Json::MakeObject();
  }

  Json Best() const {
    const SearchTrial* const best = study_.best();
    if (best == nullptr) return Json::MakeObject();
    Json answer = Describe(*best);
    answer.Set("value", best->objective);
    return answer;
  }

  Json Front() const {
    Json numbers = Json::MakeArray();
    for (const int64_t number : study_.ParetoFront()) numbers.Append(number);
    Json answer;
    answer.Set("trials", std::move(numbers));
    return answer;
  }

  Json Trials() const {
    Json trials = Json::MakeArray();
    for (const SearchTrial& trial : study_.trials()) {
      Json json = Describe(trial);
      const bool has_succeeded = trial.state == SearchTrial::State::kSucceeded;
      json.Set("state", has_succeeded                                 ? "succeeded"
                        : trial.state == SearchTrial::State::kRunning ? "running"
                                                                      : "failed");
      if (has_succeeded) json.Set("value", trial.objective);
      trials.Append(std::move(json));
    }
    Json answer;
    answer.Set("trials", std::move(trials));
    return answer;
  }

  platform::Study& study_;
  platform::StudyJournal& journal_;
};

}  // namespace

Status ServeStudy(platform::Study* study, platform::StudyJournal* journal) {
  StudyServer server(study, journal);
  char* line = nullptr;
  size_t room = 0;
  while (true) {
    const ssize_t length = ::getline(&line, &room, stdin);
    if (length <= 0) break;
    const StatusOr<Json> question = Json::Parse({line, static_cast<size_t>(length)});
    StatusOr<Json> answer =
        question.ok() ? server.Answer(*question) : StatusOr<Json>(question.status());
    if (!answer.ok()) {
      Json error;
      error.Set("error", std::string(answer.status().message()));
      answer = std::move(error);
    }
    std::printf("%s\n", answer->Dump().c_str());
    std::fflush(stdout);
  }
  std::free(line);
  return absl::OkStatus();
}

}  // namespace weft::apps
