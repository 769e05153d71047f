// SPDX-License-Identifier: Apache-2.0
// Tuples of tensors, one by one and stacked, as queues take and give them.
#pragma once

#include "weft/ops/state/queue_kernel.h"

namespace weft::ops::state {

// The tuple as the only element. InvalidArgument if a shape does not fit the queue.
StatusOr<Queue::Elements> CheckedTuple(const QueueOptions& options, Queue::Element tuple);

// The rows of the components as elements, which share their bytes. InvalidArgument if the
// components have no rows, not equally many, or rows that do not fit the queue.
StatusOr<Queue::Elements> SplitBatch(const QueueOptions& options, Queue::Element components);

// Shape of component i of the stacked elements; each size is the largest of theirs.
Shape BatchShape(const QueueOptions& options, const Queue::Elements& elements, int i);

// Stacks component i of the elements; what they do not cover becomes zero.
void JoinBatch(const Queue::Elements& elements, int i, Tensor* batch);

}  // namespace weft::ops::state
