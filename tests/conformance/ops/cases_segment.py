# SPDX-License-Identifier: Apache-2.0
"""Counting, ranking and sums over segments."""
import numpy as np

from cases import Case, cases, is_float, numpy_type, types_for, values


@cases('UnsortedSegmentSum', 'UnsortedSegmentMax', 'UnsortedSegmentMin', 'UnsortedSegmentProd')
def unsorted_segments(op, types):
    name, index, count = types['T'], numpy_type(types['Tindices']), numpy_type(types['Tnumsegments'])
    low, high = (1, 2) if op.endswith('Prod') else (-4, 4)
    for shape, ids, n in ([4], [0, 2, 0, 1], 3), ([4, 3], [1, 1, 1, 0], 2), ([4, 2, 3], [0, 3, 3, 0], 5), ([0, 3], [], 2), (
            [3], [-1, 0, 1], 2), ([2, 3], [[0, 1, 0], [1, 1, 0]], 2), ([2], [0, 1], 2):
        yield Case([values(name, shape, low, high), np.array(ids, index), np.array(n, count)])
    yield Case([values(name, [300, 7], low, high), np.arange(300).astype(index) % 11, np.array(11, count)])
    yield Case([values(name, [2]), np.array([0, 5], index), np.array(3, count)], error=True)
    yield Case([values(name, [2]), np.array([0, 1, 2], index), np.array(3, count)], error=True)
    yield Case([values(name, [2]), np.array([0, 1], index), np.array(-1, count)], error=True)


@cases('SegmentSum', 'SegmentMean', 'SegmentProd', 'SegmentMax', 'SegmentMin')
def segments(op, types):
    name, index = types['T'], numpy_type(types['Tindices'])
    low, high = (1, 2) if op.endswith('Prod') else (-4, 4)
    for shape, ids in ([4], [0, 0, 1, 2]), ([4, 3], [0, 1, 1, 1]), ([3], [0, 2, 2]), ([5, 2, 2], [1, 1, 3, 3, 3]), ([0], []):
        yield Case([values(name, shape, low, high), np.array(ids, index)])
    for ids in [1, 0], [0], [-1, 0]:
        yield Case([values(name, [2]), np.array(ids, index)], error=True)


_SPARSE = ['SparseSegmentSum', 'SparseSegmentMean', 'SparseSegmentSqrtN']


@cases(*_SPARSE, *(op + 'WithNumSegments' for op in _SPARSE))
def sparse_segments(op, types):
    name, index, segment = types['T'], numpy_type(types['Tidx']), numpy_type(types['Tsegmentids'])
    counted = op.endswith('WithNumSegments')

    def case(shape, indices, ids, count=None, **kind):
        more = [np.array(count if count is not None else max(ids, default=-1) + 1, numpy_type(types['Tnumsegments']))] if counted else []
        return Case([values(name, shape, 0, 4), np.array(indices, index), np.array(ids, segment)] + more, **kind)
    yield case([5], [4, 0, 0], [0, 0, 1])
    yield case([4, 3], [1, 3, 1, 2, 0], [0, 2, 2, 2, 4])
    yield case([3, 2, 2], [2, 1], [1, 1], 4)
    yield case([3, 2], [], [], 2)
    yield case([40, 7], np.arange(120) % 37, np.sort(np.arange(120) % 5))
    yield case([3, 2], [0, 3], [0, 1], error=True)
    yield case([3, 2], [0, -1], [0, 1], error=True)
    yield case([3, 2], [0, 1], [1, 0], 2, error=True)
    yield case([3, 2], [0, 1], [-1, 0], error=True)
    yield case([3, 2], [0, 1, 2], [0, 1], error=True)
    if counted:
        yield case([3, 2], [0, 1], [0, 3], 2, error=True)


