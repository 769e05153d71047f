#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs made of numbers, over two devices and over two tasks: random_programs_test.py PATH_OF_WEFT [--numbers FIRST COUNT]
[unittest arguments].

Each runs twice in TensorFlow's own session with two CPU devices and twice behind a server: all that is fetched and what
is left in the variables must be the same. TensorFlow's graph optimizer is off there: it drops effects of branches.
"""
import argparse
import sys
import unittest

import numpy as np

import processes
import random_programs
import status_test
from status_test import tasks, tf, tf1

ONE_DEVICE = '/cpu:0', '/cpu:0'
TWO_DEVICES = '/cpu:0', '/cpu:1'
TWO_TASKS = '/job:worker/task:0/cpu:0', '/job:ps/task:0/cpu:0'
ORDERED, TRAINED = {'ordered'}, {'trained'}
FUNCTIONS = {'functions'}
NUMBERS = range(4)


def results(number, places, kinds, target, config):
    with tf.Graph().as_default():
        tf1.set_random_seed(1)
        fetches, variables = random_programs.build(number, places, kinds)
        with tf1.Session(target, config=config) as session:
            session.run(tf1.global_variables_initializer())
            return [value for _ in range(2) for value in session.run(fetches) + session.run(variables) if value is not None]


class RandomPrograms(unittest.TestCase):
    def check(self, cluster, there, here, kinds):
        for number in NUMBERS:
            with self.subTest(number=number, kinds=kinds):
                theirs = tf1.ConfigProto(device_count={'CPU': 2}, allow_soft_placement=True)
                theirs.graph_options.rewrite_options.disable_meta_optimizer = True
                expected = results(number, here, kinds, '', theirs)
                ours = tf1.ConfigProto(isolate_session_state=True, allow_soft_placement=True)
                got = results(number, there, kinds, cluster['worker'].target, ours)
                self.assertEqual(len(got), len(expected))
                for value, wanted in zip(got, expected):
                    np.testing.assert_allclose(value, wanted, rtol=1e-4, atol=1e-6)

    def test_references_on_one_device(self):
        with tasks() as cluster:
            self.check(cluster, ONE_DEVICE, ONE_DEVICE, ORDERED | {'references'})

    def test_two_devices_of_a_task(self):
        with tasks('--cpu_devices', '2') as cluster:
            for kinds in ORDERED, ORDERED | {'references'}, ORDERED | FUNCTIONS, TRAINED, TRAINED | FUNCTIONS:
                self.check(cluster, TWO_DEVICES, TWO_DEVICES, kinds)

    def test_two_tasks(self):
        with tasks() as cluster:
            for kinds in ORDERED, ORDERED | FUNCTIONS, TRAINED, TRAINED | FUNCTIONS:
                self.check(cluster, TWO_TASKS, TWO_DEVICES, kinds)


if __name__ == '__main__':
    status_test.BINARY = processes.binary_from(sys.argv)
    parser = argparse.ArgumentParser()
    parser.add_argument('--numbers', type=int, nargs=2)
    asked, rest = parser.parse_known_args(sys.argv[1:])
    if asked.numbers:
        NUMBERS = range(asked.numbers[0], sum(asked.numbers))
    tf1.disable_eager_execution()
    unittest.main(argv=sys.argv[:1] + rest)
