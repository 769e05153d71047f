# SPDX-License-Identifier: Apache-2.0
"""etcd, kube-apiserver and kube-controller-manager in a folder of their own, for tests."""
import ctypes
import os
import pathlib
import secrets
import signal
import socket
import subprocess
import time

# Who called what, without bodies; a watch counts when it begins.
AUDIT = '''apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
'''
CONTROLLERS = 'garbage-collector-controller,namespace-controller,serviceaccount-controller'


def die_with_parent():
    """For preexec_fn: a test that is killed leaves nothing behind."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def free_port():
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        return listener.getsockname()[1]


class RealControlPlane:
    """`users`, before start, are others who may do everything, each with a token of its own; `nodes` names of nodes
    whose kubelets have one, as system:node:NAME."""

    def __init__(self, program, folder):
        self.program = program
        self.folder = pathlib.Path(folder)
        self.kubeconfig = self.folder / 'kubeconfig'
        self.audit = self.folder / 'audit.log'
        self.server = None
        self.authority = self.folder / 'certs' / 'apiserver.crt'
        self.token = secrets.token_hex(16)
        self.users = ()
        self.nodes = ()
        self.tokens = {}
        self.processes = []

    def spawn(self, name, *words):
        log = (self.folder / (name + '.log')).open('w')
        self.processes.append(subprocess.Popen([self.program, name, *words], stdout=log, stderr=subprocess.STDOUT,
                                               cwd=self.folder, env=dict(os.environ, GOMAXPROCS='2'),
                                               preexec_fn=die_with_parent))
        log.close()

    def start(self, *arguments):
        """`arguments` go to kube-apiserver."""
        etcd, peer, port = free_port(), free_port(), free_port()
        self.spawn('etcd', '--data-dir', str(self.folder / 'etcd'), '--unsafe-no-fsync', '--log-level', 'error',
                   '--listen-client-urls', 'http://127.0.0.1:%d' % etcd,
                   '--advertise-client-urls', 'http://127.0.0.1:%d' % etcd,
                   '--listen-peer-urls', 'http://127.0.0.1:%d' % peer)
        key = self.folder / 'accounts.key'
        subprocess.run(['openssl', 'genrsa', '-out', key, '2048'], check=True, capture_output=True)
        self.tokens = {'admin': self.token, **{user: secrets.token_hex(16) for user in self.users}}
        lines = ['%s,%s,%s,system:masters\n' % (token, user, user) for user, token in self.tokens.items()]
        for user in ('system:node:' + node for node in self.nodes):
            self.tokens[user] = secrets.token_hex(16)
            lines.append('%s,%s,%s,system:nodes\n' % (self.tokens[user], user, user))
        (self.folder / 'tokens.csv').write_text(''.join(lines))
        policy = self.folder / 'audit.yaml'
        policy.write_text(AUDIT)
        self.server = 'https://127.0.0.1:%d' % port
        self.spawn('kube-apiserver', '--etcd-servers', 'http://127.0.0.1:%d' % etcd, '--secure-port', str(port),
                   '--bind-address', '127.0.0.1', '--cert-dir', str(self.folder / 'certs'),
                   '--service-cluster-ip-range', '10.0.0.0/24', '--service-account-key-file', str(key),
                   '--service-account-signing-key-file', str(key),
                   '--service-account-issuer', 'https://kubernetes.default.svc',
                   '--token-auth-file', str(self.folder / 'tokens.csv'), '--authorization-mode', 'RBAC',
                   '--audit-policy-file', str(policy), '--audit-log-path', str(self.audit),
                   # Whoever makes an owner that blocks deletion needs the right to its finalizers.
                   '--enable-admission-plugins', 'OwnerReferencesPermissionEnforcement',
                   # No kubelet asks for tokens, and no node controller takes taints off.
                   '--disable-admission-plugins', 'ServiceAccount,TaintNodesByCondition', *arguments)
        self.await_(self.authority.exists, 'the certificate')
        self.kubeconfig.write_text('''apiVersion: v1
kind: Config
current-context: real
clusters: [{name: real, cluster: {server: "%s", certificate-authority: %s}}]
users: [{name: real, user: {token: %s}}]
contexts: [{name: real, context: {cluster: real, user: real, namespace: default}}]
''' % (self.server, self.authority, self.token))
        self.kubeconfig.chmod(0o600)

    def start_controllers(self, *arguments):
        self.spawn('kube-controller-manager', '--kubeconfig', str(self.kubeconfig), '--controllers', CONTROLLERS,
                   '--leader-elect=false', '--secure-port', '0', *arguments)

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
