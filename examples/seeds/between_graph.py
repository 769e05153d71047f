# SPDX-License-Identifier: Apache-2.0
"""Listing: between-graph replication. Each worker's client builds the same graph, with the parameters on the parameter
server and the computation on its own worker: between_graph.py 0, between_graph.py 1. The three servers run already."""
import sys

import numpy as np
import tensorflow as tf

from cluster import cluster

task_index = int(sys.argv[1])
with tf.device(tf.train.replica_device_setter(worker_device='/job:worker/task:%d' % task_index, cluster=cluster)):
    global_step = tf.get_variable('global_step', [], tf.int64, initializer=tf.zeros_initializer(), trainable=False)
    x = tf.placeholder(tf.float32, [None, 2])
    y_ = tf.placeholder(tf.float32, [None, 1])
    W = tf.get_variable('W', [2, 1], initializer=tf.zeros_initializer())
    b = tf.get_variable('b', [1], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(x, W) + b - y_))
    train_op = tf.train.GradientDescentOptimizer(0.2).minimize(loss, global_step=global_step)

random = np.random.RandomState(task_index)
with tf.train.MonitoredTrainingSession('grpc://' + cluster.task_address('worker', task_index), is_chief=task_index == 0,
                                       hooks=[tf.train.StopAtStepHook(last_step=600)]) as sess:
    while not sess.should_stop():
        batch = random.rand(32, 2).astype(np.float32)
        cost, _ = sess.run([loss, train_op], feed_dict={x: batch, y_: batch.dot([[2.], [-3.]]) + 1})
print('Cost: %.6f' % cost)
