#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The stand-in for tf.train.Server: what it accepts, where it listens, how it ends.

    shim_test.py [SERVER BINARY]      default: the real TensorFlow's server
"""
import ast
import glob
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
import zipfile

import processes

os.environ['WEFT_BINARY'] = processes.binary_from(sys.argv)
sys.path.insert(0, os.path.join(processes.ROOT, 'python'))

import tensorflow as tf  # noqa: E402
import weft  # noqa: E402

weft.install()
tf1 = tf.compat.v1


def answers(target):
    with tf.Graph().as_default(), tf1.Session(target) as session:
        return session.run(tf.constant(6) * 7) == 42


class ShimTest(unittest.TestCase):
    def test_every_name_of_the_server_is_replaced(self):
        from tensorflow.python.training import server_lib
        for module in tf1.train, tf.distribute, server_lib:
            self.assertEqual(module.Server.__module__, 'weft.tensorflow_server')

    def test_a_program_that_is_started_with_the_folder_on_its_path(self):
        """As the operator starts programs of images that know nothing of weft."""
        python = os.path.join(processes.ROOT, 'python')
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, 'sitecustomize.py'), 'w') as out:
                out.write('hidden = 1\nprint("the one before runs too")\n')
            done = subprocess.run(
                [sys.executable, '-c', 'import tensorflow as tf\nserver = tf.compat.v1.train.Server.create_local_server()\n'
                 'print(type(server).__module__)'], text=True, capture_output=True, timeout=120,
                env=dict(os.environ, PYTHONPATH=os.pathsep.join([os.path.join(python, 'weft', 'inject'), python, folder])))
        self.assertEqual(done.stdout, 'the one before runs too\nweft.tensorflow_server\n', done.stderr)

    def test_the_wheel(self):
        """Holds all modules, says what it needs, and its files are of Python 3.5's grammar where that is promised."""
        python = os.path.join(processes.ROOT, 'python')
        old = ['weft/__init__.py', 'weft/__main__.py', 'weft/program_names.py', 'weft/tensorflow_server.py',
               'weft/inject/__init__.py', 'weft/inject/sitecustomize.py']
        for name in old:
            with open(os.path.join(python, name)) as source:
                ast.parse(source.read(), name, feature_version=(3, 5))
        if importlib.util.find_spec('wheel') is None:
            self.skipTest('this Python builds no wheels')
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(python, os.path.join(folder, 'python'), ignore=shutil.ignore_patterns('__pycache__', 'build', '*.egg-info'))
            subprocess.run([sys.executable, '-m', 'pip', 'wheel', '-q', '--no-deps', '--no-build-isolation', '--no-index', '-w', folder,
                            os.path.join(folder, 'python')], check=True, timeout=120, capture_output=True)
            wheel, = glob.glob(os.path.join(folder, 'weft-*.whl'))
            names = set(zipfile.ZipFile(wheel).namelist())
        self.assertLessEqual(set(old) | {'weft/compat/' + name for name in os.listdir(os.path.join(python, 'weft/compat'))
                                         if name.endswith('.py')}, names)
        self.assertIn('-py2.py3-none-any', wheel)

    def test_local_server(self):
        server = tf1.train.Server.create_local_server()
        self.assertRegex(server.target, r'^grpc://localhost:\d+$')
        self.assertEqual(server.server_def.job_name, 'local')
        self.assertTrue(answers(server.target))
        server.start()  # a second start changes nothing
        self.assertTrue(answers(server.target))

    def test_server_def_and_sparse_cluster(self):
        port, = processes.free_ports(1)
        definition = tf.train.ServerDef(cluster=tf.train.ClusterSpec({'worker': {3: 'localhost:%d' % port}}).as_cluster_def(),
                                        job_name='worker', task_index=3, protocol='grpc')
        server = tf1.train.Server(definition)
        self.assertEqual(server.target, 'grpc://localhost:%d' % port)
        with tf.Graph().as_default(), tf1.Session(server.target) as session:
            names = [d.name for d in session.list_devices()]
        self.assertIn('/job:worker/replica:0/task:3/device:CPU:0', names)

    def test_no_start(self):
        server = tf1.train.Server({'local': ['localhost:0']}, start=False)
        server.start()
        self.assertTrue(answers(server.target))

    def test_its_config_says_how_many_devices_it_has(self):
        config = tf1.ConfigProto(device_count={'CPU': 3}, allow_soft_placement=True)
        server = tf1.train.Server.create_local_server(config=config)
        with tf.Graph().as_default():
            with tf.device('/gpu:0'):
                three = tf.constant(1.) + 2.
            with tf1.Session(server.target, config=tf1.ConfigProto(device_count={'CPU': 5})) as session:
                self.assertEqual([d.name.rsplit('/', 1)[1] for d in session.list_devices()],
                                 ['device:CPU:%d' % i for i in range(3)])
                self.assertEqual(session.run(three), 3)

    def test_tasks_on_a_network_know_each_other_by_a_secret(self):
        own = processes.own_address()
        if own is None:
            self.skipTest('there is no network but loopback here')
        spec = {job: ['%s:%d' % (own, port)] for job, port in zip(('ps', 'worker'), processes.free_ports(2))}
        with tempfile.TemporaryDirectory() as folder:
            secret = os.path.join(folder, 'secret')
            subprocess.run([os.environ['WEFT_BINARY'], 'secret', secret], check=True, stdout=subprocess.DEVNULL, timeout=60)
            with unittest.mock.patch.dict(os.environ, {'WEFT_TASK_TLS': secret}):
                servers = [tf1.train.Server(spec, job, 0) for job in spec]
            # TensorFlow's client speaks no TLS.
            self.assertRegex(servers[1].target, r'^grpc://127\.0\.0\.1:')
            with tf.Graph().as_default(), tf1.Session(servers[1].target) as session:
                with tf.device('/job:ps/task:0'):
                    far = tf.fill([1 << 18], 3.)
                    # Its own program's files are not bound to a folder.
                    size = tf.strings.length(tf.io.read_file(os.path.join(secret, 'ca.crt')))
                with tf.device('/job:worker/task:0'):
                    total = tf.reduce_sum(far)
                self.assertEqual(session.run(total), 3 << 18)
                self.assertGreater(session.run(size), 100)
            for server in servers:
                server._stop()

    def test_a_port_in_use_is_an_error(self):
        server = tf1.train.Server.create_local_server()
        address = server.target[len('grpc://'):]
        with self.assertRaises(tf.errors.UnknownError):
            tf1.train.Server({'local': [address]})

    def test_the_server_ends_with_its_program(self):
        code = ('import weft.tensorflow_server as s, time; server = s.Server.create_local_server();'
                'print(server._process.pid, flush=True); time.sleep(60)')
        for number in signal.SIGKILL, signal.SIGTERM:
            program = subprocess.Popen([sys.executable, '-c', code], stdout=subprocess.PIPE, text=True,
                                       env=dict(os.environ, PYTHONPATH=os.path.join(processes.ROOT, 'python')))
            child = int(program.stdout.readline())
            program.send_signal(number)
            program.wait()
            program.stdout.close()
            deadline = time.monotonic() + 20
            while os.path.exists('/proc/%d' % child) and time.monotonic() < deadline:
                time.sleep(0.05)
            self.assertFalse(os.path.exists('/proc/%d' % child), number)

    def test_the_program_ends_with_a_server_that_was_killed(self):
        """Whether it joins the server or does something else: its launcher starts the task again."""
        for does in 'server.join()', 'time.sleep(60)':
            code = ('import weft.tensorflow_server as s, time; server = s.Server.create_local_server();'
                    'print(server._process.pid, flush=True); ' + does)
            with subprocess.Popen([sys.executable, '-c', code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  env=dict(os.environ, PYTHONPATH=os.path.join(processes.ROOT, 'python'))) as program:
                os.kill(int(program.stdout.readline()), signal.SIGKILL)
                said = program.communicate(timeout=60)[1]
            self.assertEqual(program.returncode, 128 + signal.SIGKILL, does)
            self.assertIn('was killed by signal 9', said)

    def test_a_program_that_joins_ends_like_its_server(self):
        """Whoever ends the server alone, as a machine short of memory does, has not ended the job: exit code 0 would say so."""
        code = ('import weft.tensorflow_server as s; server = s.Server.create_local_server();'
                'print(server._process.pid, flush=True); server.join(); print("goes on")')
        with subprocess.Popen([sys.executable, '-c', code], stdout=subprocess.PIPE, text=True,
                              env=dict(os.environ, PYTHONPATH=os.path.join(processes.ROOT, 'python'))) as program:
            os.kill(int(program.stdout.readline()), signal.SIGTERM)
            self.assertEqual(program.communicate(timeout=60)[0], '')
        self.assertEqual(program.returncode, 128 + signal.SIGTERM)


if __name__ == '__main__':
    unittest.main(verbosity=2)
