#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The number of a job's parameter servers changes on the real kube-apiserver: servers_real_test.py WEFT.

The operator has the rights of deploy/rbac/operator.yaml and no more; the test is the kubelet, and nothing trains. Counts that are none, and
changes of what programs know, the API server refuses by the schema.
"""
import json
import sys
import tempfile
import unittest

import cluster

WEFT = sys.argv[1]


def task(command, **more):
    return {**more, 'template': {'spec': {'containers': [{'name': 'tensorflow', 'image': 'i', 'command': command}]}}}


class ServersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.cluster = cluster.Cluster(temporary.name)
        cls.addClassCleanup(cls.cluster.stop)
        cls.cluster.start()
        cls.cluster.spawn_operator(WEFT)

    def k(self, *words, stdin=None):
        return self.cluster.k(*words, stdin=stdin)

    def scale(self, **servers):
        self.k('patch', 'tfjob', 'scaled', '--type', 'merge', '-p', json.dumps({'spec': {'tfReplicaSpecs': {'PS': servers}}}))

    def servers(self):
        pods = json.loads(self.k('get', 'pods', '-l', 'training.kubeflow.org/replica-type=ps', '-o', 'json'))['items']
        return {pod['metadata']['name']: pod for pod in pods}

    def wait_for(self, *names):
        cluster.wait_for(lambda: sorted(self.servers()) == sorted(names), lambda: 'pods %s, but %s' % (names, list(self.servers())), 30)

    def runs(self, pod, address):
        self.k('patch', 'pod', pod, '--subresource', 'status', '-p', json.dumps({'status': {
            'phase': 'Running', 'podIP': address, 'podIPs': [{'ip': address}]}}))

    def test_they_share_other_pods_and_wrong_counts_are_refused(self):
        job = {'apiVersion': 'kubeflow.org/v1', 'kind': 'TFJob', 'metadata': {'name': 'scaled'}, 'spec': {'tfReplicaSpecs': {
            'PS': task(['weft', 'server'], replicas=2, elasticPolicy={'maxReplicas': 2}, restartPolicy='OnFailure'),
            'Worker': task(['python', '-m', 'weft', 'train.py'])}}}
        self.k('apply', '-f', '-', stdin=json.dumps(job))
        self.wait_for('scaled-ps-0', 'scaled-ps-1')
        self.runs('scaled-ps-0', '10.1.0.1')
        self.runs('scaled-ps-1', '10.1.0.2')
        for wrong in ({'replicas': 0}, {'replicas': 3}):
            with self.assertRaisesRegex(AssertionError, 'must be minReplicas to maxReplicas of their elasticPolicy'):
                self.scale(**wrong)
        with self.assertRaisesRegex(AssertionError, 'maxReplicas of parameter servers does not change'):
            self.scale(elasticPolicy={'maxReplicas': 3})
        with self.assertRaisesRegex(AssertionError, 'neither comes nor goes'):
            self.scale(elasticPolicy=None)
        self.scale(replicas=1)
        self.wait_for('scaled-ps-0', 'scaled-ps-1', 'scaled-ps-0-to-1')
        shared = self.servers()['scaled-ps-0-to-1']
        self.assertEqual([shared['metadata']['labels']['weft.dev/ps-%d' % index] for index in (0, 1)], ['true', 'true'])
        variables = {one['name']: one.get('value') for one in shared['spec']['containers'][0]['env']}
        self.assertEqual([one['env']['WEFT_TAKE_OVER_FROM'] for one in json.loads(variables['WEFT_PROCESSES'])],
                         ['10.1.0.1:2222', '10.1.0.2:2223'])
        # It runs, and the others end; then apart again.
        self.runs('scaled-ps-0-to-1', '10.1.0.3')
        self.wait_for('scaled-ps-0-to-1')
        self.scale(replicas=2)
        self.wait_for('scaled-ps-0', 'scaled-ps-1', 'scaled-ps-0-to-1')
        self.runs('scaled-ps-0', '10.1.0.4')
        self.runs('scaled-ps-1', '10.1.0.5')
        self.wait_for('scaled-ps-0', 'scaled-ps-1')
        selector = json.loads(self.k('get', 'service', 'scaled-ps-1', '-o', 'json'))['spec']['selector']
        self.assertEqual(self.k('get', 'pods', '-l', ','.join('%s=%s' % pair for pair in selector.items()), '-o', 'name'), 'pod/scaled-ps-1\n')
        cluster.wait_for(lambda: json.loads(self.k('get', 'tfjob', 'scaled', '-o', 'json'))['status'].get('servers') == {'tasks': 2, 'pods': 2},
                         'status of two pods')


if __name__ == '__main__':
    sys.argv[1:] = sys.argv[2:]
    unittest.main()
