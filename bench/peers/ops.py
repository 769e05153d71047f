# SPDX-License-Identifier: Apache-2.0
"""The cases of the row `ops`: single ops of the sizes that models have, and their gradients.

A case has inputs, each made from a generator of numbers; what it builds from their values by TensorFlow's functions of
version 1; how many copies of that make one step, one after the other, so that what a step itself costs is next to nothing.
"""
import collections

import numpy as np

# moved: bytes that are read and written, None for all inputs and outputs once. gather: rows, width and count of a look-up.
Case = collections.namedtuple('Case', 'inputs build copies is_checked moved gather', defaults=(None, None))
CASES = {}


def normal(*shape, dtype=np.float32):
    return lambda generator: generator.standard_normal(shape).astype(dtype)


def positive(*shape):
    return lambda generator: generator.random(shape, np.float32) + np.float32(0.1)


def below(limit, *shape):
    return lambda generator: generator.integers(0, limit, shape).astype(np.int32)


def add(name, inputs, build, copies=1, is_checked=True, **more):
    CASES[name] = Case(inputs, build, copies, is_checked, **more)


def gradients(function):
    """The gradients of the sum of what `function` gives, times itself, in all its float arguments."""
    def build(tf, *values):
        result = function(tf, *values)
        return tf.gradients(result, [one for one in values if one.dtype.is_floating], grad_ys=result)
    return build


def products():
    for size, copies in (128, 150), (256, 30), (1024, 1):
        add('product %d' % size, [normal(size, size), normal(size, size)], lambda tf, a, b: [tf.matmul(a, b)], copies)
    add('product 512 double', [normal(512, 512, dtype=np.float64)] * 2, lambda tf, a, b: [tf.matmul(a, b)], 3)
    # m, n, k of the models' layers: recurrent ones, a transformer's, embeddings', LeNet's.
    for m, n, k, copies in (1, 1024, 1024, 60), (8, 512, 256, 200), (32, 512, 128, 100), (32, 512, 256, 60), (512, 256, 256, 10), (
            512, 1024, 256, 3), (512, 256, 1024, 3), (256, 256, 416, 15), (64, 1024, 3136, 2), (16, 512, 512, 60):
        add('product %dx%dx%d' % (m, n, k), [normal(m, k), normal(k, n)], lambda tf, a, b: [tf.matmul(a, b)], copies)
        add('its gradients %dx%dx%d' % (m, n, k), [normal(m, k), normal(k, n), normal(m, n)], lambda tf, a, b, c: [
            tf.matmul(c, b, transpose_b=True), tf.matmul(a, c, transpose_a=True)], max(1, copies // 2))
    add('products of heads', [normal(8, 4, 64, 64)] * 2, lambda tf, a, b: [tf.matmul(a, b, transpose_b=True), tf.matmul(a, b)], 20)


Product = collections.namedtuple('Product', 'm n k form dtype copies')


def product_named(name):
    """The product that 'product_name' named."""
    m, n, k, form, dtype, copies = name.split()[1:]
    return Product(int(m), int(n), int(k), form, np.dtype(dtype), int(copies))


def product_name(m, n, k, form, dtype):
    """form: 'nn', 'nt' or 'tn', t for what is stored transposed. A step has as many copies as make some five milliseconds."""
    return 'matmul %d %d %d %s %s %d' % (m, n, k, form, np.dtype(dtype).name, max(1, min(200, int(2e8 / (m * n * k)))))


def shapes_of(product):
    """How the two sides are stored."""
    left, right = (product.m, product.k), (product.k, product.n)
    return (left[::-1] if product.form[0] == 't' else left), (right[::-1] if product.form[1] == 't' else right)


def case_of(name):
    """A case by its name, products of any size among them."""
    if not name.startswith('matmul '):
        return CASES[name]
    product = product_named(name)
    return Case([normal(*shape, dtype=product.dtype.type) for shape in shapes_of(product)],
                lambda tf, a, b: [tf.matmul(a, b, transpose_a=product.form[0] == 't', transpose_b=product.form[1] == 't')],
                product.copies, True)


def convolutions():
    def conv(strides):
        return lambda tf, x, w: [tf.nn.conv2d(x, w, strides=[1, strides, strides, 1], padding='SAME')]

    for what, x, w, stride, copies in (('1x1', (8, 14, 14, 256), (1, 1, 256, 1024), 1, 2), ('3x3', (8, 28, 28, 128), (3, 3, 128, 128), 1, 2), (
            '3x3 by 2', (8, 28, 28, 128), (3, 3, 128, 256), 2, 2), ('7x7 by 2', (4, 112, 112, 3), (7, 7, 3, 64), 2, 3), (
            '5x5', (64, 14, 14, 32), (5, 5, 32, 64), 1, 2)):
        add('convolution ' + what, [normal(*x), normal(*w)], conv(stride), copies)
        add('its gradients, ' + what, [normal(*x), normal(*w)], gradients(lambda tf, x, w, f=conv(stride): f(tf, x, w)[0]), copies)
    add('depthwise 3x3', [normal(8, 56, 56, 64), normal(3, 3, 64, 1)],
        lambda tf, x, w: [tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], 'SAME')], 5)


