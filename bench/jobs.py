#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast the operator makes the pods of many jobs, beside the reference operator and a program that only creates.

    ./dev bench --rows jobs [--jobs 1000]
    bench/jobs.py [--weft build/bin/weft] [--jobs 1000] [--default_jobs 100] [--restart_jobs 10000] [--json FILE]

All on one real API server (built from its Go module, as in tests/kubernetes), each in a namespace of its own where
the jobs, of one chief, two parameter servers and eight workers, wait before it starts. A time is from its start until
the last pod is there; CPU time and peak memory are those of its process; calls are those of its user in the audit log.
Pods lie on nodes that KWOK keeps (--kwok), or on none.
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

REPLICAS = {'Chief': 1, 'PS': 2, 'Worker': 8}
TASKS = sum(REPLICAS.values())
USERS = ('weft', 'reference', 'creator')
TICKS = os.sysconf('SC_CLK_TCK')
NODES = 100


def template(node):
    pod = {'containers': [{'name': 'tensorflow', 'image': 'train:1', 'command': ['train'],
                           'ports': [{'name': 'tfjob-port', 'containerPort': 2222}]}]}
    if node is not None:
        pod['nodeName'] = 'node-%d' % node
    return {'spec': pod}


def job(index, nodes):
    node = index % NODES if nodes else None
    replicas = {kind: {'replicas': count, 'restartPolicy': 'ExitCode', 'template': template(node)}
                for kind, count in REPLICAS.items()}
    return {'apiVersion': 'kubeflow.org/v1', 'kind': 'TFJob', 'metadata': {'name': 'job-%d' % index},
            'spec': {'tfReplicaSpecs': replicas}}


def verdicts(figures):
    """(what, our figure over a goal's peer, the goal, whether it is met); the best rounds count."""
    def best(name, key, choose):
        return choose(each[key] for each in figures[name])

    lines = []
    for peer, goal in (('reference, defaults', 10), ('reference, best settings', 3), ('bare creator', 0.8)):
        if peer in figures:
            ratio = best('weft', 'pods_a_second', max) / best(peer, 'pods_a_second', max)
            lines.append(('pods a second over ' + peer, ratio, goal, ratio >= goal))
    peer = 'reference, best settings'
    for key, goal in (('memory_mb', 0.1), ('cpu_ms_a_job', 1), ('calls_a_job', 1)):
        if peer in figures:
            ratio = best('weft', key, min) / best(peer, key, min)
            lines.append(('%s over %s' % (key, peer), ratio, goal, ratio <= goal))
    for each in figures.get('restart', ()):
        lines.append(('seconds to start among %d jobs over 5 s' % each['jobs'], each['wall'] / 5, 1, each['wall'] <= 5))
    return lines


def print_verdicts(figures):
    for what, ratio, goal, met in verdicts(figures):
        print('  %-48s %7.2fx  goal %.3gx  %s' % (what, ratio, goal, 'met' if met else 'MISSED'), flush=True)


class Usage:
    """Of a running process: CPU seconds, and the most memory in MB."""

    def __init__(self, process):
        stat = pathlib.Path('/proc/%d/stat' % process.pid).read_text().rsplit(')', 1)[1].split()
        self.cpu = (int(stat[11]) + int(stat[12])) / TICKS
        status = pathlib.Path('/proc/%d/status' % process.pid).read_text()
        self.memory = next(int(line.split()[1]) for line in status.splitlines() if line.startswith('VmHWM')) / 1024


