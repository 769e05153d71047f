#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the listings of examples/seeds: seeds_test.py PATH_OF_WEFT [unittest arguments]."""
import gzip
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import processes

BINARY = processes.binary_from(sys.argv)
SEEDS = os.path.join(processes.ROOT, 'examples/seeds')
sys.path.insert(0, os.path.join(processes.ROOT, 'examples/digits'))
HAS_ESTIMATOR = subprocess.run([sys.executable, '-c', 'import tensorflow_estimator'], stderr=subprocess.DEVNULL).returncode == 0


def write_idx(path, array):
    with open(path, 'wb') as out:
        out.write(gzip.compress(bytes([0, 0, 8, array.ndim]) + struct.pack('>%dI' % array.ndim, *array.shape) +
                                array.astype(np.uint8).tobytes()))


def digits_as_idx(folder):
    """The digits of examples/digits in MNIST's four files."""
    import digits
    data = digits.read_data_sets()
    for name, images in ('train', data.train), ('t10k', data.test):
        write_idx(os.path.join(folder, name + '-images-idx3-ubyte.gz'), np.rint(images.images * 255).reshape(-1, 8, 8))
        write_idx(os.path.join(folder, name + '-labels-idx1-ubyte.gz'), images.labels)


class Listings(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        ports = processes.free_ports(3)
        self.addresses = ['localhost:%d' % port for port in ports]
        self.spec = {'worker': self.addresses[:2], 'ps': self.addresses[2:]}
        self.environment = dict(os.environ, SEEDS_CLUSTER=json.dumps(self.spec), WEFT_BINARY=BINARY, TF_CPP_MIN_LOG_LEVEL='3',
                                PYTHONPATH=os.path.join(processes.ROOT, 'python'), PYTHONUNBUFFERED='1')

    def start(self, script, *args, **environment):
        process = subprocess.Popen([sys.executable, '-m', 'weft', os.path.join(SEEDS, script), *args],
                                   env=dict(self.environment, **environment), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, preexec_fn=processes.die_with_parent)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(processes.stop, process)
        return process

    def output(self, process):
        out, errors = process.communicate(timeout=150)
        self.assertEqual(process.returncode, 0, out + errors)
        return out

    def start_servers(self):
        """The three kinds of Server, each as its listing starts it."""
        for script in 'server_worker_0.py', 'server_worker_1.py', 'server_ps_0.py':
            self.start(script)

    def costs(self, text):
        found = [float(n) for n in re.findall(r'Cost: ([\d.]+)', text)]
        self.assertTrue(found, text)
        return found

    def test_three_servers_and_in_graph_replication(self):
        self.start_servers()
        out = self.output(self.start('in_graph.py'))
        self.assertLess(self.costs(out)[0], 1e-3)
        found = [float(n) for n in re.findall(r'-?[\d.]+', out[out.index('W:'):])]
        np.testing.assert_allclose(found, [2, -3, 1], atol=0.1)

    def test_three_servers_and_between_graph_replication(self):
        self.start_servers()
        clients = [self.start('between_graph.py', str(i)) for i in (1, 0)]
        for client in clients:
            self.assertLess(self.costs(self.output(client))[0], 0.05)

    def test_devices(self):
        self.start_servers()
        out = self.output(self.start('devices.py'))
        one, three = (float(n) for n in re.findall(r'([\d.]+) (?:of one|over three)', out))
        self.assertLess(one, 0.02)
        self.assertLess(three, 0.2)

    def test_supervisor(self):
        self.start_servers()
        clients = [self.start('supervisor.py', str(i), self.folder) for i in (1, 0)]
        for client in clients:
            self.assertLess(float(re.search(r'W: ([\d.]+)', self.output(client))[1]), 2)
        import tensorflow as tf
        self.assertIsNotNone(tf.train.latest_checkpoint(self.folder))

    def one_file(self, script, ps_flag, workers_flag, *flags):
        digits_as_idx(self.folder)
        flags = ['--%s=%s' % (ps_flag, self.addresses[2]), '--%s=%s' % (workers_flag, ','.join(self.addresses[:2])),
                 '--data_dir=' + self.folder, *flags]
        self.start(script, '--job_name=ps', *flags)
        return [self.output(worker) for worker in [
            self.start(script, '--job_name=worker', '--task_index=%d' % i, *flags) for i in (1, 0)]]

    def test_combined(self):
        outputs = self.one_file('combined.py', 'ps_hosts', 'worker_hosts', '--train_dir=%s/train' % self.folder)
        for out in outputs:
            self.assertLess(self.costs(out)[0], 0.5, out)
        import tensorflow as tf
        self.assertGreaterEqual(tf.train.load_variable(self.folder + '/train', 'global_step'), 400)

    def test_all_together(self):
        outputs = self.one_file('all_together.py', 'parameter_servers', 'workers', '--learning_rate=0.5',
                                '--logs_path=%s/logs' % self.folder)
        for out in outputs:
            self.assertGreater(float(re.search(r'Accuracy: ([\d.]+)', out)[1]), 0.85, out)
        import tensorflow as tf
        tags = {v.tag for name in os.listdir(self.folder + '/logs') for e in tf.compat.v1.train.summary_iterator(
            os.path.join(self.folder, 'logs', name)) for v in e.summary.value}
        self.assertEqual(tags, {'cost', 'accuracy'})

    def test_optimizer(self):
        self.start_servers()
        out = self.output(self.start('optimizer.py', 'grpc://' + self.addresses[0]))
        self.assertEqual(out, 'ZerosLike [0, 0] gradients: 6.0 6.0\nw: 2.0029 after 10 steps\n')

    def test_tf_config(self):
        """Both clusters are such that the platform and TensorFlow read every task out of them."""
        sys.path.insert(0, SEEDS)
        import tf_config
        import tensorflow as tf
        for cluster in tf_config.WITH_PS, tf_config.ALL_REDUCE:
            texts = tf_config.of_every_task(cluster)
            self.assertEqual(len(texts), sum(map(len, cluster.values())))
            for text in texts:
                os.environ['TF_CONFIG'] = text
                self.addCleanup(os.environ.pop, 'TF_CONFIG', None)
                resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
                self.assertEqual(resolver.cluster_spec().as_dict(), cluster)
                task = json.loads(text)['task']
                self.assertEqual((resolver.task_type, resolver.task_id), (task['type'], task['index']))
        printed = self.output(self.start('tf_config.py', '--all-reduce'))
        self.assertEqual(printed.count('export TF_CONFIG='), 3)

    @unittest.skipUnless(HAS_ESTIMATOR, 'Estimator left TensorFlow in 2.16')
    def test_estimator_with_parameter_servers(self):
        cluster = {'chief': self.addresses[:1], 'worker': self.addresses[1:2], 'ps': self.addresses[2:]}

        def task(kind):
            return self.start('estimator.py', '--model_dir', self.folder + '/model', '--steps=60',
                              TF_CONFIG=json.dumps({'cluster': cluster, 'task': {'type': kind, 'index': 0}}))
        task('ps')
        worker, chief = task('worker'), task('chief')
        self.assertIn('done', self.output(chief))
        self.assertIn('done', self.output(worker))
        import tensorflow as tf
        self.assertGreaterEqual(tf.train.load_variable(self.folder + '/model', 'global_step'), 60)

    @unittest.skipUnless(HAS_ESTIMATOR, 'Keras left graphs with Keras 3')
    def test_vgg16(self):
        with processes.cluster(BINARY, self.folder, worker=1) as servers:
            out = self.output(self.start('vgg16.py', servers['worker'][0], self.folder))
        self.assertIn('23 layers, the same after loading: True, without its first: False', out)


if __name__ == '__main__':
    unittest.main(verbosity=2)
