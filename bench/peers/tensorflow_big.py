#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A worker of a model of 200 MB of dense weights and 2 GB of embeddings on two parameter servers.

    tensorflow_big.py TARGET INDEX (async|sync) SCALE [PID ...]

It trains until its input ends; a line of it is answered with the time of the next STEPS steps. SCALE divides the sizes. The CPU
time of the processes PID counts as well.
"""
import json
import os
import select
import sys
import time

os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
os.environ['CUDA_VISIBLE_DEVICES'] = ''

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from rounds import cpu_seconds  # noqa: E402

tf1 = tf.compat.v1
TABLES, ROWS, WIDTH, LAYERS, UNITS, BATCH, STEPS, WORKERS, SERVERS = 8, 1000000, 64, 4, 3620, 16, 4, 2, 2


def place_in_turn(op, state=[0]):
    state[0] += 1
    return (state[0] - 1) % SERVERS


def main(target, index, form, scale, *pids):
    tf1.disable_v2_behavior()
    index, scale = int(index), float(scale)
    rows, units = int(ROWS / scale), int(UNITS / scale ** 0.5)
    generator = np.random.default_rng(index)
    with tf1.device(tf1.train.replica_device_setter(ps_tasks=SERVERS, worker_device='/job:worker/task:%d' % index,
                                                    ps_strategy=place_in_turn)):
        ids, labels = tf1.placeholder(tf1.int32, [BATCH, TABLES]), tf1.placeholder(tf1.int32, [BATCH])
        random = tf1.random_uniform_initializer(-0.01, 0.01, seed=1)
        parts = [tf1.nn.embedding_lookup(tf1.get_variable('table%d' % i, [rows, WIDTH], initializer=random, use_resource=True), ids[:, i])
                 for i in range(TABLES)]
        x = tf1.concat(parts, 1)
        for layer in range(LAYERS):
            x = tf1.nn.relu(tf1.matmul(x, tf1.get_variable('w%d' % layer, [int(x.shape[1]), units], initializer=random, use_resource=True)))
        logits = tf1.matmul(x, tf1.get_variable('out', [units, 10], initializer=random, use_resource=True))
        loss = tf1.reduce_mean(tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        optimizer = tf1.train.GradientDescentOptimizer(0.01)
        hooks = []
        if form == 'sync':
            optimizer = tf1.train.SyncReplicasOptimizer(optimizer, replicas_to_aggregate=WORKERS, total_num_replicas=WORKERS)
            hooks = [optimizer.make_session_run_hook(index == 0)]
        train = optimizer.minimize(loss, global_step=tf1.train.get_or_create_global_step())
    feeds = {ids: generator.integers(0, rows, (BATCH, TABLES)), labels: generator.integers(0, 10, BATCH)}
    servers = [int(pid) for pid in pids]
    missing = tf1.report_uninitialized_variables(tf1.global_variables())
    if index != 0:  # a monitored session would look again only after half a minute
        with tf1.Session(target) as session:
            while session.run(missing).size:
                time.sleep(0.2)
    with tf1.train.MonitoredTrainingSession(target, is_chief=index == 0, hooks=hooks, save_checkpoint_secs=None, save_summaries_steps=None,
                                            log_step_count_steps=None) as session:
        # Both train all the time: gradients that come late are dropped, and a worker alone might wait for ever.
        while True:
            session.run([loss, train], feeds)
            if not select.select([sys.stdin], [], [], 0)[0]:
                continue
            if not sys.stdin.readline():
                os._exit(0)  # the other one may wait for this one's gradients, and so would the session's end
            begin, cpu = time.perf_counter(), cpu_seconds(*servers)
            for _ in range(STEPS):
                check = session.run([loss, train], feeds)[0]
            print(json.dumps({'us': (time.perf_counter() - begin) / STEPS * 1e6, 'check': float(check),
                              'cpu_us': (cpu_seconds(*servers) - cpu) / STEPS * 1e6}), flush=True)


main(*sys.argv[1:])
