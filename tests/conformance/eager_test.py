#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program of TensorFlow 2 connects to weft servers and runs ops, variables and functions on them: eager_test.py [WEFT]."""
import sys
import unittest

import numpy as np
import tensorflow as tf

import processes

X = np.arange(6, dtype=np.float32).reshape(2, 3)


class EagerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(processes.cluster(BINARY, worker=2))
        spec = tf.train.ClusterSpec({'worker': [target[len('grpc://'):] for target in cls.cluster['worker']]})
        tf.config.experimental_connect_to_cluster(spec)
        cls.devices = ['/job:worker/replica:0/task:%d/device:CPU:0' % i for i in range(2)]

    def test_ops(self):
        for device in self.devices:
            with self.subTest(device), tf.device(device):
                y = tf.matmul(tf.constant(X), tf.constant(X), transpose_b=True) + 1.0
                self.assertEqual(y.device, device)
                np.testing.assert_allclose(y.numpy(), X @ X.T + 1)
                a, b = tf.split(tf.constant([1, 2, 3, 4]), 2)
                self.assertEqual((a.numpy().tolist(), b.numpy().tolist()), ([1, 2], [3, 4]))
                self.assertEqual(tf.strings.join(['a', tf.constant('b')]).numpy(), b'ab')

    def test_variables(self):
        with tf.device(self.devices[1]):
            v, w = tf.Variable(X), tf.Variable(2 * X)
            v.assign_add(tf.ones_like(v))
            self.assertEqual(v.device, self.devices[1])
            np.testing.assert_array_equal(v.numpy(), X + 1)
            np.testing.assert_array_equal(w.numpy(), 2 * X)

    def test_functions(self):
        with tf.device(self.devices[0]):
            v = tf.Variable(1.0)

            @tf.function
            def count(x, n):
                for _ in tf.range(n):
                    v.assign_add(tf.reduce_sum(x))
                return v.read_value(), tf.shape(x)
            total, shape = count(tf.constant(X), tf.constant(3))
            self.assertEqual(total.numpy(), 46.0)
            self.assertEqual(shape.numpy().tolist(), [2, 3])
            self.assertEqual(count(tf.constant([1.0]), tf.constant(2))[0].numpy(), 48.0)

    def test_functions_use_variables_of_other_tasks(self):
        with tf.device(self.devices[1]):
            there, idle = tf.Variable([1.0, 2.0]), tf.Variable(5.0)

        @tf.function
        def add(x, twice):
            there.assign_add(x)
            if twice:
                there.assign_add(x)
            return there.read_value() * idle, tf.reduce_sum(x)
        with tf.device(self.devices[0]):
            for twice, expected in (False, [10.0, 15.0]), (True, [20.0, 25.0]):
                scaled, total = add(tf.constant([1.0, 1.0]), tf.constant(twice))
                self.assertEqual((scaled.numpy().tolist(), total.numpy()), (expected, 2.0))

    def test_gradients_train(self):
        with tf.device(self.devices[0]):
            w = tf.Variable(tf.zeros([3, 1]))
            x, y = tf.constant(np.eye(3, dtype=np.float32)), tf.constant([[1.0], [2.0], [3.0]])

            @tf.function
            def step():
                with tf.GradientTape() as tape:
                    loss = tf.reduce_sum(tf.square(tf.matmul(x, w) - y))
                w.assign_sub(0.25 * tape.gradient(loss, w))
                return loss
            losses = [step().numpy() for _ in range(8)]
            self.assertAlmostEqual(losses[0], 14.0, places=5)
            self.assertLess(losses[-1], 1e-3)
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(w * w)
            np.testing.assert_allclose(tape.gradient(loss, w).numpy(), 2 * w.numpy())

    def test_tensors_move_between_tasks(self):
        with tf.device(self.devices[0]):
            x = tf.constant(X) * 2
        with tf.device(self.devices[1]):
            y = x + 1
        self.assertEqual(y.device, self.devices[1])
        np.testing.assert_array_equal(y.numpy(), 2 * X + 1)

    def test_errors_are_the_programs_and_not_the_end(self):
        with tf.device(self.devices[0]):
            with self.assertRaises(tf.errors.InvalidArgumentError):
                tf.reshape(tf.constant(X), [4, 4]).numpy()
            self.assertEqual(tf.reduce_sum(tf.constant(X)).numpy(), 15.0)


if __name__ == '__main__':
    BINARY = processes.binary_from(sys.argv)
    unittest.main(verbosity=2)
