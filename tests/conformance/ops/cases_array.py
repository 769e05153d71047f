# SPDX-License-Identifier: Apache-2.0
"""Shapes, slices, joins, gathers and everything else that moves values without changing them."""
import numpy as np
import tensorflow as tf

from cases import ALL_TYPES, NUMBERS, Case, Step, cases, edges, is_float, numpy_type, script, types_for, values

SHAPES = [[], [0], [1], [3], [2, 0, 3], [2, 3, 4], [1, 1, 5, 1]]


def ints(types, attr, *numbers):
    return np.array(numbers, numpy_type(types.get(attr, 'int32')))


def scalar(types, attr, number):
    return np.array(number, numpy_type(types.get(attr, 'int32')))


@script('NoOp', 'ControlTrigger')
def no_op(b, types):
    return [Step(b.op('NoOp')), Step(b.op('ControlTrigger'))]


@script('Const')
def constant(b, types):
    name = types['dtype']
    made = [b.constant(values(name, shape), name) for shape in SHAPES]
    made += [b.constant(edges(name), name), b.constant(np.full([400], values(name, [])), name)]
    return [Step(*made)]


types_for('dtype', ALL_TYPES, 'Const', 'Placeholder', 'PlaceholderWithDefault')


@script('Placeholder')
def placeholder(b, types):
    name = types['dtype']
    any_shape = b.op('Placeholder', dtype=name, shape=None)
    fixed = b.op('Placeholder', dtype=name, shape=[2, 3])
    with_use = b.op('Identity', any_shape)
    return [Step(any_shape, with_use, feeds={any_shape: values(name, [2])}),
            Step(any_shape, feeds={any_shape: edges(name)}),
            Step(fixed, feeds={fixed: values(name, [2, 3])}), Step(with_use, error=True), Step(fixed, error=True)]


@script('PlaceholderWithDefault')
def placeholder_with_default(b, types):
    name = types['dtype']
    x = b.op('PlaceholderWithDefault', values(name, [2, 3]), shape=[None, 3])
    y = b.op('Identity', x)
    return [Step(x, y), Step(x, y, feeds={x: values(name, [4, 3], key=1)}), Step(x)]


@cases('IdentityN')
def identity_n(op, types):
    yield Case([[values(t, [2, 3]) for t in ALL_TYPES]])
    yield Case([[values('float32', [])]])


@cases('Shape', 'Rank', 'Size')
def shape_of(op, types):
    attrs = {'out_type': types['out_type']} if 'out_type' in types else {}
    for shape in SHAPES:
        yield Case([values(types['T'], shape)], attrs)


@cases('ShapeN')
def shape_n(op, types):
    yield Case([[values(types['T'], shape) for shape in SHAPES]], {'out_type': types['out_type']})


types_for('T', ALL_TYPES, 'Shape', 'Rank', 'Size', 'ShapeN')


@cases('Reshape')
def reshape(op, types):
    for shape, target in ([6], [2, 3]), ([2, 3], [-1]), ([2, 3], [3, -1]), ([1], []), ([], [1, 1]), ([0, 3], [3, 0]), ([0], [-1]), (
            [2, 3, 4], [4, 6]), ([0], [0, -1]):
        yield Case([values(types['T'], shape), ints(types, 'Tshape', *target)])
    for shape, target in ([6], [4]), ([6], [-1, -1]), ([6], [-1, 4]), ([6], [-2, 3]):
        yield Case([values(types['T'], shape), ints(types, 'Tshape', *target)], error=True)
    yield Case([values(types['T'], []), ints(types, 'Tshape', 1).reshape([])])
    yield Case([values(types['T'], [1]), ints(types, 'Tshape', 1).reshape([1, 1])], error=True)


types_for('T', ALL_TYPES, 'Reshape', 'Squeeze', 'ExpandDims')


@cases('ExpandDims')
def expand_dims(op, types):
    for shape, axis in ([], 0), ([], -1), ([3], 0), ([3], 1), ([2, 3], -2), ([0], 1):
        yield Case([values(types['T'], shape), scalar(types, 'Tdim', axis)])
    yield Case([values(types['T'], [2]), ints(types, 'Tdim', 1)])
    for axis in 3, -4:
        yield Case([values(types['T'], [2, 3]), scalar(types, 'Tdim', axis)], error=True)
    yield Case([values(types['T'], [2]), ints(types, 'Tdim', 0, 1)], error=True)


