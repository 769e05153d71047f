// SPDX-License-Identifier: Apache-2.0
#include "platform/search/study.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <map>
#include <set>

#include "gtest/gtest.h"

#include "platform/search/random_numbers.h"

namespace weft::platform {
namespace {

SearchSpace Space(const char* text) { return ParseSearchSpace(text).value(); }

std::unique_ptr<Study> NewStudy(const char* space, StudyOptions options) {
  return Study::Create(Space(space), options).value();
}

// Branin's function; its least value is 0.397887.
double Branin(double x, double y) {
  const double pi = 3.141592653589793;
  const double a = y - 5.1 / (4 * pi * pi) * x * x + 5 / pi * x - 6;
  return a * a + 10 * (1 - 1 / (8 * pi)) * std::cos(x) + 10;
}

double BestOfBranin(const std::string& algorithm, uint64_t seed, int trials) {
  const auto study = NewStudy("x=-5.0..10.0 y=0.0..15.0", {.algorithm = algorithm, .seed = seed});
  for (int i = 0; i < trials; ++i) {
    const SearchTrial trial = study->Ask().value();
    EXPECT_TRUE(study->Tell(trial.number, Branin(trial.values[0], trial.values[1])).ok());
  }
  return study->best()->objective;
}

double Median(const std::string& algorithm, int trials) {
  std::vector<double> all;
  for (uint64_t seed = 0; seed < 15; ++seed) all.push_back(BestOfBranin(algorithm, seed, trials));
  std::nth_element(all.begin(), all.begin() + 7, all.end());
  return all[7];
}

TEST(StudyTest, AlgorithmsThatLearnFindMoreThanChance) {
  const double chance = Median("random", 60) - 0.397887;
  EXPECT_LT(Median("tpe", 60) - 0.397887, 0.6 * chance);
  EXPECT_LT(Median("bayesian", 60) - 0.397887, 0.2 * chance);
  EXPECT_LT(Median("annealing", 60) - 0.397887, chance);
  EXPECT_LT(Median("cmaes", 120) - 0.397887, 0.6 * chance);
}

// For those that need to know what says how long a trial runs.
const std::map<std::string, std::string> kSettings = {
    {"resource_name", "epochs"}, {"eta", "2"}, {"n_population", "6"}, {"population_size", "6"}};

// Most of the parameters are whole numbers of few values: what is weighed is what would be tried.
TEST(StudyTest, TpeWeighsWholeNumbersAsTheyAreTried) {
  std::string space = "x=-5.0..5.0 y=-5.0..5.0";
  const std::vector<double> best = {1, 3, 2, 9, 0, 1, 6, 4}, last = {1, 3, 7, 15, 1, 3, 7, 15};
  for (size_t i = 0; i < last.size(); ++i) absl::StrAppend(&space, " n", i, "=0..", last[i]);
  std::vector<double> all;
  for (uint64_t seed = 0; seed < 15; ++seed) {
    const auto study = NewStudy(space.c_str(), {.algorithm = "tpe", .seed = seed});
    for (int i = 0; i < 200; ++i) {
      const SearchTrial t = study->Ask().value();
      double loss = std::pow(t.values[0] - 1, 2) + std::pow(t.values[1] + 2, 2);
      for (size_t j = 0; j < best.size(); ++j)
        loss += std::pow(4 * (t.values[j + 2] - best[j]) / last[j], 2);
      ASSERT_TRUE(study->Tell(t.number, loss).ok());
    }
    all.push_back(study->best()->objective);
  }
  std::nth_element(all.begin(), all.begin() + 7, all.end());
  EXPECT_LT(all[7], 0.7);
}

// A pair of whole numbers that is good, but not the best, must not be tried for ever.
TEST(StudyTest, TpeLeavesGoodWholeNumbersForBetterOnes) {
  int stuck = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto study = NewStudy("a=0..15 b=0..7 x=-5.0..5.0", {.algorithm = "tpe", .seed = seed});
    for (int i = 0; i < 120; ++i) {
      const SearchTrial t = study->Ask().value();
      const double loss = std::pow((t.values[0] - 12) / 2, 2) + std::pow(t.values[1] - 3, 2) +
                          std::pow(t.values[2] - 2, 2);
      ASSERT_TRUE(study->Tell(t.number, loss).ok());
    }
    stuck += study->best()->objective > 0.01 ? 1 : 0;
  }
  EXPECT_LE(stuck, 6);
}

// One choice has four parameters more and is a little worse: they must not make it look better, and
// that they have no value with the other choice says nothing of where they are good.
TEST(StudyTest, TpeKnowsWhatAConditionRulesOut) {
  std::vector<double> all;
  int asked = 0, near_the_middle = 0;
  for (uint64_t seed = 0; seed < 15; ++seed) {
    const auto study = NewStudy(
        "z=0.0..1.0 w=0.0..1.0 o={a,b} p=0.0..1.0?o=b q=0.0..1.0?o=b r=0.0..1.0?o=b s=0.0..1.0?o=b",
        {.algorithm = "tpe", .seed = seed});
    for (int i = 0; i < 80; ++i) {
      const SearchTrial t = study->Ask().value();
      const double loss = std::pow(t.values[0] - 0.3, 2) + std::pow(t.values[1] - 0.8, 2);
      ASSERT_TRUE(study->Tell(t.number, loss + 0.01 * t.values[2]).ok());
      if (i < 15 || t.values[2] == 0) continue;
      ++asked;
      near_the_middle += std::abs(t.values[3] - 0.5) < 0.1 ? 1 : 0;
    }
    all.push_back(study->best()->objective);
  }
  std::nth_element(all.begin(), all.begin() + 7, all.end());
  EXPECT_LT(all[7], 0.003);
  EXPECT_GT(asked, 15);
  EXPECT_LT(near_the_middle, 0.45 * asked);  // 0.2 by chance
}

// A stair whose top is wide, and a small place that is better: of what counts right answers.
TEST(StudyTest, ThePlateauOfTheBestDoesNotTakeAllTrials) {
  int found = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const auto study = NewStudy("x=0.0..1.0 y=0.0..1.0", {.algorithm = "bayesian", .seed = seed});
    for (int i = 0; i < 100; ++i) {
      const SearchTrial t = study->Ask().value();
      const double x = t.values[0], y = t.values[1];
      const double height = std::exp(-4 * (std::pow(x - 0.3, 2) + std::pow(y - 0.3, 2)));
      const bool is_better = std::hypot(x - 0.75, y - 0.7) < 0.08;
      ASSERT_TRUE(study->Tell(t.number, is_better ? -1.1 : -std::floor(10 * height) / 10).ok());
    }
    found += study->best()->objective < -1.05 ? 1 : 0;
  }
  EXPECT_GE(found, 7);
}

