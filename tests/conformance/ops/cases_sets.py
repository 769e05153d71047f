# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of sparse tensors, their reductions, and sets: tf.metrics and the linear parts of models."""
import numpy as np

from cases import Case, cases, nonzero, numpy_type, values
from cases_sparse import EMPTY, INDICES, SHAPE, SHUFFLED, longs

OTHER = longs([0, 0], [0, 3], [3, 4], [4, 5])


def _magnitude(dtype):
    return {'complex64': 'float32', 'complex128': 'float64'}.get(dtype, dtype)


def _threshold(dtype, value):
    return np.array(value, numpy_type(_magnitude(dtype)))


@cases('SparseAdd')
def add(op, types):
    dtype = types['T']
    a = [INDICES, values(dtype, [4]), SHAPE]
    b = [OTHER, values(dtype, [4], key=1), SHAPE]
    none = [EMPTY, values(dtype, [0]), SHAPE]
    attrs = {'Treal': _magnitude(dtype)}  # TensorFlow misreads others
    for one, two in (a, b), (b, a), (a, none), (none, a), (none, none), (a, a):
        for threshold in 0, 2:
            yield Case(one + two + [_threshold(dtype, threshold)], attrs)
    yield Case(a + [OTHER, values(dtype, [4]), longs(5, 7), _threshold(dtype, 0)], attrs, error=True)
    yield Case(a + [OTHER, values(dtype, [3]), SHAPE, _threshold(dtype, 0)], attrs, error=True)
    yield Case(a + b + [_threshold(dtype, [0])], attrs, error=True)


@cases('SparseAddGrad')
def add_grad(op, types):
    both = longs([0, 0], [0, 1], [0, 3], [2, 0], [3, 4], [4, 5])
    yield Case([values(types['T'], [6]), INDICES, OTHER, both])
    yield Case([values(types['T'], [2]), INDICES, OTHER, both[1:3]])
    yield Case([values(types['T'], [0]), EMPTY, EMPTY, EMPTY])
    yield Case([values(types['T'], [5]), INDICES, OTHER, both], error=True)
    yield Case([values(types['T'], [6]), INDICES, longs([0]), both], error=True)


@cases('SparseSparseMaximum', 'SparseSparseMinimum')
def extreme(op, types):
    dtype = types['T']
    a, b = [INDICES, values(dtype, [4]), SHAPE], [OTHER, values(dtype, [4], key=1), SHAPE]
    none = [EMPTY, values(dtype, [0]), SHAPE]
    for one, two in (a, b), (b, a), (a, none), (none, none):
        yield Case(one + two)
    yield Case(a + [OTHER, values(dtype, [4]), longs(5, 7)], error=True)


@cases('SparseTensorDenseAdd')
def dense_add(op, types):
    dtype, index = types['T'], numpy_type(types['Tindices'])
    dense = values(dtype, SHAPE, key=2)
    for indices in INDICES, SHUFFLED, EMPTY, INDICES[[0, 0, 1]]:
        yield Case([indices.astype(index), values(dtype, [len(indices)]), SHAPE.astype(index), dense])
    yield Case([np.array([[0, 6]], index), values(dtype, [1]), SHAPE.astype(index), dense], error=True)
    yield Case([INDICES.astype(index), values(dtype, [4]), SHAPE.astype(index), dense[:4]], error=True)
    yield Case([INDICES.astype(index), values(dtype, [3]), SHAPE.astype(index), dense], error=True)


@cases('SparseReduceSum', 'SparseReduceMax', 'SparseReduceSumSparse', 'SparseReduceMaxSparse')
def reduce(op, types):
    dtype = types['T']
    cube = [longs([0, 1, 0], [0, 1, 2], [1, 0, 1], [1, 1, 2], [1, 2, 0]), values(dtype, [5]), longs(2, 3, 4)]
    for keep in False, True:
        for axes in [0], [1], [-1], [0, 2], [2, 1], [0, 1, 2], []:
            yield Case(cube + [np.array(axes, np.int32)], {'keep_dims': keep})
        yield Case(cube + [np.array(1, np.int32)], {'keep_dims': keep})
        yield Case([EMPTY, values(dtype, [0]), SHAPE, np.array([0], np.int32)], {'keep_dims': keep})
    yield Case(cube + [np.array([3], np.int32)], error=True)
    yield Case(cube + [np.array([-4], np.int32)], error=True)


@cases('SparseSoftmax')
def softmax(op, types):
    dtype = types['T']
    yield Case([INDICES, values(dtype, [4]), SHAPE])
    yield Case([longs([0, 0, 1], [0, 0, 3], [0, 2, 0], [1, 0, 0], [1, 0, 2]), values(dtype, [5]), longs(2, 3, 4)])
    yield Case([EMPTY, values(dtype, [0]), SHAPE])
    yield Case([longs([0], [2]), values(dtype, [2]), longs(4)], error=True)


@cases('SparseDenseCwiseAdd', 'SparseDenseCwiseMul', 'SparseDenseCwiseDiv')
def dense_cwise(op, types):
    dtype = types['T']
    for shape in [5, 6], [6], [5, 1], [1, 6], []:
        yield Case([INDICES, values(dtype, [4]), SHAPE, nonzero(dtype, shape)])
    yield Case([EMPTY, values(dtype, [0]), SHAPE, nonzero(dtype, [6])])
    yield Case([INDICES, values(dtype, [4]), SHAPE, nonzero(dtype, [5])], error=True)
    yield Case([INDICES, values(dtype, [4]), SHAPE, nonzero(dtype, [1, 5, 6])], error=True)


_SETS = [longs([0, 0], [0, 1], [1, 0], [1, 2], [3, 0]), longs(4, 3)]
_OTHERS = [longs([0, 0], [1, 0], [1, 1], [2, 1]), longs(4, 2)]


def _members(dtype, count, key=0):
    return values(dtype, [count], 0, 3, key)


@cases('DenseToDenseSetOperation', 'DenseToSparseSetOperation', 'SparseToSparseSetOperation')
def combine(op, types):
    dtype = types['T']
    dense = values(dtype, [4, 3], 0, 3)
    sparse = [_OTHERS[0], _members(dtype, 4, 1), _OTHERS[1]]
    given = {'DenseToDense': [dense, values(dtype, [4, 2], 0, 3, key=1)], 'DenseToSparse': [dense] + sparse,
             'SparseToSparse': [_SETS[0], _members(dtype, 5), _SETS[1]] + sparse}[op[:-len('SetOperation')]]
    for operation in 'a-b', 'b-a', 'intersection', 'union':
        for validate in True, False:
            yield Case(given, {'set_operation': operation, 'validate_indices': validate})
    if op.startswith('Dense'):
        yield Case([dense[:3]] + given[1:], {'set_operation': 'union'}, error=True)
        yield Case([dense[0]] + given[1:], {'set_operation': 'union'}, error=True)
    if op != 'DenseToDenseSetOperation':
        bad = given[:-3] + [_OTHERS[0][[1, 0, 2, 3]]] + given[-2:]
        yield Case(bad, {'set_operation': 'union'}, error=True)


@cases('SetSize')
def size(op, types):
    dtype = types['T']
    yield Case([_SETS[0], _members(dtype, 5), _SETS[1]])
    yield Case([EMPTY, _members(dtype, 0), SHAPE])
    yield Case([longs([0, 0, 0], [0, 1, 0], [0, 1, 1]), _members(dtype, 3), longs(2, 2, 2)])
    yield Case([_SETS[0][[1, 0, 2, 3, 4]], _members(dtype, 5), _SETS[1]], error=True)
