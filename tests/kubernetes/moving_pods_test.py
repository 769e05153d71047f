#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Parameter servers go from pod to pod on a real cluster while a job trains: a real kubelet with containerd, each pod with an address.

    moving_pods_test.py WEFT DIGITS EXAMPLE_FOLDER

Two workers train at their own pace, so the job's status has to tell how stale their updates are. Ends with 77 and says why when this
machine cannot run containers, or give them addresses.
"""
import pathlib
import re
import socket
import struct
import sys
import tempfile
import threading
import time
import unittest

import cluster
import container_node

WEFT, DIGITS, EXAMPLE = sys.argv[1:4]
SKIPPED = 77
STEPS = 6000


class NameServer:
    """Tells pods where the services lie, by the addresses of the running pods that these choose: a cluster's name server, of A records."""

    def __init__(self, address, api):
        self.api = api
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((address, 53))
        self.thread = threading.Thread(target=self._answer, daemon=True)
        self.thread.start()

    def addresses(self, service):
        chosen = self.api.get('default', 'services', service)['spec']['selector'].items()
        return [pod['status']['podIP'] for pod in self.api.request('GET', '/api/v1/namespaces/default/pods')['items']
                if chosen <= pod['metadata']['labels'].items() and pod['status'].get('podIP') and pod['status']['phase'] == 'Running'
                and 'deletionTimestamp' not in pod['metadata']]

    def _answer(self):
        while True:
            question, sender = self.socket.recvfrom(512)
            labels, at = [], 12
            while question[at]:
                labels.append(question[at + 1:at + 1 + question[at]].decode())
                at += 1 + question[at]
            asked, = struct.unpack('>H', question[at + 1:at + 3])
            found = []
            if asked == 1 and re.fullmatch(r'[^.]+\.default\.svc(\.cluster\.local)?', '.'.join(labels)):
                try:
                    found = self.addresses(labels[0])
                except Exception:  # no such service: no such name
                    found = []
            known = labels[1:3] == ['default', 'svc']
            answer = question[:2] + struct.pack('>HHHHH', 0x8580 | (0 if known else 3), 1, len(found), 0, 0) + question[12:at + 5]
            for address in found:
                answer += struct.pack('>HHHIH', 0xc00c, 1, 1, 0, 4) + socket.inet_aton(address)
            self.socket.sendto(answer, sender)


class MovingPodsTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        (self.folder / 'node').mkdir()
        (self.folder / 'model').mkdir()
        self.node = container_node.ContainerNode(self.folder / 'node')
        self.addCleanup(self.node.stop)
        self.assertEqual(self.node.why_not() or self.node.why_no_network(), '')
        self.cluster = cluster.Cluster(self.folder)
        self.addCleanup(self.cluster.stop)
        self.cluster.start(*self.node.credentials())
        self.cluster.k('apply', '-f', str(cluster.DEPLOY / 'rbac' / 'logs.yaml'))
        self.names = NameServer(self.node.name_server, self.cluster.api)
        self.cluster.spawn_operator(WEFT, '--progress_from_logs', '300ms')
        self.node.add_image('weft.local/weft:1', ['weft'], [WEFT, DIGITS],
                            {'/data/digits.csv': pathlib.Path(EXAMPLE) / 'digits.csv'})
        self.node.start_kubelet(cluster.build('kubelet'), self.cluster.plane.kubeconfig)

    def template(self):
        return {'spec': {
            'nodeName': container_node.NODE, 'automountServiceAccountToken': False, 'enableServiceLinks': False,
            'volumes': [{'name': 'model', 'hostPath': {'path': str(self.folder / 'model')}}],
            'containers': [{
                'name': 'tensorflow', 'image': 'weft.local/weft:1', 'imagePullPolicy': 'Never',
                'command': ['digits', '--async', '--data', '/data/digits.csv', '--model_dir', '/model', '--steps', str(STEPS),
                            '--batch', '100'],
                'volumeMounts': [{'name': 'model', 'mountPath': '/model'}]}]}}

    def job(self):
        return self.cluster.api.get('default', 'tfjobs', 'digits')

    def step(self):
        return self.job().get('status', {}).get('progress', {}).get('step', -1)

    def pods(self, of):
        return {pod['metadata']['name']: pod for pod in self.cluster.api.request('GET', '/api/v1/namespaces/default/pods')['items']
                if pod['metadata']['labels']['training.kubeflow.org/replica-type'] == of}

    def told(self):
        said = ''.join('%s:\n%s\n' % (name, self.cluster.k('logs', name)[-1500:]) for of in ('ps', 'worker') for name in self.pods(of)
                       if self.pods(of)[name]['status']['phase'] != 'Pending')
        return '%s\n%s\n%s\nkubelet: %s' % (self.cluster.k('get', 'pods', '-o', 'wide'), self.cluster.k('describe', 'tfjob', 'digits')[-3000:],
                                            said, self.node.log('kubelet'))

    def wait_for(self, is_so, what, seconds=120):
        cluster.wait_for(is_so, lambda: '%s:\n%s' % (what, self.told()), seconds)

    def move(self, count, *names):
        """To so many pods; returns the addresses they have."""
        before, begun = self.step(), time.monotonic()
        self.cluster.k('patch', 'tfjob', 'digits', '--type', 'merge', '-p', '{"spec":{"tfReplicaSpecs":{"PS":{"replicas":%d}}}}' % count)
        self.wait_for(lambda: sorted(self.pods('ps')) == sorted(names) and
                      self.job()['status'].get('servers') == {'tasks': 2, 'pods': count}, 'move to %d pods' % count)
        moved, there = time.monotonic() - begun, self.step()
        self.assertLess(there, STEPS, 'the job ended before its servers had moved')
        self.wait_for(lambda: self.step() > there, 'step behind step %d' % there)
        print('to %s in %.1f s, from step %d to %d' % (', '.join(names), moved, before, there), flush=True)
        return [pod['status']['podIP'] for pod in self.pods('ps').values()]

    def test_they_go_into_one_pod_and_apart_again_while_workers_train(self):
        self.cluster.api.create('default', 'tfjobs', {
            'apiVersion': 'kubeflow.org/v1', 'kind': 'TFJob',
            'metadata': {'name': 'digits', 'annotations': {'weft.dev/task-security': 'tls'}},
            'spec': {'runPolicy': {'cleanPodPolicy': 'Running', 'backoffLimit': 0}, 'tfReplicaSpecs': {
                'PS': {'replicas': 2, 'restartPolicy': 'OnFailure', 'elasticPolicy': {'maxReplicas': 2}, 'template': self.template()},
                'Worker': {'replicas': 2, 'restartPolicy': 'Never', 'template': self.template()}}}})
        self.wait_for(lambda: self.step() > 0, 'step', 240)
        addresses = {pod['status']['podIP'] for pod in list(self.pods('ps').values()) + list(self.pods('worker').values())}
        self.assertEqual(len(addresses), 4, addresses)
        addresses.update(self.move(1, 'digits-ps-0-to-1'))
        addresses.update(self.move(2, 'digits-ps-0', 'digits-ps-1'))
        self.assertEqual(len(addresses), 7, addresses)
        self.wait_for(lambda: self.job()['status']['progress'].get('staleness'), 'staleness')
        staleness = self.job()['status']['progress']['staleness']
        self.assertGreaterEqual(staleness['highest'], 1, staleness)
        print('staleness', staleness, flush=True)
        self.cluster.k('wait', '--for=condition=Succeeded', 'tfjob/digits', '--timeout=240s')
        # No worker began again, and none lost its session.
        workers = self.pods('worker').values()
        self.assertEqual([pod['status']['containerStatuses'][0]['restartCount'] for pod in workers], [0, 0])
        self.assertNotIn('lostSteps', self.job()['status']['progress'])
        said = self.cluster.k('logs', 'digits-worker-0')
        self.assertRegex(said, 'accuracy')
        self.assertNotRegex(said, 'Resuming|[Rr]ecover')


def why_not():
    with tempfile.TemporaryDirectory() as folder:
        node = container_node.ContainerNode(folder)
        try:
            return node.why_not() or node.why_no_network()
        finally:
            node.stop()


if __name__ == '__main__':
    reason = why_not()
    if reason:
        print('skipped: this machine runs no containers with addresses of their own: ' + reason)
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1], verbosity=2, warnings='ignore')
