#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Graphs on several devices, in one task and over two: devices_test.py PATH_OF_WEFT [unittest arguments].

Each graph runs in TensorFlow's own session with two CPU devices, then behind a server with two, then on the one
device of each of two tasks; the losses must be the same.
"""
import sys
import unittest

import numpy as np

import processes
import status_test
from status_test import tasks, tf, tf1

TWO_DEVICES = '/cpu:0', '/cpu:1'
TWO_TASKS = '/job:worker/task:0/cpu:0', '/job:ps/task:0/cpu:0'
STEPS = 12


def weights(shape, seed):
    return np.random.RandomState(seed).uniform(-0.5, 0.5, shape).astype(np.float32)


def trained(loss):
    """[what initializes, what trains and gives the loss]"""
    train = tf1.train.GradientDescentOptimizer(0.1).minimize(loss)
    return tf1.global_variables_initializer(), [train, loss]


def two_layers(first, second):
    """Each layer's variables and work on a device of its own."""
    x, y = tf.constant(weights((16, 4), 1)), tf.constant(weights((16, 1), 2))
    with tf.device(first):
        hidden = tf.tanh(tf.matmul(x, tf1.get_variable('a', initializer=weights((4, 8), 3), use_resource=True)))
    with tf.device(second):
        out = tf.matmul(hidden, tf1.get_variable('b', initializer=weights((8, 1), 4), use_resource=False))
    with tf.device(first):
        return trained(tf.reduce_mean(tf.square(out - y)))


def loop_across(first, second):
    """A recurrent network whose cell is on the second device and whose loop is on the first."""
    with tf.device(second):
        cell = tf1.get_variable('cell', initializer=weights((4, 4), 5), use_resource=True)
    with tf.device(first):
        scale = tf1.get_variable('scale', initializer=weights((4, 4), 6), use_resource=True)
        start = tf.constant(weights((3, 4), 7))

        def body(i, state):
            with tf.device(second):
                state = tf.tanh(tf.matmul(state, cell))
            with tf.device(first):
                return i + 1, state + tf.matmul(state, scale)
        _, state = tf.while_loop(lambda i, state: i < 5, body, [tf.constant(0), start])
        return trained(tf.reduce_mean(tf.square(state)))


def nested_loops(first, second):
    """The inner loop's sum is elsewhere than its counter, and its length is the outer loop's counter."""
    with tf.device(second):
        w = tf1.get_variable('w', initializer=weights((2, 2), 8), use_resource=True)
    with tf.device(first):
        def outer(i, state):
            def inner(j, inside):
                with tf.device(second):
                    return j + 1, tf.tanh(tf.matmul(inside, w))
            return i + 1, tf.while_loop(lambda j, inside: j < i, inner, [tf.constant(0), state])[1] + 0.1
        _, state = tf.while_loop(lambda i, state: i < 4, outer, [tf.constant(0), tf.constant(weights((3, 2), 9))])
        return trained(tf.reduce_sum(tf.square(state)))


def branches_across(first, second):
    """Of two branches one is on another device; which one is taken changes while it trains."""
    with tf.device(first):
        a = tf1.get_variable('a', initializer=np.float32(2), use_resource=True)
    with tf.device(second):
        b = tf1.get_variable('b', initializer=np.float32(1), use_resource=True)

        def elsewhere():
            with tf.device(first):
                return tf.square(a) * b
        return trained(tf.cond(b < a * 0.9, elsewhere, lambda: tf.square(b)))


def array_in_a_loop(first, second):
    """A TensorArray on one device, filled by a loop on the other."""
    with tf.device(first):
        w = tf1.get_variable('w', initializer=weights((3,), 10), use_resource=True)
    with tf.device(second):
        def body(i, array, state):
            with tf.device(first):
                state = state * w
            return i + 1, array.write(i, state), state
        array = tf.TensorArray(tf.float32, size=4, element_shape=[3])
        _, array, _ = tf.while_loop(lambda i, *_: i < 4, body, [tf.constant(0), array, tf.constant([1., 2., 3.])])
        return trained(tf.reduce_sum(tf.square(array.stack() - 0.5)))


def calls_across(first, second):
    """A function of the library with a node elsewhere."""
    with tf.device(first):
        w = tf1.get_variable('w', initializer=weights((3, 3), 11), use_resource=True)

        @tf.function
        def apply(x):
            with tf.device(second):
                x = tf.tanh(x)
            return tf.matmul(x, w)
        return trained(tf.reduce_mean(tf.square(apply(tf.constant(weights((2, 3), 12))))))


def loop_of_functions(first, second):
    """A While whose body names both devices, without a gradient: the variable takes what it gives."""
    with tf.device(first):
        w = tf1.get_variable('w', initializer=weights((3, 3), 13), use_resource=True)

        def body(i, state):
            with tf.device(second):
                state = tf.tanh(tf.matmul(state, state))

            def inner(j, inside):
                with tf.device(second):
                    return j + 1, inside * 0.9
            return i + 1, state + tf.while_loop(lambda j, _: j < i, inner, [tf.constant(0), w])[1]
        _, state = tf.while_loop(lambda i, _: i < 4, body, [tf.constant(0), w.read_value()])
        assigned = tf1.assign(w, state * 0.5)
    return tf1.global_variables_initializer(), [assigned, tf.reduce_sum(assigned)]


VERSION_1 = two_layers, loop_across, nested_loops, branches_across, array_in_a_loop
FUNCTIONAL = loop_of_functions, branches_across, calls_across, loop_across, nested_loops, array_in_a_loop


