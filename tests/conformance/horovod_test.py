#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Horovod's programs under `python -m weft`: ops, training to the loss curve of one process, a rank that is killed and comes back.

    horovod_test.py [SERVER BINARY]      default: the real TensorFlow's server
"""
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

import numpy as np

import processes

BINARY = processes.binary_from(sys.argv)


class Ranks:
    """The program once for each rank."""

    def __init__(self, count, *arguments, most=None, **environment):
        self.arguments = arguments
        self.environment = environment
        self.cluster = {'worker': ['127.0.0.1:%d' % port for port in processes.free_ports(most or count)]}
        self.running = [self.start(rank) for rank in range(count)]

    def start(self, rank):
        config = json.dumps({'cluster': self.cluster, 'task': {'type': 'worker', 'index': rank}})
        with unittest.mock.patch.dict(os.environ, self.environment, TF_CONFIG=config, WEFT_TEST_TASK=str(rank)):
            return processes.program(BINARY, 'horovod_program.py', *self.arguments)

    def results(self):
        """What each rank said, by name."""
        said = []
        for process in self.running:
            output, _ = process.communicate(timeout=200)
            if process.returncode:
                raise AssertionError('exit code %d:\n%s' % (process.returncode, output[-3000:]))
            said.append({name: json.loads(value) for name, value in re.findall(r'^said (\w+) (.*)$', output, re.M)})
        return said


def losses_of_one_process(size, steps, optimizer):
    """The same model on all data in TensorFlow's own session."""
    import tensorflow as tf
    tf1 = tf.compat.v1
    with tf.Graph().as_default():
        features = np.random.RandomState(1).randn(12 * size, 3).astype('f')
        labels = features.dot(np.array([[1.0], [-2.0], [3.0]], 'f')) + 0.5
        w = tf1.get_variable('w', initializer=tf.fill([3, 1], 0.1))
        b = tf1.get_variable('b', initializer=tf.constant([0.0]))
        loss = tf.reduce_mean(tf.square(tf.matmul(tf.constant(features), w) + b - labels))
        update = optimizer(tf1).minimize(loss)
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            return [float(session.run([loss, update])[0]) for _ in range(steps)]


class HorovodTest(unittest.TestCase):
    def tearDown(self):
        for process in getattr(self, 'ranks', None).running if getattr(self, 'ranks', None) else ():
            processes.stop(process)

    def wait_until_nobody_listens(self, address):
        host, port = address.rsplit(':', 1)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                socket.create_connection((host, int(port)), timeout=1).close()
            except OSError:
                return
            time.sleep(0.1)
        self.fail('somebody still listens at ' + address)

    def test_ops(self):
        self.ranks = Ranks(2, 'ops')
        first, second = self.ranks.results()
        self.assertEqual((first.pop('topology'), second.pop('topology')), ([0, 2, 0, 2, 0, 1], [1, 2, 1, 2, 0, 1]))
        self.assertEqual((first.pop('alltoall'), second.pop('alltoall')), ([0, 1, 100, 101], [2, 3, 102, 103]))
        expected = {'average': [1.5, 2], 'sum': [3, 4], 'min': [1, 2], 'max': [2, 2], 'product': [2, 4], 'half': [1.5, 2], 'bytes': [1],
                    'gathered': [[0], [1], [1]], 'flags': [True, False], 'broadcast': [20, 20], 'values': [[0], [1]], 'indices': [0, 1],
                    'objects': [0, 1], 'object': 0}
        self.assertEqual(first, expected)
        self.assertEqual(second, expected)

    def test_training(self):
        with tempfile.TemporaryDirectory() as folder:
            self.ranks = Ranks(3, 'train', folder)
            curves = [said['losses'] for said in self.ranks.results()]
            self.assertTrue(any(name.startswith('model.ckpt-20') for name in os.listdir(folder)))
        wanted = losses_of_one_process(3, 20, lambda tf1: tf1.train.AdamOptimizer(0.15))
        for curve in curves:
            np.testing.assert_allclose(curve, wanted, rtol=1e-5, atol=1e-5)

    def test_estimator(self):
        with tempfile.TemporaryDirectory() as folder:
            self.ranks = Ranks(2, 'estimator', folder)
            curves = [said['losses'] for said in self.ranks.results()]
        wanted = losses_of_one_process(2, 20, lambda tf1: tf1.train.MomentumOptimizer(0.05, 0.9))
        for curve in curves:
            np.testing.assert_allclose(curve, wanted, rtol=1e-5, atol=1e-5)

    @unittest.skipIf('stand-in' in BINARY, 'weft runs it')
    def test_the_example_as_its_page_runs_it(self):
        path = os.pathsep.join([os.path.dirname(sys.executable), os.environ['PATH']])
        environment = dict(os.environ, PATH=path, PYTHONPATH=os.path.join(processes.ROOT, 'python'), WEFT_BINARY=BINARY)
        done = subprocess.run([BINARY, 'run', 'tfjob.yaml'], cwd=os.path.join(processes.ROOT, 'examples', 'horovod'), env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=250)
        said = sorted(re.findall(r'rank (\d) of 3: loss ([0-9.]+)', done.stdout))
        self.assertEqual((done.returncode, [rank for rank, _ in said]), (0, ['0', '1', '2']), done.stdout[-3000:])
        self.assertEqual(len({loss for _, loss in said}), 1, said)
        self.assertLess(float(said[0][1]), 0.5)

    @unittest.skipIf('stand-in' in BINARY, "TensorFlow's servers stay broken once a rank was lost")
    def test_a_rank_that_is_killed_and_comes_back(self):
        with tempfile.TemporaryDirectory() as folder:
            self.ranks = Ranks(2, 'elastic', folder)
            self.assertEqual(self.ranks.running[1].wait(200), -signal.SIGKILL)
            self.wait_until_nobody_listens(self.ranks.cluster['worker'][1])  # its server follows it
            self.ranks.running[1].communicate()
            self.ranks.running[1] = self.ranks.start(1)
            curves = [said['losses'] for said in self.ranks.results()]
        wanted = losses_of_one_process(2, 30, lambda tf1: tf1.train.GradientDescentOptimizer(0.05))
        for curve in curves:
            self.assertEqual(len(curve), 30)
            np.testing.assert_allclose(curve, wanted, rtol=1e-5, atol=1e-5)

    @unittest.skipIf('stand-in' in BINARY, 'TensorFlow has no such ranks')
    def test_ranks_that_come_and_go(self):
        with tempfile.TemporaryDirectory() as folder:
            self.ranks = Ranks(2, 'open', folder, most=3, WEFT_ELASTIC='1:3')
            deadline = time.monotonic() + 100
            while not os.path.exists(os.path.join(folder, 'ten')) and time.monotonic() < deadline:
                time.sleep(0.1)
            self.ranks.running.append(self.ranks.start(2))
            first = self.ranks.running.pop(0)
            said = self.ranks.results()
            first.communicate(timeout=20)
            self.assertEqual(first.returncode, -signal.SIGKILL)
        wanted = losses_of_one_process(3, 30, lambda tf1: tf1.train.MomentumOptimizer(0.05, 0.9))
        self.assertEqual([one['rank'] for one in said], [0, 1])
        self.assertEqual([one['sizes'][-2:] for one in said], [[3, 2], [3, 2]])
        for one in said:
            np.testing.assert_allclose(one['losses'], wanted, rtol=1e-5, atol=1e-5)
            self.assertLess(one['seconds'], 30)


if __name__ == '__main__':
    unittest.main()
