#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weft.compat: TensorFlow 0.x's and contrib's names and argument orders, on our server.

    old_names_test.py [SERVER BINARY]      default: the real TensorFlow's server

What is expected comes from numpy or from today's name of the same thing. Whatever is fetched together with an update is
ordered by the graph.
"""
import gzip
import os
import struct
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import processes

os.environ['WEFT_BINARY'] = processes.binary_from(sys.argv)
sys.path.insert(0, os.path.join(processes.ROOT, 'python'))

import weft  # noqa: E402
import weft.compat  # noqa: E402

weft.install()
import tensorflow as tf  # noqa: E402
import tensorflow.contrib.slim as slim  # noqa: E402
from tensorflow.contrib import layers  # noqa: E402
from tensorflow.examples.tutorials.mnist import input_data  # noqa: E402

X = np.arange(24, dtype=np.float32).reshape(4, 6) / 7 - 1
SERVER = tf.train.Server.create_local_server()


def write_idx(path, array, packed=False):
    data = bytes([0, 0, 8, array.ndim]) + struct.pack('>%dI' % array.ndim, *array.shape) + array.astype(np.uint8).tobytes()
    with open(path, 'wb') as out:
        out.write(gzip.compress(data) if packed else data)


class OldNames(unittest.TestCase):
    def setUp(self):
        # The server keeps variables by name: a container for each test.
        for make in lambda: tf.Graph().as_default(), lambda: tf.container(self.id()):
            context = make()
            context.__enter__()
            self.addCleanup(context.__exit__, None, None, None)

    def run_it(self, *fetches):
        with tf.Session(SERVER.target) as session:
            session.run([tf.initialize_all_variables(), tf.initialize_local_variables()])
            return session.run(list(fetches))

    def same(self, *pairs):
        for (_, wanted), got in zip(pairs, self.run_it(*(p[0] for p in pairs))):
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)

    def test_names_of_elementwise_ops(self):
        self.same((tf.mul(X, X), X * X), (tf.sub(X, 1.0), X - 1), (tf.neg(X), -X), (tf.inv(X + 9), 1 / (X + 9)),
                  (tf.pack([X, X]), np.stack([X, X])), (tf.unpack(tf.constant(X))[1], X[1]),
                  (tf.select(X > 0, X, -X), abs(X)), (tf.listdiff([1, 2, 3], [2])[0], [1, 3]),
                  (tf.batch_matmul(X[None], X.T[None]), (X @ X.T)[None]))

    def test_both_orders_of_concat_and_split(self):
        x = tf.constant(X)
        both = np.concatenate([X, X], 1)
        self.same((tf.concat(1, [x, x]), both), (tf.concat([x, x], 1), both), (tf.concat(concat_dim=1, values=[x, x]), both),
                  (tf.concat(values=[x, x], axis=1), both), (tf.concat(np.int32(0), [x, x])[4:], X),
                  (tf.split(0, 2, x)[1], X[2:]), (tf.split(x, 2)[1], X[2:]), (tf.split(x, [1, 5], 1)[1], X[:, 1:]),
                  (tf.split(split_dim=1, num_split=3, value=x)[0], X[:, :2]), (tf.split(value=x, num_or_size_splits=2)[0], X[:2]),
                  (tf.split(x, num_or_size_splits=3, axis=1)[2], X[:, 4:]),
                  (tf.reverse(x, [False, True]), X[:, ::-1]), (tf.reverse(x, [0]), X[::-1]))

    def test_both_orders_of_losses(self):
        logits, labels, ids = tf.constant(X), np.eye(6, dtype=np.float32)[[0, 1, 2, 3]], np.array([0, 1, 2, 3])
        soft = -np.log((np.exp(X) / np.exp(X).sum(1, keepdims=True))[ids, ids])
        sigmoid = np.log1p(np.exp(X)) - X * labels
        nn = tf.nn
        self.same((nn.softmax_cross_entropy_with_logits(logits, labels), soft),
                  (nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits), soft),
                  (nn.sparse_softmax_cross_entropy_with_logits(logits, ids), soft),
                  (nn.sparse_softmax_cross_entropy_with_logits(labels=ids, logits=logits), soft),
                  (nn.sigmoid_cross_entropy_with_logits(logits, labels), sigmoid),
                  (nn.sigmoid_cross_entropy_with_logits(logits, targets=labels), sigmoid),
                  (nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits), sigmoid),
                  (tf.contrib.losses.mean_squared_error(X, labels), np.mean((X - labels) ** 2)),
                  (tf.contrib.losses.softmax_cross_entropy(logits, labels), soft.mean()),
                  (tf.contrib.metrics.accuracy(tf.constant([1, 2]), tf.constant([1, 3])), 0.5))

    def test_summaries_keep_their_tags(self):
        with tf.name_scope('inner'):
            tf.scalar_summary(['a', 'b'], [1.0, 2.0])
            tf.scalar_summary('cost', 3.0)
            tf.histogram_summary('h', X)
            tf.image_summary('i', tf.zeros([2, 4, 4, 1]), max_images=1)
        text, = self.run_it(tf.merge_all_summaries())
        self.assertEqual([v.tag for v in tf.Summary.FromString(text).value], ['a', 'b', 'cost', 'h', 'i/image'])
        with tempfile.TemporaryDirectory() as folder:
            writer = tf.train.SummaryWriter(folder, graph=tf.get_default_graph())
            writer.add_summary(text, 7)
            writer.close()
            events = list(tf.train.summary_iterator(os.path.join(folder, os.listdir(folder)[0])))
        self.assertEqual([e.step for e in events if e.HasField('summary')], [7])
        self.assertEqual(sum(e.HasField('graph_def') for e in events), 1)

    def test_no_summaries_are_none(self):
        self.assertIsNone(tf.merge_all_summaries())

    def test_optimize_loss_returns_the_loss_before_the_update(self):
        """w starts at 3 and each step takes 0.1 * 2w off: the loss of step n is (3 * 0.8^n)^2, whoever runs first."""
        w = tf.Variable(3.0)
        step = tf.contrib.framework.get_or_create_global_step()
        train = layers.optimize_loss(w * w, step, 0.1, 'SGD')
        with tf.control_dependencies([train]):
            after, steps = w.read_value(), step.read_value()
        with tf.Session(SERVER.target) as session:
            session.run(tf.initialize_all_variables())
            for n in range(20):
                loss, now, count = session.run([train, after, steps])
                np.testing.assert_allclose([loss, now], [(3 * 0.8 ** n) ** 2, 3 * 0.8 ** (n + 1)], rtol=1e-5)
                self.assertEqual(count, n + 1)

    def test_optimize_loss_makes_what_stands_around_an_optimizer(self):
        table, w = tf.Variable(tf.ones([5, 2])), tf.Variable([3.0, 4.0], name='w')
        updated = tf.Variable(0.0, trainable=False)
        loss = tf.reduce_sum(tf.nn.embedding_lookup(table, [1, 1])) + tf.reduce_sum(w * w)
        train = layers.optimize_loss(
            loss, tf.train.get_or_create_global_step(), 0.5, lambda rate: tf.train.GradientDescentOptimizer(rate),
            gradient_multipliers={w: 0.5, table: 2.0}, clip_gradients=10.0, update_ops=[updated.assign(1.0)],
            learning_rate_decay_fn=lambda rate, step: tf.train.exponential_decay(rate, step, 1, 0.5),
            summaries=layers.OPTIMIZER_SUMMARIES)
        # Gradients: [3, 4] of w; two rows of [2, 2] at table[1], which the norm of clipping takes as they lie.
        norm = np.sqrt(25 + 4 * 4)
        with tf.control_dependencies([train]):
            after = [v.read_value() for v in (table, w, updated)]
        # Fetched alone, and no variable that it reads is updated by it.
        tags = {v.tag for v in tf.Summary.FromString(self.run_it(tf.merge_all_summaries())[0]).value}
        self.assertEqual(tags, {'OptimizeLoss/' + tag for tag in (
            'learning_rate_1', 'loss', 'global_norm/gradient_norm', 'global_norm/clipped_gradient_norm', 'gradients/w_0',
            'gradients/Variable_0', 'gradient_norm/w_0', 'gradient_norm/Variable_0')})
        with tf.Session(SERVER.target) as session:
            session.run(tf.initialize_all_variables())
            first, (rows, weights, one) = session.run([train, after])
            second, _ = session.run([train, after])
        self.assertLess(norm, 10)
        np.testing.assert_allclose([first, one], [4 + 25, 1], rtol=1e-6)
        np.testing.assert_allclose(weights, [1.5, 2], rtol=1e-6)
        np.testing.assert_allclose(rows[1], [-1, -1], rtol=1e-6)
        np.testing.assert_allclose(second, -4 + 1.5 ** 2 + 2 ** 2, rtol=1e-6)

    def test_optimize_loss_refuses_in_words(self):
        w = tf.Variable(3.0)
        step = tf.train.get_or_create_global_step()
        for message, args, options in (('Optimizer name should be one of', (w * w, step, 0.1, 'Nothing'), {}),
                                       ('should be a scalar', (tf.ones([2]) * w, step, 0.1, 'SGD'), {}),
                                       ('Learning rate is None', (w * w, step, None, 'SGD'), {}),
                                       ('Invalid learning_rate', (w * w, step, -1, 'SGD'), {}),
                                       ('Summaries should be one of', (w * w, step, 0.1, 'SGD'), {'summaries': ['x']})):
            with self.assertRaisesRegex(ValueError, message):
                layers.optimize_loss(*args, **options)

    def test_layers(self):
        ones, weights = tf.ones_initializer(), {'weights_initializer': tf.ones_initializer()}
        image = np.arange(32, dtype=np.float32).reshape(2, 4, 4, 1)
        full = layers.fully_connected(X, 3, biases_initializer=ones, **weights)
        deep = layers.fully_connected(X.reshape(2, 2, 6), 2, activation_fn=None, scope='deep', **weights)
        conv = slim.conv2d(image, 2, 3, normalizer_fn=slim.batch_norm, normalizer_params={'is_training': False}, **weights)
        pooled = slim.max_pool2d(image, 2)
        transposed = layers.convolution2d_transpose(image, 1, [2, 2], 2, activation_fn=None, **weights)
        separable = layers.separable_conv2d(image, 3, 1, 2, activation_fn=None, **weights)
        names = {v.op.name for v in tf.contrib.framework.get_model_variables()}
        self.assertEqual(names, {
            'fully_connected/weights', 'fully_connected/biases', 'deep/weights', 'deep/biases', 'Conv/weights',
            'Conv/BatchNorm/beta', 'Conv/BatchNorm/moving_mean', 'Conv/BatchNorm/moving_variance',
            'Conv2d_transpose/weights', 'Conv2d_transpose/biases', 'SeparableConv2d/depthwise_weights',
            'SeparableConv2d/pointwise_weights', 'SeparableConv2d/biases'})
        padded = np.pad(image[..., 0], ((0, 0), (1, 1), (1, 1)))
        sums = sum(padded[:, i:i + 4, j:j + 4] for i in range(3) for j in range(3))
        self.same((full, np.maximum(X.sum(1, keepdims=True) + 1, 0).repeat(3, 1)),
                  (deep, X.reshape(2, 2, 6).sum(2, keepdims=True).repeat(2, 2)),
                  (conv, (sums / np.sqrt(1.001))[..., None].repeat(2, 3)),
                  (pooled, image[:, 1::2, 1::2]), (transposed, image.repeat(2, 1).repeat(2, 2)),
                  (separable, 2 * image.repeat(3, 3)), (layers.flatten(image), image.reshape(2, 16)),
                  (slim.dropout(X, 0.5, is_training=False), X), (layers.one_hot_encoding([1, 0], 3), np.eye(3)[[1, 0]]),
                  (layers.unit_norm(X, 1), X / np.sqrt((X * X).sum(1, keepdims=True) + 1e-7)))

    def test_normalisation_and_its_moving_averages(self):
        net = layers.batch_norm(X, decay=0.9, scale=True, scope='bn')
        layer = layers.layer_norm(X)
        updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        self.assertEqual(len(updates), 2)
        mean, variance = X.mean(0), X.var(0)
        self.same((net, (X - mean) / np.sqrt(variance + 0.001)), (updates[0], 0.1 * mean), (updates[1], 0.9 + 0.1 * variance),
                  (layer, (X - X.mean(1, keepdims=True)) / X.std(1, keepdims=True)))

    def test_argument_scopes_and_regularizers(self):
        with slim.arg_scope([slim.fully_connected], weights_regularizer=slim.l2_regularizer(0.5), activation_fn=None,
                            weights_initializer=tf.ones_initializer()) as scope:
            first = slim.fully_connected(X, 2)
        with slim.arg_scope(scope):
            second = slim.fully_connected(first, 2, activation_fn=tf.nn.relu)
        third = slim.stack(X, slim.fully_connected, [5, 4], scope='fc')
        self.assertEqual([v.op.name for v in slim.get_variables('fc', 'weights')], ['fc/fc_1/weights', 'fc/fc_2/weights'])
        self.assertEqual(third.shape.as_list(), [4, 4])
        self.same((tf.add_n(tf.losses.get_regularization_losses()), 0.25 * 12 + 0.25 * 4),
                  (second, np.maximum(2 * X.sum(1, keepdims=True), 0).repeat(2, 1)))

    def test_mnist_from_idx_files(self):
        images = (np.arange(30 * 4 * 4) % 251).reshape(30, 4, 4)
        labels = np.arange(30) % 10
        with tempfile.TemporaryDirectory() as folder:
            for name, array, packed in (('train-images-idx3-ubyte.gz', images, True), ('train-labels-idx1-ubyte', labels, False),
                                        ('t10k-images-idx3-ubyte', images[:5], False), ('t10k-labels-idx1-ubyte.gz', labels[:5], True)):
                write_idx(os.path.join(folder, name), array, packed)
            data = input_data.read_data_sets(folder, one_hot=True, validation_size=10)
            raw = tf.contrib.learn.datasets.mnist.read_data_sets(folder, dtype=tf.uint8, reshape=False, validation_size=0)
            with open(os.path.join(folder, 'train-labels-idx1-ubyte'), 'ab') as file:
                file.write(b'more')
            with self.assertRaisesRegex(ValueError, r'train-labels-idx1-ubyte: shape \[30\] takes 30 bytes, and 34 follow'):
                input_data.read_data_sets(folder)
        with self.assertRaisesRegex(FileNotFoundError, 'does not download'):
            input_data.read_data_sets('/nowhere')
        self.assertEqual([d.num_examples for d in data], [20, 10, 5])
        np.testing.assert_array_equal(raw.train.images[..., 0], images)
        np.testing.assert_allclose(data.test.images, images[:5].reshape(5, 16) / 255., rtol=1e-6)
        seen = [data.train.next_batch(8) for _ in range(5)]
        self.assertEqual((data.train.epochs_completed, [len(x) for x, _ in seen]), (1, [8] * 5))
        # Two epochs of 20: each image twice, each with its own label.
        rows = np.concatenate([x for x, _ in seen])
        classes = np.concatenate([y for _, y in seen]).argmax(1)
        order = np.lexsort(np.rint(rows * 255).astype(int).T)
        wanted = np.concatenate([images[10:].reshape(20, 16)] * 2)
        wanted_order = np.lexsort(wanted.T)
        np.testing.assert_allclose(rows[order] * 255, wanted[wanted_order], rtol=1e-5)
        np.testing.assert_array_equal(classes[order], np.concatenate([labels[10:]] * 2)[wanted_order])

    def test_hparams(self):
        params = tf.contrib.training.HParams(rate=0.1, layers=2, bias=True).parse('rate=0.5, layers=3,bias=false')
        self.assertEqual(params.values(), {'rate': 0.5, 'layers': 3, 'bias': False})

    def test_strategies_and_lazy_adam(self):
        """The next variable goes where least lies; rows that no step read stay, moments too."""
        training = tf.contrib.training
        with tf.Graph().as_default():
            setter = tf.train.replica_device_setter(2, ps_strategy=training.GreedyLoadBalancingStrategy(2, training.byte_size_load_fn))
            with tf.device(setter):
                sizes = [tf.get_variable('v%d' % i, [size]) for i, size in enumerate((10, 2, 3, 4, 9))]
            self.assertEqual([v.device[-1] for v in sizes], list('01111'))
            chosen = training.RandomStrategy(3)(sizes[0].op)
            self.assertIn(chosen, range(3))
            self.assertEqual(chosen, training.RandomStrategy(3)(sizes[0].op))
        table = tf.get_variable('table', initializer=np.ones([3, 2], np.float32))
        rows = tf.placeholder(tf.int32, [None])
        step = tf.contrib.opt.LazyAdamOptimizer(0.1).minimize(tf.reduce_sum(tf.nn.embedding_lookup(table, rows)))
        mean = tf.contrib.seq2seq.sequence_loss(tf.zeros([1, 2, 4]), tf.zeros([1, 2], tf.int32), tf.ones([1, 2]))
        words = tf.contrib.lookup.index_table_from_tensor(['a', 'b']).lookup(tf.constant(['b', 'c']))
        with tf.Session(SERVER.target) as session:
            session.run([tf.global_variables_initializer(), tf.tables_initializer()])
            session.run(step, {rows: [1]})
            session.run(step, {rows: [0]})
            got, loss, ids = session.run([table, mean, words])
        np.testing.assert_allclose(got[1], 0.9, rtol=1e-5)  # One step alone: m / sqrt(v) is 1.
        self.assertTrue((got[2] == 1).all() and (got[0] < 1).all())
        self.assertAlmostEqual(loss, np.log(4), places=5)
        self.assertEqual(ids.tolist(), [1, -1])

    def test_what_is_missing_is_named(self):
        with self.assertRaisesRegex(AttributeError, 'weft.compat has no tensorflow.contrib.tpu; it has .*framework'):
            tf.contrib.tpu

    def test_the_package_itself_keeps_its_functions(self):
        import tensorflow.compat.v1 as tf1
        self.assertIsNot(tf1.concat, tf.concat)
        self.assertFalse(hasattr(tf1, 'scalar_summary'))


class Command(unittest.TestCase):
    """`python -m weft` decides by the text of the program."""

    def run_program(self, text, *options, **modules):
        with tempfile.TemporaryDirectory() as folder:
            for name, body in dict(modules, program=text).items():
                with open(os.path.join(folder, name + '.py'), 'w') as out:
                    out.write(body)
            return subprocess.run(
                [sys.executable, '-m', 'weft', *options, os.path.join(folder, 'program.py')], text=True, timeout=120,
                capture_output=True, env=dict(os.environ, PYTHONPATH=os.path.join(processes.ROOT, 'python')))

    def test_old_programs_get_old_names(self):
        done = self.run_program(
            'import tensorflow as tf\nx = tf.placeholder(tf.float32, [4])\ny = tf.split(0, 2, x)[1]\n'
            'tf.app.flags.DEFINE_string("job_name", "one", "")\nserver = tf.train.Server.create_local_server()\n'
            'print(tf.app.flags.FLAGS.job_name, tf.Session(server.target).run(y, {x: [1, 2, 3, 4]}))')
        self.assertEqual(done.stdout, 'one [3. 4.]\n', done.stderr)

    def test_a_module_beside_the_program_tells_too(self):
        done = self.run_program('import model, tensorflow as tf\nprint(model.x.op.type, tf.mul(2., 3.).op.type)',
                                model='import tensorflow as tf\nx = tf.contrib.layers.flatten(tf.zeros([2, 2]))\n')
        self.assertEqual(done.stdout, 'Reshape Mul\n', done.stderr)

    def test_programs_of_today_keep_their_names(self):
        text = ('import tensorflow as tf\nprint(tf.executing_eagerly(), hasattr(tf, "placeholder"), '
                'tf.compat.v1.placeholder.__name__, int(tf.add(1, 2)))')
        self.assertEqual(self.run_program(text).stdout, 'True False placeholder 3\n')
        self.assertEqual(self.run_program('import tensorflow as tf\nprint(hasattr(tf, "placeholder"))', '--names=old').stdout,
                         'True\n')
        self.assertEqual(self.run_program('import tensorflow as tf\ntf.Session', '--names=today').returncode, 1)


if __name__ == '__main__':
    unittest.main(verbosity=2)
