# SPDX-License-Identifier: Apache-2.0
"""Images in blocks, normalized, convolved by channel; places in sorted rows; names of layouts."""
import numpy as np

from cases import Case, Step, cases, is_float, numpy_type, script, types_for, values
from cases_nn import conv_attrs

BLOCKS = [  # input, block, paddings
    ([1, 2, 2, 1], [2, 2], [[0, 0], [0, 0]]), ([2, 2, 4, 3], [2, 2], [[0, 0], [2, 0]]), ([1, 5, 3, 2], [3, 2], [[1, 0], [0, 1]]),
    ([2, 6], [3], [[0, 0]]), ([1, 4, 2, 2, 3], [2, 1, 2], [[1, 1], [0, 0], [0, 2]]), ([1, 1, 1, 1], [2, 2], [[3, 4], [0, 1]]),
    ([3, 4], [], np.zeros([0, 2]))]


CROPS = [([4, 1, 1, 1], [2, 2], [[0, 0], [0, 0]]), ([8, 2, 3, 2], [2, 2], [[1, 0], [0, 3]]), ([6, 2], [3], [[2, 1]]),
         ([4, 2, 2], [2, 2], [[0, 4], [0, 0]])]


@script('SpaceToBatchND', 'BatchToSpaceND')
def blocks_and_batches(b, types):
    """The client must see blocks and paddings as constants."""
    steps = []
    for op, rows in ('SpaceToBatchND', BLOCKS), ('BatchToSpaceND', CROPS):
        for shape, block, pads in rows:
            sizes = [np.array(block, numpy_type(types['Tblock_shape'])), np.array(pads, numpy_type(types['Tpaddings'])).reshape([-1, 2])]
            steps.append(Step(b.op(op, b.hidden(values(types['T'], shape)), *[b.constant(x) for x in sizes])))
    for op, shape, pads in ('SpaceToBatchND', [1, 4, 4, 1], [[0, 0], [1, 0]]), ('BatchToSpaceND', [3, 1, 1, 1], [[0, 0], [0, 0]]), (
            'BatchToSpaceND', [4, 1, 1, 1], [[2, 1], [0, 0]]):
        steps.append(Step(b.op(op, b.hidden(values(types['T'], shape)), b.constant(np.array([2, 2], np.int32)),
                               b.constant(np.array(pads, np.int32))), error=True))
    return steps


@cases('SpaceToBatch', 'BatchToSpace')
def square_blocks(op, types):
    pads = numpy_type(types.get('Tpaddings') or types['Tidx'])
    shape = [1, 4, 6, 2] if op == 'SpaceToBatch' else [4, 2, 3, 2]
    yield Case([values(types['T'], shape), np.zeros([2, 2], pads)], {'block_size': 2})
    yield Case([values(types['T'], shape), np.array([[1, 1], [0, 2]], pads)], {'block_size': 2})
    yield Case([values(types['T'], [3, 3, 3, 1]), np.zeros([2, 2], pads)], {'block_size': 2}, error=True)


@cases('DepthToSpace', 'SpaceToDepth')
def depth(op, types):
    for shape, block in ([1, 2, 4, 8], 2), ([2, 3, 6, 9], 3), ([0, 2, 2, 4], 2):
        yield Case([values(types['T'], shape)], {'block_size': block})
    yield Case([values(types['T'], [1, 3, 3, 3])], {'block_size': 2}, error=True)
    yield Case([values(types['T'], [2, 2, 4])], {'block_size': 2}, error=True)


types_for('T', ['float32', 'int64', 'uint8', 'string'], 'SpaceToBatchND', 'BatchToSpaceND', 'SpaceToBatch', 'BatchToSpace')
types_for('T', ['float32', 'int64', 'uint8'], 'DepthToSpace', 'SpaceToDepth')


@cases('LowerBound', 'UpperBound')
def bound(op, types):
    attrs = {'out_type': types['out_type']}
    rows = np.sort(values(types['T'], [2, 9]), axis=1)
    yield Case([rows, values(types['T'], [2, 5], key=1)], attrs)
    yield Case([rows, np.concatenate([rows[:, 2:4], rows[:, :1]], axis=1)], attrs)
    yield Case([rows[:, :0], values(types['T'], [2, 3])], attrs)
    yield Case([rows, values(types['T'], [1, 5])], attrs, error=True)


