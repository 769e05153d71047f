# SPDX-License-Identifier: Apache-2.0
"""Searches by name: weft's algorithms and its peers'. Each takes a problem of search_problems.py, how many evaluations and a seed,
and returns the values in their order."""
import importlib.metadata
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'python'))
from weft import search  # noqa: E402

MEMORY = '/dev/shm' if pathlib.Path('/dev/shm').is_dir() else None


def weft(binary, algorithm):
    def run(problem, evaluations, seed):
        values = []
        space = ' '.join(p.word() for p in problem.parameters)
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder, search.Study(
                space, minimize='loss', algorithm=algorithm, seed=seed, folder=folder, weft=binary) as study:
            for _ in range(evaluations):
                trial = study.ask()
                values.append(problem(trial.values))
                study.tell(trial, values[-1])
        return values
    return run


def optuna_sampler(name, **settings):
    def run(problem, evaluations, seed):
        import optuna
        import warnings
        warnings.simplefilter('ignore')
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        values = []

        def suggest(trial, p):
            if p.choices:
                return trial.suggest_categorical(p.name, p.choices)
            if p.is_int:
                return trial.suggest_int(p.name, int(p.low), int(p.high))
            return trial.suggest_float(p.name, p.low, p.high)

        def objective(trial):
            found = {}
            for p in problem.parameters:
                if p.condition is None or found.get(p.condition[0]) == p.condition[1]:
                    found[p.name] = suggest(trial, p)
            values.append(problem(found))
            return values[-1]
        study = optuna.create_study(sampler=getattr(optuna.samplers, name)(seed=seed, **settings))
        study.optimize(objective, n_trials=evaluations)
        return values
    return run


def pycma(problem, evaluations, seed):
    """From the middle with a sixth of the range, as weft and Optuna do; with restarts by twice the population."""
    import cma
    values, names = [], [p.name for p in problem.parameters]

    class Enough(Exception):
        pass

    def function(x):
        if len(values) >= evaluations:
            raise Enough
        values.append(problem(dict(zip(names, x))))
        return values[-1]
    low, high = problem.parameters[0].low, problem.parameters[0].high
    try:
        cma.fmin2(function, [(low + high) / 2] * len(names), (high - low) / 6, {'seed': seed + 1, 'bounds': [low, high], 'verbose': -9},
                  restarts=9)
    except Enough:
        pass
    return values + [min(values)] * (evaluations - len(values))


def skopt_gp(problem, evaluations, seed):
    import skopt
    import warnings
    warnings.simplefilter('ignore')
    dimensions = [skopt.space.Categorical(p.choices, name=p.name) if p.choices else
                  skopt.space.Integer(int(p.low), int(p.high), name=p.name) if p.is_int else skopt.space.Real(p.low, p.high, name=p.name)
                  for p in problem.parameters]
    names = [p.name for p in problem.parameters]
    found = skopt.gp_minimize(lambda x: problem(dict(zip(names, x))), dimensions, n_calls=evaluations, random_state=seed)
    return list(found.func_vals)


# By the names that the page shows.
PEERS = {'optuna.RandomSampler': optuna_sampler('RandomSampler'),
         'optuna.QMCSampler': optuna_sampler('QMCSampler'),
         'optuna.TPESampler': optuna_sampler('TPESampler'),
         'optuna.CmaEsSampler': optuna_sampler('CmaEsSampler'),
         'optuna.GPSampler': optuna_sampler('GPSampler'),
         'pycma': pycma,
         'skopt.gp_minimize': skopt_gp}
PACKAGES = {'optuna': 'optuna', 'pycma': 'cma', 'skopt': 'scikit-optimize'}


def version_of(peer):
    return importlib.metadata.version(PACKAGES[peer.split('.')[0]])
