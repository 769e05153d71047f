// SPDX-License-Identifier: Apache-2.0
#include "platform/placement/cost_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace weft::platform {
namespace {

constexpr double kFlopsReached = 0.5;
constexpr double kBandwidthReached = 0.75;
constexpr double kLeastSeconds = 1e-7;
// The penalty on what is an op's own: as much weight as some seen ones have.
constexpr double kShrinkage = 0.03;

double Product(const RidgeFeatures& a, const RidgeFeatures& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

TreeFeatures FeaturesOf(const StepOp& op, double linear) {
  const double flops = std::log1p(op.flops);
  const double bytes = std::log1p(op.bytes);
  return {flops,         bytes,
          flops - bytes, std::log1p(op.output_bytes),
          linear,        static_cast<double>(op.inputs.size())};
}

// Long ops make the step; the clock counts microseconds, so that short ones are mostly noise.
double WeightOf(double seconds) { return 0.05 + seconds / (seconds + 20e-6); }

double Relative(double predicted, double measured) {
  return measured > 0 ? std::abs(predicted - measured) / measured : 0;
}

}  // namespace

double RooflineSeconds(const StepOp& op, const DeviceProfile& profile) {
  if (op.flops <= 0 && op.bytes <= 0) return profile.overhead * 0.25;
  return profile.overhead + std::max(op.flops / (kFlopsReached * profile.flops),
                                     op.bytes / (kBandwidthReached * profile.bytes_per_second));
}

CostModel CostModel::Fit(const std::vector<const StepGraph*>& steps,
                         const DeviceProfile& measured_on) {
  CostModel model;
  model.measured_on_ = measured_on;
  std::vector<std::pair<const StepOp*, double>> measured;
  Ridge common;
  for (const StepGraph* step : steps) {
    for (const StepOp& op : step->ops) {
      if (op.seconds < 0) continue;
      const double target =
          std::log(std::max(op.seconds, kLeastSeconds) / RooflineSeconds(op, measured_on));
      measured.emplace_back(&op, target);
      common.Add(model.SizesOf(op), target, WeightOf(op.seconds));
    }
  }
  if (measured.empty()) return model;
  model.is_fitted_ = true;
  model.common_ = common.Solve(0.1);
  std::map<std::string, Ridge> by_op;
  for (const auto& [op, target] : measured) {
    const RidgeFeatures sizes = model.SizesOf(*op);
    by_op[op->op].Add(sizes, target - Product(model.common_, sizes), WeightOf(op->seconds));
  }
  for (const auto& [name, ridge] : by_op) model.by_op_[name] = ridge.Solve(kShrinkage);
  std::vector<TreeExample> examples;
  for (const auto& [op, target] : measured) {
    const double linear = model.Linear(*op);
    examples.push_back({FeaturesOf(*op, linear), target - linear, WeightOf(op->seconds)});
  }
  model.trees_.Fit(examples, {});
  double sum = 0;
  double predicted = 0;
  for (const auto& [op, target] : measured) {
    sum += op->seconds;
    predicted += model.Predict(*op, measured_on);
  }
  if (predicted > 0 && sum > 0) model.smearing_ = std::clamp(sum / predicted, 0.5, 2.0);
  return model;
}

// How far the op's roofline is above the least an op takes, and how much it computes for a byte.
RidgeFeatures CostModel::SizesOf(const StepOp& op) const {
  return {1, std::log(RooflineSeconds(op, measured_on_) / measured_on_.overhead) / 4,
          (std::log1p(op.flops) - std::log1p(op.bytes)) / 4};
}

double CostModel::Linear(const StepOp& op) const {
  const RidgeFeatures sizes = SizesOf(op);
  const auto found = by_op_.find(op.op);
  return Product(common_, sizes) + (found == by_op_.end() ? 0 : Product(found->second, sizes));
}

double CostModel::LogCorrection(const StepOp& op) const {
  if (!is_fitted_) return 0;
  const double linear = Linear(op);
  return std::clamp(linear + trees_.Predict(FeaturesOf(op, linear)), -7.0, 7.0);
}

double CostModel::Predict(const StepOp& op, const DeviceProfile& profile) const {
  const double roofline = RooflineSeconds(op, profile);
  // What was learned of kernels for CPUs says nothing of those for GPUs.
  if (profile.is_gpu != measured_on_.is_gpu) return roofline;
  return roofline * std::exp(LogCorrection(op)) * smearing_;
}

double CostModel::Seconds(const StepOp& op, const DeviceProfile& profile) const {
  if (op.seconds < 0) return Predict(op, profile);
  const double there = RooflineSeconds(op, measured_on_);
  const double here = RooflineSeconds(op, profile);
  if (profile.is_gpu != measured_on_.is_gpu) return here;
  return op.seconds * here / there;
}

std::vector<HeldOutError> CrossValidate(const std::vector<const StepGraph*>& steps,
                                        const DeviceProfile& measured_on, double least_seconds) {
  std::vector<HeldOutError> errors;
  constexpr int kFolds = 5;
  for (const StepGraph* step : steps) {
    HeldOutError error = {.step = step->name};
    std::vector<const StepGraph*> others;
    for (const StepGraph* other : steps) {
      if (other != step) others.push_back(other);
    }
    double measured = 0;
    double predicted = 0;
    double by_roofline = 0;
    double weighted = 0;
    const int folds = others.empty() ? kFolds : 1;
    for (int fold = 0; fold < folds; ++fold) {
      StepGraph seen = *step;
      for (int i = 0; i < seen.num_ops(); ++i) {
        if (folds == 1 || i % folds == fold) seen.ops[i].seconds = -1;
      }
      const CostModel model = CostModel::Fit(
          others.empty() ? std::vector<const StepGraph*>{&seen} : others, measured_on);
      for (int i = 0; i < step->num_ops(); ++i) {
        const StepOp& op = step->ops[i];
        if (op.seconds < 0 || (folds > 1 && i % folds != fold)) continue;
        const double seconds = model.Predict(op, measured_on);
        measured += op.seconds;
        predicted += seconds;
        by_roofline += RooflineSeconds(op, measured_on);
        if (op.seconds < least_seconds) continue;
        ++error.ops;
        error.op_error += Relative(seconds, op.seconds);
        weighted += std::abs(seconds - op.seconds);
      }
    }
    if (error.ops > 0) error.op_error /= error.ops;
    error.weighted_op_error = measured > 0 ? weighted / measured : 0;
    error.step_error = Relative(predicted, measured);
    error.roofline_step_error = Relative(by_roofline, measured);
    errors.push_back(std::move(error));
  }
  return errors;
}

}  // namespace weft::platform
