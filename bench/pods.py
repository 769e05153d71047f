#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many pods a second `weft scheduler` binds, beside kube-scheduler, and gangs beside its coscheduling plug-in.

    bench/pods.py [--weft build/bin/weft] [--nodes 200] [--pods 2000] [--gangs] [--rounds 1] [--json FILE]

All on one real API server (built from its Go module, as in tests/kubernetes) with nodes that nobody runs: --kwok has KWOK keep
them. The pods wait before a scheduler starts; a time is from the first pod with a node until the last. Schedulers take turns.
--gangs gives the pods of another round as gangs of 8.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / 'tests' / 'kubernetes'))

import cluster  # noqa: E402
import gang_definitions  # noqa: E402
from jobs import Usage  # noqa: E402

GANG = 8
GROUPS = '/apis/scheduling.x-k8s.io/v1alpha1/namespaces/%s/podgroups'
# The calls of a kube-scheduler are held back at 50 a second otherwise.
CONFIG = '''apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: %s, qps: 5000, burst: 5000}
profiles:
- schedulerName: kube
'''
COSCHEDULING = '''  plugins:
    multiPoint: {enabled: [{name: Coscheduling}]}
    queueSort: {enabled: [{name: Coscheduling}], disabled: [{name: '*'}]}
  pluginConfig:
  - name: Coscheduling
    args: {permitWaitingTimeSeconds: 60}
'''


def node(name):
    amounts = {'cpu': '32', 'memory': '256Gi', 'pods': '110'}
    return {'apiVersion': 'v1', 'kind': 'Node',
            'metadata': {'name': name, 'labels': {'kubernetes.io/hostname': name, 'type': 'kwok'},
                         'annotations': {'kwok.x-k8s.io/node': 'fake'}},
            'status': {'allocatable': amounts, 'capacity': amounts, 'conditions': [{'type': 'Ready', 'status': 'True'}]}}


def pod(index, scheduler, gang):
    labels = {'scheduling.x-k8s.io/pod-group': gang} if gang else {}
    return {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'p%d' % index, 'labels': labels},
            'spec': {'schedulerName': scheduler, 'terminationGracePeriodSeconds': 0, 'containers': [
                {'name': 'c', 'image': 'i', 'resources': {'requests': {'cpu': '1', 'memory': '1Gi'}}}]}}


