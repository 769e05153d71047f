#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What it brings that the tasks of a job have processors of their own: two jobs, each of one parameter server and one
worker, on two processors of this machine.

    bench/processors.py --weft build/bin/weft --digits build/bin/digits [--python PYTHON_WITH_TENSORFLOW]
                        [--rounds 7] [--case NAME]... [--json FILE]

Both jobs run at the same time as pods of one `weft up` that has two processors. A round runs each case once without and
once with the annotation `weft.dev/job-processors: "1"`, first the one, then the other, by turns. A figure is what both
jobs do together in a second; printed are the medians, their ratio, and the least and the greatest ratio of a round.
"""
import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / 'tests' / 'kubernetes'))

import control_plane  # noqa: E402

JOBS = ('one', 'two')
# What runs, and what is held against the seed's claim.
CASES = {
    'tensorflow': 'the real TensorFlow, layers of 256: the usual case',
    'tensorflow-small': 'the real TensorFlow, layers of 16: next to nothing but messages',
    'weft': 'weft, the digits example, each worker at its own pace',
    'weft-small': 'the same with one digit a step: next to nothing but messages',
    'alone': 'one job of weft with nobody beside it: what it costs to have one processor only',
}


class Study:
    def __init__(self, flags):
        self.flags = flags

    def job(self, name, command, pinned):
        annotations = {'weft.dev/job-processors': '1'} if pinned else {}
        template = {'metadata': {'annotations': annotations}, 'spec': {'containers': [{
            'name': 'tensorflow', 'image': 'i', 'command': command, 'env': [{'name': 'JOB_NAME', 'value': name}]}]}}
        return {'apiVersion': 'kubeflow.org/v1', 'kind': 'TFJob', 'metadata': {'name': name}, 'spec': {
            'tfReplicaSpecs': {kind: {'replicas': 1, 'restartPolicy': 'Never', 'template': template} for kind in ('PS', 'Worker')}}}

    def steps(self, case):
        return self.flags.steps * (4 if case.endswith('small') else 1)

    def command(self, case, name, folder):
        if case.startswith('tensorflow'):
            width = '16' if case.endswith('small') else '256'
            return [self.flags.python, str(ROOT / 'bench/peers/tensorflow_job.py'), str(folder), str(self.flags.seconds), width]
        return [self.flags.digits, '--async', '--data', str(ROOT / 'examples/digits/digits.csv'), '--model_dir',
                str(folder / name), '--steps', str(self.steps(case)), *(['--batch', '1'] if case.endswith('small') else [])]

    def wait_for(self, is_so, what, names, seconds=600):
        deadline = time.monotonic() + seconds
        looked = 0
        while not is_so():
            if time.monotonic() - looked > 2:
                looked = time.monotonic()
                for name in names:
                    self.conditions(name)
            if time.monotonic() > deadline:
                raise RuntimeError('after %d s there is still no %s:\n%s' % (seconds, what, self.describe()))
            time.sleep(0.1)

    def describe(self):
        return self.plane.run(self.flags.weft, 'get', 'pods', '-o', 'json')[-3000:] + self.plane.log.read_text()[-1000:]

    def conditions(self, name):
        status = json.loads(self.plane.run(self.flags.weft, 'get', 'tfjob', name, '-o', 'json')).get('status', {})
        found = {each['type'] for each in status.get('conditions', []) if each['status'] == 'True'}
        if 'Failed' in found:
            raise RuntimeError('job %s failed: %s' % (name, self.describe()))
        return found

    def run_once(self, case, pinned):
        """What both do together in a second."""
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            self.plane = control_plane.ControlPlane(self.flags.weft, folder, self.flags.weft)
            self.plane.start()
            try:
                return self.measure(case, pinned, folder)
            finally:
                self.plane.stop()

    def measure(self, case, pinned, folder):
        names = JOBS[:1] if case == 'alone' else JOBS
        text = '\n---\n'.join(json.dumps(self.job(name, self.command(case, name, folder), pinned)) for name in names)
        start = time.monotonic()
        self.plane.run(self.flags.weft, 'apply', '-f', '-', stdin=text)
        if case.startswith('tensorflow'):
            self.wait_for(lambda: all((folder / (name + '.ready')).exists() for name in names), 'worker that is ready', names)
            (folder / 'go').touch()
            self.wait_for(lambda: all((folder / (name + '.rate')).exists() for name in names), 'rate', names)
            return sum(float((folder / (name + '.rate')).read_text()) for name in names)
        steps = self.steps(case)
        self.wait_for(lambda: all('Succeeded' in self.conditions(name) for name in names), 'job that has succeeded', names)
        return len(names) * steps / (time.monotonic() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--weft', default=str(ROOT / 'build/bin/weft'))
    parser.add_argument('--digits', default=str(ROOT / 'build/bin/digits'))
    parser.add_argument('--python', help='that of an environment with TensorFlow; without it those cases are left out')
    parser.add_argument('--rounds', type=int, default=7)
    parser.add_argument('--seconds', type=float, default=10, help='of each measurement of TensorFlow')
    parser.add_argument('--steps', type=int, default=6000, help='of each job of weft')
    parser.add_argument('--case', action='append', choices=sorted(CASES))
    parser.add_argument('--json', help='write all figures here')
    flags = parser.parse_args()
    flags.weft, flags.digits = os.path.abspath(flags.weft), os.path.abspath(flags.digits)
    flags.python = flags.python and os.path.abspath(flags.python)  # the pods have a folder of their own
    processors = sorted(os.sched_getaffinity(0))
    if len(processors) < 2:
        sys.exit('processors.py: two processors are needed, here is one')
    os.sched_setaffinity(0, processors[:2])
    cases = flags.case or [case for case in CASES if flags.python or not case.startswith('tensorflow')]
    study = Study(flags)
    figures = {case: {'free': [], 'own': []} for case in cases}
    for number in range(flags.rounds):
        for case in cases:
            order = ('free', 'own') if number % 2 == 0 else ('own', 'free')
            for kind in order:
                figures[case][kind].append(study.run_once(case, kind == 'own'))
            free, own = figures[case]['free'][-1], figures[case]['own'][-1]
            print('round %d %-17s %9.1f %9.1f  %.2f' % (number + 1, case, free, own, own / free), flush=True)
    print('\n%-17s %12s %12s %7s   %s' % ('case', 'free, 1/s', 'own, 1/s', 'ratio', 'of a round'))
    for case in cases:
        free, own = (statistics.median(figures[case][kind]) for kind in ('free', 'own'))
        ratios = [b / a for a, b in zip(figures[case]['free'], figures[case]['own'])]
        print('%-17s %12.1f %12.1f %7.2f   %.2f to %.2f   %s' % (case, free, own, own / free, min(ratios), max(ratios), CASES[case]))
    if flags.json:
        pathlib.Path(flags.json).write_text(json.dumps(figures, indent=1) + '\n')


if __name__ == '__main__':
    main()
