# SPDX-License-Identifier: Apache-2.0
"""Maps from tensors to tensors."""
import numpy as np

from cases import Step, script, types_for, values

types_for('key_dtype', ['float32', 'int64', 'bool', 'complex128'], 'TensorMapInsert')
types_for('value_dtype', ['float32', 'string', 'int8'], 'TensorMapInsert')


@script('TensorMapInsert', 'TensorMapLookup', 'TensorMapErase', 'TensorMapHasKey', 'TensorMapSize', 'TensorMapStackKeys', 'EmptyTensorMap')
def tensor_map(b, types):
    key, value = types['key_dtype'], types['value_dtype']
    one, two, wide = values(key, [], key=1), values(key, [2], key=2), values(key, [2, 3], key=3)
    rows = [values(value, [3], key=k) for k in range(3)]
    empty = b.op('EmptyTensorMap')
    first = b.op('TensorMapInsert', empty, one, rows[0])
    second = b.op('TensorMapInsert', first, two, rows[1])
    third = b.op('TensorMapInsert', second, one, rows[2])
    erased = b.op('TensorMapErase', third, b.hidden(two), value_dtype=value)

    def look(of, at):
        return b.op('TensorMapLookup', of, b.hidden(at), value_dtype=value)

    def keys(of):
        return b.op('TensorMapStackKeys', of, key_dtype=key)
    sizes = [b.op('TensorMapSize', m) for m in (empty, first, second, third, erased)]
    has = [b.op('TensorMapHasKey', m, b.hidden(k)) for m in (empty, second, erased) for k in (one, two, wide)]
    other = 'int32' if value != 'int32' else 'int64'
    return [Step(*sizes), Step(*has), Step(look(first, one), look(third, one), look(third, two)), Step(look(first, two), error=True),
            Step(look(erased, two), error=True), Step(keys(first), keys(erased)), Step(keys(empty), error=True),
            Step(keys(second), error=True), Step(b.op('TensorMapErase', empty, one, value_dtype=value).op, error=True),
            Step(b.op('TensorMapLookup', first, one, value_dtype=other), error='any')]


@script('EmptyTensorMap', 'AddN')
def sums_of_maps(b, types):
    def made(*pairs):
        at = b.op('EmptyTensorMap')
        for key, value in pairs:
            at = b.op('TensorMapInsert', at, np.int64(key), np.float32(value))
        return at
    total = b.op('AddN', [made((1, 2), (3, 4)), made((3, 10), (5, 6))])
    looks = [b.op('TensorMapLookup', m, np.int64(k), value_dtype='float32') for m, k in ((total, 1), (total, 3), (total, 5))]
    return [Step(*looks), Step(b.op('TensorMapSize', total))]
