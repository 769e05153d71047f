#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Experiments by kubectl: on `weft up`, and by `weft operator --experiments` on a real control plane with its own rights.

    experiments_test.py WEFT CONVNET
"""
import csv
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

import cluster
import control_plane

WEFT, CONVNET = sys.argv[1:3]
HERE = pathlib.Path(__file__).resolve().parent
DEPLOY = HERE.parent.parent / 'deploy'
EXAMPLES = HERE.parent.parent / 'examples'

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
# What a cluster's administrator gives: the claims of experiments name no class.
VOLUME = '''apiVersion: v1
kind: PersistentVolume
metadata: {name: checkpoints}
spec:
  capacity: {storage: 2Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  hostPath: {path: %s, type: DirectoryOrCreate}
'''


def experiment(name, template, trials=6, container='main', algorithm='tpe', version='v1beta1', pause='0', score=None):
    score = (score or SCORE) % {'pause': pause, 'lr': '${trialParameters.learningRate}'}
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

    def test_the_experiment_of_the_seed(self):
        """As examples/tuning has it, with fewer steps: a convolutional network, three parameters, and the table."""
        text = (EXAMPLES / 'tuning' / 'experiment.yaml').read_text()
        for before, after in (('- convnet\n', '- %s\n                - "--data=%s"\n' % (CONVNET, EXAMPLES / 'digits' / 'digits.csv')),
                              ('"--steps=200"', '"--steps=60"')):
            self.assertIn(before, text)
            text = text.replace(before, after)
        status = self.run_to_end('mnist-experiment', text)['status']
        self.assertEqual(status['conditions'][-1]['reason'], 'ExperimentMaxTrialsReached', status)
        table = self.weft('trials', 'mnist-experiment')
        self.assertRegex(table, r'^Experiment Name: mnist-experiment\n\ntrialName +Validation-accuracy +accuracy +lr +num-layers +optimizer +status\n')
        print(table, file=sys.stderr)
        rows = list(csv.DictReader(self.weft('trials', 'mnist-experiment', '-o', 'csv').splitlines()))
        self.assertEqual(len(rows), 12)
        self.assertEqual({row['status'] for row in rows}, {'Succeeded'})
        self.assertEqual(rows[0]['trialName'], status['currentOptimalTrial']['bestTrialName'])
        self.assertEqual(rows, sorted(rows, key=lambda row: -float(row['Validation-accuracy'])))
        for row in rows:
            self.assertRegex(row['trialName'], r'^mnist-experiment-\w{8}$')
            self.assertTrue(0.0005 <= float(row['lr']) <= 0.02 and row['num-layers'] in '2345' and row['optimizer'] in ('sgd', 'adam', 'ftrl'), row)
            self.assertTrue(0 < float(row['accuracy']) <= 1, row)
        # Nine in ten are right after a few seconds, though some of the trials hardly learn.
        self.assertGreater(float(rows[0]['Validation-accuracy']), 0.8)

    def test_pods(self):
        self.run_to_end('pods', experiment('pods', POD))
        self.check('pods', 6)

    def test_tfjobs(self):
        self.run_to_end('tfjobs', experiment('tfjobs', TFJOB, trials=3, container='tensorflow'))
        self.check('tfjobs', 3)

    def test_checkpoints_are_handed_on(self):
        """Each trial trains one step more than the one that it goes on from."""
        folder = '/var/log/katib/checkpoints'
        step = 'n=$(cat {0}/steps || echo 0); n=$((n + 1)); echo $n > {0}/steps; echo accuracy=$n loss=%(lr)s'.format(folder)
        text = experiment('handed-on', POD, trials=9, algorithm='pbt', score=step).replace('goal: 0.99', 'goal: 9')
        text = text.replace('algorithmName: pbt', 'algorithmName: pbt, algorithmSettings: [{name: n_population, value: "3"}, '
                            '{name: suggestion_trial_dir, value: %s}]' % folder)
        status = self.run_to_end('handed-on', text)['status']
        self.assertEqual(status['conditions'][-1]['reason'], 'ExperimentMaxTrialsReached', status)
        steps = {}
        for trial in sorted(self.trials('handed-on'), key=lambda trial: int(trial['metadata']['labels']['weft.dev/trial-number'])):
            labels = trial['metadata']['labels']
            parent = labels.get('weft.dev/trial-parent')
            steps[labels['weft.dev/trial-number']] = 1 + (steps[parent] if parent else 0)
            self.assertEqual(float(trial['status']['observation']['metrics'][0]['latest']), steps[labels['weft.dev/trial-number']])
        self.assertEqual(max(steps.values()), 3)
        self.k('delete', 'experiment', 'handed-on')
        cluster.wait_for(lambda: not self.get('pvc')['items'], 'deletion of the volume')

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

    def weft(self, *words):
        return self.plane.run(WEFT, *words)

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
            flags, authority = cls.cluster.node_trust()
            cls.cluster.start(*flags,
                              controllers=cluster.real_control_plane.CONTROLLERS + ',job-controller,persistentvolume-binder-controller,'
                              'persistentvolumeclaim-protection-controller,persistentvolume-protection-controller')
            cls.cluster.k('apply', '-f', '-', stdin=VOLUME % (folder / 'volume'))
            cls.cluster.k('apply', '-f', str(DEPLOY / 'rbac' / 'tuning.yaml'))
            cls.cluster.spawn('operator', WEFT, 'operator', '--experiments', kubeconfig=cls.cluster.operator_config)
            cls.cluster.spawn_node(WEFT, authority)
        except BaseException:
            cls.tearDownClass()
            raise

    @classmethod
    def tearDownClass(cls):
        cls.cluster.stop()
        cls.temporary.cleanup()

    def k(self, *words, stdin=None):
        return self.cluster.k(*words, stdin=stdin)

    def weft(self, *words):
        return subprocess.run([WEFT, *words], check=True, capture_output=True, text=True, timeout=60,
                              env=dict(os.environ, KUBECONFIG=str(self.cluster.plane.kubeconfig))).stdout


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