def losses(build, places, target='', config=None, functional=False):
    """What the model loses in each step; the graph is made anew."""
    (tf1.enable_control_flow_v2 if functional else tf1.disable_control_flow_v2)()
    try:
        with tf.Graph().as_default() as graph:
            tf1.set_random_seed(1)
            init, step = build(*places)
            with tf1.Session(target, graph=graph, config=config) as session:
                session.run(init)
                return [session.run(step)[-1] for _ in range(STEPS)]
    finally:
        tf1.disable_control_flow_v2()


class Devices(unittest.TestCase):
    def check(self, builds, functional, places, target):
        for build in builds:
            with self.subTest(build.__name__):
                config = tf1.ConfigProto(device_count={'CPU': 2}, allow_soft_placement=True)
                expected = losses(build, TWO_DEVICES, config=config, functional=functional)
                self.assertNotEqual(expected[0], expected[-1])
                config = tf1.ConfigProto(isolate_session_state=True, allow_soft_placement=True)
                got = losses(build, places, target, config, functional)
                np.testing.assert_allclose(got, expected, rtol=1e-5)

    def test_two_devices_of_a_task(self):
        with tasks('--cpu_devices', '2') as cluster:
            self.check(VERSION_1, False, TWO_DEVICES, cluster['worker'].target)

    def test_two_tasks(self):
        with tasks() as cluster:
            self.check(VERSION_1, False, TWO_TASKS, cluster['worker'].target)

    def test_two_devices_of_another_task(self):
        with tasks('--cpu_devices', '2') as cluster:
            there = tuple('/job:ps/task:0' + place for place in TWO_DEVICES)
            self.check(VERSION_1, False, there, cluster['worker'].target)

    def test_functions_over_two_devices(self):
        with tasks('--cpu_devices', '2') as cluster:
            self.check(FUNCTIONAL, True, TWO_DEVICES, cluster['worker'].target)

    def test_functions_over_two_tasks(self):
        with tasks() as cluster:
            self.check(FUNCTIONAL, True, TWO_TASKS, cluster['worker'].target)

    def test_each_device_has_its_own_variables(self):
        with tasks('--cpu_devices', '2') as cluster, tf.Graph().as_default():
            made = []
            for i, place in enumerate(TWO_DEVICES):
                with tf.device(place):
                    made.append(tf1.raw_ops.VarHandleOp(dtype=tf.float32, shape=[], shared_name='v'))
                    tf1.raw_ops.AssignVariableOp(resource=made[-1], value=float(i + 1), name='init_%d' % i)
            total = tf.add_n([tf1.raw_ops.ReadVariableOp(resource=v, dtype=tf.float32) for v in made])
            with tf1.Session(cluster['worker'].target) as session:
                session.run(['init_0', 'init_1'])
                self.assertEqual(session.run(total), 3)
                options = tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE, output_partition_graphs=True)
                metadata = tf1.RunMetadata()
                session.run(total, options=options, run_metadata=metadata)
            self.assertEqual(len({stats.device for stats in metadata.step_stats.dev_stats}), 2)

    def test_a_loop_that_fails_half_way_ends_everywhere(self):
        for flags, places in (('--cpu_devices', '2'), TWO_DEVICES), ((), TWO_TASKS):
            with tasks(*flags) as cluster, tf.Graph().as_default():
                first, second = places
                with tf.device(first):
                    def body(x):
                        with tf.device(second):
                            checked = tf1.check_numerics(tf1.log(x), 'no logarithm')
                        with tf1.control_dependencies([checked]):
                            return x - 1
                    loop = tf.while_loop(lambda x: x > -100, body, [tf.constant(7.)])
                with tf1.Session(cluster['worker'].target) as session:
                    for _ in range(20):
                        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, 'no logarithm'):
                            session.run(loop)
                    self.assertEqual(session.run(tf.constant(3)), 3)
                for task in cluster.values():
                    self.assertEqual(task.metrics()['weft_running_parts'], 0)
                    self.assertEqual(task.metrics()['weft_open_steps'], 0)

    def test_a_gpu_where_there_is_none(self):
        with tf.Graph().as_default():
            with tf.device('/gpu:0'):
                three = tf.add(1., 2.)
            with self.assertRaises(tf.errors.InvalidArgumentError) as theirs, tf1.Session() as session:
                session.run(three)
            with tasks() as cluster:
                with self.assertRaises(tf.errors.InvalidArgumentError) as ours, tf1.Session(
                        cluster['worker'].target) as session:
                    session.run(three)
                for said in ('Cannot assign a device for operation Add', 'The requested device appears to be a GPU, but '
                             'CUDA is not enabled'):
                    self.assertIn(said.replace(' Add', ' ' + three.op.name), theirs.exception.message)
                    self.assertIn(said.replace(' Add', ' ' + three.op.name), ours.exception.message)
                self.assertIn('allow_soft_placement', ours.exception.message)
                self.assertIn('--soft_placement', ours.exception.message)
                config = tf1.ConfigProto(allow_soft_placement=True)
                with tf1.Session(cluster['worker'].target, config=config) as session:
                    self.assertEqual(session.run(three), 3)
            with tasks('--soft_placement') as cluster, tf1.Session(cluster['worker'].target) as session:
                self.assertEqual(session.run(three), 3)


if __name__ == '__main__':
    status_test.BINARY = processes.binary_from(sys.argv)
    unittest.main()
