# SPDX-License-Identifier: Apache-2.0
"""Programs for one device that weft distributes, beside the same models distributed by hand: steps in turns on the same servers.

  distribution_rounds.py WEFT [--workers 2] [--servers 1] [--rounds 15] [MODEL ...]    (a Python with TensorFlow)

By hand means in-graph replication as TensorFlow's white paper has it: variables on the parameter servers, a tower a worker over its rows of
the batch, gradients averaged and applied once. Both sessions have one cluster, and containers of their own. Prints the median of
the ratios of rounds (automatic by hand's; the goal is at most 1 / 0.95) and refuses unequal losses.
"""
import argparse
import statistics
import time

import numpy as np
import tensorflow as tf

from placement_growth import Cluster, asking, v1

STEPS = 20  # a round


def weights(name, *shape):
    values = np.random.RandomState(len(name) + sum(shape)).normal(0, shape[-2] ** -.5 if len(shape) > 1 else .1, shape)
    return v1.get_variable(name, initializer=values.astype(np.float32))


def dense(x, name, width, activation=None):
    y = tf.matmul(x, weights(name + '_w', int(x.shape[-1]), width)) + weights(name + '_b', width)
    return activation(y) if activation else y


def mlp(x):
    return dense(dense(dense(x, 'one', 512, tf.nn.relu), 'two', 256, tf.nn.relu), 'last', 10)


def convolutions(x):
    for name, out in ('c1', 16), ('c2', 32), ('c3', 64):
        x = tf.nn.relu(tf.nn.conv2d(x, weights(name, 3, 3, int(x.shape[-1]), out), 1, 'SAME'))
        x = tf.nn.max_pool2d(x, 2, 2, 'SAME')
    return dense(tf.reshape(x, [-1, 4 * 4 * 64]), 'last', 10)


def recommender(ids):
    fields = [tf.nn.embedding_lookup(weights('table%d' % i, 5000 + i, 16), ids[:, i]) for i in range(6)]
    return dense(dense(tf.concat(fields, 1), 'one', 64, tf.nn.relu), 'last', 10)


# (logits of inputs, a batch of inputs)
MODELS = {'mlp': (mlp, lambda: np.random.rand(240, 784).astype(np.float32)),
          'convolutions': (convolutions, lambda: np.random.rand(48, 32, 32, 3).astype(np.float32)),
          'recommender': (recommender, lambda: np.random.randint(5000, size=(480, 6)).astype(np.int32))}


def loss_of(model, x, labels):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=MODELS[model][0](x)))


def automatic(model, x, labels):
    loss = loss_of(model, x, labels)
    return loss, v1.train.GradientDescentOptimizer(.01).minimize(loss)


def mean_of(gradients):
    if isinstance(gradients[0], tf.IndexedSlices):
        return tf.IndexedSlices(tf.concat([g.values for g in gradients], 0) / len(gradients), tf.concat([g.indices for g in gradients], 0))
    return tf.add_n(gradients) / len(gradients)


def by_hand(workers, servers):
    def build(model, x, labels):
        optimizer = v1.train.GradientDescentOptimizer(.01)
        losses, towers = [], []
        with tf.device('/job:worker/task:0'):
            shares = list(zip(tf.split(x, workers), tf.split(labels, workers)))
        for worker, (rows, classes) in enumerate(shares):
            place = v1.train.replica_device_setter(servers, worker_device='/job:worker/task:%d' % worker)
            with v1.device(place), v1.variable_scope('model', reuse=v1.AUTO_REUSE):
                losses.append(loss_of(model, rows, classes))
                towers.append(optimizer.compute_gradients(losses[-1]))
        averaged = []
        for of_variable in zip(*towers):
            with tf.device(of_variable[0][1].device):
                averaged.append((mean_of([gradient for gradient, _ in of_variable]), of_variable[0][1]))
        with tf.device('/job:worker/task:0'):
            loss = tf.add_n(losses) / workers
        return loss, optimizer.apply_gradients(averaged)
    return build


class Program:
    def __init__(self, name, model, build, batch, target, how):
        with tf.Graph().as_default() as graph, graph.container(name):
            x = v1.placeholder(batch.dtype, [None] + list(batch.shape[1:]), 'x')
            labels = v1.placeholder(tf.int32, [None], 'labels')
            self.wanted = build(model, x, labels)
            self.feeds = {x: batch, labels: np.arange(len(batch)) % 10}
            self.session = v1.Session(target, config=asking(how))
            self.session.run(v1.global_variables_initializer())
        self.losses = []

    def round(self):
        begin = time.monotonic()
        for _ in range(STEPS):
            self.losses.append(self.session.run(self.wanted, self.feeds)[0])
        return (time.monotonic() - begin) / STEPS


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('weft')
    parser.add_argument('models', nargs='*', default=list(MODELS))
    parser.add_argument('--workers', type=int, default=2)
    parser.add_argument('--servers', type=int, default=1)
    parser.add_argument('--rounds', type=int, default=15)
    flags = parser.parse_args()
    print('| model | by hand ms | automatic ms | ratio | of half of the rounds |\n|---|--:|--:|--:|--:|', flush=True)
    for model in flags.models:
        np.random.seed(1)
        batch = MODELS[model][1]()
        with Cluster(flags.weft, {'worker': flags.workers, 'ps': flags.servers}) as cluster:
            hand = Program('hand', model, by_hand(flags.workers, flags.servers), batch, cluster.target, b'written')
            weft = Program('auto', model, automatic, batch, cluster.target, b'required')
            hand.round(), weft.round()
            times = [(hand.round(), weft.round()) for _ in range(flags.rounds)]
            np.testing.assert_allclose(weft.losses, hand.losses, rtol=1e-4)
            hand.session.close(), weft.session.close()
        ratios = sorted(auto / written for written, auto in times)
        quarter = len(ratios) // 4
        print('| %s | %.2f | %.2f | %.2f | %.2f to %.2f |' % (
            model, *(statistics.median(column) * 1e3 for column in zip(*times)), statistics.median(ratios),
            ratios[quarter], ratios[-1 - quarter]), flush=True)


if __name__ == '__main__':
    main()
