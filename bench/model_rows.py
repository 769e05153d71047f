# SPDX-License-Identifier: Apache-2.0
"""The row `models`: whole models on a weft server beside TensorFlow in its own process and PyTorch (peers/models.py).

Every figure is of one step with what feeding and fetching cost. CPU time is that of all processes of a side.
"""
import os
import statistics
import subprocess
import sys

PEERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'peers')
# What the issue of speed asks for, as a part of the best peer's time.
GOALS = {'vgg16': 0.5, 'lenet': 0.6, 'resnet18': 0.7, 'resnet50': 0.85, 'transformer': 0.6, 'lstm': 0.6, 'gru': 0.6, 'embedding': 0.35,
         'wide_deep': 0.35}
TOLERANCE = 2e-3  # of losses after three steps; ways to compute a convolution round differently
# Batch norm of a few pixels magnifies that: TensorFlow's own two libraries differ by 1.5e-3 to 8e-3 in the third step.
TOLERANCES = {'mobilenet': 2e-2}


def names():
    sys.path.insert(0, PEERS)
    from models import MODELS
    return MODELS


def peers_of(bench, side, name, mode):
    """The settings of the peers that are installed."""
    found = []
    for version, python in bench.tensorflows:
        for library, text in ('1', 'oneDNN'), ('0', 'Eigen'):
            found.append(side('TensorFlow %s, %s' % (version, text), [python, os.path.join(PEERS, 'tensorflow_models.py'), name, mode],
                              TF_ENABLE_ONEDNN_OPTS=library))
    if bench.torch_python is not None and names()[name].has_torch:
        for form in bench.torch_forms:
            found.append(side('PyTorch, ' + form, [bench.torch_python, os.path.join(PEERS, 'torch_models.py'), name, mode, form]))
    return found


def cpu_of(side):
    return statistics.median(side.cpus)


def run(bench, side, measure):
    """One line for each model and mode. `side` makes a program that measures rounds, `measure` runs rounds of several in turn."""
    for name, model in names().items():
        if bench.models and name not in bench.models:
            continue
        for mode in bench.modes:
            with bench.cluster('weft', worker=1) as (targets, _, _):
                server = bench.server_pids[0]
                ours = side('weft', [bench.tensorflows[0][1], os.path.join(PEERS, 'tensorflow_models.py'), name, mode,
                                     targets['worker'][0], str(server)])
                sides = measure([ours] + peers_of(bench, side, name, mode), bench.rounds, tolerance=TOLERANCES.get(name, TOLERANCE))
                peak = peak_megabytes(server)
            best = min(sides[1:], key=lambda one: one.median)
            least = min(sides[1:], key=cpu_of)
            spread = [one / statistics.median(best.times) for one in (min(ours.times), max(ours.times))]
            bench.table.add('%s, batch %d, %s' % (name, model.batch, mode), (ours.median, ours.least), best.name,
                            (best.median, best.least), GOALS.get(name, 0.9),
                            'spread %.2f to %.2f, CPU %.2f of %s, server %d MB' % (*spread, cpu_of(ours) / cpu_of(least), least.name,
                                                                                   peak))
            bench.table.lines[-1].update(cpu_us=cpu_of(ours), cpu_peer=least.name, cpu_peer_us=cpu_of(least), server_megabytes=peak,
                                         sides={one.name: dict(us=one.times, cpu_us=one.cpus) for one in sides})
            for one in sides[1:]:
                bench.table.say('    %-28s time %.2f, CPU %.2f' % (one.name, ours.median / one.median, cpu_of(ours) / cpu_of(one)))


def peak_megabytes(pid):
    """The most memory that a process has held."""
    with open('/proc/%d/status' % pid) as file:
        return next(int(line.split()[1]) >> 10 for line in file if line.startswith('VmHWM'))


def version_of(python, package):
    """The version of a package, or None where the interpreter or the package is missing."""
    if python is None or not os.path.exists(python):
        return None
    done = subprocess.run([python, '-c', 'from importlib.metadata import version; print(version(%r))' % package],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return done.stdout.strip() or None
