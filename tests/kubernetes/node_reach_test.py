#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kubectl logs, exec, attach, cp and port-forward of pods that run on `weft node`, through a real API server; and who else
gets none.

    node_reach_test.py WEFT
"""
import functools
import json
import os
import pathlib
import re
import ssl
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

import cluster

WEFT = sys.argv[1]
POD = '''apiVersion: v1
kind: Pod
metadata: {name: talker}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - name: talks
    image: i
    command: [sh, -c, 'echo one; echo two; while [ ! -e %s ]; do sleep 0.1; done; echo three']
  - name: waits
    image: i
    command: [sh, -c, 'while [ ! -e %s ]; do sleep 0.1; done']
'''


class NodeReachTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.cluster = cluster.Cluster(cls.temporary.name)
        try:
            cls.openssl('req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=kubelets', '-keyout', 'ca.key', '-out', 'ca.crt')
            cls.issue('apiserver', 'kube-apiserver-kubelet-client')
            cls.issue('other', 'somebody')
            cls.cluster.start('--kubelet-client-certificate', str(cls.folder / 'apiserver.crt'), '--kubelet-client-key',
                              str(cls.folder / 'apiserver.key'), '--kubelet-preferred-address-types', 'InternalIP')
            cls.node = cls.cluster.spawn('node', WEFT, 'node', '--bind_pods', '--state', str(cls.folder / 'state'),
                                         '--kubelet_port', '0', '--kubelet_client_ca', str(cls.folder / 'ca.crt'))
            cls.api = cls.cluster.api
            cls.address, cls.port = cluster.wait_for(cls.endpoint, 'port of the node')
        except BaseException:
            cls.tearDownClass()
            raise

    @classmethod
    def tearDownClass(cls):
        cls.cluster.stop()
        cls.temporary.cleanup()

    @classmethod
    def openssl(cls, *words):
        subprocess.run(['openssl', *words], check=True, capture_output=True, cwd=cls.folder)

    @classmethod
    def issue(cls, name, common_name):
        cls.openssl('req', '-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=' + common_name, '-keyout', name + '.key', '-out', name + '.csr')
        cls.openssl('x509', '-req', '-in', name + '.csr', '-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-out', name + '.crt')

    @classmethod
    def endpoint(cls):
        nodes = cls.api.request('GET', '/api/v1/nodes')['items']
        status = nodes[0].get('status', {}) if nodes else {}
        port = status.get('daemonEndpoints', {}).get('kubeletEndpoint', {}).get('Port')
        return (status['addresses'][0]['address'], port) if port else None

    def k(self, *words):
        return self.cluster.k(*words)

    def test_logs(self):
        done = self.folder / 'done'
        self.cluster.k('apply', '-f', '-', stdin=POD % (done, done))
        self.k('wait', '--for=condition=Ready', 'pod/talker', '--timeout=60s')
        cluster.wait_for(lambda: self.k('logs', 'talker', '-c', 'talks') == 'one\ntwo\n', 'log')
        self.assertEqual(self.k('logs', 'talker', '-c', 'talks', '--tail=1'), 'two\n')
        self.assertRegex(self.k('logs', 'talker', '-c', 'talks', '--timestamps'), r'^20[-0-9T:.]+Z one\n20')
        with self.assertRaisesRegex(AssertionError, 'previous'):
            self.k('logs', 'talker', '-c', 'talks', '--previous')
        following = subprocess.Popen([self.cluster.kubectl, '--kubeconfig', str(self.cluster.plane.kubeconfig), 'logs', '-f',
                                      'talker', '-c', 'talks'], stdout=subprocess.PIPE, text=True)
        self.addCleanup(following.kill)
        self.assertEqual([following.stdout.readline() for _ in range(2)], ['one\n', 'two\n'])
        done.touch()
        # The rest, and its end.
        self.assertEqual(following.communicate(timeout=60)[0], 'three\n')
        self.assertEqual(following.returncode, 0)
        cluster.wait_for(lambda: self.api.get('default', 'pods', 'talker')['status']['phase'] == 'Succeeded', 'end')
        self.assertEqual(self.k('logs', 'talker', '-c', 'talks'), 'one\ntwo\nthree\n')
        self.k('delete', 'pod', 'talker')

    def start_pod(self, name, command, **more):
        container = {'name': 'main', 'image': 'i', 'command': command, **more}
        self.k_in(json.dumps({'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': name}, 'spec': {
            'restartPolicy': 'Never', 'terminationGracePeriodSeconds': 1, 'containers': [container]}}), 'apply', '-f', '-')
        self.addCleanup(self.k, 'delete', 'pod', name, '--ignore-not-found')
        self.k('wait', '--for=condition=Ready', 'pod/' + name, '--timeout=60s')

    def k_in(self, text, *words):
        return self.cluster.k(*words, stdin=text)

    def tried(self, *words, stdin=None, **variables):
        done = subprocess.run([self.cluster.kubectl, '--kubeconfig', str(self.cluster.plane.kubeconfig), *words], input=stdin,
                              capture_output=True, text=True, timeout=120, env=dict(os.environ, **variables))
        return done.returncode, done.stdout, done.stderr

    def test_exec(self):
        self.start_pod('inner', ['sleep', '600'], env=[{'name': 'MARK', 'value': 'of the container'}])
        # kubectl speaks WebSockets to the API server, or SPDY; that speaks SPDY to the node either way.
        for sockets in ('true', 'false'):
            tried = functools.partial(self.tried, KUBECTL_REMOTE_COMMAND_WEBSOCKETS=sockets)
            self.assertEqual(tried('exec', 'inner', '--', 'sh', '-c', 'echo $MARK; echo odd >&2; exit 3'),
                             (3, 'of the container\n', 'odd\ncommand terminated with exit code 3\n'))
            self.assertEqual(tried('exec', '-i', 'inner', '--', 'cat', stdin='x' * 300000 + '\n')[:2], (0, 'x' * 300000 + '\n'))
            self.assertEqual(tried('exec', 'inner', '-c', 'main', '--', 'printf', '%s|', 'a b', '+&=%', '')[:2], (0, 'a b|+&=%||'))
        code, _, said = self.tried('exec', 'inner', '--', '/no/such/program')
        self.assertNotEqual(code, 0)
        self.assertIn('/no/such/program', said)
        self.assertIn('container other is not valid', self.tried('exec', 'inner', '-c', 'other', '--', 'true')[2])

    def test_copies(self):
        self.start_pod('keeper', ['sleep', '600'])
        source, back = self.folder / 'source', self.folder / 'back'
        source.write_bytes(bytes(range(256)) * 4000)
        there = str(self.folder / 'there')
        self.k('cp', str(source), 'keeper:' + there)
        self.k('cp', 'keeper:' + there, str(back))
        self.assertEqual(back.read_bytes(), source.read_bytes())

    def test_attach(self):
        self.start_pod('echoes', ['sh', '-c', 'while read line; do echo "heard $line"; done; echo end'], stdin=True, stdinOnce=True)
        code, out, said = self.tried('attach', '-i', 'echoes', stdin='one\ntwo\n')
        self.assertEqual((code, out), (0, 'heard one\nheard two\nend\n'), said)
        cluster.wait_for(lambda: self.api.get('default', 'pods', 'echoes')['status']['phase'] == 'Succeeded', 'end')

    def test_port_forward(self):
        port = cluster.real_control_plane.free_port()
        serve = ('import http.server, functools; http.server.HTTPServer(("127.0.0.1", %d), functools.partial('
                 'http.server.SimpleHTTPRequestHandler, directory=%r)).serve_forever()' % (port, str(self.folder)))
        (self.folder / 'page').write_text('served')
        self.start_pod('serves', [sys.executable, '-c', serve])
        for sockets in ('true', 'false'):
            forwarding = subprocess.Popen([self.cluster.kubectl, '--kubeconfig', str(self.cluster.plane.kubeconfig), 'port-forward',
                                           'serves', ':%d' % port], stdout=subprocess.PIPE, text=True,
                                          env=dict(os.environ, KUBECTL_PORT_FORWARD_WEBSOCKETS=sockets))
            try:
                local = re.search(r'127.0.0.1:(\d+)', forwarding.stdout.readline()).group(1)

                def page():
                    try:
                        return urllib.request.urlopen('http://127.0.0.1:%s/page' % local, timeout=30).read() == b'served'
                    except OSError:
                        return False  # the program is still starting
                cluster.wait_for(page, 'page')
            finally:
                forwarding.kill()
                forwarding.communicate()

    def test_a_call_into_a_pod_ends_with_it(self):
        self.start_pod('short', ['sleep', '600'])
        running = subprocess.Popen([self.cluster.kubectl, '--kubeconfig', str(self.cluster.plane.kubeconfig), 'exec', 'short', '--',
                                    'sh', '-c', 'echo begun; sleep 600'], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(running.kill)
        self.assertEqual(running.stdout.readline(), 'begun\n')
        self.k('delete', 'pod', 'short', '--wait=false')
        running.communicate(timeout=60)
        self.assertNotEqual(running.returncode, 0)

    def ask(self, path, name=None):
        trusting = ssl.create_default_context()
        trusting.check_hostname = False
        trusting.verify_mode = ssl.CERT_NONE
        if name:
            trusting.load_cert_chain(self.folder / (name + '.crt'), self.folder / (name + '.key'))
        host = '[%s]' % self.address if ':' in self.address else self.address
        with urllib.request.urlopen('https://%s:%d%s' % (host, self.port, path), timeout=30, context=trusting) as page:
            return page.read()

    def test_nobody_but_the_api_server_is_let_in(self):
        self.assertEqual(self.ask('/healthz', 'apiserver'), b'ok')
        for name in (None, 'other'):
            with self.assertRaises(OSError) as error:
                self.ask('/healthz', name)
            self.assertNotIsInstance(error.exception, urllib.error.HTTPError)
        # What goes on in another protocol says so; what is not served is 404.
        for path, code in (('/', 404), ('/exec/default/a/b', 400), ('/exec/default/a', 404), ('/portForward/default/a', 400),
                           ('/containerLogs/default/a', 404), ('/logs/', 404), ('/pods', 404)):
            with self.assertRaises(urllib.error.HTTPError) as refused:
                self.ask(path, 'apiserver')
            self.assertEqual(refused.exception.code, code, path)
        for path in ('/containerLogs/default/nobody/c', '/containerLogs/..%2f..%2fetc/passwd/c'):
            with self.assertRaises(urllib.error.HTTPError) as refused:
                self.ask(path, 'apiserver')
            self.assertIn(refused.exception.code, (400, 404), path)

    def test_it_says_what_it_needs(self):
        refused = subprocess.run([WEFT, 'node', '--kubeconfig', str(self.cluster.plane.kubeconfig), '--state',
                                  str(self.folder / 'other'), '--kubelet_port', '0'], capture_output=True, text=True, timeout=60)
        self.assertEqual(refused.returncode, 1)
        self.assertTrue(re.search('--kubelet_port needs --kubelet_client_ca', refused.stderr), refused.stderr)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2, warnings='ignore')
