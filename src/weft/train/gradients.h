// SPDX-License-Identifier: Apache-2.0
// Symbolic gradients under the names that programs use.
#pragma once

#include "weft/gradients/gradients.h"

namespace weft::train {

using gradients::AddDenseGradients;
using gradients::AddGradients;
using gradients::Densify;

}  // namespace weft::train
