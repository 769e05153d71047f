#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's client and servers whose tensors travel by UCX, here over its TCP: ucx_test.py PATH_OF_WEFT [unittest arguments]."""
import os
import subprocess
import tempfile
import threading
import time
import unittest

import numpy as np
import processes
import seed_mlp_test
import tensorflow as tf

tf1 = tf.compat.v1
BINARY = seed_mlp_test.BINARY  # which has taken it from the arguments
os.environ.update(UCX_TLS='tcp')
FLAGS = '--transport', 'ucx', '--shared_memory', 'false'


class UcxTest(unittest.TestCase):
    def test_the_seed_trains(self):
        os.environ['WEFT_TRANSPORT'] = 'ucx'
        try:
            seed_mlp_test.SeedMlpTest().check()
        finally:
            del os.environ['WEFT_TRANSPORT']

    def test_tensors_arrive_and_a_killed_task_ends_its_steps(self):
        with tempfile.TemporaryFile('w+') as log, processes.cluster(BINARY, flags=FLAGS, log=log, ps=1, worker=1) as cluster, \
                tf.Graph().as_default():
            with tf.device('/job:ps/task:0'):
                w = tf1.get_variable('w', initializer=tf.zeros([1 << 20]), use_resource=True)
                small = tf1.get_variable('small', initializer=tf.zeros([3]), use_resource=True)
                never = tf1.FIFOQueue(1, [tf.float32], shapes=[[]]).dequeue()
            with tf.device('/job:worker/task:0'):
                x = tf1.placeholder(tf.float32, [1 << 20])
                grow = tf.group(tf1.assign_add(w, x), tf1.assign_add(small, x[:3]))
                twice = w.read_value() * 2, small.read_value() * 2
                waits = tf.negative(never)
            with tf1.Session(cluster['worker'][0]) as session:
                session.run([w.initializer, small.initializer])
                values = np.random.RandomState(1).rand(1 << 20).astype(np.float32)
                for _ in range(5):
                    session.run(grow, {x: values})
                large, few = session.run(twice)
                expected = sum([values] * 5) * 2
                np.testing.assert_allclose(large, expected, rtol=1e-6)
                np.testing.assert_allclose(few, expected[:3], rtol=1e-6)

                errors = []

                def wait():
                    try:
                        session.run(waits)
                    except tf.errors.OpError as error:
                        errors.append(error)
                waiter = threading.Thread(target=wait)
                waiter.start()
                time.sleep(1)
                self.assertEqual(errors, [])
                cluster['processes']['ps', 0].kill()
                begin = time.monotonic()
                waiter.join(60)
                self.assertLess(time.monotonic() - begin, 5)
                self.assertIsInstance(errors[0], (tf.errors.UnavailableError, tf.errors.AbortedError))
            log.seek(0)
            said = log.read()
            self.assertEqual(said.count('Tensors between tasks travel by UCX: --transport says so'), 2, said)

    def test_tasks_that_speak_another_way_say_so(self):
        ports = processes.free_ports(2)
        spec = '{"ps": ["127.0.0.1:%d"], "worker": ["127.0.0.1:%d"]}' % tuple(ports)
        started = [subprocess.Popen([BINARY, 'server', '--cluster', spec, '--job_name', job, '--transport', way],
                                    preexec_fn=processes.die_with_parent) for job, way in (('ps', 'tcp'), ('worker', 'ucx'))]
        try:
            for port, process in zip(ports, started):
                processes.wait_for_port(port, process)
            with tf.Graph().as_default():
                with tf.device('/job:ps/task:0'):
                    w = tf1.get_variable('w', initializer=tf.zeros([5]), use_resource=True)
                with tf.device('/job:worker/task:0'):
                    twice = w.read_value() * 2
                with tf1.Session('grpc://127.0.0.1:%d' % ports[1]) as session:
                    with self.assertRaisesRegex(tf.errors.OpError, 'give all tasks the same --transport'):
                        session.run(w.initializer)
                        session.run(twice)
        finally:
            for process in started:
                processes.stop(process)


if __name__ == '__main__':
    unittest.main(verbosity=2)
