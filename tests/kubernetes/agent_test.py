#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft agent` on a real API server: what nodes say, whose word counts, one agent a node, slices for claims.

    agent_test.py WEFT STAND_IN_NVML
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import api_client
import cluster
import real_control_plane
import stand_in_machine

WEFT, LIBRARY = sys.argv[1:3]
NODES, SYSTEM = '/api/v1/nodes', '/api/v1/namespaces/weft-system'
SLICES = '/apis/resource.k8s.io/v1beta1/resourceslices'
# Claims are still a choice of the cluster in this release.
CLAIMS = ['--runtime-config', 'resource.k8s.io/v1beta1=true', '--feature-gates', 'DynamicResourceAllocation=true']
# As clusters have it for the identities of kubelets.
IDENTITIES = ['--authorization-mode', 'Node', '--enable-admission-plugins', 'NodeRestriction']


class AgentTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.cluster = cluster.Cluster(cls.temporary.name)
        cls.cluster.plane.nodes = ('c',)
        try:
            cls.cluster.start(*CLAIMS, *IDENTITIES)
            cls.api = cls.cluster.api
            for file in ('rights', 'daemonset', 'device_classes'):
                cls.cluster.k('apply', '-f', str(cluster.DEPLOY / 'agent' / (file + '.yaml')))
            for name in ('a', 'b', 'c'):
                cls.api.request('POST', NODES, {'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': name}})
            cls.machine = stand_in_machine.StandInMachine(cls.cluster.folder / 'machine', LIBRARY)
            cls.tokens = {}
            cls.configs = {name: cls.make_account(name) for name in ('a', 'b')}
        except BaseException:
            cls.tearDownClass()
            raise

    @classmethod
    def tearDownClass(cls):
        cls.cluster.stop()
        cls.temporary.cleanup()

    @classmethod
    def make_config(cls, name, token):
        config = cls.cluster.folder / (name + '.kubeconfig')
        config.write_text(cls.cluster.plane.kubeconfig.read_text().replace(cls.cluster.plane.token, token))
        config.chmod(0o600)
        return config

    @classmethod
    def make_account(cls, node):
        """The token of the DaemonSet's pod on that node, as its kubelet would ask for it."""
        name = 'weft-agent-' + node
        cls.api.request('POST', SYSTEM + '/pods', {
            'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': name},
            'spec': {'nodeName': node, 'serviceAccountName': 'weft-agent', 'containers': [{'name': 'c', 'image': 'i'}]}})
        cls.tokens[node] = cls.cluster.k('create', 'token', 'weft-agent', '-n', 'weft-system', '--bound-object-kind', 'Pod',
                                         '--bound-object-name', name).strip()
        return cls.make_config(name, cls.tokens[node])

    def setUp(self):
        self.agents = []

    def tearDown(self):
        for agent in self.agents:
            agent.terminate()
            agent.wait(30)

    def start(self, node, config, folder, *flags):
        """With a kubelet's folder without a kubelet."""
        path = self.cluster.folder / folder
        path.mkdir(exist_ok=True)
        self.log = self.cluster.folder / ('agent-%s.log' % folder)
        with self.log.open('a') as log:
            agent = subprocess.Popen(
                [WEFT, 'agent', '--node', node, '--plugin_folder', str(path), '--holders_socket', '', '--period', '100ms',
                 '--heartbeat', '500ms', *self.machine.flags(), *flags],
                env=dict(os.environ, KUBECONFIG=str(config), **self.machine.environment()), stdout=log, stderr=subprocess.STDOUT,
                preexec_fn=real_control_plane.die_with_parent)
        self.agents.append(agent)
        return agent

    def node(self, name):
        return self.api.request('GET', '%s/%s' % (NODES, name))

    def gpus(self, name):
        return json.loads(self.node(name)['metadata'].get('annotations', {}).get('weft.dev/gpus', '[]'))

    def await_(self, is_so, what):
        return cluster.wait_for(is_so, lambda: '%s; the agent: %s' % (what, self.log.read_text()[-2000:]), 60)

    def slice_devices(self, name):
        items = [each for each in self.api.request('GET', SLICES)['items'] if each['spec']['nodeName'] == name]
        return items[0]['spec']['devices'] if items else []

    def test_a_node_says_what_it_has(self):
        agent = self.start('a', self.configs['a'], 'one')
        self.await_(lambda: len(self.gpus('a')) == 3, 'inventory')
        labels = self.node('a')['metadata']['labels']
        self.assertEqual((labels['nvidia.com/gpu.product'], labels['nvidia.com/gpu.count']), ('T4', '3'))
        self.assertEqual(labels['alpha.kubernetes.io/infiniBand'], 'true')
        self.await_(lambda: len(self.slice_devices('a')) == 4, 'slice')
        gpu = next(each['basic'] for each in self.slice_devices('a') if each['name'].startswith('gpu'))
        self.assertEqual((gpu['attributes']['model'], gpu['capacity']['memory']), ({'string': 'T4'}, {'value': '4Gi'}))
        self.machine.lose(1)
        self.await_(lambda: [each['health'] for each in self.gpus('a')] == ['Healthy', 'Unhealthy', 'Healthy'], 'loss')
        self.await_(lambda: len(self.slice_devices('a')) == 3, 'smaller slice')
        # Another one for this node, elsewhere: it goes, and says why.
        second = self.start('a', self.configs['a'], 'two')
        self.assertEqual(second.wait(60), 1)
        self.assertRegex(self.log.read_text(), "Node 'a' is told of by an agent on .*, which is alive")
        # And one beside it on the same machine.
        third = self.start('a', self.configs['a'], 'one')
        self.assertEqual(third.wait(60), 1)
        self.assertIn('Another agent serves the devices of this machine', self.log.read_text())
        self.assertIsNone(agent.poll())
        agent.terminate()
        self.assertEqual(agent.wait(30), 0)
        self.assertNotIn('weft.dev/agent', self.node('a')['metadata']['annotations'])

    def forbidden(self, config, *words, stdin=None):
        done = subprocess.run([self.cluster.kubectl, '--kubeconfig', str(config), *words], input=stdin, capture_output=True,
                              text=True, timeout=60)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        return done.stderr

    def test_nobody_forges_the_inventory_of_others(self):
        self.start('b', self.configs['a'], 'forged')
        self.await_(lambda: 'may not tell of node b' in self.log.read_text(), 'refusal')
        self.assertEqual(self.gpus('b'), [])
        config = self.configs['a']
        self.assertIn('may not tell of node b', self.forbidden(config, 'label', 'node', 'b', 'x=y'))
        self.assertIn('may not change the spec', self.forbidden(config, 'patch', 'node', 'a', '-p', '{"spec":{"unschedulable":true}}'))
        self.assertIn('cannot delete', self.forbidden(config, 'delete', 'node', 'a'))
        self.assertIn('cannot list', self.forbidden(config, 'get', 'secrets', '-A'))
        self.api.request('POST', '/api/v1/namespaces/default/pods', {
            'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'on-b'},
            'spec': {'nodeName': 'b', 'containers': [{'name': 'c', 'image': 'i'}]}})
        account = api_client.ApiClient(self.cluster.plane.server, self.cluster.plane.authority, self.tokens['a'])
        with self.assertRaisesRegex(api_client.ApiError, 'pods of other nodes'):
            account.request('PATCH', '/api/v1/namespaces/default/pods/on-b/status', {'status': {'message': 'x'}}, api_client.MERGE)
        forged = {'apiVersion': 'resource.k8s.io/v1beta1', 'kind': 'ResourceSlice', 'metadata': {'name': 'forged'},
                  'spec': {'driver': 'devices.weft.dev', 'nodeName': 'b', 'pool': {'name': 'b', 'resourceSliceCount': 1},
                           'devices': [{'name': 'gpu', 'basic': {}}]}}
        self.assertIn('devices of other nodes', self.forbidden(config, 'create', '-f', '-', stdin=json.dumps(forged)))
        # A token that no pod has says of no node that it is there.
        loose = self.make_config('loose', self.cluster.k('create', 'token', 'weft-agent', '-n', 'weft-system').strip())
        self.assertIn('needs the token of a pod', self.forbidden(loose, 'label', 'node', 'a', 'x=y'))

    def test_a_kubelets_identity_serves_too(self):
        config = self.make_config('kubelet', self.cluster.plane.tokens['system:node:c'])
        self.start('c', config, 'own', '--no-slices')
        self.await_(lambda: self.gpus('c'), 'inventory')
        labels = self.node('c')['metadata']['labels']
        self.assertEqual(labels['nvidia.com/gpu.product'], 'T4')
        # Kubernetes keeps its own domain for itself.
        self.assertNotIn('alpha.kubernetes.io/infiniBand', labels)
        self.start('b', config, 'stranger', '--no-slices')
        self.await_(lambda: 'is not allowed to modify node "b"' in self.log.read_text()
                    or 'cannot get resource' in self.log.read_text(), 'refusal')
        self.assertEqual(self.gpus('b'), [])


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)