@cases('Squeeze')
def squeeze(op, types):
    for shape, axes in ([1, 3, 1], []), ([1, 3, 1], [0]), ([1, 3, 1], [-1]), ([1, 3, 1], [0, 2]), ([], []), ([1], []), ([1, 0], []):
        yield Case([values(types['T'], shape)], {'squeeze_dims': axes})
    yield Case([values(types['T'], [2, 1])], {'squeeze_dims': [0]}, error=True)
    yield Case([values(types['T'], [1])], {'squeeze_dims': [3]}, error=True)


@cases('Transpose', 'ConjugateTranspose')
def transpose(op, types):
    for shape, perm in ([], []), ([3], [0]), ([2, 3], [1, 0]), ([2, 3, 4], [2, 0, 1]), ([2, 3, 4], [0, 2, 1]), ([0, 3], [1, 0]), (
            [2, 3, 4, 5], [3, 1, 0, 2]), ([33, 65], [1, 0]), ([2, 1, 3, 2, 2], [4, 0, 3, 1, 2]), ([4, 3], [0, 1]):
        yield Case([values(types['T'], shape), ints(types, 'Tperm', *perm)])
    for perm in [0], [0, 0], [0, 2], [0, 1, 2]:
        yield Case([values(types['T'], [2, 3]), ints(types, 'Tperm', *perm)], error=True)


types_for('T', ALL_TYPES, 'Transpose')
types_for('T', NUMBERS + ['bool'], 'ConjugateTranspose')  # strings abort TensorFlow


@cases('ConcatV2')
def concat(op, types):
    name = types['T']
    for shapes, axis in ([[2], [3]], 0), ([[2, 3], [2, 1]], 1), ([[2, 3], [4, 3]], 0), ([[2, 3], [2, 3]], -1), ([[0], [2], [0]], 0), (
            [[1, 2, 3], [1, 5, 3], [1, 1, 3]], 1), ([[100], [7], [300]], 0), ([[0, 2], [0, 3]], 1):
        yield Case([[values(name, s, key=i) for i, s in enumerate(shapes)], scalar(types, 'Tidx', axis)])
    for shapes, axis in ([[2], [2, 2]], 0), ([[2, 3], [3, 3]], 1), ([[2], [2]], 1), ([[], []], 0):
        yield Case([[values(name, s) for s in shapes], scalar(types, 'Tidx', axis)], error=True)


@cases('Concat')
def concat_v1(op, types):
    name = types['T']
    for shapes, axis in ([[2], [3]], 0), ([[2, 3], [2, 1]], 1):
        yield Case([np.array(axis, np.int32), [values(name, s, key=i) for i, s in enumerate(shapes)]])
    yield Case([np.array(2, np.int32), [values(name, [2]), values(name, [2])]], error=True)


@cases('ConcatOffset')
def concat_offset(op, types):
    def shapes(*rows):
        return [ints(types, 'shape_type', *row) for row in rows]
    yield Case([np.array(0, np.int32), shapes([2, 3], [4, 3], [1, 3])])
    yield Case([np.array(-1, np.int32), shapes([2, 3], [2, 5])])
    yield Case([np.array(1, np.int32), shapes([2, 3], [4, 3])], error=True)
    yield Case([np.array(2, np.int32), shapes([2, 3], [2, 3])], error=True)


@cases('Slice')
def slice_of(op, types):
    for shape, begin, size in ([5], [1], [3]), ([5], [2], [-1]), ([2, 3], [0, 1], [2, 2]), ([2, 3, 4], [1, 0, 2], [1, -1, 2]), (
            [], [], []), ([5], [5], [0]), ([0, 3], [0, 1], [0, 2]), ([40, 70], [3, 5], [30, 61]), ([2, 2, 2, 2, 2], [0, 1, 0, 1, 0],
                                                                                               [2, 1, 2, 1, 2]):
        yield Case([values(types['T'], shape), ints(types, 'Index', *begin), ints(types, 'Index', *size)])
    for begin, size in ([1], [9]), ([-1], [1]), ([6], [0]), ([0], [-2]), ([0, 0], [1, 1]), ([0], [1, 1]):
        yield Case([values(types['T'], [5]), ints(types, 'Index', *begin), ints(types, 'Index', *size)], error=True)


types_for('T', ALL_TYPES, 'Slice', 'StridedSlice')

