#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gangs beside the reference operator: both kinds of PodGroup, and the pods that wait for them, field by field.

    gang_test.py WEFT
"""
import json
import sys
import tempfile
import unittest

import cluster
import differential_cases
import differential_state
import gang_definitions

WEFT = sys.argv[1]
OURS, THEIRS = 'ours', 'theirs'
# The schedulers' own, as far as an API server needs them.
GROUPS = {'volcano': ('scheduling.volcano.sh', 'v1beta1'), 'other-scheduler': ('scheduling.x-k8s.io', 'v1alpha1')}


def asking(**requests):
    pod = differential_cases.template()
    pod['spec']['containers'][0]['resources'] = {'requests': requests}
    return pod


def jobs():
    def spec(policy=None, **more):
        return differential_cases.spec({'PS': 1, 'Worker': 3}, run=policy and {'schedulingPolicy': policy}, **more)

    yield 'plain', spec()
    yield 'asks', spec(pod=asking(cpu='500m', memory='1Gi'))
    limited = differential_cases.template()
    limited['spec']['containers'][0]['resources'] = {'limits': {'cpu': '2', 'nvidia.com/gpu': '1'}}
    yield 'limits', spec(pod=limited)
    yield 'fewer', spec({'minAvailable': 2}, pod=asking(cpu='1'))
    yield 'queue', spec({'queue': 'research', 'priorityClass': 'high'})
    yield 'said', spec({'minResources': {'cpu': '3', 'memory': '2Gi'}, 'scheduleTimeoutSeconds': 60})
    yield 'scheduled', spec(pod=differential_cases.template(schedulerName='third-scheduler'))


class GangTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.cluster = cluster.Cluster(cls.temporary.name)
        try:
            cls.cluster.start()
            for group in GROUPS.values():
                cls.cluster.k('apply', '-f', '-', stdin=json.dumps(gang_definitions.definition(*group)))
            cls.cluster.k('wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s')
            cls.cluster.k('apply', '-f', str(cluster.DEPLOY / 'rbac' / 'gang.yaml'))
            cls.api = cls.cluster.api
        except BaseException:
            cls.tearDownClass()
            raise

    @classmethod
    def tearDownClass(cls):
        cls.cluster.stop()
        cls.temporary.cleanup()

    def groups(self, scheduler, namespace, name=''):
        return self.api.request('GET', '/apis/%s/%s/namespaces/%s/podgroups/%s' % (*GROUPS[scheduler], namespace, name))

    def flat(self, scheduler, namespace, job):
        flat = {}
        group = self.groups(scheduler, namespace, job)
        if namespace.endswith(OURS):
            # By which the operator finds it; there it has none.
            labels = group['metadata'].pop('labels')
            self.assertEqual(labels, {'training.kubeflow.org/job-name': job, 'training.kubeflow.org/operator-name': 'tfjob-controller'})
        differential_state.flat_object('group', job, {'spec': {}, **group}, flat)
        for pod in self.api.list(namespace, 'pods', 'training.kubeflow.org/job-name=' + job):
            for where in ('labels', 'annotations'):
                differential_state.flatten(pod['metadata'].get(where, {}), '%s.%s' % (pod['metadata']['name'], where), flat)
            flat[pod['metadata']['name'] + '.scheduler'] = pod['spec']['schedulerName']
        return flat

    def compare(self, scheduler):
        names = [name for name, _ in jobs()]
        spaces = ['%s-%s' % (scheduler, side) for side in (OURS, THEIRS)]
        for space in spaces:
            self.api.request('POST', '/api/v1/namespaces', {'metadata': {'name': space}})
            for name, spec in jobs():
                self.api.create(space, 'tfjobs', {'apiVersion': 'kubeflow.org/v1', 'kind': 'TFJob', 'metadata': {'name': name}, 'spec': spec})
        started = [self.cluster.spawn_operator(WEFT, '--namespace', spaces[0], '--gang_scheduler_name', scheduler),
                   self.cluster.spawn('reference', cluster.build('reference'), '--namespace', spaces[1], '--gang-scheduler-name', scheduler)]
        try:
            for space in spaces:
                cluster.wait_for(lambda: len(self.groups(scheduler, space)['items']) == len(names), 'groups of ' + space)
                if scheduler != 'volcano':
                    continue
                # Not one pod before its group is admitted.
                self.assertEqual(self.api.list(space, 'pods'), [])
                for name in names:
                    self.api.request('PATCH', '/apis/%s/%s/namespaces/%s/podgroups/%s/status' % (*GROUPS[scheduler], space, name),
                                     {'status': {'phase': 'Inqueue'}}, cluster.api_client.MERGE)
                # There nobody watches the groups: something else must wake it.
                for name in names:
                    self.api.merge(space, 'tfjobs', name, {'metadata': {'annotations': {'touched': 'yes'}}})
            for space in spaces:
                cluster.wait_for(lambda: len(self.api.list(space, 'pods')) == 4 * len(names), 'pods of ' + space)
            found = []
            for name in names:
                ours, theirs = (self.flat(scheduler, space, name) for space in spaces)
                found += ['%s: %s\n  here:  %s\n  there: %s' % (name, *each) for each in differential_state.differences(ours, theirs)]
            self.assertEqual('\n'.join(found), '')
            # When the job has ended its group goes.
            for space in spaces:
                self.api.merge(space, 'tfjobs', 'plain', {'spec': {'runPolicy': {'activeDeadlineSeconds': 0}}})
                cluster.wait_for(lambda: 'plain' not in [each['metadata']['name'] for each in self.groups(scheduler, space)['items']],
                                 'end of the group of ' + space)
        finally:
            for process in started:
                process.terminate()
                process.wait(60)
                self.cluster.processes.remove(process)

    def test_volcano(self):
        self.compare('volcano')

    def test_a_scheduler_with_the_coscheduling_plugin(self):
        self.compare('other-scheduler')


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2, warnings='ignore')
