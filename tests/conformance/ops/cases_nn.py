# SPDX-License-Identifier: Apache-2.0
"""Layers and losses."""
import numpy as np

from cases import Case, cases, edges, is_float, long, numpy_type, values


@cases('BiasAdd')
def bias_add(op, types):
    name = types['T']
    for shape in [2, 3], [0, 3], [2, 4, 3], [2, 2, 2, 3], [100, 10], [2, 2, 2, 2, 3]:
        yield Case([values(name, shape), values(name, [shape[-1]], key=1)])
    yield Case([values(name, [2, 3, 4, 2]), values(name, [3], key=1)], {'data_format': 'NCHW'})
    yield Case([values(name, [2, 3]), values(name, [2])], error=True)
    yield Case([values(name, [3]), values(name, [3])], error=True)
    yield Case([values(name, [2, 3]), values(name, [1, 3])], error=True)


@cases('BiasAddV1')
def bias_add_v1(op, types):
    yield Case([values(types['T'], [2, 3]), values(types['T'], [3], key=1)])
    yield Case([values(types['T'], [2, 3]), values(types['T'], [2])], error=True)


@cases('BiasAddGrad')
def bias_add_grad(op, types):
    name = types['T']
    for shape in [2, 3], [0, 3], [2, 4, 3], [2, 2, 2, 3], [100, 10]:
        yield Case([values(name, shape)])
    yield Case([values(name, [2, 3, 4, 2])], {'data_format': 'NCHW'})
    yield Case([values(name, [3])], error=True)


@cases('Softmax', 'LogSoftmax')
def softmax(op, types):
    name = types['T']
    for shape in [3], [2, 3], [1, 1], [0, 3], [2, 3, 4], [7, 129]:
        yield Case([values(name, shape)])
    yield Case([np.array([[1000, 0, -1000], [88, 88, 88]]).astype(numpy_type(name))])
    yield Case([values(name, [])], error=True)


@cases('SoftmaxCrossEntropyWithLogits')
def softmax_cross_entropy(op, types):
    name = types['T']
    for a, b in ([2, 3], [2, 3]), ([1, 1], [1, 1]), ([100, 10], [100, 10]), ([2, 3], [1, 3]), ([0, 3], [0, 3]):
        labels = np.abs(values(name, b, key=1))
        yield Case([values(name, a), labels])
    yield Case([np.array([[1000, 0], [0, -1000]]).astype(numpy_type(name)), np.array([[0.5, 0.5], [1, 0]]).astype(numpy_type(name))])
    yield Case([values(name, [2, 3]), values(name, [2, 4])], error=True)
    yield Case([values(name, [3]), values(name, [3])], error=True)


@cases('SparseSoftmaxCrossEntropyWithLogits')
def sparse_softmax_cross_entropy(op, types):
    name, index = types['T'], numpy_type(types['Tlabels'])
    for shape, labels in ([2, 3], [0, 2]), ([1, 1], [0]), ([0, 3], []), ([100, 10], np.arange(100) % 10):
        yield Case([values(name, shape), np.array(labels).astype(index)])
    yield Case([values(name, [2, 3]), np.array([0, 3], index)], error=True)
    yield Case([values(name, [2, 3]), np.array([0, -1], index)], error=True)
    yield Case([values(name, [2, 3]), np.array([0], index)], error=True)
    yield Case([values(name, [3]), np.array([0], index)], error=True)


@cases('InTopKV2', 'InTopK')
def in_top_k(op, types):
    index = numpy_type(types['T'])
    k = index if op == 'InTopKV2' else None
    x = np.array([[0.1, 0.5, 0.4], [3, 1, 2], [1, 1, 0]], np.float32)
    for count in 1, 2, 3:
        arguments = [x, np.array([1, 1, 0], index)]
        yield Case(arguments + [np.array(count, k)]) if k else Case(arguments, {'k': count})
    if k:
        yield Case([x, np.array([0, 5, -1], index), np.array(1, k)])
        yield Case([np.array([[np.nan, 1], [np.inf, 0]], np.float32), np.array([1, 1], index), np.array(1, k)])
        yield Case([x, np.array([0, 1], index), np.array(1, k)], error=True)
        yield Case([x[0], np.array([0, 1, 1], index), np.array(1, k)], error=True)


