#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A model of models.py as a graph of TensorFlow 1, on a server or in this process.

    tensorflow_models.py MODEL (train|infer|inferBATCH) [TARGET PID]

With TARGET the graph runs on that server and the CPU time of process PID counts as well.
"""
import os
import sys

os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
os.environ['CUDA_VISIBLE_DEVICES'] = ''
os.environ['TF_USE_LEGACY_KERAS'] = '1'

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from models import model_of, weights  # noqa: E402
from rounds import serve  # noqa: E402

tf1 = tf.compat.v1


def last(x):
    """The size of a tensor's last dimension."""
    return int(x.shape[-1])


class Backend:
    def __init__(self, is_training):
        self.generator, self.is_training = np.random.default_rng(1), is_training
        self.count, self.deep, self.linear, self.updates = 0, [], [], []

    def variable(self, shape, scale, trainable=True, to=None):
        self.count += 1
        made = tf1.get_variable('v%d' % self.count, initializer=weights(self.generator, shape, scale), trainable=trainable,
                                use_resource=True)
        if trainable:
            (self.deep if to is None else to).append(made)
        return made

    def conv(self, x, filters, size, stride=1, bias=False):
        channels = last(x)
        y = tf1.nn.conv2d(x, self.variable((size, size, channels, filters), (2 / (size * size * channels)) ** 0.5),
                          strides=[1, stride, stride, 1], padding='SAME')
        return tf1.nn.bias_add(y, self.variable((filters,), (0.0,))) if bias else y

    def depthwise(self, x, size, stride):
        filters = self.variable((size, size, last(x), 1), (2 / (size * size)) ** 0.5)
        return tf1.nn.depthwise_conv2d(x, filters, strides=[1, stride, stride, 1], padding='SAME')

    def upsample(self, x, filters):
        size = tf1.shape(x)
        kernel = self.variable((2, 2, filters, last(x)), (1 / last(x)) ** 0.5)
        y = tf1.nn.conv2d_transpose(x, kernel, tf1.stack([size[0], 2 * int(x.shape[1]), 2 * int(x.shape[2]), filters]), [1, 2, 2, 1])
        return tf1.nn.bias_add(y, self.variable((filters,), (0.0,)))

    def norm(self, x):
        channels = (last(x),)
        scale, offset = self.variable(channels, (1.0,)), self.variable(channels, (0.0,))
        mean, variance = self.variable(channels, (0.0,), False), self.variable(channels, (1.0,), False)
        if not self.is_training:
            return tf1.nn.fused_batch_norm(x, scale, offset, mean, variance, epsilon=1e-3, is_training=False)[0]
        y, batch_mean, batch_variance = tf1.nn.fused_batch_norm(x, scale, offset, epsilon=1e-3, is_training=True)
        for running, now in (mean, batch_mean), (variance, batch_variance):
            self.updates.append(tf1.assign_sub(running, (running - now) * 0.01))
        return y

    relu = staticmethod(tf1.nn.relu)
    relu6 = staticmethod(tf1.nn.relu6)

    @staticmethod
    def gelu(x):
        return 0.5 * x * (1 + tf1.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))

    @staticmethod
    def max_pool(x, size, stride):
        return tf1.nn.max_pool2d(x, size, stride, 'SAME')

    @staticmethod
    def mean(x):
        return tf1.reduce_mean(x, [1, 2])

    @staticmethod
    def flatten(x):
        return tf1.reshape(x, [-1, np.prod([int(n) for n in x.shape[1:]])])

    @staticmethod
    def concat(parts):
        return tf1.concat(parts, -1)

    @staticmethod
    def split(x, parts, width):
        return tf1.reshape(x, [-1, parts, width])

    @staticmethod
    def sum(x, axis, keep=False):
        return tf1.reduce_sum(x, axis, keepdims=keep)

    def dense(self, x, units):
        kernel = self.variable((last(x), units), (1 / last(x)) ** 0.5)
        bias = self.variable((units,), (0.0,))
        flat = tf1.reshape(x, [-1, last(x)]) if len(x.shape) > 2 else x
        y = tf1.nn.bias_add(tf1.matmul(flat, kernel), bias)
        return tf1.reshape(y, [-1] + [int(n) for n in x.shape[1:-1]] + [units]) if len(x.shape) > 2 else y

    def embedding(self, ids, rows, width):
        return tf1.nn.embedding_lookup(self.variable((rows, width), 0.05), ids)

    def wide(self, columns, rows, classes):
        parts = [tf1.nn.embedding_lookup(self.variable((rows, classes), 0.01, to=self.linear), ids) for ids in columns]
        return tf1.add_n(parts)

    def layer_norm(self, x):
        mean, variance = tf1.nn.moments(x, [-1], keep_dims=True)
        scale, offset = self.variable((last(x),), (1.0,)), self.variable((last(x),), (0.0,))
        return tf1.nn.batch_normalization(x, mean, variance, offset, scale, 1e-5)

    @staticmethod
    def attention(q, k, v, heads):
        length, width = int(q.shape[1]), int(q.shape[2])

        def split(x):
            return tf1.transpose(tf1.reshape(x, [-1, length, heads, width // heads]), [0, 2, 1, 3])
        weight = tf1.nn.softmax(tf1.matmul(split(q), split(k), transpose_b=True) * (width // heads) ** -0.5)
        return tf1.reshape(tf1.transpose(tf1.matmul(weight, split(v)), [0, 2, 1, 3]), [-1, length, width])

    def recurrent(self, x, kind, width):
        """The last state of a loop over axis 1. The gates of a GRU are reset, update, new, with the reset after the product."""
        gates = 4 if kind == 'lstm' else 3
        kernel = self.variable((last(x), gates * width), (1 / last(x)) ** 0.5)
        recurrent = self.variable((width, gates * width), (1 / width) ** 0.5)
        bias, recurrent_bias = self.variable((gates * width,), (0.0,)), self.variable((gates * width,), (0.0,))
        batch, length = tf1.shape(x)[0], int(x.shape[1])
        seen = tf1.TensorArray(tf.float32, length).unstack(tf1.transpose(x, [1, 0, 2]))

        def body(i, h, c):
            left = tf1.nn.bias_add(tf1.matmul(seen.read(i), kernel), bias)
            right = tf1.nn.bias_add(tf1.matmul(h, recurrent), recurrent_bias)
            if kind == 'lstm':
                into, forget, new, out = tf1.split(left + right, 4, 1)
                c = tf1.sigmoid(forget) * c + tf1.sigmoid(into) * tf1.tanh(new)
                return i + 1, tf1.sigmoid(out) * tf1.tanh(c), c
            (lr, lz, ln), (rr, rz, rn) = tf1.split(left, 3, 1), tf1.split(right, 3, 1)
            z = tf1.sigmoid(lz + rz)
            return i + 1, (1 - z) * tf1.tanh(ln + tf1.sigmoid(lr + rr) * rn) + z * h, c
        first = tf1.zeros(tf1.stack([batch, width]))
        first.set_shape([None, width])
        return tf1.while_loop(lambda i, h, c: i < length, body, [tf1.constant(0), first, first])[1]


def optimizer_of(name, rate):
    return {'sgd': lambda: tf1.train.GradientDescentOptimizer(rate), 'adam': lambda: tf1.train.AdamOptimizer(rate),
            'momentum': lambda: tf1.train.MomentumOptimizer(rate, 0.9),
            'adagrad': lambda: tf1.train.AdagradOptimizer(rate, initial_accumulator_value=0.1)}[name]()


def build(name, mode):
    """What a step of a model fetches, its placeholders and their arrays, by name."""
    tf1.disable_v2_behavior()
    model = model_of(name, mode)
    arrays = model.feeds(np.random.default_rng(2))
    feeds = {key: tf1.placeholder(array.dtype, (None,) + array.shape[1:]) for key, array in arrays.items()}
    backend = Backend(mode == 'train')
    logits = model.build(backend, feeds)
    if mode == 'train':
        loss = tf1.reduce_mean(tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=feeds['labels'], logits=logits))
        optimizer = optimizer_of(*model.optimizer)
        pairs = optimizer.compute_gradients(loss, backend.deep + backend.linear)
        trains = [optimizer.apply_gradients(pairs[:len(backend.deep)])]
        if backend.linear:
            trains.append(tf1.train.FtrlOptimizer(0.05, l1_regularization_strength=0.001).apply_gradients(pairs[len(backend.deep):]))
        fetches = [loss, tf1.group(*trains, *backend.updates)]
    else:
        fetches = [tf1.reduce_mean(logits * logits), logits]
        arrays.pop('labels')
    return fetches, feeds, arrays


def make_step(name, mode, target):
    fetches, feeds, arrays = build(name, mode)
    session = tf1.Session(target)
    session.run(tf1.global_variables_initializer())
    call = session.make_callable(fetches, [feeds[key] for key in arrays])
    values = list(arrays.values())
    return lambda: call(*values)[0]


if __name__ == '__main__':
    serve(make_step(sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else ''), checks=3,
          server=int(sys.argv[4]) if len(sys.argv) > 4 else None)
