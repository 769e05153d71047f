// SPDX-License-Identifier: Apache-2.0
#include "platform/placement/scale.h"

#include <cmath>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "platform/placement/price_file.h"
#include "platform/placement/scale_law.h"
#include "platform/placement/scale_simulation.h"

namespace weft::platform {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// 1, 2, 4 and 8 workers at a dollar each, of which the later ones bring less.
std::vector<ScaleOption> Options() {
  return {{.workers = 1, .dollars_per_hour = 1, .predicted = 100},
          {.workers = 2, .dollars_per_hour = 2, .predicted = 190},
          {.workers = 4, .dollars_per_hour = 4, .predicted = 340},
          {.workers = 8, .dollars_per_hour = 8, .predicted = 500}};
}

ScaleDecision Decide(const std::vector<ScaleOption>& options, const ScaleGoal& goal,
                     const ScaleState& state = {}) {
  const StatusOr<ScaleDecision> decision = DecideScale(options, goal, state);
  EXPECT_EQ(decision.status(), absl::OkStatus());
  return decision.ok() ? *decision : ScaleDecision();
}

TEST(DecideScale, TakesTheCheapestThatIsCertainToKeepTheDeadline) {
  EXPECT_EQ(Decide(Options(), {.examples = 360'000}).option, 0u);
  // An hour at 100 a second, which may be only 70.
  EXPECT_EQ(Decide(Options(), {.examples = 360'000, .seconds = 3600 / 0.69}).option, 0u);
  EXPECT_EQ(Decide(Options(), {.examples = 360'000, .seconds = 3600 / 0.71}).option, 1u);
  const ScaleDecision late = Decide(Options(), {.examples = 360'000, .seconds = 800});
  EXPECT_EQ(late.option, 3u);
  EXPECT_FALSE(late.keeps_deadline);
  EXPECT_THAT(late.reason, HasSubstr("not certain to be kept"));
}

TEST(DecideScale, WhatWasMeasuredWins) {
  std::vector<ScaleOption> options = Options();
  options[0].measured = 50;
  const ScaleGoal goal = {.examples = 360'000, .seconds = 3600 / 0.69};
  const ScaleDecision decision = Decide(options, goal, {.current = 0, .since_change = 60});
  EXPECT_TRUE(decision.is_change);
  EXPECT_FALSE(decision.is_saving);
  EXPECT_EQ(options[decision.option].workers, 2);
  EXPECT_NEAR(decision.seconds, 60 + 360'000 / 95., 1) << "the others are half as fast too";
}

TEST(DecideScale, TheBudgetComesBeforeTheDeadline) {
  const ScaleDecision decision =
      Decide(Options(), {.examples = 360'000, .seconds = 900, .dollars = 1.1});
  EXPECT_EQ(decision.option, 1u);
  EXPECT_TRUE(decision.keeps_budget);
  EXPECT_FALSE(decision.keeps_deadline);
  const ScaleDecision poor = Decide(Options(), {.examples = 360'000, .dollars = 0.5});
  EXPECT_EQ(poor.option, 0u);
  EXPECT_THAT(poor.reason, HasSubstr("0.5 $ more than the budget, and nothing is cheaper"));
}

TEST(DecideScale, MoreAsLongAsTheyBringEnough) {
  ScaleGoal goal = {.examples = 360'000, .objective = ScaleGoal::Objective::kTime};
  goal.least_gain = 0.5;  // the fifth to eighth bring 40 a dollar
  EXPECT_EQ(Decide(Options(), goal).option, 2u);
  goal.least_gain = 0.3;
  EXPECT_EQ(Decide(Options(), goal).option, 3u);
}

TEST(DecideScale, SavesSeldomAndOnlyWhatIsWorthIt) {
  std::vector<ScaleOption> options = Options();
  options[3].measured = 500;
  const ScaleGoal goal = {.examples = 3.6e6};
  EXPECT_TRUE(Decide(options, goal, {.current = 3, .since_change = 700}).is_saving);
  EXPECT_FALSE(Decide(options, goal, {.current = 3, .since_change = 500}).is_change);
  EXPECT_FALSE(Decide(options, goal, {.current = 3, .since_change = 700, .savings = 4}).is_change);
  options[1].measured = 190;
  EXPECT_FALSE(Decide(options, goal, {.current = 1, .since_change = 700}).is_change)
      << "5% are not worth a change";
}

TEST(DecideScale, RefusesWhatIsNoNumber) {
  EXPECT_FALSE(DecideScale({}, {.examples = 1}, {}).ok());
  EXPECT_FALSE(DecideScale({{.workers = 1}}, {.examples = 1}, {}).ok());
  EXPECT_FALSE(DecideScale(Options(), {.examples = NAN}, {}).ok());
  EXPECT_FALSE(DecideScale(Options(), {.examples = 1}, {.current = 9}).ok());
}

// Trainings of several kinds: how well they scale, how long they are, how hurried, and how far off
// predictions are, are drawn. Rates follow the universal scalability law (Gunther, 1993).
std::vector<ScaleJob> DrawJobs(int count, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto draw = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  std::vector<ScaleJob> jobs;
  for (int i = 0; i < count; ++i) {
    ScaleJob job{.name = absl::StrCat("job-", i)};
    const double contention = draw(0.005, 0.15), crosstalk = draw(0, 0.002);
    const double first = std::exp(draw(2, 7)), off = draw(0.8, 1.25);
    for (const int n : {1, 2, 3, 4, 6, 8, 12, 16}) {
      const double rate = first * n / (1 + contention * (n - 1) + crosstalk * n * (n - 1));
      job.rates.push_back(rate);
      job.options.push_back(
          {.workers = n, .dollars_per_hour = 3.0 * n, .predicted = rate * off * draw(0.95, 1.05)});
    }
    job.goal.examples = first * 3600 * std::exp(draw(0, 3));
    // From that of the fastest count to more than that of one worker.
    const double fastest = *std::max_element(job.rates.begin(), job.rates.end());
    const double least = job.goal.examples / fastest, most = job.goal.examples / first;
    job.goal.seconds = least * 1.02 + draw(0, 1.3) * (most - least);
    jobs.push_back(std::move(job));
  }
  return jobs;
}

TEST(SimulateScaling, IsCheaperThanFixedCountsAndKeepsWhatOneKeeps) {
  for (const uint64_t seed : {1, 2, 3}) {
    ScaleSimulationOptions options;
    options.seed = seed;
    const StatusOr<ScaledMix> mix = SimulateScaling(DrawJobs(200, seed), options);
    ASSERT_TRUE(mix.ok()) << mix.status();
    EXPECT_THAT(mix->missed, IsEmpty()) << FormatScaling(*mix);
    EXPECT_LE(mix->dollars, 0.8 * mix->MostInTime()->dollars) << FormatScaling(*mix);
    EXPECT_LE(mix->DollarsPerModel(), 0.9 * mix->BestFixed()->DollarsPerModel())
        << FormatScaling(*mix);
    EXPECT_LE(mix->most_changes, ScaleRules().most_changes);
  }
}

TEST(SimulateScaling, NoisyMeasurementsDoNotMakeCountsFlap) {
  ScaleSimulationOptions options;
  options.noise = 0.3;  // three times what is reckoned with
  const StatusOr<ScaledMix> mix = SimulateScaling(DrawJobs(100, 9), options);
  ASSERT_TRUE(mix.ok()) << mix.status();
  EXPECT_LE(mix->most_changes, options.rules.most_changes) << FormatScaling(*mix);
}

TEST(ParseScaleJobs, NamesWhatIsWrong) {
  const auto error = [](const std::string& text) {
    return std::string(ParseScaleJobs(text, "jobs.json").status().message());
  };
  EXPECT_THAT(error("[]"), HasSubstr("jobs.json: expected an object"));
  EXPECT_THAT(error(R"({"format":"weft.dev/scaling","version":2})"), HasSubstr("of version 2"));
  const std::string begin = R"({"format":"weft.dev/scaling","version":1,"prices":{"a":1},"jobs":[)";
  EXPECT_THAT(error(begin + "]}"), HasSubstr(".jobs: there are none"));
  EXPECT_THAT(error(begin + R"({"name":"x","examples":0}]})"),
              HasSubstr("jobs.json.jobs[0].examples"));
  EXPECT_THAT(
      error(begin + R"({"name":"x","examples":1,"options":[{"kind":"b","workers":1,"rate":1}]}]})"),
      HasSubstr("there is no price of 'b'"));
  const auto jobs = ParseScaleJobs(
      begin +
          R"({"name":"x","examples":10,"options":[{"kind":"a","workers":2,"servers":1,"rate":5}]}]})",
      "jobs.json");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  EXPECT_EQ(jobs->front().options.front().dollars_per_hour, 3);
  EXPECT_EQ(RunFixed(jobs->front(), 0).seconds, 2);
  const std::string with =
      R"({"name":"x","examples":10,"options":[{"kind":"a","workers":2,"servers":1,"server_kind":)";
  EXPECT_THAT(error(begin + with + R"("b","rate":5}]}]})"), HasSubstr("server_kind: there is no"));
}

// The same jobs with one, two and four servers, of which more help those that wait for them.
TEST(SimulateScaling, ServersFollowTheirGainAsWorkersDo) {
  std::vector<ScaleJob> jobs = DrawJobs(200, 4);
  std::mt19937_64 random(4);
  for (ScaleJob& job : jobs) {
    const double part = std::exp(std::uniform_real_distribution<double>(-5, -1)(random));
    ScaleJob with{.name = job.name, .goal = job.goal};
    for (size_t i = 0; i < job.options.size(); ++i) {
      for (const int servers : {1, 2, 4}) {
        ScaleOption option = job.options[i];
        const double slower = 1 + part * option.workers / servers;
        option.servers = servers;
        option.dollars_per_hour += servers;
        option.predicted /= slower;
        with.options.push_back(option);
        with.rates.push_back(job.rates[i] / slower);
      }
    }
    const double fastest = *std::max_element(with.rates.begin(), with.rates.end());
    with.goal.seconds = std::max(with.goal.seconds, 1.1 * job.goal.examples / fastest);
    job = std::move(with);
  }
  const StatusOr<ScaledMix> mix = SimulateScaling(jobs, {});
  ASSERT_TRUE(mix.ok()) << mix.status();
  EXPECT_EQ(mix->fixed.size(), 24u);
  EXPECT_THAT(mix->missed, IsEmpty()) << FormatScaling(*mix);
  EXPECT_LE(mix->dollars, 0.8 * mix->MostInTime()->dollars) << FormatScaling(*mix);
  EXPECT_LE(mix->most_changes, ScaleRules().most_changes);
  EXPECT_THAT(FormatScaling(*mix), HasSubstr("workers+servers"));
}

TEST(ScaleLaw, TellsServersFromWorkers) {
  const auto rate = [](double workers, double load) {
    return 50 * workers / (1 + 0.1 * (workers - 1) + 0.5 * workers * load);
  };
  const auto ratio = [](const ScaleLaw& law) { return law.Rate(8, 0.5) / law.Rate(4, 1); };
  const double truth = rate(8, 0.5) / rate(4, 1);
  std::vector<MeasuredScale> measured;
  for (const auto& [workers, load] : {std::pair(1., 1.), std::pair(4., 1.), std::pair(4., 0.5)})
    measured.push_back({workers, load, rate(workers, load)});
  EXPECT_NEAR(ratio(ScaleLaw(measured, 1)) / truth, 1, 0.05);
  // Of one load alone: fewer places cost nothing, more take away what workers lose.
  measured.pop_back();
  const ScaleLaw hopeful(measured, 1);
  EXPECT_NEAR(hopeful.Rate(4, 1) / hopeful.Rate(1, 1), rate(4, 1) / rate(1, 1), 0.05);
  EXPECT_GT(ratio(hopeful), truth);
  const ScaleLaw of_half(measured, 0.5);
  EXPECT_EQ(of_half.Rate(4, 1), of_half.Rate(4, 0.5));
}

TEST(ParsePrices, TakesItsVersionAndPlainOnes) {
  const auto plain = ParsePrices(R"({"a": 1.5})", "p");
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->at("a"), 1.5);
  const auto file =
      ParsePrices(R"({"format": "weft.dev/prices", "version": 1, "hourly": {"a": 2}})", "p");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->at("a"), 2);
  const auto message = [](const char* text) {
    return std::string(ParsePrices(text, "p").status().message());
  };
  EXPECT_THAT(message(R"({"format": "weft.dev/prices", "version": 7, "hourly": {}})"),
              HasSubstr("price file of version 7, this weft reads 1"));
  EXPECT_THAT(message(R"({"format": "weft.dev/costs", "version": 1})"), HasSubstr("p: format:"));
  EXPECT_THAT(message(R"({"a": -1})"), HasSubstr("a price is 0 or more"));
  EXPECT_THAT(message(R"({"a": "x"})"), HasSubstr("p: a"));
}

}  // namespace
}  // namespace weft::platform
