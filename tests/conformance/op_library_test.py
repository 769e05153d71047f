# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's client trains with ops of libraries: op_library_test.py WEFT CLAMP_LIBRARY LION_LIBRARY PAGE

The page's Python is what runs here; what is compared with it is made of TensorFlow's own ops.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import tensorflow as tf

import processes

BINARY = processes.binary_from(sys.argv)
CLAMP, LION, PAGE = sys.argv[1:4]
tf1 = tf.compat.v1
tf1.disable_eager_execution()

FOLDER = tempfile.TemporaryDirectory()
sys.path.insert(0, FOLDER.name)
for library, module in (CLAMP, 'clamp_ops'), (LION, 'lion_ops'):
    subprocess.run([BINARY, 'op-library', library, '--python', os.path.join(FOLDER.name, module + '.py')], check=True)
for block in re.findall(r'^```python\n(.*?)^```$', pathlib.Path(PAGE).read_text(), re.M | re.S):
    exec(block)
import lion_ops  # noqa: E402


class OpLibrary(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        port, = processes.free_ports(1)
        cls.server = subprocess.Popen(
            [BINARY, 'server', '--cluster', '{"worker": ["127.0.0.1:%d"]}' % port, '--job_name', 'worker',
             '--op_library', CLAMP, '--op_library', LION], preexec_fn=processes.die_with_parent)
        processes.wait_for_port(port, cls.server)
        cls.target = 'grpc://127.0.0.1:%d' % port

    @classmethod
    def tearDownClass(cls):
        processes.stop(cls.server)

    def setUp(self):
        tf1.reset_default_graph()
        tf1.set_random_seed(4)

    def test_values_and_gradients(self):
        for dtype in tf.float32, tf.float64:
            x = tf1.placeholder(dtype, [None])
            y, same = clamp(x * 2.0), tf.clip_by_value(x * 2.0, 0.0, 1.0)
            fetches = [y, same, *tf1.gradients(y * y, x), *tf1.gradients(same * same, x)]
            with tf1.Session(self.target) as session:
                ours, theirs, our_slope, their_slope = session.run(fetches, {x: [-2, 0.1, 0.3, 7]})
            np.testing.assert_array_equal(ours, theirs)
            np.testing.assert_allclose(our_slope, their_slope, rtol=1e-6)

    def test_in_a_layer_that_is_trained(self):
        x = tf.constant(np.linspace(-1, 1, 32).reshape(-1, 1).astype(np.float32))
        hidden = clamp(tf.matmul(x, tf1.get_variable('w', [1, 16])) + tf1.get_variable('b', [16]))
        loss = tf.reduce_mean((tf.reduce_sum(hidden, 1, keepdims=True) - x * x) ** 2)
        train = tf1.train.GradientDescentOptimizer(0.02).minimize(loss)
        with tf1.Session(self.target) as session:
            session.run(tf1.global_variables_initializer())
            first = session.run(loss)
            for _ in range(100):
                session.run(train)
            self.assertLess(session.run(loss), 0.5 * first)

    def test_an_optimizer(self):
        lr, beta1, beta2, decay = 0.01, 0.9, 0.99, 0.1
        begin = np.array([1.0, -2.0, 0.5], np.float32)
        var = tf1.get_variable('var', initializer=begin, use_resource=True)
        m = tf1.get_variable('m', initializer=np.zeros_like(begin), use_resource=True)
        gradient, = tf1.gradients(tf.reduce_sum(tf.sin(var.value()) * [1.0, 2.0, 3.0]), var)
        train = lion_ops.resource_apply_lion(var.handle, m.handle, lr, beta1, beta2, decay, gradient)
        expected, momentum = begin.copy(), np.zeros_like(begin)
        with tf1.Session(self.target) as session:
            session.run(tf1.global_variables_initializer())
            for _ in range(20):
                slope = np.cos(expected) * np.array([1, 2, 3], np.float32)
                expected -= lr * (np.sign(beta1 * momentum + (1 - beta1) * slope) + decay * expected)
                momentum = beta2 * momentum + (1 - beta2) * slope
                session.run(train)
            np.testing.assert_allclose(session.run(var), expected, rtol=1e-5)
            np.testing.assert_allclose(session.run(m), momentum, rtol=1e-4)

    def test_rows_of_an_optimizer(self):
        table = tf1.get_variable('table', initializer=np.ones([4, 2], np.float32), use_resource=True)
        m = tf1.get_variable('m', initializer=np.zeros([4, 2], np.float32), use_resource=True)
        train = lion_ops.resource_sparse_apply_lion(table.handle, m.handle, 0.5, 0.9, 0.99, 0.0,
                                                    np.ones([2, 2], np.float32), np.array([3, 1]))
        with tf1.Session(self.target) as session:
            session.run(tf1.global_variables_initializer())
            session.run(train)
            np.testing.assert_allclose(session.run(table)[:, 0], [1, 0.5, 1, 0.5])

    def test_wrong_types_are_refused_by_the_client(self):
        with self.assertRaisesRegex(TypeError, 'not in list of allowed values'):
            clamp(tf1.placeholder(tf.int32, [None]))

    def test_the_client_says_that_its_own_runtime_has_none(self):
        with tf1.Session() as session, self.assertRaises(tf.errors.InvalidArgumentError) as caught:
            session.run(clamp(tf.constant([1.0])))
        self.assertIn('Clamp01', str(caught.exception))

    def test_a_server_without_the_library_names_the_op(self):
        with processes.cluster(BINARY, worker=1) as targets:
            with tf1.Session(targets['worker'][0]) as session, self.assertRaises(tf.errors.OpError) as caught:
                session.run(clamp(tf.constant([1.0])))
        self.assertIn('Clamp01', str(caught.exception))

    def test_a_saved_graph_is_known_to_check(self):
        clamp(tf1.placeholder(tf.float32, [None], name='x'))
        path = os.path.join(FOLDER.name, 'graph.pb')
        with open(path, 'wb') as out:
            out.write(tf1.get_default_graph().as_graph_def().SerializeToString())
        without = subprocess.run([BINARY, 'check', path], stdout=subprocess.PIPE, text=True)
        self.assertEqual(without.returncode, 1)
        self.assertIn('Clamp01', without.stdout)
        self.assertEqual(subprocess.run([BINARY, 'check', path, '--op_library', CLAMP],
                                        stdout=subprocess.DEVNULL).returncode, 0)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)
