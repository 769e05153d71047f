#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft operator --experiments` beside Katib's own controller on one API server: the same experiments, the same fates of
their trials' jobs, the same suggestions (by `weft suggestion`, which Katib asks); and Katib's checks beside ours.

    katib_test.py WEFT PROTO_FOLDER [CASE PATTERN]      by a Python that has grpc

A difference that docs/katib.md does not list fails, and so does a row there that no difference needs.
"""
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import grpc

import api_client
import cluster
import control_plane
import differential_state
import katib_cases

WEFT, PROTOS = (os.path.abspath(each) for each in sys.argv[1:3])
PATTERN = sys.argv[3] if len(sys.argv) > 3 else '*'
GENERATED = tempfile.TemporaryDirectory()
subprocess.run(['protoc', '--proto_path=' + PROTOS, '--python_out=' + GENERATED.name, PROTOS + '/katib/api.proto'], check=True)
sys.path.insert(0, GENERATED.name)
from katib import api_pb2 as katib_api  # noqa: E402

PAGE = cluster.HERE.parent.parent / 'docs' / 'katib.md'
OURS, THEIRS = 'ours', 'theirs'
ALGORITHMS = ['random', 'grid', 'tpe', 'multivariate-tpe', 'bayesianoptimization', 'cmaes', 'sobol', 'hyperband', 'pbt', 'enas', 'darts']
GROUP = '/apis/kubeflow.org/v1beta1'
KINDS = {'experiments': GROUP, 'trials': GROUP, 'suggestions': GROUP, 'jobs': '/apis/batch/v1', 'deployments': '/apis/apps/v1',
         'services': '/api/v1'}
QUIET = 3

CONFIG = {
    'apiVersion': 'config.kubeflow.org/v1beta1', 'kind': 'KatibConfig',
    'runtime': {'suggestions': [{'algorithmName': name, 'image': 'i'} for name in ALGORITHMS],
                'earlyStoppings': [{'algorithmName': 'medianstop', 'image': 'i'}],
                'metricsCollectors': [{'kind': kind, 'image': 'i'} for kind in ('StdOut', 'File', 'TensorFlowEvent', 'PrometheusMetric')]}}


# What of docs/katib.md tells who alone refuses an experiment.
VERDICT = re.compile(r'^- `([^`]+)`: (here|there) alone: .')


def examples():
    """The experiments that Katib's module comes with, by file."""
    module = json.loads(subprocess.run(['go', 'mod', 'download', '-json', 'github.com/kubeflow/katib@v0.19.0'], check=True,
                                       capture_output=True, text=True, cwd='/').stdout)
    folder = pathlib.Path(module['Dir']) / 'examples' / 'v1beta1'
    for file in sorted(folder.rglob('*.yaml')):
        for document in re.split(r'^---$', file.read_text(), flags=re.M):
            if re.search(r'^kind: Experiment$', document, re.M):
                yield str(file.relative_to(folder)), document


def hook(kind, path, port, authority):
    return {'apiVersion': 'admissionregistration.k8s.io/v1', 'kind': kind, 'metadata': {'name': 'katib.kubeflow.org'},
            'webhooks': [{'name': 'experiment.katib.kubeflow.org', 'sideEffects': 'None', 'admissionReviewVersions': ['v1'],
                          'clientConfig': {'url': 'https://127.0.0.1:%d/%s' % (port, path), 'caBundle': authority},
                          'namespaceSelector': {'matchLabels': {'kubernetes.io/metadata.name': THEIRS}},
                          'rules': [{'apiGroups': ['kubeflow.org'], 'apiVersions': ['v1beta1'], 'operations': ['CREATE', 'UPDATE'],
                                     'resources': ['experiments']}]}]}


