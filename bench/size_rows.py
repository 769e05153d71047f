# SPDX-License-Identifier: Apache-2.0
"""Rows of what grows with a model's size: the first step of large graphs, checkpoints, and parameter servers with 2 GB."""
import os
import sys
import tempfile

import model_rows

PEERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'peers')
GRAPHS = ['resnet50', '12500', '25000', '50000', '100000']


def _add(table, what, ours, peer, goal):
    ours_cpu, peer_cpu = model_rows.cpu_of(ours), model_rows.cpu_of(peer)
    table.add(what, (ours.median, ours.least), peer.name, (peer.median, peer.least), goal, 'CPU %.2f' % (ours_cpu / peer_cpu))
    table.lines[-1].update(cpu_us=ours_cpu, cpu_peer_us=peer_cpu)


def first(bench, side, measure):
    """Import, compilation, placing and cutting of a graph that nobody has seen."""
    bench.table.section('What the first step of a graph takes beyond the second, the same Python client (row 11)')
    program = [sys.executable, os.path.join(PEERS, 'tensorflow_first.py')]
    for graph in GRAPHS:
        with bench.cluster('weft', worker=1) as (ours, _, _):
            mine = side('weft', program + [graph, ours['worker'][0], str(bench.server_pids[0])])
            with bench.cluster('tensorflow', worker=1) as (theirs, _, _):
                peers = [side("TensorFlow's server", program + [graph, theirs['worker'][0], str(bench.server_pids[0])]),
                         side('TensorFlow in process', program + [graph])]
                measure([mine] + peers, bench.rounds)
        for peer in peers:
            _add(bench.table, graph if graph == 'resnet50' else '%s nodes' % graph, mine, peer, 0.2)


def checkpoint(bench, side, measure):
    """Checkpoints beside TensorFlow's and beside a plain file of that size, each written through to the disk."""
    size = int(bench.megabytes)
    bench.table.section('A checkpoint of %d MB, each synced to the disk (row 12)' % size)
    program = [sys.executable, os.path.join(PEERS, 'tensorflow_checkpoint.py')]
    for what in 'save', 'restore':
        with tempfile.TemporaryDirectory() as folder, bench.cluster('weft', worker=1) as (ours, _, _):
            folders = [os.path.join(folder, name) for name in ('weft', 'tensorflow', 'plain')]
            for one in folders:
                os.mkdir(one)
            sides = [side('weft', program + [what, folders[0], str(size), ours['worker'][0], str(bench.server_pids[0])]),
                     side('TensorFlow in process', program + [what, folders[1], str(size)]),
                     side('a plain file', [sys.executable, os.path.join(PEERS, 'plain_file.py'), what, folders[2], str(size)])]
            measure(sides, bench.rounds, tolerance=None)
        _add(bench.table, what, sides[0], sides[1], 1)
        _add(bench.table, what, sides[0], sides[2], 1 / 0.9)


def stalls(bench, side, measure):
    """What a checkpoint in the background costs the steps beside it: their time beyond what as many take otherwise."""
    size, every = int(bench.megabytes), 30.0
    bench.table.section('Steps that go on while a checkpoint of %d MB is written: what they lose of %.0f s, with one save in them (row 12)' % (
        size, every))
    program = os.path.join(os.path.dirname(bench.weft), 'saving_rounds')
    for what in 'in one process', 'on a server':
        with tempfile.TemporaryDirectory() as folder, bench.cluster('weft', worker=1) as (ours, _, _):
            mine = side('weft', [program, folder, str(size)] + ([ours['worker'][0]] if what == 'on a server' else []))
            measure([mine], bench.rounds, tolerance=None)
        bench.table.add(what, (mine.median, mine.least), 'what training has', (every * 1e6, every * 1e6), 0.03,
                        'a step %.0f us, the longest %.0f ms, saved in %.1f s' % (
                            mine.answer['step_us'], mine.answer['longest_us'] / 1e3, mine.answer['saving_us'] / 1e6))


def big(bench, together, side, measure):
    """Steps of workers whose model is far larger than what a step reads of it."""
    bench.table.section('200 MB of dense weights and 2 GB of embeddings on 2 parameter servers, 2 workers (row 10)')
    program = [sys.executable, os.path.join(PEERS, 'tensorflow_big.py')]
    for form in 'async', 'sync':
        found = {}
        for kind, name in ('weft', 'weft servers'), ('tensorflow', "TensorFlow's servers"):
            with bench.cluster(kind, ps=2, worker=2) as (targets, _, _):
                pids = [str(pid) for pid in bench.server_pids]
                # The parameter servers' time counts once, at the first worker.
                workers = [side(name, program + [targets['worker'][i], str(i), form, str(bench.scale)] + (pids if i == 0 else []))
                           for i in (0, 1)]
                measure([together(workers)], bench.rounds, tolerance=None)
            found[kind] = workers
        mine, peer = together(found['weft']), together(found['tensorflow'])
        bench.table.add('%s, a step of a worker' % form, (mine.median, mine.least), peer.name, (peer.median, peer.least), 0.2,
                        'CPU %.2f' % (model_rows.cpu_of(found['weft'][0]) / model_rows.cpu_of(found['tensorflow'][0])))
