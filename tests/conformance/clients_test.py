#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Several clients, one that vanishes, timeouts and long waits: clients_test.py PATH_OF_WEFT [unittest arguments]."""
import glob
import signal
import subprocess
import sys
import threading
import unittest

import numpy as np
from tensorflow.core.protobuf import config_pb2

import processes
import status_test
from status_test import tasks, tf, tf1, wait_until

_VANISHING_CLIENT = '''
import sys
import tensorflow as tf
tf1 = tf.compat.v1
tf1.disable_eager_execution()
with tf.device('/job:ps/task:0'):
    queue = tf1.FIFOQueue(1, [tf.float32], shapes=[[]], shared_name='q')
    size, value = queue.size(), queue.dequeue()
with tf.device('/job:worker/task:0'):
    doubled = value + value
with tf1.Session(sys.argv[1]) as session:
    session.run(size)
    print('blocking', flush=True)
    session.run(doubled)
'''


def is_stopped(pid):
    """Whether all threads of a process stand still."""
    states = []
    for path in glob.glob('/proc/%d/task/*/stat' % pid):
        with open(path) as file:
            states.append(file.read().rsplit(')', 1)[1].split()[0])
    return set(states) == {'T'}


class Clients(unittest.TestCase):
    def setUp(self):
        context = tf.Graph().as_default()
        context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)

    def blocked_step(self):
        """(queue on the parameter server, tensor on the worker that waits for its element)"""
        with tf.device('/job:ps/task:0'):
            queue = tf1.FIFOQueue(1, [tf.float32], shapes=[[]], shared_name='q')
            value = queue.dequeue(name='take')
        with tf.device('/job:worker/task:0'):
            return queue, tf.add(value, value, name='doubled')

    def test_callables_take_values_of_another_shape_than_their_placeholder_says(self):
        """Session.run looks at shapes before it calls; Keras calls what TensorFlow's servers take as it comes."""
        x = tf1.placeholder(tf.float32, [None, 3])
        fetches = [x * 2., tf.reshape(x, [-1]), tf.size(x)]

        def results(target):
            options = config_pb2.CallableOptions(feed=[x.name], fetch=[fetch.name for fetch in fetches])
            with tf1.Session(target) as session:
                call = session._make_callable_from_options(options)
                return [array for value in (np.float32(4), np.ones([2, 2], np.float32)) for array in call(value)]
        with tasks() as cluster:
            for got, wanted in zip(results(cluster['worker'].target), results('')):
                np.testing.assert_array_equal(got, wanted)

    def test_a_silent_task_is_lost_or_waited_for(self):
        with tf.device('/job:ps/task:0'):
            w = tf1.get_variable('w', initializer=1., use_resource=True)
        with tf.device('/job:worker/task:0'):
            more = w + 1.
        for seconds in '3', '0':
            with tasks('--lost_after', seconds) as cluster, tf1.Session(cluster['worker'].target) as session:
                session.run(w.initializer)
                self.assertEqual(session.run(more), 2)
                ps = cluster['ps'].process
                ps.send_signal(signal.SIGSTOP)
                self.addCleanup(ps.send_signal, signal.SIGCONT)
                wait_until(lambda pid=ps.pid: is_stopped(pid), 'a task that stands still')
                if seconds == '0':
                    threading.Timer(5, ps.send_signal, [signal.SIGCONT]).start()
                    self.assertEqual(session.run(more), 2)
                else:
                    with self.assertRaisesRegex(tf.errors.UnavailableError, 'no byte came for 3s'):
                        session.run(more)
                    ps.send_signal(signal.SIGCONT)

    def test_several_clients_at_several_masters(self):
        with tasks() as cluster, tf.Graph().as_default() as graph:
            with tf.device('/job:ps/task:0'):
                w = tf1.get_variable('w', initializer=tf.zeros([10]), use_resource=True)
            with tf.device('/job:worker/task:0'):
                grow = w.assign_add(tf.ones([10]), read_value=False)
            with tf1.Session(cluster['ps'].target) as session:
                session.run(w.initializer)
            errors = []

            def client(target):
                try:
                    with tf1.Session(target, graph) as session:
                        for _ in range(50):
                            session.run(grow)
                except Exception as error:  # pylint: disable=broad-except
                    errors.append(error)

            threads = [threading.Thread(target=client, args=[cluster[job].target]) for job in ('ps', 'worker') * 3]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(120)
            self.assertEqual(errors, [])
            with tf1.Session(cluster['worker'].target) as session:
                self.assertEqual(session.run(w).tolist(), [300.0] * 10)
            for task in cluster.values():
                wait_until(lambda: task.metrics()['weft_graphs'] == 0, 'the end of all sessions')  # noqa: B023

    def test_a_client_that_vanishes_leaves_nothing(self):
        with tasks('--session_lease', '3') as cluster:
            worker, ps = cluster['worker'], cluster['ps']
            client = subprocess.Popen([sys.executable, '-c', _VANISHING_CLIENT, worker.target],
                                      stdout=subprocess.PIPE, text=True)
            self.addCleanup(client.stdout.close)
            self.assertEqual(client.stdout.readline().strip(), 'blocking')
            wait_until(lambda: ps.metrics()['weft_running_parts'] > 0, 'the step at the parameter server')
            client.send_signal(signal.SIGKILL)
            client.wait()
            for task in cluster.values():
                wait_until(lambda: task.metrics()['weft_running_parts'] == 0, 'the end of its step')  # noqa: B023
                for name in 'weft_sessions', 'weft_task_sessions', 'weft_graphs', 'weft_open_steps', 'weft_waits':
                    wait_until(lambda: task.metrics()[name] == 0, name + ' to become 0')  # noqa: B023
            # Its dequeue is gone too: the element stays for others.
            queue, doubled = self.blocked_step()
            with tf1.Session(worker.target) as session:
                session.run(queue.enqueue(4.0))
                self.assertEqual(session.run(doubled), 8.0)

    def test_a_master_that_vanishes_leaves_nothing(self):
        with tasks('--session_lease', '2') as cluster:
            worker, ps = cluster['worker'], cluster['ps']
            queue, _ = self.blocked_step()
            session = tf1.Session(worker.target, config=tf1.ConfigProto(operation_timeout_in_ms=5000))
            self.assertEqual(session.run(queue.size()), 0)
            self.assertEqual(ps.metrics()['weft_task_sessions'], 1)
            worker.process.kill()
            worker.process.wait()
            for name in 'weft_task_sessions', 'weft_graphs':
                wait_until(lambda: ps.metrics()[name] == 0, name + ' to become 0')  # noqa: B023
            with self.assertRaises(tf.errors.OpError):
                session.close()

    def test_a_session_outlives_a_parameter_server_that_is_killed(self):
        with tasks() as cluster:
            with tf.device('/job:ps/task:0'):
                w = tf1.get_variable('w', initializer=tf.ones([3]), use_resource=False)
            with tf.device('/job:worker/task:0'):
                total, doubled = tf.reduce_sum(w), tf.reduce_sum(w * 2)
            with tf1.Session(cluster['worker'].target) as session:
                session.run(w.initializer)
                self.assertEqual(session.run(total), 3)
                cluster['ps'].kill()
                with self.assertRaises((tf.errors.UnavailableError, tf.errors.AbortedError)):
                    session.run(total)
                cluster['ps'].start_again()
                errors = []

                def is_back():
                    try:
                        session.run(total)
                    except tf.errors.OpError as error:
                        errors.append(error)
                    return not isinstance(errors[-1], tf.errors.UnavailableError)
                wait_until(is_back, 'the parameter server to be seen again')
                self.assertIsInstance(errors[-1], tf.errors.AbortedError)
                self.assertIn('was started again', str(errors[-1]))
                with self.assertRaises(tf.errors.FailedPreconditionError):
                    session.run(doubled)
                session.run(w.initializer)
                self.assertEqual(session.run([total, doubled]), [3, 6])

    def test_timeouts_end_a_step_everywhere(self):
        with tasks() as cluster:
            worker, ps = cluster['worker'], cluster['ps']
            queue, doubled = self.blocked_step()
            with tf1.Session(worker.target) as session:
                self.assertEqual(session.run(queue.size()), 0)
                for _ in range(3):
                    with self.assertRaises(tf.errors.DeadlineExceededError):
                        session.run(doubled, options=tf1.RunOptions(timeout_in_ms=200))
                for task in worker, ps:
                    wait_until(lambda: task.metrics()['weft_open_steps'] == 0, 'the end of the steps')  # noqa: B023
                session.run(queue.enqueue(5.0))
                self.assertEqual(session.run(doubled, options=tf1.RunOptions(timeout_in_ms=60000)), 10.0)

    def test_long_waits_are_reported(self):
        with tasks('--report_waits_after', '0.5') as cluster:
            worker = cluster['worker']
            queue, doubled = self.blocked_step()
            with tf1.Session(worker.target) as session:
                self.assertEqual(session.run(queue.size()), 0)
                thread = threading.Thread(target=lambda: session.run(doubled))
                thread.start()
                try:
                    def reported():
                        return [line for line in worker.log() if ' waits ' in line and 'take' in line and '/job:ps' in line]
                    wait_until(reported, 'a line on the wait', 15)
                    self.assertTrue(reported()[0].startswith('W'), reported())
                    self.assertIn('/job:worker/replica:0/task:0', reported()[0])
                finally:
                    session.run(queue.enqueue(1.0))
                    thread.join(60)

    def test_list_devices(self):
        names = {'/job:%s/replica:0/task:0/device:CPU:%d' % (job, i) for job in ('ps', 'worker') for i in range(2)}
        with tasks('--cpu_devices', '2') as cluster:
            seen = {}
            for job in cluster:
                with tf1.Session(cluster[job].target) as session:
                    devices = session.list_devices()
                self.assertEqual({device.name for device in devices}, names)
                self.assertEqual(len({device.incarnation for device in devices}), 4)
                seen[job] = {(device.name, device.incarnation, device.device_type) for device in devices}
            self.assertEqual(seen['ps'], seen['worker'])
            config = tf1.ConfigProto(device_filters=['/job:worker'])
            with tf1.Session(cluster['worker'].target, config=config) as session:
                session.run(tf.constant(1.0))
                self.assertEqual({device.name for device in session.list_devices()},
                                 {name for name in names if 'worker' in name})
            out = subprocess.run([status_test.BINARY, 'inspect', cluster['ps'].target], stdout=subprocess.PIPE, text=True,
                                 check=True).stdout
            for name in names:
                self.assertIn(name, out)

    def test_devices_that_name_no_job(self):
        """What this task is not, another one may be; an error counts the tasks that the graph does not name."""
        with processes.cluster(status_test.BINARY, ps=1, worker=2) as cluster:
            with tf.device('/task:1'):
                three = tf.add(1.0, 2.0)
            with tf1.Session(cluster['worker'][0]) as session:
                self.assertEqual(session.run(three), 3)
            with tf.Graph().as_default() as graph, tf.device('/job:ps/task:5'):
                three = tf.add(1.0, 2.0)
            with tf1.Session(cluster['worker'][0], graph=graph) as session:
                with self.assertRaisesRegex(tf.errors.InvalidArgumentError, '/job:ps/task:5 but available.*/job:worker/replica:0/task:1'):
                    session.run(three)


if __name__ == '__main__':
    status_test.BINARY = processes.binary_from(sys.argv)
    unittest.main()
