#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs seed_mlp.py as 1 parameter server and 2 workers, each its own process with its own server.

    seed_mlp_test.py [SERVER BINARY]      default: the real TensorFlow's server
"""
import glob
import os
import re
import sys
import tempfile
import unittest

import processes

BINARY = processes.binary_from(sys.argv)
EPOCHS, STEPS = 60, 60 * 14


class SeedMlpTest(unittest.TestCase):
    def train(self, *extra):
        ports = processes.free_ports(3)
        folder = tempfile.mkdtemp(prefix='weft-seed-')
        flags = ['--ps_hosts=127.0.0.1:%d' % ports[0], '--training_epochs=%d' % EPOCHS, '--learning_rate=0.5',
                 '--worker_hosts=127.0.0.1:%d,127.0.0.1:%d' % tuple(ports[1:]), *extra]
        started = []
        try:
            started.append(processes.program(BINARY, 'seed_mlp.py', '--job_name=ps', *flags))
            workers = [processes.program(BINARY, 'seed_mlp.py', '--job_name=worker', '--task_index=%d' % i,
                                         '--logs_path=%s/logs%d' % (folder, i), '--train_dir=%s/train' % folder, *flags)
                       for i in (1, 0)]
            started += workers
            outputs = [worker.communicate(timeout=150)[0] for worker in workers]
        finally:
            for process in started:
                processes.stop(process)
                process.stdout.close()
        for worker, output in zip(workers, outputs):
            self.assertEqual(worker.returncode, 0, output)
            self.assertTrue(output.endswith('done\n'), output)
        return folder, outputs

    def check(self, *extra):
        import tensorflow as tf
        folder, outputs = self.train(*extra)
        for output in outputs:
            self.assertGreaterEqual(float(re.search(r'Test-Accuracy: ([\d.]+)', output)[1]), 0.9, output)
        # Both workers counted their steps on the one parameter server. The count is read while it is counted up,
        # and unlocked increments of two workers may meet.
        last = max(int(n) for output in outputs for n in re.findall(r'Step: (\d+)', output))
        self.assertTrue(1.9 * STEPS < last <= 2 * STEPS + 1, last)
        for worker in range(2):
            events = [e for path in glob.glob('%s/logs%d/*tfevents*' % (folder, worker))
                      for e in tf.compat.v1.train.summary_iterator(path)]
            costs = [v.simple_value for e in events for v in e.summary.value if v.tag == 'cost']
            self.assertEqual(len(costs), STEPS)
            self.assertLess(sum(costs[-10:]) / 10, 0.3)
        last = tf.train.latest_checkpoint(os.path.join(folder, 'train'))
        reader = tf.train.load_checkpoint(last)
        self.assertEqual(reader.get_variable_to_shape_map(), {
            'global_step': [], 'Variable': [64, 100], 'Variable_1': [100, 10], 'Variable_2': [100], 'Variable_3': [10]})
        self.assertGreaterEqual(reader.get_tensor('global_step'), STEPS)

    def test_reference_variables(self):
        self.check()

    def test_resource_variables(self):
        self.check('--resource_variables')


if __name__ == '__main__':
    unittest.main(verbosity=2)
