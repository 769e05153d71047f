#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes ops_needed.txt: every op that the programs of programs.py send, as the real TensorFlow builds them.

    dump_ops.py PYTHON [PYTHON ...]     one interpreter for each TensorFlow version
    dump_ops.py --one ref|resource      (internal) dumps one version and variable kind as JSON

`ref` is disable_v2_behavior (reference variables, Switch/Merge), `resource` is disable_eager_execution
alone (resource variables, If/While).
"""
import collections
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
HEADER = '''\
# Ops that the programs of programs.py send to a server, as real TensorFlow builds them. Generated: dump_ops.py.
# op <tab> attr=types seen <tab> versions: program/kind, ... (kind: ref or resource variables, both when absent)
'''


def dump(kind):
    import tensorflow as tf
    tf1 = tf.compat.v1
    tf1.logging.set_verbosity('ERROR')
    if kind == 'ref':
        tf1.disable_v2_behavior()
    else:
        tf1.disable_eager_execution()
    import programs
    ops = collections.defaultdict(lambda: {'types': collections.defaultdict(set), 'programs': set()})
    for program in programs.PROGRAMS:
        with tf.Graph().as_default() as graph:
            tf1.set_random_seed(1)
            program()
            proto = graph.as_graph_def()
        nodes = list(proto.node)
        for function in proto.library.function:
            nodes.extend(function.node_def)
        for node in nodes:
            ops[node.op]['programs'].add(program.__name__)
            for name, attr in node.attr.items():
                which = attr.WhichOneof('value')
                types = [attr.type] if which == 'type' else list(attr.list.type) if which == 'list' else []
                for number in types:
                    ops[node.op]['types'][name].add(tf.dtypes.as_dtype(number).name)
    return {'version': '.'.join(tf.__version__.split('.')[:2]), 'kind': kind,
            'ops': {op: {'types': {k: sorted(v) for k, v in sorted(seen['types'].items())},
                         'programs': sorted(seen['programs'])} for op, seen in ops.items()}}


def merge(dumps):
    table = collections.defaultdict(lambda: {'types': collections.defaultdict(set), 'uses': {}})
    for one in dumps:
        for op, seen in one['ops'].items():
            row = table[op]
            for name, types in seen['types'].items():
                row['types'][name].update(types)
            uses = row['uses'].setdefault(one['version'], collections.defaultdict(set))
            for program in seen['programs']:
                uses[program].add(one['kind'])
    lines = [HEADER]
    for op, row in sorted(table.items()):
        types = ' '.join('%s=%s' % (k, ','.join(sorted(v))) for k, v in sorted(row['types'].items()))
        uses = collections.defaultdict(list)
        for version, programs in sorted(row['uses'].items(), key=lambda item: [int(p) for p in item[0].split('.')]):
            names = [p if len(k) == 2 else '%s/%s' % (p, *k) for p, k in sorted(programs.items())]
            uses[', '.join(names)].append(version)
        uses = ['%s: %s' % (', '.join(versions), names) for names, versions in uses.items()]
        lines.append('%s\t%s\t%s\n' % (op, types, '; '.join(uses)))
    return ''.join(lines), len(table)


def main(args):
    if args[:1] == ['--one']:
        json.dump(dump(args[1]), sys.stdout)
        return 0
    if not args:
        print(__doc__)
        return 2
    dumps = []
    for python in args:
        for kind in 'ref', 'resource':
            run = subprocess.run([python, os.path.abspath(__file__), '--one', kind], stdout=subprocess.PIPE, check=True,
                                 env=dict(os.environ, TF_CPP_MIN_LOG_LEVEL='3', CUDA_VISIBLE_DEVICES=''))
            dumps.append(json.loads(run.stdout.splitlines()[-1]))
    text, count = merge(dumps)
    with open(os.path.join(HERE, 'ops_needed.txt'), 'w') as out:
        out.write(text)
    print('ops_needed.txt: %d ops' % count)
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