@cases('DataFormatDimMap')
def dim_map(op, types):
    for source, target in ('NHWC', 'NCHW'), ('NCHW', 'NHWC'), ('NHWC', 'HWNC'):
        yield Case([np.array([0, 1, 2, 3, -1, -4], numpy_type(types['T']))], {'src_format': source, 'dst_format': target})


@cases('DataFormatVecPermute')
def vec_permute(op, types):
    for source, target in ('NHWC', 'NCHW'), ('NCHW', 'NHWC'), ('NHWC', 'HWNC'):
        for shape in [4], [4, 2], [2], [2, 2]:
            yield Case([values(types['T'], shape, 0, 9)], {'src_format': source, 'dst_format': target})
    yield Case([values(types['T'], [3])], {'src_format': 'NHWC', 'dst_format': 'NCHW'}, error=True)


BATCHES = [([2, 3, 3, 2], 'NHWC'), ([4, 1, 1, 3], 'NHWC'), ([2, 3, 2, 2], 'NCHW')]


def channels(shape, layout):
    return shape[1] if layout == 'NCHW' else shape[-1]


@cases('FusedBatchNorm', 'FusedBatchNormV2', 'FusedBatchNormV3')
def batch_norm(op, types):
    of_channel = types.get('U', 'float32')
    if of_channel != 'float32':
        return
    for shape, layout in BATCHES:
        n = [channels(shape, layout)]
        x, scale, offset = values(types['T'], shape), values(of_channel, n, key=1), values(of_channel, n, key=2)
        mean, variance = values(of_channel, n, key=3), np.abs(values(of_channel, n, key=4))
        yield Case([x, scale, offset, mean, variance], {'data_format': layout, 'epsilon': 0.01})
        yield Case([x, scale, offset, mean, variance], {'exponential_avg_factor': 0.25, 'data_format': layout})
    empty = np.zeros([0], np.float32)
    yield Case([values(types['T'], [2, 2, 2, 3]), values(of_channel, [3]), values(of_channel, [3]), empty, empty])
    yield Case([values(types['T'], [2, 2, 2, 3]), values(of_channel, [2]), values(of_channel, [3]), empty, empty], error=True)
    yield Case([values(types['T'], [2, 3]), values(of_channel, [3]), values(of_channel, [3]), empty, empty], error=True)


@script('FusedBatchNormV3')
def batch_norm_by_given_statistics(b, types):
    """Without training TensorFlow leaves the outputs for the gradient as they were."""
    steps = []
    for shape, layout in BATCHES:
        n = [channels(shape, layout)]
        vectors = [np.abs(values('float32', n, key=k)) for k in range(1, 5)]
        outputs = b.op('FusedBatchNormV3', values(types['T'], shape), *vectors, is_training=False, data_format=layout, epsilon=0.01)
        steps.append(Step(*outputs[:3]))
    return steps


@cases('FusedBatchNormGrad', 'FusedBatchNormGradV2', 'FusedBatchNormGradV3')
def batch_norm_grad(op, types):
    for shape, layout in BATCHES:
        n = [channels(shape, layout)]
        statistics = [values('float32', n, key=3), np.abs(values('float32', n, key=4))]
        reserve = [np.zeros([], np.float32)] if op.endswith('V3') else []
        for training in (True, False) if layout == 'NHWC' else (True,):
            yield Case([values(types['T'], shape), values(types['T'], shape, key=1), values('float32', n, key=2)] + statistics + reserve,
                       {'is_training': training, 'data_format': layout, 'epsilon': 0.01})


@cases('LRN')
def lrn(op, types):
    for attrs in {}, {'depth_radius': 2, 'bias': 2.0, 'alpha': 0.5, 'beta': 0.75}:
        yield Case([values(types['T'], [2, 2, 3, 7])], attrs)
    yield Case([values(types['T'], [2, 2, 3])], error=True)


@cases('LRNGrad')
def lrn_grad(op, types):
    yield Case([values(types['T'], [2, 2, 3, 7], key=k) for k in range(3)], {'depth_radius': 2, 'bias': 2.0, 'alpha': 0.5})


