# SPDX-License-Identifier: Apache-2.0
"""containerd and the kubelet in a folder of their own, and whether this machine can run them."""
import json
import os
import pathlib
import shutil
import subprocess
import time

import image_archive
import real_control_plane

CONTAINERD = '''version = 2
root = "{folder}/images"
state = "{folder}/run"
[grpc]
  address = "{folder}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "weft.local/pause:1"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{folder}/cni"
'''
NODE = 'contained'


def settings(folder, name_server):
    return {
        'clusterDNS': [name_server] if name_server else [], 'clusterDomain': 'cluster.local',
        'apiVersion': 'kubelet.config.k8s.io/v1beta1', 'kind': 'KubeletConfiguration',
        'containerRuntimeEndpoint': 'unix://%s/containerd.sock' % folder,
        'authentication': {'anonymous': {'enabled': False}, 'webhook': {'enabled': False},
                           'x509': {'clientCAFile': str(folder / 'authority.crt')}},
        'authorization': {'mode': 'AlwaysAllow'},
        # A machine that is itself a container: no cgroups by class, no sysctls, no eviction for others' sake.
        'cgroupDriver': 'cgroupfs', 'cgroupsPerQOS': False, 'enforceNodeAllocatable': [], 'failSwapOn': False,
        'localStorageCapacityIsolation': False, 'evictionHard': {'memory.available': '0%'}, 'resolvConf': '',
        'featureGates': {'KubeletInUserNamespace': True},
        'port': real_control_plane.free_port(), 'healthzPort': 0, 'registerNode': True, 'fileCheckFrequency': '0s',
        'nodeStatusUpdateFrequency': '2s', 'syncFrequency': '5s',
    }


class ContainerNode:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.processes = []
        self.bridge = None
        self.name_server = None

    def spawn(self, name, words):
        with (self.folder / (name + '.log')).open('a') as log:
            self.processes.append(subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT, cwd=self.folder))
        return self.processes[-1]

    def ctr(self, *words):
        return subprocess.run(['ctr', '--address', str(self.folder / 'containerd.sock'), '--namespace', 'k8s.io', *words],
                              capture_output=True, text=True, timeout=120)

    def why_not(self):
        """Starts containerd and runs a container; the reason why this machine cannot, or nothing."""
        if os.geteuid() != 0:
            return 'not root'
        for program in ('containerd', 'ctr', 'runc'):
            if shutil.which(program) is None:
                return 'no %s here: apt-get install containerd runc' % program
        config = self.folder / 'containerd.toml'
        config.write_text(CONTAINERD.format(folder=self.folder))
        containerd = self.spawn('containerd', ['containerd', '--config', str(config)])
        deadline = time.monotonic() + 30
        while self.ctr('version').returncode != 0:
            if containerd.poll() is not None or time.monotonic() > deadline:
                return 'containerd does not start:\n' + self.log('containerd')
            time.sleep(0.1)
        self.add_image('weft.local/pause:1', ['/usr/bin/sleep', '1000000'], [shutil.which('sleep')])
        done = self.ctr('run', '--rm', '--snapshotter', 'native', 'weft.local/pause:1', 'probe', '/usr/bin/sleep', '0')
        return '' if done.returncode == 0 else 'no container runs here: ' + done.stderr

    def why_no_network(self):
        """Gives each pod an address of its own behind a bridge; the reason why this machine cannot, or nothing. Before the kubelet starts."""
        if not os.path.exists('/usr/lib/cni/bridge'):
            return 'no networks for pods here: apt-get install containernetworking-plugins'
        bridge, net = 'weft%d' % (os.getpid() % 100000), '10.%d.%d' % (200 + os.getpid() // 250 % 50, os.getpid() % 250)
        made = subprocess.run(['ip', 'link', 'add', bridge, 'type', 'bridge'], capture_output=True, text=True)
        if made.returncode:
            return 'no bridge can be made here: ' + made.stderr
        self.bridge, self.name_server = bridge, net + '.1'
        subprocess.run(['ip', 'address', 'add', self.name_server + '/24', 'dev', bridge], check=True)
        subprocess.run(['ip', 'link', 'set', bridge, 'up'], check=True)
        (self.folder / 'cni').mkdir(exist_ok=True)
        (self.folder / 'cni' / '10-pods.conf').write_text(json.dumps({
            'cniVersion': '0.4.0', 'name': 'pods', 'type': 'bridge', 'bridge': bridge, 'isGateway': True,
            'ipam': {'type': 'host-local', 'dataDir': str(self.folder / 'addresses'), 'ranges': [[{'subnet': net + '.0/24'}]]}}))
        return ''

    def log(self, name):
        return (self.folder / (name + '.log')).read_text()[-3000:]

    def add_image(self, tag, command, programs, files=None):
        archive = self.folder / 'image.tar'
        image_archive.write(archive, tag, command, programs, files)
        done = self.ctr('images', 'import', '--snapshotter', 'native', str(archive))
        assert done.returncode == 0, done.stderr
        archive.unlink()

    def credentials(self):
        """Arguments for an API server that this kubelet shall trust."""
        certificate, key = self.folder / 'authority.crt', self.folder / 'authority.key'
        subprocess.run(['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '1', '-subj', '/CN=apiserver',
                        '-addext', 'extendedKeyUsage=clientAuth', '-keyout', key, '-out', certificate],
                       check=True, capture_output=True)
        return ['--kubelet-client-certificate', str(certificate), '--kubelet-client-key', str(key),
                '--kubelet-preferred-address-types', 'InternalIP']

    def start_kubelet(self, program, kubeconfig):
        config = self.folder / 'kubelet.json'
        config.write_text(json.dumps(settings(self.folder, self.name_server)))
        self.spawn('kubelet', [program, '--config', str(config), '--kubeconfig', str(kubeconfig), '--root-dir',
                               str(self.folder / 'kubelet'), '--cert-dir', str(self.folder / 'certificates'),
                               '--hostname-override', NODE])

    def stop(self):
        """The containers too, which outlive both."""
        for process in reversed(self.processes[1:]):
            process.terminate()
            process.wait(30)
        if self.processes and self.processes[0].poll() is None:
            for line in self.ctr('tasks', 'list', '-q').stdout.split():
                self.ctr('tasks', 'kill', '--signal', 'SIGKILL', line)
            deadline = time.monotonic() + 20
            while self.ctr('tasks', 'list', '-q').stdout.split() and time.monotonic() < deadline:
                for line in self.ctr('tasks', 'list', '-q').stdout.split():
                    self.ctr('tasks', 'delete', '--force', line)
                time.sleep(0.2)
            self.processes[0].terminate()
            self.processes[0].wait(30)
        self.processes = []
        if self.bridge is not None:
            subprocess.run(['ip', 'link', 'delete', self.bridge], check=False)
        mounts = pathlib.Path('/proc/self/mounts').read_text().splitlines()
        for mount in reversed([line.split()[1] for line in mounts]):
            if mount.startswith(str(self.folder) + '/'):
                subprocess.run(['umount', '--lazy', mount], check=False)
