#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A parameter server's pod is deleted on `weft up` while a job trains on it: moving_test.py WEFT.

The job has an elasticPolicy, so another pod takes the task over. No step of the program fails, none is lost, none counts twice; nor
does a record that is leased.
"""
import os
import pathlib
import re
import sys
import tempfile
import time
import unittest

import processes

sys.path.insert(0, os.path.join(processes.ROOT, 'tests', 'kubernetes'))
import control_plane

BINARY = None
RECORDS = 3000
JOB = '''apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: moving}
spec:
  elasticPolicy: {minReplicas: 1, maxReplicas: 2}
  runPolicy: {cleanPodPolicy: Running}
  tfReplicaSpecs:
    PS:
      replicas: 1
      restartPolicy: OnFailure
      template: &template
        spec:
          containers:
          - name: tensorflow
            image: i
            command: [%(python)s, -m, weft, %(program)s, "%(records)d"]
    Worker:
      replicas: 1
      restartPolicy: Never
      template: *template
'''


class MovingTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.logs = {}
        self.plane = control_plane.ControlPlane(BINARY, self.temporary.name, BINARY)
        self.plane.environment.update(PYTHONPATH=os.path.join(processes.ROOT, 'python'), WEFT_BINARY=BINARY)
        self.plane.start()
        self.addCleanup(self.plane.stop)

    def weft(self, *words, **options):
        return self.plane.run(BINARY, *words, **options)

    def step(self):
        code, text = self.weft('logs', 'moving-worker-0', check=False)
        return max([0] + [int(one) for one in re.findall(r'step (\d+)/', text)]) if code == 0 else 0

    def wait_for(self, condition, what, seconds=90):
        deadline = time.monotonic() + seconds
        while not condition():
            for pod in ('moving-ps-0', 'moving-ps-0-next', 'moving-worker-0'):
                code, text = self.weft('logs', pod, check=False)
                if code == 0:
                    self.logs[pod] = text  # of the last that had the name
            if time.monotonic() > deadline:
                logs = ['%s:\n%s' % (pod, text[-3000:]) for pod, text in self.logs.items()]
                self.fail('\n'.join([what, self.weft('get', 'pods'), self.weft('describe', 'tfjob', 'moving')] + logs))
            time.sleep(0.2)

    def wait_for_steps(self, more):
        wanted = self.step() + more
        self.wait_for(lambda: self.step() >= wanted, 'step %d' % wanted)

    def test_its_pod_is_deleted_while_steps_go_on(self):
        program = str(pathlib.Path(processes.HERE) / 'moving_program.py')
        self.weft('apply', '-f', '-', stdin=JOB % {'python': sys.executable, 'program': program, 'records': RECORDS})
        self.wait_for_steps(20)
        for old, new in [('moving-ps-0', 'moving-ps-0-next'), ('moving-ps-0-next', 'moving-ps-0')]:
            self.weft('delete', 'pod', old, '--wait=false')
            self.wait_for(lambda: 'was taken over' in self.weft('logs', new, check=False)[1], '%s takes the task over' % new)
            self.wait_for(lambda: not re.search(r'^%s ' % old, self.weft('get', 'pods'), re.M), '%s ends' % old)
            self.wait_for_steps(50)
        self.weft('wait', '--for=condition=Succeeded', 'tfjob/moving', '--timeout=120s')
        text = self.weft('logs', 'moving-worker-0')
        self.assertIn('%d steps of %d, all weights %d to %d, %d records counted' % ((RECORDS,) * 5), text)
        # With the job's end the server goes, though nobody takes it over.
        ended = time.monotonic()
        self.wait_for(lambda: 'moving-ps' not in self.weft('get', 'pods'), 'the server ends with the job')
        self.assertLess(time.monotonic() - ended, 15)
        self.assertIn('ServerMoves', self.weft('describe', 'tfjob', 'moving'))
        print(re.search(r'the longest step took.*', text)[0], 'of', RECORDS, 'with two moves')


if __name__ == '__main__':
    BINARY = processes.binary_from(sys.argv)
    unittest.main()
