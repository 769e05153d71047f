# SPDX-License-Identifier: Apache-2.0
"""An API server that holds what a test puts there: also thousands of trials, names that no real one lets in, and refusals."""
import http.server
import json
import math
import random
import re
import threading
import time
import urllib.parse

PLURALS = {'Pod': 'pods', 'Node': 'nodes', 'Event': 'events', 'TFJob': 'tfjobs', 'Tensorflow': 'tensorflows', 'Experiment': 'experiments', 'Trial': 'trials'}
BEGAN = time.time() - 3600


def stamp(seconds):
    return time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(seconds))


def condition(kind, status='True', message='', reason=''):
    return {'type': kind, 'status': status, 'message': message, 'reason': reason or kind, 'lastTransitionTime': stamp(BEGAN)}


class StandIn:
    """Serves from construction on. `user_rights` are what reviews allow; `refused` plurals that may not be read."""

    def __init__(self, token='secret'):
        self.token = token
        self.objects = {plural: {} for plural in PLURALS.values()}
        self.history = []  # (revision, plural, event)
        self.writes = []
        self.logs = {}
        self.refused = set()
        self.is_allowed = True
        self.changed = threading.Condition()
        stand_in = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def log_message(self, *words):
                pass

            def answer(self, code, body, kind='application/json'):
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(code)
                self.send_header('Content-Type', kind)
                self.send_header('Content-Length', str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def refuse(self, code, message):
                self.answer(code, {'kind': 'Status', 'apiVersion': 'v1', 'status': 'Failure', 'message': message, 'reason': {403: 'Forbidden', 404: 'NotFound'}.get(code, 'Unknown'), 'code': code})

            def handle_any(self):
                try:
                    stand_in.handle(self)
                except OSError:  # whoever asked has gone
                    self.close_connection = True

            do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = handle_any

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return 'http://127.0.0.1:%d' % self.server.server_port

    def kubeconfig(self, path):
        path.write_text(json.dumps({
            'apiVersion': 'v1', 'kind': 'Config', 'current-context': 'x', 'contexts': [{'name': 'x', 'context': {'cluster': 'x', 'user': 'x'}}],
            'clusters': [{'name': 'x', 'cluster': {'server': self.url}}], 'users': [{'name': 'x', 'user': {'token': self.token}}]}))
        return path

    def put(self, *objects):
        with self.changed:
            for found in objects:
                plural = PLURALS[found['kind']]
                key = (found['metadata'].get('namespace', ''), found['metadata']['name'])
                kind = 'MODIFIED' if key in self.objects[plural] else 'ADDED'
                found['metadata']['resourceVersion'] = str(len(self.history) + 1)
                self.objects[plural][key] = found
                self.history.append((plural, {'type': kind, 'object': found}))
            self.changed.notify_all()

    def remove(self, kind, namespace, name):
        with self.changed:
            found = self.objects[PLURALS[kind]].pop((namespace, name))
            self.history.append((PLURALS[kind], {'type': 'DELETED', 'object': found}))
            self.changed.notify_all()

    def handle(self, request):
        path, _, query = request.path.partition('?')
        query = {name: values[-1] for name, values in urllib.parse.parse_qs(query).items()}
        body = request.rfile.read(int(request.headers.get('Content-Length', 0)))
        if request.headers.get('Authorization') != 'Bearer ' + self.token:
            return request.refuse(401, 'Unauthorized')
        if path.endswith('/selfsubjectreviews'):
            return request.answer(201, {'kind': 'SelfSubjectReview', 'status': {'userInfo': {'username': 'someone'}}})
        if path.endswith('/selfsubjectaccessreviews'):
            return request.answer(201, {'kind': 'SelfSubjectAccessReview', 'status': {'allowed': self.is_allowed}})
        match = re.fullmatch(r'/(?:api|apis/[^/]+)/[^/]+(?:/namespaces/([^/]+))?/([a-z]+)(?:/([^/]+))?(?:/([a-z]+))?', path)
        if not match or match[2] not in self.objects:
            return request.refuse(404, 'there is no ' + path)
        namespace, plural, name, sub = (urllib.parse.unquote(part or '') for part in match.groups())
        if plural in self.refused:
            return request.refuse(403, '%s is forbidden: User "someone" cannot list it' % plural)
        if request.command != 'GET':
            self.writes.append((request.command, path, json.loads(body) if body else None))
            return request.answer(200, self.writes[-1][2] or {})
        if sub == 'log':
            return request.answer(200, self.logs.get(name + (' before' if query.get('previous') == 'true' else ''), '').encode(), 'text/plain')
        if name:
            found = self.objects[plural].get((namespace, name))
            return request.answer(200, found) if found else request.refuse(404, plural + ' not found')
        selector = query.get('labelSelector', '').partition('=')

        def is_wanted(found):
            metadata = found['metadata']
            return (not namespace or metadata.get('namespace') == namespace) and (not selector[0] or metadata.get('labels', {}).get(selector[0]) == selector[2])

        if query.get('watch') == 'true':
            return self.watch(request, plural, int(query['resourceVersion']), is_wanted)
        with self.changed:
            items = [found for found in self.objects[plural].values() if is_wanted(found)]
            return request.answer(200, {'kind': 'List', 'apiVersion': 'v1', 'metadata': {'resourceVersion': str(len(self.history))}, 'items': items})

    def watch(self, request, plural, at, is_wanted):
        request.send_response(200)
        request.send_header('Content-Type', 'application/json')
        request.send_header('Transfer-Encoding', 'chunked')
        request.end_headers()
        while True:
            with self.changed:
                self.changed.wait_for(lambda: len(self.history) > at, timeout=1)
                events = [event for kind, event in self.history[at:] if kind == plural and is_wanted(event['object'])]
                at = len(self.history)
            data = b''.join(json.dumps(event).encode() + b'\n' for event in events)
            if data:
                request.wfile.write(b'%x\r\n%s\r\n' % (len(data), data))


def experiment(name, parameters, trials=0, most=200, state='Running', algorithm='tpe', **more):
    counts = {'trials': trials, 'trialsRunning': 3 if state == 'Running' else 0, 'trialsSucceeded': max(0, trials - 3)}
    return {'apiVersion': 'kubeflow.org/v1beta1', 'kind': 'Experiment', 'metadata': {'name': name, 'namespace': 'default', 'creationTimestamp': stamp(BEGAN), 'uid': name},
            'spec': {'objective': {'type': 'maximize', 'goal': 0.97, 'objectiveMetricName': 'accuracy', 'additionalMetricNames': ['loss']}, 'algorithm': {'algorithmName': algorithm},
                     'maxTrialCount': most, 'parallelTrialCount': 3, 'parameters': parameters, **more},
            'status': {'startTime': stamp(BEGAN), 'conditions': [condition('Created'), condition(state, message='Experiment is ' + state.lower())], **counts}}


PARAMETERS = [
    {'name': 'lr', 'parameterType': 'double', 'feasibleSpace': {'min': '0.0001', 'max': '0.1', 'distribution': 'logUniform'}},
    {'name': 'num-layers', 'parameterType': 'int', 'feasibleSpace': {'min': '2', 'max': '5'}},
    {'name': 'dropout', 'parameterType': 'double', 'feasibleSpace': {'min': '0', 'max': '0.6'}},
    {'name': 'optimizer', 'parameterType': 'categorical', 'feasibleSpace': {'list': ['sgd', 'adam', 'ftrl']}}]


def trial(experiment_name, number, values, series, state='Succeeded', began=None):
    """`series`: metric -> values as they were reported."""
    began = BEGAN + number * 9 if began is None else began
    observed = [{'name': metric, 'min': str(min(seen)), 'max': str(max(seen)), 'latest': str(seen[-1])} for metric, seen in series.items() if seen]
    status = {'startTime': stamp(began), 'conditions': [condition('Created'), condition(state, message='Trial is ' + state.lower())],
              'reported': [{'name': metric, 'values': seen} for metric, seen in series.items()]}
    if state != 'Running':
        status['completionTime'] = stamp(began + 40 + number % 50)
        status['observation'] = {'metrics': observed}
    return {'apiVersion': 'kubeflow.org/v1beta1', 'kind': 'Trial',
            'metadata': {'name': '%s-%05d' % (experiment_name, number), 'namespace': 'default', 'creationTimestamp': stamp(began), 'uid': '%s-%d' % (experiment_name, number),
                         'labels': {'katib.kubeflow.org/experiment': experiment_name, 'weft.dev/trial-number': str(number)}},
            'spec': {'parameterAssignments': [{'name': key, 'value': str(value)} for key, value in values.items()]}, 'status': status}


def search(name, count, seed=1, points=20):
    """Trials of a search that learns: the later, the nearer to a good place."""
    rng = random.Random(seed)
    trials = []
    for number in range(count):
        heat = max(0.08, 1 - number / (0.7 * count))
        lr = 10 ** min(-1, max(-4, rng.gauss(-2.3, 1.2 * heat)))
        dropout = round(min(0.6, max(0, rng.gauss(0.22, 0.3 * heat))), 3)
        layers = rng.choice([2, 3, 4, 5]) if rng.random() < heat else 4
        optimizer = rng.choice(['sgd', 'adam', 'ftrl']) if rng.random() < heat else 'adam'
        top = 0.962 - 0.06 * (math.log10(lr) + 2.3) ** 2 - 0.25 * (dropout - 0.22) ** 2 - 0.012 * abs(layers - 4) - {'adam': 0, 'sgd': 0.03, 'ftrl': 0.07}[optimizer] + rng.gauss(0, 0.004)
        state = 'Running' if number >= count - 3 else 'Failed' if rng.random() < 0.015 else 'EarlyStopped' if top < 0.8 else 'Succeeded'
        length = points if state == 'Succeeded' else points // 3
        curve = [round(top - (top - 0.3) * math.exp(-5 * (i + 1) / points) + rng.gauss(0, 0.003), 4) for i in range(length)]
        loss = [round(0.1 + 2.2 * (1 - value) + rng.gauss(0, 0.01), 4) for value in curve]
        values = {'lr': '%.5g' % lr, 'num-layers': layers, 'dropout': dropout, 'optimizer': optimizer}
        trials.append(trial(name, number, values, {'accuracy': curve, 'loss': loss}, state))
    return trials


def pod(name, owner=None, owner_kind='TFJob', phase='Running', node='node-a', why='', cpu='2', memory='4Gi', gpus=0, kind='Worker', index=0, priority=0):
    made = {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': name, 'namespace': 'default', 'creationTimestamp': stamp(BEGAN + 300), 'labels': {}},
            'spec': {'priority': priority, 'containers': [{'name': 'tensorflow', 'image': 'i', 'resources': {'requests': {'cpu': cpu, 'memory': memory}, 'limits': {'nvidia.com/gpu': str(gpus)} if gpus else {}}}]},
            'status': {'phase': phase, 'startTime': stamp(BEGAN + 300)}}
    if owner:
        made['metadata']['ownerReferences'] = [{'apiVersion': 'v1', 'kind': owner_kind, 'name': owner, 'uid': owner, 'controller': True}]
        made['metadata']['labels'] = {'training.kubeflow.org/replica-type': kind, 'training.kubeflow.org/replica-index': str(index)}
    if node and phase != 'Pending':
        made['spec']['nodeName'] = node
        made['status']['containerStatuses'] = [{'name': 'tensorflow', 'restartCount': 0, 'state': {'running': {'startedAt': stamp(BEGAN + 300)}}}]
    if why:
        made['status']['conditions'] = [condition('PodScheduled', 'False', why, 'Unschedulable')]
    return made


def node(name, gpus=0, model='A100', cpu='32', memory='128Gi'):
    listed = json.dumps([{'model': model, 'memory': '80Gi', 'healthy': i != 5} for i in range(gpus)])
    return {'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': name, 'creationTimestamp': stamp(BEGAN - 86400), 'annotations': {'weft.dev/gpus': listed} if gpus else {}},
            'spec': {}, 'status': {'allocatable': {'cpu': cpu, 'memory': memory, 'pods': '110', **({'nvidia.com/gpu': str(gpus)} if gpus else {})}, 'conditions': [condition('Ready')]}}


def job(name, step, steps, state='Running', **metrics):
    return {'apiVersion': 'kubeflow.org/v1', 'kind': 'TFJob', 'metadata': {'name': name, 'namespace': 'default', 'creationTimestamp': stamp(BEGAN + 200), 'uid': name}, 'spec': {'tfReplicaSpecs': {}},
            'status': {'startTime': stamp(BEGAN + 300), 'conditions': [condition('Created'), condition(state)],
                       **({'progress': {'task': 'Worker-0', 'step': step, 'steps': steps, 'percent': '%d%%' % (100 * step // steps), 'timeLeft': '4m10s', 'metrics': metrics}} if steps else {})}}
