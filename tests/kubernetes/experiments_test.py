#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Experiments by kubectl: on `weft up`, and by `weft operator --experiments` on a real control plane with its own rights.

    experiments_test.py WEFT
"""
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

import cluster
import control_plane

WEFT = sys.argv[1]
HERE = pathlib.Path(__file__).resolve().parent
DEPLOY = HERE.parent.parent / 'deploy'

# Better near 0.03, known to two digits.
SCORE = 'sleep %(pause)s; echo "accuracy=0.1"; awk "BEGIN { d = %(lr)s - 0.03; print \\"accuracy=\\" 0.9 - d * d * 100, \\"loss=2\\" }"'

EXPERIMENT = '''apiVersion: kubeflow.org/%(version)s
kind: Experiment
metadata: {name: %(name)s}
spec:
  objective: {type: maximize, goal: 0.99, objectiveMetricName: accuracy, additionalMetricNames: [loss]}
  algorithm: {algorithmName: %(algorithm)s}
  parallelTrialCount: 3
  maxTrialCount: %(trials)d
  maxFailedTrialCount: 2
  parameters:
  - {name: lr, parameterType: double, feasibleSpace: {min: "0.01", max: "0.05"}}
  trialTemplate:
    primaryContainerName: %(container)s
    trialParameters: [{name: learningRate, reference: lr}]
    trialSpec:
%(template)s
'''
JOB = '''      apiVersion: batch/v1
      kind: Job
      spec: {backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: main, image: i, command: [sh, -c, '%s']}]}}}'''
POD = '''      apiVersion: v1
      kind: Pod
      spec: {restartPolicy: Never, containers: [{name: main, image: i, command: [sh, -c, '%s']}]}'''
TFJOB = '''      apiVersion: kubeflow.org/v1
      kind: TFJob
      spec:
        tfReplicaSpecs:
          PS: {template: {spec: {containers: [{name: tensorflow, image: i, command: [sleep, "1000"]}]}}}
          Worker: {template: {spec: {containers: [{name: tensorflow, image: i, command: [sh, -c, '%s']}]}}}
        runPolicy: {cleanPodPolicy: Running}'''
COMPACT = '''      apiVersion: krallistic.github.com/v1
      kind: Tensorflow
      spec: {image: i, worker_count: 1, task_flags: false, clean_pod_policy: None, command: [sh, -c, '%s']}'''
EVENTS = '''  metricsCollectorSpec:
    collector: {kind: TensorFlowEvent}
    source: {fileSystemPath: {path: %(folder)s, kind: Directory}}
'''


def experiment(name, template, trials=6, container='main', algorithm='tpe', version='v1beta1', pause='0'):
    score = SCORE % {'pause': pause, 'lr': '${trialParameters.learningRate}'}
    return EXPERIMENT % {'name': name, 'trials': trials, 'container': container, 'algorithm': algorithm, 'version': version,
                         'template': template % score.replace("'", "''")}


class Cases:
    """On whatever self.k talks to."""

    def get(self, kind, *words):
        return json.loads(self.k('get', kind, '-o', 'json', *words))

    def trials(self, name):
        return self.get('trials', '-l', 'katib.kubeflow.org/experiment=' + name)['items']

    def run_to_end(self, name, text):
        self.k('apply', '-f', '-', stdin=text)
        cluster.wait_for(lambda: self.last(name) in ('Succeeded', 'Failed'), lambda: 'end of ' + self.k('describe', 'experiment', name))
        return self.get('experiment', name)

    def last(self, name):
        conditions = self.get('experiment', name).get('status', {}).get('conditions') or [{'type': ''}]
        return conditions[-1]['type']

    def check(self, name, count):
        found = self.get('experiment', name)['status']
        self.assertEqual(found['conditions'][-1]['reason'], 'ExperimentMaxTrialsReached', found)
        self.assertEqual((found['trials'], found['trialsSucceeded']), (count, count))
        trials = self.trials(name)
        self.assertEqual(len(trials), count)
        best = max(trials, key=lambda trial: float(trial['status']['observation']['metrics'][0]['max']))
        self.assertEqual(found['currentOptimalTrial']['bestTrialName'], best['metadata']['name'])
        for trial in trials:
            accuracy, loss = trial['status']['observation']['metrics']
            lr = float(trial['spec']['parameterAssignments'][0]['value'])
            self.assertAlmostEqual(float(accuracy['max']), 0.9 - (lr - 0.03) ** 2 * 100, places=4)
            self.assertEqual((accuracy['min'], loss['latest']), ('0.1', '2'))

    def test_pods(self):
        self.run_to_end('pods', experiment('pods', POD))
        self.check('pods', 6)

    def test_tfjobs(self):
        self.run_to_end('tfjobs', experiment('tfjobs', TFJOB, trials=3, container='tensorflow'))
        self.check('tfjobs', 3)

    def test_columns(self):
        self.run_to_end('columns', experiment('columns', POD, trials=3, algorithm='random', version='v1alpha3'))
        self.assertRegex(self.k('get', 'experiments.kubeflow.org'), r'NAME +TYPE +STATUS +AGE\n(?:.*\n)*columns +Succeeded +True +\d')
        self.assertRegex(self.k('get', 'trials.kubeflow.org'), r'NAME +TYPE +STATUS +AGE\n(?:.*\n)*columns-\w{8} +Succeeded +True +\d')
        self.assertRegex(self.k('get', 'suggestions.kubeflow.org'),
                         r'NAME +TYPE +STATUS +REQUESTED +ASSIGNED +AGE\n(?:.*\n)*columns +Succeeded +True +3 +3 +\d')
        self.assertIn('ExperimentMaxTrialsReached', self.k('describe', 'experiment', 'columns'))
        self.k('delete', 'experiment', 'columns')
        cluster.wait_for(lambda: not self.trials('columns'), 'deletion of its trials')


class UpTest(Cases, control_plane.PlaneTest):
    WEFT = WEFT

    def k(self, *words, stdin=None):
        return self.plane.run(self.kubectl, *words, stdin=stdin)

    def test_jobs(self):
        self.run_to_end('jobs', experiment('jobs', JOB, trials=8, algorithm='bayesianoptimization'))
        self.check('jobs', 8)
        # They have gone with their trials' end.
        cluster.wait_for(lambda: not self.get('jobs')['items'], 'deletion of the jobs')
        self.assertRegex(self.plane.run(WEFT, 'describe', 'experiment', 'jobs'), 'currentOptimalTrial|Current Optimal Trial')

    def test_compact_jobs(self):
        self.run_to_end('compact', experiment('compact', COMPACT, trials=3, container='tensorflow'))
        self.check('compact', 3)

    def test_a_control_plane_that_was_killed_goes_on(self):
        name = 'killed'
        self.k('apply', '-f', '-', stdin=experiment(name, POD, trials=9, pause='0.5').replace('maxFailedTrialCount: 2', 'maxFailedTrialCount: 9'))
        for count in (2, 4):
            cluster.wait_for(lambda: len(self.trials(name)) > count, 'more trials')
            self.plane.stop(signal.SIGKILL)
            self.plane.start()
        cluster.wait_for(lambda: self.last(name) in ('Succeeded', 'Failed'), 'end')
        trials = self.trials(name)
        numbers = sorted(int(trial['metadata']['labels']['weft.dev/trial-number']) for trial in trials)
        self.assertEqual(numbers, list(range(len(trials))))
        status = self.get('experiment', name)['status']
        counted = sum(status.get(field, 0) for field in ('trialsSucceeded', 'trialsFailed', 'trialMetricsUnavailable'))
        self.assertEqual(counted, len(trials))

    def test_refusals(self):
        text = experiment('refused', POD)
        for changed, words in ((text.replace('${trialParameters.learningRate}', '${trialParameters.rate}'), 'trialParameters.rate'),
                               (text.replace('parameterType: double', 'parameterType: float'), 'allowed are double, int'),
                               (text.replace('maxTrialCount', 'maxTrials'), 'maxTrialCount')):
            code, output = self.plane.run(self.kubectl, 'apply', '-f', '-', stdin=changed, check=False)
            self.assertNotEqual(code, 0)
            self.assertIn(words, output)


class ClusterTest(Cases, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.cluster = cluster.Cluster(cls.temporary.name)
        folder = pathlib.Path(cls.temporary.name)
        try:
            # For the output of pods the API server goes to the node, as somebody whom that trusts.
            for words in ('req -x509 -newkey rsa:2048 -nodes -subj /CN=kubelets -keyout ca.key -out ca.crt',
                          'req -newkey rsa:2048 -nodes -subj /CN=kube-apiserver-kubelet-client -keyout api.key -out api.csr',
                          'x509 -req -in api.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out api.crt'):
                subprocess.run(['openssl', *words.split()], check=True, capture_output=True, cwd=folder)
            cls.cluster.start('--kubelet-client-certificate', str(folder / 'api.crt'), '--kubelet-client-key', str(folder / 'api.key'),
                              '--kubelet-preferred-address-types', 'InternalIP')
            cls.cluster.k('apply', '-f', str(DEPLOY / 'rbac' / 'tuning.yaml'))
            cls.cluster.spawn('operator', WEFT, 'operator', '--experiments', kubeconfig=cls.cluster.operator_config)
            cls.cluster.spawn('node', WEFT, 'node', '--bind_pods', '--state', str(folder / 'node'), '--kubelet_port', '0',
                              '--kubelet_client_ca', str(folder / 'ca.crt'))
        except BaseException:
            cls.tearDownClass()
            raise

    @classmethod
    def tearDownClass(cls):
        cls.cluster.stop()
        cls.temporary.cleanup()

    def k(self, *words, stdin=None):
        return self.cluster.k(*words, stdin=stdin)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
