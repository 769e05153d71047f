# SPDX-License-Identifier: Apache-2.0
"""A Horovod program: every rank trains on rows of its own, and their gradients are averaged."""
import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()
hvd.init()

features = np.random.RandomState(0).randn(240, 4).astype('f')
labels = features.dot(np.array([[1.0], [-2.0], [3.0], [0.5]], 'f')) + 0.25
rows = slice(hvd.rank(), None, hvd.size())

w = tf1.get_variable('w', [4, 1])
b = tf1.get_variable('b', [1], initializer=tf1.zeros_initializer())
loss = tf.reduce_mean(tf.square(tf.matmul(tf.constant(features[rows]), w) + b - labels[rows]))
optimizer = hvd.DistributedOptimizer(tf1.train.AdamOptimizer(0.1))
train = optimizer.minimize(loss, global_step=tf1.train.get_or_create_global_step())
average = hvd.allreduce(loss, name='loss')

hooks = [hvd.BroadcastGlobalVariablesHook(0), tf1.train.StopAtStepHook(last_step=100)]
with tf1.train.MonitoredTrainingSession(hooks=hooks) as session:
    while not session.should_stop():
        value, _ = session.run([average, train])
print('rank %d of %d: loss %.4f' % (hvd.rank(), hvd.size(), value), flush=True)