TEST(StudyTest, FewValuesDoNotTrapTheSearch) {
  for (const char* algorithm : {"tpe", "bayesian"}) {
    std::vector<double> all;
    for (uint64_t seed = 0; seed < 9; ++seed) {
      const auto study =
          NewStudy("x=-5.0..10.0 n=1..3 o={a,b}", {.algorithm = algorithm, .seed = seed});
      for (int i = 0; i < 60; ++i) {
        const SearchTrial t = study->Ask().value();
        const double x = t.values[0] - 2;
        ASSERT_TRUE(study->Tell(t.number, x * x + t.values[1] + t.values[2]).ok());
      }
      all.push_back(study->best()->objective);
    }
    std::nth_element(all.begin(), all.begin() + 4, all.end());
    EXPECT_LT(all[4], 1.2) << algorithm;  // of 1
  }
}

TEST(StudyTest, AllAlgorithmsGoOnAsIfTheyHadNotBeenStopped) {
  const char* const text =
      "lr=log(1e-4,1e-1) layers=2..5 o={sgd,adam,ftrl} rate=0.0..1.0/0.25 epochs=1..8";
  for (const std::string& algorithm : SamplerNames()) {
    const StudyOptions options{
        .algorithm = algorithm, .maximize = true, .seed = 7, .settings = kSettings};
    const auto whole = NewStudy(text, options);
    auto stopped = NewStudy(text, options);
    const auto objective = [](const SearchTrial& t) { return std::log(t.values[0]) + t.values[2]; };
    for (int i = 0; i < 40; ++i) {
      if (i % 9 == 5) {  // another process takes over
        auto next = NewStudy(text, options);
        for (const SearchTrial& t : stopped->trials()) {
          ASSERT_TRUE(next->Replay(t.values, t.parent).ok());
        }
        for (const SearchTrial& t : stopped->trials()) {
          ASSERT_TRUE((t.state == SearchTrial::State::kFailed ? next->Fail(t.number)
                                                              : next->Tell(t.number, t.objective))
                          .ok());
        }
        stopped = std::move(next);
      }
      const SearchTrial a = whole->Ask().value(), b = stopped->Ask().value();
      ASSERT_EQ(a.values, b.values) << algorithm << " at " << i;
      for (Study* study : {whole.get(), stopped.get()}) {
        ASSERT_TRUE((i % 7 == 3 ? study->Fail(i) : study->Tell(i, objective(a))).ok());
      }
    }
  }
}