class JobsBench:
    def __init__(self, arguments, folder):
        self.arguments = arguments
        self.cluster = cluster.Cluster(folder)
        self.folder = pathlib.Path(folder)
        self.rounds = 0
        self.pool = concurrent.futures.ThreadPoolExecutor(16)
        self.figures = {}

    def start(self):
        self.cluster.plane.users = USERS
        self.cluster.start()
        self.api = self.cluster.api
        if self.arguments.kwok:
            self.start_kwok()

    def start_kwok(self):
        for index in range(NODES):
            self.api.request('POST', '/api/v1/nodes', {
                'metadata': {'name': 'node-%d' % index, 'annotations': {'kwok.x-k8s.io/node': 'fake'}}})
        self.cluster.spawn('kwok', cluster.build('kwok'), '--kubeconfig', str(self.cluster.plane.kubeconfig),
                           '--manage-all-nodes')

    def kubeconfig(self, user):
        path = self.folder / (user + '.kubeconfig')
        plane = self.cluster.plane
        path.write_text(plane.kubeconfig.read_text().replace(plane.token, plane.tokens[user]))
        path.chmod(0o600)
        return path

    def namespace(self):
        self.rounds += 1
        name = 'round-%d' % self.rounds
        self.api.request('POST', '/api/v1/namespaces', {'metadata': {'name': name}})
        return name

    def fill(self, namespace, jobs):
        list(self.pool.map(lambda index: self.api.create(namespace, 'tfjobs', job(index, self.arguments.kwok)), range(jobs)))

    def count(self, namespace, kind):
        page = self.api.request('GET', self.api.path(namespace, kind) + '?limit=1')
        return len(page['items']) + page['metadata'].get('remainingItemCount', 0)

    def await_pods(self, namespace, wanted, process):
        def is_done():
            assert process.poll() is None, 'it ended with %s: its log is in %s' % (process.poll(), self.folder)
            return self.count(namespace, 'pods') >= wanted
        cluster.wait_for(is_done, '%d pods in %s' % (wanted, namespace), 3600, 0.05)

    def operator(self, name, user, jobs, command):
        namespace = self.namespace()
        self.fill(namespace, jobs)
        begin = time.monotonic()
        process = self.cluster.spawn(namespace, *command, '--namespace', namespace, kubeconfig=self.kubeconfig(user))
        self.await_pods(namespace, jobs * TASKS, process)
        wall = time.monotonic() - begin
        # The statuses and events too.
        self.await_quiet(user, namespace)
        usage = Usage(process)
        process.terminate()
        process.wait()
        self.cluster.processes.remove(process)
        self.tell(name, namespace, user, jobs, wall, usage)

    def creator(self, jobs):
        """The objects that weft's operator has made of one job, for as many jobs."""
        namespace, source = self.namespace(), 'round-1'
        for kind in ('pods', 'services'):
            made = self.api.get(source, kind, 'job-0-worker-0')
            spec = {key: value for key, value in made['spec'].items() if not key.startswith('clusterIP')}
            if kind == 'services':
                spec['clusterIP'] = 'None'
            labels = made['metadata']['labels']
            text = json.dumps({'metadata': {'name': 'NAME', 'labels': labels}, 'spec': spec})
            (self.folder / (kind + '.json')).write_text(text)
        plane = self.cluster.plane
        begin = time.monotonic()
        process = self.cluster.spawn(
            namespace, cluster.build('creator'), '--server', plane.server, '--authority', str(plane.authority), '--token',
            plane.tokens['creator'], '--namespace', namespace, '--pod', str(self.folder / 'pods.json'), '--service',
            str(self.folder / 'services.json'), '--jobs', str(jobs), '--tasks', str(TASKS))
        usage = None
        while process.poll() is None:
            try:
                usage = Usage(process)
            except (OSError, StopIteration, IndexError):
                break
            time.sleep(0.02)
        assert process.wait() == 0, (self.folder / (namespace + '.log')).read_text()
        wall = time.monotonic() - begin
        self.cluster.processes.remove(process)
        self.tell('bare creator', namespace, 'creator', jobs, wall, usage)

    def calls(self, user, namespace):
        return sum(entry['user']['username'] == user and entry.get('objectRef', {}).get('namespace') == namespace
                   for entry in self.cluster.audited())

    def await_quiet(self, user, namespace):
        before = -1
        while (now := self.calls(user, namespace)) != before:
            before = now
            time.sleep(3)

    def tell(self, name, namespace, user, jobs, wall, usage):
        figure = dict(name=name, jobs=jobs, wall=wall, pods_a_second=jobs * TASKS / wall, cpu_ms_a_job=usage.cpu * 1e3 / jobs,
                      calls_a_job=self.calls(user, namespace) / jobs, memory_mb=usage.memory)
        self.figures.setdefault(name, []).append(figure)
        print('  %-34s %5d jobs %8.1f s %8.1f pods/s %8.1f ms CPU/job %6.1f calls/job %7.1f MB' % (
            name, jobs, wall, figure['pods_a_second'], figure['cpu_ms_a_job'], figure['calls_a_job'], figure['memory_mb']),
              flush=True)

    def restart(self, jobs):
        """From the start of the operator until it has looked at all jobs, that are suspended, and serves a new one."""
        namespace = self.namespace()
        held = job(0, False)
        held['spec']['runPolicy'] = {'suspend': True}
        list(self.pool.map(lambda index: self.api.create(namespace, 'tfjobs', {**held, 'metadata': {'name': 'job-%d' % index}}),
                           range(jobs)))
        command = [self.arguments.weft, 'operator', '--namespace', namespace]
        config = self.kubeconfig('weft')
        process = self.cluster.spawn(namespace, *command, kubeconfig=config)

        def unsuspended():
            items = self.api.list(namespace, 'tfjobs')
            return sum(not item.get('status', {}).get('conditions') for item in items)
        cluster.wait_for(lambda: unsuspended() == 0, 'rest of the operator', 1200, 2)
        process.kill()
        process.wait()
        self.cluster.processes.remove(process)
        new = job(0, False)
        new['metadata']['name'] = 'new'
        self.api.create(namespace, 'tfjobs', new)
        begin = time.monotonic()
        process = self.cluster.spawn(namespace, *command, kubeconfig=config)
        cluster.wait_for(lambda: self.count(namespace, 'pods') >= TASKS, 'pods of the new job', 600, 0.02)
        wall = time.monotonic() - begin
        usage = Usage(process)
        process.terminate()
        process.wait()
        self.cluster.processes.remove(process)
        self.figures['restart'] = [dict(name='restart', jobs=jobs, wall=wall, memory_mb=usage.memory)]
        print('  operator started again with %d jobs: a new job has its pods after %.2f s; %.1f MB' % (
            jobs, wall, usage.memory), flush=True)

    def run(self):
        arguments = self.arguments
        reference = cluster.build('reference')
        best = [reference, '--controller-threads', str(arguments.reference_threads), '--qps', '5000', '--burst', '5000']
        weft = [arguments.weft, 'operator', '--parallel_calls', str(arguments.parallel_calls)]
        self.operator('weft', 'weft', arguments.jobs, weft)
        for _ in range(arguments.rounds):
            self.creator(arguments.jobs)
            self.operator('reference, best settings', 'reference', arguments.jobs, best)
            self.operator('weft', 'weft', arguments.jobs, weft)
        if arguments.default_jobs:
            self.operator('reference, defaults', 'reference', arguments.default_jobs, [reference])
        if arguments.restart_jobs:
            self.restart(arguments.restart_jobs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--weft', default=str(ROOT / 'build' / 'bin' / 'weft'))
    parser.add_argument('--jobs', type=int, default=1000)
    parser.add_argument('--default_jobs', type=int, default=100, help='for the reference at its defaults: 20 calls a second')
    parser.add_argument('--restart_jobs', type=int, default=10000)
    parser.add_argument('--reference_threads', type=int, default=16)
    parser.add_argument('--parallel_calls', type=int, default=32)
    parser.add_argument('--rounds', type=int, default=1)
    parser.add_argument('--kwok', action='store_true', help='put the pods on nodes that KWOK keeps')
    parser.add_argument('--json', help='also write the figures here')
    arguments = parser.parse_args()
    arguments.weft = os.path.abspath(arguments.weft)
    with tempfile.TemporaryDirectory() as folder:
        bench = JobsBench(arguments, folder)
        try:
            bench.start()
            bench.run()
        finally:
            bench.cluster.stop()
        print_verdicts(bench.figures)
        if arguments.json:
            pathlib.Path(arguments.json).write_text(json.dumps(bench.figures, indent=1))


if __name__ == '__main__':
    main()
