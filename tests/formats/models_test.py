# SPDX-License-Identifier: Apache-2.0
"""Models of C++ programs under the real TensorFlow, and its under ours: models_test.py TOOL [unittest arguments]."""
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import meta_graph_pb2, saved_model_pb2

tf1 = tf.compat.v1
tf1.disable_control_flow_v2()
TOOL = None
X = (np.arange(12) % 5 - 1.5).astype(np.float32).reshape(4, 3)  # as the tool's


def tool(*args):
    done = subprocess.run([TOOL, *map(str, args)], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError('%s: %s' % (' '.join(map(str, args)), done.stderr))
    return np.array(done.stdout.split(), np.float32)


class Module(tf.Module):
    """A model of TensorFlow 2: its parts are functions, one with a loop, and its variables are objects."""

    def __init__(self):
        super().__init__()
        random = np.random.RandomState(5)
        self.w = tf.Variable(random.randn(3, 2).astype(np.float32))
        self.b = tf.Variable(np.ones(2, np.float32))
        self.fixed = tf.Variable(0.5, trainable=False)

    @tf.function(input_signature=[tf.TensorSpec([None, 3], name='x')])
    def score(self, x):
        y = tf.matmul(x, self.w) + self.b
        for _ in range(3):
            y = tf.tanh(y) + self.fixed * y
        return {'y': y}


class ModelsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def load(self, path, x=X):
        """What TensorFlow's session gets of each signature."""
        with tf1.Graph().as_default(), tf1.Session() as session:
            signatures = tf1.saved_model.load(session, ['serve'], path).signature_def
            return {name: session.run({key: one.name for key, one in signature.outputs.items()},
                                      {signature.inputs['x'].name: x}) for name, signature in signatures.items()}

    def save(self, path, use_resource):
        """A model of TensorFlow 1 with its optimizer; (what it gives, the name of the train op)."""
        with tf1.Graph().as_default(), tf1.Session() as session:
            tf1.set_random_seed(3)
            x = tf1.placeholder(tf.float32, [None, 3])
            with tf1.variable_scope('net', use_resource=use_resource):
                w = tf1.get_variable('w', [3, 2], initializer=tf1.random_normal_initializer(seed=1), partitioner=tf1.fixed_size_partitioner(2))
                b = tf1.get_variable('b', [2], initializer=tf1.ones_initializer())
                step = tf1.train.get_or_create_global_step()
            y = tf.cond(tf.reduce_sum(x) > -100, lambda: tf.matmul(x, tf.convert_to_tensor(w)) + b, lambda: tf.zeros([4, 2]))
            train = tf1.train.MomentumOptimizer(0.1, 0.5).minimize(tf.reduce_mean(tf.square(y)), global_step=step)
            session.run(tf1.global_variables_initializer())
            session.run(train, {x: X})
            tf1.saved_model.simple_save(session, path, {'x': x}, {'y': y})
            return session.run(y, {x: X}), train.name

    def test_tensorflow_serves_what_the_tool_exports(self):
        expected = tool('export', self.path('model'))
        got = self.load(self.path('model'))
        np.testing.assert_allclose(got['serving_default']['y'].ravel(), expected, rtol=1e-6)
        self.assertEqual(got['hidden']['hidden'].shape, (4, 5))
        served = tf.saved_model.load(self.path('model')).signatures['serving_default']
        np.testing.assert_allclose(served(x=tf.constant(X))['y'].numpy().ravel(), expected, rtol=1e-6)

    def test_tensorflow_trains_what_the_tool_exports(self):
        tool('export', self.path('model'))
        with tf1.Graph().as_default() as graph, tf1.Session() as session:
            tf1.saved_model.load(session, ['serve'], self.path('model'))
            self.assertEqual({v.op.name for v in tf1.trainable_variables()},
                             {'hidden/kernel', 'hidden/bias', 'line/kernel', 'line/bias'})
            loss = tf.reduce_mean(tf.square(graph.get_tensor_by_name('y:0')))
            train = tf1.train.GradientDescentOptimizer(0.1).minimize(loss)
            losses = [session.run([loss, train], {'x:0': X})[0] for _ in range(5)]
            last = session.run('y:0', {'x:0': X})
        # The tool goes on from the same values to the same losses, with the same optimizer.
        np.testing.assert_allclose(tool('tune', self.path('model'), self.path('tuned'), 5)[:5], losses, rtol=1e-5)
        np.testing.assert_allclose(self.load(self.path('tuned'))['serving_default']['y'], last, rtol=1e-4, atol=1e-6)

    def test_the_tool_serves_and_trains_models_of_version_1(self):
        for use_resource in True, False:
            with self.subTest(use_resource=use_resource):
                path = self.path('saved_%d' % use_resource)
                expected, train = self.save(path, use_resource)
                np.testing.assert_allclose(tool('call', path, 'serving_default'), expected.ravel(), rtol=1e-6)
                with tf1.Graph().as_default() as graph, tf1.Session() as session:
                    signature = tf1.saved_model.load(session, ['serve'], path).signature_def['serving_default']
                    x, y = signature.inputs['x'].name, signature.outputs['y'].name
                    for _ in range(3):
                        session.run(train, {x: X})
                    trained = session.run(y, {x: X})
                    loss = tf.reduce_mean(tf.square(graph.get_tensor_by_name(y)))
                    further = tf1.train.GradientDescentOptimizer(0.1).minimize(loss)
                    tf1.saved_model.load(session, ['serve'], path, import_scope='unused')
                np.testing.assert_allclose(tool('run', path, train, 3), trained.ravel(), rtol=1e-5)
                if not use_resource:
                    continue
                with tf1.Graph().as_default() as graph, tf1.Session() as session:
                    tf1.saved_model.load(session, ['serve'], path)
                    loss = tf.reduce_mean(tf.square(graph.get_tensor_by_name(y)))
                    further = tf1.train.GradientDescentOptimizer(0.1).minimize(loss)
                    losses = [session.run([loss, further], {x: X})[0] for _ in range(4)]
                np.testing.assert_allclose(tool('tune', path, path + '_tuned', 4)[:4], losses, rtol=1e-5)

    def test_the_tool_serves_and_trains_models_of_version_2(self):
        module, path = Module(), self.path('module')
        tf.saved_model.save(module, path, {'serving_default': module.score})
        np.testing.assert_allclose(tool('call', path, 'serving_default'), module.score(X)['y'].numpy().ravel(), rtol=1e-5)
        losses = []
        for _ in range(4):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(module.score(X)['y']))
            losses.append(float(loss))
            for variable, gradient in zip(module.trainable_variables, tape.gradient(loss, module.trainable_variables)):
                variable.assign_sub(0.1 * gradient)
        tuned = tool('tune', path, self.path('tuned'), 4)
        np.testing.assert_allclose(tuned[:4], losses, rtol=1e-4)
        np.testing.assert_allclose(self.load(self.path('tuned'))['serving_default']['y'].ravel(), tuned[4:], rtol=1e-5)
        self.assertEqual(float(module.fixed), 0.5)

    def test_bytes_of_models_stay_what_they_were(self):
        self.save(self.path('saved'), True)
        module = Module()
        tf.saved_model.save(module, self.path('module'), {'serving_default': module.score})
        for name in 'saved', 'module':
            path = os.path.join(self.path(name), 'saved_model.pb')
            tool('saved_model', path, self.path('copy'))
            first, second = saved_model_pb2.SavedModel(), saved_model_pb2.SavedModel()
            for message, at in (first, path), (second, self.path('copy')):
                with open(at, 'rb') as data:
                    message.ParseFromString(data.read())
            for one, two in zip(first.meta_graphs, second.meta_graphs):
                self.same_meta_graph(one, two)

    def same_meta_graph(self, one, two):
        self.assertEqual({n.name: (n.op, list(n.input), n.device) for n in one.graph_def.node},
                         {n.name: (n.op, list(n.input), n.device) for n in two.graph_def.node})
        self.assertEqual({f.signature.name for f in one.graph_def.library.function},
                         {f.signature.name for f in two.graph_def.library.function})
        self.assertEqual(one.signature_def, two.signature_def)
        self.assertEqual(sorted(one.collection_def), sorted(two.collection_def))
        self.assertEqual(one.saver_def.restore_op_name, two.saver_def.restore_op_name)
        self.assertEqual(one.object_graph_def, two.object_graph_def)
        self.assertEqual(one.meta_info_def, two.meta_info_def)

    def test_meta_graphs_of_checkpoints(self):
        with tf1.Graph().as_default(), tf1.Session() as session:
            w = tf1.get_variable('w', initializer=[1.0, 2.0], use_resource=True)
            tf1.while_loop(lambda i: i < 3, lambda i: i + 1, [0])
            session.run(w.initializer)
            saved = tf1.train.Saver().save(session, self.path('model'))
        tool('meta_graph', saved + '.meta', self.path('copy.meta'))
        one, two = meta_graph_pb2.MetaGraphDef(), meta_graph_pb2.MetaGraphDef()
        for message, at in (one, saved + '.meta'), (two, self.path('copy.meta')):
            with open(at, 'rb') as data:
                message.ParseFromString(data.read())
        self.same_meta_graph(one, two)
        with tf1.Graph().as_default(), tf1.Session() as session:
            tf1.train.import_meta_graph(self.path('copy.meta')).restore(session, saved)
            self.assertEqual(session.run(tf1.trainable_variables()[0]).tolist(), [1, 2])

    def test_gradients_in_graphs(self):
        """TensorFlow writes a graph, the tool adds the gradient, TensorFlow runs it."""
        with tf1.Graph().as_default() as graph:
            x = tf1.placeholder(tf.float32, [None, 3], name='x')
            y = tf.nn.softmax(tf.matmul(tf.tanh(x), tf.constant(X[:3]))) * tf.exp(x)
            y = tf.identity(tf1.where(x > 0, y, tf.gather(y, [0, 1, 2, 3]) / 2), name='y')
            expected = tf.gradients(y, x)[0]
            with tf1.Session() as session:
                expected = session.run(expected, {x: X})
            with open(self.path('graph.pb'), 'wb') as out:
                out.write(graph.as_graph_def().SerializeToString())
        tool('gradients', self.path('graph.pb'), self.path('with.pb'), 'y:0', 'x:0')
        tool('graph', self.path('with.pb'), self.path('again.pb'))
        for name in 'with.pb', 'again.pb':
            with tf1.Graph().as_default(), tf1.Session() as session:
                definition = tf1.GraphDef()
                with open(self.path(name), 'rb') as data:
                    definition.ParseFromString(data.read())
                tf1.import_graph_def(definition, name='')
                np.testing.assert_allclose(session.run('gradient:0', {'x:0': X}), expected, rtol=1e-5, atol=1e-6)


if __name__ == '__main__':
    TOOL = sys.argv.pop(1)
    unittest.main(verbosity=2)
