#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program of TensorFlow 2 changes its cluster while it runs, and weft servers follow it: changing_cluster_test.py [WEFT]."""
import contextlib
import json
import subprocess
import threading
import time
import unittest
import sys

import tensorflow as tf
from tensorflow.core.protobuf import tensorflow_server_pb2
from tensorflow.python.eager import context, executor

import processes

PATIENCE = 30  # seconds; what is cut off ends at once


class ChangingClusterTest(unittest.TestCase):
    def setUp(self):
        self.stack = self.enterContext(contextlib.ExitStack())
        self.workers, self.port = {}, processes.free_ports(1)[0]

    def start(self, index):
        """Starts worker `index`, which knows of no other task, in the place of the one that there was."""
        port = processes.free_ports(1)[0]
        cluster = {'worker': {str(index): '127.0.0.1:%d' % port}}
        process = subprocess.Popen([BINARY, 'server', '--cluster', json.dumps(cluster), '--job_name', 'worker', '--task_index', str(index)],
                                   preexec_fn=processes.die_with_parent)
        self.stack.callback(processes.stop, process)
        processes.wait_for_port(port, process)
        self.workers[index] = '127.0.0.1:%d' % port
        return process

    def server_def(self):
        """This program as the chief, and the workers that there are."""
        told = tensorflow_server_pb2.ServerDef(job_name='chief', task_index=0, protocol='grpc')
        told.cluster.job.add(name='chief').tasks[0] = 'localhost:%d' % self.port
        job = told.cluster.job.add(name='worker')
        for index, address in self.workers.items():
            job.tasks[index] = address
        return told

    def connect(self, *workers):
        for index in workers:
            self.start(index)
        context.set_server_def(self.server_def())
        self.addCleanup(context._reset_context)

    def follow(self):
        context.update_server_def(self.server_def())

    def variable(self, index, value):
        with tf.device(at(index)):
            return tf.Variable(value)

    def test_tasks_come_move_and_go(self):
        self.connect(0, 1)
        kept, lost = self.variable(0, [1.0, 2.0]), self.variable(1, [10.0, 20.0])

        @tf.function
        def add(x, there):
            kept.assign_add(x)
            return kept.read_value() + there
        self.assertEqual(run(0, lambda: add([1.0, 1.0], lost)), [12.0, 23.0])

        self.start(2)
        self.follow()
        new = self.variable(2, [100.0, 200.0])
        self.assertEqual(run(0, lambda: add([1.0, 1.0], new)), [103.0, 204.0])
        self.assertEqual(run(2, lambda: add([1.0, 1.0], lost)), [14.0, 25.0])
        self.assertEqual(run(1, lambda: kept + new), [104.0, 205.0])

        # Another process in the place of the first: it has nothing, and the others find it.
        self.start(1)
        self.follow()
        self.assertEqual(run(2, lambda: add([1.0, 1.0], new)), [105.0, 206.0])
        moved = self.variable(1, [1000.0, 2000.0])
        self.assertEqual(run(0, lambda: add([1.0, 1.0], moved)), [1006.0, 2007.0])
        self.assertEqual(run(1, lambda: add([1.0, 1.0], new)), [107.0, 208.0])
        self.assertEqual(run(2, lambda: kept + moved), [1007.0, 2008.0])

        del self.workers[2]
        self.follow()
        self.assertEqual(run(0, lambda: add([1.0, 1.0], moved)), [1008.0, 2009.0])
        with self.assertRaises(tf.errors.InvalidArgumentError):
            run(2, lambda: tf.constant([1.0]) + 1.0)
        self.assertEqual(run(1, kept.read_value), [8.0, 9.0])

    def test_a_function_that_names_the_program_itself(self):
        self.connect(0, 1)
        v = self.variable(1, [1.0, 2.0])

        @tf.function
        def through(x):
            with tf.device('/job:chief/task:0/device:CPU:0'):
                y = x + 1.0
            with tf.device(at(1)):
                return y * v
        self.assertEqual(run(0, lambda: through(tf.constant([1.0, 1.0]))), [2.0, 4.0])

    def cut_off(self, change):
        """The error of a function at worker 0 that would run for ever with a variable of worker 1."""
        self.connect(0, 1)
        steps, other = self.variable(0, 0), self.variable(1, 1)
        ended = []

        @tf.function
        def forever():
            while steps >= 0:
                steps.assign_add(other)
            return steps.read_value()

        def call():
            # What goes through one stream runs in order.
            alone = executor.new_executor(enable_async=False, enable_streaming_enqueue=False)
            with context.executor_scope(alone), tf.device(at(0)):
                try:
                    ended.append(forever())
                except tf.errors.OpError as error:
                    ended.append(error)
                    alone.clear_error()
        thread = threading.Thread(target=call, daemon=True)
        thread.start()
        await_that(lambda: steps.numpy() > 0)
        change()
        self.follow()
        thread.join(PATIENCE)
        self.assertFalse(thread.is_alive(), 'the call goes on')
        # What is left works.
        count = steps.numpy()
        self.assertEqual(run(0, lambda: steps.assign_add(1)), count + 1)
        return ended[0]

    def test_a_call_over_a_task_that_goes(self):
        # TensorFlow's client tells of it with the next task that comes.
        error = self.cut_off(lambda: (self.workers.pop(1), self.start(2)))
        self.assertIsInstance(error, (tf.errors.AbortedError, tf.errors.InternalError))
        self.assertIn('/job:worker/replica:0/task:1', str(error))

    def test_a_call_over_a_task_that_moves(self):
        error = self.cut_off(lambda: self.start(1))
        self.assertIsInstance(error, tf.errors.AbortedError)
        self.assertIn('/job:worker/replica:0/task:1', str(error))


def at(index):
    return '/job:worker/replica:0/task:%d/device:CPU:0' % index


def run(index, function):
    with tf.device(at(index)):
        return function().numpy().tolist()


def await_that(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, 'in vain'
        time.sleep(0.05)


if __name__ == '__main__':
    BINARY = processes.binary_from(sys.argv)
    unittest.main(verbosity=2)
