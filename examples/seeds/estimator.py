# SPDX-License-Identifier: Apache-2.0
"""Listing: what an Estimator's program does with TF_CONFIG. It is the same program for one machine and for many.

Where the cluster has parameter servers each task trains against them. Without them (the all-reduce listing) a strategy is
to be named: `--strategy mirrored` and `--strategy multi_worker` stand for the two of the listings.
"""
import argparse

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()

parser = argparse.ArgumentParser()
parser.add_argument('--model_dir', default=None)
parser.add_argument('--steps', type=int, default=200)
parser.add_argument('--strategy', choices=['none', 'mirrored', 'multi_worker'], default='none')
FLAGS = parser.parse_args()


def input_fn():
    random = np.random.RandomState(0)
    x = random.rand(256, 2).astype(np.float32)
    y = (x.dot([[2.], [-3.]]) + 1).astype(np.float32)
    return {'x': tf.constant(x)}, tf.constant(y)


def model_fn(features, labels, mode):
    prediction = tf.layers.dense(features['x'], 1, kernel_initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(prediction - labels))
    train_op = tf.train.GradientDescentOptimizer(0.2).minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, predictions=prediction, loss=loss, train_op=train_op)


strategy = {'none': lambda: None, 'mirrored': tf.distribute.MirroredStrategy,
            'multi_worker': tf.distribute.experimental.MultiWorkerMirroredStrategy}[FLAGS.strategy]()
config = tf.estimator.RunConfig(model_dir=FLAGS.model_dir, train_distribute=strategy)
estimator = tf.estimator.Estimator(model_fn, config=config)
tf.estimator.train_and_evaluate(estimator, tf.estimator.TrainSpec(input_fn, max_steps=FLAGS.steps),
                                tf.estimator.EvalSpec(input_fn, steps=4, start_delay_secs=0, throttle_secs=0))
print('done')
