#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that cannot be written or read, under TensorFlow's own MonitoredTrainingSession and Saver:
saving_test.py PATH_OF_WEFT [unittest arguments].

The server writes and reads them. Nothing that was saved is lost, and no run ends well whose last save failed.
"""
import contextlib
import glob
import os
import subprocess
import sys
import tempfile
import unittest

import processes
import status_test
from status_test import tasks, tf, tf1

ELEMENTS = 100000  # of a variable: a checkpoint has 400 KB
DISK = 2 << 20


def trained(target, folder, until, every=2, before_step=None):
    """Trains in steps that each add one; the step that it began with."""
    with tf.Graph().as_default():
        step = tf1.train.get_or_create_global_step()
        w = tf1.get_variable('w', shape=[ELEMENTS], initializer=tf1.zeros_initializer(), use_resource=True)
        train = tf.group(tf1.assign_add(w, tf.ones([ELEMENTS])), tf1.assign_add(step, 1))
        scaffold = tf1.train.Scaffold(saver=tf1.train.Saver(max_to_keep=2))
        with tf1.train.MonitoredTrainingSession(target, checkpoint_dir=folder, scaffold=scaffold, save_checkpoint_steps=every,
                                                save_summaries_steps=None, save_summaries_secs=None,
                                                log_step_count_steps=None) as session:
            first = at = int(session.run(step))
            while at < until:
                if before_step is not None:
                    before_step(at)
                session.run(train)
                at = int(session.run(step))
    return first


@contextlib.contextmanager
def small_disk():
    """A folder on a disk of DISK bytes; the test is skipped where none can be made."""
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=%d' % DISK, 'none', folder], capture_output=True)
        if made.returncode != 0:
            raise unittest.SkipTest('a small disk cannot be mounted: ' + made.stderr.decode())
        try:
            yield folder
        finally:
            subprocess.run(['umount', '--lazy', folder], check=True)


def fill(folder):
    with open(os.path.join(folder, 'filler'), 'wb', buffering=0) as out, contextlib.suppress(OSError):
        while True:
            out.write(bytes(4096))


def value_at(checkpoint):
    """The step of a checkpoint, all of which is read."""
    reader = tf.train.load_checkpoint(checkpoint)
    step = int(reader.get_tensor('global_step'))
    assert (reader.get_tensor('w') == step).all()
    return step


class Saving(unittest.TestCase):
    def setUp(self):
        cluster = self.enterContext(tasks()) if hasattr(self, 'enterContext') else self.entered(tasks())
        self.target = cluster['worker'].target

    def entered(self, context):
        """For Python before 3.11."""
        value = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return value

    def test_a_full_disk_while_it_trains(self):
        with small_disk() as folder:
            self.assertEqual(trained(self.target, folder, until=4), 0)
            with self.assertRaisesRegex(tf.errors.ResourceExhaustedError, 'model.ckpt-'):
                trained(self.target, folder, until=100, before_step=lambda step: fill(folder) if step == 6 else None)
            saved = value_at(tf.train.latest_checkpoint(folder))
            self.assertGreaterEqual(saved, 4)
            os.remove(os.path.join(folder, 'filler'))
            self.assertEqual(trained(self.target, folder, until=saved + 4), saved)
            self.assertEqual(value_at(tf.train.latest_checkpoint(folder)), saved + 4)

    def test_a_full_disk_at_the_end(self):
        with small_disk() as folder:
            with self.assertRaisesRegex(tf.errors.ResourceExhaustedError, 'model.ckpt-5'):
                trained(self.target, folder, until=5, every=1000, before_step=lambda step: fill(folder) if step == 4 else None)
            self.assertEqual(value_at(tf.train.latest_checkpoint(folder)), 0)

    def test_a_damaged_newest_checkpoint(self):
        """TensorFlow's client goes to no older one by itself; it must say which is damaged, and delete none."""
        with tempfile.TemporaryDirectory() as folder:
            trained(self.target, folder, until=4)
            newest = tf.train.latest_checkpoint(folder)
            for data in glob.glob(newest + '.data*'):
                os.truncate(data, 100)
            before = sorted(os.listdir(folder))
            with self.assertRaisesRegex(tf.errors.DataLossError, os.path.basename(newest)):
                trained(self.target, folder, until=8)
            self.assertEqual([name for name in sorted(os.listdir(folder)) if name.startswith('model.')],
                             [name for name in before if name.startswith('model.')])
            self.assertEqual(value_at(os.path.join(folder, 'model.ckpt-2')), 2)

    def test_an_empty_list_of_checkpoints(self):
        with tempfile.TemporaryDirectory() as folder:
            trained(self.target, folder, until=4)
            with open(os.path.join(folder, 'checkpoint'), 'w'):
                pass
            with self.assertRaises(ValueError):
                trained(self.target, folder, until=8)
            self.assertEqual([value_at(os.path.join(folder, 'model.ckpt-%d' % step)) for step in (2, 4)], [2, 4])

    def test_a_saver_that_is_called(self):
        """Its own files of a failed save are no checkpoint, and the list names the last good one."""
        with small_disk() as folder, tf.Graph().as_default():
            w = tf1.get_variable('w', shape=[ELEMENTS], initializer=tf1.ones_initializer(), use_resource=True)
            step = tf1.get_variable('global_step', initializer=1, use_resource=True)
            saver = tf1.train.Saver()
            with tf1.Session(self.target) as session:
                session.run(tf1.global_variables_initializer())
                path = os.path.join(folder, 'model')
                saver.save(session, path, global_step=1)
                fill(folder)
                session.run([tf1.assign_add(w, tf.ones([ELEMENTS])), tf1.assign_add(step, 1)])
                for _ in range(2):
                    with self.assertRaises(tf.errors.ResourceExhaustedError):
                        saver.save(session, path, global_step=2)
                self.assertEqual(value_at(tf.train.latest_checkpoint(folder)), 1)
                os.remove(os.path.join(folder, 'filler'))
                saver.save(session, path, global_step=2)
            self.assertEqual(value_at(tf.train.latest_checkpoint(folder)), 2)


if __name__ == '__main__':
    status_test.BINARY = processes.binary_from(sys.argv)
    tf1.disable_eager_execution()
    unittest.main()