STRIDED = [  # shape, begin, end, strides, masks
    ([5], [1], [4], [1], {}), ([5], [4], [0], [-2], {}), ([5], [-3], [100], [1], {}), ([5], [3], [1], [1], {}),
    ([2, 3], [0, 1], [2, 3], [1, 1], {}), ([2, 3], [1], [2], [1], {'shrink_axis_mask': 1}),
    ([2, 3, 4], [0, 0, 1], [0, 0, 3], [1, 1, 1], {'begin_mask': 3, 'end_mask': 3}),
    ([2, 3, 4], [0, 1], [0, 2], [1, 1], {'ellipsis_mask': 1}), ([2, 3], [0, 0], [0, 0], [1, 1], {'new_axis_mask': 1, 'end_mask': 2}),
    ([2, 3, 4], [0, 0, 2], [0, 0, 3], [1, 1, 1], {'ellipsis_mask': 1, 'new_axis_mask': 2, 'shrink_axis_mask': 4}),
    ([7], [0], [0], [-1], {'begin_mask': 1, 'end_mask': 1}), ([6, 4], [1, 3], [5, 0], [2, -1], {}), ([0], [0], [3], [1], {}),
    ([], [], [], [], {})]


@cases('StridedSlice')
def strided_slice(op, types):
    for shape, begin, end, strides, masks in STRIDED:
        yield Case([values(types['T'], shape)] + [ints(types, 'Index', *v) for v in (begin, end, strides)], masks)
    for shape, begin, end, strides, masks in ([5], [0], [5], [0], {}), ([5], [9], [10], [1], {'shrink_axis_mask': 1}), (
            [5], [0, 0], [1, 1], [1, 1], {}), ([5], [0], [5, 1], [1], {}), ([5, 5], [0, 0], [1, 1], [1, 1], {'ellipsis_mask': 3}):
        yield Case([values(types['T'], shape)] + [ints(types, 'Index', *v) for v in (begin, end, strides)], masks, error=True)


@cases('StridedSliceGrad')
def strided_slice_grad(op, types):
    name = types['T']
    for shape, begin, end, strides, masks, out in ([5], [1], [4], [1], {}, [3]), ([5], [4], [0], [-2], {}, [2]), (
            [2, 3], [1], [2], [1], {'shrink_axis_mask': 1}, [3]), ([2, 3, 4], [0, 1], [0, 2], [1, 1], {'ellipsis_mask': 1}, [2, 3, 1]):
        yield Case([ints(types, 'Index', *v) for v in (shape, begin, end, strides)] + [values(name, out)], masks)
    yield Case([ints(types, 'Index', *v) for v in ([5], [1], [4], [1])] + [values(name, [4])], error=True)


@cases('Pack')
def pack(op, types):
    name = types['T']
    for shape, count, axis in ([], 3, 0), ([2], 2, 0), ([2], 2, 1), ([2, 3], 3, -1), ([2, 3], 1, -3), ([0], 2, 0):
        yield Case([[values(name, shape, key=i) for i in range(count)]], {'axis': axis})
    yield Case([[values(name, [2]), values(name, [3])]], error=True)
    yield Case([[values(name, [2]), values(name, [2])]], {'axis': 2}, error=True)


@cases('Unpack')
def unpack(op, types):
    name = types['T']
    for shape, axis in ([3], 0), ([2, 3], 0), ([2, 3], 1), ([2, 3, 4], -1), ([2, 0], 0):
        yield Case([values(name, shape)], {'num': shape[axis], 'axis': axis})
    yield Case([values(name, [3])], {'num': 2}, error=True)
    yield Case([values(name, [3])], {'num': 3, 'axis': 1}, error=True)


types_for('T', ALL_TYPES, 'Pack', 'Unpack', 'Split', 'SplitV')


@cases('Split')
def split(op, types):
    name = types['T']
    for shape, axis, count in ([6], 0, 3), ([2, 6], 1, 2), ([2, 6], -1, 6), ([4, 3, 2], 0, 4), ([0, 4], 1, 2), ([5], 0, 1), ([40, 6], 0, 2):
        yield Case([np.array(axis, np.int32), values(name, shape)], {'num_split': count})
    yield Case([np.array(0, np.int32), values(name, [5])], {'num_split': 2}, error=True)
    yield Case([np.array(1, np.int32), values(name, [4])], {'num_split': 2}, error=True)


