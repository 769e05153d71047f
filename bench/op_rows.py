# SPDX-License-Identifier: Apache-2.0
"""The row `ops`: single ops and their gradients on a weft server beside TensorFlow in its own process (peers/ops.py).

Figures are of one copy of the op; what a step costs beside its copies is spread over them. CPU time is that of all
processes of a side.
"""
import os
import statistics
import sys

# What row 6 names: above a megabyte memory is the limit, and the line tells which part of a plain copy's rate is reached.
AT_MEMORY_SPEED = ('softmax', 'layer norm', 'batch norm', 'cross entropy', 'dropout', 'sum', 'mean', 'largest', 'transpose', 'join', 
                   'with a', 'relu', 'square', 'bias', 'norm of')

PEERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'peers')
GOAL = 1.0  # ahead of both peers


def cases():
    sys.path.insert(0, PEERS)
    from ops import CASES
    return CASES


def run(bench, side, refuse):
    program = os.path.join(PEERS, 'tensorflow_ops.py')
    with bench.cluster('weft', worker=1) as (targets, _, _):
        ours = side('weft', [bench.tensorflows[0][1], program, targets['worker'][0], str(bench.server_pids[0])])
        peers = [side('TensorFlow %s, %s' % (version, text), [python, program], TF_ENABLE_ONEDNN_OPTS=library)
                 for version, python in bench.tensorflows for library, text in (('1', 'oneDNN'), ('0', 'Eigen'))]
        stream = side('a plain copy', [bench.torch_python or sys.executable, os.path.join(PEERS, 'plain_copy.py')])
        try:
            for name, case in cases().items():
                if bench.ops and not any(part in name for part in bench.ops):
                    continue
                for one in (ours, *peers):
                    one.times, one.cpus = [], []
                for _ in range(bench.rounds):
                    for one in (ours, *peers):
                        one.round(name)
                refuse([ours, *peers], 2e-3)
                add(bench.table, name, case.copies, ours, peers)
                if ours.answer['bytes'] > 1 << 20 and name.startswith(AT_MEMORY_SPEED):
                    stream.times = []
                    for _ in range(bench.rounds):
                        stream.round(str(ours.answer['bytes']))
                    part = stream.median / (ours.median / case.copies)
                    bench.table.lines[-1]['part_of_copy'] = part
                    bench.table.say('    %.2f of the rate of a plain copy over %.1f MB' % (part, ours.answer['bytes'] / 1e6))
        finally:
            for one in (ours, stream, *peers):
                one.end()


def add(table, name, copies, ours, peers):
    best = min(peers, key=lambda one: one.median)
    cpu = statistics.median(ours.cpus) / min(statistics.median(one.cpus) for one in peers)
    table.add(name, (ours.median / copies, ours.least / copies), best.name, (best.median / copies, best.least / copies), GOAL,
              'CPU %.2f' % cpu)
    table.lines[-1]['cpu_ratio'] = cpu
