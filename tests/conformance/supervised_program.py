# SPDX-License-Identifier: Apache-2.0
"""Sixty steps of a monitored session against a parameter server: supervised_program.py CLUSTER FOLDER. It saves its first step alone."""
import json
import sys
import time

import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
server = tf1.train.Server(json.loads(sys.argv[1]), job_name='worker', task_index=0)
with tf1.device(tf1.train.replica_device_setter(cluster=json.loads(sys.argv[1]))):
    weights = tf1.get_variable('weights', [1000], initializer=tf1.zeros_initializer())
    step = tf1.train.get_or_create_global_step()
    with tf.control_dependencies([tf1.assign_add(weights, tf.ones([1000]))]):
        train = tf1.assign_add(step, 1)
hooks = [tf1.train.StopAtStepHook(last_step=60), tf1.train.CheckpointSaverHook(sys.argv[2], save_steps=1000)]
with tf1.train.MonitoredTrainingSession(server.target, checkpoint_dir=sys.argv[2], hooks=hooks, save_checkpoint_steps=None,
                                        save_checkpoint_secs=None, save_summaries_steps=None, log_step_count_steps=None) as session:
    while not session.should_stop():
        number = session.run(train)
        print('step %d' % number, flush=True)
        time.sleep(0.01)
