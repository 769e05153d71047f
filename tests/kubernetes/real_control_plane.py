# SPDX-License-Identifier: Apache-2.0
"""etcd, kube-apiserver and kube-controller-manager in a folder of their own, for tests."""
import os
import pathlib
import secrets
import socket
import subprocess
import time

CONTROLLERS = 'garbage-collector-controller,namespace-controller,serviceaccount-controller'


def free_port():
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        return listener.getsockname()[1]


class RealControlPlane:
    def __init__(self, program, folder):
        self.program = program
        self.folder = pathlib.Path(folder)
        self.kubeconfig = self.folder / 'kubeconfig'
        self.audit = self.folder / 'audit.log'
        self.token = secrets.token_hex(16)
        self.processes = []

    def spawn(self, name, *words):
        log = (self.folder / (name + '.log')).open('w')
        self.processes.append(subprocess.Popen([self.program, name, *words], stdout=log, stderr=subprocess.STDOUT,
                                               cwd=self.folder, env=dict(os.environ, GOMAXPROCS='2')))
        log.close()

    def start(self):
        etcd, peer, port = free_port(), free_port(), free_port()
        self.spawn('etcd', '--data-dir', str(self.folder / 'etcd'), '--unsafe-no-fsync', '--log-level', 'error',
                   '--listen-client-urls', 'http://127.0.0.1:%d' % etcd,
                   '--advertise-client-urls', 'http://127.0.0.1:%d' % etcd,
                   '--listen-peer-urls', 'http://127.0.0.1:%d' % peer)
        key = self.folder / 'accounts.key'
        subprocess.run(['openssl', 'genrsa', '-out', key, '2048'], check=True, capture_output=True)
        (self.folder / 'tokens.csv').write_text('%s,admin,1,system:masters\n' % self.token)
        self.spawn('kube-apiserver', '--etcd-servers', 'http://127.0.0.1:%d' % etcd, '--secure-port', str(port),
                   '--bind-address', '127.0.0.1', '--cert-dir', str(self.folder / 'certs'),
                   '--service-cluster-ip-range', '10.0.0.0/24', '--service-account-key-file', str(key),
                   '--service-account-signing-key-file', str(key),
                   '--service-account-issuer', 'https://kubernetes.default.svc',
                   '--token-auth-file', str(self.folder / 'tokens.csv'), '--authorization-mode', 'RBAC',
                   # No kubelet asks for tokens, and no node controller takes taints off.
                   '--disable-admission-plugins', 'ServiceAccount,TaintNodesByCondition')
        authority = self.folder / 'certs' / 'apiserver.crt'
        self.await_(authority.exists, 'the certificate')
        self.kubeconfig.write_text('''apiVersion: v1
kind: Config
current-context: real
clusters: [{name: real, cluster: {server: "https://127.0.0.1:%d", certificate-authority: %s}}]
users: [{name: real, user: {token: %s}}]
contexts: [{name: real, context: {cluster: real, user: real, namespace: default}}]
''' % (port, authority, self.token))
        self.kubeconfig.chmod(0o600)

    def start_controllers(self):
        self.spawn('kube-controller-manager', '--kubeconfig', str(self.kubeconfig), '--controllers', CONTROLLERS,
                   '--leader-elect=false', '--secure-port', '0')

    def await_(self, is_done, what, seconds=120):
        deadline = time.monotonic() + seconds
        while not is_done():
            if time.monotonic() > deadline or any(process.poll() is not None for process in self.processes):
                logs = ''.join('%s:\n%s\n' % (log.name, log.read_text()[-2000:]) for log in self.folder.glob('*.log'))
                raise AssertionError('there is no %s:\n%s' % (what, logs))
            time.sleep(0.1)

    def stop(self):
        for process in reversed(self.processes):
            process.kill()
            process.wait()
        self.processes = []
