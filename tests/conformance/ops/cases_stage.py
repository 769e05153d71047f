# SPDX-License-Identifier: Apache-2.0
"""Staging areas: what one step puts in, a later one takes out."""
import numpy as np

from cases import Step, script, values


@script('Stage', 'Unstage', 'StagePeek', 'StageSize', 'StageClear')
def staging_area(b, types):
    shared = dict(shared_name=b.name('area'), capacity=3)
    area = dict(dtypes=['float32', 'string'], **shared)
    put = [b.op('Stage', [values('float32', [2, k]), np.array(b'text %d' % k, object)], **shared) for k in (1, 2, 3)]
    get, size, clear = b.op('Unstage', **area), b.op('StageSize', **area), b.op('StageClear', **area)
    peek = [b.op('StagePeek', b.hidden(np.int32(k)), **area) for k in (0, 1)]
    short = b.op('Unstage', **dict(area, dtypes=['float32']))
    return [Step(size), Step(put[0]), Step(put[1]), Step(put[2]), Step(size), Step(*peek[1]), Step(*peek[0]), Step(*get), Step(*peek[0]),
            Step(size), Step(put[0]), Step(short, error=True), Step(size), Step(clear), Step(size), Step(put[2]), Step(*get)]


@script('Stage')
def staging_area_of_bytes(b, types):
    area = dict(shared_name=b.name('area'), memory_limit=16)
    large, small = (b.op('Stage', [np.zeros(n, np.float32)], **area) for n in (5, 4))
    return [Step(large, error=True), Step(small), Step(b.op('StageSize', dtypes=['float32'], **area))]
