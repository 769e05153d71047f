#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The first step of a graph of TensorFlow 1, on a server or in this process: tensorflow_first.py GRAPH [TARGET PID]

GRAPH is a model of models.py, whose training step is run, or a number of nodes. Each line of stdin opens a session that
has not seen the graph, and is answered with what its first steps took beyond its second ones: import, compilation, placing and
cutting of the graph, for the step that fills the variables and the step that trains.
"""
import json
import os
import sys
import time

os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
os.environ['CUDA_VISIBLE_DEVICES'] = ''
os.environ['TF_USE_LEGACY_KERAS'] = '1'

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

import tensorflow_models  # noqa: E402
from rounds import cpu_seconds  # noqa: E402

tf1 = tf.compat.v1
# Nodes of a layer below: an addition, a product, a tanh and a constant each in four lanes.
LANES, NODES_OF_LANE = 4, 4


def of_nodes(count):
    """About `count` nodes in four lanes that meet in every layer."""
    tf1.disable_v2_behavior()
    lanes = [tf1.get_variable('v%d' % i, initializer=np.full([4], 0.1 * (i + 1), np.float32), use_resource=True).read_value()
             for i in range(LANES)]
    for layer in range(count // (LANES * NODES_OF_LANE)):
        factor = 0.5 + 0.001 * (layer % 100)
        lanes = [tf1.tanh(lanes[i] * factor + lanes[(i + 1) % LANES]) for i in range(LANES)]
    return [tf1.reduce_sum(tf1.add_n(lanes))], {}, {}


def drawn(_, shape, scale):
    """First values by ops: as constants they would be most of the graph's bytes."""
    return tf1.fill(shape, scale[0]) if isinstance(scale, tuple) else tf1.random_uniform(shape, -scale, scale, seed=1)


def main(graph, target='', pid=None):
    tensorflow_models.weights = drawn
    fetches, feeds, arrays = of_nodes(int(graph)) if graph.isdigit() else tensorflow_models.build(graph, 'train')
    values = {feeds[key]: array[:1] for key, array in arrays.items()}  # one example: arithmetic is not what is measured
    start = tf1.global_variables_initializer()
    server = int(pid) if pid else None
    for _ in sys.stdin:
        with tf1.Session(target) as session:
            took, cpu = [], []
            for _ in range(2):
                begin, begin_cpu = time.perf_counter(), cpu_seconds(server)
                session.run(start)
                check = session.run(fetches, values)[0]
                took.append(time.perf_counter() - begin)
                cpu.append(cpu_seconds(server) - begin_cpu)
        print(json.dumps({'us': max(1e-6, took[0] - took[1]) * 1e6, 'cpu_us': max(0.0, cpu[0] - cpu[1]) * 1e6, 'check': float(check),
                          'nodes': len(tf1.get_default_graph().get_operations())}), flush=True)


main(*sys.argv[1:])
