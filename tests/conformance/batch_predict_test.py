#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft predict` over files of records, alone and by tasks of which one is killed; TensorFlow's own calls say what is right."""
import glob
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np
import tensorflow as tf

import processes


class Model(tf.Module):
    def __init__(self):
        self.w = tf.Variable([[1.0], [2.0]])

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, 'x')])
    def line(self, x):
        return {'y': tf.matmul(x, self.w)}

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, 'x'), tf.TensorSpec([None], tf.int64, 'by')])
    def both(self, x, by):
        return {'y': tf.matmul(x, self.w)[:, 0] * tf.cast(by, tf.float32), 'by': by + 1}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, 'examples')])
    def parsed(self, examples):
        x = tf.io.parse_example(examples, {'x': tf.io.FixedLenFeature([2], tf.float32)})['x']
        return {'y': tf.matmul(x, self.w)}


def rows(shard, count):
    return np.random.RandomState(shard).randn(count, 2).astype(np.float32)


def example(row, by):
    return tf.train.Example(features=tf.train.Features(feature={
        'x': tf.train.Feature(float_list=tf.train.FloatList(value=row)),
        'by': tf.train.Feature(int64_list=tf.train.Int64List(value=[by]))})).SerializeToString()


class BatchPredictTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = Model()
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.base = os.path.join(cls.folder, 'model')
        tf.saved_model.save(cls.model, os.path.join(cls.base, '3'), {
            'serving_default': cls.model.line, 'both': cls.model.both, 'parsed': cls.model.parsed})

    def setUp(self):
        self.work = tempfile.mkdtemp(dir=self.folder)
        self.out = os.path.join(self.work, 'out')

    def write_lines(self, shards, count):
        for shard in range(shards):
            opened = gzip.open if shard % 2 else open
            with opened(os.path.join(self.work, 'in-%03d.jsonl%s' % (shard, '.gz' if shard % 2 else '')), 'wt') as out:
                for row in rows(shard, count).tolist():
                    out.write(json.dumps(row) + '\n')

    def command(self, *flags):
        return [WEFT, 'predict', '--model', self.base, '--output', self.out, *flags]

    def predict(self, *flags, **popen):
        return subprocess.run(self.command(*flags), capture_output=True, text=True, timeout=120, **popen)

    def parts(self):
        found = []
        for path in sorted(glob.glob(os.path.join(self.out, 'part-*'))):
            with open(path) as part:
                found.append([json.loads(line) for line in part])
        return found

    def check(self, shards, count):
        parts = self.parts()
        self.assertEqual(len(parts), shards)
        for shard, part in enumerate(parts):
            np.testing.assert_allclose(part, self.model.line(rows(shard, count))['y'].numpy(), rtol=1e-6)
        self.assertEqual([name for name in os.listdir(self.out) if name.startswith('.')], [])

    def test_lines_and_going_on(self):
        self.write_lines(5, 70)
        lines = os.path.join(self.work, 'in-*')
        done = self.predict('--input', lines)
        self.assertEqual((done.returncode, done.stdout), (0, '5 parts, 5 of them made here, of 350 records\n'), done.stderr)
        self.check(5, 70)
        # What is there is not made again; what is missing is.
        os.remove(os.path.join(self.out, 'part-00003-of-00005.jsonl'))
        self.assertIn('0 of them made here', self.predict('--input', lines).stdout)
        os.remove(os.path.join(self.out, 'done.json'))
        self.assertIn('1 of them made here', self.predict('--input', lines).stdout)
        self.check(5, 70)
        other = self.predict('--input', os.path.join(self.work, 'in-000.jsonl'))
        self.assertEqual(other.returncode, 1)
        self.assertIn('of other inputs', other.stderr)

    def test_examples(self):
        path = os.path.join(self.work, 'in.tfrecord')
        x = rows(9, 50)
        with tf.io.TFRecordWriter(path) as out:
            for i, row in enumerate(x):
                out.write(example(row, i))
        self.assertEqual(self.predict('--input', path, '--signature', 'both', '--batch_size', '7').returncode, 0)
        wanted = self.model.both(x, tf.range(50, dtype=tf.int64))
        part, = self.parts()
        np.testing.assert_allclose([row['y'] for row in part], wanted['y'].numpy(), rtol=1e-6)
        self.assertEqual([row['by'] for row in part], wanted['by'].numpy().tolist())
        for signature, flags in ('parsed', ()), ('serving_default', ()), ('both', ('--outputs', 'y')):
            with self.subTest(signature):
                shutil.rmtree(self.out)
                done = self.predict('--input', path, '--signature', signature, *flags)
                self.assertEqual(done.returncode, 0, done.stderr)
                wanted = self.model.line(x)['y'].numpy()
                if signature == 'both':
                    wanted = wanted[:, 0] * np.arange(50)
                np.testing.assert_allclose(self.parts()[0], wanted, rtol=1e-6)

    def test_wrong_records_are_named(self):
        path = os.path.join(self.work, 'in.jsonl')
        for text, word in ('[1, 2]\n[1]\n', 'in.jsonl: Record 1 (the first is 0)'), ('no json\n', 'in.jsonl'), ('{"z": [1, 2]}\n', 'z'):
            with self.subTest(text):
                with open(path, 'w') as out:
                    out.write(text)
                done = self.predict('--input', path)
                self.assertEqual(done.returncode, 1)
                self.assertIn(word, done.stderr)
                self.assertEqual(self.parts(), [])
        self.assertIn('No file matches', self.predict('--input', os.path.join(self.work, 'nothing-*')).stderr)

    def task(self, spec, index):
        config = json.dumps({'cluster': {'worker': spec}, 'task': {'type': 'worker', 'index': index}})
        return subprocess.Popen(self.command('--input', os.path.join(self.work, 'in-*'), '--lease_seconds', '2', '--batch_size', '4'),
                                env=dict(os.environ, TF_CONFIG=config), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                preexec_fn=processes.die_with_parent)

    def test_tasks_of_a_job_of_which_two_are_killed(self):
        """Each part is made once, whoever dies: a worker, and the one that keeps the leases."""
        shards, count = 40, 400
        self.write_lines(shards, count)
        spec = ['127.0.0.1:%d' % port for port in processes.free_ports(3)]
        tasks = [self.task(spec, index) for index in range(3)]
        try:
            for victim in 1, 0:
                deadline = time.monotonic() + 60
                before = len(glob.glob(os.path.join(self.out, 'part-*')))
                while len(glob.glob(os.path.join(self.out, 'part-*'))) < before + 3:
                    self.assertLess(time.monotonic(), deadline)
                    time.sleep(0.01)
                tasks[victim].send_signal(signal.SIGKILL)
                tasks[victim].communicate()
                tasks[victim] = self.task(spec, victim)
            outputs = [task.communicate(timeout=100) for task in tasks]
        finally:
            for task in tasks:
                processes.stop(task)
        self.assertEqual([task.returncode for task in tasks], [0, 0, 0], outputs)
        self.check(shards, count)


if __name__ == '__main__':
    WEFT = processes.binary_from(sys.argv)
    unittest.main(verbosity=2)
