#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Collective ops between devices of one task, tasks of one session and several sessions.

    collectives_test.py [SERVER BINARY]      default: the real TensorFlow's server
"""
import contextlib
import signal
import sys
import threading
import time
import unittest

import numpy as np

import processes

BINARY = processes.binary_from(sys.argv)

import tensorflow as tf  # noqa: E402
from tensorflow.python.ops import gen_collective_ops as ops  # noqa: E402

tf1 = tf.compat.v1
tf1.disable_eager_execution()
OPTIONS = tf1.RunOptions(timeout_in_ms=60000)
SHORT = tf1.RunOptions(timeout_in_ms=15000)  # of a client whose server may be killed: it tries again until then
# As TensorFlow sums three floats around its ring, in an order of its own.
ROUNDING = 1e-6


def config(filters=()):
    made = tf1.ConfigProto(device_filters=filters)
    made.experimental.collective_group_leader = '/job:worker/replica:0/task:0'
    return made


def data(rank, shape=(1000,), dtype='float32'):
    numbers = np.random.RandomState(rank)
    return numbers.randint(-9, 9, shape).astype(dtype) if 'int' in dtype else numbers.randn(*shape).astype(dtype)


class Group:
    """Places of ranks, and ops at them that belong together."""

    def __init__(self, places, key):
        self.places = places
        self.key = key
        self.instances = 0

    def each(self, make):
        """make(rank, keys) at each rank's place."""
        self.instances += 1
        made = []
        for rank, place in enumerate(self.places):
            with tf.device(place):
                made.append(make(rank, (tf.constant(len(self.places)), tf.constant(self.key), tf.constant(self.instances))))
        return made

    def static(self):
        self.instances += 1
        return {'group_size': len(self.places), 'group_key': self.key, 'instance_key': self.instances}


@contextlib.contextmanager
def tasks(count, *flags):
    with processes.cluster(processes.with_flags(BINARY, *flags) if flags else BINARY, worker=count) as started:
        yield started


