#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A supervised parameter server is killed again and again while it is written to: supervised_test.py WEFT [--kills N] [--megabytes N] [-k ...].

Each step adds one to all of two variables, to a few rows of a table, and to a counter. So whatever moment a kill comes at, the server must
come back with all of them at one count, and that count is the last step that was answered, or the one that was under way.
"""
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')

import numpy as np
import processes
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
BINARY = None
KILLS = 12
MEGABYTES = 8
ROWS = 64  # of the table that a step writes
WIDTH = 64
TABLE_ROWS = 40000
LOST = (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError, tf.errors.InternalError)


def child_of(process):
    """The server process under its supervisor, once there is one."""
    path = '/proc/%d/task/%d/children' % (process.pid, process.pid)
    while True:
        with open(path) as children:
            words = children.read().split()
        if words:
            return int(words[0])
        time.sleep(0.001)


def graph():
    """The step, and what says whether the values are of one count."""
    with tf.device('/job:ps/task:0'):
        elements = MEGABYTES * (1 << 20) // 4 // 2
        dense = [tf1.get_variable('dense%d' % i, [elements], initializer=tf1.zeros_initializer(), use_resource=i == 1) for i in range(2)]
        small = tf1.get_variable('small', [3], initializer=tf1.zeros_initializer(), use_resource=True)
        table = tf1.get_variable('table', [TABLE_ROWS, WIDTH], initializer=tf1.zeros_initializer(), use_resource=True)
        count = tf1.train.get_or_create_global_step()
        rows = tf1.placeholder(tf.int64, [ROWS])
        step = tf.group(*[tf1.assign_add(v, tf.ones_like(v)) for v in dense + [small, count]],
                        tf1.scatter_add(table, rows, tf.ones([ROWS, WIDTH])).op)
        ends = [tf.reduce_min(v) for v in dense + [small]] + [tf.reduce_max(v) for v in dense + [small]]
        # Exact: every row's elements are equal, and rows hold small whole numbers.
        touched = tf.reduce_sum(tf.cast(table[:, 0], tf.int64))
        ragged = tf.reduce_max(tf.abs(table - table[:, :1]))
    with tf.device('/job:worker/task:0'):
        after = tf.identity(count)
    return step, rows, count, ends, touched, ragged, after


class SupervisedTest(unittest.TestCase):
    def setUp(self):
        self.graph = tf.Graph().as_default()
        self.graph.__enter__()
        self.addCleanup(self.graph.__exit__, None, None, None)

    def check(self, session, parts, answered):
        _, _, count, ends, touched, ragged, _ = parts
        now, ends, touched, ragged = session.run([count, ends, touched, ragged])
        self.assertIn(now, (answered, answered + 1), 'after %d answered steps' % answered)
        self.assertEqual(ends, [now] * len(ends), 'all is of one count')
        self.assertEqual((touched, ragged), (now * ROWS, 0), 'the table is of the same')
        return now

    def test_kills_under_load(self):
        random.seed(1)
        parts = graph()
        step, rows, count = parts[:3]
        init = tf1.global_variables_initializer()
        with processes.cluster(processes.with_flags(BINARY, '--supervised'), ps=1, worker=1) as cluster:
            ps = cluster['processes']['ps', 0]
            target = cluster['worker'][0]
            session = tf1.Session(target)
            session.run(init)
            answered, recoveries, cut = 0, [], 0

            def feed():
                return {rows: [random.randrange(TABLE_ROWS) for _ in range(ROWS)]}

            begun = time.monotonic()
            for _ in range(5):
                session.run(step, feed())
                answered += 1
            one = (time.monotonic() - begun) / 5
            for number in range(KILLS):
                if number % 4 == 3:
                    time.sleep(1.2)  # its supervisor gives up on a server that never lives for a second
                killed = []

                def kill(pid=child_of(ps)):
                    killed.append(time.monotonic())
                    os.kill(pid, signal.SIGKILL)

                timer = threading.Timer(random.uniform(0, 3 * one), kill)
                timer.start()
                try:
                    while True:
                        session.run(step, feed())
                        answered += 1
                except LOST:
                    pass
                timer.join()
                while True:
                    try:
                        session.close()
                    except tf.errors.OpError:
                        pass
                    try:
                        session = tf1.Session(target)
                        back = session.run(count)
                        recoveries.append(time.monotonic() - killed[0])
                        break
                    except LOST:
                        self.assertLess(time.monotonic() - killed[0], 60, 'it does not come back')
                now = self.check(session, parts, answered)
                self.assertEqual(now, back)
                cut += now - answered
                answered = now
            session.close()
        recoveries.sort()
        print('%d kills of a server with %d MB in steps of %.0f ms: all of them went on, %d with the step that was not answered; the first '
              'answer came after %.0f ms (median), %.0f ms (at most)' % (
                  KILLS, MEGABYTES + TABLE_ROWS * WIDTH * 4 // 1000000, one * 1e3, cut, recoveries[len(recoveries) // 2] * 1e3,
                  recoveries[-1] * 1e3))

    def test_a_monitored_session_goes_on_with_the_variables(self):
        """The chief would restore the checkpoint of its first step; under the shim it goes on."""
        with tempfile.TemporaryDirectory() as folder:
            ps, worker = processes.free_ports(2)
            cluster = {'ps': ['127.0.0.1:%d' % ps], 'worker': ['127.0.0.1:%d' % worker]}
            environment = dict(os.environ, WEFT_SUPERVISED='1')
            server = subprocess.Popen([BINARY, 'server', '--cluster', json.dumps(cluster), '--job_name', 'ps'], env=environment,
                                      preexec_fn=processes.die_with_parent)
            self.addCleanup(processes.stop, server)
            processes.wait_for_port(ps, server)
            program = processes.program(BINARY, 'supervised_program.py', json.dumps(cluster), folder, variables={'WEFT_SUPERVISED': '1'})
            self.addCleanup(processes.stop, program)
            steps = []
            for line in program.stdout:
                if line.startswith('step '):
                    steps.append(int(line.split()[1]))
                    if steps[-1] in (20, 40):
                        os.kill(child_of(server), signal.SIGKILL)
                else:
                    print(line, end='')
            self.assertEqual(program.wait(60), 0)
            self.assertEqual(steps[-1], 60)
            self.assertEqual(steps, sorted(set(steps)), 'no step comes again')
            self.assertGreaterEqual(len(steps), 56)

    def test_another_signal_than_kill_leaves_nothing(self):
        with tf.device('/job:ps/task:0'):
            value = tf1.get_variable('v', initializer=1.5, use_resource=True)
            missing = tf1.report_uninitialized_variables([value])
        with processes.cluster(processes.with_flags(BINARY, '--supervised'), ps=1) as cluster:
            ps = cluster['processes']['ps', 0]
            with tf1.Session(cluster['ps'][0]) as session:
                session.run(value.initializer)
            for number, left in (signal.SIGKILL, []), (signal.SIGSEGV, [b'v']):
                before = child_of(ps)
                os.kill(before, number)
                while child_of(ps) == before:
                    time.sleep(0.01)
                while True:
                    try:
                        with tf1.Session(cluster['ps'][0]) as session:
                            np.testing.assert_array_equal(session.run(missing), left)
                        break
                    except LOST:
                        time.sleep(0.01)


if __name__ == '__main__':
    BINARY = processes.binary_from(sys.argv)
    globals().update(processes.numbers_from(sys.argv, 'KILLS', 'MEGABYTES'))
    unittest.main()