// Of the processor, for each of `asked` trials after `told` others.
double SecondsOfASuggestion(const std::string& algorithm, int told, int asked) {
  const auto study =
      NewStudy("a=0.0..1.0 b=log(1e-4,1) c=-5.0..5.0 d=1..20 e={x,y,z}", {.algorithm = algorithm});
  const auto objective = [](const SearchTrial& t) {
    return std::abs(t.values[0] - 0.3) + std::abs(std::log(t.values[1])) + t.values[3];
  };
  RandomNumbers random(1, 1);
  for (int i = 0; i < told; ++i) {
    std::vector<double> values;
    for (const SearchParameter& p : study->space().parameters)
      values.push_back(p.FromUnit(random.Uniform()));
    EXPECT_TRUE(study->Replay(std::move(values)).ok());
    EXPECT_TRUE(study->Tell(i, objective(study->trials().back())).ok());
  }
  EXPECT_TRUE(study->Tell(study->Ask()->number, 1).ok());  // what is made once
  const std::clock_t began = std::clock();
  for (int i = 0; i < asked; ++i) {
    const SearchTrial trial = study->Ask().value();
    EXPECT_TRUE(study->Tell(trial.number, objective(trial)).ok());
  }
  return static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC / asked;
}

TEST(StudyTest, SuggestionsTakeLittleTime) {
  const double random = SecondsOfASuggestion("random", 1000, 1000);
  const double tpe = SecondsOfASuggestion("tpe", 1000, 100);
  const double bayesian = SecondsOfASuggestion("bayesian", 1000, 30);
  // From the first one on, with all that asking and telling takes.
  const double thousand = SecondsOfASuggestion("tpe", 0, 1000);
  std::printf(
      "after 1000 trials: random %.3f ms, tpe %.2f ms, bayesian %.1f ms; 1000 of tpe %.2f s\n",
      1e3 * random, 1e3 * tpe, 1e3 * bayesian, 1e3 * thousand);
  EXPECT_LT(random, 0.001);
  EXPECT_LT(tpe, 0.02);
  EXPECT_LT(bayesian, 0.04);  // twice the aim, for processors that are slow or shared
  EXPECT_LT(thousand, 0.002);
}

