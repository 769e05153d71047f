// SPDX-License-Identifier: Apache-2.0
// Several elements as one, with a dimension more.
#pragma once

#include <vector>

#include "weft/data/dataset.h"

namespace weft::data {

// Component by component, elements one below the other. InvalidArgument if their shapes differ.
StatusOr<Element> StackElements(const std::vector<Element>& elements);

// The spec of batches of `size` elements of `spec`; -1: not known.
ElementSpec BatchedSpec(const ElementSpec& spec, int64_t size);
// How many batches `n` elements make.
int64_t BatchCardinality(int64_t n, int64_t size, bool drops_remainder);

}  // namespace weft::data
