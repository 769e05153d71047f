# SPDX-License-Identifier: Apache-2.0
"""Queues handed over by name."""
import numpy as np

from cases import Step, script


@script('FakeQueue')
def fake_queue(b, types):
    queue = b.op('FIFOQueueV2', component_types=['int32'], capacity=3, shared_name=b.name('q'))
    names = b.op('FakeQueue', queue)
    return [Step(b.op('QueueEnqueue', names, [np.int32(4)])), Step(b.op('QueueSizeV2', queue)),
            Step(b.op('QueueDequeue', names, component_types=['int32']))]