@cases(*(op + version for op in _SPARSE for version in ('Grad', 'GradV2')))
def sparse_segment_gradients(op, types):
    name, index, segment = types['T'], numpy_type(types['Tidx']), numpy_type(types['Tsegmentids'])

    def case(shape, indices, ids, rows, **kind):
        return Case([values(name, shape), np.array(indices, index), np.array(ids, segment), np.int32(rows)], **kind)
    yield case([2], [4, 0, 0], [0, 0, 1], 5)
    yield case([5, 3], [1, 3, 1, 2, 0], [0, 2, 2, 2, 4], 4)
    yield case([2, 2, 2], [2, 1], [1, 1], 3)
    yield case([2, 2], [0, 3], [0, 1], 3, error=True)
    yield case([2, 2], [0, 1], [0, 2], 3, error=True)


def distinct(name, shape):
    """No two alike, so that ranks have one answer."""
    x = np.random.RandomState(3).permutation(int(np.prod(shape))) - (0 if name[0] == 'u' else 20)
    return x.astype(numpy_type(name)).reshape(shape)


@cases('TopKV2')
def top_k(op, types):
    name = types['T']
    attrs = {'index_type': types['index_type']}
    for shape, k in ([9], 3), ([4, 6], 1), ([4, 6], 6), ([2, 3, 5], 2), ([100], 40), ([3, 5], 0):
        yield Case([distinct(name, shape), np.array(k, numpy_type(types['Tk']))], attrs)
    yield Case([np.array([1, 3, 3, 2, 3]).astype(numpy_type(name)), np.array(2, numpy_type(types['Tk']))], attrs)
    for x, k in ([3], 4), ([3], -1), ([], 1):
        yield Case([values(name, x), np.array(k, numpy_type(types['Tk']))], attrs, error=True)


types_for('Tk', ['int32'], 'TopKV2')
types_for('index_type', ['int32', 'int64'], 'TopKV2')


@cases('NthElement')
def nth_element(op, types):
    name = types['T']
    for shape, n in ([9], 3), ([4, 6], 0), ([4, 6], 5):
        yield Case([values(name, shape), np.array(n, np.int32)])
        yield Case([values(name, shape), np.array(n, np.int32)], {'reverse': True})
    for n in 6, -1:
        yield Case([values(name, [6]), np.array(n, np.int32)], error=True)


@cases('Bincount')
def bincount(op, types):
    for weights in [], [8]:
        yield Case([np.array([0, 1, 1, 3, 3, 3, 9, 2], np.int32), np.array(5, np.int32), values(types['T'], weights) if weights else
                    np.zeros([0], numpy_type(types['T']))])
    yield Case([np.array([0, -1], np.int32), np.array(5, np.int32), np.zeros([0], numpy_type(types['T']))], error=True)
    yield Case([np.array([0, 1], np.int32), np.array(-1, np.int32), np.zeros([0], numpy_type(types['T']))], error=True)


@cases('DenseBincount')
def dense_bincount(op, types):
    index, name = numpy_type(types['Tidx']), types['T']
    nothing = np.zeros([0], numpy_type(name))
    for x in np.array([0, 1, 1, 3, 7]), np.array([[0, 1, 1], [3, 3, 2]]):
        yield Case([x.astype(index), np.array(5, index), nothing])
        yield Case([x.astype(index), np.array(5, index), values(name, x.shape)])
        yield Case([x.astype(index), np.array(5, index), nothing], {'binary_output': True})
    yield Case([np.array([0, -1], index), np.array(5, index), nothing], error=True)


@cases('SparseSegmentSum', 'SparseSegmentMean', 'SparseSegmentSqrtN')
def sparse_segments(op, types):
    name, index, segment = types['T'], numpy_type(types['Tidx']), numpy_type(types['Tsegmentids'])
    for shape, ids, segments_ in ([5, 2], [0, 4, 1], [0, 0, 1]), ([5], [1, 1, 3], [0, 1, 3]), ([5, 3], [], []):
        yield Case([values(name, shape), np.array(ids, index), np.array(segments_, segment)])
    yield Case([values(name, [5, 2]), np.array([5], index), np.array([0], segment)], error=True)
    yield Case([values(name, [5, 2]), np.array([0, 1], index), np.array([1, 0], segment)], error=True)
