# SPDX-License-Identifier: Apache-2.0
"""A real control plane with our custom resource, and the operator with the rights that deploy/ gives it."""
import json
import os
import pathlib
import socket
import subprocess
import time

import api_client
import real_control_plane
from control_plane import build

HERE = pathlib.Path(__file__).resolve().parent
DEPLOY = HERE.parent.parent / 'deploy'
ACCOUNT = 'system:serviceaccount:weft-system:weft-operator'


def wait_for(is_done, what, seconds=120, period=0.1):
    """What is_done gives, once it is true."""
    deadline = time.monotonic() + seconds
    while True:
        result = is_done()
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError('after %d s there is still no %s' % (seconds, what() if callable(what) else what))
        time.sleep(period)


def own_address():
    """Of this machine, as others see it: endpoints may not lie on loopback. Nothing is sent."""
    for family, far in ((socket.AF_INET, '192.0.2.1'), (socket.AF_INET6, '2001:db8::1')):
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect((far, 9))
                return probe.getsockname()[0]
            except OSError:
                continue
    raise AssertionError('this machine has no address but loopback')


class Cluster:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.kubectl = build('kubectl')
        self.plane = real_control_plane.RealControlPlane(build('controlplane'), folder)
        self.api = None
        self.operator_config = self.folder / 'operator.kubeconfig'
        self.processes = []

    def start(self, *arguments, controllers=real_control_plane.CONTROLLERS):
        """`arguments` go to kube-apiserver."""
        self.plane.start(*arguments)
        self.api = api_client.ApiClient(self.plane.server, self.plane.authority, self.plane.token)
        self.plane.await_(self.is_ready, 'API')
        self.plane.start_controllers('--controllers', controllers)
        for file in sorted((DEPLOY / 'crds').glob('*.yaml')):
            self.k('apply', '-f', str(file))
        wait_for(self.has_kinds, 'kind of ours')
        wait_for(lambda: self.api.request('GET', '/api/v1/namespaces')['items'], 'namespace')
        self.k('apply', '-f', str(DEPLOY / 'rbac' / 'operator.yaml'))
        token = self.k('create', 'token', 'weft-operator', '-n', 'weft-system').strip()
        self.operator_config.write_text(self.plane.kubeconfig.read_text().replace(self.plane.token, token))
        self.operator_config.chmod(0o600)

    def node_trust(self):
        """Flags of kube-apiserver, which goes to the nodes for the output of pods, and the authority that nodes trust for it."""
        for words in ('req -x509 -newkey rsa:2048 -nodes -subj /CN=kubelets -keyout ca.key -out ca.crt',
                      'req -newkey rsa:2048 -nodes -subj /CN=kube-apiserver-kubelet-client -keyout api.key -out api.csr',
                      'x509 -req -in api.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out api.crt'):
            subprocess.run(['openssl', *words.split()], check=True, capture_output=True, cwd=self.folder)
        return ('--kubelet-client-certificate', str(self.folder / 'api.crt'), '--kubelet-client-key', str(self.folder / 'api.key'),
                '--kubelet-preferred-address-types', 'InternalIP'), self.folder / 'ca.crt'

    def spawn_node(self, weft, authority):
        """One whose output of pods the API server may ask for."""
        return self.spawn('node', weft, 'node', '--bind_pods', '--state', str(self.folder / 'node'), '--kubelet_port', '0',
                          '--kubelet_client_ca', str(authority))

    def has_kinds(self):
        # `kubectl wait` stumbles over a definition whose status nobody has begun.
        items = self.api.request('GET', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions')['items']
        return items and all(any(condition['type'] == 'Established' and condition['status'] == 'True'
                                 for condition in item.get('status', {}).get('conditions') or []) for item in items)

    def is_ready(self):
        try:
            return self.api.request('GET', '/readyz') == 'ok'
        except (OSError, api_client.ApiError):
            return False

    def k(self, *words, stdin=None):
        done = subprocess.run([self.kubectl, '--kubeconfig', str(self.plane.kubeconfig), *words], input=stdin,
                              capture_output=True, text=True, timeout=300, cwd=self.folder)
        if done.returncode != 0:
            raise AssertionError('kubectl %s exits with %d:\n%s%s' % (' '.join(words), done.returncode, done.stdout,
                                                                     done.stderr))
        return done.stdout

    def spawn(self, name, *words, kubeconfig=None):
        environment = dict(os.environ, KUBECONFIG=str(kubeconfig or self.plane.kubeconfig))
        with (self.folder / (name + '.log')).open('a') as log:
            process = subprocess.Popen(words, env=environment, cwd=self.folder, stdout=log, stderr=subprocess.STDOUT,
                                       preexec_fn=real_control_plane.die_with_parent)
        self.processes.append(process)
        return process

    def spawn_operator(self, weft, *words):
        """With its own rights and no more."""
        return self.spawn('operator', weft, 'operator', *words, kubeconfig=self.operator_config)

    def audited(self):
        """What the API server has answered, each call once; a watch as soon as it begins."""
        with self.plane.audit.open() as log:
            for line in log:
                # The last one may be half written.
                entry = json.loads(line) if line.endswith('\n') else {}
                begins = entry.get('stage') == 'ResponseStarted'
                if entry.get('verb') == 'watch' and begins or entry.get('verb') != 'watch' and entry and not begins:
                    yield entry

    def stop(self):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes = []
        self.plane.stop()
