# SPDX-License-Identifier: Apache-2.0
"""Crossed columns by hash and in ragged tensors, parts of sparse tensors, additions at places."""
import numpy as np

from cases import Case, Step, cases, numpy_type, script, types_for, values

AT = np.array([[0, 0], [0, 1], [2, 0]], np.int64)
SIZES = np.array([3, 2], np.int64)
WORDS = np.array([b'a', b'weft', b'x' * 40], object)
NUMBERS = np.array([5, -7, 2**40], np.int64)


@script('SparseCrossHashed')
def hashed(b, types):
    made = []
    for values_ in WORDS, NUMBERS:
        for buckets in 0, 100:
            for strong in False, True:
                rest = [np.int64(buckets), np.bool_(strong), np.array([3, 2**50], np.int64)]
                made += b.op('SparseCrossHashed', [AT, AT], [b.hidden(values_), b.hidden(WORDS)], [SIZES, SIZES],
                             [b.hidden(np.array([[b'p', b'q'], [b'r', b's'], [b't', b'u']], object))], *rest)
                if not strong:  # TensorFlow reads the number as an address
                    made += b.op('SparseCrossHashed', [AT], [b.hidden(values_)], [SIZES], [b.hidden(values('int64', [3, 2]))], *rest)
    wrong = b.op('SparseCrossHashed', [AT], [b.hidden(WORDS)], [SIZES], [], np.int64(3), np.bool_(True), b.hidden(np.array([1], np.int64)))
    return [Step(*made), Step(wrong[0], error=True)]


@script('RaggedCross')
def ragged(b, types):
    made = []
    splits = types['out_row_splits_type']
    for hashed in False, True:
        attrs = dict(hashed_output=hashed, num_buckets=50 if hashed else 0, hash_key=956888297470,
                     out_values_type='int64' if hashed else 'string', out_row_splits_type=splits)
        ragged_values = [b.hidden(values('string', [4])), b.hidden(values('int64', [3]))]
        row_splits = [b.hidden(np.array(s, numpy_type(splits))) for s in ([0, 2, 3, 4], [0, 0, 2, 3])]
        dense = [b.hidden(values('int64', [3, 2]))]
        for order in 'RRSD', 'DSRR':
            made += b.op('RaggedCross', ragged_values, row_splits, [AT], [b.hidden(WORDS)], [SIZES], dense, input_order=order, **attrs)
        made += b.op('RaggedCross', ragged_values[:1], row_splits[:1], [], [], [], dense, input_order='RD', **attrs)
    bad = np.array([0, 2, 3, 5], numpy_type(splits))
    wrong = [b.op('RaggedCross', ragged_values[:1], [b.hidden(bad)], [], [], [], dense, input_order='RD', **attrs)[0],
             b.op('RaggedCross', ragged_values[:1], [b.hidden(bad[:2])], [], [], [], dense, input_order='RD', **attrs)[0]]
    return [Step(*made)] + [Step(one, error=True) for one in wrong]


types_for('T', ['float32', 'string', 'int64', 'bool'], 'SparseSplit')


@cases('SparseSplit')
def sparse_split(op, types):
    at = np.array([[0, 0], [0, 6], [1, 3], [2, 1], [2, 2], [2, 5]], np.int64)
    x = [at, values(types['T'], [6]), np.array([3, 7], np.int64)]
    for parts in 1, 2, 3:
        for axis in 0, 1, -1:
            yield Case([np.int64(axis)] + x, {'num_split': parts})
    yield Case([np.int64(1)] + x, {'num_split': 5})
    yield Case([np.int64(0)] + x, {'num_split': 4}, error=True)
    yield Case([np.int64(2)] + x, {'num_split': 1}, error=True)


types_for('T', ['float32', 'float64', 'float16', 'complex64', 'int32', 'uint8', 'int64'], 'ScatterNdNonAliasingAdd')


@cases('ScatterNdNonAliasingAdd')
def scatter_add(op, types):
    name, index = types['T'], numpy_type(types['Tindices'])
    yield Case([values(name, [5]), np.array([[1], [3], [1]], index), values(name, [3], key=1)])
    yield Case([values(name, [4, 3]), np.array([[2], [0]], index), values(name, [2, 3], key=1)])
    yield Case([values(name, [4, 3]), np.array([[2, 1], [0, 0]], index), values(name, [2], key=1)])
    yield Case([values(name, [5]), np.array([[5]], index), values(name, [1])], error=True)
    yield Case([values(name, [5]), np.array([[1]], index), values(name, [2])], error=True)
