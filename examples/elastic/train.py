# SPDX-License-Identifier: Apache-2.0
"""Workers that come and go while they train: what is learnt lies with the parameter server, which leases ranges of the data."""
import json
import os
import sys
import time

import numpy as np
import tensorflow as tf

from weft import leases

tf1 = tf.compat.v1
tf1.disable_eager_execution()
RECORDS = 20000
EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 2

config = json.loads(os.environ['TF_CONFIG'])
task = config['task']
server = tf1.train.Server(tf1.train.ClusterSpec(config['cluster']), task['type'], task['index'])
if task['type'] == 'ps':
    server.join()

features = np.random.RandomState(0).randn(RECORDS, 4).astype('f')
labels = features.dot(np.array([[1.0], [-2.0], [3.0], [0.5]], 'f')) + 0.25
own = '/job:worker/task:%d' % task['index']
with tf1.device(tf1.train.replica_device_setter(ps_tasks=len(config['cluster']['ps']), worker_device=own)):
    x, y = tf1.placeholder(tf.float32, [None, 4]), tf1.placeholder(tf.float32, [None, 1])
    w, b = tf1.get_variable('w', [4, 1]), tf1.get_variable('b', [1], initializer=tf1.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y))
    train = tf1.train.GradientDescentOptimizer(0.05).minimize(loss)
    missing = tf1.report_uninitialized_variables()
    initialize = tf1.global_variables_initializer()

# Other workers are none of this one's business.
session = tf1.Session(server.target, config=tf1.ConfigProto(device_filters=['/job:ps', own]))
while len(session.run(missing)):
    if task['index'] == 0:
        session.run(initialize)
    time.sleep(0.1)

queue = leases.Queue('train', records=RECORDS, per_lease=500, epochs=EPOCHS, seed=1)
parts = 0
for part in queue:
    for begin in range(part.begin, part.end, 50):
        rows = slice(begin, min(begin + 50, part.end))
        session.run(train, {x: features[rows], y: labels[rows]})
    parts += 1
    print('worker %d: records %d to %d of epoch %d' % (task['index'], part.begin, part.end, part.epoch), flush=True)
counts = queue.counts()
print('worker %d: %d ranges, loss %.5f; %d records, %d ranges leased again' % (
    task['index'], parts, session.run(loss, {x: features, y: labels}), counts['records_done'], counts['leased_again']), flush=True)
session.close()
