// SPDX-License-Identifier: Apache-2.0
// Where gradient_test.cc tries each gradient function: away from kinks and poles.
#pragma once

#include <string>
#include <vector>

#include "weft/ops/testing/kernel_runner.h"

namespace weft::ops::testing {

// One op; its inputs of float, double and complex128 are differentiated, the others are constants.
struct GradientCase {
  std::string op;
  std::vector<TestInput> inputs;
  AttrMap attrs = {};
  int num_differentiable = 1;  // inputs that must get a gradient
  std::string note = "";
  int num_outputs = -1;             // whose gradients count; -1: all
  std::vector<int> not_tried = {};  // inputs where differences are no measure
  std::vector<int> outputs = {};    // whose gradients count, if they are not the first
};

std::vector<GradientCase> GradientCases();
// One list a folder.
std::vector<GradientCase> MathGradientCases();
std::vector<GradientCase> ArrayGradientCases();
std::vector<GradientCase> NetworkGradientCases();
std::vector<GradientCase> SparseGradientCases();
std::vector<GradientCase> LinearAlgebraGradientCases();
std::vector<GradientCase> ImageGradientCases();

}  // namespace weft::ops::testing