class CollectivesTest(unittest.TestCase):
    def check_all(self, target, places, key):
        """Every op with keys, between ranks at `places`, in one session."""
        n = len(places)
        with tf.Graph().as_default():
            group = Group(places, key)
            wanted = []
            fetched = []

            def add(results, expected):
                fetched.append(results)
                wanted.append(expected)

            numpy_of = {'Add': np.add, 'Mul': np.multiply, 'Min': np.minimum, 'Max': np.maximum}
            for dtype in 'float32', 'float64', 'int32', 'int64':
                for merge, reduce in numpy_of.items():
                    whole = reduce.reduce([data(r, dtype=dtype) for r in range(n)])
                    add(group.each(lambda r, k: ops.collective_reduce_v2(tf.constant(data(r, dtype=dtype)), *k, [], merge_op=merge,
                                                                         final_op='Id')), [whole] * n)
            mean = np.mean([data(r) for r in range(n)], axis=0)
            add(group.each(lambda r, k: ops.collective_reduce_v2(tf.constant(data(r)), *k, [], merge_op='Add', final_op='Div')), [mean] * n)
            static = group.static()
            reduced = []
            for rank, place in enumerate(places):
                with tf.device(place):
                    reduced.append(ops.collective_reduce(tf.constant(data(rank)), merge_op='Add', final_op='Div', subdiv_offsets=[0],
                                                         **static))
            add(reduced, [mean] * n)
            rows = np.concatenate([data(r, (2, 3)) for r in range(n)])
            add(group.each(lambda r, k: ops.collective_gather_v2(tf.constant(data(r, (2, 3))), *k, [])), [rows] * n)
            sent = data(77, (4, 5))
            add(group.each(lambda r, k: ops.collective_bcast_send_v2(tf.constant(sent), *k) if r == n - 1 else
                           ops.collective_bcast_recv_v2(*k, tf.constant([4, 5]), T=tf.float32)), [sent] * n)
            squares = [data(r, (n, 3)) for r in range(n)]
            add(group.each(lambda r, k: ops.collective_all_to_all_v2(tf.constant(squares[r]), *k, [])),
                [np.stack([squares[s][r] for s in range(n)]) for r in range(n)])
            with tf1.Session(target, config=config()) as session:
                for _ in range(2):
                    for results, expected in zip(session.run(fetched, options=OPTIONS), wanted):
                        for got, want in zip(results, expected):
                            np.testing.assert_allclose(got, want, rtol=ROUNDING, atol=ROUNDING)

    def test_devices_of_a_task(self):
        with tasks(1, '--cpu_devices', '3') as started:
            self.check_all(started['worker'][0], ['/job:worker/task:0/cpu:%d' % i for i in range(3)], 1)

    def test_tasks_of_a_session(self):
        with tasks(3) as started:
            self.check_all(started['worker'][0], ['/job:worker/task:%d/cpu:0' % i for i in range(3)], 2)

    def test_devices_of_several_tasks(self):
        with tasks(2, '--cpu_devices', '2') as started:
            self.check_all(started['worker'][0], ['/job:worker/task:%d/cpu:%d' % (t, d) for t in range(2) for d in range(2)], 3)

    @unittest.skipIf('stand-in' in BINARY, 'TensorFlow has these for GPUs only')
    def test_what_tensorflow_has_for_gpus(self):
        with tasks(1, '--cpu_devices', '2') as started, tf.Graph().as_default():
            rows = [data(rank, (4, 3)) for rank in range(2)]
            group = Group(['/cpu:0', '/cpu:1'], 61)
            halves = group.each(lambda r, k: ops.collective_reduce_scatter_v2(tf.constant(rows[r]), *k, [], merge_op='Add', final_op='Id'))
            sums = []
            for rank in range(2):
                with tf.device('/cpu:%d' % rank):
                    sums.append(tf.raw_ops.NcclAllReduce(input=tf.constant(rows[rank]), reduction='sum', num_devices=2, shared_name='all'))
            inputs = []
            for rank in range(2):
                with tf.device('/cpu:%d' % rank):
                    inputs.append(tf.constant(rows[rank]))
            with tf.device('/cpu:1'):
                largest = tf.raw_ops.NcclReduce(input=inputs, reduction='max')
                copy = tf.identity(tf.raw_ops.NcclBroadcast(input=inputs[0], shape=[4, 3]))
            with tf1.Session(started['worker'][0], config=config()) as session:
                halves, sums, largest, copy = session.run([halves, sums, largest, copy], options=OPTIONS)
            np.testing.assert_allclose(np.concatenate(halves), rows[0] + rows[1], rtol=ROUNDING)
            for whole in sums:
                np.testing.assert_allclose(whole, rows[0] + rows[1], rtol=ROUNDING)
            np.testing.assert_array_equal(largest, np.maximum(*rows))
            np.testing.assert_array_equal(copy, rows[0])

    def test_groups_by_assignment(self):
        with tasks(1) as started, tf.Graph().as_default():
            groups = [ops.collective_assign_group_v2([[0, 1], [2, 3]], device, 5) for device in range(4)]
            outside = ops.collective_assign_group_v2([[0, 1], [2, 3]], 4, 5)
            reserved = ops.collective_assign_group_v2([[0, 1], [2, 3]], 2, -1)
            with tf1.Session(started['worker'][0], config=config()) as session:
                self.assertEqual([tuple(g) for g in session.run(groups, options=OPTIONS)], [(2, 5), (2, 5), (2, 6), (2, 6)])
                for wrong in outside, reserved:
                    with self.assertRaises(tf.errors.InvalidArgumentError):
                        session.run(wrong, options=OPTIONS)

    @unittest.skipIf('stand-in' in BINARY, "TensorFlow's servers wait for ever where the group is made in the step that uses it")
    def test_communicators(self):
        with tasks(2) as started, tf.Graph().as_default():
            reduced = []
            for rank in range(2):
                with tf.device('/job:worker/task:%d/cpu:0' % rank):
                    communicator = ops.collective_initialize_communicator(group_key=11, rank=1 - rank, group_size=2)
                    reduced.append(ops.collective_reduce_v3(tf.constant([float(rank + 1)]), communicator, [[0, 1]], reduction='Add'))
            with tf1.Session(started['worker'][0], config=config()) as session:
                first, second = session.run(reduced, options=OPTIONS)
            self.assertEqual((first.tolist(), second.tolist()), ([3.0], [3.0]))


