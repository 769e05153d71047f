#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ModelServers on `weft up`, and on a real API server with real controllers of Deployments: model_servers_test.py WEFT SERVING [TEST ...]

SERVING is the example that writes models. Clients are TensorFlow Serving's own over gRPC, and plain ones over HTTP.
"""
import contextlib
import http.client
import json
import os
import pathlib
import random
import re
import signal
import struct
import sys
import tempfile
import threading
import time
import unittest

import grpc
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

import cluster
import control_plane

WEFT, SERVING = sys.argv[1:3]
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DEPLOY = ROOT / 'deploy'
# As docs/serving.md has it.
RETRY = json.dumps({'methodConfig': [{'name': [{}], 'retryPolicy': {
    'maxAttempts': 5, 'initialBackoff': '0.1s', 'maxBackoff': '2s', 'backoffMultiplier': 2,
    'retryableStatusCodes': ['UNAVAILABLE', 'RESOURCE_EXHAUSTED', 'CANCELLED']}}]})


def model_server(base, name='line', **changes):
    spec = {'image': 'weft', 'command': [WEFT, 'serve'], 'models': [{'name': 'line', 'basePath': base, 'versions': {'specific': [1]}}],
            'insecure': True, 'threads': 1, 'drainSeconds': 1}
    return json.dumps({'apiVersion': 'weft.dev/v1alpha1', 'kind': 'ModelServer', 'metadata': {'name': name}, 'spec': {**spec, **changes}})


def ask_once(host, value, port=8501, model='line'):
    """(status, answer) over a connection of its own."""
    with contextlib.closing(http.client.HTTPConnection(host, port, timeout=30)) as connection:
        connection.request('POST', '/v1/models/%s:predict' % model, json.dumps({'instances': [value]}))
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())


def ask(host, value):
    """By the documented retry: what is not answered, or with 429 or 503, is asked again, each time later."""
    pause = 0.1
    for attempt in range(5):
        try:
            status, answer = ask_once(host, value)
            if status not in (429, 503):
                assert status == 200, answer
                return answer['predictions'][0]
        except OSError as error:
            answer = error
        except http.client.HTTPException as error:
            answer = error
        time.sleep(random.uniform(0, pause))
        pause = min(2, 2 * pause)
    raise AssertionError('no answer after five tries: %r' % answer)


class Load:
    """Clients that ask all the time: what none of them got is in `lost`."""

    def __init__(self, host, rest=2, rpc=2):
        self.answers, self.lost, self.stop = [], [], threading.Event()
        self.channel = grpc.insecure_channel(host + ':8500', options=[('grpc.service_config', RETRY), ('grpc.enable_retries', 1)])
        stub = prediction_service_pb2_grpc.PredictionServiceStub(self.channel)
        request = predict_pb2.PredictRequest()
        request.model_spec.name = 'line'
        request.inputs['x'].dtype = 1
        request.inputs['x'].tensor_shape.dim.add(size=1)
        request.inputs['x'].float_val.append(10)
        asks = [lambda: ask(host, 10)] * rest + [lambda: struct.unpack('<f', stub.Predict(request, 30).outputs['y'].tensor_content)[0]] * rpc
        self.threads = [threading.Thread(target=self.run, args=(one,)) for one in asks]
        for thread in self.threads:
            thread.start()

    def run(self, one):
        while not self.stop.is_set():
            try:
                self.answers.append(round(one()))
            except Exception as error:  # whatever it is: nobody got an answer
                self.lost.append(repr(error))
            time.sleep(0.01)

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join()
        self.channel.close()
        return self


class Cases:
    NAMESPACE = 'default'

    def get(self, kind, name):
        return json.loads(self.k('get', kind, name, '-o', 'json'))

    def apply(self, text):
        return self.k('apply', '-f', '-', stdin=text)

    def patch(self, name, **spec):
        self.k('patch', 'modelserver', name, '--type=merge', '-p', json.dumps({'spec': spec}))

    def status(self, name):
        return self.get('modelserver', name).get('status', {})

    def condition(self, name, kind):
        return next((one for one in self.status(name).get('conditions', []) if one['type'] == kind), {})

    def pods(self, name):
        items = json.loads(self.k('get', 'pods', '-l', 'weft.dev/model-server=' + name, '-o', 'json'))['items']
        return [item for item in items if 'deletionTimestamp' not in item['metadata']]

    def wait_ready(self, name, count):
        def is_ready():
            status = self.status(name)
            return (status.get('readyReplicas'), status.get('replicas'), status.get('desiredReplicas')) == (count,) * 3
        cluster.wait_for(is_ready, lambda: 'ready servers: %s' % self.status(name))

    def wait_settled(self, name, revision):
        """Another revision is trusted, and alone."""
        def is_settled():
            status = self.status(name)
            return status.get('revision') != revision and 'rollout' not in status
        cluster.wait_for(is_settled, lambda: 'end of the rollout: %s' % self.status(name))
        return self.status(name)['revision']


class UpTest(Cases, control_plane.PlaneTest):
    WEFT = WEFT

    @classmethod
    def prepare(cls):
        cls.base = str(cls.plane.folder / 'line')
        for version, slope in (1, 3), (2, 5):
            cls.plane.run(SERVING, '%s/%d' % (cls.base, version), '--slope', str(slope))

    def k(self, *words, stdin=None):
        return self.plane.run(self.kubectl, *words, stdin=stdin)

    def host(self, name):
        return self.get('service', name)['spec']['clusterIP']

    def kill_one(self, name):
        """SIGKILL for the server of a pod, as by a lack of memory."""
        address = random.choice([pod['status']['podIP'] for pod in self.pods(name)])
        flag = ('--bind=' + address).encode()
        for folder in pathlib.Path('/proc').glob('[0-9]*'):
            with contextlib.suppress(OSError):
                if flag in (folder / 'cmdline').read_bytes().split(b'\0'):
                    os.kill(int(folder.name), signal.SIGKILL)
                    return
        raise AssertionError('no server at ' + address)

    def test_replicas_that_are_killed_and_replaced_lose_no_request(self):
        self.apply(model_server(self.base, replicas=3, rollout={'steps': [34, 100], 'stepSeconds': 2, 'maxErrorPercent': 5}))
        self.wait_ready('line', 3)
        host = self.host('line')
        self.assertRegex(host, r'^127\.')
        self.assertEqual(len({pod['status']['podIP'] for pod in self.pods('line')}), 3)
        self.assertRegex(self.k('get', 'modelserver'), r'NAME +READY +WANTED +SHARE +ADDRESS +AGE\nline +3 +3 +line\.default\.svc:8500 +\d')
        self.assertEqual(ask_once(host, 10), (200, {'predictions': [32.0]}))
        load = Load(host)
        for _ in range(4):
            time.sleep(1)
            self.kill_one('line')
            cluster.wait_for(lambda: all(one['status'].get('containerStatuses', [{}])[0].get('ready') for one in self.pods('line')), 'ready servers')
        load.end()
        self.assertEqual(load.lost, [])
        self.assertEqual(set(load.answers), {32})
        self.assertGreater(len(load.answers), 100)
        self.assertGreaterEqual(sum(pod['status']['containerStatuses'][0]['restartCount'] for pod in self.pods('line')), 4)

        # Another version takes over, seen by nobody but for its answers.
        before = self.status('line')['revision']
        load = Load(host)
        self.patch('line', models=[{'name': 'line', 'basePath': self.base, 'versions': {'specific': [2]}}])
        cluster.wait_for(lambda: self.status('line').get('rollout', {}).get('share') == '2 of 3', 'share')
        trusted = self.wait_settled('line', before)
        self.wait_ready('line', 3)
        cluster.wait_for(lambda: {round(ask(host, 10)) for _ in range(6)} == {52}, 'end of the old ones')
        load.end()
        self.assertEqual(load.lost, [])
        self.assertEqual(set(load.answers), {32, 52})

        # One that answers wrongly goes again by itself.
        self.patch('line', models=[{'name': 'other', 'basePath': self.base, 'versions': {'specific': [2]}}])
        stop = threading.Event()

        def ask_on():
            while not stop.is_set():
                with contextlib.suppress(OSError):
                    ask_once(host, 10)
                time.sleep(0.02)
        clients = [threading.Thread(target=ask_on) for _ in range(2)]
        for client in clients:
            client.start()
        cluster.wait_for(lambda: self.condition('line', 'RolledBack').get('status') == 'True', lambda: 'return: %s' % self.status('line'))
        stop.set()
        for client in clients:
            client.join()
        self.assertRegex(self.condition('line', 'RolledBack')['message'],
                         r'taken back at 34 percent: [1-9][\d.]*% of its \d+ requests failed, .* at most 5% more are allowed')
        self.wait_ready('line', 3)
        self.assertEqual((self.status('line')['revision'], {round(ask(host, 10)) for _ in range(6)}), (trusted, {52}))
        described = self.k('describe', 'modelserver', 'line')
        for word in 'RolloutStarted', 'RolloutAdvanced', 'RolloutFinished', 'RolledBack':
            self.assertIn(word, described)

        # With the deadline past, one whose servers never come.
        self.patch('line', models=[{'name': 'line', 'basePath': self.base, 'versions': {'specific': [9]}}], rollout={'deadlineSeconds': 3})
        cluster.wait_for(lambda: '0 of 2 servers were ready within 3s' in self.condition('line', 'RolledBack').get('message', ''), 'return')
        self.assertEqual(round(ask(host, 10)), 52)
        self.k('delete', 'modelserver', 'line')
        cluster.wait_for(lambda: not self.pods('line'), 'end of the servers')

    def test_servers_follow_the_requests(self):
        """A batch waits for a fifth of a second: clients that ask on are requests that wait."""
        self.apply(model_server(self.base, name='scaled', batching={'timeoutMicros': 200000, 'maxBatchSize': 1000}, drainSeconds=0,
                                autoscaling={'maxReplicas': 3, 'targetRequests': 3, 'periodSeconds': 1, 'scaleDownStabilizationSeconds': 4}))
        self.wait_ready('scaled', 1)
        load = Load(self.host('scaled'), rest=8, rpc=0)
        self.wait_ready('scaled', 3)
        load.end()
        self.assertEqual(load.lost, [])
        self.wait_ready('scaled', 1)
        events = self.k('get', 'events', '--field-selector', 'involvedObject.name=scaled', '-o', 'jsonpath={range .items[*]}{.reason} {.message}{"\\n"}{end}')
        self.assertRegex(events, r'Scaled From 1 servers to [23]: [\d.]+ requests wait or run, 3 at a server shall')
        self.assertRegex(events, r'Scaled From 3 servers to [12]: ')
        self.k('delete', 'modelserver', 'scaled')

    def test_the_example_and_the_page(self):
        """As examples/serving has it, and what docs/serving.md shows."""
        text = (ROOT / 'examples' / 'serving' / 'model_server.yaml').read_text()
        self.assertIn('basePath: /tmp/line\n', text)
        self.apply(text.replace('/tmp/line', self.base).replace('name: line}', 'name: example}').replace('stepSeconds: 5', 'stepSeconds: 1'))
        self.wait_ready('example', 2)
        host, before = self.host('example'), self.status('example')['revision']
        self.assertEqual(round(ask(host, 10)), 32)
        words, = re.findall(r"^kubectl patch modelserver line --type=json -p '(.*)'$", (ROOT / 'examples' / 'serving' / 'README.md').read_text(), re.M)
        self.k('patch', 'modelserver', 'example', '--type=json', '-p', words)
        self.wait_settled('example', before)
        cluster.wait_for(lambda: {round(ask(host, 10)) for _ in range(4)} == {52}, 'end of the old ones')
        self.k('delete', 'modelserver', 'example')
        page = (ROOT / 'docs' / 'serving.md').read_text()
        shown, = (block for block in re.findall(r'^```yaml\n(.*?)^```', page, re.M | re.S) if 'kind: ModelServer' in block)
        self.k('apply', '--dry-run=server', '-f', '-', stdin=shown)
        self.assertIn('kind: Deployment', self.plane.run(WEFT, 'render', '-', stdin=shown))
        retry, = (block for block in re.findall(r'^```python\n(.*?)^```', page, re.M | re.S) if 'RETRY' in block)
        names = {'json': json, 'grpc': grpc}
        exec(retry, names)
        names['channel'].close()
        self.assertEqual(names['RETRY'], RETRY)

    def test_refusals_and_words(self):
        for changes, words in (({'models': []}, 'spec.models'), ({'insecure': False}, 'spec.tlsSecret'), ({'models': [{'name': 'a/b', 'basePath': 'x'}]}, 'spec.models[0].basePath'),
                               ({'rollout': {'steps': [50, 20]}}, 'spec.rollout.steps[1]'), ({'rollout': {'steps': [50]}}, 'the last step is 100 percent'),
                               ({'autoscaling': {'minReplicas': 3, 'maxReplicas': 2, 'targetRequests': 1}}, 'spec.autoscaling.maxReplicas'),
                               ({'flags': ['--port=1']}, 'spec.flags[0]'), ({'batchin': {}}, 'batchin')):
            code, output = self.plane.run(self.kubectl, 'apply', '-f', '-', stdin=model_server(self.base, name='refused', **changes), check=False)
            self.assertNotEqual(code, 0, changes)
            self.assertIn(words, output)
        self.assertIn('How many servers there are follows from the requests', self.k('explain', 'modelserver.spec.autoscaling'))


class ClusterTest(Cases, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.cluster = cluster.Cluster(cls.temporary.name)
        folder = pathlib.Path(cls.temporary.name)
        cls.base = str(folder / 'line')
        try:
            for version in 1, 2:
                os.spawnv(os.P_WAIT, SERVING, [SERVING, '%s/%d' % (cls.base, version), '--slope', str(1 + 2 * version)])
            cls.cluster.start(controllers=cluster.real_control_plane.CONTROLLERS + ',deployment-controller,replicaset-controller')
            cls.cluster.k('apply', '-f', str(DEPLOY / 'rbac' / 'serving.yaml'))
            cls.cluster.spawn_operator(WEFT, '--model_servers')
            cls.cluster.spawn('node', WEFT, 'node', '--bind_pods', '--state', str(folder / 'node'))
        except BaseException:
            cls.tearDownClass()
            raise

    @classmethod
    def tearDownClass(cls):
        cls.cluster.stop()
        cls.temporary.cleanup()

    def k(self, *words, stdin=None):
        return self.cluster.k(*words, stdin=stdin)

    def answers(self, name):
        """Of each pod, asked at its own address: nobody leads requests to services here."""
        return {round(ask(pod['status']['podIP'], 10)) for pod in self.pods(name)}

    def test_it_runs_with_the_rights_of_deploy(self):
        self.apply(model_server(self.base, replicas=2, rollout={'steps': [50, 100], 'stepSeconds': 1, 'minRequests': 1}))
        self.wait_ready('line', 2)
        self.assertEqual(self.answers('line'), {32})
        self.assertNotEqual(self.get('service', 'line')['spec']['clusterIP'], 'None')
        before = self.status('line')['revision']
        self.patch('line', models=[{'name': 'line', 'basePath': self.base, 'versions': {'specific': [2]}}])

        def is_over():
            with contextlib.suppress(OSError, AssertionError):
                self.answers('line')
            return self.status('line').get('revision') != before and 'rollout' not in self.status('line')
        cluster.wait_for(is_over, lambda: 'end of the rollout: %s' % self.status('line'))
        self.wait_ready('line', 2)
        self.assertEqual(self.answers('line'), {52})
        self.k('scale', 'modelserver', 'line', '--replicas=1')
        self.wait_ready('line', 1)
        # Nothing is written once nothing changes.
        time.sleep(1)
        revision = self.get('modelserver', 'line')['metadata']['resourceVersion']
        time.sleep(3)
        self.assertEqual(self.get('modelserver', 'line')['metadata']['resourceVersion'], revision)
        self.k('delete', 'modelserver', 'line')
        cluster.wait_for(lambda: not self.pods('line') and not json.loads(self.k('get', 'deployments', '-o', 'json'))['items'], 'end of the servers')


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
