#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`distribution: auto` on the real kube-apiserver: the operator, with the rights of deploy/rbac/distribution.yaml and no more, chooses
the counts by costs, prices, deadline and budget.

    distribution_real_test.py WEFT LINEAR_REGRESSION
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import cluster
import control_plane

WEFT, PROGRAM = sys.argv[1:3]
PRICES = {'format': 'weft.dev/prices', 'version': 1, 'hourly': {'small': 3.6}}


class DistributionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        cls.cluster = cluster.Cluster(cls.folder)
        cls.addClassCleanup(cls.cluster.stop)
        cls.cluster.start()
        # Only for its environment: nothing of `weft up` runs here.
        cls.environment = control_plane.ControlPlane(WEFT, temporary.name, PROGRAM).environment
        cls.cluster.spawn_operator(WEFT)
        for name in 'one', 'two':
            cls.cluster.spawn('node-' + name, 'env', 'PATH=' + cls.environment['PATH'], WEFT, 'node', '--name', name, '--bind_pods',
                              '--state', str(cls.folder / name))
        cluster.wait_for(lambda: len(cls.k('get', 'nodes', '-o', 'name').split()) == 2, 'two nodes')
        cls.k('label', 'nodes', '--all', 'node.kubernetes.io/instance-type=small')
        subprocess.run([WEFT, 'run', '--cost_file', 'costs.json', '--', PROGRAM, '--model_dir', cls.folder / 'alone'],
                       check=True, cwd=cls.folder, capture_output=True, timeout=120)
        costs = json.loads((cls.folder / 'costs.json').read_text())
        for op in costs['ops']:  # as if its step computed for long: else one worker is best
            if op['op'] in ('Mul', 'SquaredDifference', '_FusedElementwise'):
                op['seconds'] = op['least_seconds'] = 0.1
        cls.step = sum(op['seconds'] for op in costs['ops'])
        cls.apply({'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'line-costs'},
                   'data': {'costs.json': json.dumps(costs), 'prices.json': json.dumps(PRICES)}})
        cls.batch = costs['batch']

    @classmethod
    def k(cls, *words, stdin=None):
        return cls.cluster.k(*words, stdin=stdin)

    @classmethod
    def apply(cls, *objects):
        return cls.k('apply', '-f', '-', stdin=json.dumps({'apiVersion': 'v1', 'kind': 'List', 'items': objects}))

    def job(self, name, **policy):
        command = ['weft', 'server', '--distribution', 'auto', '--file_root', '/', '--', 'linear_regression', '--model_dir',
                   str(self.folder / name)]
        return {'apiVersion': 'kubeflow.org/v1', 'kind': 'TFJob', 'metadata': {'name': name},
                'spec': {'distribution': 'auto', 'distributionPolicy': dict(policy, costs='line-costs', maxServers=1),
                         'runPolicy': {'cleanPodPolicy': 'None'},
                         'tfReplicaSpecs': {'Worker': {'template': {'spec': {'containers': [
                             {'name': 'tensorflow', 'image': 'i', 'command': command}]}}}}}}

    def test_4_a_whole_job_trains_on_the_tasks_that_were_chosen(self):
        job = self.job('whole')
        worker = job['spec']['tfReplicaSpecs']['Worker']['template']['spec']
        # Processes of one node find each other on its loopback address; a worker that asks for nothing would have the node alone.
        worker['nodeSelector'] = {'kubernetes.io/hostname': 'one'}
        worker['containers'][0]['resources'] = {'requests': {'cpu': '300m'}}
        self.apply(job)
        found = self.decided('whole')
        self.assertGreater(found['workers'], 1)
        self.k('wait', '--for=condition=Succeeded', 'tfjob/whole', '--timeout=120s')
        pods = json.loads(self.k('get', 'pods', '-l', 'training.kubeflow.org/job-name=whole', '-o', 'json'))['items']
        self.assertEqual(len(pods), found['workers'] + found['servers'])
        self.assertEqual({pod['spec']['nodeName'] for pod in pods}, {'one'})
        self.assertIn('model.ckpt-200', (self.folder / 'whole' / 'checkpoint').read_text())

    def decided(self, name):
        def look():
            return json.loads(self.k('get', 'tfjob', name, '-o', 'json')).get('status', {}).get('distribution')
        return cluster.wait_for(look, 'decision about ' + name, seconds=60)

    def test_1_without_the_rights_the_log_names_them(self):
        self.apply(self.job('early'))
        log = self.folder / 'operator.log'
        cluster.wait_for(lambda: 'configmaps' in log.read_text() or 'Distributed' in log.read_text(), 'word in the log', seconds=60)
        self.assertNotIn('distribution', json.loads(self.k('get', 'tfjob', 'early', '-o', 'json')).get('status', {}))
        self.k('apply', '-f', str(cluster.DEPLOY / 'rbac' / 'distribution.yaml'))
        self.assertEqual(self.decided('early')['form'], 'ps')
        self.k('delete', 'tfjob', 'early')

    def test_2_deadline_and_budget_choose_the_counts(self):
        hours = 100
        examples = int(hours * 3600 / self.step * self.batch)  # of one worker
        patient = self.job('patient', examples=examples, deadlineSeconds=hours * 7200, budget='1000.00')
        hurried = self.job('hurried', examples=examples, deadlineSeconds=int(hours * 3600 / 1.1), budget='1000.00')
        self.apply(patient, hurried)
        self.assertEqual(self.decided('patient')['workers'], 1)
        found = self.decided('hurried')
        self.assertEqual(found['workers'], 2)
        self.assertIn(' Goal: 2 workers', found['reason'])
        self.k('delete', 'tfjob', 'patient', 'hurried')

    def test_3_the_server_refuses_what_is_no_goal(self):
        for policy, word in (dict(budget='much'), 'budget'), (dict(examples=0), 'examples'), (dict(deadlineSeconds=-1), 'deadlineSeconds'):
            with self.assertRaisesRegex(AssertionError, word):
                self.apply(self.job('wrong', **policy))


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
