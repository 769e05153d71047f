# SPDX-License-Identifier: Apache-2.0
"""Ragged tensors: rows of numbers, filled up, as sparse ones, gathered, in variants."""
import numpy as np

from cases import Case, Step, cases, numpy_type, script, types_for, values

PLAIN = ['float32', 'int64', 'string', 'bool']
types_for('T', PLAIN, 'RaggedTensorToTensor', 'RaggedTensorToSparse')
types_for('Tvalues', PLAIN, 'RaggedGather', 'RaggedTensorToVariant')


@cases('RaggedRange')
def ragged_range(op, types):
    number = numpy_type(types['T'])
    attrs = {'Tsplits': types['Tsplits']}

    def vector(*items):
        return np.array(items, number)
    yield Case([vector(0, 5, 8), vector(3, 5, 12), vector(1, 1, 2)], attrs)
    yield Case([vector(9, 3), vector(2, 7), vector(-3, -1)], attrs)
    yield Case([number.type(1), vector(2, 5, 0), number.type(1)], attrs)
    yield Case([number.type(0), number.type(5), number.type(2)], attrs)
    yield Case([vector(), vector(), vector()], attrs)
    yield Case([vector(0, 1), vector(3, 4), vector(1, 0)], attrs, error=True)
    yield Case([vector(0, 1), vector(3), vector(1)], attrs, error=True)
    yield Case([vector(0).reshape([1, 1]), vector(3), vector(1)], attrs, error=True)


@cases('RaggedTensorToTensor')
def to_tensor(op, types):
    name, index, shape = types['T'], numpy_type(types['Tindex']), numpy_type(types['Tshape'])
    data, default = values(name, [7]), values(name, [], key=1)
    splits, ids, inner = np.array([0, 2, 2, 5, 7], index), np.array([0, 0, 2, 2, 2, 3, 3], index), np.array([0, 1, 3, 3, 7], index)
    first = np.array(4, index)
    for wanted in -1, [-1, -1], [4, 3], [3, 2], [6, 5], [-1, 2]:
        wanted = np.array(wanted, shape)
        yield Case([wanted, data, default, [splits]], {'row_partition_types': ['ROW_SPLITS']})
        yield Case([wanted, data, default, [first, ids]], {'row_partition_types': ['FIRST_DIM_SIZE', 'VALUE_ROWIDS']})
    every = np.array(-1, shape)
    two = {'row_partition_types': ['ROW_SPLITS', 'ROW_SPLITS']}
    yield Case([every, data, default, [np.array([0, 1, 4], index), inner]], two)
    yield Case([np.array([2, 2, 3], shape), data, default, [np.array([0, 1, 4], index), inner]], two)
    yield Case([every, values(name, [7, 2]), default, [splits]], {'row_partition_types': ['ROW_SPLITS']})
    yield Case([every, values(name, [7, 2]), values(name, [2], key=2), [splits]], {'row_partition_types': ['ROW_SPLITS']})
    yield Case([np.array([-1, -1, -1], shape), data, default, [splits]], {'row_partition_types': ['ROW_SPLITS']}, error=True)


@cases('RaggedTensorToSparse')
def to_sparse(op, types):
    name, index = types['T'], numpy_type(types['Tsplits'])
    one, two = np.array([0, 2, 2, 5], index), np.array([0, 1, 3, 3, 4, 7], index)
    yield Case([[one], values(name, [5])], {'RAGGED_RANK': 1})
    yield Case([[one, two], values(name, [7])], {'RAGGED_RANK': 2})
    yield Case([[one], values(name, [5, 2])], {'RAGGED_RANK': 1})
    yield Case([[np.array([0, 0], index)], values(name, [0])], {'RAGGED_RANK': 1})
    yield Case([[np.array([1, 5], index)], values(name, [5])], {'RAGGED_RANK': 1}, error=True)
    yield Case([[one], values(name, [4])], {'RAGGED_RANK': 1}, error=True)


@cases('RaggedGather')
def gather(op, types):
    name, index, splits = types['Tvalues'], numpy_type(types['Tindices']), numpy_type(types['Tsplits'])
    one, two = np.array([0, 2, 2, 5], splits), np.array([0, 1, 3, 3, 4, 7], splits)
    for indices in [2, 0, 1, 2], [[0, 2], [1, 1]], []:
        indices = np.array(indices, index)
        extra = max(0, indices.ndim - 1)
        yield Case([[one], values(name, [5, 2]), indices], {'OUTPUT_RAGGED_RANK': 1 + extra})
        yield Case([[one, two], values(name, [7]), indices], {'OUTPUT_RAGGED_RANK': 2 + extra})
    for row in 0, 1, 2:
        yield Case([[one], values(name, [5, 2]), np.array(row, index)], {'OUTPUT_RAGGED_RANK': 0})
        yield Case([[one, two], values(name, [7]), np.array(row, index)], {'OUTPUT_RAGGED_RANK': 1})
    yield Case([[one], values(name, [5]), np.array([3], index)], {'OUTPUT_RAGGED_RANK': 1}, error=True)
    yield Case([[one], values(name, [5]), np.array([-1], index)], {'OUTPUT_RAGGED_RANK': 1}, error=True)


@script('RaggedTensorToVariant', 'RaggedTensorFromVariant')
def variants(b, types):
    name, index = types['Tvalues'], numpy_type(types['Tsplits'])
    one, two = np.array([0, 2, 2, 5], index), np.array([0, 1, 3, 3, 4, 7], index)

    def encoded(splits, value, by_rows):
        return b.op('RaggedTensorToVariant', [b.hidden(s) for s in splits], b.hidden(value), batched_input=by_rows)

    def decoded(variant, held, levels, dtype=name):
        splits, value = b.op('RaggedTensorFromVariant', variant, input_ragged_rank=held, output_ragged_rank=levels, Tvalues=dtype,
                             Tsplits=types['Tsplits'])
        return list(splits) + [value]
    nested = [one, two]
    good = [*decoded(encoded(nested, values(name, [7]), False), 2, 2), *decoded(encoded(nested, values(name, [7]), True), 1, 2),
            *decoded(encoded(nested, values(name, [7]), True), -1, 2), *decoded(encoded([one], values(name, [5, 2]), True), 0, 1)]
    wrong = [decoded(encoded(nested, values(name, [7]), True), 2, 3)[0],
             decoded(encoded([one], values(name, [5]), True), 0, 1, 'int32')[1],
             decoded(encoded([np.array([0, 9], index)], values(name, [5]), True), 0, 1)[0]]
    return [Step(*good)] + [Step(x, error=True) for x in wrong]