CONVOLUTIONS = [  # input NHWC, filter HWIO, attributes
    ([1, 4, 4, 1], [3, 3, 1, 2], {}), ([2, 8, 8, 1], [3, 3, 1, 8], {}), ([2, 8, 7, 3], [2, 3, 3, 4], {'strides': [1, 2, 2, 1]}),
    ([1, 5, 5, 2], [1, 1, 2, 3], {}), ([1, 6, 6, 2], [3, 3, 2, 2], {'padding': 'VALID'}),
    ([1, 9, 9, 2], [3, 3, 2, 2], {'dilations': [1, 2, 2, 1], 'padding': 'VALID'}), ([3, 4, 4, 8], [3, 3, 8, 16], {}),
    ([1, 5, 5, 1], [5, 5, 1, 1], {'padding': 'VALID'}), ([2, 13, 11, 16], [3, 3, 16, 18], {}),
    ([3, 10, 9, 17], [5, 5, 17, 16], {'padding': 'VALID'}),
    ([1, 4, 4, 2], [3, 3, 2, 2], {'padding': 'EXPLICIT', 'explicit_paddings': [0, 0, 1, 2, 0, 1, 0, 0]}), ([0, 4, 4, 1], [2, 2, 1, 2], {})]

UNDILATED = [row for row in CONVOLUTIONS if 'dilations' not in row[2]]  # TensorFlow's gradients on a CPU have no others


def conv_attrs(attrs):
    return {'strides': [1, 1, 1, 1], 'padding': 'SAME', **attrs}


