# SPDX-License-Identifier: Apache-2.0
"""Search for the best parameters of a Python function: ask what to try, tell what came of it.

    from weft import search

    with search.Study('lr=log(1e-4,1e-1) layers=2..5 optimizer={sgd,adam}', maximize='accuracy') as study:
        for _ in range(30):
            trial = study.ask()
            study.tell(trial, train(**trial.values))
        print(study.best())

The study itself is `weft tune --serve`, so the program `weft` has to be found. It goes on where it was left: what was
asked and told lies in `folder`.
"""
import collections
import json
import os
import subprocess
import tempfile


class NothingLeft(Exception):
    """Every point of the space was tried."""


class MustWait(Exception):
    """The algorithm wants to see how trials end before it suggests another one."""


class Trial(collections.namedtuple('Trial', 'number values parent value state')):
    """`values` are int, float or str by the parameter's name; what its condition rules out is not there. `parent` is the
    number of the trial whose checkpoint it goes on from, `value` what came of one that is known to have succeeded."""


def _number(text):
    for kind in int, float:
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _trial(answer):
    return Trial(answer['trial'], {name: _number(text) for name, text in answer['values'].items()}, answer.get('parent'),
                 answer.get('value'), answer.get('state', 'running'))


class Study:
    """Not thread-safe. Objectives are names, one or a list; with several of them `tell` takes as many values, those to
    maximize first."""

    def __init__(self, space, maximize=(), minimize=(), algorithm=None, seed=0, settings=None, folder=None, weft=None):
        self._temporary = None
        if folder is None:
            self._temporary = tempfile.TemporaryDirectory()
            folder = self._temporary.name
        words = [weft or os.environ.get('WEFT_BINARY', 'weft'), 'tune', '--serve', '--space', space, '--seed', str(seed), '--out', folder]
        for flag, names in (('--maximize', maximize), ('--minimize', minimize)):
            for name in [names] if isinstance(names, str) else names:
                words += [flag, name]
        if algorithm is not None:
            words += ['--algorithm', algorithm]
        for name, value in (settings or {}).items():
            words += ['--setting', '%s=%s' % (name, value)]
        self._errors = tempfile.TemporaryFile()
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
                                         universal_newlines=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends the study's process. What was asked and told stays in the folder."""
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._errors.close()
        if self._temporary is not None:
            self._temporary.cleanup()

    def _call(self, **question):
        try:
            self._process.stdin.write(json.dumps(question) + '\n')
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ''
        if not line:
            self._process.wait()
            self._errors.seek(0)
            raise ValueError(self._errors.read().decode(errors='replace').strip() or 'weft tune has ended')
        answer = json.loads(line)
        if 'error' in answer:
            raise ValueError(answer['error'])
        return answer

    def ask(self, count=None):
        """The next trial; with a count a list of at most so many. MustWait or NothingLeft when there is none."""
        answer = self._call(ask=1 if count is None else count)
        trials = [_trial(item) for item in answer['trials']]
        if not trials:
            raise MustWait() if answer['state'] == 'wait' else NothingLeft()
        return trials[0] if count is None else trials

    def tell(self, trial, value, violation=0.0):
        """What came of a trial (or its number): a number, or a list of them for several objectives. `violation` says by how
        much it breaks constraints."""
        number = trial.number if isinstance(trial, Trial) else trial
        values = [float(item) for item in value] if isinstance(value, (list, tuple)) else [float(value)]
        self._call(tell=number, values=values, violation=float(violation))

    def fail(self, trial):
        self._call(fail=trial.number if isinstance(trial, Trial) else trial)

    def best(self):
        """The best trial; None before one has succeeded."""
        answer = self._call(best=True)
        return _trial(answer)._replace(state='succeeded') if answer else None

    def front(self):
        """Numbers of the trials that no other one beats in all objectives."""
        return self._call(front=True)['trials']

    def trials(self):
        return [_trial(item) for item in self._call(trials=True)['trials']]

    def optimize(self, function, trials):
        """Calls function(**values) so many times; one that raises has failed. The best trial."""
        for _ in range(trials):
            try:
                trial = self.ask()
            except NothingLeft:
                break
            try:
                value = function(**trial.values)
            except Exception:  # pylint: disable=broad-except
                self.fail(trial)
                continue
            self.tell(trial, value)
        return self.best()
