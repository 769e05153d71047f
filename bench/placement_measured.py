# SPDX-License-Identifier: Apache-2.0
"""Placements of `weft plan`, run: steps of models on processes of this machine whose links are slow, by placer.

  placement_measured.py WEFT [--tasks 3] [--gigabits 0.1] [--steps 12] [MODEL ...]    (a Python with TensorFlow)

Each model's step is measured on one task, planned for as many nodes as there are tasks by each placer, and run as it says; the
data connections of each task go through a proxy (slow_links.py). Of each the least step is taken: on a busy machine means are
mostly the others' work. Prints one row a model, in milliseconds, with what the simulator said behind it.
"""
import argparse
import math
import pathlib
import re
import subprocess
import tempfile
import time

import numpy as np
import tensorflow as tf

import placement_costs
from placement_costs import MODELS, v1
from placement_growth import Cluster

PLACERS = ['greedy', 'critical_path', 'min_cut', 'local_search', 'annealing']


def graph_of(model, places):
    """(graph, train op, feeds); `places` tells the device of an op by its name."""
    graph = tf.Graph()
    with graph.as_default():
        v1.set_random_seed(1)
        np.random.seed(1)
        feeds, loss = MODELS[model]()
        train = v1.train.GradientDescentOptimizer(0.01).minimize(loss)
        initializer = v1.global_variables_initializer()
    for op in graph.get_operations():
        # Gradients ask to be beside each other, which is not for them to say here; references hold variables together.
        if '_class' in op.node_def.attr:
            op._clear_attr('_class')
        if op.name in places:
            op._set_device('/job:worker/task:%d' % places[op.name])
    return graph, initializer, train, feeds


def place(weft, costs, placer, tasks, gigabits):
    with tempfile.NamedTemporaryFile('w', suffix='.csv') as nodes:
        nodes.write('sn,cpu_milli,memory_mib,gpu,model\n' + ''.join('n%d,1000,4096,0,\n' % i for i in range(tasks)))
        nodes.flush()
        text = subprocess.run([weft, 'plan', costs, '--least', '--nodes', nodes.name, '--gigabits', str(gigabits), '--placer', placer],
                              check=True, capture_output=True, text=True).stdout
    predicted = float(re.search(r'([0-9.]+) ms a step', text)[1])
    return predicted, {name: int(node) for node, name in re.findall(r'^  n(\d+)[^ ]* (\S+)$', text, re.M)}


def seconds(cluster, model, places, steps):
    """The least step of several."""
    graph, initializer, train, feeds = graph_of(model, places)
    times = []
    with v1.Session(cluster.target, graph=graph) as session:
        session.run(initializer)
        for _ in range(steps):
            begin = time.monotonic()
            session.run(train, feeds)
            times.append(time.monotonic() - begin)
    return min(times[2:])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('weft')
    parser.add_argument('models', nargs='*', default=['mlp', 'lstm', 'recommender', 'attention'])
    parser.add_argument('--tasks', type=int, default=3)
    parser.add_argument('--gigabits', type=float, default=0.1)
    parser.add_argument('--steps', type=int, default=12)
    parser.add_argument('--placer', action='append')
    flags = parser.parse_args()
    placers = flags.placer or PLACERS
    print('| step | ' + ' | '.join(placers) + ' |\n|---|' + '--:|' * len(placers), flush=True)
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        for model in flags.models:
            placement_costs.measure(flags.weft, model, pathlib.Path(folder) / (model + '.json'))
            measured = []
            for placer in placers:
                predicted, places = place(flags.weft, '%s/%s.json' % (folder, model), placer, flags.tasks, flags.gigabits)
                with Cluster(flags.weft, {'worker': flags.tasks}, flags.gigabits) as cluster:
                    measured.append((seconds(cluster, model, places, flags.steps) * 1e3, predicted))
            print('| %s | %s |' % (model, ' | '.join('%.1f (%.1f)' % pair for pair in measured)), flush=True)
            by_placer = dict(zip(placers, measured))
            if 'greedy' in by_placer and 'annealing' in by_placer:
                ratios.append(by_placer['annealing'][0] / by_placer['greedy'][0])
    if ratios:
        print('annealing in parts of greedy, geometric mean: %.3f' % math.exp(sum(map(math.log, ratios)) / len(ratios)))


if __name__ == '__main__':
    main()
