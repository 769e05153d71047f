# SPDX-License-Identifier: Apache-2.0
"""Listings: one node with its devices, and one model over the tasks of a cluster by device strings.

Both are printed with gpu:0; SEEDS_DEVICE names another, by default the CPU. The three servers run already.
"""
import os

import numpy as np
import tensorflow as tf

from cluster import cluster

DEVICE = os.environ.get('SEEDS_DEVICE', 'cpu:0')
x = tf.placeholder(tf.float32, [None, 4])
y_ = tf.placeholder(tf.float32, [None, 2])
step = tf.contrib.framework.get_or_create_global_step()


def optimize_loss(y, y_):
    return tf.contrib.layers.optimize_loss(tf.reduce_mean(tf.square(y - y_)), step, 0.2, 'SGD', summaries=[])


# One node: the variables on its CPU, the product on its accelerator.
with tf.device('/cpu:0'):
    W = tf.Variable(tf.zeros([4, 2]))
    b = tf.Variable(tf.zeros([2]))
with tf.device('/' + DEVICE):
    y = tf.matmul(x, W) + b
    single = optimize_loss(y, y_)

# A cluster: each part of the model where its variables are near.
with tf.device('/job:ps/task:0/cpu:0'):
    W_0 = tf.Variable(tf.ones([4, 3]))
    b_0 = tf.Variable(tf.zeros([3]))
    W_1 = tf.Variable(tf.ones([3, 2]))
    b_1 = tf.Variable(tf.zeros([2]))
with tf.device('/job:worker/task:0/' + DEVICE):
    y_1 = tf.matmul(x, W_0) + b_0
with tf.device('/job:worker/task:1/' + DEVICE):
    y_2 = tf.matmul(y_1, W_1) + b_1
    spread = tf.contrib.layers.optimize_loss(tf.reduce_mean(tf.square(y_2 - y_)), step, 0.05, 'SGD', summaries=[],
                                             name='Spread')

random = np.random.RandomState(0)
target = np.arange(8).reshape(4, 2) / 8.
with tf.Session('grpc://' + cluster.task_address('worker', 0)) as sess:
    sess.run(tf.initialize_all_variables())
    for _ in range(150):
        batch = random.rand(16, 4).astype(np.float32)
        feeds = {x: batch, y_: batch.dot(target)}
        costs = sess.run([single, spread], feed_dict=feeds)
    print('Cost: %.6f of one node, %.6f over three tasks' % tuple(costs))
