# SPDX-License-Identifier: Apache-2.0
"""Volumes convolved and pooled; pools that say where; dilation; convolutions of many dimensions or with a frame."""
import numpy as np

from cases import Case, Step, cases, is_float, numpy_type, script, values
from cases_nn import conv_attrs

VOLUMES = [([1, 3, 4, 5, 2], [2, 3, 2, 2, 3], [1, 1, 1, 1, 1], 'SAME'), ([2, 4, 5, 3, 1], [3, 2, 2, 1, 2], [1, 2, 2, 1, 1], 'VALID'),
           ([1, 5, 5, 5, 3], [3, 3, 3, 3, 2], [1, 2, 3, 2, 1], 'SAME'), ([0, 3, 3, 3, 2], [2, 2, 2, 2, 2], [1, 1, 1, 1, 1], 'SAME')]


def volume_output(shape, kernel, strides, padding):
    sizes = [-(-n // s) if padding == 'SAME' else (n - k) // s + 1 for n, k, s in zip(shape[1:-1], kernel, strides[1:-1])]
    return [shape[0], *sizes, kernel[-1]]


@cases('Conv3D')
def conv3d(op, types):
    for shape, kernel, strides, padding in VOLUMES:
        yield Case([values(types['T'], shape, -2, 2), values(types['T'], kernel, -2, 2, key=1)], {'strides': strides, 'padding': padding})
    one = {'strides': [1] * 5, 'padding': 'SAME'}
    yield Case([values(types['T'], [1, 3, 3, 3, 4]), values(types['T'], [2, 2, 2, 2, 4])], one, error=True)
    yield Case([values(types['T'], [1, 3, 3, 3, 4]), values(types['T'], [0, 2, 2, 4, 4])], one, error=True)
    yield Case([values(types['T'], [1, 3, 3, 4]), values(types['T'], [2, 2, 2, 4, 4])], one, error=True)
    yield Case([values(types['T'], [1, 3, 3, 3, 4]), values(types['T'], [2, 2, 2, 3, 4])], {**one, 'data_format': 'NCDHW'}, error=True)


@cases('Conv3DBackpropInputV2', 'Conv3DBackpropFilterV2')
def conv3d_gradients(op, types):
    name = types['T']
    index = numpy_type(types.get('Tshape', 'int32'))
    for shape, kernel, strides, padding in VOLUMES[:3]:
        gradient = values(name, volume_output(shape, kernel, strides, padding), -2, 2, key=2)
        if op.startswith('Conv3DBackpropInput'):
            inputs = [np.array(shape, index), values(name, kernel, -2, 2), gradient]
        else:
            inputs = [values(name, shape, -2, 2), np.array(kernel, index), gradient]
        yield Case(inputs, {'strides': strides, 'padding': padding})
    sizes = [np.array([1, 3, 3, 3, 2], index), values(name, [2, 2, 2, 2, 3])] if 'Input' in op else [
        values(name, [1, 3, 3, 3, 2]), np.array([2, 2, 2, 2, 3], index)]
    yield Case(sizes + [values(name, [1, 3, 3, 2, 3])], {'strides': [1] * 5, 'padding': 'SAME'}, error=True)
    if 'Filter' in op:
        yield Case([values(name, [1, 3, 3, 3, 2]), np.array([2, 2, 2, 2, 0], index), values(name, [1, 3, 3, 3, 0])],
                   {'strides': [1] * 5, 'padding': 'SAME'})


POOLS = [([1, 4, 4, 4, 2], [2, 2, 2], [2, 2, 2], 'SAME'), ([2, 5, 4, 3, 1], [3, 2, 1], [2, 1, 1], 'SAME'),
         ([1, 5, 5, 5, 3], [3, 3, 3], [2, 2, 2], 'VALID'), ([1, 5, 5, 5, 1], [3, 3, 3], [2, 2, 2], 'SAME')]


def pool_attrs(window, strides, padding):
    return {'ksize': [1, *window, 1], 'strides': [1, *strides, 1], 'padding': padding}


def windows(shape, window, strides, padding):
    """The output's sizes, and of each output place the slices of the input."""
    sizes = volume_output(shape, [*window, shape[-1]], [1, *strides, 1], padding)
    pads = [max(0, (o - 1) * s + k - n) // 2 if padding == 'SAME' else 0
            for o, s, k, n in zip(sizes[1:], strides, window, shape[1:])]
    places = {}
    for at in np.ndindex(*sizes[1:-1]):
        starts = [i * s - p for i, s, p in zip(at, strides, pads)]
        places[at] = tuple(slice(max(0, b), min(n, b + k)) for b, k, n in zip(starts, window, shape[1:]))
    return sizes, places


def max_pool(x, window, strides, padding):
    sizes, places = windows(list(x.shape), window, strides, padding)
    out = np.zeros(sizes, x.dtype)
    axes = tuple(range(1, x.ndim - 1))
    for at, part in places.items():
        out[(slice(None), *at)] = x[(slice(None), *part)].max(axis=axes)
    return out


def distinct(name, shape):
    return (np.random.RandomState(1).permutation(int(np.prod(shape))) % 120).astype(numpy_type(name)).reshape(shape)


@cases('MaxPool3D', 'AvgPool3D')
def pool3d(op, types):
    for shape, window, strides, padding in POOLS:
        yield Case([values(types['T'], shape, -100, 100)], pool_attrs(window, strides, padding))
    yield Case([values(types['T'], [4, 4, 4, 1])], pool_attrs([2] * 3, [2] * 3, 'SAME'), error=True)
    yield Case([values(types['T'], [1, 3, 0, 3, 1])], pool_attrs([2] * 3, [1] * 3, 'VALID'), error=True)
    yield Case([values(types['T'], [1, 3, 3, 3, 1])], {**pool_attrs([1] * 3, [1] * 3, 'SAME'), 'data_format': 'NCDHW'}, error='any')
    yield Case([values(types['T'], [2, 3, 3, 3, 1])], {'ksize': [2, 1, 1, 1, 1], 'strides': [1] * 5, 'padding': 'SAME'}, error=True)


@cases('MaxPool3DGrad', 'MaxPool3DGradGrad')
def max_pool3d_gradients(op, types):
    name = types['T']
    for shape, window, strides, padding in POOLS:
        for x in distinct(name, shape), np.ones(shape, numpy_type(name)):
            best = max_pool(x, window, strides, padding)
            like = x if op.endswith('GradGrad') else best
            yield Case([x, best, values(name, like.shape, key=2)], pool_attrs(window, strides, padding))
    x = distinct(name, [1, 2, 2, 2, 1])
    yield Case([x, max_pool(x, [2] * 3, [1] * 3, 'VALID'), values(name, [1, 3, 3, 3, 1])], pool_attrs([2] * 3, [1] * 3, 'VALID'), error=True)


@cases('AvgPool3DGrad')
def avg_pool3d_gradient(op, types):
    for shape, window, strides, padding in POOLS:
        sizes, _ = windows(shape, window, strides, padding)
        yield Case([np.array(shape, np.int32), values(types['T'], sizes)], pool_attrs(window, strides, padding))
    yield Case([np.array([1, 2, 2], np.int32), values(types['T'], [1, 2, 2, 2, 1])], pool_attrs([1] * 3, [1] * 3, 'SAME'), error=True)


IMAGES = [([1, 4, 4, 2], [2, 2], [2, 2], 'SAME'), ([2, 5, 6, 3], [3, 2], [2, 1], 'SAME'), ([2, 5, 5, 1], [3, 3], [1, 2], 'VALID'),
          ([1, 5, 5, 2], [3, 3], [2, 2], 'SAME')]


@cases('MaxPoolWithArgmax')
def argmax(op, types):
    for shape, window, strides, padding in IMAGES:
        for include in False, True:
            for x in distinct(types['T'], shape), np.ones(shape, numpy_type(types['T'])):
                yield Case([x], {**pool_attrs(window, strides, padding), 'include_batch_in_index': include, 'Targmax': types['Targmax']})
    yield Case([values(types['T'], [4, 4, 1])], {**pool_attrs([2, 2], [2, 2], 'SAME'), 'Targmax': types['Targmax']}, error=True)


@cases('MaxPoolGradWithArgmax')
def argmax_gradient(op, types):
    for shape, window, strides, padding in IMAGES:
        sizes, places = windows(shape, window, strides, padding)
        for include in False, True:
            where = np.zeros(sizes, numpy_type(types['Targmax']))
            for at, part in places.items():
                for n in range(shape[0]):
                    first = (part[0].start * shape[2] + part[1].start) * shape[3] + np.arange(shape[3])
                    where[(n, *at)] = first + (n * int(np.prod(shape[1:])) if include else 0)
            yield Case([values(types['T'], shape), values(types['T'], sizes, key=1), where],
                       {**pool_attrs(window, strides, padding), 'include_batch_in_index': include})


@cases('MaxPoolGradGrad', 'MaxPoolGradGradV2')
def wide_windows_with_a_frame(op, types):
    for shape, window, strides, padding in IMAGES:
        for x in distinct(types['T'], shape), np.ones(shape, numpy_type(types['T'])):
            attrs = pool_attrs(window, strides, padding)
            inputs = [x, max_pool(x, window, strides, padding), values(types['T'], shape, key=2)]
            if op.endswith('V2'):
                inputs += [np.array(attrs.pop(name), np.int32) for name in ('ksize', 'strides')]
            yield Case(inputs, attrs)


@cases('MaxPool')
def frames_as_wide_as_the_window(op, types):
    for pads in [0, 0, 2, 0, 0, 0, 0, 0], [0, 0, 0, 2, 0, 0, 0, 0], [0, 0, 0, 0, 0, 3, 0, 0]:
        yield Case([values(types['T'], [1, 4, 4, 1])],
                   {'ksize': [1, 2, 2, 1], 'strides': [1] * 4, 'padding': 'EXPLICIT', 'explicit_paddings': pads}, error=True)


DILATIONS = [([1, 4, 4, 1], [2, 2, 1], [1, 1], [1, 1], 'SAME'), ([2, 6, 5, 3], [3, 2, 3], [2, 1], [1, 2], 'VALID'),
             ([1, 7, 7, 2], [3, 3, 2], [1, 2], [2, 2], 'SAME')]


@cases('Dilation2D', 'Dilation2DBackpropInput', 'Dilation2DBackpropFilter')
def dilation(op, types):
    name = types['T']
    for shape, kernel, strides, rates, padding in DILATIONS:
        inputs = [values(name, shape, -9, 9), values(name, kernel, -9, 9, key=1)]
        if op != 'Dilation2D':
            reach = [(k - 1) * r + 1 for k, r in zip(kernel, rates)]
            sizes, _ = windows(shape, reach, strides, padding)
            inputs.append(values(name, sizes, key=2))
        yield Case(inputs, {'strides': [1, *strides, 1], 'rates': [1, *rates, 1], 'padding': padding})
    image = values(name, [1, 4, 4, 1])
    more = [] if op == 'Dilation2D' else [image]
    one = {'strides': [1] * 4, 'rates': [1] * 4, 'padding': 'SAME'}
    yield Case([image, values(name, [2, 2, 2])] + more, one, error=True)
    if not more:  # TensorFlow's gradients end the process
        yield Case([image, values(name, [2, 2, 1, 1])], one, error=True)
    yield Case([image, values(name, [2, 2, 1])] + more, {**one, 'strides': [2, 1, 1, 1]}, error='any')
    if more:
        yield Case([image, values(name, [2, 2, 1]), image[:, 1:]], one, error=True)


FRACTIONS = [{}, {'overlapping': True}, {'pseudo_random': True}, {'pseudo_random': True, 'overlapping': True}]


@cases('FractionalMaxPool', 'FractionalAvgPool')
def fractional(op, types):
    for attrs in FRACTIONS:
        for seeds in (5, 7), (87654321, 0):
            yield Case([values(types['T'], [2, 9, 11, 2], -100, 100)], {
                'pooling_ratio': [1.0, 1.44, 1.73, 1.0], 'deterministic': True, 'seed': seeds[0], 'seed2': seeds[1], **attrs})
        yield Case([values(types['T'], [1, 8, 6, 1], -100, 100)],
                   {'pooling_ratio': [1.0, 2.0, 3.0, 1.0], 'deterministic': True, 'seed': 1, **attrs})
    image = values(types['T'], [1, 7, 7, 1])
    yield Case([image], {'pooling_ratio': [1.0, 0.5, 1.5, 1.0]}, error=True)
    yield Case([image], {'pooling_ratio': [1.0, 1.5, 1.5, 1.0], 'seed': 3}, error=True)
    yield Case([image], {'pooling_ratio': [2.0, 1.5, 1.5, 2.0]}, error=True)
    yield Case([image[0]], {'pooling_ratio': [1.0, 1.5, 1.5, 1.0]}, error=True)


@cases('FractionalMaxPoolGrad', 'FractionalAvgPoolGrad')
def fractional_gradient(op, types):
    rows, columns = np.array([0, 2, 3, 5]), np.array([0, 1, 3, 4, 6])
    x = distinct(types['T'], [2, 5, 6, 2])
    for overlapping in False, True:
        more = 1 if overlapping else 0
        best = np.stack([np.stack([x[:, a:b + more, c:d + more].max((1, 2)) for c, d in zip(columns, columns[1:])], 1)
                         for a, b in zip(rows, rows[1:])], 1)
        first = [x, best] if 'Max' in op else [np.array(x.shape, np.int64)]
        yield Case(first + [values(types['T'], best.shape, -60, 60), rows, columns], {'overlapping': overlapping})


@cases('Conv')
def conv_of_any_rank(op, types):
    name = types['T']
    for shape, kernel, attrs in ([2, 5, 4, 3], [2, 3, 3, 2], {}), ([2, 3, 5, 4, 3], [2, 3, 3, 2], {'batch_dims': 2}), (
            [1, 6, 6, 2], [3, 2, 2, 2], {'dilations': [1, 2, 1, 1], 'padding': 'VALID'}), (
            [1, 6, 6, 2], [3, 2, 2, 2], {'padding': 'EXPLICIT', 'explicit_paddings': [0, 0, 1, 2, 0, 1, 0, 0]}):
        yield Case([values(name, shape, -2, 2), values(name, kernel, -2, 2, key=1)], conv_attrs(attrs))
    if is_float(name):
        yield Case([values(name, [1, 3, 4, 3, 2], -2, 2), values(name, [2, 2, 2, 2, 3], -2, 2, key=1)],
                   {'strides': [1, 1, 2, 1, 1], 'padding': 'SAME'})
    image = values(name, [1, 4, 4, 4])
    yield Case([image, values(name, [2, 2, 2, 4])], conv_attrs({'groups': 2}), error=True)
    yield Case([image, values(name, [2, 2, 4, 4])], conv_attrs({'data_format': 'CHANNELS_FIRST'}), error='any')
    yield Case([image, values(name, [2, 2, 4])], conv_attrs({}), error=True)
    yield Case([image[0], values(name, [2, 2, 4, 4])], conv_attrs({}), error=True)


def frame(top, bottom, left, right):
    return np.array([[0, 0], [top, bottom], [left, right], [0, 0]], np.int32)


@script('FusedPadConv2D')
def framed(b, types):
    """The client must see paddings as constants."""
    def conv(shape, pads, **attrs):
        return b.op('FusedPadConv2D', b.hidden(values(types['T'], shape, -2, 2)), b.constant(pads),
                    b.hidden(values(types['T'], [3, 2, 2, 3], -2, 2, key=1)), **conv_attrs(attrs))
    steps = []
    for mode in 'REFLECT', 'SYMMETRIC':
        for shape, pads, attrs in ([1, 4, 5, 2], frame(1, 2, 0, 1), {}), ([1, 3, 3, 2], frame(2, 2, 1, 1), {'strides': [1, 2, 2, 1]}), (
                [1, 4, 4, 2], frame(0, 0, 0, 0), {'padding': 'VALID'}):
            steps.append(Step(conv(shape, pads, mode=mode, **attrs)))
    steps.append(Step(conv([1, 3, 3, 2], frame(3, 0, 0, 0), mode='REFLECT'), error=True))
    return steps


@script('FusedResizeAndPadConv2D')
def resized_and_framed(b, types):
    def conv(size, align):
        return b.op('FusedResizeAndPadConv2D', b.hidden(values(types['T'], [1, 4, 4, 2], -2, 2)), b.constant(np.array(size, np.int32)),
                    b.constant(frame(1, 1, 0, 1)), b.hidden(values(types['T'], [3, 2, 2, 3], -2, 2, key=1)),
                    **conv_attrs({'mode': 'REFLECT', 'resize_align_corners': align}))
    steps = [Step(conv(size, align)) for align in (False, True) for size in ([6, 7], [2, 3], [4, 4])]
    return steps + [Step(conv([0, 4], False), error=True)]


@cases('Conv2DBackpropInput', 'Conv2DBackpropFilter')
def filters_without_elements(op, types):
    name = types['T']
    if not is_float(name):
        return
    for kernel in [3, 3, 1, 0], [0, 3, 1, 2]:
        gradient = values(name, [1, 4, 4, kernel[3]])
        first = [np.array([1, 4, 4, 1], np.int32), values(name, kernel)] if op.endswith('Input') else [
            values(name, [1, 4, 4, 1]), np.array(kernel, np.int32)]
        yield Case(first + [gradient], conv_attrs({}))


@script('SpaceToDepth', 'DepthToSpace')
def channels_first(b, types):
    """TensorFlow has no such kernel on a CPU."""
    return [Step(b.op(op, b.hidden(values(types['T'], [1, 4, 4, 4])), block_size=2, data_format='NCHW'), error=True)
            for op in ('SpaceToDepth', 'DepthToSpace')]
