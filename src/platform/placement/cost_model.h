// SPDX-License-Identifier: Apache-2.0
// How long an op takes on a device: as measured, where it was; else as learned from ops that were;
// else by what the device's data sheet says.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "platform/placement/boosted_trees.h"
#include "platform/placement/cluster.h"
#include "platform/placement/ridge.h"
#include "platform/placement/step_graph.h"

namespace weft::platform {

// By the roofline model (Williams et al., CACM 2009): what the device's arithmetic and its memory
// allow, of which programs reach about a half and three quarters.
double RooflineSeconds(const StepOp& op, const DeviceProfile& profile);

// Learned in the logarithm of measured over roofline: ridge regression over sizes, of all ops and
// then of those of the op's name; then gradient-boosted trees over what is left. Thread-compatible.
class CostModel {
 public:
  // Knows data sheets alone.
  CostModel() = default;
  // From ops of steps that were measured on `measured_on`; those without a time are passed over.
  static CostModel Fit(const std::vector<const StepGraph*>& steps,
                       const DeviceProfile& measured_on);

  // Of an op whose own time was not measured, or is not to be used.
  double Predict(const StepOp& op, const DeviceProfile& profile) const;
  // Its own time where there is one, brought over to `profile`.
  double Seconds(const StepOp& op, const DeviceProfile& profile) const;

  bool is_fitted() const { return is_fitted_; }
  const DeviceProfile& measured_on() const { return measured_on_; }
  void set_measured_on(DeviceProfile profile) { measured_on_ = std::move(profile); }

 private:
  double LogCorrection(const StepOp& op) const;
  RidgeFeatures SizesOf(const StepOp& op) const;
  double Linear(const StepOp& op) const;

  bool is_fitted_ = false;
  DeviceProfile measured_on_ = CpuProfile(1, 0);
  RidgeFeatures common_ = {};  // of all ops
  std::map<std::string, RidgeFeatures> by_op_;
  BoostedTrees trees_;
  double smearing_ = 1;  // the mean is more than the exponential of the logarithm's mean
};

// Of a model that never saw the step: fitted without it, asked about it.
struct HeldOutError {
  std::string step;
  int ops = 0;
  double op_error = 0;             // mean absolute error of an op's time, in parts of it
  double weighted_op_error = 0;    // the same weighted by time: what of the step is mispredicted
  double step_error = 0;           // of the sum over its ops
  double roofline_step_error = 0;  // the same by data sheets alone
};
// One for each step, in their order; with one step alone, a fifth of its ops at a time. Ops of less
// than `least_seconds` count for the step, but not for the error of an op: a clock of microseconds
// says nothing of them.
std::vector<HeldOutError> CrossValidate(const std::vector<const StepGraph*>& steps,
                                        const DeviceProfile& measured_on, double least_seconds);

}  // namespace weft::platform