class SessionsTest(unittest.TestCase):
    def run_each(self, targets, steps, build, outcome, started=None, stop_after=None):
        """A session of its own for each task, in a thread."""
        def one(rank):
            with tf.Graph().as_default():
                with tf.device('/job:worker/task:%d/cpu:0' % rank):
                    fetches = build(rank)
                filters = ['/job:worker/task:%d' % rank]
                session = tf1.Session(targets[rank], config=config(filters))
                try:
                    for step in range(steps):
                        outcome[rank] = session.run(fetches, options=OPTIONS if rank < 2 else SHORT)
                        if stop_after is not None and step == stop_after and rank == 0:
                            started.set()
                        time.sleep(0.02 if stop_after is not None else 0)
                except tf.errors.OpError as error:
                    outcome[rank] = (time.monotonic(), error)
                if rank < 2 or stop_after is None:
                    session.close()
                else:
                    session._closed = True  # else the client waits long for the server that was killed, at the latest at its end

        threads = [threading.Thread(target=one, args=(rank,)) for rank in range(len(targets))]
        for thread in threads:
            thread.start()
        return threads

    def test_sessions_of_their_own(self):
        with tasks(3) as started:
            outcome = {}

            def build(rank):
                keys = {'group_size': 3, 'group_key': 21, 'instance_key': 1}
                total = ops.collective_reduce(tf.constant(data(rank)), merge_op='Add', final_op='Id', subdiv_offsets=[0], **keys)
                keys['instance_key'] = 2
                return total, ops.collective_gather(tf.constant([float(rank)]), shape=[3], **keys)

            for thread in self.run_each(started['worker'], 5, build, outcome):
                thread.join()
            total = sum(data(rank) for rank in range(3))
            for rank in range(3):
                self.assertIsInstance(outcome[rank], (tuple, list), outcome[rank])
                np.testing.assert_allclose(outcome[rank][0], total, rtol=ROUNDING, atol=ROUNDING)
                self.assertEqual(outcome[rank][1].tolist(), [0, 1, 2])

    @unittest.skipIf('stand-in' in BINARY, "TensorFlow's servers take longer, and name nobody")
    def test_a_killed_task_ends_the_others(self):
        with tasks(3) as started:
            outcome = {}
            running = threading.Event()

            def build(rank):
                return ops.collective_reduce(tf.constant([1.0]), merge_op='Add', final_op='Id', subdiv_offsets=[0], group_size=3,
                                             group_key=31, instance_key=1)

            threads = self.run_each(started['worker'], 2000, build, outcome, running, 10)
            self.assertTrue(running.wait(60))
            killed = time.monotonic()
            started['processes']['worker', 2].send_signal(signal.SIGKILL)
            for thread in threads:
                thread.join()
            for rank in range(2):
                when, error = outcome[rank]
                self.assertIsInstance(error, tf.errors.UnavailableError, error)
                self.assertIn('/job:worker/replica:0/task:2', error.message)
                self.assertLess(when - killed, 2)

    @unittest.skipIf('stand-in' in BINARY, 'these are our words')
    def test_what_disagrees_is_named(self):
        with tasks(2) as started:
            outcome = {}

            def build(rank):
                return ops.collective_reduce(tf.constant([1.0] * (rank + 2)), merge_op='Add', final_op='Id', subdiv_offsets=[0],
                                             group_size=2, group_key=41, instance_key=1)

            for thread in self.run_each(started['worker'], 1, build, outcome):
                thread.join()
            for rank in range(2):
                _, error = outcome[rank]
                self.assertIsInstance(error, tf.errors.InvalidArgumentError)
                self.assertIn('float [2]', error.message)
                self.assertIn('float [3]', error.message)

    @unittest.skipIf('stand-in' in BINARY, "TensorFlow's servers wait for ever")
    def test_a_group_that_does_not_fill(self):
        with tasks(2) as started, tf.Graph().as_default():
            with tf.device('/job:worker/task:0/cpu:0'):
                alone = ops.collective_reduce(tf.constant([1.0]), merge_op='Add', final_op='Id', subdiv_offsets=[0], group_size=2,
                                              group_key=51, instance_key=1, timeout_seconds=1)
            with tf1.Session(started['worker'][0], config=config()) as session:
                with self.assertRaisesRegex(tf.errors.DeadlineExceededError, 'nothing came from /job:worker/replica:0/task:1'):
                    session.run(alone, options=OPTIONS)


if __name__ == '__main__':
    unittest.main()
