# SPDX-License-Identifier: Apache-2.0
"""Listing: "create a training session", a Supervisor over a between-graph replica: supervisor.py TASK_INDEX LOGDIR.
The three servers run already."""
import sys

import tensorflow as tf

from cluster import cluster

task_index, logdir = int(sys.argv[1]), sys.argv[2]
with tf.device(tf.train.replica_device_setter(worker_device='/job:worker/task:%d' % task_index, cluster=cluster)):
    global_step = tf.get_variable('global_step', [], initializer=tf.constant_initializer(0), trainable=False)
    W = tf.Variable(4.0)
    loss = tf.square(W - 1.0)
    train_op = tf.train.GradientDescentOptimizer(0.05).minimize(loss, global_step=global_step)
    init_op = tf.initialize_all_variables()

sv = tf.train.Supervisor(is_chief=(task_index == 0),
                         logdir=logdir,
                         init_op=init_op,
                         summary_op=None,
                         saver=tf.train.Saver(),
                         global_step=global_step,
                         save_model_secs=600,
                         recovery_wait_secs=1)

with sv.managed_session('grpc://' + cluster.task_address('worker', task_index)) as mon_sess:
    for epoch in range(20):
        # Train
        mon_sess.run(train_op)
    print('W: %.4f' % mon_sess.run(W))
    if task_index == 0:
        sv.saver.save(mon_sess, sv.save_path, global_step=global_step)
