#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""MirroredStrategy, MultiWorkerMirroredStrategy and ParameterServerStrategy in graph mode: the loss curve of one process.

    strategies_test.py [SERVER BINARY]      default: the real TensorFlow's server
"""
import json
import os
import sys
import tempfile
import unittest

import numpy as np

import processes

BINARY = processes.binary_from(sys.argv)

import tensorflow as tf  # noqa: E402

import strategy_program  # noqa: E402

tf1 = tf.compat.v1


def curve_of_one_process(replicas):
    """TensorFlow's own session on all replicas' data."""
    features, labels = zip(*[strategy_program.rows_of(replica, replicas) for replica in range(replicas)])
    with tf.Graph().as_default():
        loss = strategy_program.model(tf.constant(np.concatenate(features)), tf.constant(np.concatenate(labels)))
        update = tf1.train.AdamOptimizer(0.1).minimize(loss)
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            return [float(session.run([loss, update])[0]) for _ in range(strategy_program.STEPS)]


class StrategiesTest(unittest.TestCase):
    def setUp(self):
        self.running = []
        self.addCleanup(lambda: [processes.stop(process) for process in self.running])

    def start(self, config, *arguments):
        os.environ['TF_CONFIG'] = json.dumps(config)
        self.running.append(processes.program(BINARY, 'strategy_program.py', *arguments))
        del os.environ['TF_CONFIG']
        return self.running[-1]

    def tasks(self, jobs, *arguments):
        cluster = {job: ['127.0.0.1:%d' % port for port in processes.free_ports(count)] for job, count in jobs.items()}
        return [self.start({'cluster': cluster, 'task': {'type': job, 'index': index}}, *arguments)
                for job, count in jobs.items() for index in range(count)]

    def losses(self, process):
        output, _ = process.communicate(timeout=250)
        said = [line for line in output.splitlines() if line.startswith('losses ')]
        self.assertEqual((process.returncode, len(said)), (0, 1), output[-4000:])
        return json.loads(said[0].split(' ', 1)[1])

    def check(self, curve, replicas):
        np.testing.assert_allclose(curve, curve_of_one_process(replicas), rtol=1e-5, atol=1e-5)

    def test_mirrored_over_devices_of_a_task(self):
        with processes.cluster(processes.with_flags(BINARY, '--cpu_devices', '2'), worker=1) as started:
            process = processes.program(BINARY, 'strategy_program.py', 'mirrored', started['worker'][0])
            self.running.append(process)
            self.check(self.losses(process), 2)

    def test_workers_that_mirror_each_other(self):
        for process in self.tasks({'worker': 2}, 'workers'):
            self.check(self.losses(process), 2)

    def test_workers_of_estimator(self):
        with tempfile.TemporaryDirectory() as folder:
            curves = [self.losses(process) for process in self.tasks({'worker': 2}, 'estimator', folder)]
        self.check(np.mean(curves, axis=0), 2)

    def test_parameter_servers(self):
        _, chief = self.tasks({'ps': 1, 'chief': 1}, 'ps')
        self.check(self.losses(chief), 1)


if __name__ == '__main__':
    unittest.main()
