#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SavedModels go both ways between TensorFlow's own sessions and those of weft servers: saved_model_test.py [WEFT].

Written: with two signatures, two sets of tags, a file of words, partitioned variables and an op that runs after
loading. What TensorFlow 2 saves of a module, in functions, is served as well.
"""
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import tensorflow.compat.v1 as tf

import processes

tf.disable_v2_behavior()
WORDS = ['rain', 'snow', 'sun']
X = np.random.RandomState(1).rand(5, 4).astype(np.float32)
ASKED = np.array(['sun', 'rain', 'fog'])

MODULE = '''
import sys
import tensorflow as tf

class Model(tf.Module):
    def __init__(self):
        self.w = tf.Variable([[1.0], [2.0], [3.0], [4.0]])
        self.calls = tf.Variable(0)
        self.words = tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(
            sys.argv[1], tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), -1)

    @tf.function(input_signature=[tf.TensorSpec([None, 4])])
    def score(self, x):
        self.calls.assign_add(1)
        y = tf.zeros([tf.shape(x)[0], 1])
        for i in tf.range(3):
            y = y + tf.matmul(x, self.w) if tf.reduce_sum(y) < 100.0 else y * 2.0
        return {'y': y, 'calls': self.calls.read_value()}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def look(self, words):
        return {'ids': self.words.lookup(words)}

model = Model()
tf.saved_model.save(model, sys.argv[2], {'score': model.score, 'look': model.look})
loaded = tf.saved_model.load(sys.argv[2])
'''


def build(folder):
    """(inputs and outputs by signature, the op to run after loading)"""
    words = os.path.join(folder, 'words.txt')
    with open(words, 'w') as out:
        out.write('\n'.join(WORDS) + '\n')
    asset = tf.constant(words, name='words')
    tf.add_to_collection(tf.GraphKeys.ASSET_FILEPATHS, asset)
    table = tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(
        asset, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), -1)
    x, asked = tf.placeholder(tf.float32, [None, 4], name='x'), tf.placeholder(tf.string, [None], name='asked')
    w = tf.get_variable('w', [4, 3], initializer=tf.random_normal_initializer(seed=1), partitioner=tf.fixed_size_partitioner(2))
    b = tf.get_variable('b', [3], initializer=tf.ones_initializer(), use_resource=True)
    loads = tf.get_variable('loads', initializer=7, trainable=False)
    y = tf.nn.softmax(tf.matmul(x, tf.convert_to_tensor(w)) + b)
    train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(tf.reduce_sum(tf.square(y)))
    after = tf.group(tf.tables_initializer(), tf.assign_add(loads, 1, use_locking=True), name='after_loading')
    return {'serving_default': ({'x': x}, {'y': y}), 'look': ({'asked': asked}, {'ids': table.lookup(asked), 'loads': tf.identity(loads)})}, after, train


class SavedModelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.cluster = cls.enterClassContext(processes.cluster(BINARY, folder=cls.folder, ps=2, worker=1))
        cls.there = cls.cluster['worker'][0]

    def save(self, target, name):
        """Trains a little in a session of `target` and saves; what the model gives."""
        folder = os.path.join(self.folder, name)
        os.makedirs(folder)
        path = os.path.join(folder, 'saved')
        if target:
            tf.Session.reset(target)
        device = tf.train.replica_device_setter(ps_tasks=2, worker_device='/job:worker/task:0') if target else None
        with tf.Graph().as_default(), tf.device(device):
            tf.set_random_seed(2)
            signatures, after, train = build(folder)
            with tf.Session(target) as session:
                session.run([tf.global_variables_initializer(), tf.tables_initializer()])
                for _ in range(3):
                    session.run(train, {signatures['serving_default'][0]['x']: X})
                builder = tf.saved_model.Builder(path)
                named = {key: tf.saved_model.predict_signature_def(*one) for key, one in signatures.items()}
                builder.add_meta_graph_and_variables(session, ['serve'], named, assets_collection=tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS),
                                                     main_op=after, clear_devices=True)
                builder.add_meta_graph(['serve', 'other'], {'only': named['serving_default']}, clear_devices=True)
                builder.save()
                inputs, outputs = signatures['serving_default']
                return path, session.run(outputs['y'], {inputs['x']: X})

    def use(self, target, path, asks):
        """What signatures of a SavedModel give: asks = {signature: {input: value}}."""
        if target:
            tf.Session.reset(target)
        with tf.Graph().as_default(), tf.Session(target) as session:
            signatures = tf.saved_model.load(session, ['serve'], path).signature_def
            found = {}
            for name, feeds in asks.items():
                definition = signatures[name]
                outputs = {key: one.name for key, one in definition.outputs.items()}
                found[name] = session.run(outputs, {definition.inputs[key].name: value for key, value in feeds.items()})
            return found

    def test_both_ways(self):
        for source in '', self.there:
            path, expected = self.save(source, 'from_weft' if source else 'from_tensorflow')
            for target in '', self.there:
                with self.subTest(source=source, target=target):
                    got = self.use(target, path, {'serving_default': {'x': X}, 'look': {'asked': ASKED}})
                    np.testing.assert_allclose(got['serving_default']['y'], expected, rtol=1e-5)
                    self.assertEqual(got['look']['ids'].tolist(), [2, 0, -1])
                    self.assertEqual(got['look']['loads'], 8)

    def test_training_goes_on_where_it_was_saved(self):
        """The optimizer's slots are in a SavedModel, too, and its training op is found by name."""
        path, _ = self.save(self.there, 'goes_on')
        losses = {}
        for target in '', self.there:
            if target:
                tf.Session.reset(target)
            with tf.Graph().as_default() as graph, tf.Session(target) as session:
                tf.saved_model.load(session, ['serve'], path)
                train = graph.get_operation_by_name('Momentum')
                y = graph.get_tensor_by_name('Softmax:0')
                losses[target] = [session.run([y, train], {'x:0': X})[0] for _ in range(3)]
        np.testing.assert_allclose(losses[self.there], losses[''], rtol=1e-4)

    def test_modules_of_version_2(self):
        words, path = os.path.join(self.folder, 'words2.txt'), os.path.join(self.folder, 'module')
        with open(words, 'w') as out:
            out.write('\n'.join(WORDS) + '\n')
        program = os.path.join(self.folder, 'module.py')  # autograph reads source files
        with open(program, 'w') as out:
            out.write(MODULE)
        made = subprocess.run([sys.executable, program, words, path], capture_output=True, text=True)
        self.assertEqual(made.returncode, 0, made.stderr[-3000:])
        asks = {'score': {'x': X}, 'look': {'words': ASKED}}
        expected, got = self.use('', path, asks), self.use(self.there, path, asks)
        np.testing.assert_allclose(got['score']['y'], expected['score']['y'], rtol=1e-5)
        self.assertEqual(got['score']['calls'], expected['score']['calls'])
        self.assertEqual(got['look']['ids'].tolist(), expected['look']['ids'].tolist())


if __name__ == '__main__':
    BINARY = processes.binary_from(sys.argv)
    unittest.main(verbosity=2)
