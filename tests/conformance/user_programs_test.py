# SPDX-License-Identifier: Apache-2.0
"""Programs in the style of TensorFlow 1, each in TensorFlow's own session and on weft servers: the same numbers.

What stands here once came out differently. A program is a function of a session target, run in a graph of its own.
"""
import os
import sys
import unittest

import numpy as np
import tensorflow.compat.v1 as tf

import processes

tf.disable_v2_behavior()


def reads_behind_updates(target):
    """What waits for an update sees it, through reads that were made before."""
    x = tf.Variable(1.0)
    y = tf.Variable([1, 2], dtype=tf.int64)
    with tf.control_dependencies([tf.assign_add(x, 1.0)]):
        same, twice = tf.identity(x), x * 2.0
    with tf.control_dependencies([tf.assign(y, [5, 6])]):
        set_y = tf.identity(y)
    with tf.Session(target) as session:
        session.run(tf.global_variables_initializer())
        return [session.run(t) for t in (same, twice, set_y, x)]


def moving_averages(target):
    """ExponentialMovingAverage.apply behind the training op averages the new weights."""
    w = tf.Variable([1.0, 2.0])
    step = tf.train.get_or_create_global_step()
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(w * w), global_step=step)
    averages = tf.train.ExponentialMovingAverage(0.9, step)
    with tf.control_dependencies([train]):
        both = averages.apply([w])
    with tf.Session(target) as session:
        session.run(tf.global_variables_initializer())
        for _ in range(5):
            session.run(both)
        return session.run([w, averages.average(w), step])


PROGRAMS = [reads_behind_updates, moving_averages]


class UserProgramsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(processes.cluster(BINARY, ps=1, worker=1))

    def run_program(self, program, target):
        with tf.Graph().as_default():
            tf.set_random_seed(3)
            return program(target)


def _add(program):
    def test(self):
        expected = self.run_program(program, '')
        got = self.run_program(program, self.cluster['worker'][0])
        tf.Session.reset(self.cluster['worker'][0])  # the variables of the next program may have these names
        self.assertEqual(len(expected), len(got))
        for one, other in zip(expected, got):
            np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-4, atol=1e-5)
    setattr(UserProgramsTest, 'test_' + program.__name__, test)


for _program in PROGRAMS:
    _add(_program)

if __name__ == '__main__':
    os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
    BINARY = processes.binary_from(sys.argv)
    unittest.main()
