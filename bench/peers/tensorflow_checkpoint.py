#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Saves and restores variables: tensorflow_checkpoint.py (save|restore) FOLDER MEGABYTES [TARGET PID]

Each line of stdin is a whole checkpoint written to FOLDER and synced, or one read. TARGET is a server.
"""
import json
import os
import sys
import time

os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
os.environ['CUDA_VISIBLE_DEVICES'] = ''

import tensorflow as tf  # noqa: E402

from rounds import cpu_seconds  # noqa: E402

tf1 = tf.compat.v1
COUNT = 16  # variables


def synced(folder):
    """Writes to disk what the files of a folder still have in memory: TensorFlow's checkpoints do not wait for it."""
    for name in os.listdir(folder):
        file = os.open(os.path.join(folder, name), os.O_RDONLY)
        os.fsync(file)
        os.close(file)


def main(what, folder, megabytes, target='', pid=None):
    tf1.disable_v2_behavior()
    side = int((int(megabytes) * (1 << 20) // COUNT // 4) ** 0.5)
    variables = [tf1.get_variable('v%d' % i, [side, side], initializer=tf1.random_uniform_initializer(seed=i), use_resource=True)
                 for i in range(COUNT)]
    check = tf1.reduce_mean(tf1.stack([one[0, 0] for one in variables]))
    start = tf1.global_variables_initializer()
    saver = tf1.train.Saver(max_to_keep=1)
    server = int(pid) if pid else None
    path = os.path.join(folder, 'model')
    with tf1.Session(target) as session:
        session.run(start)
        if what == 'restore':
            saver.save(session, path, write_meta_graph=False)
            synced(folder)
        for _ in sys.stdin:
            begin, cpu = time.perf_counter(), cpu_seconds(server)
            if what == 'save':
                saver.save(session, path, write_meta_graph=False)
                synced(folder)
            else:
                saver.restore(session, path)
            print(json.dumps({'us': (time.perf_counter() - begin) * 1e6, 'cpu_us': (cpu_seconds(server) - cpu) * 1e6,
                              'check': float(session.run(check))}), flush=True)


main(*sys.argv[1:])
