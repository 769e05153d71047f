#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real cluster that `weft operator` shares with others: jobs by label, what would change, pods that change hands with their
job, and what users may do by the cluster's own roles.

    sharing_test.py WEFT
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import cluster

WEFT, = sys.argv[1:2]


def job(name, labels, workers=1):
    return json.dumps({
        'apiVersion': 'kubeflow.org/v1', 'kind': 'TFJob', 'metadata': {'name': name, 'namespace': 'default', 'labels': labels},
        'spec': {'tfReplicaSpecs': {'Worker': {'replicas': workers, 'template': {'spec': {
            'containers': [{'name': 'tensorflow', 'image': 'i', 'command': ['true']}]}}}}}})


class SharingTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.cluster = cluster.Cluster(self.temporary.name)
        self.addCleanup(self.temporary.cleanup)
        self.addCleanup(self.cluster.stop)
        self.cluster.start()
        self.k = self.cluster.k

    def pods(self):
        return {pod['metadata']['name']: pod for pod in self.cluster.api.request('GET', '/api/v1/namespaces/default/pods')['items']}

    def changes(self, *flags):
        done = subprocess.run([WEFT, 'operator', '--dry_run', *flags], capture_output=True, text=True, timeout=120,
                              env=dict(os.environ, KUBECONFIG=str(self.cluster.operator_config)))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def test_jobs_change_hands_one_by_one(self):
        self.k('apply', '-f', '-', stdin=job('mine', {'operator': 'weft'}, 2))
        self.k('apply', '-f', '-', stdin=job('theirs', {'operator': 'other'}))
        selected = ('--job_selector', 'operator=weft')
        lines = self.changes(*selected)
        self.assertEqual([line for line in lines if ' pod ' in line],
                         ['would create pod default/mine-worker-0', 'would create pod default/mine-worker-1'])
        self.assertIn('would write the status of tfjob default/mine (Created)', lines)
        self.assertFalse([line for line in lines if 'theirs' in line or 'REFUSED' in line])
        self.assertEqual(self.pods(), {})
        operator = self.cluster.spawn_operator(WEFT, *selected)
        cluster.wait_for(lambda: len(self.pods()) == 2, 'pods')
        cluster.wait_for(lambda: self.changes(*selected) == ['nothing would change'], 'rest')
        self.assertEqual(set(self.pods()), {'mine-worker-0', 'mine-worker-1'})
        operator.terminate()
        operator.wait(60)
        # The job goes, its pods stay, and the job comes back, to whoever takes over.
        before = {name: pod['metadata']['uid'] for name, pod in self.pods().items()}
        self.k('delete', 'tfjob', 'mine', '--cascade=orphan')
        cluster.wait_for(lambda: not any('ownerReferences' in pod['metadata'] for pod in self.pods().values()), 'orphans')
        self.k('apply', '-f', '-', stdin=job('mine', {'operator': 'weft'}, 2))
        self.k('apply', '-f', str(cluster.DEPLOY / 'rbac' / 'adoption.yaml'))
        lines = cluster.wait_for(lambda: [line for line in self.changes(*selected, '--adopt_orphans') if 'REFUSED' not in line
                                          and ' pod ' in line], 'right to adopt')
        self.assertIn('would take over pod default/mine-worker-0', lines)
        self.cluster.spawn_operator(WEFT, *selected, '--adopt_orphans')
        uid = self.cluster.api.request('GET', '/apis/kubeflow.org/v1/namespaces/default/tfjobs/mine')['metadata']['uid']
        cluster.wait_for(lambda: all(owner['uid'] == uid for pod in self.pods().values()
                                     for owner in pod['metadata'].get('ownerReferences', [{'uid': ''}])), 'owner')
        self.assertEqual({name: pod['metadata']['uid'] for name, pod in self.pods().items()}, before)

    def test_the_roles_of_users_come_to_hold_jobs(self):
        self.k('apply', '-k', str(cluster.DEPLOY / 'users'))
        self.k('create', 'rolebinding', 'viewers', '--clusterrole=view', '--user=viewer')
        self.k('create', 'rolebinding', 'editors', '--clusterrole=edit', '--user=editor')

        def may(user, verb, what):
            done = subprocess.run([self.cluster.kubectl, '--kubeconfig', str(self.cluster.plane.kubeconfig), 'auth', 'can-i', verb, what,
                                   '--as', user], capture_output=True, text=True, timeout=60)
            return done.stdout.strip() == 'yes'
        cluster.wait_for(lambda: may('viewer', 'list', 'tfjobs.kubeflow.org'), 'aggregation')
        for kind in 'tfjobs.kubeflow.org', 'tensorflows.krallistic.github.com':
            self.assertFalse(may('viewer', 'create', kind))
            for verb in 'create', 'patch', 'delete', 'get':
                self.assertTrue(may('editor', verb, kind), verb)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)