@cases('SplitV')
def split_v(op, types):
    name = types['T']
    for shape, sizes, axis in ([6], [1, 2, 3], 0), ([6], [1, -1, 3], 0), ([2, 6], [6], 1), ([2, 6], [0, 6], -1), ([5, 3], [2, 3], 0):
        yield Case([values(name, shape), ints(types, 'Tlen', *sizes), np.array(axis, np.int32)], {'num_split': len(sizes)})
    for sizes, axis in ([1, 2], 0), ([1, 2, 3], 1), ([-1, -1], 0), ([-2, 8], 0):
        yield Case([values(name, [6]), ints(types, 'Tlen', *sizes), np.array(axis, np.int32)], {'num_split': len(sizes)}, error=True)


@cases('Tile')
def tile(op, types):
    for shape, multiples in ([], []), ([3], [2]), ([2, 3], [1, 2]), ([2, 3], [3, 1]), ([2, 1, 2], [2, 3, 2]), ([2], [0]), ([0, 2], [2, 2]):
        yield Case([values(types['T'], shape), ints(types, 'Tmultiples', *multiples)])
    yield Case([values(types['T'], [3]), ints(types, 'Tmultiples', 1, 1)], error=True)
    yield Case([values(types['T'], [3]), ints(types, 'Tmultiples', -1)], error=True)


types_for('T', [t for t in ALL_TYPES if t not in ('uint16', 'uint32', 'uint64')], 'Tile')


@cases('Pad', 'PadV2')
def pad(op, types):
    name = types['T']
    for shape, pads in ([3], [[1, 2]]), ([2, 3], [[0, 1], [2, 0]]), ([], np.zeros([0, 2])), ([0], [[1, 1]]), ([2, 3, 2], [[0, 0]] * 3), (
            [2, 2, 2, 2], [[1, 0], [0, 1], [1, 1], [0, 0]]):
        yield Case([values(name, shape), np.array(pads, numpy_type(types['Tpaddings']))] + (
            [values(name, [], key=3)] if op == 'PadV2' else []))
    for pads in [[-1, 0]], [[1, 1], [1, 1]]:
        yield Case([values(name, [3]), np.array(pads, numpy_type(types['Tpaddings']))] + (
            [values(name, [])] if op == 'PadV2' else []), error=True)


types_for('T', ALL_TYPES, 'Pad', 'PadV2', 'Fill', 'BroadcastTo', 'OneHot', 'ReverseV2')


@cases('MirrorPad')
def mirror_pad(op, types):
    for mode in 'REFLECT', 'SYMMETRIC':
        for shape, pads in ([3], [[1, 2]]), ([3, 4], [[2, 1], [0, 2]]):
            yield Case([values(types['T'], shape), np.array(pads, numpy_type(types['Tpaddings']))], {'mode': mode})
        yield Case([values(types['T'], [3]), np.array([[4, 0]], numpy_type(types['Tpaddings']))], {'mode': mode}, error=True)


@cases('Fill')
def fill(op, types):
    for shape in [], [3], [2, 3], [0, 2], [1037]:
        yield Case([ints(types, 'index_type', *shape), values(types['T'], [])])
    yield Case([ints(types, 'index_type', 3).reshape([]), values(types['T'], [1])])
    yield Case([ints(types, 'index_type', -1), values(types['T'], [])], error=True)
    yield Case([ints(types, 'index_type', 2), values(types['T'], [1, 1])], error=True)
    yield Case([ints(types, 'index_type', 2).reshape([1, 1]), values(types['T'], [])], error=True)


@cases('BroadcastTo')
def broadcast_to(op, types):
    for shape, target in ([], [2, 3]), ([3], [2, 3]), ([2, 1], [2, 3]), ([1], [0]), ([3], [3]), ([2, 1, 3], [4, 2, 5, 3]):
        yield Case([values(types['T'], shape), ints(types, 'Tidx', *target)])
    for shape, target in ([3], [2]), ([2, 3], [3]):
        yield Case([values(types['T'], shape), ints(types, 'Tidx', *target)], error=True)


@cases('GatherV2')
def gather(op, types):
    name = types['Tparams']
    for shape, ids, axis in ([5], [0, 4, 2, 2], 0), ([5, 3], [1, 0], 0), ([5, 3], [2, 0, 1, 1], 1), ([2, 3, 4], [[1, 0], [2, 2]], 1), (
            [5], 3, 0), ([5, 3], [], 0), ([3, 2], [0, 1], -1), ([100, 33], list(range(99, 0, -7)), 0), ([0, 3], [], 0):
        yield Case([values(name, shape), np.array(ids, numpy_type(types['Tindices'])), scalar(types, 'Taxis', axis)])
    yield Case([values(name, [2, 3, 4]), np.array([[0, 2], [1, 1]], numpy_type(types['Tindices'])), scalar(types, 'Taxis', 1)],
               {'batch_dims': 1})
    for ids, axis in ([5], 0), ([-1], 0), ([0], 2):
        yield Case([values(name, [5, 3]), np.array(ids, numpy_type(types['Tindices'])), scalar(types, 'Taxis', axis)], error=True)
    yield Case([values(name, []), np.array([0], numpy_type(types['Tindices'])), scalar(types, 'Taxis', 0)], error=True)