TEST(StudyTest, AGridIsEveryCombinationOnce) {
  const auto study = NewStudy("a=1..3 b={x,y} c=0.0..1.0", {.algorithm = "grid"});
  std::set<std::vector<double>> seen;
  while (true) {
    const auto trial = study->Ask();
    if (!trial.ok()) {
      EXPECT_EQ(trial.status().code(), absl::StatusCode::kOutOfRange);
      break;
    }
    EXPECT_TRUE(seen.insert(trial->values).second);
  }
  EXPECT_EQ(seen.size(), 3 * 2 * 10);
}

TEST(StudyTest, SobolsPointsFillEachHalfAndQuarterAlike) {
  const auto study =
      NewStudy("a=0.0..1.0 b=0.0..1.0 c=0.0..1.0 d=0.0..1.0", {.algorithm = "sobol"});
  std::vector<std::vector<double>> points;
  for (int i = 0; i < 256; ++i) points.push_back(study->Ask().value().values);
  for (size_t p = 0; p < 4; ++p) {
    int quarters[4] = {};
    for (const auto& point : points) ++quarters[std::min(3, static_cast<int>(4 * point[p]))];
    for (const int count : quarters) EXPECT_NEAR(count, 64, 2);
  }
}

TEST(StudyTest, TrialsRunSideBySideAndMayFail) {
  for (const std::string& algorithm : SamplerNames()) {
    const auto study = NewStudy("a=0.0..1.0/0.01 b={x,y} epochs=1..8",
                                {.algorithm = algorithm, .settings = kSettings});
    // A population asks for no more than its members before they have ended.
    int count = 0;
    while (count < 50 && study->Ask().ok()) ++count;
    EXPECT_TRUE(count == 50 || algorithm == "pbt") << algorithm;
    for (int i = count - 1; i >= 0; --i) {
      ASSERT_TRUE((i % 2 == 0 ? study->Fail(i) : study->Tell(i, i)).ok());
    }
    EXPECT_TRUE(study->Ask().ok()) << algorithm;
    EXPECT_EQ(study->best()->number, 1);
  }
}

// A learning curve: what is good early is good late.
double Curve(const SearchTrial& t) { return std::abs(t.values[0] - 0.3) + 1 / t.values[1]; }

TEST(StudyTest, HalvingGivesMoreToWhatIsPromising) {
  for (const char* algorithm : {"hyperband", "asha", "bohb"}) {
    const auto study =
        NewStudy("x=0.0..1.0 epochs=1..27",
                 {.algorithm = algorithm, .settings = {{"resource_name", "epochs"}}});
    std::map<double, int> at;
    double spent = 0;
    for (int i = 0; i < 120; ++i) {
      const SearchTrial trial = study->Ask().value();
      ++at[trial.values[1]];
      spent += trial.values[1];
      if (trial.parent >= 0) {  // the same configuration with more
        const SearchTrial& parent = study->trials()[static_cast<size_t>(trial.parent)];
        EXPECT_EQ(parent.values[0], trial.values[0]);
        EXPECT_EQ(parent.values[1] * 3, trial.values[1]);
      }
      ASSERT_TRUE(study->Tell(trial.number, Curve(trial)).ok());
    }
    EXPECT_EQ(at.size(), 4) << algorithm;  // 1, 3, 9, 27
    EXPECT_GT(at[1], at[27]) << algorithm;
    EXPECT_GT(at[27], 0) << algorithm;
    EXPECT_LT(spent, 120 * 27 / 2) << algorithm;
    EXPECT_EQ(study->best()->values[1], 27) << algorithm;
    EXPECT_NEAR(study->best()->values[0], 0.3, 0.1) << algorithm;
  }
}