class Plane:
    """Two namespaces of one cluster, and who looks after each."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        program = cluster.build('katib')
        self.cluster = cluster.Cluster(folder)
        self.cluster.start()
        self.api = self.cluster.api
        for name in (OURS, THEIRS, 'kubeflow'):
            self.api.request('POST', '/api/v1/namespaces',
                             {'metadata': {'name': name, 'labels': {'katib.kubeflow.org/metrics-collector-injection': 'enabled'}}})
        self.api.request('POST', '/api/v1/namespaces/kubeflow/configmaps',
                         {'metadata': {'name': 'katib-config'}, 'data': {'katib-config.yaml': json.dumps(CONFIG)}})
        self.cluster.k('apply', '-f', str(cluster.DEPLOY / 'rbac' / 'tuning.yaml'))
        self.ports = {}
        self.start_ours()
        self.start_theirs(program)

    def start_ours(self):
        self.cluster.spawn('operator', WEFT, 'operator', '--experiments', '--namespace', OURS, '--katib_address', '127.0.0.1:0',
                           kubeconfig=self.cluster.operator_config)
        self.ports[OURS] = self.port_in('operator', "Katib's calls at port ")

    def start_theirs(self, program):
        self.cluster.spawn('suggestion', WEFT, 'suggestion', '--address', '127.0.0.1:0')
        suggestions = self.port_in('suggestion', 'suggestions at port ')
        self.ports[THEIRS], webhook = cluster.real_control_plane.free_port(), cluster.real_control_plane.free_port()
        subprocess.run(['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=katib', '-addext',
                        'subjectAltName=IP:127.0.0.1', '-keyout', 'tls.key', '-out', 'tls.crt'], check=True, capture_output=True,
                       cwd=self.folder)
        self.cluster.spawn('katib', program, '--namespace', THEIRS, '--suggestions', '127.0.0.1:%d' % suggestions, '--database',
                           '127.0.0.1:%d' % self.ports[THEIRS], '--webhook-port', str(webhook), '--webhook-folder', str(self.folder))
        cluster.wait_for(lambda: 'Starting workers' in (self.folder / 'katib.log').read_text(), 'workers of Katib')
        authority = subprocess.run(['base64', '-w0', 'tls.crt'], check=True, capture_output=True, text=True, cwd=self.folder).stdout
        hooks = [hook('MutatingWebhookConfiguration', 'mutate-experiment', webhook, authority),
                 hook('ValidatingWebhookConfiguration', 'validate-experiment', webhook, authority)]
        self.cluster.k('apply', '-f', '-', stdin='\n---\n'.join(json.dumps(each) for each in hooks))

    def port_in(self, log, words):
        path = self.folder / (log + '.log')
        cluster.wait_for(lambda: words in path.read_text() and path.read_text().split(words)[1][:6].strip(), 'port of ' + log)
        return int(path.read_text().split(words)[1].split()[0])

    def list(self, namespace, kind):
        return self.api.request('GET', '%s/namespaces/%s/%s' % (KINDS[kind], namespace, kind))['items']

    def path(self, namespace, kind, name):
        return '%s/namespaces/%s/%s/%s' % (KINDS[kind], namespace, kind, name)

    def report(self, namespace, trial, metrics):
        request = katib_api.ReportObservationLogRequest(trial_name=trial)
        for metric, values in metrics.items():
            for second, value in enumerate(values):
                request.observation_log.metric_logs.add(time_stamp='2026-01-01T00:00:%02dZ' % second).metric.MergeFrom(
                    katib_api.Metric(name=metric, value=str(value)))
        with grpc.insecure_channel('127.0.0.1:%d' % self.ports[namespace]) as channel:
            call = channel.unary_unary('/api.v1.beta1.DBManager/ReportObservationLog',
                                       request_serializer=lambda message: message.SerializeToString(),
                                       response_deserializer=katib_api.ReportObservationLogReply.FromString)
            call(request, timeout=30)

    def stop(self):
        self.cluster.stop()


class Kubelets:
    """What runs here: Katib's services as if their pods ran, and jobs as their fates are."""

    def __init__(self, plane, fates):
        self.plane = plane
        self.fates = fates  # by experiment
        self.met = set()
        self.changed = time.monotonic()
        self.errors = []
        self.is_over = threading.Event()
        self.threads = [threading.Thread(target=self.work, args=(namespace,)) for namespace in (OURS, THEIRS)]
        for thread in self.threads:
            thread.start()

    def work(self, namespace):
        while not self.is_over.wait(0.1):
            try:
                self.look(namespace)
            except (api_client.ApiError, grpc.RpcError) as error:
                # Who looks after it may have written it meanwhile, or deleted it.
                self.errors.append(str(error))

    def look(self, namespace):
        for item in self.plane.list(namespace, 'deployments'):
            if not item.get('status', {}).get('conditions'):
                status = {'conditions': [{'type': 'Available', 'status': 'True', 'reason': 'r', 'message': 'm'}]}
                self.plane.api.request('PATCH', self.plane.path(namespace, 'deployments', item['metadata']['name']) + '/status',
                                       {'status': status}, api_client.MERGE)
        trials = {trial['metadata']['name']: trial for trial in self.plane.list(namespace, 'trials')}
        for job in self.plane.list(namespace, 'jobs'):
            uid, name = job['metadata']['uid'], job['metadata']['name']
            # What ends before it was seen to run is a race.
            runs = any(each['type'] == 'Running' for each in trials.get(name, {}).get('status', {}).get('conditions') or [])
            if uid not in self.met and runs and not job['metadata'].get('deletionTimestamp'):
                self.befall(namespace, job, trials[name])
                self.met.add(uid)
                self.changed = time.monotonic()

    def befall(self, namespace, job, trial):
        name = job['metadata']['name']
        fate = self.fates[trial['metadata']['labels']['katib.kubeflow.org/experiment']].get(katib_cases.value_of(trial), 'run')
        if fate == 'run':
            return
        if isinstance(fate, dict):
            self.plane.report(namespace, name, fate)
        self.plane.api.request('PATCH', self.plane.path(namespace, 'jobs', name) + '/status',
                               {'status': katib_cases.ended_job(fate != 'fail')}, api_client.MERGE)

    def stop(self):
        self.is_over.set()
        for thread in self.threads:
            thread.join()


class KatibTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.plane = Plane(cls.temporary.name)
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.addClassCleanup(cls.plane.stop)
        cls.table = differential_state.Table(PAGE)

    def both(self, call, items):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for done in [pool.submit(call, namespace, item) for item in items for namespace in (OURS, THEIRS)]:
                done.result()

    def versions(self):
        return {(kind, item['metadata']['namespace'], item['metadata']['name'], item['metadata']['resourceVersion'])
                for namespace in (OURS, THEIRS) for kind in KINDS for item in self.plane.list(namespace, kind)}

    def rest(self):
        """Nothing has changed for a while."""
        before, since = None, time.monotonic()
        deadline = since + 400
        while before is None or time.monotonic() - max(since, self.kubelets.changed) < QUIET:
            now = self.versions()
            if now != before:
                self.assertLess(time.monotonic(), deadline, 'there is no rest: %s' % sorted(now ^ (before or now)))
                before, since = now, time.monotonic()
            time.sleep(0.5)

    def found(self, namespace):
        """By experiment: what there is of it, by kind."""
        found = {}
        for kind in KINDS:
            for item in self.plane.list(namespace, kind):
                meta = item['metadata']
                name = meta['name'] if kind in ('experiments', 'suggestions') else meta.get('labels', {}).get('katib.kubeflow.org/experiment')
                owner = (meta.get('ownerReferences') or [{}])[0]
                name = name or owner.get('name')
                found.setdefault(name, {each: [] for each in KINDS})[kind].append(item)
        # Jobs have no label of the experiment everywhere.
        for name, kinds in list(found.items()):
            for trial in kinds['trials']:
                jobs = found.get(trial['metadata']['name'], {}).get('jobs', [])
                kinds['jobs'].extend(jobs)
        return found

    def compare(self, cases, step):
        self.rest()
        ours, theirs = self.found(OURS), self.found(THEIRS)
        told = []
        for case, _, _ in cases:
            name = case['metadata']['name']
            flat = [katib_cases.flat(each[name], name) for each in (ours, theirs)]
            for where, here, there in katib_cases.differences(*flat):
                if not self.table.knows(name, where):
                    told.append('%s, step %d: %s\n    here:  %s\n    there: %s' % (name, step, where, here, there))
        return told

    def take(self, namespace, case, step):
        verb, argument = case[2][step]
        name = case[0]['metadata']['name']
        if verb == 'edit':
            try:
                self.plane.api.request('PATCH', self.plane.path(namespace, 'experiments', name), {'spec': argument}, api_client.MERGE)
            except api_client.ApiError as error:
                print('%s/%s: %s' % (namespace, name, error), file=sys.stderr)
            return
        newest = [item for item in self.found(namespace)[name][argument]][-1]
        self.plane.api.request('DELETE', self.plane.path(namespace, argument, newest['metadata']['name']), {'propagationPolicy': 'Background'})

    def test_the_same_experiments_are_refused(self):
        """Katib's examples, and experiments that are wrong in one way, by Katib's checks and by those of `weft up`."""
        up = control_plane.ControlPlane(WEFT, tempfile.mkdtemp(dir=self.temporary.name), WEFT)
        up.start()
        self.addCleanup(up.stop)
        kubectl = self.plane.cluster.kubectl
        told = dict(match.groups() for match in map(VERDICT.match, PAGE.read_text().splitlines()) if match)
        wrong, used = [], set()
        cases = [(name, re.sub('namespace: kubeflow$', 'namespace: NAMESPACE', text, flags=re.M)) for name, text in examples()]
        self.assertGreater(len(cases), 25)
        cases += [(name, json.dumps(item)) for name, item in katib_cases.wrong_experiments()]
        for name, text in cases:
            create = ('create', '--dry-run=server', '-o', 'name', '-f', '-')
            code, here = up.run(kubectl, *create, stdin=text.replace('NAMESPACE', 'default'), check=False)
            there = subprocess.run([kubectl, '--kubeconfig', str(self.plane.cluster.plane.kubeconfig), '-n', THEIRS, *create],
                                   input=text.replace('NAMESPACE', THEIRS), capture_output=True, text=True, timeout=60)
            verdict = {(True, False): 'here', (False, True): 'there'}.get((code != 0, there.returncode != 0))
            if verdict != told.get(name):
                wrong.append('%s: %s alone\n    here:  %s\n    there: %s' % (name, verdict, here.strip()[:400], (there.stdout + there.stderr).strip()[:400]))
            used.add(name)
        self.assertEqual(wrong, [], '\n'.join(wrong))
        self.assertEqual(set(told) - used, set(), 'rows of %s that nothing needs' % PAGE.name)

    def test_the_same_becomes_of_every_experiment(self):
        cases = [case for case in katib_cases.all_cases() if fnmatch.fnmatchcase(case[0]['metadata']['name'], PATTERN)]
        self.kubelets = Kubelets(self.plane, {case['metadata']['name']: fates for case, fates, _ in cases})
        self.addCleanup(self.kubelets.stop)
        begun = time.monotonic()
        self.both(lambda namespace, case: self.plane.api.request('POST', '%s/namespaces/%s/experiments' % (GROUP, namespace), case[0]),
                  cases)
        told = self.compare(cases, 0)
        for step in range(max(len(steps) for _, _, steps in cases)):
            now = [case for case in cases if step < len(case[2])]
            self.both(lambda namespace, case: self.take(namespace, case, step), now)
            told += self.compare(now, step + 1)
        print('%d experiments, %.0f s' % (len(cases), time.monotonic() - begun), file=sys.stderr)
        self.assertEqual(told, [], '%d differences that %s does not list:\n%s' % (len(told), PAGE.name, '\n'.join(told)))
        if PATTERN == '*':
            self.assertFalse(self.table.unused(), 'rows of %s that nothing needs' % PAGE.name)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[4:], verbosity=2)
