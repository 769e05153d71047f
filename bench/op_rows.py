# SPDX-License-Identifier: Apache-2.0
"""The row `ops`: single ops and their gradients on a weft server beside TensorFlow in its own process (peers/ops.py).

Figures are of one copy of the op; what a step costs beside its copies is spread over them. CPU time is that of all
processes of a side.
"""
import os
import sys

import model_rows

# What row 6 names: above a megabyte memory is the limit, and the line tells which part of a plain copy's rate is reached.
AT_MEMORY_SPEED = ('softmax', 'layer norm', 'batch norm', 'cross entropy', 'dropout', 'sum', 'mean', 'largest', 'transpose', 'join',
                   'with a', 'relu', 'square', 'bias', 'norm of', 'update', 'clip', 'choice', 'split', 'tiles', 'stack')
# Their limit is another: so many of an op's results, as fast as the fastest side makes them in this run.
OF_A_RATE = {'softmax': 'exp of 1M', 'log softmax': 'exp of 1M', 'dropout': 'random uniform 1M'}
LIMIT = 0.85

PEERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'peers')
GOAL = 1.0  # ahead of both peers


def cases():
    sys.path.insert(0, PEERS)
    from ops import CASES
    return CASES


def server_and_peers(bench, side, target):
    """The programs that run cases: on a weft server, and each TensorFlow that is installed in its own process."""
    program = os.path.join(PEERS, 'tensorflow_ops.py')
    ours = side('weft', [bench.tensorflows[0][1], program, target, str(bench.server_pids[0])])
    return ours, [side('TensorFlow %s, %s' % (version, text), [python, program], TF_ENABLE_ONEDNN_OPTS=library)
                  for version, python in bench.tensorflows for library, text in (('1', 'oneDNN'), ('0', 'Eigen'))]


def measure(bench, name, ours, peers, refuse):
    """Rounds of a case in turn; figures of cases before are forgotten."""
    for one in (ours, *peers):
        one.forget()
    for _ in range(bench.rounds):
        for one in (ours, *peers):
            one.round(name)
    refuse([ours, *peers], 2e-3)


def run(bench, side, refuse):
    with bench.cluster('weft', worker=1) as (targets, _, _):
        ours, peers = server_and_peers(bench, side, targets['worker'][0])
        gather = side('a plain loop of look-ups', [os.path.join(os.path.dirname(bench.weft), 'gather_floor')])
        stream = side('a plain copy', [bench.torch_python or sys.executable, os.path.join(PEERS, 'plain_copy.py')])
        try:
            for name, case in cases().items():
                if bench.ops and not any(part in name for part in bench.ops):
                    continue
                measure(bench, name, ours, peers, refuse)
                add(bench.table, name, case.copies, ours, peers, GOAL)
                beside_limit(bench, name, case, ours, stream, gather)
                rate = next((rate for start, rate in OF_A_RATE.items() if name.startswith(start)), None)
                if rate is not None and ours.answer['bytes'] > 1 << 20:
                    beside_rate(bench, name, rate, ours, peers, refuse)
        finally:
            for one in (ours, stream, gather, *peers):
                one.end()


def beside_limit(bench, name, case, ours, stream, gather):
    """A line for the limit of an op that memory bounds: a plain copy of as many bytes, or a plain loop of look-ups."""
    moved = case.moved or ours.answer['bytes']
    if case.gather is not None:
        limit, line, what = gather, '%d %d %d' % case.gather, 'a plain loop of look-ups'
    elif moved > 1 << 20 and name.startswith(AT_MEMORY_SPEED) and not name.startswith(tuple(OF_A_RATE)):
        limit, line, what = stream, str(moved), 'a plain copy of %.1f MB' % (moved / 1e6)
    else:
        return
    limit.forget()
    for _ in range(bench.rounds):
        limit.round(line)
    bench.table.add(name, (ours.median / case.copies, ours.least / case.copies), what, (limit.median, limit.least), 1 / LIMIT,
                    '%.2f of its rate' % (limit.median / (ours.median / case.copies)))


def beside_rate(bench, name, rate, ours, peers, refuse):
    """A line for an op whose results, half of its bytes, can come no faster than those of the case `rate`."""
    figures, results = (ours.median / cases()[name].copies, ours.least / cases()[name].copies), ours.answer['bytes'] // 8
    measure(bench, rate, ours, peers, refuse)
    part = results / (1 << 20) / cases()[rate].copies
    best = min((ours, *peers), key=lambda one: one.median)
    limit = (best.median * part, best.least * part)
    bench.table.add(name, figures, '%s, by %s' % (rate, best.name), limit, 1 / LIMIT, '%.2f of its rate' % (limit[0] / figures[0]))


def add(table, name, copies, ours, peers, goal, note=''):
    best = min(peers, key=lambda one: one.median)
    cpu = model_rows.cpu_of(ours) / min(model_rows.cpu_of(one) for one in peers)
    table.add(name, (ours.median / copies, ours.least / copies), best.name, (best.median / copies, best.least / copies), goal,
              'CPU %.2f%s' % (cpu, note))
    table.lines[-1]['cpu_ratio'] = cpu
