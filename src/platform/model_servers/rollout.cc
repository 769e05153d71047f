// SPDX-License-Identifier: Apache-2.0
#include "platform/model_servers/rollout.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace weft::platform {
namespace {

constexpr absl::Duration kShortestLook = absl::Seconds(1);
constexpr absl::Duration kLongestLook = absl::Seconds(5);

double PercentOf(const ServerCounts& counts) {
  if (counts.requests == 0) return 0;
  return 100.0 * static_cast<double>(counts.errors) / static_cast<double>(counts.requests);
}

// Empty: nothing.
std::string WhatIsWorse(const ServerRollout& rollout, const ServerCounts& candidate,
                        const ServerCounts& trusted) {
  const double more = PercentOf(candidate) - PercentOf(trusted);
  if (candidate.errors > 0 && more > rollout.most_errors) {
    return absl::StrFormat(
        "%.1f%% of its %d requests failed, of the others' %d it was %.1f%%: at most %g%% more are "
        "allowed",
        PercentOf(candidate), candidate.requests, trusted.requests, PercentOf(trusted),
        rollout.most_errors);
  }
  const std::optional<absl::Duration> latency = candidate.Latency99();
  if (latency.has_value() && *latency > rollout.most_latency) {
    return absl::StrFormat(
        "99 in 100 of its requests took up to %.1f ms, at most %.0f ms are allowed",
        absl::ToDoubleMilliseconds(*latency), absl::ToDoubleMilliseconds(rollout.most_latency));
  }
  return "";
}

class Rollout {
 public:
  Rollout(const ServerRollout& rollout, const RolloutQuestion& question)
      : rollout_(rollout), question_(question) {
    answer_.state = question.state;
  }

  RolloutAnswer Decide() {
    const std::string& revision = question_.revision;
    RolloutState& state = answer_.state;
    if (state.failed != revision) state.failed.clear();
    if (state.trusted.empty() || question_.replicas == 0) Trust(revision);
    if (state.trusted != revision && !Has(state.trusted)) {
      Tell("Warning", "NothingToGoBackTo",
           absl::StrCat("The servers of revision ", state.trusted, " are gone; those of ", revision,
                        " are the only ones"));
      Trust(revision);
    }
    if (state.trusted == revision || state.failed == revision) {
      state.candidate.clear();
    } else if (state.candidate != revision) {
      Begin(revision);
    }
    if (!state.candidate.empty()) Advance();
    Place();
    return std::move(answer_);
  }

 private:
  bool Has(const std::string& revision) const { return question_.revisions.contains(revision); }
  RevisionFacts FactsOf(const std::string& revision) const {
    const auto found = question_.revisions.find(revision);
    return found == question_.revisions.end() ? RevisionFacts() : found->second;
  }
  int64_t percent() const { return rollout_.steps[static_cast<size_t>(answer_.state.step)]; }
  // Of the candidate in this step.
  int64_t Wanted() const { return (question_.replicas * percent() + 99) / 100; }

  void Tell(const char* type, const char* reason, std::string message) {
    answer_.events.push_back({type, reason, std::move(message)});
  }

  void Trust(const std::string& revision) {
    answer_.state.trusted = revision;
    answer_.state.candidate.clear();
  }

  void Begin(const std::string& revision) {
    answer_.state.candidate = revision;
    answer_.state.step = 0;
    StartStep();
    Tell("Normal", "RolloutStarted",
         absl::StrCat("Servers of revision ", revision, " take over from ", answer_.state.trusted,
                      ", first ", percent(), " percent"));
  }

  void StartStep() {
    answer_.state.since = question_.now;
    answer_.state.ready_since = absl::InfiniteFuture();
  }

  void TakeBack(std::string why) {
    const std::string failed = answer_.state.candidate;
    answer_.state.failed = failed;
    answer_.state.candidate.clear();
    answer_.problem =
        absl::StrCat("Revision ", failed, " was taken back at ", percent(), " percent: ", why);
    Tell("Warning", "RolledBack", answer_.problem);
  }

  void LookAgainIn(absl::Duration wait) {
    answer_.look_again =
        std::min(answer_.look_again, std::clamp(wait, kShortestLook, kLongestLook));
  }

  void Advance() {
    RolloutState& state = answer_.state;
    // The spec may have fewer steps by now.
    state.step = std::min(state.step, static_cast<int64_t>(rollout_.steps.size()) - 1);
    if (FactsOf(state.candidate).available < Wanted()) {
      state.ready_since = absl::InfiniteFuture();
      if (question_.now - state.since >= rollout_.deadline) {
        return TakeBack(absl::StrFormat("%d of %d servers were ready within %s",
                                        FactsOf(state.candidate).available, Wanted(),
                                        absl::FormatDuration(rollout_.deadline)));
      }
      return LookAgainIn(state.since + rollout_.deadline - question_.now);
    }
    if (state.ready_since == absl::InfiniteFuture()) {
      state.ready_since = question_.now;
      return LookAgainIn(rollout_.step / 5);
    }
    const ServerCounts counts = question_.counts(state.candidate);
    const std::string worse = WhatIsWorse(rollout_, counts, question_.counts(state.trusted));
    if (!worse.empty()) return TakeBack(worse);
    if (question_.now - state.ready_since < rollout_.step ||
        counts.requests < rollout_.least_requests)
      return LookAgainIn(rollout_.step / 5);
    if (percent() < 100) {
      ++state.step;
      StartStep();
      Tell("Normal", "RolloutAdvanced",
           absl::StrCat("Servers of revision ", state.candidate, " get ", percent(), " percent"));
      return LookAgainIn(kShortestLook);
    }
    Tell("Normal", "RolloutFinished",
         absl::StrCat("Servers of revision ", state.candidate, " have taken over from ",
                      state.trusted));
    Trust(state.candidate);
  }

  // There are never fewer servers than wanted: those before go as far as the new ones are ready.
  void Place() {
    const RolloutState& state = answer_.state;
    const int64_t total = question_.replicas;
    std::map<std::string, int64_t>& replicas = answer_.replicas;
    replicas[state.trusted] = total;
    if (!state.candidate.empty()) {
      const int64_t wanted = Wanted();
      const int64_t least =
          percent() < 100 && total > 0 ? std::max<int64_t>(total - wanted, 1) : total - wanted;
      const int64_t ready = std::min(FactsOf(state.candidate).available, wanted);
      replicas[state.candidate] = wanted;
      replicas[state.trusted] = std::max(least, total - ready);
      answer_.share = absl::StrCat(wanted, " of ", wanted + least);
      return;
    }
    // What was taken back, or left behind, goes when the others can do without it.
    const int64_t enough = std::min(total, std::max<int64_t>(1, (total + 1) / 2));
    if (FactsOf(state.trusted).available >= enough) return;
    for (const auto& [revision, facts] : question_.revisions) {
      if (revision != state.trusted) replicas[revision] = facts.wanted;
    }
    LookAgainIn(kShortestLook);
  }

  const ServerRollout& rollout_;
  const RolloutQuestion& question_;
  RolloutAnswer answer_;
};

}  // namespace

RolloutAnswer DecideRollout(const ServerRollout& rollout, const RolloutQuestion& question) {
  return Rollout(rollout, question).Decide();
}

}  // namespace weft::platform