TEST(StudyTest, HyperbandsBracketsAreThoseOfItsPaper) {
  // R = 27, eta = 3, all brackets of table 1: 27, 12, 6 and 4 configurations.
  const auto study =
      NewStudy("x=0.0..1.0 epochs=1..27",
               {.algorithm = "hyperband", .settings = {{"resource_name", "epochs"}}});
  std::map<double, int> fresh, all;
  for (int i = 0; i < 27 + 9 + 3 + 1 + 12 + 4 + 1 + 6 + 2 + 4; ++i) {
    const SearchTrial trial = study->Ask().value();
    ++all[trial.values[1]];
    if (trial.parent < 0) ++fresh[trial.values[1]];
    ASSERT_TRUE(study->Tell(trial.number, Curve(trial)).ok());
  }
  EXPECT_EQ(fresh, (std::map<double, int>{{1, 27}, {3, 12}, {9, 6}, {27, 4}}));
  EXPECT_EQ(all, (std::map<double, int>{{1, 27}, {3, 21}, {9, 13}, {27, 8}}));
}

TEST(StudyTest, APopulationHandsOnWhatIsGood) {
  const auto study = NewStudy(
      "lr=0.0..1.0", {.algorithm = "pbt",
                      .maximize = true,
                      .settings = {{"n_population", "8"}, {"truncation_threshold", "0.25"}}});
  std::vector<double> reached;  // grows by how good the rate is, from where the parent stood
  for (int i = 0; i < 80; ++i) {
    const SearchTrial trial = study->Ask().value();
    const double before = trial.parent < 0 ? 0 : reached[static_cast<size_t>(trial.parent)];
    EXPECT_EQ(trial.parent < 0, i < 8);
    reached.push_back(before + 1 - std::abs(trial.values[0] - 0.6));
    ASSERT_TRUE(study->Tell(trial.number, reached.back()).ok());
  }
  EXPECT_GT(study->best()->objective, 9.3);  // of at most 10
}

TEST(StudyTest, SeveralObjectivesGiveAFront) {
  // Schaffer's function N. 1; its front is x in [0, 2].
  const auto volume = [](const char* algorithm, int trials) {
    const auto study =
        NewStudy("x=-10.0..10.0", {.algorithm = algorithm, .also_maximize = {false}});
    for (int i = 0; i < trials; ++i) {
      const SearchTrial trial = study->Ask().value();
      const double x = trial.values[0];
      EXPECT_TRUE(study->Tell(trial.number, TrialResult{{x * x, (x - 2) * (x - 2)}}).ok());
    }
    std::vector<std::vector<double>> front;
    for (const int64_t number : study->ParetoFront()) {
      const SearchTrial& trial = study->trials()[static_cast<size_t>(number)];
      front.push_back({trial.objective, trial.more_objectives[0]});
    }
    return Hypervolume(front, {4, 4});
  };
  // The whole front has 4 * 4 - 8/3 = 13.33.
  EXPECT_GT(volume("nsga2", 200), 13.0);
  EXPECT_GT(volume("nsga2", 200), volume("random", 200));
}

TEST(StudyTest, HypervolumesByHand) {
  EXPECT_EQ(Hypervolume({{1, 3}, {2, 2}, {3, 1}}, {4, 4}), 6);
  EXPECT_EQ(Hypervolume({{1, 3}, {2, 2}, {3, 1}, {3, 3}, {5, 0}}, {4, 4}), 6);
  EXPECT_EQ(Hypervolume({{1, 1, 1}, {2, 0, 2}}, {3, 3, 3}), 8 + 3 - 2);
  EXPECT_EQ(Hypervolume({}, {1, 1}), 0);
}

TEST(StudyTest, WhatBreaksAConstraintIsWorseThanWhatDoesNot) {
  for (const char* algorithm : {"tpe", "bayesian", "cmaes", "nsga2"}) {
    const auto study = NewStudy("x=0.0..1.0 y=0.0..1.0", {.algorithm = algorithm});
    for (int i = 0; i < 80; ++i) {
      const SearchTrial trial = study->Ask().value();
      // The least sum lies at the origin, where the constraint does not hold.
      const double sum = trial.values[0] + trial.values[1];
      ASSERT_TRUE(study->Tell(trial.number, TrialResult{{sum}, std::max(0.0, 0.8 - sum)}).ok());
    }
    EXPECT_EQ(study->best()->violation, 0) << algorithm;
    EXPECT_LT(study->best()->objective, 0.95) << algorithm;
  }
}