@cases('Gather')
def gather_v1(op, types):
    for shape, ids in ([5], [0, 4, 2]), ([5, 3], [[1, 0], [4, 4]]), ([5], []):
        yield Case([values(types['Tparams'], shape), np.array(ids, numpy_type(types['Tindices']))])
    yield Case([values(types['Tparams'], [5]), np.array([5], numpy_type(types['Tindices']))], error=True)


@cases('GatherNd')
def gather_nd(op, types):
    index = numpy_type(types['Tindices'])
    for shape, ids in ([5], [[0], [4]]), ([2, 3], [[0, 1], [1, 2]]), ([2, 3], [[1], [0]]), ([2, 3, 4], [[[0, 1]], [[1, 2]]]), (
            [2, 3], np.zeros([2, 0])), ([2], np.zeros([0, 1])):
        yield Case([values(types['Tparams'], shape), np.array(ids).astype(index)])
    for ids in [[2, 0]], [[0, -1]], [[0, 0, 0]]:
        yield Case([values(types['Tparams'], [2, 3]), np.array(ids, index)], error=True)


types_for('Tparams', ALL_TYPES, 'GatherV2', 'Gather', 'GatherNd')


@cases('Where')
def where(op, types):
    name = types['T']
    for shape in [5], [2, 3], [2, 3, 4], [0], [1, 2, 1, 3, 2], [1037]:
        yield Case([values(name, shape, 0, 1)])
    yield Case([np.zeros([4], numpy_type(name))])
    yield Case([values(name, [], 0, 1)], error=True)


types_for('T', [t for t in NUMBERS + ['bool'] if t not in ('float16', 'bfloat16')], 'Where')  # TensorFlow's are broken


@cases('OneHot')
def one_hot(op, types):
    name, index = types['T'], numpy_type(types['TI'])
    for ids, depth, axis in ([0, 2, 1], 3, -1), ([[0, 1], [2, 9]], 3, 0), ([1], 2, 1), (1, 3, -1), ([], 3, -1), ([0], 0, -1):
        yield Case([np.array(ids, index), np.array(depth, np.int32), values(name, [], key=1), values(name, [], key=2)], {'axis': axis})
    yield Case([np.array([0], index), np.array(-1, np.int32), values(name, []), values(name, [])], error=True)
    yield Case([np.array([0], index), np.array(2, np.int32), values(name, [2]), values(name, [])], error=True)
    yield Case([np.array([0], index), np.array(2, np.int32), values(name, []), values(name, [])], {'axis': 3}, error=True)


@cases('InvertPermutation')
def invert_permutation(op, types):
    for perm in [], [0], [2, 0, 1, 3]:
        yield Case([ints(types, 'T', *perm)])
    for perm in [0, 0], [0, 2], [-1, 0]:
        yield Case([ints(types, 'T', *perm)], error=True)


@cases('ReverseV2')
def reverse(op, types):
    for shape, axes in ([3], [0]), ([2, 3], [1]), ([2, 3], [0, -1]), ([2, 3], []), ([0], [0]), ([2, 3, 4, 2], [1, 3]):
        yield Case([values(types['T'], shape), ints(types, 'Tidx', *axes)])
    for axes in [2], [0, 0]:
        yield Case([values(types['T'], [2, 3]), ints(types, 'Tidx', *axes)], error=True)


@cases('Unique', 'UniqueWithCounts')
def unique(op, types):
    attrs = {'out_idx': types['out_idx']}
    for x in values(types['T'], [9]), values(types['T'], [0]), values(types['T'], [1]), values(types['T'], [300]):
        yield Case([x], attrs)
    yield Case([values(types['T'], [2, 2])], attrs, error=True)


