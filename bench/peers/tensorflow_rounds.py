#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's side of the session benchmarks, with each of its settings.

    tensorflow_rounds.py dispatch (matmul|add) (chain|wide) THREADS (plain|fused) SETTING
    tensorflow_rounds.py kernels CHAINS THREADS DEVICES SETTING   chains of 50 kernels that do not share themselves out,
                                                                  the chains spread over CPU devices
    tensorflow_rounds.py mlp BATCH THREADS SETTING    SETTING eager too: each step by a tape
    tensorflow_rounds.py eager OP SIZE                100 calls of an op on [SIZE, SIZE]
    tensorflow_rounds.py cluster TARGET WORKER BATCH [empty]
    tensorflow_rounds.py bounce TARGET WORKER ELEMENTS   float32 from the worker to the parameter server and back

SETTING is executor, single (the single-threaded executor) or function (tf.function). `empty` times a step that does nothing.
"""
import os
import sys

os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
os.environ['CUDA_VISIBLE_DEVICES'] = ''

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from rounds import serve  # noqa: E402

tf1 = tf.compat.v1
OFF = 2  # RewriterConfig.OFF


def config(threads, optimise, setting):
    made = tf1.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads)
    if setting == 'single':
        made.experimental.executor_type = 'SINGLE_THREADED_EXECUTOR'
    if not optimise:
        made.graph_options.optimizer_options.opt_level = -1
        made.graph_options.rewrite_options.disable_meta_optimizer = True
    return made


def dispatch(kind, shape, threads, optimise, setting):
    size = (1000, 4, 4) if shape == 'wide' else (4, 4)
    fed = np.full(size, 1, np.float32), np.full((4, 4), 0.25, np.float32)
    apply = tf.matmul if kind == 'matmul' else tf.add

    def build(x, y):
        if shape == 'wide':
            return tf.add_n([apply(part, y) for part in tf.unstack(x, 1000)])
        for _ in range(1000):
            x = apply(x, y)
        return x

    if setting == 'function':
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
        tf.config.optimizer.set_experimental_options({'disable_meta_optimizer': not optimise})
        call = tf.function(build)
        x, y = tf.constant(fed[0]), tf.constant(fed[1])
        return lambda: call(x, y).numpy()[0, 0]
    tf1.disable_eager_execution()
    x, y = tf1.placeholder(tf.float32, size), tf1.placeholder(tf.float32, [4, 4])
    out = build(x, y)
    session = tf1.Session(config=config(threads, optimise, setting))
    call = session.make_callable(out, [x, y])
    return lambda: call(*fed)[0, 0]


def kernels(chains, threads, devices, setting):
    def build(x):
        ends = []
        for i in range(chains):
            with tf.device('/cpu:%d' % (i % devices) if devices > 1 else None):
                end = x + tf.constant(0.0)
                for _ in range(50):
                    end = -tf.math.top_k(end, 6000).values
            ends.append(end)
        return tf.add_n(ends)
    fed = (np.arange(6000) * 997 % 6000).astype(np.float32)
    tf1.disable_eager_execution()
    x = tf1.placeholder(tf.float32, [None])
    out = build(x)
    settings = config(threads, False, setting)
    settings.device_count['CPU'] = devices
    session = tf1.Session(config=settings)
    call = session.make_callable(out, [x])
    return lambda: call(fed)[0]


def batch_of(batch):
    x = (np.arange(batch * 784, dtype=np.float32) % 97 / np.float32(97)).reshape(batch, 784)
    y = np.zeros((batch, 10), np.float32)
    y[np.arange(batch), np.arange(batch) % 10] = 1
    return x, y


def model(x, y, w1, b1, w2, b2):
    hidden = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w1), b1))
    logits = tf.nn.bias_add(tf.matmul(hidden, w2), b2)
    return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y, logits=logits))


def first_values():
    return (tf.fill([784, 100], 0.01), tf.zeros([100]), tf.fill([100, 10], 0.01), tf.zeros([10]))


def mlp(batch, threads, setting):
    fed = batch_of(batch)
    if setting in ('function', 'eager'):
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
        variables = [tf.Variable(v) for v in first_values()]

        def step(x, y):
            with tf.GradientTape() as tape:
                loss = model(x, y, *variables)
            for v, g in zip(variables, tape.gradient(loss, variables)):
                v.assign_sub(0.001 * g)
            return loss
        x, y = tf.constant(fed[0]), tf.constant(fed[1])
        call = tf.function(step) if setting == 'function' else step
        return lambda: call(x, y).numpy()
    tf1.disable_eager_execution()
    x, y = tf1.placeholder(tf.float32, [None, 784]), tf1.placeholder(tf.float32, [None, 10])
    variables = [tf1.get_variable('v%d' % i, initializer=v, use_resource=True) for i, v in enumerate(first_values())]
    loss = model(x, y, *variables)
    train = tf1.train.GradientDescentOptimizer(0.001).minimize(loss)
    session = tf1.Session(config=config(threads, True, setting))
    session.run(tf1.global_variables_initializer())
    call = session.make_callable([loss, train], [x, y])
    return lambda: call(*fed)[0]


EAGER = {'add': tf.add, 'mul': tf.multiply, 'matmul': tf.matmul, 'relu': lambda x, _: tf.nn.relu(x),
         'sum': lambda x, _: tf.reduce_sum(x, 1), 'softmax': lambda x, _: tf.nn.softmax(x),
         'transpose': lambda x, _: tf.transpose(x), 'concat': lambda x, y: tf.concat([x, y], 1)}


def eager(op, size):
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    call = EAGER[op]
    x, y = tf.fill([size, size], 0.5), tf.fill([size, size], 0.25)

    def step():
        for _ in range(100):
            z = call(x, y)
        return z.numpy().ravel()[0]
    return step


def cluster(target, worker, batch, empty):
    tf1.disable_eager_execution()
    fed = batch_of(batch)
    with tf1.device(tf1.train.replica_device_setter(ps_tasks=1, worker_device=worker)):
        x, y = tf1.placeholder(tf.float32, [None, 784]), tf1.placeholder(tf.float32, [None, 10])
        variables = [tf1.get_variable('v%d' % i, initializer=v, use_resource=False) for i, v in enumerate(first_values())]
        loss = model(x, y, *variables)
        train = tf1.train.GradientDescentOptimizer(0.001).minimize(loss)
        nothing = tf.no_op()
    session = tf1.Session(target, config=tf1.ConfigProto(device_filters=['/job:ps', worker]))
    session.run(tf1.global_variables_initializer())
    if empty:
        def step():
            session.run(nothing)
            return 0
        return step
    return lambda: session.run([loss, train], {x: fed[0], y: fed[1]})[0]


def bounce(target, worker, elements):
    tf1.disable_eager_execution()
    with tf1.device('/job:ps/task:0'):
        there = tf1.get_variable('there%d' % elements, [elements], initializer=tf1.zeros_initializer(), use_resource=False)
    with tf1.device(worker):
        here = tf1.get_variable('here%d' % elements, [elements], initializer=tf1.ones_initializer(), use_resource=False)
        sent = tf.negative(here)
    with tf1.device('/job:ps/task:0'):
        pushed = tf1.assign(there, sent)
    with tf1.device(worker):
        last = tf1.assign(here, tf.negative(pushed))[0]
    session = tf1.Session(target, config=tf1.ConfigProto(device_filters=['/job:ps', worker]))
    session.run(tf1.global_variables_initializer())
    return lambda: session.run(last)


def main(args):
    if args[0] == 'dispatch':
        return dispatch(args[1], args[2], int(args[3]), args[4] == 'fused', args[5])
    if args[0] == 'kernels':
        return kernels(int(args[1]), int(args[2]), int(args[3]), args[4])
    if args[0] == 'eager':
        return eager(args[1], int(args[2]))
    if args[0] == 'mlp':
        return mlp(int(args[1]), int(args[2]), args[3])
    if args[0] == 'bounce':
        return bounce(args[1], args[2], int(args[3]))
    return cluster(args[1], args[2], int(args[3]), args[4:] == ['empty'])


if __name__ == '__main__':
    serve(main(sys.argv[1:]))
