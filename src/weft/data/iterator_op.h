// SPDX-License-Identifier: Apache-2.0
// What the ops of iterators have in common.
#pragma once

#include <string>

#include "weft/data/dataset_op.h"
#include "weft/data/iterator_resource.h"

namespace weft::data {

// The iterator that input `input` leads to.
StatusOr<Ref<IteratorResource>> IteratorOf(const KernelContext& c, int input);
// The one that a handle names.
StatusOr<Ref<IteratorResource>> FindIterator(const KernelContext& c, const ResourceHandle& handle);
// Iterators that go with their kernels are found by their names, which are unique in the process,
// as long as they are there. A kernel may go after its device, so that the device does not hold
// them.
void RememberPrivateIterator(const std::string& name, Ref<IteratorResource> iterator);
void ForgetPrivateIterator(const std::string& name);
// output_types and output_shapes, where the op has them.
StatusOr<ElementSpec> SpecOfAttrs(const KernelConstruction& k);

}  // namespace weft::data