@cases('UniqueV2', 'UniqueWithCountsV2')
def unique_v2(op, types):
    attrs = {'out_idx': types['out_idx']}
    axis = numpy_type(types['Taxis'])
    yield Case([values(types['T'], [9]), np.array([], axis)], attrs)
    yield Case([values(types['T'], [9]), np.array([0], axis)], attrs)
    if types['T'] in ('float32', 'int32', 'int64'):
        yield Case([np.array([[1, 2], [3, 4], [1, 2]], numpy_type(types['T'])), np.array([0], axis)], attrs)
        yield Case([np.array([[1, 2, 1], [3, 4, 3]], numpy_type(types['T'])), np.array([1], axis)], attrs)
    yield Case([values(types['T'], [2, 2]), np.array([2], axis)], attrs, error=True)


@cases('DynamicPartition')
def dynamic_partition(op, types):
    for shape, parts, count in ([4], [0, 1, 0, 2], 3), ([4, 2], [1, 1, 0, 1], 2), ([2, 2], [[0, 1], [1, 0]], 2), ([0], [], 2), ([], 1, 2):
        yield Case([values(types['T'], shape), np.array(parts, np.int32)], {'num_partitions': count})
    yield Case([values(types['T'], [2]), np.array([0, 3], np.int32)], {'num_partitions': 3}, error=True)
    yield Case([values(types['T'], [2]), np.array([0, -1], np.int32)], {'num_partitions': 3}, error=True)
    yield Case([values(types['T'], [3]), np.array([0, 1], np.int32)], {'num_partitions': 3}, error=True)


types_for('T', ALL_TYPES, 'DynamicPartition', 'DynamicStitch', 'ParallelDynamicStitch')


@cases('DynamicStitch', 'ParallelDynamicStitch')
def dynamic_stitch(op, types):
    name = types['T']
    for ids, shapes in ([[0, 2], [1, 3]], [[2], [2]]), ([[1], [0, 2]], [[1, 3], [2, 3]]), ([2, [0, 1]], [[], [2]]), ([[[0, 1], [2, 3]]], [
            [2, 2]]), ([[], [0]], [[0], [1]]):
        yield Case([[np.array(i, np.int32) for i in ids], [values(name, s, key=k) for k, s in enumerate(shapes)]])
    yield Case([[np.array([0], np.int32), np.array([1], np.int32)], [values(name, [1, 2]), values(name, [1, 3])]], error=True)
    yield Case([[np.array([0, 1], np.int32)], [values(name, [1])]], error=True)
    yield Case([[np.array([-1], np.int32)], [values(name, [1])]], error=True)
    if op == 'DynamicStitch':
        yield Case([[np.array([0, 0], np.int32), np.array([0], np.int32)], [values(name, [2]), values(name, [1], key=1)]])


@cases('EnsureShape')
def ensure_shape(op, types):
    yield Case([values(types['T'], [2, 3])], {'shape': [2, None]})
    yield Case([values(types['T'], [2, 3])], {'shape': None})
    yield Case([values(types['T'], [2, 3])], {'shape': [3, 3]}, error=True)
    yield Case([values(types['T'], [2, 3])], {'shape': [None]}, error=True)


types_for('T', ALL_TYPES, 'EnsureShape')


@cases('CheckNumerics')
def check_numerics(op, types):
    yield Case([values(types['T'], [2, 3])], {'message': 'fine'})
    for bad in np.nan, np.inf:
        yield Case([np.array([1, bad], numpy_type(types['T']))], {'message': 'bad'}, error=True)


@cases('Assert')
def assertion(op, types):
    yield Case([np.array(True), [values('float32', [2]), values('string', [1])]])
    yield Case([np.array(False), [values('float32', [2]), values('string', [1])]], error=True)
    yield Case([np.array([True, False]), [values('int32', [2])]], error=True)


@script('Print')
def prints(b, types):
    return [Step(b.op('Print', values(types['T'], [2]), [values('float32', [2])], message='printed: '))]


types_for('T', ['float32', 'string'], 'Print')


@script('PrintV2')
def prints_v2(b, types):
    return [Step(b.op('PrintV2', np.array(b'printed', object), output_stream='stderr'))]


@cases('Bitcast')
def bitcast(op, types):
    size = {t: numpy_type(t).itemsize for t in NUMBERS}
    source = types['T']
    for target in NUMBERS:
        if size[source] == size[target]:
            yield Case([values(source, [2, 3])], {'type': target})
        elif size[source] > size[target]:
            yield Case([values(source, [2])], {'type': target})
        else:
            ratio = size[target] // size[source]
            yield Case([values(source, [3, ratio])], {'type': target})
            yield Case([values(source, [3, ratio + 1])], {'type': target}, error=True)


types_for('T', NUMBERS, 'Bitcast')
types_for('type', ['float32'], 'Bitcast')  # the cases go through all


