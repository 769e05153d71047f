// SPDX-License-Identifier: Apache-2.0
// A number by which a pipeline is told from others.
#pragma once

#include "weft/data/dataset.h"

namespace weft::ops::pipeline {

// Equal for pipelines of the same ops, attributes, constants and functions, whoever made them.
// Resources do not count.
StatusOr<uint64_t> FingerprintOf(const weft::data::Dataset& dataset);

}  // namespace weft::ops::pipeline
