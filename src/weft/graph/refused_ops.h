// SPDX-License-Identifier: Apache-2.0
// Ops of TensorFlow's registry that are not here, and why.
#pragma once

#include "absl/strings/string_view.h"

namespace weft {

// Why a graph with this op is refused; empty for what TensorFlow has no op of that name for, or
// what is here.
absl::string_view WhyRefused(absl::string_view op);

}  // namespace weft
