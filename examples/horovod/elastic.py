# SPDX-License-Identifier: Apache-2.0
"""Ranks that come and go: Horovod's elastic form. Each commit may be where a rank was lost, or where another came."""
import sys

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()
STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 200
hvd.init()

features = np.random.RandomState(0).randn(240, 4).astype('f')
labels = features.dot(np.array([[1.0], [-2.0], [3.0], [0.5]], 'f')) + 0.25
x, y = tf1.placeholder(tf.float32, [None, 4]), tf1.placeholder(tf.float32, [None, 1])
w = tf1.get_variable('w', [4, 1])
b = tf1.get_variable('b', [1], initializer=tf1.zeros_initializer())
loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y))
train = hvd.DistributedOptimizer(tf1.train.AdamOptimizer(0.05)).minimize(loss)
average = hvd.allreduce(loss, name='loss')

with tf1.Session() as session:
    session.run(tf1.global_variables_initializer())
    state = hvd.elastic.TensorFlowState(session=session, step=0)

    @hvd.elastic.run
    def loop(state):
        value = None
        while state.step < STEPS:
            rows = slice(hvd.rank(), None, hvd.size())  # as many ranks as there are now
            value, _ = session.run([average, train], {x: features[rows], y: labels[rows]})
            state.step += 1
            if state.step % 20 == 0:
                print('rank %d of %d: step %d, loss %.5f' % (hvd.rank(), hvd.size(), state.step, value), flush=True)
            state.commit()

    loop(state)
