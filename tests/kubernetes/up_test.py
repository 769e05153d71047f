#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft up` by weft's own commands: the digits, restarts of the control plane, a folder that is taken.

    up_test.py WEFT DIGITS EXAMPLE_FOLDER
"""
import datetime
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import control_plane

WEFT, DIGITS, EXAMPLE = sys.argv[1:4]

SLEEPER = '''apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: sleeper}
spec:
  tfReplicaSpecs:
    Worker:
      replicas: 2
      restartPolicy: ExitCode
      template:
        spec:
          terminationGracePeriodSeconds: 1
          containers:
          - name: tensorflow
            image: i
            command: [sh, -c, "echo begun; exec sleep 1000.5"]
'''

# The program reads TF_CONFIG; its shell shows the flags.
COMPACT = '''apiVersion: krallistic.github.com/v1
kind: Tensorflow
metadata: {name: test-mnist-1}
spec:
  image: krallistic/mnist-between:v1
  ps_count: 1
  worker_count: 2
  clean_pod_policy: None
  command: [sh, -c, 'echo "flags: $*"; exec digits --steps 100 --data %(data)s --model_dir %(folder)s/model', sh]
'''


# Each worker does up to 20 pieces a second; worker 0 tells how many are done in all.
GROWING = '''apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: growing}
spec:
  elasticPolicy:
    maxReplicas: 3
    stabilizationWindowSeconds: 10
    metrics:
    - type: External
      external:
        metric: {name: examples-per-cost}
        target: {type: Value, value: "0.5"}
  tfReplicaSpecs:
    Worker:
      replicas: 1
      restartPolicy: OnFailure
      template:
        spec:
          terminationGracePeriodSeconds: 1
          containers:
          - name: tensorflow
            image: i
            command:
            - sh
            - -c
            - |
              while sleep 0.05; do
                echo >> %(folder)s/$HOSTNAME
                test $HOSTNAME = growing-worker-0 && echo step $(cat %(folder)s/growing-worker-* | wc -l)/100000
              done
'''


def sleepers():
    listed = subprocess.run(['ps', '-eo', 'args'], capture_output=True, text=True, check=True).stdout
    return sum(line.strip() == 'sleep 1000.5' for line in listed.splitlines())


class UpTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.plane = control_plane.ControlPlane(WEFT, self.temporary.name, DIGITS)
        self.plane.start()

    def tearDown(self):
        self.plane.stop()
        self.temporary.cleanup()

    def weft(self, *words, stdin=None):
        return self.plane.run(WEFT, *words, stdin=stdin)

    def test_the_digits_train(self):
        job = str(self.plane.folder / 'job.yaml')
        # The pods stay, for their logs: worker 1 may end after the job.
        text = self.plane.digits(EXAMPLE).replace('cleanPodPolicy: Running', 'cleanPodPolicy: None')
        self.assertIn('cleanPodPolicy: None', text)
        pathlib.Path(job).write_text(text)
        self.assertEqual(self.weft('apply', '-f', job), 'tfjob.kubeflow.org/digits created\n')
        followed = subprocess.Popen([WEFT, 'logs', '-f', 'tfjob/digits'], env=self.plane.environment,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(self.weft('wait', '--for=condition=Succeeded', 'tfjob', '--all', '--timeout=100s'),
                         'tfjob.kubeflow.org/digits condition met\n')
        followed.kill()
        followed.communicate()
        self.assertRegex(self.weft('get', 'tfjobs'), r'^NAME +STATE +PROGRESS +LEFT +AGE\ndigits +Succeeded +100% +0 +\d')
        self.assertIn('accuracy', self.weft('logs', 'digits-worker-0'))
        self.assertIn('[digits-worker-1] ', self.weft('logs', 'tfjob/digits'))
        self.assertIn('successfully completed', self.weft('describe', 'tfjob', 'digits'))
        self.assertEqual(self.weft('delete', '-f', job), 'tfjob.kubeflow.org "digits" deleted\n')
        deadline = time.monotonic() + 60
        while (left := self.weft('get', 'pods')) != 'No resources found in default namespace.\n':
            self.assertLess(time.monotonic(), deadline, left)
            time.sleep(0.1)

    def test_the_job_tells_how_stale_updates_are(self):
        """Those of workers that do not wait for each other; those of workers that do are never stale."""
        def train(flag):
            text = self.plane.digits(EXAMPLE).replace('"400"]', '"1000000"%s]' % flag).replace(
                str(self.plane.folder / 'model'), str(self.plane.folder / ('model' + flag[-1:])))
            self.weft('apply', '-f', '-', stdin=text)

        def time_of(progress):
            return datetime.datetime.strptime(progress['time'], '%Y-%m-%dT%H:%M:%SZ')

        def told(is_enough):
            deadline = time.monotonic() + 60
            while True:
                progress = json.loads(self.weft('get', 'tfjob', 'digits', '-o', 'json')).get('status', {}).get('progress', {})
                if is_enough(progress):
                    return progress
                self.assertLess(time.monotonic(), deadline, self.weft('logs', 'tfjob/digits')[-2000:])
                time.sleep(0.1)

        train(', --async')
        progress = told(lambda progress: progress.get('staleness', {}).get('highest', 0) > 0 and progress.get('step', 0) > 0)
        staleness = progress['staleness']
        self.assertGreater(staleness['mean'], 0)
        self.assertLessEqual(staleness['mean'], staleness['highest'])
        self.assertGreaterEqual(staleness['updates'], staleness['highest'])
        described = self.weft('describe', 'tfjob', 'digits')
        self.assertRegex(described, r'[Ss]taleness')
        self.assertRegex(self.weft('get', 'tfjob', '-o', 'wide'), r'STALENESS[^\n]*\ndigits .* \d+(\.\d+)?')
        self.weft('delete', 'tfjob', 'digits')
        wait = time.monotonic() + 60
        while 'digits' in self.weft('get', 'pods'):
            self.assertLess(time.monotonic(), wait)
            time.sleep(0.1)
        train('')
        # For longer than a server's first window, by the times that the worker has told.
        begun = time_of(told(lambda progress: progress.get('step', 0) > 0))
        progress = told(lambda progress: time_of(progress) - begun > datetime.timedelta(seconds=2))
        self.assertNotIn('staleness', progress)

    def test_the_compact_kind_trains(self):
        data = pathlib.Path(EXAMPLE).resolve() / 'digits.csv'
        job = str(self.plane.folder / 'compact.yaml')
        pathlib.Path(job).write_text(COMPACT % {'data': data, 'folder': self.plane.folder})
        self.assertEqual(self.weft('apply', '-f', job), 'tensorflow.krallistic.github.com/test-mnist-1 created\n')
        self.assertEqual(self.weft('wait', '--for=condition=Succeeded', 'tensorflow', '--all', '--timeout=100s'),
                         'tensorflow.krallistic.github.com/test-mnist-1 condition met\n')
        self.assertRegex(self.weft('get', 'tensorflow'),
                         r'^NAME +STATE +PS +WORKERS +PROGRESS +LEFT +AGE\ntest-mnist-1 +Succeeded +1 +2 +100% +0 +\d')
        logs = self.weft('logs', 'test-mnist-1-worker-1')
        self.assertRegex(logs, r'flags: --job_name=worker --task_index=1 --worker_hosts=127\.0\.0\.1:\d+,127\.0\.0\.1:\d+ '
                               r'--ps_hosts=127\.0\.0\.1:\d+\n')
        self.assertIn('accuracy', self.weft('logs', 'test-mnist-1-worker-0'))
        self.weft('delete', 'tensorflow', 'test-mnist-1')

    def test_the_operator_adds_workers_while_they_are_worth_it(self):
        folder = self.plane.folder / 'pieces'
        folder.mkdir()
        self.weft('apply', '-f', '-', stdin=GROWING % {'folder': folder})
        deadline = time.monotonic() + 90
        while json.loads(self.weft('get', 'tfjob', 'growing', '-o', 'json'))['spec']['tfReplicaSpecs']['Worker']['replicas'] != 3:
            self.assertLess(time.monotonic(), deadline, self.weft('describe', 'tfjob', 'growing'))
            time.sleep(0.5)
        self.assertRegex(self.weft('describe', 'tfjob', 'growing'), r'Scaled .*1 worker brought [0-9.]+ a second; from now on there are 3')
        # Measured with three too, which stay.
        while '3' not in json.loads(self.weft('get', 'tfjob', 'growing', '-o', 'json'))['status']['scaling']['rates']:
            self.assertLess(time.monotonic(), deadline, self.weft('describe', 'tfjob', 'growing'))
            time.sleep(0.5)
        status = json.loads(self.weft('get', 'tfjob', 'growing', '-o', 'json'))['status']['scaling']
        self.assertGreater(float(status['rates']['3']), 1.5 * float(status['rates']['1']), status)
        self.assertEqual(status['changes'], 1)
        self.weft('delete', 'tfjob', 'growing')

    def test_killed_control_planes_leave_nothing_and_go_on(self):
        self.weft('apply', '-f', '-', stdin=SLEEPER)
        self.weft('wait', '--for=condition=Ready', 'pod/sleeper-worker-0', 'pod/sleeper-worker-1', '--timeout=60s')
        self.assertEqual(sleepers(), 2)
        self.plane.stop(signal.SIGKILL)
        for _ in range(200):
            if sleepers() == 0:
                break
            signal.sigtimedwait([], 0.05)
        self.assertEqual(sleepers(), 0)
        self.plane.start()
        # What was lost counts as killed, which this policy starts again.
        self.weft('wait', '--for=condition=Running', 'tfjob/sleeper', '--timeout=60s')
        self.weft('wait', '--for=condition=Ready', 'pod/sleeper-worker-0', 'pod/sleeper-worker-1', '--timeout=60s')
        self.weft('delete', 'tfjob', 'sleeper')
        self.weft('wait', '--for=delete', 'pod/sleeper-worker-0', 'pod/sleeper-worker-1', '--timeout=60s')
        self.assertEqual(sleepers(), 0)

    def test_a_state_folder_has_one_control_plane(self):
        code, output = self.plane.run(WEFT, 'up', '--state', str(self.plane.folder / 'state'), check=False)
        self.assertEqual(code, 1)
        self.assertIn('in use by process %d' % self.plane.process.pid, output)

    def test_errors_name_the_file_once(self):
        path = self.plane.folder / 'wrong.yaml'
        for text in (SLEEPER.replace('replicas: 2', 'replicas: two'), 'a: [', COMPACT.replace('ps_count', 'ps_cuont')):
            path.write_text(text)
            code, output = self.plane.run(WEFT, 'apply', '-f', str(path), check=False)
            self.assertEqual((code, output.count(str(path))), (1, 1), output)

    def test_two_jobs_that_want_the_same_pods(self):
        self.weft('apply', '-f', '-', stdin=SLEEPER)
        self.weft('wait', '--for=condition=Ready', 'pod/sleeper-worker-0', '--timeout=60s')
        self.weft('apply', '-f', '-', stdin=COMPACT.replace('test-mnist-1', 'sleeper') % {'data': 'd', 'folder': 'f'})
        deadline = time.monotonic() + 60
        wanted = "it belongs to TFJob 'sleeper', which runs: give this Tensorflow another name, or delete that one"
        while wanted not in self.weft('describe', 'tensorflow', 'sleeper'):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        self.assertEqual(sleepers(), 2)
        self.weft('delete', 'tensorflow', 'sleeper')
        self.assertEqual(sleepers(), 2)
        self.weft('delete', 'tfjob', 'sleeper')

    def test_it_keeps_its_address_and_its_objects(self):
        self.weft('apply', '-f', '-', stdin=SLEEPER.replace('spec:\n  tf', 'spec:\n  runPolicy: {suspend: true}\n  tf'))
        before = self.plane.kubeconfig.read_text()
        self.assertEqual(self.plane.kubeconfig.stat().st_mode & 0o777, 0o600)
        self.assertEqual(self.plane.stop(), 0)
        self.plane.start()
        self.assertEqual(self.plane.kubeconfig.read_text(), before)
        self.assertIn('sleeper', self.weft('get', 'tfjob', '-o', 'name'))

    def test_the_doctor_looks_at_it(self):
        def doctor(*words, **variables):
            done = subprocess.run([WEFT, 'doctor', *words, '--json'], capture_output=True, text=True,
                                  env=dict(self.plane.environment, **variables))
            return done.returncode, {found['check']: found for found in json.loads(done.stdout)}
        code, findings = doctor()
        self.assertEqual((code, findings['kernel']['verdict']), (0, 'good'))
        code, findings = doctor('cluster')
        self.assertEqual(code, 0, findings)
        for check in 'server', 'TFJob', 'Tensorflow', 'rights', 'operator', 'nodes':
            self.assertEqual(findings[check]['verdict'], 'good', findings[check])
        self.assertEqual(findings['nodes']['found'], '1 of 1 ready, 0 GPUs (nvidia.com/gpu)')
        # Credentials that it does not take, then a server that has gone.
        text = self.plane.kubeconfig.read_text()
        wrong = self.plane.folder / 'wrong'
        wrong.write_text(re.sub(r'token: .*', 'token: expired', text))
        code, findings = doctor('cluster', KUBECONFIG=str(wrong))
        self.assertEqual(code, 1)
        self.assertIn('refuses these credentials', findings['server']['found'])
        self.assertIn('kubectl config view', findings['server']['next'])
        self.plane.stop()
        code, findings = doctor('cluster')
        self.assertEqual(code, 1)
        self.assertIn('does not answer', findings['server']['found'])

    def test_without_a_cluster_it_says_what_to_do(self):
        environment = dict(os.environ, KUBECONFIG='', HOME=self.temporary.name)
        done = subprocess.run([WEFT, 'get', 'pods'], env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn('`weft up` starts a control plane', done.stderr)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)
