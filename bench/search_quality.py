#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Search beside Optuna on functions of BBOB, written as docs/search_quality.md.

    search_quality.py WEFT [--seeds 5] [--functions 5] [--dimension 5] [--page docs/search_quality.md]

Both search the same box for the same number of evaluations, one at a time. What is compared is the best value found less the
least value that the function has. Needs optuna and cmaes of requirements.txt.
"""
import argparse
import importlib.metadata
import math
import pathlib
import random
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'python'))
from weft import search  # noqa: E402

EVALUATIONS = (50, 100)
ROWS = (('random', 'RandomSampler'), ('tpe', 'TPESampler'), ('cmaes', 'CmaEsSampler'), ('bayesian', 'TPESampler'))


def rotation(generator, n):
    """A random orthogonal matrix, by Gram and Schmidt."""
    rows = []
    for _ in range(n):
        row = [generator.gauss(0, 1) for _ in range(n)]
        for other in rows:
            dot = sum(a * b for a, b in zip(row, other))
            row = [a - dot * b for a, b in zip(row, other)]
        length = math.sqrt(sum(a * a for a in row))
        rows.append([a / length for a in row])
    return rows


def turned(matrix, x):
    return [sum(a * b for a, b in zip(row, x)) for row in matrix]


# Hansen, Finck, Ros and Auger, "Real-parameter black-box optimization benchmarking 2009: noiseless functions
# definitions": f1, f2, f3, f8 and f10, without the oscillation and asymmetry of f2, f3 and f10.
def sphere(z, _):
    return sum(a * a for a in z)


def ellipsoid(z, _):
    return sum(10 ** (6 * i / (len(z) - 1)) * a * a for i, a in enumerate(z))


def rastrigin(z, _):
    return 10 * (len(z) - sum(math.cos(2 * math.pi * a) for a in z)) + sum(a * a for a in z)


def rosenbrock(z, _):
    scale = max(1, math.sqrt(len(z)) / 8)
    z = [scale * a + 1 for a in z]
    return sum(100 * (z[i] ** 2 - z[i + 1]) ** 2 + (z[i] - 1) ** 2 for i in range(len(z) - 1))


def turned_ellipsoid(z, matrix):
    return ellipsoid(turned(matrix, z), matrix)


FUNCTIONS = (('f1 sphere', sphere), ('f8 Rosenbrock', rosenbrock), ('f3 Rastrigin', rastrigin), ('f2 ellipsoid', ellipsoid),
             ('f10 turned ellipsoid', turned_ellipsoid))


def instance(function, seed, dimension):
    generator = random.Random(seed)
    optimum = [generator.uniform(-4, 4) for _ in range(dimension)]
    matrix = rotation(generator, dimension)
    return lambda x: function([a - b for a, b in zip(x, optimum)], matrix)


def best_so_far(values):
    return [min(values[:count]) for count in EVALUATIONS]


def run_weft(weft, algorithm, function, seed, dimension):
    space = ' '.join('x%d=-5.0..5.0' % i for i in range(dimension))
    values = []
    with search.Study(space, minimize='loss', algorithm=algorithm, seed=seed, weft=weft) as study:
        for _ in range(max(EVALUATIONS)):
            trial = study.ask()
            values.append(function([trial.values['x%d' % i] for i in range(dimension)]))
            study.tell(trial, values[-1])
    return best_so_far(values)


def run_optuna(name, function, seed, dimension):
    import optuna
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=getattr(optuna.samplers, name)(seed=seed))
    values = []

    def objective(trial):
        values.append(function([trial.suggest_float('x%d' % i, -5, 5) for i in range(dimension)]))
        return values[-1]
    study.optimize(objective, n_trials=max(EVALUATIONS))
    return best_so_far(values)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('weft')
    parser.add_argument('--seeds', type=int, default=5)
    parser.add_argument('--functions', type=int, default=len(FUNCTIONS))
    parser.add_argument('--dimension', type=int, default=5)
    parser.add_argument('--page', type=pathlib.Path)
    flags = parser.parse_args()
    lines = []
    ahead = {}
    began = time.process_time()
    optuna_runs = {}
    for label, function in FUNCTIONS[:flags.functions]:
        for ours, theirs in ROWS:
            mine, other = [], []
            for seed in range(flags.seeds):
                f = instance(function, seed, flags.dimension)
                mine.append(run_weft(flags.weft, ours, f, seed, flags.dimension))
                key = (label, theirs, seed)
                if key not in optuna_runs:
                    optuna_runs[key] = run_optuna(theirs, f, seed, flags.dimension)
                other.append(optuna_runs[key])
            cells = []
            for at, count in enumerate(EVALUATIONS):
                a, b = (statistics.median(run[at] for run in runs) for runs in (mine, other))
                ahead.setdefault((ours, count), []).append(a < b)
                cells += ['%.3g' % a, '%.3g' % b]
            lines.append('| %s | `%s` | `%s` | %s |' % (label, ours, theirs, ' | '.join(cells)))
            print(lines[-1], flush=True)
    head = '| Function | weft | Optuna | ' + ' | '.join(
        'weft after %d | Optuna after %d' % (count, count) for count in EVALUATIONS) + ' |'
    summary = ['- `%s` after %d evaluations: ahead on %d of %d' % (name, count, sum(wins), len(wins))
               for (name, count), wins in ahead.items()]
    page = '''# How good the search is

Written by `bench/search_quality.py`. The best value found less the least one, median of %d seeds, on %d functions of BBOB in %d
dimensions, one evaluation at a time, beside Optuna %s. A small run: so few seeds and functions show which algorithm is of use, not
who is best by a tenth. Optuna has its samplers' defaults; its GPSampler needs PyTorch and is not here, so `bayesian` stands
beside `TPESampler`.

%s
|---|---|---|%s
%s

%s
''' % (flags.seeds, flags.functions, flags.dimension, importlib.metadata.version('optuna'), head, '---|' * 2 * len(EVALUATIONS),
       '\n'.join(lines), '\n'.join(summary))
    print('\n'.join(summary))
    print('%.0f s of this process' % (time.process_time() - began))
    if flags.page is not None:
        flags.page.write_text(page)


if __name__ == '__main__':
    main()
