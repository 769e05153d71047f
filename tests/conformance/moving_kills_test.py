#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processes are killed while a parameter server goes from pod to pod on `weft up`: moving_kills_test.py WEFT [--kills N] [--seed N].

Killed is the process that gives its task away, the one that takes it over, the parameter server that keeps the leases, or the worker
itself. The job goes on: where nothing was lost no step counts twice, and where something was the worker says from where it went on. Each
record is counted once, the job succeeds, and no process is left.
"""
import json
import os
import pathlib
import random
import re
import signal
import sys
import tempfile
import time
import unittest

import processes

sys.path.insert(0, os.path.join(processes.ROOT, 'tests', 'kubernetes'))
import control_plane

BINARY = None
KILLS = 2
SEED = 1
ROLES = ['target', 'source', 'keeper', 'client']
LINES_BETWEEN = 2
RECORDS_OF_KILL = 600  # more than go by
PATIENCE = 120  # seconds: nothing hangs
# Of one job: a container that ends again and again is started later each time, as a kubelet does it, in the end after 300 s.
MOST_KILLS = 12
JOB = '''apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: kills}
spec:
  elasticPolicy: {minReplicas: 1, maxReplicas: 2}
  runPolicy: {cleanPodPolicy: Running, backoffLimit: 1000}
  tfReplicaSpecs:
    PS:
      replicas: 2
      restartPolicy: OnFailure
      template: &template
        spec:
          containers:
          - name: tensorflow
            image: i
            env: [{name: WEFT_LEASE_FOLDER, value: "%(folder)s/leases"}]
            command: [%(python)s, -m, weft, %(program)s, "%(records)d", "%(folder)s/model"]
    Worker:
      replicas: 1
      restartPolicy: OnFailure
      template: *template
'''


def descendants(pid):
    """{pid: its environment} of all that this process has started."""
    parents = {}
    for entry in pathlib.Path('/proc').iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / 'stat').read_text().rsplit(')', 1)[1].split()[1])
            except (OSError, IndexError):
                continue
    found, open_ends = {}, {pid}
    while open_ends:
        open_ends = {child for child, parent in parents.items() if parent in open_ends}
        for child in open_ends:
            try:
                pairs = (pathlib.Path('/proc') / str(child) / 'environ').read_bytes().decode(errors='replace').split('\0')
            except OSError:
                continue
            found[child] = dict(pair.split('=', 1) for pair in pairs if '=' in pair)
    return found


class KillsTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.plane = control_plane.ControlPlane(BINARY, self.temporary.name, BINARY)
        self.plane.environment.update(PYTHONPATH=os.path.join(processes.ROOT, 'python'), WEFT_BINARY=BINARY, PYTHONUNBUFFERED='1')
        self.plane.start()
        self.addCleanup(self.plane.stop)
        self.said = {}  # of each container that there was, by its pod's name and uid and its first line, which has a time

    def weft(self, *words, **options):
        return self.plane.run(BINARY, *words, **options)

    def pods(self):
        """{name: uid} of what is there; what they say is kept."""
        there = {}
        for pod in json.loads(self.weft('get', 'pods', '-o', 'json'))['items']:
            name, uid = pod['metadata']['name'], pod['metadata']['uid']
            there[name] = uid
            code, text = self.weft('logs', name, check=False)
            if code == 0 and '\n' in text:
                self.said[name, uid, text.split('\n')[0]] = text
        return there

    def wait_for(self, condition, what, seconds=PATIENCE):
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                self.pods()
                self.fail('\n'.join([what, self.weft('get', 'pods'), self.weft('describe', 'tfjob')] +
                                    ['%s:\n%s' % (name, text[-2500:]) for (name, *_), text in self.said.items()]))
            time.sleep(0.1)

    def worker_says(self):
        self.pods()
        return ''.join(text for (name, *_), text in self.said.items() if name.startswith('kills-worker'))

    def lines(self):
        return len(re.findall(r'^step \d+/', self.worker_says(), re.M))

    def train(self):
        wanted = self.lines() + LINES_BETWEEN
        self.wait_for(lambda: self.lines() >= wanted, 'training stands still')

    def tasks(self):
        """[(task, whether it takes its task over, pid)] of the servers and programs that run."""
        found = []
        for pid, environment in descendants(self.plane.process.pid).items():
            task = json.loads(environment.get('TF_CONFIG', 'null'))
            if task:
                found.append(('%s-%d' % (task['task']['type'], task['task']['index']), environment.get('WEFT_TAKE_OVER_FROM'), pid))
        return found

    def kill(self, role, before):
        """All processes of the role; `before` are those that had ps-1 before its move."""
        killed = 0
        for task, takes, pid in self.tasks():
            is_it = {'target': task == 'ps-1' and pid not in before, 'source': pid in before, 'keeper': task == 'ps-0',
                     'client': task == 'worker-0'}[role]
            if is_it:
                try:
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
                except ProcessLookupError:
                    pass
        return killed

    def test_a_move_is_cut_off(self):
        chance = random.Random(SEED)
        for first in range(0, KILLS, MOST_KILLS):
            self.cut_moves_off(range(first, min(first + MOST_KILLS, KILLS)), chance)

    def cut_moves_off(self, numbers, chance):
        """By a job of its own."""
        records = 400 + len(numbers) * RECORDS_OF_KILL
        folder = pathlib.Path(self.temporary.name) / str(numbers[0])
        folder.mkdir()
        self.said.clear()
        self.weft('apply', '-f', '-', stdin=JOB % {
            'python': sys.executable, 'program': str(pathlib.Path(processes.HERE) / 'moving_kills_program.py'), 'records': records,
            'folder': folder})
        self.train()
        for number in numbers:
            role = ROLES[number % len(ROLES)]
            before = {pid for task, _, pid in self.tasks() if task == 'ps-1'}
            there = self.pods()
            old = [name for name in there if name.startswith('kills-ps-1')]
            begun = time.monotonic()
            self.weft('delete', 'pod', old[0], '--wait=false')
            self.wait_for(lambda: any(task == 'ps-1' and pid not in before for task, _, pid in self.tasks()), 'nobody takes ps-1 over')
            wait = chance.uniform(0, 4)
            if role == 'target' or role == 'source':
                # While the bytes go over, more often than not.
                self.wait_for(lambda: self.is_begun(old[0], there[old[0]]), 'the move does not begin')
                wait = chance.uniform(0, 0.3)
            time.sleep(wait)
            killed = self.kill(role, before)
            self.wait_for(lambda: there[old[0]] not in self.pods().values(), '%s is not gone' % old[0])
            self.train()
            self.assertNotIn('records counted', self.worker_says(), 'it ended too early')
            print('%s after %.2f s: %d killed, %.1f s' % (role, wait, killed, time.monotonic() - begun), flush=True)
        (folder / 'model' / 'enough').touch()
        self.wait_for(lambda: 'Succeeded' in self.weft('get', 'tfjob', 'kills'), 'the job does not end', len(numbers) * PATIENCE)
        self.check(records)
        self.weft('delete', 'tfjob', 'kills')
        self.wait_for(lambda: not self.pods(), 'its pods stay')

    def is_begun(self, name, uid):
        there = self.pods()
        said = ''.join(text for key, text in self.said.items() if key[:2] == (name, uid))
        return 'Another process, at' in said or there.get(name) != uid

    def check(self, records):
        text = self.worker_says()
        found = re.search(r'(\d+) steps and (\d+) done again, all weights (\d+) to (\d+), (\d+) records counted', text)
        self.assertIsNotNone(found, text[-3000:])
        steps, again, least, most, counted = map(int, found.groups())
        self.assertEqual(counted, records)
        self.assertEqual(least, most)
        print(found[0])
        self.wait_for(lambda: not self.tasks(), 'something is left')


if __name__ == '__main__':
    BINARY = processes.binary_from(sys.argv)
    globals().update(processes.numbers_from(sys.argv, 'KILLS', 'SEED'))
    unittest.main()
