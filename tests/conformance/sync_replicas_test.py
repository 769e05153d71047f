#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's SyncReplicasOptimizer on parameter servers and 2 workers, each its own process with its own server.

    sync_replicas_test.py [SERVER BINARY]      default: the real TensorFlow's server
"""
import os
import re
import sys
import tempfile
import unittest

import numpy as np
import tensorflow as tf

import processes

BINARY = processes.binary_from(sys.argv)
RATE, FEATURES, ROWS, TABLE, STEPS = 0.1, 4, 8, 10, 20


def rows_of(worker):
    """As in sync_replicas.py."""
    random = np.random.RandomState(worker)
    x = random.randn(ROWS, FEATURES).astype(np.float32)
    return x, x @ np.arange(FEATURES, dtype=np.float32) + 1, np.sort(random.permutation(TABLE)[:ROWS])


def expected(steps):
    """Weights and table after steps whose gradients are means over both workers; of a row, over those that have it."""
    weights, table = np.zeros(FEATURES), np.zeros(TABLE)
    for _ in range(steps):
        dense, sparse, count = np.zeros(FEATURES), np.zeros(TABLE), np.zeros(TABLE)
        for worker in range(2):
            x, y, ids = rows_of(worker)
            error = 2 * (x @ weights + table[ids] - y) / ROWS
            dense += x.T @ error / 2
            np.add.at(sparse, ids, error)
            count[np.unique(ids)] += 1
        weights -= RATE * dense
        table -= RATE * sparse / np.maximum(count, 1)
    return weights, table


class SyncReplicasTest(unittest.TestCase):
    def train(self, declared, started, steps=STEPS, servers=1):
        ports = processes.free_ports(servers + declared)
        folder = tempfile.TemporaryDirectory(prefix='weft-sync-')
        self.addCleanup(folder.cleanup)
        hosts = ['127.0.0.1:%d' % port for port in ports]
        flags = ['--ps_hosts=' + ','.join(hosts[:servers]), '--worker_hosts=' + ','.join(hosts[servers:]), '--steps=%d' % steps]
        running = []
        try:
            for index in range(servers):
                running.append(processes.program(BINARY, 'sync_replicas.py', '--job_name=ps', '--task_index=%d' % index, *flags))
            workers = []
            for index in range(started):
                workers.append(processes.program(BINARY, 'sync_replicas.py', '--job_name=worker', '--task_index=%d' % index,
                                                 '--model_dir=' + folder.name, *flags))
                running.append(workers[-1])
                # A worker that finds no variables looks again only 30 s later.
                while index == 0 and workers[0].stdout.readline() not in ('ready\n', ''):
                    pass
            outputs = [worker.communicate(timeout=60)[0] for worker in workers]
        finally:
            for process in running:
                processes.stop(process)
                process.stdout.close()
        for worker, output in zip(workers, outputs):
            self.assertEqual(worker.returncode, 0, output)
            self.assertIn('done', output)  # the chief's queue runner may print how it was cancelled
        return tf.train.load_checkpoint(folder.name), outputs

    def test_a_step_is_the_mean_of_both_workers(self):
        # Later a quick worker may take the token of one that is late to ask, and give two gradients.
        reader, _ = self.train(declared=2, started=2, steps=1)
        self.assertEqual(reader.get_tensor('global_step'), 1)
        weights, table = expected(1)
        np.testing.assert_allclose(reader.get_tensor('weights'), weights, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(reader.get_tensor('table'), table, rtol=1e-4, atol=1e-5)

    def test_two_parameter_servers(self):
        reader, _ = self.train(declared=2, started=2, steps=1, servers=2)
        weights, table = expected(1)
        np.testing.assert_allclose(reader.get_tensor('weights'), weights, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(reader.get_tensor('table'), table, rtol=1e-4, atol=1e-5)

    def test_both_workers_learn(self):
        reader, outputs = self.train(declared=2, started=2)
        # The chief stops when the last step is seen, while the other may have begun one more.
        self.assertIn(int(reader.get_tensor('global_step')), (STEPS, STEPS + 1))
        for output in outputs:
            losses = [float(n) for n in re.findall(r'loss (\S+)', output)]
            self.assertLess(losses[-1], losses[0] / 4)

    def test_a_worker_that_is_away_is_not_missed(self):
        reader, _ = self.train(declared=3, started=2)
        self.assertGreaterEqual(int(reader.get_tensor('global_step')), STEPS)


if __name__ == '__main__':
    unittest.main(verbosity=2)
