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


def _map(prefix):
    def staging_map(b, types):
        shared = dict(shared_name=b.name('map'), capacity=3)
        whole = dict(dtypes=['float32', 'string', 'int64'], **shared)
        texts = np.array([b'a', b'b'], object)

        def put(key, indices, rows):
            return b.op(prefix + 'Stage', np.int64(key), b.hidden(np.array(indices, np.int32)), rows, **whole)

        def get(op, indices, *key):
            dtypes = [whole['dtypes'][i] for i in indices]
            out = b.op(prefix + op, *key, b.hidden(np.array(indices, np.int32)), **dict(whole, dtypes=dtypes))
            return list(out) if op != 'UnstageNoKey' else [out[0], *out[1]]
        row = [values('float32', [2, 3]), texts, np.int64(7)]
        size = [b.op(prefix + 'Size', **whole), b.op(prefix + 'IncompleteSize', **whole)]
        bad = [b.op(prefix + 'Peek', np.int64(1), b.hidden(np.array(i, np.int32)), **dict(whole, dtypes=['float32', 'string']))
               for i in ([1, 0], [0, 3], [-1, 0])]
        return [Step(*size), Step(put(4, [0, 1, 2], row)), Step(*size), Step(put(9, [1], row[1:2])), Step(*size),
                Step(put(9, [1], row[1:2]), error=True), Step(put(9, [0, 2], [row[0], row[2]])), Step(*size),
                Step(*get('Peek', [0, 1, 2], np.int64(9))), Step(*get('Unstage', [1], np.int64(9))), Step(*size),
                Step(*get('Unstage', [1, 2], np.int64(9)), error=True), Step(*get('Peek', [0, 2], np.int64(9))),
                Step(*get('Unstage', [0, 2], np.int64(9))), Step(*size), Step(*get('UnstageNoKey', [0, 1, 2])), Step(*size),
                Step(put(1, [0, 1, 2], row)), Step(*size), Step(bad[0], error=True), Step(bad[1], error=True),
                Step(bad[2], error=True), Step(put(2, [2], row[2:])), Step(*size), Step(b.op(prefix + 'Clear', **whole)), Step(*size)]
    staging_map.__name__ = prefix
    return staging_map


for _prefix in 'Map', 'OrderedMap':
    script(_prefix + 'Stage', *(_prefix + _op for _op in ('Unstage', 'UnstageNoKey', 'Peek', 'Size', 'IncompleteSize', 'Clear')))(
        _map(_prefix))


@script('MapStage')
def staging_map_of_bytes(b, types):
    area = dict(shared_name=b.name('map'), memory_limit=16, dtypes=['float32'])
    large, small = (b.op('MapStage', np.int64(n), np.array([0], np.int32), [np.zeros(n, np.float32)], **area) for n in (5, 4))
    return [Step(large, error=True), Step(small), Step(b.op('MapSize', **area))]