def conv_output(shape, kernel, attrs):
    attrs = conv_attrs(attrs)
    size = []
    for axis in 1, 2:
        reach = (kernel[axis - 1] - 1) * attrs.get('dilations', [1] * 4)[axis] + 1
        pads = attrs.get('explicit_paddings', [0] * 8)[2 * axis:2 * axis + 2]
        stride = attrs['strides'][axis]
        room = shape[axis] + sum(pads)
        size.append(-(-room // stride) if attrs['padding'] == 'SAME' else (room - reach) // stride + 1)
    return [shape[0], *size, kernel[3]]


@cases('Conv2D')
def conv2d(op, types):
    name = types['T']
    for shape, kernel, attrs in CONVOLUTIONS:
        yield Case([values(name, shape, -2, 2), values(name, kernel, -2, 2, key=1)], conv_attrs(attrs))
    yield Case([values(name, [1, 4, 4, 3]), values(name, [3, 3, 2, 2])], conv_attrs({}), error=True)
    yield Case([values(name, [4, 4, 1]), values(name, [3, 3, 1, 2])], conv_attrs({}), error=True)
    yield Case([values(name, [1, 2, 2, 1]), values(name, [3, 3, 1, 2])], conv_attrs({'padding': 'VALID'}))


@cases('Conv2DBackpropInput')
def conv2d_backprop_input(op, types):
    name = types['T']
    if not is_float(name):
        return
    for shape, kernel, attrs in UNDILATED:
        yield Case([np.array(shape, np.int32), values(name, kernel, -2, 2), values(name, conv_output(shape, kernel, attrs), -2, 2, key=1)],
                   conv_attrs(attrs))
    yield Case([np.array([1, 4, 4, 1], np.int32), values(name, [3, 3, 1, 2]), values(name, [1, 4, 4, 3])], conv_attrs({}), error=True)
    yield Case([np.array([1, 4, 4, 1], np.int32), values(name, [3, 3, 1, 2]), values(name, [1, 3, 4, 2])], conv_attrs({}), error=True)


@cases('Conv2DBackpropFilter')
def conv2d_backprop_filter(op, types):
    name = types['T']
    if not is_float(name):
        return
    for shape, kernel, attrs in UNDILATED:
        yield Case([values(name, shape, -2, 2), np.array(kernel, np.int32), values(name, conv_output(shape, kernel, attrs), -2, 2, key=1)],
                   conv_attrs(attrs))
    yield Case([values(name, [1, 4, 4, 1]), np.array([3, 3, 1, 2], np.int32), values(name, [1, 4, 4, 3])], conv_attrs({}), error=True)


POOLS = [([1, 4, 4, 1], 2, 2, 'SAME'), ([2, 5, 5, 3], 2, 2, 'SAME'), ([2, 5, 5, 3], 2, 2, 'VALID'), ([1, 6, 6, 2], 3, 1, 'SAME'),
         ([1, 6, 6, 2], 3, 2, 'VALID'), ([1, 2, 2, 1], 2, 1, 'VALID')]


def pool_attrs(k, stride, padding):
    return {'ksize': [1, k, k, 1], 'strides': [1, stride, stride, 1], 'padding': padding}


def pool_output(shape, k, stride, padding):
    return [shape[0]] + [-(-n // stride) if padding == 'SAME' else (n - k) // stride + 1 for n in shape[1:3]] + [shape[3]]


@cases('MaxPool', 'AvgPool')
def pool(op, types):
    name = types['T']
    for shape, *window in POOLS:
        yield Case([values(name, shape, -100 if name != 'uint8' else 0, 100)], pool_attrs(*window))
    yield Case([values(name, [4, 4, 1])], pool_attrs(2, 2, 'SAME'), error=True)


@cases('MaxPoolV2')
def max_pool_v2(op, types):
    for shape, k, stride, padding in POOLS:
        window, strides = np.array([1, k, k, 1], np.int32), np.array([1, stride, stride, 1], np.int32)
        yield Case([values(types['T'], shape, 0, 100), window, strides], {'padding': padding})
    yield Case([values(types['T'], [1, 4, 4, 1]), np.array([1, 2, 2], np.int32), np.array([1, 1, 1, 1], np.int32)],
               {'padding': 'SAME'}, error=True)


@cases('MaxPoolGradV2')
def max_pool_grad_v2(op, types):
    for shape, k, stride, padding in POOLS:
        x = (np.random.RandomState(1).permutation(int(np.prod(shape))) % 120).astype(numpy_type(types['T'])).reshape(shape)
        out = reference_max_pool(x, k, stride, padding)
        window, strides = np.array([1, k, k, 1], np.int32), np.array([1, stride, stride, 1], np.int32)
        yield Case([x, out, values(types['T'], out.shape, key=2), window, strides], {'padding': padding})


@cases('MaxPoolGradGrad', 'MaxPoolGradGradV2')
def max_pool_grad_grad(op, types):
    for shape, k, stride, padding in POOLS:
        x = (np.random.RandomState(1).permutation(int(np.prod(shape))) % 120).astype(numpy_type(types['T'])).reshape(shape)
        inputs = [x, reference_max_pool(x, k, stride, padding), values(types['T'], shape, key=2)]
        attrs = pool_attrs(k, stride, padding)
        if op.endswith('V2'):
            inputs += [np.array(attrs.pop(name), np.int32) for name in ('ksize', 'strides')]
        yield Case(inputs, attrs)


@cases('MaxPoolGrad')
def max_pool_grad(op, types):
    name = types['T']
    for shape, *window in POOLS:
        size = int(np.prod(shape))
        x = np.random.RandomState(1).permutation(size) % 100 if size < 100 else np.random.RandomState(1).permutation(size)
        x = (x % 120).astype(numpy_type(name)).reshape(shape)
        out = reference_max_pool(x, *window)
        yield Case([x, out, values(name, out.shape, key=2)], pool_attrs(*window))
    yield Case([values(name, [1, 4, 4, 1]), values(name, [1, 2, 2, 1]), values(name, [1, 3, 2, 1])], pool_attrs(2, 2, 'SAME'), error=True)


def reference_max_pool(x, k, stride, padding):
    out = np.zeros(pool_output(x.shape, k, stride, padding), x.dtype)
    top = max((out.shape[1] - 1) * stride + k - x.shape[1], 0) // 2 if padding == 'SAME' else 0
    for i in range(out.shape[1]):
        for j in range(out.shape[2]):
            rows = slice(max(i * stride - top, 0), i * stride - top + k)
            columns = slice(max(j * stride - top, 0), j * stride - top + k)
            out[:, i, j, :] = x[:, rows, columns, :].max(axis=(1, 2))
    return out


@cases('AvgPoolGrad')
def avg_pool_grad(op, types):
    name = types['T']
    for shape, *window in POOLS:
        yield Case([np.array(shape, np.int32), values(name, pool_output(shape, *window))], pool_attrs(*window))
    yield Case([np.array([4, 4, 1], np.int32), values(name, [1, 2, 2, 1])], pool_attrs(2, 2, 'SAME'), error=True)