class PodsBench:
    def __init__(self, arguments, folder):
        self.arguments, self.folder = arguments, pathlib.Path(folder)
        self.cluster = cluster.Cluster(folder)
        self.pool = concurrent.futures.ThreadPoolExecutor(8)
        self.rounds = 0
        self.figures = {}

    def start(self):
        self.cluster.start('--max-requests-inflight', '2000', '--max-mutating-requests-inflight', '2000')
        self.api = self.cluster.api
        self.cluster.k('apply', '-f', '-', stdin=json.dumps(gang_definitions.definition('scheduling.x-k8s.io', 'v1alpha1')))
        cluster.wait_for(self.cluster.has_definitions, 'the kind of gangs')
        list(self.pool.map(self.add_node, range(self.arguments.nodes)))
        if self.arguments.kwok:
            self.cluster.spawn('kwok', cluster.build('kwok'), '--kubeconfig', str(self.cluster.plane.kubeconfig), '--manage-all-nodes')

    def add_node(self, index):
        each = node('node-%d' % index)
        self.api.request('POST', '/api/v1/nodes', each)
        self.api.request('PUT', '/api/v1/nodes/node-%d/status' % index, each)

    def command(self, name, gangs):
        if name == 'weft':
            return [self.arguments.weft, 'scheduler', '--name', 'weft', '--placement', 'spreading']
        config = self.folder / 'scheduler.yaml'
        config.write_text(CONFIG % self.cluster.plane.kubeconfig + (COSCHEDULING if gangs else ''))
        return [cluster.build('scheduler'), '--config', str(config), '--secure-port', '0']

    def has_pod(self, namespace, selector):
        return bool(self.api.request('GET', '/api/v1/namespaces/%s/pods?limit=1&fieldSelector=%s' % (namespace, selector))['items'])

    def round(self, name, gangs):
        """Pods of a namespace of its own; they go when they are bound."""
        self.rounds += 1
        namespace = 'round-%d' % self.rounds
        self.api.request('POST', '/api/v1/namespaces', {'metadata': {'name': namespace}})
        count = self.arguments.pods // GANG * GANG
        if gangs:
            for index in range(count // GANG):
                self.api.request('POST', GROUPS % namespace, {
                    'apiVersion': 'scheduling.x-k8s.io/v1alpha1', 'kind': 'PodGroup', 'metadata': {'name': 'g%d' % index},
                    'spec': {'minMember': GANG}})
        path = '/api/v1/namespaces/%s/pods' % namespace
        scheduler = 'weft' if name == 'weft' else 'kube'
        list(self.pool.map(lambda index: self.api.request(
            'POST', path, pod(index, scheduler, 'g%d' % (index // GANG) if gangs else None)), range(count)))
        begin = time.monotonic()
        process = self.cluster.spawn(name.replace(' ', '-'), *self.command(name, gangs))
        # Until the first has a node it reads what there is.
        cluster.wait_for(lambda: process.poll() is not None or self.has_pod(namespace, 'spec.nodeName!%3D'), 'first binding by ' + name, 300, 0.02)
        started = time.monotonic()
        cluster.wait_for(lambda: process.poll() is not None or not self.has_pod(namespace, 'spec.nodeName%3D'), 'bindings by ' + name, 1200, 0.05)
        assert process.poll() is None, (self.folder / (name.replace(' ', '-') + '.log')).read_text()[-2000:]
        wall = time.monotonic() - started
        usage = Usage(process)
        process.terminate()
        process.wait()
        self.cluster.processes.remove(process)
        figure = dict(name=name, gangs=gangs, pods=count, start=started - begin, wall=wall, pods_a_second=count / wall,
                      cpu_ms_a_pod=usage.cpu * 1e3 / count, memory_mb=usage.memory)
        self.figures.setdefault(('gangs: ' if gangs else '') + name, []).append(figure)
        print('  %-14s %5d %s %6.2f s to begin %8.2f s %8.1f pods/s %6.2f ms CPU/pod %7.1f MB' % (
            name, count, 'pods in gangs' if gangs else 'pods         ', figure['start'], wall, figure['pods_a_second'],
            figure['cpu_ms_a_pod'], usage.memory), flush=True)
        self.api.request('DELETE', path)
        cluster.wait_for(lambda: not self.api.request('GET', path + '?limit=1')['items'], 'end of the pods', 600, 0.5)

    def run(self):
        for _ in range(self.arguments.rounds):
            for name in ('kube-scheduler', 'weft'):
                self.round(name, False)
            for name in ('coscheduling', 'weft') if self.arguments.gangs else ():
                self.round(name, True)


def verdicts(figures):
    """(what, our figure over the peer's, the goal, whether it is met); the best rounds count."""
    lines = []
    for ours, peer, goal in (('weft', 'kube-scheduler', 1), ('gangs: weft', 'gangs: coscheduling', 3)):
        if ours in figures and peer in figures:
            ratio = max(each['pods_a_second'] for each in figures[ours]) / max(each['pods_a_second'] for each in figures[peer])
            lines.append(('pods a second, %s over %s' % (ours, peer), ratio, goal, ratio >= goal))
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--weft', default=str(ROOT / 'build' / 'bin' / 'weft'))
    parser.add_argument('--nodes', type=int, default=200)
    parser.add_argument('--pods', type=int, default=2000)
    parser.add_argument('--rounds', type=int, default=1)
    parser.add_argument('--gangs', action='store_true', help='also as gangs, beside the coscheduling plug-in')
    parser.add_argument('--kwok', action='store_true', help='KWOK keeps the nodes and plays the kubelet')
    parser.add_argument('--json', help='also write the figures here')
    arguments = parser.parse_args()
    arguments.weft = os.path.abspath(arguments.weft)
    with tempfile.TemporaryDirectory() as folder:
        bench = PodsBench(arguments, folder)
        try:
            bench.start()
            bench.run()
        finally:
            bench.cluster.stop()
    for what, ratio, goal, met in verdicts(bench.figures):
        print('  %-56s %6.2fx  goal %.3gx  %s' % (what, ratio, goal, 'met' if met else 'MISSED'), flush=True)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(bench.figures))


if __name__ == '__main__':
    main()
