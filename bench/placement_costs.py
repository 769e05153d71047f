# SPDX-License-Identifier: Apache-2.0
"""Trains small models of several kinds on a weft server and keeps what their steps cost, for `weft plan --fit`.

  placement_costs.py WEFT FOLDER [MODEL ...]    (a Python with TensorFlow)

Writes FOLDER/MODEL.json, a cost file of each.
"""
import json
import pathlib
import socket
import subprocess
import sys
import time

import numpy as np
import tensorflow as tf

tf.compat.v1.disable_eager_execution()
v1 = tf.compat.v1
STEPS = 120
THREADS = '1'  # so that a machine that is busy with others disturbs less


def dense(x, width, activation=None):
    inputs = int(x.shape[-1])
    w = v1.Variable(tf.random.normal([inputs, width], stddev=inputs**-0.5))
    b = v1.Variable(tf.zeros([width]))
    y = tf.matmul(x, w) + b
    return activation(y) if activation else y


def conv(x, out, window=3, stride=1):
    channels = int(x.shape[-1])
    w = v1.Variable(tf.random.normal([window, window, channels, out], stddev=0.1))
    return tf.nn.relu(tf.nn.conv2d(x, w, strides=stride, padding='SAME') + v1.Variable(tf.zeros([out])))


def classes(logits, count, batch):
    labels = tf.constant(np.arange(batch) % count, tf.int32)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def mlp(batch, widths):
    x = v1.placeholder(tf.float32, [batch, 784])
    y = x
    for width in widths:
        y = dense(y, width, tf.nn.relu)
    return {x: np.random.rand(batch, 784)}, classes(dense(y, 10), 10, batch)


def convnet(batch, size, channels):
    x = v1.placeholder(tf.float32, [batch, size, size, 3])
    y = x
    for out in channels:
        y = conv(y, out)
        y = tf.nn.max_pool2d(y, 2, 2, 'SAME')
    y = tf.reshape(y, [batch, -1])
    return {x: np.random.rand(batch, size, size, 3)}, classes(dense(dense(y, 128, tf.nn.relu), 10), 10, batch)


def recurrent(batch, steps, width):
    x = v1.placeholder(tf.float32, [batch, steps, width])
    w = v1.Variable(tf.random.normal([2 * width, 4 * width], stddev=0.05))
    h = c = tf.zeros([batch, width])
    for step in range(steps):
        i, f, o, g = tf.split(tf.matmul(tf.concat([x[:, step], h], 1), w), 4, 1)
        c = tf.sigmoid(f + 1.0) * c + tf.sigmoid(i) * tf.tanh(g)
        h = tf.sigmoid(o) * tf.tanh(c)
    return {x: np.random.rand(batch, steps, width)}, classes(dense(h, 50), 50, batch)


def recommender(batch, tables, rows, width):
    ids = v1.placeholder(tf.int32, [batch, tables])
    fields = []
    for i in range(tables):
        table = v1.Variable(tf.random.normal([rows, width], stddev=0.1))
        fields.append(tf.gather(table, ids[:, i]))
    y = tf.concat(fields, 1)
    for size in (256, 128):
        y = dense(y, size, tf.nn.relu)
    feed = {ids: np.random.randint(0, rows, [batch, tables])}
    return feed, tf.reduce_mean(tf.square(dense(y, 1) - 1.0))


def attention(batch, length, width, layers):
    x = v1.placeholder(tf.float32, [batch * length, width])
    y = x
    for _ in range(layers):
        q, k, v = (tf.reshape(dense(y, width), [batch, length, width]) for _ in range(3))
        scores = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * width**-0.5)
        y = y + dense(tf.reshape(tf.matmul(scores, v), [batch * length, width]), width)
        y = y + dense(dense(y, 4 * width, tf.nn.relu), width)
    return {x: np.random.rand(batch * length, width)}, classes(dense(y, 100), 100, batch * length)


MODELS = {
    'mlp': lambda: mlp(256, (512, 256, 128)),
    'wide_mlp': lambda: mlp(128, (1024, 1024)),
    'small_mlp': lambda: mlp(64, (300, 100)),
    'deep_mlp': lambda: mlp(192, (384, 384, 256, 192, 128)),
    'convnet': lambda: convnet(32, 32, (16, 32, 64)),
    'deep_convnet': lambda: convnet(16, 48, (32, 32, 64, 64)),
    'small_convnet': lambda: convnet(48, 28, (8, 16)),
    'wide_convnet': lambda: convnet(8, 40, (48, 96, 96)),
    'lstm': lambda: recurrent(64, 12, 128),
    'wide_lstm': lambda: recurrent(32, 8, 256),
    'small_lstm': lambda: recurrent(96, 10, 64),
    'recommender': lambda: recommender(512, 12, 20000, 16),
    'large_recommender': lambda: recommender(1024, 8, 50000, 32),
    'small_recommender': lambda: recommender(256, 20, 5000, 8),
    'attention': lambda: attention(8, 64, 128, 2),
    'wide_attention': lambda: attention(4, 96, 192, 3),
    'small_attention': lambda: attention(6, 48, 96, 2),
}


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def measure(weft, name, path):
    address = '127.0.0.1:%d' % free_port()
    server = subprocess.Popen([weft, 'server', '--cluster', json.dumps({'worker': [address]}), '--job_name', 'worker',
                               '--task_index', '0', '--status_port', '-1', '--threads', THREADS, '--cost_file', str(path)])
    try:
        with tf.Graph().as_default():
            v1.set_random_seed(1)
            feed, loss = MODELS[name]()
            train = v1.train.GradientDescentOptimizer(0.01).minimize(loss)
            config = v1.ConfigProto()
            config.graph_options.rewrite_options.disable_meta_optimizer = True
            with v1.Session('grpc://' + address, config=config) as session:
                session.run(v1.global_variables_initializer())
                times = []
                for _ in range(STEPS):
                    start = time.monotonic()
                    session.run(train, feed)
                    times.append(time.monotonic() - start)
    finally:
        server.terminate()
        server.wait()
    costs = json.loads(path.read_text())
    ops = sum(op.get('seconds', 0) for op in costs['ops'])
    print('%-16s %4d ops, step %8.3f ms at the client (median), %8.3f at the master (mean), ops alone %8.3f' %
          (name, len(costs['ops']), sorted(times)[len(times) // 2] * 1e3, costs['step_seconds'] * 1e3, ops * 1e3), flush=True)


if __name__ == '__main__':
    folder = pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for model in sys.argv[3:] or MODELS:
        measure(sys.argv[1], model, folder / (model + '.json'))