@cases('TensorStridedSliceUpdate')
def tensor_strided_slice_update(op, types):
    name = types['T']
    for shape, begin, end, strides, masks, part in ([5], [1], [4], [1], {}, [3]), ([5], [4], [0], [-2], {}, [2]), (
            [2, 3], [1], [2], [1], {'shrink_axis_mask': 1}, [3]), ([2, 3], [0, 0], [2, 2], [1, 1], {}, [2, 2]), (
            [2, 3], [0, 0], [2, 2], [1, 1], {}, [2, 1]), ([2, 3], [0, 0], [2, 2], [1, 1], {}, [2]), ([5], [1], [4], [1], {}, []):
        yield Case([values(name, shape)] + [ints(types, 'Index', *v) for v in (begin, end, strides)] + [values(name, part, key=1)], masks)
    for part in [], [1], [3], [2, 1]:  # broadcast over what is written
        yield Case([values(name, [4, 3])] + [ints(types, 'Index', *v) for v in ([1], [3], [1])] + [values(name, part, key=1)])
    yield Case([values(name, [5])] + [ints(types, 'Index', *v) for v in ([1], [4], [1])] + [values(name, [2])], error=True)


def _strided_assign(op, ref):
    @script(op)
    def assign(b, types):
        name = types['T']
        handle, init, read = b.variable(values(name, [5, 3]), ref=ref)
        steps = [Step(init)]
        for begin, end, strides, masks, part in ([1], [4], [1], {}, [3, 3]), ([4, 0], [0, 2], [-2, 1], {}, [2, 2]), (
                [2], [3], [1], {'shrink_axis_mask': 1}, [3]), ([0, 1], [0, 2], [1, 1], {'ellipsis_mask': 1, 'shrink_axis_mask': 2}, [5]):
            sliced = [b.constant(np.array(v, numpy_type(types['Index']))) for v in (begin, end, strides)]
            done = b.op(op, handle, *sliced, b.hidden(values(name, part, key=len(steps))), **masks)
            wide = b.op(op, handle, *sliced, b.hidden(values(name, part[1:] or [1], key=9)), **masks)
            steps += [Step(done.op if ref else done), Step(read), Step(wide.op if ref else wide), Step(read)]
            bad = b.op(op, handle, *sliced, b.hidden(values(name, part[:-1] + [7])), **masks)
            steps.append(Step(bad.op if ref else bad, error=True))
        return steps


_strided_assign('StridedSliceAssign', True)
_strided_assign('ResourceStridedSliceAssign', False)
types_for('T', ['float32', 'int64', 'string', 'bool'], 'StridedSliceAssign', 'ResourceStridedSliceAssign')


@cases('MirrorPadGrad')
def mirror_pad_grad(op, types):
    for mode in 'REFLECT', 'SYMMETRIC':
        yield Case([values(types['T'], [6, 6]), np.array([[2, 1], [0, 2]], numpy_type(types['Tpaddings']))], {'mode': mode})


@cases('ListDiff')
def list_diff(op, types):
    name = types['T']
    attrs = {'out_idx': types['out_idx']}
    yield Case([values(name, [9]), values(name, [3], key=1)], attrs)
    yield Case([values(name, [0]), values(name, [3])], attrs)
    yield Case([values(name, [3]), values(name, [0])], attrs)
    yield Case([values(name, [2, 2]), values(name, [1])], attrs, error=True)


@cases('Reverse')
def reverse_v1(op, types):
    yield Case([values(types['T'], [2, 3]), np.array([True, False])])
    yield Case([values(types['T'], [2, 3]), np.array([True, True])])
    yield Case([values(types['T'], [2, 3]), np.array([True])], error=True)


@cases('ReverseSequence')
def reverse_sequence(op, types):
    name, length = types['T'], numpy_type(types['Tlen'])
    yield Case([values(name, [3, 4]), np.array([2, 4, 0], length)], {'seq_dim': 1, 'batch_dim': 0})
    yield Case([values(name, [4, 3, 2]), np.array([2, 4, 1], length)], {'seq_dim': 0, 'batch_dim': 1})
    yield Case([values(name, [3, 4]), np.array([2, 5, 0], length)], {'seq_dim': 1, 'batch_dim': 0}, error=True)
    yield Case([values(name, [3, 4]), np.array([2, 3], length)], {'seq_dim': 1, 'batch_dim': 0}, error=True)


