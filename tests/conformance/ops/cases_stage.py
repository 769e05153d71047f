# SPDX-License-Identifier: Apache-2.0
"""Staging areas and barriers: what one step puts in, a later one takes out."""
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


@script('Barrier', 'BarrierInsertMany', 'BarrierTakeMany', 'BarrierClose', 'BarrierReadySize', 'BarrierIncompleteSize')
def barrier(b, types):
    handle = b.op('Barrier', component_types=['float32', 'string'], shapes=[[2], []], shared_name=b.name('barrier'))

    def insert(names, component):
        rows = values('float32', [len(names), 2]) if component == 0 else np.array([b'of ' + n for n in names], object)
        return b.op('BarrierInsertMany', handle, np.array(names, object), rows, component_index=component)

    def take(count, **attrs):
        indices, keys, rows = b.op('BarrierTakeMany', handle, b.hidden(np.int32(count)), component_types=['float32', 'string'], **attrs)
        return [indices, keys, *rows]
    sizes = [b.op('BarrierReadySize', handle), b.op('BarrierIncompleteSize', handle)]
    close, cancel = b.op('BarrierClose', handle), b.op('BarrierClose', handle, cancel_pending_enqueues=True)
    return [Step(insert([b'one'], 0)), Step(insert([b'two'], 1)), Step(*sizes), Step(insert([b'one'], 0), error=True),
            Step(insert([b'two'], 0)), Step(insert([b'one'], 1)), Step(*sizes), Step(*take(2)), Step(*sizes),
            Step(insert([b'three'], 0)), Step(insert([b'four'], 0)), Step(insert([b'four'], 1)), Step(close), Step(*sizes),
            Step(insert([b'five'], 0), error=True), Step(*take(3), error=True), Step(*take(3, allow_small_batch=True)),
            Step(insert([b'three'], 1)), Step(*sizes), Step(*take(1)), Step(*take(1), error=True),
            Step(*take(1, allow_small_batch=True), error=True), Step(close, error=True), Step(cancel)]


@script('Barrier')
def barrier_cancelled(b, types):
    handle = b.op('Barrier', component_types=['int32', 'int32'], shapes=[[], []], shared_name=b.name('barrier'))
    first, last = (b.op('BarrierInsertMany', handle, np.array([b'key'], object), np.array([7], np.int32), component_index=k) for k in (0, 1))
    wrong = b.op('BarrierInsertMany', handle, np.array([b'key'], object), np.array([7], np.int32), component_index=2)
    cancel = b.op('BarrierClose', handle, cancel_pending_enqueues=True)
    return [Step(first), Step(wrong, error=True), Step(cancel), Step(b.op('BarrierIncompleteSize', handle)), Step(last, error=True),
            Step(cancel, error=True)]
