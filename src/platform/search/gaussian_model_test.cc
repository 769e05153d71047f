// SPDX-License-Identifier: Apache-2.0
#include "platform/search/gaussian_model.h"

#include <cmath>

#include "gtest/gtest.h"

#include "platform/search/descent.h"
#include "platform/search/random_numbers.h"

namespace weft::platform {
namespace {

constexpr size_t kDimensions = 3;  // of which the last is a choice

double Wavy(const Position& p) { return std::sin(6 * p[0]) + p[1] * p[1] + (p[2] > 0.5 ? 1 : 0); }

class GaussianModelTest : public ::testing::Test {
 protected:
  void Add(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      points_.push_back(
          {random_.Uniform(), random_.Uniform(), random_.Uniform() < 0.5 ? 0.25 : 0.75});
      values_.push_back(Wavy(points_.back()));
    }
  }
  std::vector<const Position*> Positions() const {
    std::vector<const Position*> positions;
    for (const Position& p : points_) positions.push_back(&p);
    return positions;
  }

  RandomNumbers random_{3, 0};
  std::vector<Position> points_;
  std::vector<double> values_;
  GaussianModel model_{{false, false, true}};
};

TEST_F(GaussianModelTest, LearnsAFunctionFromFewPoints) {
  Add(60);
  model_.SetShape(model_.FindShape(Positions(), values_));
  model_.SetPoints(Positions(), values_);
  for (int i = 0; i < 50; ++i) {
    const Position p = {random_.Uniform(), random_.Uniform(), i % 2 == 0 ? 0.25 : 0.75};
    const Prediction found = model_.At(p);
    EXPECT_NEAR(found.mean, Wavy(p), 0.15);
    EXPECT_LT(std::abs(found.mean - Wavy(p)), 6 * found.deviation + 0.01);
  }
  // Where it was tried it knows.
  EXPECT_NEAR(model_.At(points_[7]).mean, values_[7], 0.01);
  EXPECT_LT(model_.At(points_[7]).deviation, 0.05);
}

TEST_F(GaussianModelTest, WhatGrowsIsWhatWouldBeMadeAnew) {
  Add(21);
  const KernelShape shape{{0.3, 0.5, 0.7}, 1e-4};
  model_.SetShape(shape);
  model_.SetPoints(Positions(), values_);
  Add(16);
  model_.SetPoints(Positions(), values_);
  std::vector<double> others = values_;
  for (double& v : others) v *= 2;
  model_.SetPoints(Positions(), others);
  model_.SetPoints(Positions(), values_);
  GaussianModel anew({false, false, true});
  anew.SetShape(shape);
  anew.SetPoints(Positions(), values_);
  const std::vector<Prediction> together = anew.AtEach(points_);
  for (size_t i = 0; i < points_.size(); ++i) {
    EXPECT_EQ(model_.At(points_[i]).mean, anew.At(points_[i]).mean);
    EXPECT_NEAR(together[i].mean, anew.At(points_[i]).mean, 1e-9);
    EXPECT_NEAR(together[i].deviation, anew.At(points_[i]).deviation, 1e-5);
  }
}

TEST_F(GaussianModelTest, SlopesAreThoseOfThePredictions) {
  Add(30);
  model_.SetShape({{0.4, 0.6, 0.8}, 1e-3});
  model_.SetPoints(Positions(), values_);
  constexpr double kStep = 1e-6;
  for (int i = 0; i < 10; ++i) {
    const Position p = {random_.Uniform(), random_.Uniform(), 0.25};
    PredictionSlope slope;
    (void)model_.At(p, &slope);
    for (size_t d = 0; d + 1 < kDimensions; ++d) {
      Position above = p, below = p;
      above[d] += kStep;
      below[d] -= kStep;
      const Prediction a = model_.At(above), b = model_.At(below);
      EXPECT_NEAR(slope.mean[d], (a.mean - b.mean) / (2 * kStep), 1e-4);
      EXPECT_NEAR(slope.deviation[d], (a.deviation - b.deviation) / (2 * kStep), 1e-4);
    }
    EXPECT_EQ(slope.mean[2], 0);
  }
}

TEST_F(GaussianModelTest, PointsOnTopOfEachOtherAreTaken) {
  Add(4);
  for (int i = 0; i < 40; ++i) {
    points_.push_back(points_[0]);
    values_.push_back(i % 2);
  }
  model_.SetShape(model_.FindShape(Positions(), values_));
  model_.SetPoints(Positions(), values_);
  EXPECT_NEAR(model_.At(points_[0]).mean, 0.5, 0.2);
}

TEST(CholeskyFactorTest, SolvesWhatItFactored) {
  constexpr size_t kSize = 37;
  RandomNumbers random(5, 0);
  std::vector<std::vector<double>> a(kSize, std::vector<double>(kSize));
  for (size_t i = 0; i < kSize; ++i) {
    for (size_t j = 0; j <= i; ++j) a[i][j] = a[j][i] = random.Normal();
    a[i][i] += 30;
  }
  CholeskyFactor factor;
  for (const size_t end : {size_t{10}, size_t{11}, kSize}) {
    factor.Reserve(end);
    for (size_t i = factor.size(); i < end; ++i) std::copy_n(a[i].begin(), i + 1, factor.row(i));
    ASSERT_TRUE(factor.Factor(end));
  }
  std::vector<double> x(kSize), b(kSize, 0);
  for (double& v : x) v = random.Normal();
  for (size_t i = 0; i < kSize; ++i) {
    for (size_t j = 0; j < kSize; ++j) b[i] += a[i][j] * x[j];
  }
  std::vector<double> solved = b;
  factor.SolveLower(solved.data());
  factor.SolveUpper(solved.data());
  const SquareMatrix inverse = factor.Inverse();
  for (size_t i = 0; i < kSize; ++i) {
    double through = 0;
    for (size_t j = 0; j < kSize; ++j) through += inverse.at(i, j) * b[j];
    EXPECT_NEAR(solved[i], x[i], 1e-9);
    EXPECT_NEAR(through, x[i], 1e-9);
  }
  factor.Truncate(3);
  factor.row(3)[0] = factor.row(3)[1] = factor.row(3)[2] = 50;
  factor.row(3)[3] = 1;
  EXPECT_FALSE(factor.Factor(4));
  EXPECT_EQ(factor.size(), 3u);
}

TEST(DescentTest, FindsTheEndOfAValleyAndStaysInside) {
  const auto rosenbrock = [](const std::vector<double>& x, std::vector<double>* slope) {
    const double a = x[1] - x[0] * x[0], b = 1 - x[0];
    *slope = {-400 * a * x[0] - 2 * b, 200 * a};
    return 100 * a * a + b * b;
  };
  std::vector<double> x = {-1.2, 1};
  EXPECT_LT(Descend(rosenbrock, {-2, -2}, {2, 2}, 200, &x), 1e-6);
  EXPECT_NEAR(x[0], 1, 1e-2);
  x = {-1.2, 0.2};
  (void)Descend(rosenbrock, {-2, -2}, {0.5, 2}, 200, &x);
  EXPECT_EQ(x[0], 0.5);
  EXPECT_NEAR(x[1], 0.25, 1e-3);
  int asked = 0;
  x = {-1.2, 1};
  (void)Descend([&](const auto& at, auto* slope) { return ++asked, rosenbrock(at, slope); },
                {-2, -2}, {2, 2}, 7, &x);
  EXPECT_LE(asked, 7);
}

}  // namespace
}  // namespace weft::platform
