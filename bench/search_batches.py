#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Searches that are asked for eight trials at a time, on bayesmark's problems: models of scikit-learn on its own data sets.

    search_batches.py WEFT RESULTS.json --seeds 3 --searches random,bayesian,tpe,hebo

The packages are those of requirements-batches.txt, which are older than what the other benches need. What RESULTS.json holds is not
measured again; at the end stands how each search scores beside HEBO.
"""
import argparse
import importlib.metadata
import json
import math
import pathlib
import statistics
import sys
import tempfile
import time
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'python'))
from weft import search  # noqa: E402

BATCHES, BATCH = 16, 8
# Those of bayesmark's 108 whose trials take no more than some hundredths of a second: model, data set, metric.
PROBLEMS = ('DT wine nll', 'RF boston mse', 'SVM diabetes mse', 'MLP-sgd iris nll', 'linear wine acc', 'DT diabetes mae', 'RF wine nll',
            'lasso boston mae', 'SVM wine nll', 'kNN boston mse', 'MLP-adam iris nll', 'DT boston mse')


def problem_of(name):
    from bayesmark.sklearn_funcs import SklearnModel
    made = SklearnModel(*name.split())

    def loss(values):
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            return made.evaluate(values)[0]
    return made.get_api_config(), loss


def is_log(about):
    """Near 0 as near 1, which bayesmark calls logit, is on no scale of either search's: HEBO's authors take its logarithm, too."""
    return about['type'] == 'real' and about['space'] in ('log', 'logit')


def weft(binary, algorithm):
    def word(name, about):
        if about['type'] == 'bool':
            return name + '={False,True}'
        low, high = about['range']
        if about['type'] == 'int':
            return '%s=%d..%d' % (name, low, high)
        return ('%s=log(%r,%r)' if is_log(about) else '%s=%r..%r') % (name, float(low), float(high))

    def run(config, loss, seed):
        values = []
        with tempfile.TemporaryDirectory() as folder, search.Study(
                ' '.join(word(*item) for item in sorted(config.items())), minimize='loss', algorithm=algorithm, seed=seed,
                folder=folder, weft=binary) as study:
            for _ in range(BATCHES):
                trials = [study.ask() for _ in range(BATCH)]
                for trial in trials:
                    found = {name: value == 'True' if config[name]['type'] == 'bool' else value for name, value in trial.values.items()}
                    values.append(loss(found))
                    study.tell(trial, values[-1])
        return values
    return run


def hebo(config, loss, seed):
    import numpy
    import torch
    from hebo.design_space.design_space import DesignSpace
    from hebo.optimizers.hebo import HEBO
    numpy.random.seed(seed)
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    parameters = []
    for name, about in sorted(config.items()):
        one = {'name': name, 'type': about['type']}
        if about['type'] != 'bool':
            one['type'] = 'int' if about['type'] == 'int' else 'pow' if is_log(about) else 'num'
            one['lb'], one['ub'] = about['range']
        parameters.append(one)
    optimizer, values = HEBO(DesignSpace().parse(parameters), scramble_seed=seed), []
    for _ in range(BATCHES):
        asked = optimizer.suggest(n_suggestions=BATCH)
        told = []
        for _, row in asked.iterrows():
            told.append(loss({name: {'int': int, 'bool': bool, 'real': float}[config[name]['type']](value) for name, value in row.items()}))
        optimizer.observe(asked, numpy.array(told).reshape(-1, 1))
        values += told
    return values


def score(runs):
    """By search: bayesmark's score of each problem and seed. 100 for the best value that any search has found, 0 for the middle one of
    those that random search tries."""
    scores = {}
    for problem, searches in runs.items():
        if 'random' not in searches:
            continue
        middle = statistics.median(values[1] for values in searches['random'].values())
        best = min(values[0] for values_of in searches.values() for values in values_of.values())
        for name, values_of in searches.items():
            for seed, values in values_of.items():
                part = (values[0] - best) / (middle - best) if middle > best else 0.0
                scores.setdefault(name, {})[problem, seed] = 100 * (1 - max(-1.0, min(1.0, part)))
    return scores


def rows(runs):
    """Of the page: each search beside HEBO on the problems and seeds that both have run, with 95% of the difference."""
    scores = score(runs)
    theirs = scores.get('hebo', {})
    lines = []
    for name, ours in sorted(scores.items()):
        both = sorted(set(ours) & set(theirs))
        if name == 'hebo' or not both:
            continue
        differences = [ours[key] - theirs[key] for key in both]
        spread = 1.96 * statistics.stdev(differences) / math.sqrt(len(both)) if len(both) > 1 else math.inf
        middle = statistics.mean(differences)
        lines.append('| `%s` | %d | %d | %d | %.1f | %.1f | %+.1f (%+.1f to %+.1f) |' % (
            name, len({problem for problem, _ in both}), len(both), sum(d > 0 for d in differences), statistics.mean(ours[key] for key in both),
            statistics.mean(theirs[key] for key in both), middle, middle - spread, middle + spread))
    return lines


def section(found):
    """Of the page of search_quality.py."""
    return SECTION % (BATCHES, BATCH, ', '.join('%s %s' % item for item in sorted(found['versions'].items())),
                      '; '.join(sorted(found['runs'])), '\n'.join(rows(found['runs'])))


SECTION = '''## Batches of eight beside HEBO

%d batches of %d trials, of models of scikit-learn that bayesmark makes. 100 is the best value that any of the searches found, 0 the
middle one of those that random search tries. With %s. Problems, as model, data set and metric: %s.

| weft | Problems | Runs | Ahead | Score | HEBO's score | Difference (95%%) |
|---|---|---|---|---|---|---|
%s
'''


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('weft')
    parser.add_argument('results', type=pathlib.Path)
    parser.add_argument('--searches', default='random,bayesian,tpe,hebo')
    parser.add_argument('--seeds', type=int, default=1)
    parser.add_argument('--problems', type=int, default=len(PROBLEMS), help='how many of the %d' % len(PROBLEMS))
    flags = parser.parse_args()
    found = json.loads(flags.results.read_text()) if flags.results.exists() else {'versions': {}, 'runs': {}}
    for seed in range(flags.seeds):
        for name in PROBLEMS[:flags.problems]:
            config, loss = problem_of(name)
            for wanted in flags.searches.split(','):
                runs = found['runs'].setdefault(name, {}).setdefault(wanted, {})
                if str(seed) in runs:
                    continue
                began = time.monotonic()
                values = (hebo if wanted == 'hebo' else weft(flags.weft, wanted))(config, loss, seed)
                # The best one, and the middle one of all that were tried.
                runs[str(seed)] = [float('%.6g' % min(values)), float('%.6g' % statistics.median(values))]
                print('%s, %s, seed %d: %g after %d s' % (name, wanted, seed, min(values), time.monotonic() - began), flush=True)
            for package in ('HEBO', 'bayesmark', 'scikit-learn'):
                found['versions'][package] = importlib.metadata.version(package)
            flags.results.write_text(json.dumps(found, indent=1, sort_keys=True) + '\n')
    print('\n'.join(rows(found['runs'])))


if __name__ == '__main__':
    main()
