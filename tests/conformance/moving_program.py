# SPDX-License-Identifier: Apache-2.0
"""A parameter server job whose every step shows: moving_program.py RECORDS [MEGABYTES], by TF_CONFIG. A worker's session is opened
once, and a step that fails ends the program. Each record that a lease gives is one step, which adds one to all of a variable, to some
rows of a table of so many MEGABYTES and to a counter."""
import json
import os
import random
import sys
import time

import tensorflow as tf

from weft import leases

tf1 = tf.compat.v1
tf1.disable_eager_execution()
RECORDS = int(sys.argv[1])
TABLE_ROWS = (int(sys.argv[2]) if len(sys.argv) > 2 else 1) << 12  # of 64 numbers each
WRITTEN_ROWS = 64

config = json.loads(os.environ['TF_CONFIG'])
task = config['task']
server = tf1.train.Server(tf1.train.ClusterSpec(config['cluster']), task['type'], task['index'])
if task['type'] == 'ps':
    server.join()

own = '/job:worker/task:%d' % task['index']
with tf1.device(tf1.train.replica_device_setter(ps_tasks=len(config['cluster']['ps']), worker_device=own)):
    steps = tf1.train.get_or_create_global_step()
    weights = tf1.get_variable('weights', [100000], initializer=tf1.zeros_initializer())
    table = tf1.get_variable('table', [TABLE_ROWS, 64], initializer=tf1.zeros_initializer())
    rows = tf1.placeholder(tf.int64, [WRITTEN_ROWS])
    with tf.control_dependencies([tf1.assign_add(weights, tf.ones_like(weights)),
                                  tf1.scatter_add(table, rows, tf.ones([WRITTEN_ROWS, 64]))]):
        train = tf1.assign_add(steps, 1)
    written = tf.reduce_sum(tf.cast(table[:, 0], tf.int64))
    ends = [tf.reduce_min(weights), tf.reduce_max(weights), written]
    missing = tf1.report_uninitialized_variables()
    initialize = tf1.global_variables_initializer()

session = tf1.Session(server.target, config=tf1.ConfigProto(device_filters=['/job:ps', own]))
while len(session.run(missing)):
    if task['index'] == 0:
        session.run(initialize)
    time.sleep(0.1)

queue = leases.Queue('train', records=RECORDS, per_lease=10)
done, longest = 0, 0.0
for part in queue:
    for _ in range(part.begin, part.end):
        begun = time.monotonic()
        step = session.run(train, {rows: [random.randrange(TABLE_ROWS) for _ in range(WRITTEN_ROWS)]})
        longest = max(longest, time.monotonic() - begun)
        done += 1
        time.sleep(0.01)
    print('step %d/%d' % (step, RECORDS), flush=True)
least, most, written = session.run(ends)
counts = queue.counts()
print('%d steps of %d, all weights %d to %d, %d rows written, %d records counted, the longest step took %.0f ms' % (
    session.run(steps), RECORDS, least, most, written, counts['records_done'], longest * 1e3), flush=True)
session.close()
