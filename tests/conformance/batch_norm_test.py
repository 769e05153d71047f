#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A convolutional network with batch normalization, trained from equal values by TensorFlow and by weft:
batch_norm_test.py PATH_OF_WEFT [unittest arguments].

The yardstick is the same training in double precision. Both round, each in its own order, and training makes
more of what is lost: where a bias stands before the normalization, whose gradient is nothing but rounding,
Adam turns that into whole steps of the bias and so of the running mean, in TensorFlow's own kernels as well
(the loss does not see it). So losses are held to TensorFlow's, and weft's distance from the truth to
TensorFlow's distance from it.
"""
import sys
import unittest

import numpy as np

import processes
import status_test
from status_test import tasks, tf, tf1

STEPS = 25
# With Keras 3 TensorFlow's first layers are gone.
HAS_LAYERS = tf.__version__.split('.')[:2] <= ['2', '15']


def weights(shape, seed, scale=0.3):
    return np.random.RandomState(seed).uniform(-scale, scale, shape).astype(np.float32)


def normalized(x, name, channels, layer, updates):
    """Fused, by TensorFlow's layer or by the op itself; with elementary ops in double precision."""
    dtype = x.dtype.as_numpy_dtype
    if layer and dtype == np.float32:
        return tf1.layers.batch_normalization(x, momentum=0.9, epsilon=1e-3, training=True, fused=True, name=name)
    scale, offset, mean, variance = (
        tf1.get_variable('%s/%s' % (name, of), initializer=np.full(channels, start, dtype), trainable=start_is, use_resource=True)
        for of, start, start_is in (('gamma', 1, True), ('beta', 0, True), ('moving_mean', 0, False), ('moving_variance', 1, False)))
    if dtype == np.float32:
        out, of_batch, spread = tf1.nn.fused_batch_norm(x, scale, offset, epsilon=1e-3)[:3]
    else:
        of_batch = tf.reduce_mean(x, [0, 1, 2])
        biased = tf.reduce_mean(tf.square(x - of_batch), [0, 1, 2])
        count = float(np.prod(x.shape[:3]))
        spread = biased * count / (count - 1)
        out = (x - of_batch) * tf.math.rsqrt(biased + float(np.float32(1e-3))) * scale + offset
    for running, batch in (mean, of_batch), (variance, spread):
        updates.append(tf1.assign_sub(running, (running - batch) * dtype(0.1)))
    return out


def trained(dtype, optimizer, layer=False, bias=False, target=''):
    """losses, {name: running statistics}"""
    with tf.Graph().as_default() as graph:
        updates = []
        x = tf.constant(weights((16, 12, 12, 3), 1, 1).astype(dtype))
        labels = tf.constant(np.random.RandomState(2).randint(0, 5, 16))
        for i, (inputs, outputs, stride) in enumerate([(3, 8, 1), (8, 8, 2), (8, 16, 1)]):
            kernel = tf1.get_variable('kernel%d' % i, initializer=weights((3, 3, inputs, outputs), 10 + i).astype(dtype), use_resource=True)
            x = tf.nn.conv2d(x, kernel, stride, 'SAME')
            if bias:
                x += tf1.get_variable('bias%d' % i, initializer=weights((outputs,), 20 + i).astype(dtype), use_resource=True)
            x = tf.nn.relu(normalized(x, 'norm%d' % i, outputs, layer, updates))
        out = tf1.get_variable('out', initializer=weights((16, 5), 30).astype(dtype), use_resource=True)
        logits = tf.matmul(tf.reduce_mean(x, [1, 2]), out)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        with tf1.control_dependencies(updates + tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)):
            train = optimizer().minimize(loss)
        running = {v.op.name: v for v in tf1.global_variables() if v.op.name.split('/')[-1] in ('moving_mean', 'moving_variance')}
        with tf1.Session(target, graph=graph, config=tf1.ConfigProto(isolate_session_state=True)) as session:
            session.run(tf1.global_variables_initializer())
            losses = [session.run([loss, train])[0] for _ in range(STEPS)]
            return np.array(losses, np.float64), session.run(running)


def adam():
    return tf1.train.AdamOptimizer(0.01)


def momentum():
    return tf1.train.MomentumOptimizer(0.1, 0.9)


def farthest(got, truth):
    return max(np.max(np.abs(got[name] - truth[name]) / (np.abs(truth[name]) + 1e-2)) for name in truth)


class BatchNorm(unittest.TestCase):
    def test_training(self):
        with tasks() as cluster:
            for optimizer, layer, bias in (adam, False, False), (adam, False, True), (momentum, False, True), (momentum, True, False):
                if layer and not HAS_LAYERS:
                    continue
                with self.subTest(optimizer=optimizer.__name__, layer=layer, bias=bias):
                    self.check(cluster['worker'].target, optimizer, layer, bias)

    def check(self, target, optimizer, layer, bias):
        truth, true_statistics = trained(np.float64, optimizer, layer, bias)
        theirs, their_statistics = trained(np.float32, optimizer, layer, bias)
        ours, our_statistics = trained(np.float32, optimizer, layer, bias, target)
        self.assertLess(truth[-1], 0.8 * truth[0])
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(ours, truth, rtol=1e-5, atol=1e-6)
        if not (bias and optimizer is adam):
            allowed = max(1e-4, 10 * farthest(their_statistics, true_statistics))
            self.assertLess(farthest(our_statistics, true_statistics), allowed)


if __name__ == '__main__':
    status_test.BINARY = processes.binary_from(sys.argv)
    tf1.disable_eager_execution()
    unittest.main()