DEPTHWISE = [([1, 4, 4, 1], [3, 3, 1, 2], {}), ([2, 5, 6, 3], [2, 3, 3, 2], {}), ([1, 6, 6, 4], [3, 3, 4, 1], {'padding': 'VALID'}),
             ([1, 7, 7, 2], [3, 3, 2, 2], {'strides': [1, 2, 2, 1]})]


def depthwise_output(shape, kernel, attrs):
    attrs = conv_attrs(attrs)
    size = [-(-n // s) if attrs['padding'] == 'SAME' else (n - k) // s + 1
            for n, k, s in zip(shape[1:3], kernel[:2], attrs['strides'][1:3])]
    return [shape[0], *size, kernel[2] * kernel[3]]


@cases('DepthwiseConv2dNative')
def depthwise(op, types):
    for shape, kernel, attrs in DEPTHWISE:
        yield Case([values(types['T'], shape, -2, 2), values(types['T'], kernel, -2, 2, key=1)], conv_attrs(attrs))
    yield Case([values(types['T'], [1, 4, 4, 3]), values(types['T'], [3, 3, 2, 2])], conv_attrs({}), error=True)


@cases('DepthwiseConv2dNativeBackpropInput', 'DepthwiseConv2dNativeBackpropFilter')
def depthwise_grad(op, types):
    name = types['T']
    if not is_float(name):
        return
    for shape, kernel, attrs in DEPTHWISE:
        gradient = values(name, depthwise_output(shape, kernel, attrs), -2, 2, key=1)
        first = [np.array(shape, np.int32), values(name, kernel, -2, 2)] if op.endswith('Input') else [
            values(name, shape, -2, 2), np.array(kernel, np.int32)]
        yield Case(first + [gradient], conv_attrs(attrs))


@cases('DepthwiseConv2dNative')
def depthwise_padded(op, types):
    attrs = {'padding': 'EXPLICIT', 'explicit_paddings': [0, 0, 1, 2, 0, 1, 0, 0]}
    yield Case([values(types['T'], [1, 5, 4, 2], -2, 2), values(types['T'], [3, 2, 2, 2], -2, 2, key=1)], conv_attrs(attrs))
    yield Case([values(types['T'], [1, 2, 4, 4]), values(types['T'], [3, 3, 2, 2])], conv_attrs({'data_format': 'NCHW'}), error='any')


@cases('Conv2D')
def convolutions_of_many_kinds(op, types):
    for attrs in {'strides': [1, 2, 3, 1]}, {'dilations': [1, 3, 1, 1]}, {'strides': [1, 2, 1, 1], 'padding': 'VALID'}:
        yield Case([values(types['T'], [2, 9, 8, 2], -2, 2), values(types['T'], [3, 2, 2, 3], -2, 2, key=1)], conv_attrs(attrs))
    for shape, kernel in ([1, 5, 5, 4], [3, 3, 2, 4]), ([2, 4, 4, 6], [2, 2, 2, 3]):
        yield Case([values(types['T'], shape, -2, 2), values(types['T'], kernel, -2, 2, key=1)], conv_attrs({}))


@cases('Conv2D')
def channels_first(op, types):
    """TensorFlow has no such kernel on a CPU either."""
    yield Case([values(types['T'], [1, 2, 4, 4]), values(types['T'], [3, 3, 2, 2])], conv_attrs({'data_format': 'NCHW'}), error='any')


@cases('MaxPool')
def pool_padded(op, types):
    attrs = {'ksize': [1, 3, 2, 1], 'strides': [1, 2, 1, 1], 'padding': 'EXPLICIT', 'explicit_paddings': [0, 0, 1, 2, 0, 1, 0, 0]}
    yield Case([values(types['T'], [2, 5, 4, 2], 0, 100)], attrs)


@cases('MaxPool', 'AvgPool')
def oblong_pools(op, types):
    for padding in 'SAME', 'VALID':
        yield Case([values(types['T'], [2, 7, 6, 2], 0, 100)], {'ksize': [1, 3, 2, 1], 'strides': [1, 2, 3, 1], 'padding': padding})
    attrs = {'ksize': [1, 1, 2, 2], 'strides': [1, 1, 2, 2], 'padding': 'SAME', 'data_format': 'NCHW'}
    yield Case([values(types['T'], [1, 2, 4, 4], 0, 100)], attrs, error='any')
