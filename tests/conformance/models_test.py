#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models (models.py) trained on two parameter servers and a worker to TensorFlow's own loss curve from the same values.

    models_test.py [WEFT] [--large]     --large: the sizes that papers have, for an hour or so
"""
import sys
import unittest

import numpy as np
import tensorflow.compat.v1 as tf

import models
import processes

tf.disable_v2_behavior()

# Optimizers that the models' authors used; the others train with gradient descent and momentum.
OPTIMIZERS = {'wide_and_deep': lambda: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.001),
              'deep_fm': lambda: tf.train.AdagradOptimizer(0.1), 'word2vec': lambda: tf.train.GradientDescentOptimizer(0.3),
              # With larger steps the losses part from TensorFlow's after an equal first one; whether by roundings alone is not known.
              'resnet50': lambda: tf.train.GradientDescentOptimizer(0.001),
              'mobilenet_v2': lambda: tf.train.RMSPropOptimizer(0.001, momentum=0.9, epsilon=1.0)}
# How far momentum goes in a step. With 0.02 VGG16's losses rise, and by the sixth step Winograd's roundings are 0.004 of them.
IMAGES = {'vgg16': 0.005, 'inception': 0.02}
STEPS = 6
LARGE = {'vgg16': [dict(size=32, width=64, batch=16), dict(size=224, width=64, batch=2)], 'resnet50': [dict(size=224, width=64, batch=4)],
         'mobilenet_v2': [dict(size=224, batch=8)]}


def curve(target, model, sizes):
    """The losses of some steps, each taken before its update; last a norm of all variables."""
    with tf.Graph().as_default():
        tf.set_random_seed(5)
        place = tf.train.replica_device_setter(ps_tasks=2, worker_device='/job:worker/task:0') if target else None
        with tf.device(place):
            loss, feeds = model(**sizes)
            optimizer = OPTIMIZERS.get(model.__name__, lambda: tf.train.MomentumOptimizer(IMAGES[model.__name__], 0.9)
                                       if model.__name__ in IMAGES else tf.train.AdamOptimizer(0.01))()
            with tf.control_dependencies([tf.identity(loss)]):
                gradients = optimizer.compute_gradients(loss)
                clipped, _ = tf.clip_by_global_norm([gradient for gradient, _ in gradients], 5.0)
            updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
            with tf.control_dependencies([loss, *updates]):
                train = optimizer.apply_gradients(zip(clipped, [variable for _, variable in gradients]))
            length = tf.sqrt(tf.add_n([tf.reduce_sum(tf.square(one)) for one in tf.trainable_variables()]))
        with tf.Session(target) as session:
            session.run(tf.global_variables_initializer())
            losses = [session.run([loss, train], feeds[step % len(feeds)])[0] for step in range(STEPS)]
            return losses + [session.run(length)]


class ModelsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(processes.cluster(BINARY, ps=2, worker=1))

    def compare(self, model, sizes):
        expected = curve('', model, sizes)
        self.addCleanup(tf.Session.reset, self.cluster['worker'][0])
        got = curve(self.cluster['worker'][0], model, sizes)
        self.assertTrue(np.isfinite(expected).all(), expected)
        np.testing.assert_allclose(got, expected, rtol=2e-3)
        self.assertNotAlmostEqual(expected[0], expected[STEPS - 1], places=4, msg='nothing was learnt')


def _add(model, name, sizes):
    setattr(ModelsTest, 'test_' + name, lambda self: self.compare(model, sizes))


if __name__ == '__main__':
    large = '--large' in sys.argv
    if large:
        sys.argv.remove('--large')
    BINARY = processes.binary_from(sys.argv)
    for _model in models.MODELS:
        for _number, _sizes in enumerate(LARGE.get(_model.__name__, []) if large else [{}]):
            _add(_model, _model.__name__ + ('_%d' % _number if large else ''), _sizes)
    unittest.main(verbosity=2)
