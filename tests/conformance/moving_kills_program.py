# SPDX-License-Identifier: Apache-2.0
"""A parameter server job that may lose any process: moving_kills_program.py RECORDS FOLDER, by TF_CONFIG. A monitored session saves
checkpoints to FOLDER and goes on from the last one. Each record that a lease gives is one step, which adds one to all of a variable on
one server and to a counter on another. Steps come slowly until there is a file FOLDER/enough."""
import json
import os
import sys
import time

import tensorflow as tf

from weft import leases

tf1 = tf.compat.v1
tf1.disable_eager_execution()
RECORDS, FOLDER = int(sys.argv[1]), sys.argv[2]

config = json.loads(os.environ['TF_CONFIG'])
task = config['task']
server = tf1.train.Server(tf1.train.ClusterSpec(config['cluster']), task['type'], task['index'])
if task['type'] == 'ps':
    server.join()

own = '/job:worker/task:%d' % task['index']
with tf1.device(tf1.train.replica_device_setter(ps_tasks=len(config['cluster']['ps']), worker_device=own)):
    with tf1.device('/job:ps/task:0'):
        steps = tf1.train.get_or_create_global_step()
    with tf1.device('/job:ps/task:1'):
        weights = tf1.get_variable('weights', [2 << 20], initializer=tf1.zeros_initializer())
        # So that a copy takes a while; no checkpoint holds it.
        tf1.get_variable('ballast', [16 << 20], initializer=tf1.zeros_initializer(), collections=[tf1.GraphKeys.LOCAL_VARIABLES])
    with tf.control_dependencies([tf1.assign_add(weights, tf.ones_like(weights))]):
        train = tf1.assign_add(steps, 1)
    ends = [tf.reduce_min(weights), tf.reduce_max(weights)]
    scaffold = tf1.train.Scaffold(saver=tf1.train.Saver([steps, weights]))


def session():
    return tf1.train.MonitoredTrainingSession(server.target, is_chief=True, checkpoint_dir=FOLDER, save_checkpoint_steps=40, scaffold=scaffold,
                                              save_summaries_steps=None, save_summaries_secs=None, log_step_count_steps=None,
                                              config=tf1.ConfigProto(device_filters=['/job:ps', own]))


queue = leases.Queue('train', records=RECORDS, per_lease=10)
before, again = None, 0
with session() as monitored:
    for part in queue:
        for _ in range(part.begin, part.end):
            step = monitored.run(train)
            if before is not None and step != before + 1:
                # From a checkpoint on, of which this says how far it was behind.
                again += before + 1 - step
                print('step %d came after step %d: training went on from a checkpoint' % (step, before), flush=True)
            before = step
            if not os.path.exists(os.path.join(FOLDER, 'enough')):
                time.sleep(0.04)
        print('step %d/%d' % (step, RECORDS), flush=True)
    least, most, end = monitored.run(ends + [steps])
    print('%d steps and %d done again, all weights %d to %d, %d records counted' % (
        end, again, least, most, queue.counts()['records_done']), flush=True)
