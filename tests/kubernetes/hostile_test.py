#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bad input and too much of it against `weft up`: each gets a clear answer, and who behaves is served meanwhile.

    hostile_test.py WEFT
"""
import base64
import http.client
import json
import pathlib
import re
import resource
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest

import control_plane

WEFT = sys.argv[1]
MAPS = '/api/v1/namespaces/default/configmaps'
JOBS = '/apis/kubeflow.org/v1/namespaces/default/tfjobs?fieldValidation=Strict'
YAML = 'application/yaml'


def config_map(name, data):
    return {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': name}, 'data': data}


class HostileTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.plane = control_plane.ControlPlane(WEFT, cls.temporary.name, WEFT)
        cls.plane.start()
        config = cls.plane.kubeconfig.read_text()
        cls.token = re.search(r'token: (\S+)', config).group(1)
        cls.port = int(re.search(r'server: https://127.0.0.1:(\d+)', config).group(1))
        authority = base64.b64decode(re.search(r'certificate-authority-data: (\S+)', config).group(1)).decode()
        cls.tls = ssl.create_default_context(cadata=authority)
        assert cls.call('POST', MAPS, config_map('seen', {'a': 'x' * 1000}))[0] == 201

    @classmethod
    def tearDownClass(cls):
        cls.plane.stop()
        cls.temporary.cleanup()

    def tearDown(self):
        self.assertEqual(self.call('GET', MAPS + '/seen')[0], 200)

    @classmethod
    def call(cls, method, path, body=None, content='application/json', token=None):
        connection = http.client.HTTPSConnection('127.0.0.1', cls.port, context=cls.tls, timeout=60)
        text = json.dumps(body) if isinstance(body, (dict, list)) else body
        headers = {'Authorization': 'Bearer ' + (cls.token if token is None else token), 'Content-Type': content}
        connection.request(method, path, text, headers)
        response = connection.getresponse()
        answer = response.read().decode()
        connection.close()
        return response.status, answer

    def refused(self, code, words, method, path, body=None, content='application/json', token=None):
        begun = time.monotonic()
        status, answer = self.call(method, path, body, content, token)
        self.assertEqual(status, code, answer[:1000])
        self.assertRegex(answer, words)
        self.assertLess(time.monotonic() - begun, 30)

    def test_credentials(self):
        self.refused(401, 'Unauthorized', 'GET', MAPS, token='')
        self.refused(401, 'Unauthorized', 'GET', MAPS, token=self.token[:-1] + '?')
        for words in (('get', 'pods'), ('apply', '-f', '-')):
            wrong = self.plane.kubeconfig.read_text().replace(self.token, 'x' * 40)
            path = self.plane.folder / 'wrong'
            path.write_text(wrong)
            done = subprocess.run([WEFT, *words, '--kubeconfig', str(path)], capture_output=True, text=True,
                                  input=json.dumps(config_map('a', {})), timeout=60)
            self.assertEqual(done.returncode, 1)
            self.assertIn('its token is not of this cluster', done.stderr)

    def test_what_is_too_large(self):
        self.refused(422, 'may not be more than 1048576 bytes', 'POST', MAPS, config_map('a', {'a': 'x' * 1600000}))
        replica = {'replicas': 1, 'template': {'spec': {'containers': [
            {'name': 'tensorflow', 'image': 'i', 'args': ['x' * 1600000]}]}}}
        self.refused(413, 'at most 1572864 are kept', 'POST', JOBS,
                     {'apiVersion': 'kubeflow.org/v1', 'kind': 'TFJob', 'metadata': {'name': 'a'},
                      'spec': {'tfReplicaSpecs': {'Worker': replica}}})
        self.refused(413, 'too long', 'POST', MAPS, config_map('a', {'a': 'x' * 4000000}))
        self.refused(413, 'more than 4096 fields', 'POST', MAPS, config_map('a', {'k%d' % i: '' for i in range(150000)}))
        self.refused(413, 'more than 4096 fields', 'PATCH', MAPS + '/seen', {'data': {'k%d' % i: '' for i in range(100000)}},
                     'application/merge-patch+json')
        self.refused(431, 'too long', 'GET', MAPS + '?labelSelector=' + 'a=b,' * 20000)

    def test_what_grows(self):
        anchors = 'a: &a [l,l,l,l,l,l,l,l,l]\n' + ''.join(
            '%s: &%s [%s]\n' % (chr(98 + i), chr(98 + i), ','.join(['*' + chr(97 + i)] * 9)) for i in range(8))
        self.refused(400, 'aliases expand', 'POST', MAPS, anchors, YAML)
        doubling = [{'op': 'copy', 'from': '/data', 'path': '/data/x%d' % i} for i in range(60)]
        self.refused(413, 'copies more than', 'PATCH', MAPS + '/seen', doubling, 'application/json-patch+json')

    def test_what_is_deep(self):
        self.refused(400, 'deeper than 64', 'POST', MAPS, '[' * 100000 + ']' * 100000)
        self.refused(400, 'deeper than 64', 'POST', MAPS, '{"a":' * 5000 + '1' + '}' * 5000)
        for text in ('a: ' + '[' * 100000, 'a: ' + '{a: ' * 20000, '- ' * 100000):
            self.refused(400, 'deeper than 64', 'POST', MAPS, text, YAML)

    def test_the_faults_of_the_seeds(self):
        def job(container, **replica):
            spec = dict({'template': {'spec': {'containers': container}}}, **replica)
            return {'apiVersion': 'kubeflow.org/v1', 'kind': 'TFJob', 'metadata': {'name': 'j'},
                    'spec': {'tfReplicaSpecs': {'Worker': spec}}}
        container = {'name': 'tensorflow', 'image': 'i', 'command': ['true']}
        limits = {'resources': {'limits': {'alpha.kubernetes.io/gpuset': '0,1,3'}}}
        self.refused(422, r'nvidia.com/gpu: 3', 'POST', JOBS, job([dict(container, **limits)]))
        self.refused(422, r'put a dash before its first field', 'POST', JOBS, job(container))
        self.refused(422, r"comand: there is no such field. Did you mean 'command'", 'POST', JOBS, job([dict(container, comand=[])]))
        self.refused(422, r"replica: there is no such field. Did you mean 'replicas'", 'POST', JOBS, job([container], replica=2))

    def test_malformed_requests(self):
        self.refused(400, 'stands twice', 'POST', MAPS, '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","name":"b"}}')
        self.refused(400, 'invalid limit', 'GET', MAPS + '?limit=x')
        self.refused(400, 'continue key is not valid', 'GET', MAPS + '?continue=x')
        self.refused(400, 'resourceVersion is a whole number', 'GET', MAPS + '?watch=1&resourceVersion=abc')
        self.refused(504, 'Too large resource version', 'GET', MAPS + '?watch=1&resourceVersion=99999999')
        self.refused(405, 'does not allow this method', 'BREW', MAPS)

    def connect(self):
        return self.tls.wrap_socket(socket.create_connection(('127.0.0.1', self.port), timeout=30), server_hostname='127.0.0.1')

    def test_many_watches(self):
        held = []
        codes = []
        for _ in range(480):
            held.append(self.connect())
            held[-1].sendall(('GET %s?watch=1 HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n\r\n'
                              % (MAPS, self.token)).encode())
            answer = held[-1].recv(4096).decode()
            codes.append(answer.split(' ')[1])
        self.assertEqual((codes.count('200'), codes.count('429')), (384, 96))
        self.assertIn('Retry-After: 1', answer)
        self.assertEqual(self.call('GET', MAPS + '/seen')[0], 200)
        for client in held:
            client.close()
        deadline = time.monotonic() + 60
        while self.call('GET', MAPS + '?watch=1&timeoutSeconds=1')[0] != 200:
            self.assertLess(time.monotonic(), deadline)

    def test_clients_that_say_nothing(self):
        held = [socket.create_connection(('127.0.0.1', self.port), timeout=30) for _ in range(300)]
        held += [self.connect() for _ in range(300)]
        for client in held[300:]:
            client.sendall(b'GET / HT')
        self.assertEqual(self.call('GET', MAPS + '/seen')[0], 200)
        for client in held:
            client.close()


if __name__ == '__main__':
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) * 2)
    unittest.main(argv=sys.argv[:1], verbosity=2)
