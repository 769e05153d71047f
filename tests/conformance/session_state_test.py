#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Partial runs, and tensors that stay with a session: session_state_test.py [PATH_OF_WEFT] [unittest arguments].

Each program runs in TensorFlow's own session first and then on a cluster of two tasks, and must give the same. What fails runs on
the cluster alone: TensorFlow's partial runs end with one error or another then, as its threads happen to run.
"""
import os
import sys
import tempfile
import unittest

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')

import numpy as np
import processes
import tensorflow as tf
from tensorflow.python.ops import session_ops

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
BINARY = None
PLAIN = tf1.ConfigProto()
PLAIN.graph_options.optimizer_options.opt_level = -1


class Program:
    """A graph in which nodes lie at both tasks of the cluster; in one process they lie together."""

    def __init__(self, is_cluster):
        self.is_cluster = is_cluster

    def at(self, task):
        return tf.device('/job:worker/task:%d' % task if self.is_cluster else '/cpu:0')


class SessionStateTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix='weft-state-')
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls._cluster = processes.cluster(BINARY, folder=cls.folder, worker=2)
        cls.targets = cls._cluster.__enter__()['worker']
        cls.target = cls.targets[0]

    @classmethod
    def tearDownClass(cls):
        cls._cluster.__exit__(None, None, None)

    def both(self, program, mine_alone=False):
        """What `program(Program, session)` gives in TensorFlow's own session, once the cluster gives the same."""
        results = []
        for target in ([] if mine_alone else ['']) + [self.target]:
            with tf.Graph().as_default():
                built = program(Program(bool(target)))
                with tf1.Session(target, config=PLAIN) as session:
                    results.append(built(session))
        if not mine_alone:
            np.testing.assert_equal(results[1], results[0])
        return results[-1]

    def refusal(self, call):
        try:
            call()
        except tf.errors.OpError as error:
            return type(error).__name__
        return 'nothing'

    def test_feeds_and_fetches_come_one_by_one(self):
        def program(p):
            with p.at(0):
                a, b, c = (tf1.placeholder(tf.float32, shape=[]) for _ in range(3))
                first = a + b
            with p.at(1):
                second = first * c

            def run(session):
                handle = session.partial_run_setup([first, second], [a, b, c])
                one = session.partial_run(handle, first, feed_dict={a: 1, b: 2})
                return one, session.partial_run(handle, second, feed_dict={c: one * 17})
            return run
        self.assertEqual(self.both(program), (3.0, 153.0))

    def test_all_runs_once(self):
        def program(p):
            with p.at(1):
                count = tf1.Variable(0, use_resource=True)
                a = tf1.placeholder(tf.int32, [])
                with tf.control_dependencies([count.assign_add(1)]):
                    first = a + 1
                second, read = first * 2, count.read_value()

            def run(session):
                session.run(count.initializer)
                handle = session.partial_run_setup([first, second], [a])
                results = [session.partial_run(handle, first, feed_dict={a: 4}), session.partial_run(handle, second)]
                return results, session.run(read)
            return run
        self.assertEqual(self.both(program), ([5, 10], 1))

    def test_several_at_once(self):
        def program(p):
            with p.at(0):
                a = tf1.placeholder(tf.float32, [None])
                b = tf1.placeholder(tf.float32, [None])
                first = tf.reduce_sum(a)
            with p.at(1):
                second = first + tf.reduce_sum(b)

            def run(session):
                handles = [session.partial_run_setup([first, second], [a, b]) for _ in range(5)]
                results = [session.partial_run(h, first, {a: np.arange(i + 1.0)}) for i, h in enumerate(handles)]
                results += [session.partial_run(h, second, {b: [i]}) for i, h in reversed(list(enumerate(handles)))]
                return results, session.run(second, {a: [1.0], b: [2.0]})
            return run
        self.both(program)

    def test_what_does_not_fit_is_refused(self):
        def program(p):
            with p.at(0):
                a, b, c = (tf1.placeholder(tf.float32, shape=[]) for _ in range(3))
                first = a + b
                second = first * c

            def run(session):
                setup = lambda: session.partial_run_setup([first, second], [a, b, c])
                handle = setup()
                said = [self.refusal(lambda: session.partial_run(handle, second, {a: 1, b: 2}))]
                handle = setup()
                session.partial_run(handle, first, {a: 1, b: 2})
                said.append(self.refusal(lambda: session.partial_run(handle, first, {c: 2})))
                handle = setup()
                session.partial_run(handle, first, {a: 1, b: 2})
                said.append(self.refusal(lambda: session.partial_run(handle, second, {a: 1, c: 2})))
                other = session.partial_run_setup([first], [a, b])
                said.append(self.refusal(lambda: session.partial_run(other, second, {a: 1, b: 1})))
                said.append(self.refusal(lambda: session.partial_run(other, first, {a: 1, b: 1, c: 1})))
                said.append(self.refusal(lambda: session.partial_run('nothing', first, {a: 1, b: 1})))
                return said
            return run
        self.assertEqual(set(self.both(program, mine_alone=True)), {'InvalidArgumentError'})

    def test_a_failure_ends_it(self):
        def program(p):
            with p.at(1):
                a, b = (tf1.placeholder(tf.float32, []) for _ in range(2))
                first = tf1.check_numerics(a, 'bad number')
                second = first + b

            def run(session):
                handle = session.partial_run_setup([first, second], [a, b])
                said = self.refusal(lambda: session.partial_run(handle, first, {a: np.nan}))
                handle = session.partial_run_setup([first, second], [a, b])
                return said, session.partial_run(handle, [first, second], {a: 1, b: 2})
            return run
        self.assertEqual(self.both(program, mine_alone=True), ('InvalidArgumentError', [1.0, 3.0]))

    def test_an_open_one_does_not_hold_up_the_end(self):
        def program(p):
            with p.at(1):
                a = tf1.placeholder(tf.float32, [])
                twice = a * 2

            def run(session):
                session.partial_run_setup([twice], [a])
                return session.run(twice, {a: 2})
            return run
        self.assertEqual(self.both(program), 4.0)

    def test_a_tensor_stays_with_the_session(self):
        def program(p):
            with p.at(0):
                a, b = tf.constant(10), tf.constant(5)
                product = tf.multiply(a, b)
                handle = session_ops.get_session_handle(product)

            def run(session):
                kept = session.run(handle)
                holder, value = session_ops.get_session_tensor(kept.handle, tf.int32)
                more = tf.multiply(value, 10)
                results = [session.run(more, feed_dict={holder: kept.handle}), kept.eval()]
                results.append(session.run(more, feed_dict={holder: kept.handle}))
                kept.delete()
                results.append(self.refusal(lambda: session.run(more, feed_dict={holder: kept.handle})))
                return results
            return run
        self.assertEqual(self.both(program), [500, 50, 500, 'InvalidArgumentError'])

    def test_handles_feed_loops(self):
        def program(p):
            with p.at(0):
                a = tf.constant(0)
                handle = session_ops.get_session_handle(a)

            def run(session):
                kept = session.run(handle)
                holder, value = session_ops.get_session_tensor(kept.handle, tf.int32)
                next_handle = session_ops.get_session_handle(tf.add(value, 1))
                for _ in range(20):
                    kept = session.run(next_handle, feed_dict={holder: kept.handle})
                return kept.eval()
            return run
        self.assertEqual(self.both(program), 20)

    def test_a_handle_feeds_any_placeholder(self):
        def program(p):
            with p.at(0):
                a = tf1.placeholder(tf.float32, [None])
                twice = a * 2
                handle = session_ops.get_session_handle(tf.constant([1.0, 2.5]))

            def run(session):
                return session.run(twice, feed_dict={a: session.run(handle)})
            return run
        np.testing.assert_equal(self.both(program), [2.0, 5.0])

    def test_a_tensor_stays_at_another_task(self):
        def program(p):
            with p.at(1):
                handle = session_ops.get_session_handle(tf.constant([3.0]))

            def run(session):
                kept = session.run(handle)
                return 'task:1' in kept.handle, kept.eval()
            return run
        self.assertEqual(self.both(program, mine_alone=True), (True, [3.0]))

    def test_a_constant_in_a_file(self):
        path = os.path.join(self.folder, 'constant')
        np.arange(6, dtype=np.float32).tofile(path)
        with tf.Graph().as_default():
            fits = tf.raw_ops.ImmutableConst(dtype=tf.float32, shape=[2, 3], memory_region_name=path)
            does_not = tf.raw_ops.ImmutableConst(dtype=tf.float32, shape=[7], memory_region_name=path)
            with tf1.Session(self.target) as session:
                np.testing.assert_array_equal(session.run(fits + 1), [[1, 2, 3], [4, 5, 6]])
                with self.assertRaises(tf.errors.OutOfRangeError):
                    session.run(does_not)

    def test_abort_ends_the_step_alone(self):
        with tf.Graph().as_default():
            op = tf.raw_ops.Abort(error_msg='enough')
            with tf1.Session(self.target) as session:
                with self.assertRaisesRegex(tf.errors.AbortedError, 'enough'):
                    session.run(op)
                self.assertEqual(session.run(tf.constant(3)), 3)

    def test_a_session_names_its_cluster(self):
        tasks = [target[len('grpc://'):] for target in self.targets]
        config = tf1.ConfigProto()
        job = config.cluster_def.job.add(name='worker')
        for number, address in enumerate(tasks):
            job.tasks[number] = address
        with tf.Graph().as_default(), tf.device('/job:worker/task:1'):
            sum_there = tf.constant(1.0) + 2.0
            with tf1.Session(self.target, config=config) as session:
                self.assertEqual(session.run(sum_there), 3.0)
            job.tasks[1] = '127.0.0.1:1'
            with self.assertRaisesRegex(tf.errors.InvalidArgumentError, '/job:worker/task:1'):
                tf1.Session(self.target, config=config).run(sum_there)

    def test_another_session_does_not_have_it(self):
        with tf.Graph().as_default():
            handle = session_ops.get_session_handle(tf.constant(3.0))
            with tf1.Session(self.target) as first, tf1.Session(self.target) as second:
                kept = first.run(handle)
                holder, value = session_ops.get_session_tensor(kept.handle, tf.float32)
                self.assertEqual(first.run(value, {holder: kept.handle}), 3.0)
                with self.assertRaisesRegex(tf.errors.InvalidArgumentError, 'session store'):
                    second.run(value, {holder: kept.handle})


if __name__ == '__main__':
    BINARY = processes.binary_from(sys.argv)
    unittest.main()
