#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Estimator's train_and_evaluate (estimator_program.py, unmodified) as chief, worker, parameter server and evaluator:
train_and_evaluate_test.py [WEFT].
"""
import glob
import json
import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import numpy as np
import tensorflow.compat.v1 as tf

import estimator_program
import processes

tf.disable_v2_behavior()


class TrainAndEvaluateTest(unittest.TestCase):
    def started(self, cluster, job, index, folder):
        config = {'cluster': cluster, 'task': {'type': job, 'index': index}}
        with unittest.mock.patch.dict(os.environ, {'TF_CONFIG': json.dumps(config), 'WEFT_FILE_ROOT': os.path.dirname(folder)}):
            process = processes.program(BINARY, 'estimator_program.py', folder)
        self.addCleanup(process.stdout.close)
        self.addCleanup(processes.stop, process)
        return process

    def test_four_kinds_of_task(self):
        scratch = self.enterContext(tempfile.TemporaryDirectory())
        folder = os.path.join(scratch, 'model')
        ports = processes.free_ports(3)
        cluster = {job: ['127.0.0.1:%d' % port] for job, port in zip(('ps', 'chief', 'worker'), ports)}
        server = self.started(cluster, 'ps', 0, folder)
        tasks = {job: self.started(cluster, job, 0, folder) for job in ('chief', 'worker', 'evaluator')}
        for job, process in tasks.items():
            try:
                said = process.communicate(timeout=240)[0]
            except subprocess.TimeoutExpired:
                process.kill()
                self.fail('the %s does not end: %s' % (job, process.communicate()[0][-3000:]))
            self.assertEqual(process.returncode, 0, '%s: %s' % (job, said[-3000:]))
            self.assertIn(job + ' ends well', said)
        self.assertIsNone(server.poll(), 'a parameter server stays')
        checkpoint = tf.train.latest_checkpoint(folder)
        self.assertGreaterEqual(int(tf.train.load_variable(checkpoint, 'global_step')), estimator_program.STEPS)
        evaluated = [(event.step, value.simple_value) for path in glob.glob(os.path.join(folder, 'eval', 'events.*'))
                     for event in tf.train.summary_iterator(path) for value in event.summary.value if value.tag == 'loss']
        self.assertGreaterEqual(max(step for step, _ in evaluated), estimator_program.STEPS)
        self.assertLess(min(loss for _, loss in evaluated), 0.2)
        # What the evaluator exported is what was trained.
        exported, = glob.glob(os.path.join(folder, 'export', 'final', '*'))
        x = np.array([[1, 2, 3], [0, 0, 0]], np.float32)
        w, b = (tf.train.load_variable(checkpoint, name) for name in ('w', 'b'))
        with tf.Graph().as_default(), tf.Session() as session:
            signature = tf.saved_model.load(session, ['serve'], exported).signature_def['serving_default']
            got = session.run(signature.outputs['y'].name, {signature.inputs['x'].name: x})
        np.testing.assert_allclose(got, x @ w + b, rtol=1e-5, atol=1e-6)


if __name__ == '__main__':
    BINARY = processes.binary_from(sys.argv)
    unittest.main(verbosity=2)
