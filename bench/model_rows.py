# SPDX-License-Identifier: Apache-2.0
"""The row `models`: whole models on a weft server beside TensorFlow in its own process and PyTorch (peers/models.py).

Every figure is of one step with what feeding and fetching cost. CPU time is that of all processes of a side.
"""
import os
import statistics
import subprocess
import sys

PEERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'peers')
sys.path.insert(0, PEERS)
from rounds import megabytes  # noqa: E402

# What the issue of speed asks for, as a part of the best peer's time.
GOALS = {'vgg16': 0.5, 'vgg16_large': 0.5, 'lenet': 0.6, 'resnet18': 0.7, 'resnet50': 0.85, 'transformer': 0.6, 'lstm': 0.6, 'gru': 0.6,
         'embedding': 0.35, 'wide_deep': 0.35, 'deepfm': 0.35}
MEMORY_GOAL = 0.8
INFERRED = (1, 32)  # batches of inference
TOLERANCE = 2e-3  # of losses after three steps; ways to compute a convolution round differently
# Batch norm of a few pixels magnifies that in training: TensorFlow's own two libraries differ by 1.5e-3 to 8e-3 in the third step. In 50 layers
# signs of single activations turn: gradients of these two libraries are 4% apart in one step, as ours are of either's.
TOLERANCES = {'mobilenet': 2e-2, 'resnet50': 2e-2}


def names():
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


def cases(model, modes):
    """What is measured of a model: a mode as its programs want it, and the batch."""
    found = [('train', model.batch)] if 'train' in modes else []
    return found + ([('infer%d' % batch, batch) for batch in INFERRED] if 'infer' in modes else [])


def cpu_of(side):
    return statistics.median(side.cpus)


def run(bench, side, measure):
    """One line for each model and mode. `side` makes a program that measures rounds, `measure` runs rounds of several in turn."""
    for name, model in names().items():
        if bench.models and name not in bench.models:
            continue
        for mode, batch in cases(model, bench.modes):
            with bench.cluster('weft', worker=1) as (targets, _, _):
                server = bench.server_pids[0]
                started = megabytes('VmRSS', server)
                ours = side('weft', [bench.tensorflows[0][1], os.path.join(PEERS, 'tensorflow_models.py'), name, mode,
                                     targets['worker'][0], str(server)])
                sides = measure([ours] + peers_of(bench, side, name, mode), bench.rounds,
                                tolerance=TOLERANCES.get(name, TOLERANCE) if mode == 'train' else TOLERANCE)
                peak = megabytes('VmHWM', server)
            best = min(sides[1:], key=lambda one: one.median)
            least = min(sides[1:], key=cpu_of)
            spread = [one / statistics.median(best.times) for one in (min(ours.times), max(ours.times))]
            case = '%s, batch %d, train' % (name, batch) if mode == 'train' else '%s, inference of %d' % (name, batch)
            bench.table.add(case, (ours.median, ours.least), best.name,
                            (best.median, best.least), GOALS.get(name, 0.9),
                            'spread %.2f to %.2f, CPU %.2f of %s' % (*spread, cpu_of(ours) / cpu_of(least), least.name))
            memory = memory_of(peak, started, ours, sides[1:])
            bench.table.lines[-1].update(cpu_us=cpu_of(ours), cpu_peer=least.name, cpu_peer_us=cpu_of(least), server_megabytes=round(peak),
                                         memory=memory, sides={one.name: dict(us=one.times, cpu_us=one.cpus) for one in sides})
            bench.table.say('    peak memory: server %d MB, with the client %d MB, %s %d MB; of the model alone %d MB beside %d MB: '
                            '%.2f of it, goal %.1f (whole: server %.2f, with the client %.2f)' % (
                                peak, peak + ours.answer['peak_mb'], memory['peer'], memory['peer_mb'], peak - started,
                                memory['peer_model_mb'], memory['model_ratio'], MEMORY_GOAL, memory['server_ratio'],
                                memory['whole_ratio']))
            for one in sides[1:]:
                bench.table.say('    %-28s time %.2f, CPU %.2f' % (one.name, ours.median / one.median, cpu_of(ours) / cpu_of(one)))


def memory_of(peak, started, ours, peers):
    """Parts of the peak memory of the peer that holds least, in its own process. `server_ratio`: our server's, which is all that a
    program in C++ has beside it; `whole_ratio`: with the Python client, which has imported TensorFlow too; `model_ratio`, for which
    the goal is: both less what the server holds when it has started and the peer when it is imported."""
    model = {one: one.answer['peak_mb'] - one.answer['imported_mb'] for one in peers}
    peer = min(peers, key=model.get)
    whole = peer.answer['peak_mb']
    return dict(peer=peer.name, peer_mb=whole, peer_model_mb=model[peer], model_mb=peak - started, client_mb=ours.answer['peak_mb'],
                model_ratio=(peak - started) / model[peer], server_ratio=peak / whole,
                whole_ratio=(peak + ours.answer['peak_mb']) / whole)


def version_of(python, package):
    """The version of a package, or None where the interpreter or the package is missing."""
    if python is None or not os.path.exists(python):
        return None
    done = subprocess.run([python, '-c', 'from importlib.metadata import version; print(version(%r))' % package],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return done.stdout.strip() or None
