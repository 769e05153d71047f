#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pods on `weft up` go where they fit: several nodes, cordons, selectors, taints, GPUs, quotas, other schedulers.

    scheduling_test.py WEFT
"""
import json
import sys
import tempfile
import time
import unittest

import control_plane

WEFT = sys.argv[1]
NODES = ['a,cpu=4,memory=8Gi,label:disk=ssd', 'b,cpu=8,memory=8Gi,gpu=4,gpu-memory=16Gi',
         'c,cpu=64,memory=8Gi,taint:team=x:NoSchedule']


def pod(name, limits=None, annotations=None, labels=None, command='exec sleep 1000', **spec):
    container = {'name': 'main', 'image': 'i', 'command': ['sh', '-c', command], 'resources': {'limits': limits or {}}}
    return {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': name, 'annotations': annotations or {}, 'labels': labels or {}},
            'spec': {'terminationGracePeriodSeconds': 1, 'restartPolicy': 'Never', 'containers': [container], **spec}}


class SchedulingTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.plane = control_plane.ControlPlane(WEFT, self.temporary.name, WEFT)
        self.flags = [word for node in NODES for word in ('--node', node)]
        self.plane.start(*self.flags)

    def tearDown(self):
        self.plane.stop()
        self.temporary.cleanup()

    def apply(self, *objects):
        self.plane.run(WEFT, 'apply', '-f', '-', stdin=json.dumps({'apiVersion': 'v1', 'kind': 'List', 'items': list(objects)}))

    def get(self, name, kind='pod'):
        code, out = self.plane.run(WEFT, 'get', kind, name, '-o', 'json', check=False)
        return json.loads(out) if code == 0 else None

    def await_(self, name, done, what):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            found = self.get(name)
            if found and done(found):
                return found
            time.sleep(0.1)
        self.fail('%s: %s does not come: %s' % (name, what, json.dumps(found)))

    def running(self, name):
        return self.await_(name, lambda found: found['status']['phase'] == 'Running', 'that it runs')['spec']['nodeName']

    def pending(self, name):
        """Why, as its condition says."""
        def reason(found):
            return next((each for each in found['status'].get('conditions', [])
                         if each['type'] == 'PodScheduled' and each['status'] == 'False'), None)
        found = self.await_(name, reason, 'a reason')
        self.assertNotIn('nodeName', found['spec'])
        self.assertEqual(found['status']['phase'], 'Pending')
        return '%(reason)s: %(message)s' % reason(found)

    def test_where_pods_go(self):
        required = {'nodeAffinity': {'requiredDuringSchedulingIgnoredDuringExecution': {'nodeSelectorTerms': [
            {'matchExpressions': [{'key': 'disk', 'operator': 'NotIn', 'values': ['ssd']}]}]}}}
        tolerates = [{'key': 'team', 'operator': 'Equal', 'value': 'x', 'effect': 'NoSchedule'}]
        self.apply(pod('selected', {'cpu': '1'}, nodeSelector={'disk': 'ssd'}),
                   pod('kept-off', {'cpu': '1'}, affinity=required),
                   pod('tolerant', {'cpu': '32'}, tolerations=tolerates),
                   pod('too-great', {'cpu': '32'}),
                   pod('nowhere', {}, nodeSelector={'disk': 'tape'}),
                   pod('greedy', {'nvidia.com/gpu': '8'}),
                   pod('memory', {'memory': '900Gi'}),
                   pod('gated', schedulingGates=[{'name': 'quota'}]),
                   pod('foreign', schedulerName='volcano'))
        self.assertEqual(self.running('selected'), 'a')
        self.assertEqual(self.running('kept-off'), 'b')
        self.assertEqual(self.running('tolerant'), 'c')
        self.assertIn("0/3 nodes are available: 1 node(s) had untolerated taint {team: x}, 2 Insufficient cpu.", self.pending('too-great'))
        self.assertIn("Unschedulable: 0/3 nodes are available: ", self.pending('nowhere'))
        self.assertIn("2 node(s) didn't match Pod's node affinity/selector", self.pending('nowhere'))
        self.assertIn('It needs 8 GPUs; node b has GPUs: 4 of 4 free, and no node is large enough', self.pending('greedy'))
        self.assertIn('Insufficient memory', self.pending('memory'))
        self.assertIn('SchedulingGated: ', self.pending('gated'))
        time.sleep(1.5)
        self.assertNotIn('nodeName', self.get('foreign')['spec'])
        self.assertIn("No scheduler 'volcano' runs here", self.plane.run(WEFT, 'describe', 'pod', 'foreign'))
        described = self.plane.run(WEFT, 'describe', 'pod', 'nowhere')
        self.assertIn('FailedScheduling', described)
        # A restart forgets nothing, and runs nothing that did not fit.
        self.plane.stop()
        self.plane.start(*self.flags)
        time.sleep(1.5)
        for name in ('too-great', 'nowhere', 'greedy', 'gated', 'foreign'):
            self.assertNotIn('nodeName', self.get(name)['spec'], name)

    def test_gpus_are_given_once_and_seen(self):
        show = 'echo "sees $CUDA_VISIBLE_DEVICES"; exec sleep 1000'
        self.apply(pod('set', annotations={'alpha.kubernetes.io/gpuset': '0,2'}, command=show))
        self.assertEqual(self.running('set'), 'b')
        self.apply(pod('whole', {'nvidia.com/gpu': '1'}, command=show),
                   pod('part', {'weft.dev/gpu-memory': '10Gi'}, command=show),
                   pod('piece', {'weft.dev/gpu-memory': '6Gi'}, command=show),
                   pod('none', nodeSelector={'kubernetes.io/hostname': 'b'}, command=show))
        seen = {}
        for name in ('set', 'whole', 'part', 'piece', 'none'):
            self.running(name)
            deadline = time.monotonic() + 30
            while 'sees' not in self.plane.run(WEFT, 'logs', name) and time.monotonic() < deadline:
                time.sleep(0.1)
            seen[name] = self.plane.run(WEFT, 'logs', name).strip().replace('sees', '').strip()
        self.assertEqual(seen['set'], '0,2')
        self.assertEqual(seen['part'], seen['piece'])
        self.assertEqual({seen['whole'], seen['part']}, {'1', '3'})
        self.assertEqual(seen['none'], '')
        self.apply(pod('late', {'nvidia.com/gpu': '1'}))
        self.assertIn('Insufficient nvidia.com/gpu', self.pending('late'))
        self.plane.run(WEFT, 'delete', 'pod', 'whole')
        self.assertEqual(self.running('late'), 'b')

    def test_cordoned_nodes_hold(self):
        # As kubectl cordon writes it.
        for name in 'ab':
            node = self.get(name, 'node')
            node['spec'] = dict(node.get('spec', {}), unschedulable=True)
            self.plane.run(WEFT, 'apply', '-f', '-', stdin=json.dumps(
                {'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': name}, 'spec': {'unschedulable': True}}))
        self.apply(pod('waits', {'cpu': '1'}))
        self.assertIn('2 node(s) were unschedulable', self.pending('waits'))
        self.plane.stop()
        self.plane.start(*self.flags)
        self.assertIn('2 node(s) were unschedulable', self.pending('waits'))
        self.plane.run(WEFT, 'apply', '-f', '-', stdin=json.dumps(
            {'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': 'a'}, 'spec': {'unschedulable': False}}))
        self.assertEqual(self.running('waits'), 'a')

    def test_a_higher_priority_makes_room(self):
        self.apply(pod('low', {'cpu': '8'}))
        self.assertEqual(self.running('low'), 'b')
        self.apply(pod('low-too', {'cpu': '4'}))
        self.running('low-too')
        self.apply({'apiVersion': 'scheduling.k8s.io/v1', 'kind': 'PriorityClass', 'metadata': {'name': 'urgent'}, 'value': 100})
        self.apply(pod('high', {'cpu': '6'}, priorityClassName='urgent'))
        self.assertEqual(self.running('high'), 'b')
        self.assertIsNone(self.get('low'))
        self.running('low-too')

    def test_wrong_flags_are_told(self):
        self.plane.stop()
        for flags, message in ((['--node', 'A'], "'A' cannot be the name of a node"), (['--node', 'a,cpu'], "'cpu' of node a"),
                               (['--order', 'lifo'], 'lifo'), (['--queues', '/nowhere'], '/nowhere')):
            code, out = self.plane.run(WEFT, 'up', '--state', self.temporary.name + '/other', *flags, check=False, timeout=30)
            self.assertNotEqual(code, 0)
            self.assertIn(message, out)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)
