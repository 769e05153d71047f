# SPDX-License-Identifier: Apache-2.0
"""How a step grows with workers and parameter servers: what `weft plan` says, and what processes of this machine do.

  placement_growth.py WEFT [--gigabits 0.1] [--workers 4] [--servers 3] [--steps 8] [MODEL ...]    (a Python with TensorFlow)

Each model is written for one device. Its step is measured on one task and predicted for each count; then a session that asks for
automatic distribution runs it on that many tasks, whose data connections go through proxies (slow_links.py). The column "ring" has no
servers: each worker has a session, a copy of the variables and a batch of its own, and gradients are reduced among them. Of each the least
step is taken: on a busy machine means are mostly the others' work. Prints a table a model: milliseconds measured, and predicted.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import gen_collective_ops as collective_ops

from placement_costs import dense, free_port, v1

HERE = pathlib.Path(__file__).resolve().parent


def losses(logits, classes):
    labels = v1.placeholder(tf.int32, [None], 'labels')
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)), \
        lambda batch: {labels: np.arange(batch) % classes}


def mlp(widths):
    x = v1.placeholder(tf.float32, [None, 64], 'x')
    y = x
    for width in widths:
        y = dense(y, width, tf.nn.relu)
    loss, labels = losses(dense(y, 10), 10)
    return loss, lambda batch: {x: np.random.rand(batch, 64), **labels(batch)}


def recommender(tables, rows, width):
    ids = v1.placeholder(tf.int32, [None, tables], 'ids')
    fields = [tf.gather(v1.Variable(tf.random.normal([rows, width], stddev=.1)), ids[:, i]) for i in range(tables)]
    loss, labels = losses(dense(dense(tf.concat(fields, 1), 128, tf.nn.relu), 10), 10)
    return loss, lambda batch: {ids: np.random.randint(rows, size=(batch, tables)), **labels(batch)}


def convolutions(channels):
    x = v1.placeholder(tf.float32, [None, 16, 16, 3], 'x')
    y = x
    for out in channels:
        kernel = v1.Variable(tf.random.normal([3, 3, int(y.shape[-1]), out], stddev=.1))
        y = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(y, kernel, 1, 'SAME')), 2, 2, 'SAME')
    loss, labels = losses(dense(tf.reshape(y, [-1, 2 * 2 * channels[-1]]), 10), 10)
    return loss, lambda batch: {x: np.random.rand(batch, 16, 16, 3), **labels(batch)}


# (loss and feeds, batch)
MODELS = {'mlp': (lambda: mlp((512, 256, 128)), 240), 'wide_mlp': (lambda: mlp((1024, 1024)), 120),
          'recommender': (lambda: recommender(8, 20000, 32), 480), 'convolutions': (lambda: convolutions((32, 64, 128)), 48)}


class Cluster:
    """Tasks of one thread each; with `gigabits` their data connections go through proxies."""

    def __init__(self, weft, tasks, gigabits=None, flags=()):
        addresses = {job: [free_port() for _ in range(count)] for job, count in tasks.items() if count}
        spec = json.dumps({job: ['127.0.0.1:%d' % port for port in ports] for job, ports in addresses.items()})
        self.started, nodes = [], []
        for job, ports in addresses.items():
            for task in range(len(ports)):
                data, proxy = free_port(), free_port()
                command = [weft, 'server', '--cluster', spec, '--job_name', job, '--task_index', str(task), '--threads', '1', '--status_port', '-1']
                if gigabits:
                    command += ['--shared_memory', 'false', '--data_port', str(data), '--data_address', '127.0.0.1:%d' % proxy]
                self.started.append(subprocess.Popen(command + list(flags), stderr=subprocess.DEVNULL))
                nodes.append('%d:%d:%d' % (proxy, data, self.started[-1].pid))
        if gigabits:
            self.started.append(subprocess.Popen([sys.executable, HERE / 'slow_links.py', str(gigabits * 1e9 / 8)] + nodes))
        self.targets = ['grpc://127.0.0.1:%d' % port for port in addresses['worker']]
        self.target = self.targets[0]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.started:
            process.terminate()
        for process in self.started:
            process.wait()


def asking(how):
    """The configuration of a session whose graph is distributed as `how` says."""
    config = v1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.rewrite_options.custom_optimizers.add(name='weft').parameter_map['distribution'].s = how
    return config


def run(target, model, steps):
    """The times of steps, in seconds, after the first two."""
    build, batch = MODELS[model]
    with tf.Graph().as_default():
        v1.set_random_seed(1)
        np.random.seed(1)
        loss, feeds = build()
        train = v1.train.GradientDescentOptimizer(.01).minimize(loss)
        fed, times = feeds(batch), []
        with v1.Session(target, config=asking(b'auto')) as session:
            session.run(v1.global_variables_initializer())
            for _ in range(steps + 2):
                begin = time.monotonic()
                session.run(train, fed)
                times.append(time.monotonic() - begin)
    return times[2:]


def reduced(gradient, ranks, number):
    """The mean of what the ranks have; of rows, all rows."""
    def keys(instance):
        return tf.constant(ranks), tf.constant(1), tf.constant(instance), []
    if isinstance(gradient, tf.IndexedSlices):
        values, indices = (collective_ops.collective_gather_v2(part, *keys(2 * number + i))
                           for i, part in enumerate((gradient.values, gradient.indices)))
        return tf.IndexedSlices(values / ranks, indices, gradient.dense_shape)
    return tf.reshape(collective_ops.collective_reduce_v2(gradient, *keys(2 * number), merge_op='Add', final_op='Div'), gradient.shape)


def run_rank(targets, rank, model, steps, times, failures):
    build, batch = MODELS[model]
    config = v1.ConfigProto(device_filters=['/job:worker/task:%d' % rank])
    config.experimental.collective_group_leader = '/job:worker/replica:0/task:0'
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    try:
        with tf.Graph().as_default():
            v1.set_random_seed(1)
            loss, feeds = build()
            optimizer = v1.train.GradientDescentOptimizer(.01)
            gradients = [(reduced(gradient, len(targets), number), variable)
                         for number, (gradient, variable) in enumerate(optimizer.compute_gradients(loss))]
            train = optimizer.apply_gradients(gradients)
            fed = feeds(batch)
            with v1.Session(targets[rank], config=config) as session:
                session.run(v1.global_variables_initializer())
                for _ in range(steps + 2):
                    begin = time.monotonic()
                    session.run(train, fed, options=v1.RunOptions(timeout_in_ms=60000))
                    times[rank].append(time.monotonic() - begin)
    except tf.errors.OpError as error:
        failures.append(error)


def run_ring(targets, model, steps):
    """The times of steps of the slowest rank, in seconds, after the first two."""
    times, failures = [[] for _ in targets], []
    np.random.seed(1)
    ranks = [threading.Thread(target=run_rank, args=(targets, rank, model, steps, times, failures)) for rank in range(len(targets))]
    for thread in ranks:
        thread.start()
    for thread in ranks:
        thread.join()
    if failures:
        raise failures[0]
    return [max(of_ranks) for of_ranks in zip(*times)][2:]


def predicted_rings(weft, costs, nodes, gigabits):
    """Milliseconds by workers, each with a batch of its own."""
    text = explained(weft, costs, nodes, gigabits)
    return {int(workers): float(time_of) for workers, time_of in re.findall(r'all_reduce: (\d+) workers +([0-9.]+) ms', text)}


def explained(weft, costs, nodes, gigabits, *more):
    with tempfile.NamedTemporaryFile('w', suffix='.csv') as table:
        table.write('sn,cpu_milli,memory_mib,gpu,model\n' + ''.join('n%d,1000,4096,0,\n' % i for i in range(nodes)))
        table.flush()
        command = [weft, 'plan', costs, '--least', '--nodes', table.name, '--gigabits', str(gigabits), '--explain', *more]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def predictions(weft, costs, nodes, gigabits):
    """Milliseconds of each (workers, servers)."""
    text = explained(weft, costs, nodes, gigabits, '--spread_batch')
    found = {(1, 0): float(re.search(r'single: 1 worker +([0-9.]+) ms', text)[1])}
    for workers, servers, time_of in re.findall(r'ps: (\d+) workers?, (\d+) servers? +([0-9.]+) ms', text):
        found[int(workers), int(servers)] = float(time_of)
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('weft')
    parser.add_argument('models', nargs='*', default=list(MODELS))
    parser.add_argument('--gigabits', type=float, default=0.1)
    parser.add_argument('--workers', type=int, default=4)
    parser.add_argument('--servers', type=int, default=3)
    parser.add_argument('--steps', type=int, default=8)
    flags = parser.parse_args()
    errors, ring_errors = [], []
    for model in flags.models:
        with tempfile.TemporaryDirectory() as folder:
            costs = folder + '/costs.json'
            with Cluster(flags.weft, {'worker': 1}, flags=['--cost_file', costs]) as alone:
                one = min(run(alone.target, model, 120)) * 1e3
            predicted = predictions(flags.weft, costs, flags.workers + flags.servers, flags.gigabits)
            rings = predicted_rings(flags.weft, costs, flags.workers, flags.gigabits)
        print('\n%s, batch %d; alone %.1f (%.1f)\n' % (model, MODELS[model][1], one, predicted[1, 0]))
        print('| workers | ' + ' | '.join('%d servers' % n if n > 1 else '1 server' for n in range(1, flags.servers + 1)) + ' | ring |')
        print('|--:|' + '--:|' * (flags.servers + 1), flush=True)
        for workers in range(1, flags.workers + 1):
            cells = []
            for servers in range(1, flags.servers + 1):
                with Cluster(flags.weft, {'worker': workers, 'ps': servers}, flags.gigabits) as cluster:
                    measured = min(run(cluster.target, model, flags.steps)) * 1e3
                said = predicted.get((workers, servers))
                cells.append('%.1f (%s)' % (measured, '%.1f' % said if said else 'not tried'))
                if said:
                    errors.append(abs(said / measured - 1))
            if workers > 1:
                with Cluster(flags.weft, {'worker': workers}, flags.gigabits) as cluster:
                    measured = min(run_ring(cluster.targets, model, flags.steps)) * 1e3
                cells.append('%.1f (%.1f)' % (measured, rings[workers]))
                ring_errors.append(abs(rings[workers] / measured - 1))
            print('| %d | %s |' % (workers, ' | '.join(cells)), flush=True)
    if errors:
        print('\nmean absolute error of %d predictions with servers: %.0f%%' % (len(errors), 100 * sum(errors) / len(errors)))
    if ring_errors:
        print('of %d rings: %.0f%%' % (len(ring_errors), 100 * sum(ring_errors) / len(ring_errors)))


if __name__ == '__main__':
    main()
