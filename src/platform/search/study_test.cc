// SPDX-License-Identifier: Apache-2.0
#include "platform/search/study.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "gtest/gtest.h"

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

TEST(StudyTest, AllAlgorithmsGoOnAsIfTheyHadNotBeenStopped) {
  const char* const text = "lr=log(1e-4,1e-1) layers=2..5 o={sgd,adam,ftrl} rate=0.0..1.0/0.25";
  for (const std::string& algorithm : SamplerNames()) {
    const StudyOptions options{.algorithm = algorithm, .maximize = true, .seed = 7};
    const auto whole = NewStudy(text, options);
    auto stopped = NewStudy(text, options);
    const auto objective = [](const SearchTrial& t) { return std::log(t.values[0]) + t.values[2]; };
    for (int i = 0; i < 40; ++i) {
      if (i % 9 == 5) {  // another process takes over
        auto next = NewStudy(text, options);
        for (const SearchTrial& t : stopped->trials()) {
          ASSERT_TRUE(next->Replay(t.values).ok());
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
    const auto study = NewStudy("a=0.0..1.0/0.01 b={x,y}", {.algorithm = algorithm});
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(study->Ask().ok());
    for (int i = 49; i >= 0; --i) {
      ASSERT_TRUE((i % 2 == 0 ? study->Fail(i) : study->Tell(i, i)).ok());
    }
    EXPECT_TRUE(study->Ask().ok()) << algorithm;
    EXPECT_EQ(study->best()->number, 1);
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