TEST(StudyTest, ParametersMayDependOnOthers) {
  const SearchSpace space =
      Space("o={sgd,adam} momentum=0.5..0.9?o=sgd beta=0.5..0.9?o=adam depth=1..3?o=sgd|adam");
  for (const char* algorithm : {"random", "tpe", "bayesian", "grid"}) {
    const auto study = Study::Create(space, {.algorithm = algorithm}).value();
    for (int i = 0; i < 30; ++i) {
      const SearchTrial trial = study->Ask().value();
      const bool is_sgd = trial.values[0] == 0;
      EXPECT_EQ(std::isnan(trial.values[1]), !is_sgd);
      EXPECT_EQ(std::isnan(trial.values[2]), is_sgd);
      EXPECT_FALSE(std::isnan(trial.values[3]));
      EXPECT_EQ(space.Assign(trial.values).size(), 3);
      const auto again = space.ReadAssignments(space.Assign(trial.values));
      ASSERT_TRUE(again.ok()) << again.status();
      ASSERT_TRUE(study->Tell(trial.number, i).ok());
    }
  }
  EXPECT_FALSE(ParseSearchSpace("a=1..2?b=x b={x,y}").ok());
  EXPECT_FALSE(ParseSearchSpace("b={x,y} a=1..2?b=z").ok());
}

TEST(StudyTest, FirstPointsComeFirst) {
  const auto study =
      NewStudy("a=1..9 b={x,y}", {.algorithm = "tpe", .first_points = {{3, 1}, {7, 0}}});
  EXPECT_EQ(study->Ask().value().values, (std::vector<double>{3, 1}));
  EXPECT_EQ(study->Ask().value().values, (std::vector<double>{7, 0}));
  EXPECT_TRUE(study->Ask().ok());
}

TEST(StudyTest, AcquisitionsAndSettingsAreRead) {
  for (const char* name : {"EI", "PI", "LCB", "gp_hedge"}) {
    const auto study = NewStudy("x=-5.0..10.0 y=0.0..15.0",
                                {.algorithm = "bayesianoptimization",
                                 .settings = {{"acq_func", name}, {"n_initial_points", "5"}}});
    for (int i = 0; i < 40; ++i) {
      const SearchTrial trial = study->Ask().value();
      ASSERT_TRUE(study->Tell(trial.number, Branin(trial.values[0], trial.values[1])).ok());
    }
    EXPECT_LT(study->best()->objective, 1.5) << name;
  }
  for (const StudyOptions& options :
       {StudyOptions{.algorithm = "bayesian", .settings = {{"acq_func", "magic"}}},
        StudyOptions{.algorithm = "tpe", .settings = {{"gamma", "2"}}},
        StudyOptions{.algorithm = "hyperband"},
        StudyOptions{.algorithm = "asha", .settings = {{"resource_name", "none"}}}}) {
    EXPECT_EQ(Study::Create(Space("x=0.0..1.0"), options).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(StudyTest, WhatMakesNoSenseIsRefused) {
  EXPECT_EQ(Study::Create(Space("a=1..2"), {.algorithm = "magic"}).status().code(),
            absl::StatusCode::kNotFound);
  const auto study = NewStudy("a=1..2", {.algorithm = "random"});
  EXPECT_EQ(study->Tell(0, 1).code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(study->Ask().ok());
  EXPECT_TRUE(study->Tell(0, std::nan("")).ok());
  EXPECT_EQ(study->trials()[0].state, SearchTrial::State::kFailed);
  EXPECT_EQ(study->Tell(0, 1).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(study->best(), nullptr);
}

}  // namespace
}  // namespace weft::platform
