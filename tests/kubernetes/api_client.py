# SPDX-License-Identifier: Apache-2.0
"""JSON over HTTPS to an API server, for tests that make more calls than kubectl has time for."""
import http.client
import json
import ssl
import threading
import time
import urllib.parse

GROUPS = {'tfjobs': '/apis/kubeflow.org/v1', 'tensorflows': '/apis/krallistic.github.com/v1'}
PATIENCE = 60  # seconds for a server that says that it is not ready yet
METADATA = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1'
MERGE = 'application/merge-patch+json'


class ApiError(Exception):
    def __init__(self, code, what, answer):
        super().__init__('%s: %d: %s' % (what, code, answer[:2000]))
        self.code = code
        self.text = answer


class ApiClient:
    """Safe for threads: each has a connection of its own."""

    def __init__(self, server, authority, token):
        self.address = urllib.parse.urlsplit(server)
        self.token = token
        self.context = ssl.create_default_context(cafile=str(authority))
        self.context.check_hostname = False
        self.local = threading.local()
        self.calls = 0

    def request(self, method, path, body=None, content='application/json', accept='application/json', user=None):
        """The answer; of 429, as while the store of a new kind is being made, another try a second later."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return self.request_once(method, path, body, content, accept, user)
            except ApiError as error:
                if error.code != 429 or time.monotonic() > deadline:
                    raise
            time.sleep(1)

    def request_once(self, method, path, body, content, accept, user):
        text = None if body is None else json.dumps(body)
        headers = {'Authorization': 'Bearer ' + self.token, 'Content-Type': content, 'Accept': accept}
        if user is not None:
            headers['Impersonate-User'] = user
        for attempt in (0, 1):
            connection = getattr(self.local, 'connection', None)
            if connection is None:
                connection = http.client.HTTPSConnection(self.address.hostname, self.address.port, timeout=60,
                                                         context=self.context)
                self.local.connection = connection
            try:
                connection.request(method, path, text, headers)
                response = connection.getresponse()
                answer = response.read()
                break
            except (http.client.HTTPException, OSError):
                # An idle connection that the server has closed.
                connection.close()
                self.local.connection = None
                if attempt:
                    raise
        self.calls += 1
        if response.status >= 400:
            raise ApiError(response.status, '%s %s' % (method, path), answer.decode())
        is_json = response.headers.get('Content-Type', '').startswith('application/json')
        return json.loads(answer) if is_json else answer.decode()

    @staticmethod
    def path(namespace, kind, name='', subresource=''):
        """Of pods, services, events and tfjobs."""
        parts = [GROUPS.get(kind, '/api/v1'), 'namespaces', namespace, kind, name, subresource]
        return '/'.join(part for part in parts if part)

    def get(self, namespace, kind, name):
        """None when there is none."""
        try:
            return self.request('GET', self.path(namespace, kind, name))
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    def list(self, namespace, kind, selector=''):
        query = '?labelSelector=' + urllib.parse.quote(selector) if selector else ''
        return self.request('GET', self.path(namespace, kind) + query)['items']

    def create(self, namespace, kind, body):
        return self.request('POST', self.path(namespace, kind), body)

    def merge(self, namespace, kind, name, change, subresource=''):
        return self.request('PATCH', self.path(namespace, kind, name, subresource), change, MERGE)

    def delete(self, namespace, kind, name):
        try:
            self.request('DELETE', self.path(namespace, kind, name))
        except ApiError as error:
            if error.code != 404:
                raise
