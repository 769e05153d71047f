# SPDX-License-Identifier: Apache-2.0
"""Updates of rows and elements by every rule, and the rarer ops on variables."""
import numpy as np

from cases import ALL_TYPES, Step, numpy_type, script, types_for, values

types_for('dtype', ALL_TYPES, 'TemporaryVariable', 'ResourceGatherNd')


def hole(b, name):
    return b.op('Placeholder', dtype=name, shape=None)


@script('ResourceCountUpTo')
def resource_count_up_to(b, types):
    handle, init, read = b.variable(np.array(1, numpy_type(types['T'])), ref=False)
    count = b.op('ResourceCountUpTo', handle, limit=2, T=types['T'])
    return [Step(init), Step(count), Step(read), Step(count, error=True)]


@script('TemporaryVariable', 'DestroyTemporaryVariable')
def temporary(b, types):
    name = types['dtype']
    first = b.op('TemporaryVariable', shape=[2], dtype=name, var_name='t')
    value = hole(b, name)
    end = b.op('DestroyTemporaryVariable', b.op('Assign', first, value), var_name='t')
    wrong = b.op('DestroyTemporaryVariable', b.op('Assign', first, value), var_name='u')
    twice = b.op('Assign', b.op('TemporaryVariable', shape=[2], dtype=name, var_name='t'), value)
    feeds = {value: values(name, [2])}
    return [Step(end, feeds=feeds), Step(end, feeds=feeds), Step(wrong, feeds=feeds, error=True),
            Step(b.op('Assign', first, value), twice, feeds=feeds, error=True)]


def scatter(op, ref):
    @script(op)
    def rows(b, types):
        name, index = types['T' if ref else 'dtype'], numpy_type(types['Tindices'])
        handle, init, read = b.variable(values(name, [4, 3]), ref=ref)
        flat, init_flat, read_flat = b.variable(values(name, [5]), ref=ref)
        scalar, init_scalar, _ = b.variable(values(name, []), ref=ref)
        indices, updates = hole(b, types['Tindices']), hole(b, name)
        update, update_flat, wrong = (b.op(op, v, indices, updates) for v in (handle, flat, scalar))
        if ref:
            update, update_flat, wrong = update.op, update_flat.op, wrong.op

        def feeds(i, *shape):
            x = values(name, shape, key=2)
            if 'Div' in op:
                x = np.where(x == 0, np.ones([], x.dtype), x).astype(x.dtype)
            return {indices: np.array(i, index), updates: x}

        steps = [Step(init, init_flat, init_scalar), Step(update, feeds=feeds([2, 0], 2, 3)), Step(read),
                 Step(update, feeds=feeds([[1], [3]], 2, 1, 3)), Step(read),
                 Step(update_flat, feeds=feeds([4, 4, 0], 3)), Step(read_flat),
                 Step(update_flat, feeds=feeds(2)), Step(read_flat), Step(update, feeds=feeds([], 0, 3)), Step(read),
                 Step(update, feeds=feeds([1, 3])), Step(read)]
        # By handle TensorFlow reads past the end of updates whose rows are too short.
        for bad in [([4], 1, 3), ([-1], 1, 3), ([0], 3), ([0, 1], 1, 3)] + ([([0], 1, 2)] if ref else []):
            steps.append(Step(update, feeds=feeds(*bad), error=True))
        steps.append(Step(wrong, feeds=feeds([0], 1), error=True))
        return steps + [Step(read)]


for rule in 'Mul', 'Div', 'Min', 'Max':
    scatter('Scatter' + rule, True)
    scatter('ResourceScatter' + rule, False)


def scatter_nd(op, ref):
    @script(op)
    def elements(b, types):
        name, index = types['T'], numpy_type(types['Tindices'])
        handle, init, read = b.variable(values(name, [4, 3]), ref=ref)
        flat, init_flat, read_flat = b.variable(values(name, [5]), ref=ref)
        indices, updates = hole(b, types['Tindices']), hole(b, name)
        update, update_flat = (b.op(op, v, indices, updates) for v in (handle, flat))
        if ref:
            update, update_flat = update.op, update_flat.op

        def feeds(i, *shape):
            return {indices: np.array(i, index), updates: values(name, shape, key=2)}

        steps = [Step(init, init_flat), Step(update, feeds=feeds([[2], [0]], 2, 3)), Step(read),
                 Step(update, feeds=feeds([[1, 0], [3, 2]], 2)), Step(read),
                 Step(update, feeds=feeds([[[1, 1]], [[3, 0]]], 2, 1)), Step(read),
                 Step(update_flat, feeds=feeds([[4], [4], [0]], 3)), Step(read_flat),
                 Step(update, feeds=feeds(np.zeros([0, 1]), 0, 3)), Step(read)]
        for bad in ([[4]], 1, 3), ([[-1]], 1, 3), ([[0, 3]], 1), ([[0]], 1, 2), ([[0, 1, 0]], 1), (0, 1):
            steps.append(Step(update, feeds=feeds(*bad), error=True))
        return steps + [Step(read)]


for rule in 'Update', 'Add', 'Sub', 'Min', 'Max':
    scatter_nd('ScatterNd' + rule, True)
    scatter_nd('ResourceScatterNd' + rule, False)


@script('ResourceGatherNd')
def resource_gather_nd(b, types):
    name, index = types['dtype'], numpy_type(types['Tindices'])
    handle, init, _ = b.variable(values(name, [4, 3]), ref=False)
    indices = hole(b, types['Tindices'])
    slices = b.op('ResourceGatherNd', handle, indices, dtype=name)
    steps = [Step(init)]
    for i in [[1], [3]], [[1, 2], [0, 0]], [[[1, 2]], [[0, 0]]], np.zeros([2, 0]), np.zeros([0, 1]), [2]:
        steps.append(Step(slices, feeds={indices: np.array(i, index)}))
    for i in [[4]], [[-1]], [[0, 3]], [[0, 0, 0]], 1:
        steps.append(Step(slices, feeds={indices: np.array(i, index)}, error=True))
    return steps