def rows():
    def layer_norm(tf, x, scale, offset):
        mean, variance = tf.nn.moments(x, [-1], keep_dims=True)
        return tf.nn.batch_normalization(x, mean, variance, offset, scale, 1e-5)

    def batch_norm(tf, x, scale, offset):
        return tf.nn.fused_batch_norm(x, scale, offset, epsilon=1e-3, is_training=True)[0]

    def cross_entropy(tf, x, labels):
        return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x)

    x = normal(1024, 1024)
    add('softmax 1024x1024', [x], lambda tf, x: [tf.nn.softmax(x)], 5)
    add('softmax 2048x64', [normal(2048, 64)], lambda tf, x: [tf.nn.softmax(x)], 30)
    add('its gradient 2048x64', [normal(2048, 64)], gradients(lambda tf, x: tf.nn.softmax(x)), 20)
    add('log softmax 256x10000', [normal(256, 10000)], lambda tf, x: [tf.nn.log_softmax(x)], 2)
    add('layer norm 512x256', [normal(512, 256), positive(256), normal(256)], lambda tf, *v: [layer_norm(tf, *v)], 30)
    add('its gradients 512x256', [normal(512, 256), positive(256), normal(256)], gradients(layer_norm), 10)
    add('batch norm 8x28x28x128', [normal(8, 28, 28, 128), positive(128), normal(128)], lambda tf, *v: [batch_norm(tf, *v)], 5)
    add('its gradients 8x28x28x128', [normal(8, 28, 28, 128), positive(128), normal(128)], gradients(batch_norm), 3)
    add('cross entropy 512x1000', [normal(512, 1000), below(1000, 512)], lambda tf, *v: [cross_entropy(tf, *v)], 8)
    add('its gradient 512x1000', [normal(512, 1000), below(1000, 512)], gradients(cross_entropy), 8)
    add('dropout 1024x1024', [x], lambda tf, x: [tf.nn.dropout(x, rate=0.5)], 3, is_checked=False)
    add('random uniform 1M', [], lambda tf: [tf.random_uniform([1 << 20])], 3, is_checked=False)
    add('random normal 1M', [], lambda tf: [tf.random_normal([1 << 20])], 3, is_checked=False)
    add('sum of all 4M', [normal(1 << 22)], lambda tf, x: [tf.reduce_sum(x)], 5)
    add('sums of rows 1024x1024', [x], lambda tf, x: [tf.reduce_sum(x, 1)], 20)
    add('sums of columns 1024x1024', [x], lambda tf, x: [tf.reduce_sum(x, 0)], 20)
    add('largest of columns 1024x1024', [x], lambda tf, x: [tf.reduce_max(x, 0)], 20)
    add('means of images 8x28x28x128', [normal(8, 28, 28, 128)], lambda tf, x: [tf.reduce_mean(x, [1, 2])], 20)
    add('place of the largest 1024x1024', [x], lambda tf, x: [tf.argmax(x, 1)], 10)
    add('top 10 of 1024x1024', [x], lambda tf, x: [tf.nn.top_k(x, 10)[0]], 2)
    add('running sums 1024x1024', [x], lambda tf, x: [tf.cumsum(x, 1)], 5)
    add('max pool 8x56x56x64', [normal(8, 56, 56, 64)], lambda tf, x: [tf.nn.max_pool2d(x, 2, 2, 'SAME')], 5)
    add('its gradient 8x56x56x64', [normal(8, 56, 56, 64)], gradients(lambda tf, x: tf.nn.max_pool2d(x, 2, 2, 'SAME')), 3)
    add('average pool 8x56x56x64', [normal(8, 56, 56, 64)], lambda tf, x: [tf.nn.avg_pool2d(x, 3, 2, 'SAME')], 5)


