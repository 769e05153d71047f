# SPDX-License-Identifier: Apache-2.0
"""A parameter server or a worker of a job in the real TensorFlow, as TF_CONFIG says: tensorflow_job.py FOLDER SECONDS WIDTH.

The worker of job NAME trains a small network, writes FOLDER/NAME.ready, waits for FOLDER/go, and writes how many steps a
second it took after that into FOLDER/NAME.rate.
"""
import json
import os
import pathlib
import sys
import time

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

FOLDER, SECONDS, WIDTH = pathlib.Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
BATCH, INPUTS, CLASSES, WARM_UP = 32, 64, 10, 30


def main():
    v1 = tf.compat.v1
    v1.disable_eager_execution()
    config = json.loads(os.environ['TF_CONFIG'])
    task = config['task']
    server = v1.train.Server({job: hosts for job, hosts in config['cluster'].items()}, job_name=task['type'], task_index=task['index'])
    if task['type'] == 'ps':
        server.join()
    with v1.device(v1.train.replica_device_setter(cluster=config['cluster'])):
        images = v1.placeholder(tf.float32, [None, INPUTS])
        labels = v1.placeholder(tf.int64, [None])
        first = v1.layers.dense(images, WIDTH, activation=tf.nn.relu)
        logits = v1.layers.dense(v1.layers.dense(first, WIDTH, activation=tf.nn.relu), CLASSES)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        step = v1.train.GradientDescentOptimizer(0.01).minimize(loss)
        begin = v1.global_variables_initializer()
    random = np.random.default_rng(1)
    feeds = {images: random.random((BATCH, INPUTS), np.float32), labels: random.integers(0, CLASSES, BATCH)}
    name = os.environ['JOB_NAME']
    with v1.Session(server.target) as session:
        session.run(begin)
        for _ in range(WARM_UP):
            session.run(step, feeds)
        (FOLDER / (name + '.ready')).touch()
        while not (FOLDER / 'go').exists():
            time.sleep(0.05)
        count, start = 0, time.monotonic()
        while time.monotonic() - start < SECONDS:
            session.run(step, feeds)
            count += 1
        rate = count / (time.monotonic() - start)
        done = FOLDER / (name + '.part')
        done.write_text('%f' % rate)
        done.rename(FOLDER / (name + '.rate'))
        assert np.isfinite(session.run(loss, feeds))


main()
