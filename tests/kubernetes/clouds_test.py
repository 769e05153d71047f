#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One job's YAML on nodes as AWS, Azure and GCP shape, label and taint them: it runs unchanged, wherever it gets its room.

    clouds_test.py WEFT

The shapes are those of the clouds' managed clusters: what a node has after their reservations, the labels that their
controllers set, and the taints of GPU, spot and system nodes. Their programs are processes of this machine.
"""
import json
import pathlib
import sys
import tempfile
import time
import unittest

import control_plane

WEFT = sys.argv[1]


def node(name, cpu, memory, labels, gpus=0, model='', gpu_memory='', taints=(), pods=110):
    words = [name, 'cpu=' + cpu, 'memory=' + memory, 'pods=%d' % pods]
    if gpus:
        words += ['gpu=%d' % gpus, 'gpu-model=' + model, 'gpu-memory=' + gpu_memory]
    return ','.join(words + ['label:%s=%s' % each for each in labels.items()] + ['taint:' + each for each in taints])


def zoned(region, zone, kind, **more):
    return {'topology.kubernetes.io/region': region, 'topology.kubernetes.io/zone': zone, 'node.kubernetes.io/instance-type': kind,
            **more}


CLOUDS = {
    # EKS: m5.2xlarge, and g4dn.12xlarge with the taint that its guide sets; pods bounded by addresses.
    'aws': [
        node('ip-192-168-11-7.us-west-2.compute.internal', '7910m', '31482304Ki',
             zoned('us-west-2', 'us-west-2a', 'm5.2xlarge', **{'eks.amazonaws.com/nodegroup': 'system',
                                                              'eks.amazonaws.com/capacityType': 'ON_DEMAND'}), pods=58),
        node('ip-192-168-44-9.us-west-2.compute.internal', '47790m', '192250Mi',
             zoned('us-west-2', 'us-west-2b', 'g4dn.12xlarge', **{'k8s.amazonaws.com/accelerator': 'nvidia-tesla-t4'}),
             gpus=4, model='T4', gpu_memory='15360Mi', taints=['nvidia.com/gpu=true:NoSchedule'], pods=234)],
    # AKS: a system pool that takes add-ons alone, Standard_D8s_v3, and spot nodes with GPUs.
    'azure': [
        node('aks-system-12345678-vmss000000', '3860m', '12880736Ki',
             zoned('eastus', 'eastus-1', 'Standard_D4s_v3', **{'kubernetes.azure.com/mode': 'system'}),
             taints=['CriticalAddonsOnly=true:NoSchedule'], pods=30),
        node('aks-work-12345678-vmss000001', '7820m', '28355648Ki',
             zoned('eastus', 'eastus-2', 'Standard_D8s_v3', **{'kubernetes.azure.com/mode': 'user'}), pods=30),
        node('aks-gpu-12345678-vmss000002', '23660m', '432876Mi',
             zoned('eastus', 'eastus-1', 'Standard_NC24ads_A100_v4', **{'kubernetes.azure.com/scalesetpriority': 'spot',
                                                                      'accelerator': 'nvidia'}),
             gpus=1, model='A100', gpu_memory='80Gi',
             taints=['sku=gpu:NoSchedule', 'kubernetes.azure.com/scalesetpriority=spot:NoSchedule'], pods=30),
        node('aks-gpu-12345678-vmss000003', '23660m', '432876Mi',
             zoned('eastus', 'eastus-2', 'Standard_NC24ads_A100_v4', **{'kubernetes.azure.com/scalesetpriority': 'spot',
                                                                      'accelerator': 'nvidia'}),
             gpus=1, model='A100', gpu_memory='80Gi',
             taints=['sku=gpu:NoSchedule', 'kubernetes.azure.com/scalesetpriority=spot:NoSchedule'], pods=30)],
    # GKE: e2-standard-8, and a2-highgpu-2g, whose taint the cloud sets itself.
    'gcp': [
        node('gke-main-default-pool-0a1b2c3d-x1yz', '7910m', '29048620Ki',
             zoned('us-central1', 'us-central1-a', 'e2-standard-8', **{'cloud.google.com/gke-nodepool': 'default-pool',
                                                                     'cloud.google.com/machine-family': 'e2'})),
        node('gke-main-gpus-4e5f6a7b-q9rs', '23850m', '163590Mi',
             zoned('us-central1', 'us-central1-a', 'a2-highgpu-2g',
                   **{'cloud.google.com/gke-nodepool': 'gpus', 'cloud.google.com/gke-accelerator': 'nvidia-tesla-a100',
                      'cloud.google.com/gke-accelerator-count': '2'}),
             gpus=2, model='A100', gpu_memory='40Gi', taints=['nvidia.com/gpu=present:NoSchedule'])]}

# Nothing in it names a cloud: what it needs, and whose taints on GPU nodes it bears.
JOB = '''apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: everywhere}
spec:
  tfReplicaSpecs:
    PS:
      replicas: 1
      template:
        spec:
          containers:
          - name: tensorflow
            image: train:1
            command: [sh, -c, "echo $TF_CONFIG > $PLACE/ps-0; exec sleep 1000"]
            resources: {requests: {cpu: "3", memory: 8Gi}}
    Worker:
      replicas: 2
      template:
        spec:
          tolerations:
          - {key: nvidia.com/gpu, operator: Exists}
          - {key: sku, value: gpu}
          - {key: kubernetes.azure.com/scalesetpriority, value: spot}
          containers:
          - name: tensorflow
            image: train:1
            command: [sh, -c, "echo \\"$CUDA_VISIBLE_DEVICES\\" > $PLACE/gpus-$HOSTNAME; until test -e $PLACE/end; do sleep 0.1; done"]
            resources: {requests: {cpu: "10", memory: 40Gi}, limits: {nvidia.com/gpu: 1}}
'''


class CloudsTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.plane = control_plane.ControlPlane(WEFT, self.temporary.name, WEFT)
        self.plane.environment['PLACE'] = self.temporary.name

    def tearDown(self):
        self.plane.stop()
        self.temporary.cleanup()

    def read(self, *words):
        return json.loads(self.plane.run(WEFT, 'get', *words, '-o', 'json'))

    def await_(self, is_so, what):
        deadline = time.monotonic() + 120
        while not is_so():
            self.assertLess(time.monotonic(), deadline, what + '\n' + self.plane.run(WEFT, 'describe', 'pods', check=False)[1])
            time.sleep(0.2)

    def play(self, nodes):
        """By pod: its node, and the GPU that it sees."""
        self.plane.start('--pass_env', 'PLACE', *(word for each in nodes for word in ('--node', each)))
        self.plane.run(WEFT, 'apply', '-f', '-', stdin=JOB)
        self.await_(lambda: [each['status'].get('phase') for each in self.read('pods')['items']] == ['Running'] * 3, 'three pods')
        folder = pathlib.Path(self.temporary.name)
        self.await_(lambda: len(list(folder.glob('gpus-*'))) >= 1, 'what workers see')
        pods = {each['metadata']['name']: each for each in self.read('pods')['items']}
        places = {name: (each['spec']['nodeName'], each['metadata'].get('annotations', {}).get('weft.dev/gpu-indices'))
                  for name, each in pods.items()}
        config = json.loads((folder / 'ps-0').read_text())
        self.assertEqual((len(config['cluster']['ps']), len(config['cluster']['worker'])), (1, 2))
        (folder / 'end').touch()
        self.plane.run(WEFT, 'wait', '--for=condition=Succeeded', 'tfjob/everywhere', '--timeout=120s')
        return places

    def test_aws(self):
        places = self.play(CLOUDS['aws'])
        self.assertEqual(places['everywhere-ps-0'], ('ip-192-168-11-7.us-west-2.compute.internal', None))
        workers = [places['everywhere-worker-%d' % i] for i in range(2)]
        self.assertEqual({place for place, _ in workers}, {'ip-192-168-44-9.us-west-2.compute.internal'})
        self.assertEqual(len({gpu for _, gpu in workers}), 2)

    def test_azure(self):
        places = self.play(CLOUDS['azure'])
        # Not among the add-ons.
        self.assertEqual(places['everywhere-ps-0'], ('aks-work-12345678-vmss000001', None))
        self.assertEqual(sorted(places['everywhere-worker-%d' % i] for i in range(2)),
                         [('aks-gpu-12345678-vmss000002', '0'), ('aks-gpu-12345678-vmss000003', '0')])

    def test_gcp(self):
        places = self.play(CLOUDS['gcp'])
        self.assertEqual(places['everywhere-ps-0'], ('gke-main-default-pool-0a1b2c3d-x1yz', None))
        self.assertEqual(sorted(places['everywhere-worker-%d' % i] for i in range(2)),
                         [('gke-main-gpus-4e5f6a7b-q9rs', '0'), ('gke-main-gpus-4e5f6a7b-q9rs', '1')])


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
