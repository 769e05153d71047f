#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft agent` beside a real kubelet: stand-in GPUs, shares and an adapter become allocatable, containers get them, a GPU
that vanishes is told and not given again, and a kubelet that starts again is told anew.

    agent_kubelet_test.py WEFT STAND_IN_NVML

Ends with 77 and says why when this machine cannot run containers.
"""
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import unittest

import cluster
import container_node
import real_control_plane
import stand_in_machine

WEFT, LIBRARY = sys.argv[1:3]
SKIPPED = 77
PODS = '/api/v1/namespaces/default/pods'
NODE = '/api/v1/nodes/' + container_node.NODE
SHOW = 'echo "$NVIDIA_VISIBLE_DEVICES|$ALIYUN_COM_GPU_MEM_CONTAINER|$WEFT_RDMA_ADAPTERS|"$(ls -d /dev/nv* /dev/infiniband/* 2>/dev/null); sleep 1000'


def pod(name, **limits):
    return {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': name}, 'spec': {
        'nodeName': container_node.NODE, 'hostNetwork': True, 'dnsPolicy': 'Default', 'terminationGracePeriodSeconds': 0,
        'automountServiceAccountToken': False, 'enableServiceLinks': False, 'restartPolicy': 'Never',
        'containers': [{'name': 'main', 'image': 'weft.local/shell:1', 'imagePullPolicy': 'Never', 'command': ['sh', '-c', SHOW],
                        'resources': {'limits': {key.replace('_', '/', 1): str(value) for key, value in limits.items()}}}]}}


class AgentKubeletTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        (self.folder / 'node').mkdir()
        self.node = container_node.ContainerNode(self.folder / 'node')
        self.machine = stand_in_machine.StandInMachine(self.folder / 'machine', LIBRARY)
        self.cluster = cluster.Cluster(self.folder)

    def tearDown(self):
        self.cluster.stop()
        self.node.stop()
        self.temporary.cleanup()

    def allocatable(self):
        amounts = self.api.request('GET', NODE)['status']['allocatable']
        return tuple(amounts.get(name) for name in ('nvidia.com/gpu', 'aliyun.com/gpu-mem', 'weft.dev/rdma'))

    def words(self):
        return 'allocatable %s\nkubelet: %s\nagent: %s\npods: %s' % (
            self.api.request('GET', NODE)['status']['allocatable'], self.node.log('kubelet'),
            (self.folder / 'agent.log').read_text()[-2000:],
            [(each['metadata']['name'], each['status']) for each in self.api.request('GET', PODS)['items']])

    def await_(self, is_so, what):
        return cluster.wait_for(is_so, lambda: '%s: %s' % (what, self.words()), 120)

    def get(self, name):
        return self.api.request('GET', '%s/%s' % (PODS, name))

    def shown(self, name):
        """What the container prints of itself, once it runs."""
        self.await_(lambda: self.get(name)['status']['phase'] != 'Pending', 'running pod ' + name)
        self.assertEqual(self.get(name)['status']['phase'], 'Running', self.words())
        text = self.await_(lambda: self.cluster.k('logs', name).strip(), 'output of ' + name)
        return text.split('|')

    def make_account(self):
        """The rights of deploy/ alone: the token of a pod on this node."""
        self.cluster.k('apply', '-f', str(cluster.DEPLOY / 'agent' / 'rights.yaml'))
        self.api.request('POST', '/api/v1/namespaces/weft-system/pods', {
            'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'agent'},
            'spec': {'nodeName': container_node.NODE, 'serviceAccountName': 'weft-agent', 'automountServiceAccountToken': False,
                     'containers': [{'name': 'c', 'image': 'weft.local/none:1', 'imagePullPolicy': 'Never'}]}})
        token = self.cluster.k('create', 'token', 'weft-agent', '-n', 'weft-system', '--bound-object-kind', 'Pod',
                               '--bound-object-name', 'agent').strip()
        self.config = self.folder / 'agent.kubeconfig'
        self.config.write_text(self.cluster.plane.kubeconfig.read_text().replace(self.cluster.plane.token, token))
        self.config.chmod(0o600)

    def start_agent(self, *flags):
        with (self.folder / 'agent.log').open('a') as log:
            process = subprocess.Popen(
                [WEFT, 'agent', '--node', container_node.NODE, '--holders_socket',
                 str(self.folder / 'node' / 'kubelet' / 'pod-resources' / 'kubelet.sock'), '--shared_gpus', '2', '--period', '200ms',
                 *self.machine.flags(), *flags],
                env=dict(os.environ, KUBECONFIG=str(self.config), **self.machine.environment()), stdout=log, stderr=subprocess.STDOUT,
                preexec_fn=real_control_plane.die_with_parent)
        self.cluster.processes.append(process)

    def test_devices(self):
        self.assertEqual(self.node.why_not(), '')
        program = cluster.build('kubelet')
        self.cluster.start(*self.node.credentials())
        self.api = self.cluster.api
        self.node.add_image('weft.local/shell:1', ['sh'], ['/bin/sh', '/bin/ls', '/bin/sleep'])
        self.node.start_kubelet(program, self.cluster.plane.kubeconfig)
        cluster.wait_for(lambda: self.api.request('GET', '/api/v1/nodes')['items'], 'node')
        self.make_account()
        self.start_agent()
        self.await_(lambda: self.allocatable() == ('2', '4', '1'), 'capacity')
        self.await_(lambda: 'nvidia.com/gpu.product' in self.api.request('GET', NODE)['metadata']['labels'], 'labels')

        # Each kind, as the container sees it.
        self.api.request('POST', PODS, pod('one', **{'nvidia.com_gpu': 1}))
        uuid, _, _, files = self.shown('one')
        self.assertIn(uuid, [self.machine.uuid(0), self.machine.uuid(1)])
        index = 0 if uuid == self.machine.uuid(0) else 1
        self.assertEqual(files.split(), ['/dev/nvidia%d' % index, '/dev/nvidiactl'])
        self.api.request('POST', PODS, pod('share', **{'aliyun.com_gpu-mem': 3, 'weft.dev_rdma': 1}))
        uuid, share, adapter, files = self.shown('share')
        self.assertEqual((uuid, share, adapter), (self.machine.uuid(2), '3', 'mlx5_0'))
        self.assertEqual(files.split(), ['/dev/infiniband/uverbs0', '/dev/nvidia2', '/dev/nvidiactl'])
        # More than there is left: the kubelet refuses it.
        self.api.request('POST', PODS, pod('two', **{'nvidia.com_gpu': 2}))
        self.await_(lambda: self.get('two')['status']['phase'] == 'Failed', 'refusal')
        self.assertEqual(self.get('two')['status']['reason'], 'UnexpectedAdmissionError', self.get('two')['status'])

        # The GPU of the first pod falls off the bus.
        self.machine.lose(index)
        self.await_(lambda: self.allocatable() == ('1', '4', '1'), 'smaller allocatable')
        self.await_(lambda: any(each['type'] == 'weft.dev/DeviceLost' for each in self.get('one')['status']['conditions']), 'condition')
        events = self.api.request('GET', '/api/v1/namespaces/default/events?fieldSelector=involvedObject.name=one')['items']
        self.assertTrue([each for each in events if each['reason'] == 'DeviceLost' and 'is lost' in each['message']], events)
        self.assertFalse(any(each['type'] == 'weft.dev/DeviceLost' for each in self.get('share')['status']['conditions']))
        # Nobody gets it again; the other one is still to be had.
        self.cluster.k('delete', 'pod', 'one', '--force')
        self.api.request('POST', PODS, pod('other', **{'nvidia.com_gpu': 1}))
        self.assertEqual(self.shown('other')[0], self.machine.uuid(1 - index))

        # A kubelet that starts again forgets who served it.
        self.node.processes[-1].kill()
        self.node.processes[-1].wait()
        self.node.start_kubelet(program, self.cluster.plane.kubeconfig)
        said = 'The kubelet knows of'
        self.await_(lambda: (self.folder / 'agent.log').read_text().count(said) >= 6, 'second registration')
        self.await_(lambda: self.allocatable() == ('1', '4', '1'), 'capacity again')
        self.assertEqual(self.get('other')['status']['phase'], 'Running')

        # Names in Kubernetes' own domain are not for plug-ins: the old one cannot be served so.
        self.cluster.processes[-1].terminate()
        self.cluster.processes[-1].wait(30)
        self.start_agent('--gpu_name', 'alpha.kubernetes.io/nvidia-gpu')
        self.await_(lambda: 'alpha.kubernetes.io/nvidia-gpu: The kubelet at' in (self.folder / 'agent.log').read_text(), 'refusal')


def why_not():
    # Not in a folder of its own: the kubelet knows no other one for plug-ins.
    socket_path = pathlib.Path('/var/lib/kubelet/device-plugins/kubelet.sock')
    with socket.socket(socket.AF_UNIX) as probe:
        if probe.connect_ex(str(socket_path)) == 0:
            return 'a kubelet of this machine has %s' % socket_path
    with tempfile.TemporaryDirectory() as folder:
        node = container_node.ContainerNode(folder)
        try:
            return node.why_not()
        finally:
            node.stop()


if __name__ == '__main__':
    reason = why_not()
    if reason:
        print('skipped: no kubelet with devices runs here: ' + reason)
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1], verbosity=2, warnings='ignore')
