#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program for one device as a TFJob with `distribution: auto` on `weft up`: the operator chooses the counts, the tasks share the step.

    distribution_test.py WEFT LINEAR_REGRESSION
"""
import json
import pathlib
import re
import sys
import tempfile
import unittest

import control_plane

WEFT, PROGRAM = sys.argv[1:3]


class DistributionTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.plane = control_plane.ControlPlane(WEFT, self.temporary.name, PROGRAM)
        self.plane.start('--node', 'a,cpu=8,memory=8Gi', '--node', 'b,cpu=8,memory=8Gi', '--node', 'c,cpu=8,memory=8Gi')
        self.addCleanup(self.plane.stop)
        self.folder = pathlib.Path(self.temporary.name)

    def weft(self, *words, stdin=None):
        return self.plane.run(WEFT, *map(str, words), stdin=stdin)

    def costs(self):
        """Of the program, as if its step computed for long: else one worker is best."""
        self.weft('run', '--cost_file', 'costs.json', '--', PROGRAM, '--model_dir', self.folder / 'alone')
        costs = json.loads((self.folder / 'costs.json').read_text())
        for op in costs['ops']:
            if op['op'] in ('Mul', 'SquaredDifference', '_FusedElementwise'):
                op['seconds'] = op['least_seconds'] = 0.1
        (self.folder / 'costs.json').write_text(json.dumps(costs))
        return json.dumps(costs)

    def test_a_program_for_one_device(self):
        costs = self.costs()
        text = self.weft('plan', 'costs.json', '--live', '--spread_batch', '--explain')
        self.assertIn('on 3 nodes (3 devices)', text)
        self.assertIn('ps: 3 workers, 1 server', text)
        self.weft('apply', '-f', '-', stdin=json.dumps({
            'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'line-costs'}, 'data': {'costs.json': costs}}))
        command = ['weft', 'server', '--distribution', 'auto', '--file_root', '/', '--', 'linear_regression', '--model_dir',
                   str(self.folder / 'model')]
        self.weft('apply', '-f', '-', stdin=json.dumps({
            'apiVersion': 'kubeflow.org/v1', 'kind': 'TFJob', 'metadata': {'name': 'line'},
            'spec': {'distribution': 'auto', 'distributionPolicy': {'costs': 'line-costs', 'maxWorkers': 2, 'maxServers': 1},
                     'runPolicy': {'cleanPodPolicy': 'None'},
                     'tfReplicaSpecs': {'Worker': {'template': {'spec': {'containers': [
                         {'name': 'tensorflow', 'image': 'i', 'command': command}]}}}}}}))
        self.weft('wait', '--for=condition=Succeeded', 'tfjob/line', '--timeout=200s')
        job = json.loads(self.weft('get', 'tfjob', 'line', '-o', 'json'))
        self.assertEqual(job['status']['distribution']['workers'], 2, job['status'])
        replicas = {kind: spec['replicas'] for kind, spec in job['spec']['tfReplicaSpecs'].items()}
        self.assertEqual(replicas['Worker'], 2)
        pods = [line.split()[0] for line in self.weft('get', 'pods').splitlines()[1:]]
        self.assertEqual(len(pods), sum(replicas.values()), pods)
        logs = self.weft('logs', 'line-worker-0')
        self.assertRegex(logs, 'Distribution: a step [0-9]+ nodes run on each of 2 workers, on a share of 4 rows')
        alone = self.weft('run', '--', PROGRAM, '--model_dir', self.folder / 'again')
        self.assertIn(re.search(r'loss \S+ after', alone)[0], logs)
        self.assertRegex(self.weft('describe', 'tfjob', 'line'), r'Distributed')


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
