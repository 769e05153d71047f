#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many sessions, many steps and clients that are killed leave nothing at our servers: soak_test.py WEFT [--long] [unittest arguments].

Without --long each is small enough for every run of the tests: 300 sessions, a client killed at each stage, 20,000 steps.
With it: 10,000 sessions, 50 clients at each stage, a million steps.
"""
import random
import signal
import subprocess
import sys
import time
import unittest

LONG = '--long' in sys.argv
if LONG:
    sys.argv.remove('--long')

import processes  # noqa: E402
import status_test  # noqa: E402
from status_test import tasks, tf, tf1, wait_until  # noqa: E402

status_test.BINARY = processes.binary_from(sys.argv)

SESSIONS, KILLS, STEPS = (10000, 50, 1000000) if LONG else (300, 1, 20000)
# What a server may keep more than after its first tenth: pools, pages that its allocator has not given back, and the
# descriptors of threads of gRPC that are there once and for all.
GROWTH_BYTES = 24 << 20

_CLIENT = '''
import sys
import tensorflow as tf
tf1 = tf.compat.v1
tf1.disable_eager_execution()
target, stage = sys.argv[1:]
with tf.device('/job:ps/task:0'):
    w = tf1.get_variable('w', initializer=tf.zeros([1 << 20]), use_resource=True)
    queue = tf1.FIFOQueue(1, [tf.float32], shapes=[[]])
    never = queue.dequeue()
with tf.device('/job:worker/task:0'):
    x = tf1.placeholder(tf.float32, [None])
    total, large = tf.reduce_sum(w.read_value()) + tf.reduce_sum(x), w.read_value() + 1.
    waits = never + 1.
    grow = w.assign_add(tf.ones([1 << 20]), read_value=False)
session = tf1.Session(target)
print('ready', flush=True)
while True:
    if stage == 'opening':
        session.close()
        session = tf1.Session(target)
        session.list_devices()
    elif stage == 'extending':
        with tf.device('/job:ps/task:0'):
            more = tf.constant(1.) + 1.
        session.run(more)
    elif stage == 'initializing':
        session.run(w.initializer)
    elif stage == 'feeding':
        session.run(total.op if False else x, {x: [1.] * (1 << 18)})
    elif stage == 'fetching':
        session.run(w.initializer)
        session.run(large)
    elif stage == 'running':
        session.run(w.initializer)
        session.run(grow)
    elif stage == 'waiting':
        session.run(waits)
    elif stage == 'tracing':
        session.run(w.initializer, options=tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE),
                    run_metadata=tf1.RunMetadata())
'''.replace('total.op if False else x', 'x')
STAGES = 'opening extending initializing feeding fetching running waiting tracing'.split()


class Soak(unittest.TestCase):
    def setUp(self):
        context = tf.Graph().as_default()
        context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)

    def settled(self, cluster):
        """Memory and descriptors of each task once nothing of any session is left."""
        found = {}
        for job, task in cluster.items():
            for name in ('weft_sessions', 'weft_task_sessions', 'weft_graphs', 'weft_running_parts', 'weft_open_steps',
                         'weft_waits'):
                wait_until(lambda: task.metrics()[name] == 0, '%s of %s to become 0' % (name, job))  # noqa: B023
            metrics = task.metrics()
            found[job] = metrics['process_resident_memory_bytes'], metrics['process_open_fds']
        return found

    def flat(self, before, after, descriptors=8):
        for job, (memory, files) in after.items():
            self.assertLessEqual(memory - before[job][0], GROWTH_BYTES, job)
            self.assertLessEqual(files - before[job][1], descriptors, job)

    def test_sessions(self):
        with tasks() as cluster:
            with tf.device('/job:ps/task:0'):
                w = tf1.get_variable('w', initializer=tf.zeros([1000]), use_resource=True)
            with tf.device('/job:worker/task:0'):
                total = tf.reduce_sum(w.read_value() + 1.)

            def some(count):
                for _ in range(count):
                    with tf1.Session(cluster['worker'].target) as session:
                        session.run(w.initializer)
                        self.assertEqual(session.run(total), 1000)
            some(SESSIONS // 10)
            before = self.settled(cluster)
            some(SESSIONS - SESSIONS // 10)
            self.flat(before, self.settled(cluster))

    def test_clients_that_are_killed(self):
        choose = random.Random(1)
        with tasks('--session_lease', '2') as cluster:
            def kill_at(stage):
                with subprocess.Popen([sys.executable, '-c', _CLIENT, cluster['worker'].target, stage], text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as client:
                    self.assertEqual(client.stdout.readline(), 'ready\n')
                    time.sleep(choose.uniform(0.05, 0.6))
                    self.assertIsNone(client.poll(), 'the client ended by itself while ' + stage)
                    client.send_signal(signal.SIGKILL)
            kill_at('running')
            before = self.settled(cluster)
            for _ in range(KILLS):
                for stage in STAGES:
                    kill_at(stage)
            self.flat(before, self.settled(cluster))

    def test_steps(self):
        with tasks() as cluster:
            with tf.device('/job:ps/task:0'):
                count = tf1.get_variable('count', initializer=tf.zeros([], tf.int64), use_resource=True)
                add = count.assign_add(1, read_value=False)
            with tf.device('/job:worker/task:0'), tf.control_dependencies([add]):
                done = tf.identity(tf.constant(1))
            with tf1.Session(cluster['worker'].target) as session:
                session.run(count.initializer)
                step = session.make_callable(done)

                def some(steps):
                    for _ in range(steps):
                        step()

                def measure():
                    return {job: (task.metrics()['process_resident_memory_bytes'], task.metrics()['process_open_fds'])
                            for job, task in cluster.items()}
                some(STEPS // 10)
                before = measure()
                some(STEPS - STEPS // 10)
                self.flat(before, measure())
                self.assertEqual(session.run(count), STEPS)
            self.settled(cluster)


if __name__ == '__main__':
    unittest.main(verbosity=2)
