#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A cluster that the reference operator and `weft operator` share, jobs that move from one to the other while they run,
and what who may view or edit a namespace may do with its jobs.

    sharing_test.py WEFT
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import cluster
import differential_cases
import differential_fates
import real_control_plane

WEFT = sys.argv[1]
SPACE = 'team'
JOB_OF = 'training.kubeflow.org/job-name='


def job(name, **labels):
    return {'apiVersion': 'kubeflow.org/v1', 'kind': 'TFJob', 'metadata': {'name': name, 'labels': labels},
            'spec': differential_cases.spec({'PS': 1, 'Worker': 2})}


class SharingTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        reference = cluster.build('reference')
        cls.temporary = tempfile.TemporaryDirectory()
        cls.cluster = cluster.Cluster(cls.temporary.name)
        try:
            cls.cluster.start(controllers=real_control_plane.CONTROLLERS + ',clusterrole-aggregation-controller')
            cls.api = cls.cluster.api
            for file in ('rbac/adoption.yaml', 'users/roles.yaml'):
                cls.cluster.k('apply', '-f', str(cluster.DEPLOY / file))
            cls.cluster.k('create', 'namespace', SPACE)
            cls.reference = cls.cluster.spawn('reference', reference, '--namespace', SPACE)
        except BaseException:
            cls.tearDownClass()
            raise

    @classmethod
    def tearDownClass(cls):
        cls.cluster.stop()
        cls.temporary.cleanup()

    def pods(self, name):
        """By name: the pod's uid and that of the job that it belongs to."""
        return {pod['metadata']['name']: (pod['metadata']['uid'], (pod['metadata'].get('ownerReferences') or [{}])[0].get('uid'))
                for pod in self.api.list(SPACE, 'pods', JOB_OF + name)}

    def conditions(self, name):
        found = self.api.get(SPACE, 'tfjobs', name).get('status', {}).get('conditions') or []
        return [each['type'] for each in found if each['status'] == 'True']

    def would(self, *words):
        done = subprocess.run([WEFT, 'operator', '--dry_run', *words], capture_output=True, text=True, timeout=120,
                              env=dict(os.environ, KUBECONFIG=str(self.cluster.operator_config)))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def test_a_running_job_moves(self):
        ours = ('--namespace', SPACE, '--job_selector', 'operator=weft', '--adopt_orphans')
        for name in ('stays', 'moves'):
            self.api.create(SPACE, 'tfjobs', job(name))
            cluster.wait_for(lambda: len(self.pods(name)) == 3, 'pods of ' + name)
            for pod in self.pods(name):
                differential_fates.befall_pod(self.api, SPACE, pod, 'run')
            cluster.wait_for(lambda: 'Running' in self.conditions(name), 'run of ' + name)
        before = {name: self.pods(name) for name in ('stays', 'moves')}
        # Neither has the label: there is nothing to do.
        self.assertEqual(self.would(*ours), ['nothing would change'])
        # The reference knows no labels: it stops for as long as jobs change hands.
        self.reference.terminate()
        self.reference.wait(60)
        self.cluster.processes.remove(self.reference)
        self.cluster.k('delete', 'tfjob', 'moves', '-n', SPACE, '--cascade=orphan')
        cluster.wait_for(lambda: {owner for _, owner in self.pods('moves').values()} == {None}, 'orphans')
        self.api.create(SPACE, 'tfjobs', job('moves', operator='weft'))
        told = self.would(*ours)
        self.assertEqual(sorted(line for line in told if 'take over' in line),
                         sorted('would take over %s %s/moves-%s' % (kind, SPACE, task) for kind in ('pod', 'service')
                                for task in ('ps-0', 'worker-0', 'worker-1')), told)
        self.assertEqual([line for line in told if 'create' in line or 'delete' in line or 'REFUSED' in line], [], told)
        # The server has checked all of it and kept nothing.
        self.assertEqual({owner for _, owner in self.pods('moves').values()}, {None})
        self.assertEqual(self.conditions('moves'), [])
        operator = self.cluster.spawn_operator(WEFT, *ours)
        cluster.wait_for(lambda: 'Running' in self.conditions('moves'), 'run of the job that moved')
        owner = self.api.get(SPACE, 'tfjobs', 'moves')['metadata']['uid']
        # The same pods, which never stopped, and its own.
        self.assertEqual(self.pods('moves'), {pod: (uid, owner) for pod, (uid, _) in before['moves'].items()})
        self.assertEqual(self.would(*ours), ['nothing would change'])
        # The other is as it was, for whoever cares for it.
        self.assertEqual(self.pods('stays'), before['stays'])
        differential_fates.befall_pod(self.api, SPACE, 'stays-worker-0', 'exit 0')
        differential_fates.befall_pod(self.api, SPACE, 'moves-worker-0', 'exit 0')
        cluster.wait_for(lambda: 'Succeeded' in self.conditions('moves'), 'end of the job that moved')
        self.assertNotIn('Succeeded', self.conditions('stays'))
        operator.terminate()
        operator.wait(60)
        self.cluster.processes.remove(operator)

    def test_without_the_right_it_says_so(self):
        """The rights of operator.yaml are enough for all but taking over."""
        self.cluster.k('delete', '-f', str(cluster.DEPLOY / 'rbac' / 'adoption.yaml'))
        try:
            self.cluster.k('create', 'namespace', 'apart')
            left = {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'alone-worker-0', 'namespace': 'apart', 'labels': {
                'training.kubeflow.org/job-name': 'alone', 'training.kubeflow.org/operator-name': 'tfjob-controller',
                'training.kubeflow.org/replica-type': 'worker', 'training.kubeflow.org/replica-index': '0'}},
                'spec': differential_cases.template()['spec']}
            self.cluster.k('apply', '-f', '-', stdin=json.dumps(left))
            alone = job('alone', operator='weft')
            alone['spec'] = differential_cases.spec({'Worker': 1})
            self.api.create('apart', 'tfjobs', alone)

            def refused():
                return [line for line in self.would('--namespace', 'apart', '--adopt_orphans') if 'take over pod' in line]
            # The right goes a moment after it was taken.
            said = cluster.wait_for(lambda: [line for line in refused() if 'REFUSED' in line], 'refusal', period=0.5)
            self.assertIn('cannot patch resource "pods"', said[0])
        finally:
            self.cluster.k('apply', '-f', str(cluster.DEPLOY / 'rbac' / 'adoption.yaml'))

    def test_roles_of_users_have_jobs_in_them(self):
        for role in ('view', 'edit', 'admin'):
            self.cluster.k('create', 'rolebinding', role, '-n', SPACE, '--clusterrole=' + role, '--user=' + role)

        def may(user, verb, kind, *words):
            done = subprocess.run([self.cluster.kubectl, '--kubeconfig', str(self.cluster.plane.kubeconfig), 'auth', 'can-i', verb, kind,
                                   '-n', SPACE, '--as', user, *words], capture_output=True, text=True, timeout=60)
            return done.stdout.strip() == 'yes'
        cluster.wait_for(lambda: may('view', 'list', 'tfjobs.kubeflow.org'), 'rule in the role view')
        cluster.wait_for(lambda: may('edit', 'create', 'tfjobs.kubeflow.org'), 'rule in the role edit')
        cluster.wait_for(lambda: may('admin', 'create', 'tfjobs.kubeflow.org'), 'rule in the role admin')
        for kind in ('tfjobs.kubeflow.org', 'tensorflows.krallistic.github.com'):
            for verb, allowed in (('get', {'view', 'edit', 'admin'}), ('delete', {'edit', 'admin'}), ('patch', {'edit', 'admin'})):
                self.assertEqual({user for user in ('view', 'edit', 'admin') if may(user, verb, kind)}, allowed, (verb, kind))
            self.assertTrue(may('view', 'get', kind, '--subresource=status'))
            self.assertFalse(may('admin', 'update', kind, '--subresource=status'))
            self.assertFalse(may('nobody', 'get', kind))
        # And not only by the server's word.
        made = job('made')
        self.api.request('POST', '/apis/kubeflow.org/v1/namespaces/%s/tfjobs?dryRun=All' % SPACE, made, user='edit')
        with self.assertRaisesRegex(cluster.api_client.ApiError, '403: .*cannot create resource'):
            self.api.request('POST', '/apis/kubeflow.org/v1/namespaces/%s/tfjobs?dryRun=All' % SPACE, made, user='view')


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2, warnings='ignore')
