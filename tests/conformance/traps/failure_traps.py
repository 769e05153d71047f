# SPDX-License-Identifier: Apache-2.0
"""Traps in how things end: closed, cancelled, out of time, gone."""
import signal
import subprocess
import sys
import threading
import time
import unittest

import processes
from tensorflow.core.protobuf import config_pb2
from harness import BINARY, TrapTest, tf, tf1  # noqa: F401
import harness

_BLOCKED_CLIENT = '''
import sys
import tensorflow as tf
tf1 = tf.compat.v1
tf1.disable_eager_execution()
queue = tf1.FIFOQueue(10, tf.float32, shapes=[()], shared_name='trap22')
with tf1.Session(sys.argv[1]) as session:
    session.run(queue.size())
    print('blocking', flush=True)
    session.run(queue.dequeue())
'''


class FailureTraps(TrapTest):
    def queue(self, name):
        return tf1.FIFOQueue(10, tf.float32, shapes=[()], shared_name=name)

    def test_trap_06_close_ends_concurrent_steps(self):
        queue = self.queue('trap6')
        take = queue.dequeue()
        session = tf1.Session(self.target)
        self.assertEqual(session.run(queue.size()), 0)
        ends = []

        def block():
            try:
                session.run(take)
            except tf.errors.OpError as error:
                ends.append(type(error))

        threads = [threading.Thread(target=block) for _ in range(20)]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        self.assertEqual(session.run(queue.size()), 0, 'others go on beside blocked steps')
        session.close()
        for thread in threads:
            thread.join(30)
            self.assertFalse(thread.is_alive())
        self.assertEqual(ends, [tf.errors.CancelledError] * 20)

    def test_trap_14_operation_timeout(self):
        queue = self.queue('trap14')
        session = self.session(operation_timeout_in_ms=500)
        start = time.monotonic()
        with self.assertRaises(tf.errors.DeadlineExceededError):
            session.run(queue.dequeue())
        self.assertLess(time.monotonic() - start, 20)
        with self.assertRaises(tf.errors.DeadlineExceededError):
            self.session().run(queue.dequeue(), options=tf1.RunOptions(timeout_in_ms=300))
        self.assertEqual(self.session().run(queue.size()), 0)

    def test_trap_22_a_client_that_is_killed(self):
        client = subprocess.Popen([sys.executable, '-c', _BLOCKED_CLIENT, self.target], stdout=subprocess.PIPE, text=True)
        self.addCleanup(client.stdout.close)
        self.assertEqual(client.stdout.readline().strip(), 'blocking')
        time.sleep(1.0)
        client.send_signal(signal.SIGKILL)
        client.wait()
        time.sleep(1.0)
        queue = self.queue('trap22')
        session = self.session(operation_timeout_in_ms=30000)
        session.run(queue.enqueue(5.0))
        # The dead client's dequeue stood first in line: it must not take the element.
        self.assertEqual(session.run(queue.dequeue()), 5.0)


class TwoTaskTraps(unittest.TestCase):
    def test_trap_07_a_failed_step_is_not_repeated(self):
        # The client repeats a call that fails with UNAVAILABLE, up to ten times.
        with processes.cluster(harness.BINARY, ps=1, worker=1) as targets, tf.Graph().as_default():
            with tf.device('/job:worker/task:0'):
                count = tf1.get_variable('count', initializer=0.0, use_resource=True)
                grow = count.assign_add(1.0)
            with tf.device('/job:ps/task:0'):
                queue = tf1.FIFOQueue(1, tf.float32, shapes=[()])
                with tf.control_dependencies([grow]):
                    take = queue.dequeue()
            with tf1.Session(targets['worker'][0]) as session:
                session.run(count.initializer)
                options = config_pb2.CallableOptions(fetch=[take.name])
                call = session._make_callable_from_options(options)
                ends = []

                def run():
                    try:
                        call()
                    except tf.errors.OpError as error:
                        ends.append(error)

                thread = threading.Thread(target=run)
                thread.start()
                time.sleep(1.5)
                targets['processes']['ps', 0].kill()
                targets['processes']['ps', 0].wait()
                thread.join(60)
                self.assertFalse(thread.is_alive())
                self.assertIsInstance(ends[0], (tf.errors.AbortedError, tf.errors.UnavailableError))
            with tf.Graph().as_default(), tf.device('/job:worker/task:0'):
                config = tf1.ConfigProto(device_filters=['/job:worker'])
                same = tf1.get_variable('count', initializer=0.0, use_resource=True)
                with tf1.Session(targets['worker'][0], config=config) as session:
                    self.assertEqual(session.run(same), 1.0)


class AddressTraps(unittest.TestCase):
    def test_trap_21_ipv6_and_dns(self):
        port, = processes.free_ports(1)
        for host, targets in (('[::1]', ['grpc://[::1]:%d']), ('localhost', ['grpc://localhost:%d'])):
            server = subprocess.Popen([harness.BINARY, 'server', '--cluster', '{"local": ["%s:%d"]}' % (host, port),
                                       '--job_name', 'local', '--task_index', '0'])
            try:
                for target in targets:
                    with tf.Graph().as_default(), tf1.Session(target % port) as session:
                        self.assertEqual(session.run(tf.constant(2.0) + 1.0), 3.0)
            finally:
                processes.stop(server)