@cases('Roll')
def roll(op, types):
    shift, axis = numpy_type(types['Tshift']), numpy_type(types['Taxis'])
    for shape, by, along in ([5], [2], [0]), ([5], 2, 0), ([2, 3], [1, -1], [0, 1]), ([2, 3], [4, 1], [1, 1]), ([0], [1], [0]):
        yield Case([values(types['T'], shape), np.array(by, shift), np.array(along, axis)])
    yield Case([values(types['T'], [3]), np.array([1], shift), np.array([1], axis)], error=True)
    yield Case([values(types['T'], [3]), np.array([1, 2], shift), np.array([0], axis)], error=True)


types_for('T', ALL_TYPES, 'Roll', 'MirrorPadGrad')


@cases('ScatterNd')
def scatter_nd(op, types):
    name, index = types['T'], numpy_type(types['Tindices'])
    for ids, part, shape in ([[1], [3]], [2], [5]), ([[0], [0]], [2], [3]), ([[0, 1], [1, 0]], [2], [2, 2]), ([[1]], [1, 3], [2, 3]):
        yield Case([np.array(ids, index), values(name, part, 1, 4) if name != 'string' else values(name, part), np.array(shape, index)])
    yield Case([np.array([[5]], index), values(name, [1]), np.array([5], index)], error=True)
    yield Case([np.array([[0]], index), values(name, [2]), np.array([5], index)], error=True)


@cases('TensorScatterUpdate', 'TensorScatterAdd', 'TensorScatterSub', 'TensorScatterMax', 'TensorScatterMin', 'ScatterNdNonAliasingAdd')
def tensor_scatter(op, types):
    name, index = types['T'], numpy_type(types['Tindices'])
    if name == 'string' and op != 'TensorScatterUpdate':
        return
    for shape, ids, part in ([5], [[1], [3]], [2]), ([4, 3], [[0], [2]], [2, 3]), ([2, 2], [[0, 1], [1, 0]], [2]):
        yield Case([values(name, shape), np.array(ids, index), values(name, part, key=1)])
    yield Case([values(name, [5]), np.array([[5]], index), values(name, [1])], error=True)
    yield Case([values(name, [5]), np.array([[0]], index), values(name, [2])], error=True)


@cases('UnravelIndex')
def unravel_index(op, types):
    dtype = numpy_type(types['Tidx'])
    sizes = np.array([2, 3, 4], dtype)
    yield Case([np.array(17, dtype), sizes])
    yield Case([np.array([0, 23, 7], dtype), sizes])
    for bad in np.array([24], dtype), np.array([[1]], dtype):
        yield Case([bad, sizes], error=True)
    yield Case([np.array(1, dtype), np.array([2, 0], dtype)], error=True)
    yield Case([np.array(1, dtype), np.array(3, dtype)], error=True)


@script('InplaceUpdate', 'InplaceAdd', 'InplaceSub')
def inplace(b, types):
    """TensorFlow changes the tensor that it is given, so it gets one of its own."""
    made, wrong = [], []
    for name in NUMBERS:
        for shape, rows in ([4, 3], [1, 3]), ([4], [-1, 6]), ([4, 2], []):
            held, v = b.hidden(values(name, shape)), b.hidden(values(name, [len(rows)] + shape[1:], key=1))
            made += [b.op(op, b.op('ConcatV2', [held, held], np.int32(0)), b.hidden(np.array(rows, np.int32)), v)
                     for op in ('InplaceUpdate', 'InplaceAdd', 'InplaceSub')]
    x = b.hidden(values('float32', [4, 3]))
    for shape in [2, 2], [3, 3], [3]:
        wrong.append(b.op('InplaceUpdate', x, b.hidden(np.array([1, 3], np.int32)), b.hidden(values('float32', shape))))
    return [Step(*made)] + [Step(one, error=True) for one in wrong]


@cases('Empty')
def empty(op, types):
    for shape in [2, 3], [0], []:
        yield Case([np.array(shape, np.int32)], {'dtype': types['dtype'], 'init': True})
    yield Case([np.array([-1], np.int32)], {'dtype': types['dtype'], 'init': True}, error=True)
    yield Case([np.array([[1]], np.int32)], {'dtype': types['dtype'], 'init': True}, error=True)


@script('ParallelConcat')
def parallel_concat(b, types):
    name = types['T']
    return [Step(*[b.op('ParallelConcat', [b.constant(values(name, shape, key=k)) for k in range(3)], shape=tf.TensorShape([3] + shape[1:]))
                   for shape in ([1], [1, 3], [1, 2, 2])])]