def gelu(tf, x):
    return 0.5 * x * (1 + tf.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def bias(tf, x, b):
    return tf.nn.bias_add(x, b)


def element_wise():
    x = normal(1 << 20)
    for name in 'tanh', 'sigmoid', 'exp', 'relu', 'erf', 'sqrt', 'square':
        inputs = [positive(1 << 20)] if name == 'sqrt' else [x]
        find = (lambda tf, name=name: getattr(tf.nn if name in ('relu', 'sigmoid') else tf.math, name))
        add('%s of 1M' % name, inputs, lambda tf, x, find=find: [find(tf)(x)], 8)
    add('sum of two 1M', [x, x], lambda tf, a, b: [a + b], 10)
    add('sum of two 64K', [normal(65536)] * 2, lambda tf, a, b: [a + b], 100)
    add('with a row 1024x1024', [normal(1024, 1024), normal(1024)], lambda tf, a, b: [a * b], 10)
    add('with a column 1024x1024', [normal(1024, 1024), normal(1024, 1)], lambda tf, a, b: [a * b], 10)
    add('gelu of 1M', [x], lambda tf, x: [gelu(tf, x)], 4)
    add('its gradient of 1M', [x], gradients(gelu), 2)
    add('choice of 1M', [x, x], lambda tf, a, b: [tf.where(a > b, a, b)], 8)
    add('cast of 1M', [below(100, 1 << 20)], lambda tf, x: [tf.cast(x, tf.float32)], 10)
    add('to halves and back 1M', [x], lambda tf, x: [tf.cast(tf.cast(x, tf.float16), tf.float32)], 5)
    add('clip of 1M', [x], lambda tf, x: [tf.clip_by_value(x, -1, 1)], 8)
    add('norm of 1M', [x], lambda tf, x: [tf.nn.l2_loss(x)], 10)
    add('bias 8x28x28x128', [normal(8, 28, 28, 128), normal(128)], lambda tf, x, b: [bias(tf, x, b)], 8)
    add('its gradient 8x28x28x128', [normal(8, 28, 28, 128), normal(128)], gradients(bias), 5)


def moves():
    x = normal(1024, 1024)
    add('transpose 1024x1024', [x], lambda tf, x: [tf.transpose(x)], 8)
    add('transpose of heads 8x64x4x64', [normal(8, 64, 4, 64)], lambda tf, x: [tf.transpose(x, [0, 2, 1, 3])], 60)
    add('images to channels 8x28x28x128', [normal(8, 28, 28, 128)], lambda tf, x: [tf.transpose(x, [0, 3, 1, 2])], 8)
    add('join of 8 in rows', [normal(512, 128)] * 8, lambda tf, *v: [tf.concat(v, 1)], 10)
    add('split of 4 in rows', [normal(512, 1024)], lambda tf, x: tf.split(x, 4, 1), 10)
    add('slice of rows', [x], lambda tf, x: [x[:, 100:612]], 20)
    for what, rows, width, count, copies in (('a million', 1000000, 16, 26 * 256, 10), ('100,000', 100000, 64, 8192, 8),
                                             ('a million, cold,', 1000000, 16, 1 << 18, 1)):
        add('rows of %s by %d' % (what, width), [normal(rows, width), below(rows, count)], lambda tf, t, i: [tf.gather(t, i)], copies,
            gather=(rows, width, count))
    add('sums of segments 8192x64', [normal(8192, 64), below(1000, 8192)], lambda tf, x, i: [tf.unsorted_segment_sum(x, i, 1000)], 8)
    add('one hot 4096 of 1000', [below(1000, 4096)], lambda tf, i: [tf.one_hot(i, 1000)], 3)
    add('padding 8x28x28x128', [normal(8, 28, 28, 128)], lambda tf, x: [tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]])], 5)
    add('tiles 1024x256', [normal(1024, 256)], lambda tf, x: [tf.tile(x, [1, 4])], 8)
    add('stack of 50', [normal(32, 128)] * 50, lambda tf, *v: [tf.stack(v)], 40)
    add('distinct of 26,000', [below(5000, 26000)], lambda tf, i: [tf.unique(i)[0]], 10, is_checked=False)


def update(op, slots, **scalars):
    """An optimizer's op on a variable, its slots and a gradient; what it gives is the variable's first element."""
    def build(tf, *values):
        handles = [one.op.inputs[0].op.inputs[0] for one in values[:-1]]
        names = dict(zip(('var',) + slots, handles))
        run = getattr(tf.raw_ops, 'ResourceApply' + op)(**names, **{key: tf.constant(value) for key, value in scalars.items()},
                                                        **{'delta' if op == 'GradientDescent' else 'grad': values[-1]})
        with tf.control_dependencies([run]):
            return [tf.raw_ops.ResourceGather(resource=handles[0], indices=[0], dtype=tf.float32)]
    return build


def updates():
    count = 1 << 21
    for op, slots, scalars in (('GradientDescent', (), dict(alpha=0.01)), ('Momentum', ('accum',), dict(lr=0.01, momentum=0.9)),
                               ('Adagrad', ('accum',), dict(lr=0.01)),
                               ('Adam', ('m', 'v'), dict(beta1_power=0.9, beta2_power=0.999, lr=0.01, beta1=0.9, beta2=0.999,
                                                         epsilon=1e-8)),
                               ('Ftrl', ('accum', 'linear'), dict(lr=0.05, l1=0.001, l2=0.0, lr_power=-0.5))):
        add('update %s of 2M' % op, [positive(count)] * (1 + len(slots)) + [normal(count)], update(op, slots, **scalars), 5,
            moved=4 * count * (2 * (1 + len(slots)) + 1))


products()
updates()
convolutions()
rows()
element_wise()
moves()
