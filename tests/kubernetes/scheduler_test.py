#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft scheduler` on a real API server: bindings, conditions, events, gangs, evictions, its end at any moment.

    scheduler_test.py WEFT
"""
import json
import sys
import tempfile
import unittest

import cluster
import gang_definitions

WEFT = sys.argv[1]
NODES, PODS = '/api/v1/nodes', '/api/v1/namespaces/default/pods'


def node(name, gpus=0, **allocatable):
    amounts = {'cpu': '8', 'memory': '16Gi', 'pods': '50', **allocatable, **({'nvidia.com/gpu': str(gpus)} if gpus else {})}
    return {'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': name, 'labels': {'kubernetes.io/hostname': name}},
            'status': {'allocatable': amounts, 'capacity': amounts,
                       'conditions': [{'type': 'Ready', 'status': 'True'}]}}


def pod(name, limits=None, labels=None, annotations=None, **spec):
    return {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': name, 'labels': labels or {}, 'annotations': annotations or {}},
            'spec': {'schedulerName': 'weft-scheduler', 'terminationGracePeriodSeconds': 0,
                     'containers': [{'name': 'c', 'image': 'i', 'resources': {'limits': limits or {}}}], **spec}}


class SchedulerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.cluster = cluster.Cluster(cls.temporary.name)
        try:
            cls.cluster.start()
            cls.api = cls.cluster.api
            cls.cluster.k('apply', '-f', '-', stdin=json.dumps(gang_definitions.definition('scheduling.x-k8s.io', 'v1alpha1')))
            cls.cluster.k('wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s')
            for each in (node('a'), node('b', gpus=4)):
                cls.api.request('POST', NODES, each)
                cls.api.request('PUT', NODES + '/%s/status' % each['metadata']['name'], each)
            cls.cluster.k('apply', '-f', str(cluster.DEPLOY / 'rbac' / 'scheduler.yaml'))
            token = cls.cluster.k('create', 'token', 'weft-scheduler', '-n', 'weft-system').strip()
            # With its own rights and no more.
            cls.kubeconfig = cls.cluster.folder / 'scheduler.kubeconfig'
            cls.kubeconfig.write_text(cls.cluster.plane.kubeconfig.read_text().replace(cls.cluster.plane.token, token))
            cls.kubeconfig.chmod(0o600)
            cls.start_scheduler()
        except BaseException:
            cls.tearDownClass()
            raise

    @classmethod
    def start_scheduler(cls):
        cls.scheduler = cls.cluster.spawn('scheduler', WEFT, 'scheduler', kubeconfig=cls.kubeconfig)

    @classmethod
    def tearDownClass(cls):
        cls.cluster.stop()
        cls.temporary.cleanup()

    def tearDown(self):
        for each in self.api.request('GET', PODS)['items']:
            self.api.request('DELETE', '%s/%s' % (PODS, each['metadata']['name']), {'gracePeriodSeconds': 0})

    def create(self, *pods):
        for each in pods:
            self.api.request('POST', PODS, each)

    def get(self, name):
        return self.api.request('GET', '%s/%s' % (PODS, name))

    def node_of(self, name):
        return self.get(name)['spec'].get('nodeName')

    def condition(self, name):
        return next((each for each in self.get(name)['status'].get('conditions', []) if each['type'] == 'PodScheduled'), {})

    def events(self, name):
        listed = self.api.request('GET', '/api/v1/namespaces/default/events?fieldSelector=involvedObject.name=' + name)
        return [(each['reason'], each['message']) for each in listed['items']]

    def test_binds_and_explains(self):
        self.create(pod('fits', {'cpu': '2', 'nvidia.com/gpu': '2'}), pod('waits', {'cpu': '20'}),
                    pod('others', {'cpu': '1'}, schedulerName='default-scheduler'))
        cluster.wait_for(lambda: self.node_of('fits') == 'b', 'binding')
        bound = self.get('fits')
        self.assertEqual(bound['metadata']['annotations']['weft.dev/gpu-indices'], '0,1')
        self.assertEqual(self.condition('fits')['status'], 'True')
        cluster.wait_for(lambda: self.condition('waits').get('reason') == 'Unschedulable', 'condition')
        self.assertIn('0/2 nodes are available: 2 Insufficient cpu. It needs 20 cpu; node', self.condition('waits')['message'])
        cluster.wait_for(lambda: any(reason == 'FailedScheduling' for reason, _ in self.events('waits')), 'event')
        cluster.wait_for(lambda: any(reason == 'Scheduled' for reason, _ in self.events('fits')), 'event')
        # Not its own.
        self.assertIsNone(self.node_of('others'))
        self.assertEqual(self.condition('others'), {})

    def test_gangs_and_a_killed_scheduler(self):
        self.api.request('POST', '/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups',
                         {'apiVersion': 'scheduling.x-k8s.io/v1alpha1', 'kind': 'PodGroup', 'metadata': {'name': 'g'}, 'spec': {'minMember': 3}})
        label = {'scheduling.x-k8s.io/pod-group': 'g'}
        self.create(pod('taken', {'nvidia.com/gpu': '2'}))
        cluster.wait_for(lambda: self.node_of('taken'), 'binding')
        self.create(*(pod('g%d' % i, {'nvidia.com/gpu': '1'}, labels=label) for i in range(3)))
        cluster.wait_for(lambda: '2 of 3 pods of gang default/g fit; g2 needs 1 GPU' in self.condition('g2').get('message', ''), 'reason')
        self.assertEqual([self.node_of('g%d' % i) for i in range(3)], [None] * 3)
        self.scheduler.kill()
        self.scheduler.wait()
        self.api.request('DELETE', PODS + '/taken', {'gracePeriodSeconds': 0})
        self.start_scheduler()
        cluster.wait_for(lambda: all(self.node_of('g%d' % i) == 'b' for i in range(3)), 'gang')
        indices = sorted(self.get('g%d' % i)['metadata']['annotations']['weft.dev/gpu-indices'] for i in range(3))
        self.assertEqual(len(set(indices)), 3)

    def test_tasks_of_a_job_share_a_pod(self):
        self.cluster.k('apply', '-f', str(cluster.DEPLOY / 'rbac' / 'packing.yaml'))
        self.cluster.spawn_operator(WEFT)
        container = {'name': 'tensorflow', 'image': 'i', 'command': ['train'], 'resources': {'limits': {'nvidia.com/gpu': '1'}}}
        template = {'spec': {'schedulerName': 'weft-scheduler', 'containers': [container]}}
        without = {'spec': {'schedulerName': 'weft-scheduler', 'containers': [{**container, 'resources': {}}]}}
        self.api.request('POST', '/apis/kubeflow.org/v1/namespaces/default/tfjobs', {
            'apiVersion': 'kubeflow.org/v1', 'kind': 'TFJob', 'metadata': {'name': 'j', 'annotations': {'weft.dev/packing': 'auto'}},
            'spec': {'tfReplicaSpecs': {'PS': {'replicas': 1, 'template': without}, 'Worker': {'replicas': 3, 'template': template}}}})
        cluster.wait_for(lambda: [each['metadata']['name'] for each in self.api.request('GET', PODS)['items']] == ['j-worker-0'], 'shared pod')
        cluster.wait_for(lambda: self.node_of('j-worker-0') == 'b', 'binding')
        made = self.get('j-worker-0')
        self.assertEqual(made['metadata']['annotations']['weft.dev/tasks'], 'worker-0,worker-1,worker-2,ps-0')
        self.assertEqual(made['spec']['containers'][0]['resources']['limits'], {'nvidia.com/gpu': '3'})
        job = cluster.wait_for(lambda: [each for each in self.api.request('GET', '/apis/kubeflow.org/v1/namespaces/default/tfjobs')['items']
                                        if 'packing' in each.get('status', {})], 'decision')[0]
        self.assertIn('4 tasks share one pod: node b has room for 3 GPUs', job['status']['packing']['reason'])
        self.api.request('DELETE', '/apis/kubeflow.org/v1/namespaces/default/tfjobs/j')

    def test_priorities_evict(self):
        self.api.request('POST', '/apis/scheduling.k8s.io/v1/priorityclasses',
                         {'apiVersion': 'scheduling.k8s.io/v1', 'kind': 'PriorityClass', 'metadata': {'name': 'high'}, 'value': 1000})
        self.create(pod('low', {'nvidia.com/gpu': '4'}))
        cluster.wait_for(lambda: self.node_of('low'), 'binding')
        self.create(pod('high', {'nvidia.com/gpu': '1'}, priorityClassName='high'))
        cluster.wait_for(lambda: self.node_of('high') == 'b', 'binding')
        self.assertNotIn('low', [each['metadata']['name'] for each in self.api.request('GET', PODS)['items']])


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)
