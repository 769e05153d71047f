#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ReplicaSets, Deployments, Jobs and StatefulSets on `weft up`, beside kube-controller-manager.

    workloads_test.py WEFT

Both get the same objects, and the same fates for their pods, which are bound to a node that is not there, so that
nobody runs them. After each step the objects, their pods and their events are compared. docs/differential.md lists what
is meant to differ, as "- `workload STEP`: `difference`: why".
"""
import fnmatch
import json
import pathlib
import re
import sys
import tempfile
import time
import unittest

import api_client
import cluster
import refused_objects
import two_planes

WEFT = sys.argv[1]
PAGE = pathlib.Path(__file__).resolve().parent.parent.parent / 'docs' / 'differential.md'
ROW = re.compile(r'- `workload ([^`]+)`: `([^`]+)`: .')
CONTROLLERS = 'deployment-controller,replicaset-controller,statefulset-controller,job-controller'
PODS = '/api/v1/namespaces/default/pods'
APPS = refused_objects.APPS
BATCH = refused_objects.BATCH
CALM = 1.5  # seconds without a change
TIMES = re.compile(r'Time|Probe|Timestamp|revision$|Revision$|collisionCount')


def template(image='i:1', policy='Always'):
    return {'metadata': {'labels': {'app': 'web'}},
            'spec': {'nodeName': 'elsewhere', 'restartPolicy': policy, 'containers': [{'name': 'main', 'image': image}]}}


def workload(kind, replicas, **more):
    spec = {'replicas': replicas, 'selector': {'matchLabels': {'app': 'web'}}, 'template': template(), **more}
    return {'apiVersion': 'apps/v1', 'kind': kind, 'metadata': {'name': 'web'}, 'spec': spec}


def job(**spec):
    return {'apiVersion': 'batch/v1', 'kind': 'Job', 'metadata': {'name': 'web'},
            'spec': {'template': {'spec': template(policy='Never')['spec']}, **spec}}


# (name, path, object, steps): a step is a merge patch, or what becomes of pods, those that run first:
# "ready", "succeed" or "fail", of all that wait or of so many.
CASES = [
    ('replicaset', APPS + 'replicasets', workload('ReplicaSet', 2), [
        ('ready', 9), {'spec': {'replicas': 3}}, ('ready', 9), ('fail', 1), ('ready', 9), {'spec': {'replicas': 1}}]),
    ('deployment', APPS + 'deployments', workload('Deployment', 2), [
        ('ready', 9), {'spec': {'template': {'spec': {'containers': [{'name': 'main', 'image': 'i:2'}]}}}},
        ('ready', 9), ('ready', 9), ('ready', 9), {'spec': {'replicas': 3}}, ('ready', 9)]),
    ('recreate', APPS + 'deployments', workload('Deployment', 2, strategy={'type': 'Recreate'}), [
        ('ready', 9), {'spec': {'template': {'spec': {'containers': [{'name': 'main', 'image': 'i:2'}]}}}},
        ('ready', 9)]),
    ('statefulset', APPS + 'statefulsets', workload('StatefulSet', 2, serviceName='web'), [
        ('ready', 9), ('ready', 9), {'spec': {'replicas': 1}},
        {'spec': {'template': {'spec': {'containers': [{'name': 'main', 'image': 'i:2'}]}}}}, ('ready', 9)]),
    ('parallel', APPS + 'statefulsets', workload('StatefulSet', 2, serviceName='web', podManagementPolicy='Parallel'),
     [('ready', 9), {'spec': {'replicas': 3}}]),
    ('job', BATCH + 'jobs', job(), [('ready', 9), ('succeed', 9)]),
    ('job-parallel', BATCH + 'jobs', job(completions=3, parallelism=2), [
        ('ready', 9), ('succeed', 1), ('succeed', 1), ('succeed', 1)]),
    ('job-fails', BATCH + 'jobs', job(backoffLimit=0), [('fail', 9)]),
    ('job-suspended', BATCH + 'jobs', job(suspend=True), [{'spec': {'suspend': False}}, ('succeed', 9)]),
    ('job-indexed', BATCH + 'jobs', job(completions=2, parallelism=2, completionMode='Indexed'), [
        ('succeed', 1), ('succeed', 1)]),
]


def neutral(text):
    """Names that chance or a hash has made."""
    text = re.sub(r'\bweb-[a-z0-9]{6,10}-[a-z0-9]{5}\b', 'web-HASH-POD', text)
    text = re.sub(r'\bweb-(\d)-[a-z0-9]{5}\b', r'web-\1-POD', text)
    text = re.sub(r'\bweb-[a-z0-9]{6,10}\b', 'web-HASH', text)
    return re.sub(r'\bweb-(?!HASH)[a-z0-9]{5}\b', 'web-POD', text)


def without_times(thing):
    if isinstance(thing, dict):
        return {key: without_times(value) for key, value in thing.items() if not TIMES.search(key)}
    if isinstance(thing, list):
        return sorted((without_times(each) for each in thing), key=json.dumps)
    return thing


class Side:
    def __init__(self, api):
        self.api = api

    def pods(self):
        return sorted(self.api.request('GET', PODS)['items'], key=lambda pod: pod['metadata']['name'])

    def sweep(self):
        """Nobody runs them: whoever is to go goes at once."""
        for pod in self.pods():
            if 'deletionTimestamp' in pod['metadata']:
                try:
                    self.api.request('DELETE', '%s/%s?gracePeriodSeconds=0' % (PODS, pod['metadata']['name']))
                except api_client.ApiError as error:
                    if error.code != 404:
                        raise

    def settle(self, path):
        last, since = None, time.monotonic()
        deadline = since + 60
        while time.monotonic() - since < CALM and time.monotonic() < deadline:
            self.sweep()
            now = self.state(path)
            if now != last:
                last, since = now, time.monotonic()
            time.sleep(0.1)
        return last

    def state(self, path):
        """{where: what}"""
        found = {}
        things = [(path, 'status')] + ([(APPS + 'replicasets', 'set')] if path.endswith('deployments') else [])
        for each, word in things:
            for thing in self.api.request('GET', each)['items']:
                status = without_times(thing.get('status', {}))
                for key, value in status.items():
                    found['%s.%s.%s' % (word, thing['spec'].get('replicas', ''), key)] = neutral(json.dumps(value, sort_keys=True))
        pods = [{'phase': pod['status']['phase'], 'labels': sorted(pod['metadata'].get('labels', {})),
                 'name': neutral(pod['metadata']['name']), 'image': pod['spec']['containers'][0]['image'],
                 'hostname': pod['spec'].get('hostname'), 'subdomain': pod['spec'].get('subdomain'),
                 'owner': neutral(pod['metadata']['ownerReferences'][0]['name'])} for pod in self.pods()]
        found['pods'] = json.dumps(sorted(pods, key=json.dumps))
        return found

    def events(self, kind):
        return {'%s %s: %s' % (event['type'], event['reason'], neutral(event['message']))
                for event in self.api.request('GET', '/api/v1/namespaces/default/events')['items']
                if event['involvedObject']['kind'] == kind}

    def become(self, fate, count):
        phase = {'ready': 'Running', 'succeed': 'Succeeded', 'fail': 'Failed'}[fate]
        now = time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())
        # The names of most pods are chance, so those that run come first: else one side may end a pod that
        # still waits where the other ends one that runs.
        for pod in sorted(self.pods(), key=lambda pod: pod['status']['phase'] != 'Running'):
            held = pod['status']['phase']
            if count == 0 or held in ('Succeeded', 'Failed') or held == phase or 'deletionTimestamp' in pod['metadata']:
                continue
            count -= 1
            state = {'running': {'startedAt': now}} if fate == 'ready' else {
                'terminated': {'exitCode': 0 if fate == 'succeed' else 1, 'finishedAt': now, 'startedAt': now}}
            status = {'phase': phase,
                      'conditions': [{'type': 'Ready', 'status': 'True' if fate == 'ready' else 'False',
                                      'lastTransitionTime': now}],
                      'containerStatuses': [{'name': 'main', 'image': 'i', 'imageID': '', 'ready': fate == 'ready',
                                             'restartCount': 0, 'state': state}]}
            self.api.request('PATCH', '%s/%s/status' % (PODS, pod['metadata']['name']), {'status': status},
                             api_client.MERGE)


class WorkloadsTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.planes = two_planes.TwoPlanes(WEFT, self.temporary.name, controllers=CONTROLLERS)
        self.sides = [Side(self.planes.ours), Side(self.planes.theirs)]

    def tearDown(self):
        self.planes.stop()
        self.temporary.cleanup()

    def test_both_do_the_same(self):
        rows = [match.groups() for match in map(ROW.match, PAGE.read_text().splitlines()) if match]
        used, unknown = set(), []
        for name, path, thing, steps in CASES:
            for where, difference in self.play(path, thing, steps):
                known = [row for row in rows if fnmatch.fnmatchcase('%s %s' % (name, where), row[0])
                         and fnmatch.fnmatchcase(difference, row[1])]
                used.update(known)
                if not known:
                    unknown.append('%s %s: %s' % (name, where, difference))
        self.assertEqual(unknown, [], '\n'.join(unknown))
        self.assertEqual([row for row in rows if row not in used], [], 'rows that nothing needs')

    def play(self, path, thing, steps):
        for side in self.sides:
            side.api.request('POST', path, thing)
        for index, step in enumerate([None, *steps]):
            for side in self.sides:
                if isinstance(step, dict):
                    side.api.request('PATCH', path + '/web', step, api_client.MERGE)
                elif step is not None:
                    side.become(*step)
            ours, theirs = (side.settle(path) for side in self.sides)
            for where in sorted(set(ours) | set(theirs)):
                if ours.get(where) != theirs.get(where):
                    yield str(index), '%s: %s here, %s there' % (where, ours.get(where), theirs.get(where))
        ours, theirs = (side.events(thing['kind']) for side in self.sides)
        for event in sorted(ours ^ theirs):
            yield 'end', 'event %s: %s' % ('here' if event in ours else 'there', event)
        for side in self.sides:
            side.api.request('DELETE', path + '/web', {'propagationPolicy': 'Background'})
            cluster.wait_for(lambda side=side: side.sweep() or not side.pods(), 'end of the pods')
            side.api.request('DELETE', '/api/v1/namespaces/default/events')


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)
