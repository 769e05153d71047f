#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The digits in containers: a real kubelet with containerd, and an image made here of the programs and their libraries.

    kubelet_test.py WEFT DIGITS EXAMPLE_FOLDER

Ends with 77 and says why when this machine cannot run containers.
"""
import pathlib
import sys
import tempfile
import unittest

import cluster
import container_node

WEFT, DIGITS, EXAMPLE = sys.argv[1:4]
SKIPPED = 77
TASKS = {'PS': 2222, 'Chief': 2223, 'Worker': 2224}

STEPS = 600


def template(port, model):
    """No name server and no network of pods here: all share the machine's, each task has a port of its own."""
    names = ['digits-%s-0.default.svc' % kind.lower() for kind in TASKS]
    return {'spec': {
        'nodeName': container_node.NODE, 'hostNetwork': True, 'dnsPolicy': 'Default', 'terminationGracePeriodSeconds': 1,
        'automountServiceAccountToken': False, 'enableServiceLinks': False,
        'hostAliases': [{'ip': '127.0.0.1', 'hostnames': names}],
        'volumes': [{'name': 'model', 'hostPath': {'path': str(model)}}],
        'containers': [{
            'name': 'tensorflow', 'image': 'weft.local/weft:1', 'imagePullPolicy': 'Never',
            'command': ['digits', '--data', '/data/digits.csv', '--model_dir', '/model', '--steps', str(STEPS)],
            'ports': [{'name': 'tfjob-port', 'containerPort': port}],
            'volumeMounts': [{'name': 'model', 'mountPath': '/model'}]}]}}


class KubeletTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        (self.folder / 'node').mkdir()
        (self.folder / 'model').mkdir()
        self.node = container_node.ContainerNode(self.folder / 'node')
        self.cluster = None

    def tearDown(self):
        if self.cluster is not None:
            self.cluster.stop()
        self.node.stop()
        self.temporary.cleanup()

    def test_the_digits_train_in_containers(self):
        self.assertEqual(self.node.why_not(), '')
        kubelet = cluster.build('kubelet')
        self.cluster = cluster.Cluster(self.folder)
        self.cluster.start(*self.node.credentials())
        self.cluster.k('apply', '-f', str(cluster.DEPLOY / 'rbac' / 'logs.yaml'))
        self.cluster.spawn_operator(WEFT, '--progress_from_logs', '300ms')
        self.node.add_image('weft.local/weft:1', ['weft'], [WEFT, DIGITS],
                            {'/data/digits.csv': pathlib.Path(EXAMPLE) / 'digits.csv'})
        self.node.start_kubelet(kubelet, self.cluster.plane.kubeconfig)
        try:
            self.train()
        except AssertionError as error:
            pods = self.cluster.k('get', 'pods', '-o', 'yaml')
            raise AssertionError('%s\nkubelet: %s\npods: %s' % (error, self.node.log('kubelet'), pods[-4000:])) from error

    def train(self):
        k = self.cluster.k
        # It calls itself ready only with a network for pods, which those on the machine's own do without.
        cluster.wait_for(lambda: self.cluster.api.request('GET', '/api/v1/nodes')['items'], 'node')
        replicas = {kind: {'replicas': 1, 'restartPolicy': 'OnFailure', 'template': template(port, self.folder / 'model')}
                    for kind, port in TASKS.items()}
        self.cluster.api.create('default', 'tfjobs', {
            'apiVersion': 'kubeflow.org/v1', 'kind': 'TFJob',
            'metadata': {'name': 'digits', 'annotations': {'weft.dev/task-security': 'tls'}},
            'spec': {'runPolicy': {'cleanPodPolicy': 'Running'}, 'tfReplicaSpecs': replicas}})
        # The kubelet knows nothing of steps, and the pods may not write.
        progress = cluster.wait_for(lambda: self.cluster.api.get('default', 'tfjobs', 'digits').get('status', {}).get('progress'),
                                    'progress', 240)
        self.assertEqual((progress['task'], progress['steps']), ('chief-0', STEPS), progress)
        self.assertGreater(progress['metrics']['loss'], 0)
        k('wait', '--for=condition=Succeeded', 'tfjob/digits', '--timeout=240s')
        self.assertIn('accuracy', k('logs', 'digits-chief-0'))
        # Between tasks all is TLS, although the names mean loopback here.
        self.assertRegex(k('logs', 'digits-chief-0'), r'with the secret of the job only, digits-task-tls-')
        self.assertNotIn('WITHOUT ENCRYPTION', k('logs', 'digits-chief-0'))
        pod = self.cluster.api.get('default', 'pods', 'digits-chief-0')
        self.assertEqual(pod['status']['phase'], 'Succeeded')
        self.assertTrue(pod['status']['containerStatuses'][0]['containerID'].startswith('containerd://'))
        k('wait', '--for=delete', 'pod/digits-ps-0', '--timeout=60s')


def why_not():
    with tempfile.TemporaryDirectory() as folder:
        node = container_node.ContainerNode(folder)
        try:
            return node.why_not()
        finally:
            node.stop()


if __name__ == '__main__':
    reason = why_not()
    if reason:
        print('skipped: this machine runs no containers: ' + reason)
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1], verbosity=2, warnings='ignore')
