# SPDX-License-Identifier: Apache-2.0
"""Listing: in-graph replication. One client builds a graph with a copy of the model's computation on each worker, and
hands the data out to all of them. The three servers run already."""
import numpy as np
import tensorflow as tf

from cluster import cluster

WORKERS = cluster.num_tasks('worker')

with tf.device('/job:ps/task:0'):
    W = tf.Variable(tf.zeros([2, 1]))
    b = tf.Variable(tf.zeros([1]))

x = tf.placeholder(tf.float32, [None, 2])
y_ = tf.placeholder(tf.float32, [None, 1])
x_split = tf.split(0, WORKERS, x)
y_split = tf.split(0, WORKERS, y_)
losses = []
for i in range(WORKERS):
    with tf.device('/job:worker/task:%d' % i):
        y = tf.matmul(x_split[i], W) + b
        losses.append(tf.reduce_mean(tf.square(y - y_split[i])))

with tf.device('/job:ps/task:0'):
    loss = tf.reduce_mean(tf.pack(losses))
    train_op = tf.train.GradientDescentOptimizer(0.5).minimize(loss)

random = np.random.RandomState(0)
with tf.Session('grpc://' + cluster.task_address('worker', 0)) as sess:
    sess.run(tf.initialize_all_variables())
    for step in range(200):
        batch = random.rand(64, 2).astype(np.float32)
        cost, _ = sess.run([loss, train_op], feed_dict={x: batch, y_: batch.dot([[2.], [-3.]]) + 1})
    print('Cost: %.6f' % cost, 'W:', np.round(sess.run(W).ravel(), 2).tolist(), 'b:', np.round(sess.run(b), 2).tolist())
