#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A parameter server goes from process to process while TensorFlow's own client trains on it: handover_test.py WEFT [--megabytes N]
[--table_megabytes N] [--moves N] [-k ...].

The program is one that knows nothing of it: its sessions are opened once, at the workers. Each step adds one to all of a dense variable, to
some rows of a table and to a counter, so that a step that were lost, or counted twice, would show.
"""
import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')

import processes
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
BINARY = None
MEGABYTES = 8  # of dense variables
TABLE_MEGABYTES = 8
MOVES = 3
ROWS = 64  # of the table that a step writes
WIDTH = 64
GREETING = 'was taken over'


def graph(elements, table_rows):
    """The step; what says whether the values are of one count."""
    with tf.device('/job:ps/task:0'):
        dense = [tf1.get_variable('dense%d' % i, [elements // 2], initializer=tf1.zeros_initializer(), use_resource=i == 1) for i in range(2)]
        table = tf1.get_variable('table', [table_rows, WIDTH], initializer=tf1.zeros_initializer(), use_resource=True)
        count = tf1.train.get_or_create_global_step()
        rows = tf1.placeholder(tf.int64, [ROWS])
        with tf.control_dependencies([tf1.assign_add(v, tf.ones_like(v)) for v in dense] +
                                     [tf1.scatter_add(table, rows, tf.ones([ROWS, WIDTH])).op]):
            step = tf1.assign_add(count, 1)
        ends = [tf.reduce_min(v) for v in dense] + [tf.reduce_max(v) for v in dense]
        touched = tf.reduce_sum(tf.cast(table[:, 0], tf.int64))
    return step, rows, count, ends, touched


class Trainer(threading.Thread):
    """A worker: steps, one after the other, in one session."""

    def __init__(self, target, step, rows, table_rows, seed):
        super().__init__()
        self.session = tf1.Session(target)
        self.step, self.rows, self.random, self.table_rows = step, rows, random.Random(seed), table_rows
        self.graph = tf1.get_default_graph()
        self.done, self.longest, self.error, self.stopping = 0, 0.0, None, False

    def run(self):
        try:
            with self.graph.as_default():
                while not self.stopping:
                    begun = time.monotonic()
                    self.session.run(self.step, {self.rows: [self.random.randrange(self.table_rows) for _ in range(ROWS)]})
                    self.longest = max(self.longest, time.monotonic() - begun)
                    self.done += 1
        except tf.errors.OpError as error:
            self.error = error


class HandoverTest(unittest.TestCase):
    def setUp(self):
        self.graph = tf.Graph().as_default()
        self.graph.__enter__()
        self.addCleanup(self.graph.__exit__, None, None, None)
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        random.seed(1)

    def start(self, workers=2, flags=(), megabytes=MEGABYTES):
        self.table_rows = TABLE_MEGABYTES * (1 << 20) // 4 // WIDTH
        self.step, self.rows, self.count, self.ends, self.touched = graph(megabytes * (1 << 20) // 4, self.table_rows)
        self.flags = list(flags)
        self.servers_log = self.stack.enter_context(tempfile.TemporaryFile('w+'))
        self.cluster = self.stack.enter_context(processes.cluster(BINARY, flags=flags, log=self.servers_log, ps=1, worker=workers))
        self.command = self.cluster['processes']['ps', 0].args
        with tf1.Session(self.cluster['worker'][0]) as session:
            session.run(tf1.global_variables_initializer())
        self.trainers = [Trainer(target, self.step, self.rows, self.table_rows, i) for i, target in enumerate(self.cluster['worker'])]
        for one in self.trainers:
            one.start()
        self.wait_for_steps(5)

    def wait_for_steps(self, more):
        wanted = [(one, one.done + more) for one in self.trainers]
        deadline = time.monotonic() + 60
        while any(one.done < count for one, count in wanted):
            for one, _ in wanted:
                self.assertIsNone(one.error)
            self.assertLess(time.monotonic(), deadline, 'steps stand still')
            time.sleep(0.005)

    def next_process(self, *more):
        """One that takes the parameter server over; and its log."""
        log = tempfile.TemporaryFile('w+')
        process = subprocess.Popen(self.command + ['--take_over', '127.0.0.1:0', *more], stderr=log, env=processes.talkative(),
                                   preexec_fn=processes.die_with_parent)
        self.stack.callback(processes.stop, process)
        self.stack.callback(log.close)
        return process, log

    def text(self, log):
        log.seek(0)
        return log.read()

    def wait_for(self, process, log, words, seconds=60):
        deadline = time.monotonic() + seconds
        while words not in self.text(log):
            self.assertIsNone(process.poll(), self.text(log))
            self.assertLess(time.monotonic(), deadline, self.text(log))
            time.sleep(0.01)

    def end(self):
        """No step failed, none is lost, none counted twice."""
        for one in self.trainers:
            one.stopping = True
        for one in self.trainers:
            one.join()
            self.assertIsNone(one.error)
            one.session.close()
        steps = sum(one.done for one in self.trainers)
        with tf1.Session(self.cluster['worker'][0]) as session:
            count, ends, touched = session.run([self.count, self.ends, self.touched])
        self.assertEqual(count, steps)
        self.assertEqual(ends, [steps] * 4)
        self.assertEqual(touched, steps * ROWS)

    def test_it_moves_while_workers_train(self):
        self.start()
        pauses = []
        for number in range(MOVES):
            process, log = self.next_process()
            self.wait_for(process, log, GREETING)
            found = re.search(r'(\d+) variables of (\d+) bytes in (\d+) rounds; steps waited for (\S+) while the last (\d+)', self.text(log))
            self.assertEqual(found[1], '4')
            self.wait_for_steps(3)
            pauses.append('%s (%s bytes of %s in the last of %s rounds)' % (found[4], found[5], found[2], found[3]))
            # The process before is gone, and this one answers where it did.
            old = self.cluster['processes'].pop(('ps', 0))
            processes.stop(old)
            self.assertEqual(old.returncode, 0)
            self.cluster['processes']['ps', 0] = process
            self.wait_for(process, log, 'answers at 127.0.0.1:%s too' % self.cluster['ps'][0].rsplit(':', 1)[1])
            self.wait_for_steps(3)
        self.end()
        print('%d moves while two workers train: steps waited for %s; the longest step took %.0f ms' % (
            MOVES, ', '.join(pauses), max(one.longest for one in self.trainers) * 1e3))

    def test_a_process_that_is_killed_while_it_takes_over_costs_nothing(self):
        self.start()
        for number in range(MOVES * 2):
            process, log = self.next_process()
            self.wait_for(process, log, 'is taken over from')
            time.sleep(random.uniform(0, 0.15))
            process.kill()
            process.wait()
            if GREETING in self.text(log):
                self.fail('it was too quick to be killed')
            self.wait_for_steps(3)
        # What they left does not stand in the way of the next.
        process, log = self.next_process()
        self.wait_for(process, log, GREETING)
        self.wait_for_steps(3)
        self.end()

    def test_one_that_stands_still_is_given_up(self):
        self.start(workers=1, megabytes=128)
        process, log = self.next_process()
        self.wait_for(process, self.servers_log, 'Another process')
        process.send_signal(signal.SIGSTOP)
        self.assertNotIn(GREETING, self.text(log))
        self.wait_for_steps(3)
        time.sleep(15)
        self.wait_for_steps(3)
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(30), 1, self.text(log))
        self.wait_for_steps(3)
        self.end()

    def test_workers_that_come_later_find_it(self):
        self.start(workers=2)
        process, log = self.next_process()
        self.wait_for(process, log, GREETING)
        # A worker that is started again asks the process before, which says where the task is.
        self.trainers[1].stopping = True
        self.trainers[1].join()
        worker = self.cluster['processes']['worker', 1]
        processes.stop(worker)
        again = subprocess.Popen(worker.args, preexec_fn=processes.die_with_parent)
        self.cluster['processes']['worker', 1] = again
        processes.wait_for_port(int(self.cluster['worker'][1].rsplit(':', 1)[1]), again)
        with tf1.Session(self.cluster['worker'][1]) as session:
            self.assertGreater(session.run(self.count), 0)
        self.trainers[1].session = tf1.Session(self.cluster['worker'][1])
        self.end()

    def test_what_cannot_go_is_named(self):
        self.start(workers=1)
        with tf.device('/job:ps/task:0'):
            queue = tf.queue.FIFOQueue(10, tf.float32, shapes=[[]], shared_name='words')
            enqueue = queue.enqueue(1.0)
        with tf1.Session(self.cluster['worker'][0]) as session:
            session.run(enqueue)
        process, log = self.next_process()
        self.assertEqual(process.wait(30), 1)
        self.assertRegex(self.text(log), "'words'.*cannot go to another process: only variables can")
        self.wait_for_steps(3)
        session = tf1.Session(self.cluster['ps'][0])
        session.run(self.count)
        process, log = self.next_process()
        self.assertEqual(process.wait(30), 1)
        self.assertIn("clients have sessions at its own master", self.text(log))
        session.close()
        self.end()


if __name__ == '__main__':
    BINARY = processes.binary_from(sys.argv)
    globals().update(processes.numbers_from(sys.argv, 'MEGABYTES', 'TABLE_MEGABYTES', 'MOVES'))
    unittest.main()
