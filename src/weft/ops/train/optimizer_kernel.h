// SPDX-License-Identifier: Apache-2.0
// The rules of optimizers (ops/optimizer_rule.h), as the files of this folder call them.
#pragma once

#include "weft/ops/optimizer_rule.h"

namespace weft::ops::train {

using rules::abs;
using rules::Bound;
using rules::ComputeType;
using rules::copysign;
using rules::exp;
using rules::FloatAndDouble;
using rules::FloatsAndComplex;
using rules::OptimizerDescription;
using rules::pow;
using rules::RegisterOptimizer;
using rules::Rounded;
using rules::ScalarInput;
using rules::sqrt;
using rules::Update;
using rules::UpdateCall;
using rules::UpdateFunction;
using rules::UpdatesFor;

}  // namespace weft::ops::train
