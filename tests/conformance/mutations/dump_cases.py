#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the ops' cases (../ops/cases_*.py) to a file, for the trials of mutations.cc: dump_cases.py FILE.

The file is a row of frames, each a kind, a 32-bit length and bytes: 'O' the name of an op, 'G' a GraphDef of one of its
cases, and behind that 'R', a RunStepRequest for each of its steps. TensorFlow's client makes the graphs.
"""
import glob
import importlib
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
OPS = os.path.join(os.path.dirname(HERE), 'ops')
sys.path.insert(0, OPS)

import ops_test  # noqa: E402  (before TensorFlow: it says how that is loaded)
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from cases import GENERATORS, SCRIPTS, Builder, Path  # noqa: E402
from pipe_session import RunStepRequest  # noqa: E402
from signatures import type_sets  # noqa: E402

MOST_TYPES = 3   # sets of types of an op; the trials change types themselves
MOST_CASES = 24  # of an op and a set of types
MOST_BYTES = 1 << 20


def unpack(proto):
    """One element after another, as the trials want them."""
    array = tf.make_ndarray(proto)
    if proto.dtype == tf.string.as_datatype_enum:
        proto.string_val[:] = array.flatten().tolist()
    else:
        whole = tf.make_tensor_proto([], proto.dtype, verify_shape=False)
        whole.tensor_shape.CopyFrom(proto.tensor_shape)
        whole.tensor_content = array.tobytes()
        proto.CopyFrom(whole)


def request(fetches, feeds):
    step = RunStepRequest()
    for holder, value in feeds.items():
        if isinstance(value, Path):
            value = 'files/' + value.name
        feed = step.feed.add(name=holder.name, tensor=tf.make_tensor_proto(value, holder.dtype.base_dtype))
        unpack(feed.tensor)
    for fetch in fetches:
        if isinstance(fetch, tf.Tensor) and fetch.dtype.base_dtype not in (tf.resource, tf.variant):
            step.fetch.append(fetch.name)
        else:
            step.target.append(fetch.op.name if isinstance(fetch, tf.Tensor) else fetch.name)
    return step


def spread(items, most):
    """At most `most` of them, from all over the list."""
    items = list(items)
    return items if len(items) <= most else [items[i * len(items) // most] for i in range(most)]


def flat(items):
    return [x for item in items for x in (flat(item) if isinstance(item, (list, tuple)) else [item])]


class Dump:
    def __init__(self, out):
        self.out, self.count = out, 0

    def frame(self, kind, data):
        self.out.write(kind + struct.pack('<I', len(data)) + data)

    def add(self, op, graph, steps):
        definition = graph.as_graph_def()
        for node in definition.node:
            if node.op == 'Const':
                unpack(node.attr['value'].tensor)
        definition = definition.SerializeToString()
        if len(definition) + sum(s.ByteSize() for s in steps) > MOST_BYTES:
            return
        self.frame(b'O', op.encode())
        self.frame(b'G', definition)
        for step in steps:
            self.frame(b'R', step.SerializeToString())
        self.count += 1

    def add_case(self, op, types, case):
        feeds, graph = {}, tf.Graph()
        try:
            with graph.as_default():
                result = ops_test.apply_op(op, [ops_test.place(x, feeds) for x in case.inputs], {**types, **case.attrs})
        except (ValueError, TypeError):
            return  # the client refuses it
        self.add(op, graph, [request(flat(ops_test.tensors_of(result) or [result]), feeds)])

    def add_script(self, op, function, types):
        graph = tf.Graph()
        with graph.as_default():
            steps = function(Builder('_'.join([op, function.__name__, *types.values()]), ops_test.apply_op), types)
        self.add(op, graph, [request(flat(step.fetches), step.feeds) for step in steps])

    def add_op(self, op):
        for types in spread(type_sets(op), MOST_TYPES):
            cases = [case for generator in GENERATORS[op] for case in generator(op, types)]
            for case in spread(cases, MOST_CASES):
                self.add_case(op, types, case)
            for function, _ in SCRIPTS[op]:
                self.add_script(op, function, types)


def main(path):
    np.random.seed(0)
    for module in sorted(glob.glob(os.path.join(OPS, 'cases_*.py'))):
        importlib.import_module(os.path.basename(module)[:-3])
    ops = sorted({op for op in GENERATORS if GENERATORS[op]} | {op for op in SCRIPTS if SCRIPTS[op]})
    with open(path + '.new', 'wb') as out:
        dump = Dump(out)
        for op in ops:
            try:
                dump.add_op(op)
            except Exception as error:  # a case that only the other TensorFlow can build
                print('%s: left out: %.200s' % (op, error))
    os.rename(path + '.new', path)
    print('%d cases of %d ops' % (dump.count, len(ops)))


if __name__ == '__main__':
    main(sys.argv[1])
