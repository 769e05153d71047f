# SPDX-License-Identifier: Apache-2.0
"""The rows `eager`, `tape` and `fit`: ops one at a time, steps by tapes and Keras' fit, beside torch, TensorFlow and Keras.

torch and TensorFlow are called from Python, as their programs call them; weft from C++, as its own do. CPU time is of all threads."""
import os
import subprocess
import sys
import tempfile

import model_rows

PEERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'peers')
EAGER = ['add', 'mul', 'matmul', 'relu', 'sum', 'softmax', 'transpose', 'concat']
# Examples of an epoch and of a batch.
FIT = {'mlp': (6400, 32), 'convolutions': (640, 32), 'lstm': (640, 32)}


def _program(bench):
    return os.path.join(os.path.dirname(bench.weft), 'model_rounds')


def _add(table, what, ours, peer, goal, calls=1):
    cpu = model_rows.cpu_of(ours) / model_rows.cpu_of(peer)
    table.add(what, (ours.median / calls, ours.least / calls), peer.name, (peer.median / calls, peer.least / calls), goal,
              'CPU %.3f' % cpu)
    table.lines[-1].update(cpu_ratio=cpu)


def eager(bench, side, measure):
    bench.table.section('Ops at once, the time of one of 100 calls on one thread')
    for size in 4, 64:
        for op in EAGER:
            words = 'eager', op, str(size)
            sides = measure([side('weft', [_program(bench), *words]), bench.torch(*words), bench.tensorflow(*words)], bench.rounds)
            for peer, goal in zip(sides[1:], (0.5, 0.25)):
                _add(bench.table, '%s of %d x %d' % (op, size, size), sides[0], peer, goal, calls=100)


def tape(bench, side, measure):
    bench.table.section('One step of an MLP 784-100-10 with SGD by a tape, one thread')
    for batch in 1, 100:
        mine = [side(form, [_program(bench), form, str(batch), '1']) for form in ('tape', 'traced')]
        peers = [bench.torch('mlp', batch, 1), bench.tensorflow('mlp', batch, 1, 'eager', name='TensorFlow, tape'),
                 bench.tensorflow('mlp', batch, 1, 'function', name='TensorFlow, function')]
        measure(mine + peers, bench.rounds)
        for peer, goal in zip(peers[:2], (1, 0.5)):
            _add(bench.table, 'batch %d, tape' % batch, mine[0], peer, goal)
        _add(bench.table, 'batch %d, traced function' % batch, mine[1], peers[2], 0.5)


def fit(bench, side, measure):
    bench.table.section("An epoch of Fit beside Keras', batches of 32, the same first weights")
    program = os.path.join(PEERS, 'keras_rounds.py')
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, program, 'make', folder], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for name, (count, batch) in FIT.items():
            words = ['fit', '%s/%s.keras' % (folder, name), str(count), '10', str(batch)]
            sides = [side('weft', [_program(bench), *words])]
            # Keras 2 cannot read what Keras 3 writes.
            sides += [side('Keras of TensorFlow ' + version, [python, program, *words])
                      for version, python in bench.tensorflows if not version.startswith('2.15')]
            measure(sides, bench.rounds)
            for peer in sides[1:]:
                _add(bench.table, '%s, %d examples' % (name, count), sides[0], peer, 0.6)
