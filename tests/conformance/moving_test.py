#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A parameter server's pod is deleted on `weft up` while a job trains on it, and the number of these pods changes: moving_test.py WEFT
[--megabytes N].

The job has an elasticPolicy, so another pod takes the task over. No step of the program fails, none is lost, none counts twice; nor
does a record that is leased. A program that knows two parameter servers goes on while these go into one pod and apart again.
"""
import json
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
MEGABYTES = 1  # of a table of which each step writes some rows
SCALED_RECORDS = 1000
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
            command: [%(python)s, -m, weft, %(program)s, "%(records)d", "%(megabytes)d"]
    Worker:
      replicas: 1
      restartPolicy: Never
      template: *template
'''
# Programs know two parameter servers, in as many pods as replicas says.
SCALED_JOB = '''apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: scaled}
spec:
  runPolicy: {cleanPodPolicy: Running}
  tfReplicaSpecs:
    PS:
      replicas: 2
      elasticPolicy: {maxReplicas: 2}
      restartPolicy: OnFailure
      template: {spec: {containers: [{name: tensorflow, image: i, command: [weft, server]}]}}
    Worker:
      template:
        spec:
          containers:
          - name: tensorflow
            image: i
            command: [%(python)s, -m, weft, %(program)s, "%(records)d", "%(megabytes)d"]
'''
# The operator chooses how many pods they share.
CHOSEN = '''{maxReplicas: 2, stabilizationWindowSeconds: 10, metrics: [{type: External, external: {metric: {name: examples-per-cost},
        target: {type: Value, value: "0.5"}}}]}'''
# Its worker is as fast as a file says, which the test writes as if the servers were what it waits for.
LIMITED_JOB = '''apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: limited}
spec:
  runPolicy: {cleanPodPolicy: Running}
  tfReplicaSpecs:
    PS:
      replicas: 1
      elasticPolicy: %(chosen)s
      restartPolicy: OnFailure
      template: {spec: {containers: [{name: tensorflow, image: i, command: [weft, server]}]}}
    Worker:
      replicas: 2
      template:
        spec:
          containers:
          - name: tensorflow
            image: i
            command: [sh, -c, 'n=0; while sleep $(cat %(delay)s); do n=$((n+1)); echo step $n/100000; done']
'''


def every_step_once(records):
    """What the program says at its end."""
    return '%d steps of %d, all weights %d to %d, %d rows written, %d records counted' % ((records,) * 4 + (records * 64, records))


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

    def step(self, job='moving'):
        code, text = self.weft('logs', job + '-worker-0', check=False)
        return max([0] + [int(one) for one in re.findall(r'step (\d+)/', text)]) if code == 0 else 0

    def pods(self):
        return re.findall(r'^(\w+-(?:ps|worker)\S*) ', self.weft('get', 'pods'), re.M)

    def wait_for(self, condition, what, seconds=90):
        deadline = time.monotonic() + seconds
        while not condition():
            for pod in self.pods():
                code, text = self.weft('logs', pod, check=False)
                if code == 0:
                    self.logs[pod] = text  # of the last that had the name
            if time.monotonic() > deadline:
                logs = ['%s:\n%s' % (pod, text[-3000:]) for pod, text in self.logs.items()]
                self.fail('\n'.join([what, self.weft('get', 'pods'), self.weft('describe', 'tfjob')] + logs))
            time.sleep(0.2)

    def wait_for_steps(self, more, job='moving'):
        wanted = self.step(job) + more
        self.wait_for(lambda: self.step(job) >= wanted, 'step %d' % wanted)

    def check_pauses(self, log, moves, what):
        pauses = re.findall(r'was taken over: .*steps waited for (\S+) while', log)
        self.assertEqual(len(pauses), moves, log)
        print('%s: steps waited for %s' % (what, ', '.join(pauses)))
        for pause in pauses:  # Under a second it is told in parts of one.
            self.assertRegex(pause, r'^[\d.]+[mun]s$')

    def test_its_pod_is_deleted_while_steps_go_on(self):
        program = str(pathlib.Path(processes.HERE) / 'moving_program.py')
        self.weft('apply', '-f', '-', stdin=JOB % {'python': sys.executable, 'program': program, 'records': RECORDS,
                                                        'megabytes': MEGABYTES})
        self.wait_for_steps(20)
        for old, new in [('moving-ps-0', 'moving-ps-0-next'), ('moving-ps-0-next', 'moving-ps-0')]:
            self.weft('delete', 'pod', old, '--wait=false')
            self.wait_for(lambda: 'was taken over' in self.weft('logs', new, check=False)[1], '%s takes the task over' % new)
            self.check_pauses(self.weft('logs', new), 1, 'into ' + new)
            self.wait_for(lambda: not re.search(r'^%s ' % old, self.weft('get', 'pods'), re.M), '%s ends' % old)
            self.wait_for_steps(50)
        self.weft('wait', '--for=condition=Succeeded', 'tfjob/moving', '--timeout=120s')
        text = self.weft('logs', 'moving-worker-0')
        self.assertIn(every_step_once(RECORDS), text)
        # With the job's end the server goes, though nobody takes it over.
        ended = time.monotonic()
        self.wait_for(lambda: 'moving-ps' not in self.weft('get', 'pods'), 'the server ends with the job')
        self.assertLess(time.monotonic() - ended, 15)
        self.assertIn('ServerMoves', self.weft('describe', 'tfjob', 'moving'))
        print(re.search(r'the longest step took.*', text)[0], 'of', RECORDS, 'with two moves')

    def scale(self, pods, check=True):
        return self.weft('scale', 'tfjob/scaled', '--replicas', str(pods), '--replica_type', 'PS', check=check)

    def test_two_servers_go_into_one_pod_and_apart_again(self):
        program = str(pathlib.Path(processes.HERE) / 'moving_program.py')
        self.weft('apply', '-f', '-', stdin=SCALED_JOB % {'python': sys.executable, 'program': program, 'records': SCALED_RECORDS,
                                                         'megabytes': MEGABYTES})
        self.wait_for_steps(20, 'scaled')
        for pods, place in [(1, ['scaled-ps-0-to-1']), (2, ['scaled-ps-0', 'scaled-ps-1'])]:
            self.scale(pods)
            self.wait_for(lambda: self.pods() == place + ['scaled-worker-0'], 'the servers are in %s' % ', '.join(place))
            log = ''.join(self.weft('logs', pod) for pod in place)
            self.check_pauses(log, 2, 'into %d' % pods)
            job = json.loads(self.weft('get', 'tfjob', 'scaled', '-o', 'json'))
            self.assertEqual(job['status']['servers']['pods'], pods)
            self.assertEqual(job['status']['replicaStatuses']['PS']['active'], pods)
            self.assertNotIn('restarts', job['status'])
            self.wait_for_steps(50, 'scaled')
        for wrong in (0, 3):
            code, text = self.scale(wrong, check=False)
            self.assertNotEqual(code, 0)
            self.assertIn('PS.replicas: holds %d, its elasticPolicy allows 1 to 2' % wrong, text)
        self.weft('wait', '--for=condition=Succeeded', 'tfjob/scaled', '--timeout=120s')
        text = self.weft('logs', 'scaled-worker-0')
        self.assertIn(every_step_once(SCALED_RECORDS), text)
        told = self.weft('describe', 'tfjob', 'scaled')
        for event in ('ServersScaled', 'ServersMove', 'ServersMoved'):
            self.assertIn(event, told)
        print(re.search(r'the longest step took.*', text)[0], 'of', SCALED_RECORDS, 'with four moves')

    def test_the_operator_follows_what_servers_bring(self):
        program = str(pathlib.Path(processes.HERE) / 'moving_program.py')
        delay = pathlib.Path(self.temporary.name) / 'delay'
        delay.write_text('0.2')
        job = SCALED_JOB.replace('{maxReplicas: 2}', CHOSEN) % {'python': sys.executable, 'program': program, 'records': 100000,
                                                         'megabytes': MEGABYTES}
        self.assertIn('examples-per-cost', job)
        self.weft('apply', '-f', '-', stdin=job)
        self.weft('apply', '-f', '-', stdin=LIMITED_JOB % {'chosen': CHOSEN, 'delay': delay})
        # A second pod brings the first job nothing, on this machine, and would double the other.
        self.wait_for(lambda: self.pods() == ['limited-ps-0', 'limited-ps-1', 'limited-worker-0', 'limited-worker-1', 'scaled-ps-0-to-1',
                                              'scaled-worker-0'], 'the pods that are worth their price')
        delay.write_text('0.1')
        counted = {}
        for name in ('limited', 'scaled'):
            scaling = json.loads(self.weft('get', 'tfjob', name, '-o', 'json'))['status']['scaling']
            self.assertEqual(scaling['changes'], 1, scaling)
            counted[name] = scaling['reason']
            self.assertIn('Scaled', self.weft('describe', 'tfjob', name))
        self.assertRegex(counted['limited'], '2 workers and 1 pod of parameter servers brought .* there are 2 workers and 2 pods')
        self.assertRegex(counted['scaled'], '1 worker and 2 pods of parameter servers brought .* there are 1 worker and 1 pod')
        # What was expected is so: it stays.
        for name, counts in [('limited', '2+2'), ('scaled', '1+1')]:
            def scaling():
                return json.loads(self.weft('get', 'tfjob', name, '-o', 'json'))['status']['scaling']
            self.wait_for(lambda: counts in scaling()['rates'], '%s is measured' % counts)
            self.assertEqual(scaling()['changes'], 1, scaling())
            told = self.weft('plan', 'tfjob/' + name)
            self.assertIn('It stays at ' + {'limited': '2 workers and 2 pods', 'scaled': '1 worker and 1 pod'}[name], told)
            print(told)


if __name__ == '__main__':
    BINARY = processes.binary_from(sys.argv)
    globals().update(processes.numbers_from(sys.argv, 'MEGABYTES'))
    unittest.main()
