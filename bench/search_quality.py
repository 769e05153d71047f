#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Search beside its peers, on the problems of search_problems.py.

    search_quality.py measure WEFT RESULTS.json --set bbob --dimensions 2,5 --seeds 10 --searches tpe,optuna.TPESampler
    search_quality.py page RESULTS.json docs/search_quality.md

What RESULTS.json holds is not measured again (`--again` forgets the named searches first), so that a long comparison is made in
pieces. Needs the packages of requirements.txt; each search needs its own alone. A weft search is named by its algorithm.
"""
import argparse
import itertools
import json
import math
import os
import pathlib
import random
import statistics
import time

import search_batches
import search_peers
import search_problems

CHECKPOINTS = (100, 300)
# Which of weft's algorithms stands beside which peer.
PAIRS = (('random', 'optuna.RandomSampler'), ('sobol', 'optuna.QMCSampler'), ('tpe', 'optuna.TPESampler'),
         ('cmaes', 'optuna.CmaEsSampler'), ('cmaes', 'pycma'), ('bayesian', 'optuna.GPSampler'), ('bayesian', 'skopt.gp_minimize'),
         ('bayesian', 'optuna.TPESampler'))
ABOUT = {'bbob': 'The 24 functions of BBOB', 'mixint': 'The 24 functions of bbob-mixint, four fifths of whose parameters are whole numbers',
         'conditional': 'A choice between three functions, each with parameters of its own'}
LEAST = 1e-8  # nearer to the least value is as good


def numbers(text):
    found = []
    for part in text.split(','):
        low, _, high = part.partition('-')
        found += range(int(low), int(high or low) + 1)
    return found


class Results:
    def __init__(self, path):
        self.path = path
        self.all = json.loads(path.read_text()) if path.exists() else {'versions': {}, 'runs': {}}

    def get(self, *key):
        return self.all['runs'].setdefault(key[0], {}).setdefault(str(key[1]), {}).setdefault(key[2], {}).setdefault(str(key[3]), {})

    def write(self):
        whole = self.path.with_suffix('.part')
        rows = ['"%s":{%s}' % (group, ',\n'.join('%s:{%s}' % (json.dumps(dimension), ',\n'.join(
            '%s:%s' % (json.dumps(name), json.dumps(runs, separators=(',', ':'))) for name, runs in sorted(names.items())))
            for dimension, names in sorted(dimensions.items(), key=lambda item: int(item[0]))))
            for group, dimensions in sorted(self.all['runs'].items())]
        whole.write_text('{"versions":%s,\n"runs":{%s}}\n' % (json.dumps(self.all['versions'], sort_keys=True), ',\n'.join(rows)))
        os.replace(whole, self.path)


def measure(flags):
    results = Results(flags.results)
    names = flags.searches.split(',')
    for name in flags.again.split(',') if flags.again else ():
        for dimensions in results.all['runs'].values():
            for searches in dimensions.values():
                searches.pop(name, None)
    searches = {name: search_peers.PEERS.get(name) or search_peers.weft(flags.weft, name) for name in names}
    began = written = time.monotonic()
    for seed, dimension, name, number in itertools.product(range(flags.seeds), numbers(flags.dimensions), names, numbers(flags.functions)):
        runs = results.get(flags.set, dimension, name, number)
        # By seed: the best value after each checkpoint.
        if str(seed) in runs and len(runs[str(seed)]) >= sum(c <= flags.evaluations for c in CHECKPOINTS):
            continue
        problem = search_problems.SETS[flags.set](number, dimension, seed)
        values = searches[name](problem, flags.evaluations, seed)
        runs[str(seed)] = [float('%.4g' % max(min(values[:count]), 0)) for count in CHECKPOINTS if count <= flags.evaluations]
        if name in search_peers.PEERS:
            results.all['versions'][name] = search_peers.version_of(name)
        if time.monotonic() - written > 20:
            results.write()
            written = time.monotonic()
            print('%5.0f s: %s, %d parameters, seed %d' % (written - began, name, dimension, seed), flush=True)
        if time.monotonic() - began > flags.limit:
            break
    results.write()


def compared(ours, theirs, at):
    """By function: logarithms of how much nearer theirs came than ours, one for each seed that both have."""
    ratios = {}
    for number, runs in ours.items():
        other = theirs.get(number, {})
        both = [seed for seed, run in runs.items() if seed in other and len(run) > at and len(other[seed]) > at]
        if both:
            ratios[number] = [math.log10(max(LEAST, runs[seed][at])) - math.log10(max(LEAST, other[seed][at])) for seed in both]
    return ratios


def interval(ratios):
    """The median over functions of the median over seeds, and 95% of what it is when functions and seeds are drawn anew."""
    generator = random.Random(1)
    lists = list(ratios.values())
    drawn = []
    for _ in range(1000):
        drawn.append(statistics.median(statistics.median(generator.choices(seeds, k=len(seeds))) for seeds in generator.choices(lists, k=len(lists))))
    drawn.sort()
    return statistics.median(map(statistics.median, lists)), drawn[25], drawn[974]


def row(ours, theirs, dimension, runs, at):
    ratios = compared(runs.get(ours, {}), runs.get(theirs, {}), at)
    if not ratios:
        return None
    # A difference counts where it is more than the seeds' noise would be.
    ahead = sum(statistics.median(seeds) < 0 for seeds in ratios.values())
    even = sum(statistics.median(seeds) == 0 for seeds in ratios.values())
    middle, low, high = interval(ratios)
    word = 'ahead' if high < 0 else 'behind' if low > 0 else 'even'
    seeds = sorted({len(seeds) for seeds in ratios.values()})
    return '| `%s` | %s | %s | %d | %s | %d of %d%s | %.2f (%.2f to %.2f) | %s |' % (
        ours, theirs, dimension, CHECKPOINTS[at], ' to '.join(map(str, seeds[::max(1, len(seeds) - 1)])), ahead, len(ratios),
        ', %d even' % even if even else '', 10 ** middle, 10 ** low, 10 ** high, word)


def page(flags):
    results = Results(flags.results).all
    parts = []
    for group, about in ABOUT.items():
        dimensions = results['runs'].get(group, {})
        rows = [row(ours, theirs, dimension, dimensions[dimension], at) for ours, theirs in PAIRS
                for dimension in sorted(dimensions, key=int) for at in range(len(CHECKPOINTS))]
        rows = [each for each in rows if each]
        if not rows:
            continue
        parts.append('## %s\n\n| weft | Peer | Parameters | Evaluations | Seeds | Functions ahead | Distance, weft\'s by the peer\'s (95%%) | |\n'
                     '|---|---|---|---|---|---|---|---|\n%s\n' % (about, '\n'.join(rows)))
    if flags.batches.exists():
        parts.append(search_batches.section(json.loads(flags.batches.read_text())))
    versions = ', '.join('%s %s' % item for item in sorted({(search_peers.PACKAGES[name.split('.')[0]], version)
                                                             for name, version in results['versions'].items()}))
    flags.page.write_text(INTRODUCTION % versions + '\n' + '\n'.join(parts))


INTRODUCTION = '''# How good the search is

Written by `bench/search_quality.py` from the JSON files beside it. What is compared is how far above the function's least value
the best value found lies, one evaluation at a time. Both searches have the same instances of the same functions, and their defaults.
The distance is the median over the functions of the median over the seeds, with the interval that holds 95%% of what it is
when functions and seeds are drawn anew; *ahead* and *behind* say that the interval lies on one side of 1. Few seeds show which
algorithm is of use, not who is best by a tenth; two settings of `tpe` were chosen on the first two of them in 5 dimensions,
those of `cmaes` on other seeds. How `tpe` treats whole numbers was chosen among five ways on bbob-mixint in 5 and 10 dimensions, with
other seeds of the search, but in 5 on the very instances of the functions that stand here; that its densities have kernels of one width
along them was chosen on other instances. Peers: %s.

What falls short of being ahead, and why:

- `tpe` is even with Optuna's TPESampler where there are few parameters, all numbers. Both learn from the best tenth of the trials with
  kernels alike, and what differs (weft looks at all parameters together, Optuna at each alone) matters with many parameters, with
  conditions and between whole numbers. Kernels of one width everywhere would give 0.84 and 0.79 in 2 parameters, but 1.08 and 1.02 in 5,
  and in 20 lose a fifth, so they are for whole numbers alone.
- `random` and `sobol` learn nothing: even is all that they can be.
- `cmaes` in 2 parameters after 300 evaluations: both have found the least value of the easy functions, or neither of the others'.
- `bayesian` is beside GPSampler with 1 or 2 seeds, since that takes 0.2 s of the processor an evaluation and more with each. scikit-optimize's
  `gp_minimize` took minutes for 100 evaluations here: it is installed and can be measured, and has no row.
- Beside HEBO the intervals reach below 0 with so few runs. What `bayesian` lacks it lacks on "linear wine acc", whose best values are
  plateaus: it leaves them every other time now, which has brought it from 0.972 to 0.979; HEBO finds 0.986, as chance does.
'''


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest='command', required=True)
    command = commands.add_parser('measure')
    command.add_argument('weft')
    command.add_argument('results', type=pathlib.Path)
    command.add_argument('--set', choices=list(search_problems.SETS), default='bbob')
    command.add_argument('--functions', default='1-24')
    command.add_argument('--dimensions', default='5')
    command.add_argument('--seeds', type=int, default=5)
    command.add_argument('--evaluations', type=int, default=max(CHECKPOINTS))
    command.add_argument('--searches', default='tpe,optuna.TPESampler')
    command.add_argument('--again', default='')
    command.add_argument('--limit', type=float, default=math.inf, help='seconds after which it ends')
    command = commands.add_parser('page')
    command.add_argument('results', type=pathlib.Path)
    command.add_argument('page', type=pathlib.Path)
    command.add_argument('--batches', type=pathlib.Path, default=pathlib.Path(__file__).with_name('search_batches.json'))
    flags = parser.parse_args()
    {'measure': measure, 'page': page}[flags.command](flags)


if __name__ == '__main__':
    main()
