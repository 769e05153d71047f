// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "platform/jobs/job_scaling.h"
#include "platform/object/fields.h"

namespace weft::platform {
namespace {

constexpr size_t kMostLines = 30;

std::string ExpectedOf(const ScaleOption& option, double factor) {
  return option.measured > 0 ? "" : absl::StrFormat("%.4g", option.predicted * factor);
}

// Of those that ran: what was measured to what the law says.
double FactorOf(const std::vector<ScaleOption>& options) {
  double sum = 0;
  int ran = 0;
  for (const ScaleOption& option : options) {
    if (option.measured <= 0) continue;
    sum += std::log(option.measured / option.predicted);
    ++ran;
  }
  return ran == 0 ? 1 : std::exp(sum / ran);
}

}  // namespace

StatusOr<std::string> DescribeScaling(const TfJob& job, const Json& object,
                                      const TaskPrices& prices, absl::Time now) {
  if (!IsScaled(job)) {
    return FailedPrecondition(
        "The counts of ", job.metadata.name,
        " are as they are written: an elasticPolicy with metrics, of the job or of PS, would let "
        "the operator choose them");
  }
  const Json* const status = object.Find("status");
  const Json* const scaling = status == nullptr ? nullptr : status->Find(kScaling);
  if (scaling == nullptr || scaling->Find("rates") == nullptr) {
    return FailedPrecondition("Nothing was measured of ", job.metadata.name,
                              " yet: that takes ten seconds and twenty steps that it tells, as "
                              "\"step 120/600\", with all its tasks running");
  }
  const ScaleChoices choices(job, prices, *scaling);
  const ScaleQuestion question = QuestionOf(job, *status, *scaling, choices.current(), now);
  WEFT_ASSIGN_OR_RETURN(const ScaleDecision decision, DecideScale(choices.options(), question.goal,
                                                                  question.state, question.rules));
  const std::vector<ScaleOption>& options = choices.options();
  const double factor = FactorOf(options);
  std::vector<size_t> order(options.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // Those that ran first, then those that are expected to bring the most for their price.
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const auto key = [&](size_t i) {
      const ScaleOption& option = options[i];
      return std::pair(option.measured <= 0,
                       -option.predicted / std::max(1e-9, option.dollars_per_hour));
    };
    return key(a) < key(b);
  });
  std::string text =
      absl::StrFormat("%s now has %s\n%4s%-44s %12s %12s %12s\n", job.metadata.name,
                      InWords(job, choices.counts(choices.current())), "", "counts", "measured",
                      "expected", prices.are_dollars ? "$ an hour" : "tasks");
  for (size_t i = 0; i < std::min(order.size(), kMostLines); ++i) {
    const ScaleOption& option = options[order[i]];
    absl::StrAppendFormat(&text, "%4s%-44s %12s %12s %12.4g\n",
                          order[i] == decision.option ? "  * " : "",
                          InWords(job, choices.counts(order[i])),
                          option.measured > 0 ? absl::StrFormat("%.4g", option.measured) : "",
                          ExpectedOf(option, factor), option.dollars_per_hour);
  }
  if (order.size() > kMostLines)
    absl::StrAppendFormat(&text, "    and %d more\n", order.size() - kMostLines);
  absl::StrAppend(&text, decision.is_change ? "It would change to " : "It stays at ",
                  InWords(job, choices.counts(decision.option)));
  if (std::isfinite(question.goal.seconds))
    absl::StrAppendFormat(&text, "; %.0f s are left until the deadline%s", question.goal.seconds,
                          decision.keeps_deadline ? "" : ", which is not certain to be kept");
  if (std::isfinite(question.goal.dollars))
    absl::StrAppendFormat(&text, "; $%.2f are left of the budget%s", question.goal.dollars,
                          decision.keeps_budget ? "" : ", which does not last");
  absl::StrAppendFormat(&text, "\nchanges so far: %d of %d at most\n", question.state.changes,
                        question.rules.most_changes);
  return text;
}

}  // namespace weft::platform
