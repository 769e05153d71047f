#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What happens to `weft up` from outside: a full disk, SIGKILL, a second one on its folder.

    faults_test.py WEFT
"""
import base64
import ctypes
import json
import os
import pathlib
import re
import resource
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

import control_plane

WEFT = sys.argv[1]
MAPS = '/api/v1/namespaces/default/configmaps'

PODS = ''.join('''---
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  restartPolicy: %s
  terminationGracePeriodSeconds: 0
  containers:
  - {name: main, image: i, command: [sh, -c, "sleep 1234.5 & setsid sleep 1234.5 & exec sleep 1234.5"]}
''' % words for words in (('again', 'Always'), ('never', 'Never')))


UNSHARE = 'unshare --user --map-root-user --mount'
SMALL_DISK = '''#!/bin/sh
exec %(unshare)s sh -c 'mkdir -p %(state)s && mount -t tmpfs -o size=8m none %(state)s &&
    head -c 3m /dev/zero > %(state)s/ballast && exec %(weft)s "$@"' sh "$@"
'''


def config_map(name, data):
    return {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': name}, 'data': data}


class Client:
    def __init__(self, kubeconfig):
        config = kubeconfig.read_text()
        self.token = re.search(r'token: (\S+)', config).group(1)
        self.server = re.search(r'server: (\S+)', config).group(1)
        authority = base64.b64decode(re.search(r'certificate-authority-data: (\S+)', config).group(1)).decode()
        self.tls = ssl.create_default_context(cadata=authority)

    def open(self, method, path, body=None, timeout=60):
        request = urllib.request.Request(self.server + path, method=method, headers={
            'Authorization': 'Bearer ' + self.token, 'Content-Type': 'application/json'},
            data=None if body is None else json.dumps(body).encode())
        return urllib.request.urlopen(request, context=self.tls, timeout=timeout)

    def call(self, method, path, body=None):
        """The code and the answer."""
        try:
            with self.open(method, path, body) as response:
                return response.status, json.loads(response.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def watch(self, revision, seconds=1):
        """The events after the revision, until the server ends the watch."""
        path = '%s?watch=1&resourceVersion=%s&timeoutSeconds=%d' % (MAPS, revision, seconds)
        try:
            with self.open('GET', path) as response:
                return response.status, [json.loads(line) for line in response.read().splitlines()]
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())


def sleepers():
    listed = subprocess.run(['ps', '-eo', 'args'], capture_output=True, text=True, check=True).stdout
    return sum(line.strip() == 'sleep 1234.5' for line in listed.splitlines())


class FaultsTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.plane = control_plane.ControlPlane(WEFT, self.temporary.name, WEFT)
        self.plane.start()
        self.client = Client(self.plane.kubeconfig)

    def tearDown(self):
        self.plane.stop()
        self.temporary.cleanup()

    def await_that(self, what, is_so):
        deadline = time.monotonic() + 60
        while not is_so():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.05)

    def move_to_a_small_disk(self):
        """A file system of its own for the state, with a ballast that can be thrown off; where that is."""
        tried = subprocess.run([*UNSHARE.split(), 'true'], capture_output=True, text=True)
        if tried.returncode != 0:
            self.skipTest('nothing may be mounted here: ' + tried.stderr.strip())
        self.plane.stop()
        state = self.plane.folder / 'state'
        (self.plane.folder / 'server').write_text(SMALL_DISK % {'unshare': UNSHARE, 'weft': WEFT, 'state': state})
        os.chmod(self.plane.folder / 'server', 0o755)
        self.plane.weft = str(self.plane.folder / 'server')
        self.plane.start()
        self.client = Client(self.plane.kubeconfig)
        return state

    def test_a_full_disk(self):
        state = self.move_to_a_small_disk()
        self.plane.run(WEFT, 'apply', '-f', '-', stdin=PODS)
        self.plane.run(WEFT, 'wait', '--for=condition=Ready', 'pod/again', 'pod/never', '--timeout=60s')
        made = []
        # Down to the last bytes.
        for size in 200000, 20000, 2000, 200:
            for _ in range(100):
                code, answer = self.client.call('POST', MAPS, config_map('m%03d' % len(made), {'a': 'x' * size}))
                if code != 201:
                    break
                made.append('m%03d' % len(made))
            self.assertEqual(code, 507, answer)
        self.assertIn('disk of the state folder is full', answer['message'])
        self.assertIn(str(state), answer['message'])
        # What is there is read and goes on running.
        self.assertEqual(self.client.call('GET', MAPS + '/m000')[1]['data'], {'a': 'x' * 200000})
        self.assertEqual(self.client.call('GET', MAPS + '/m%03d' % len(made))[0], 404)
        code, output = self.plane.run(WEFT, 'apply', '-f', '-', stdin=json.dumps(config_map('lost', {'a': 'x' * 250000})), check=False)
        self.assertEqual(code, 1)
        self.assertIn('disk of the state folder is full', output)
        self.assertEqual(sleepers(), 6)
        # What has filled it can be deleted, objects and pods alike.
        for name in made[1], made[2]:
            code, answer = self.client.call('DELETE', MAPS + '/' + name)
            self.assertEqual(code, 200, answer)
            made.remove(name)
        self.plane.run(WEFT, 'delete', 'pod', 'never')
        self.assertEqual(sleepers(), 3)
        os.unlink('/proc/%d/root%s/ballast' % (self.plane.process.pid, state))
        self.assertEqual(self.client.call('POST', MAPS, config_map('later', {'a': 'x' * 200000}))[0], 201)
        names = [item['metadata']['name'] for item in self.client.call('GET', MAPS)[1]['items']]
        self.assertEqual(names, ['later'] + made)
        self.assertEqual(self.plane.run(WEFT, 'get', 'pods', '-o', 'name'), 'pod/again\n')

    def test_a_program_that_prints_without_an_end(self):
        state = self.move_to_a_small_disk()
        self.plane.run(WEFT, 'apply', '-f', '-', stdin=PODS.replace('"sleep 1234.5 &', '"yes | head -c 1m &'))
        self.await_that('the log stops', lambda: 'The log stops here' in self.plane.run(
            WEFT, 'logs', 'never', '--tail', '1', check=False)[1])
        # There is room for objects yet: what has filled the disk can be taken away.
        self.assertEqual(self.client.call('POST', MAPS, config_map('more', {'a': 'x' * 1000}))[0], 201)
        self.plane.run(WEFT, 'delete', 'pod', 'again', 'never')
        logs = pathlib.Path('/proc/%d/root%s/logs' % (self.plane.process.pid, state))
        self.await_that('the logs are gone', lambda: not list(logs.iterdir()))

    def test_a_file_that_may_not_grow(self):
        self.assertEqual(self.client.call('POST', MAPS, config_map('kept', {'a': '1'}))[0], 201)
        journal = self.plane.folder / 'state' / 'objects.db-wal'
        resource.prlimit(self.plane.process.pid, resource.RLIMIT_FSIZE, (journal.stat().st_size, resource.RLIM_INFINITY))
        self.assertEqual(self.client.call('POST', MAPS, config_map('lost', {'a': 'x' * 100000}))[0], 507)
        resource.prlimit(self.plane.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        self.assertEqual(self.client.call('POST', MAPS, config_map('later', {'a': 'x' * 100000}))[0], 201)
        self.plane.stop(signal.SIGKILL)
        self.plane.start()
        names = [item['metadata']['name'] for item in self.client.call('GET', MAPS)[1]['items']]
        self.assertEqual(names, ['kept', 'later'])

    def test_watches_over_a_restart(self):
        revisions = []
        for i in range(5):
            code, made = self.client.call('POST', MAPS, config_map('m%d' % i, {}))
            self.assertEqual(code, 201)
            revisions.append(made['metadata']['resourceVersion'])
        code, events = self.client.watch(revisions[1])
        self.assertEqual([event['object']['metadata']['name'] for event in events], ['m2', 'm3', 'm4'])
        self.plane.stop(signal.SIGKILL)
        self.plane.start()
        # Nothing is passed over in silence: what is not known any more is Gone, what comes now is told.
        code, answer = self.client.watch(revisions[1])
        self.assertEqual((code, answer['reason']), (410, 'Expired'))
        listed = self.client.call('GET', MAPS)[1]
        self.assertEqual(len(listed['items']), 5)
        self.assertGreaterEqual(int(listed['metadata']['resourceVersion']), int(revisions[-1]))
        found = []
        thread = threading.Thread(target=lambda: found.extend(self.client.watch(listed['metadata']['resourceVersion'], 3)[1]))
        thread.start()
        code, made = self.client.call('POST', MAPS, config_map('m5', {}))
        self.assertGreater(int(made['metadata']['resourceVersion']), int(revisions[-1]))
        self.client.call('DELETE', MAPS + '/m0')
        thread.join(60)
        self.assertEqual([(event['type'], event['object']['metadata']['name']) for event in found],
                         [('ADDED', 'm5'), ('DELETED', 'm0')])

    def test_sigkill_leaves_no_process(self):
        self.plane.run(WEFT, 'apply', '-f', '-', stdin=PODS)
        self.await_that('all run', lambda: sleepers() == 6)
        for _ in range(3):
            self.plane.stop(signal.SIGKILL)
            self.plane.start()
            self.await_that('one pod begins anew, the other has failed', lambda: sleepers() == 3)
        rows = self.plane.run(WEFT, 'get', 'pods')
        self.assertRegex(rows, r'again +1/1 +Running +3')
        self.assertRegex(rows, r'never +0/1 +ContainerStatusUnknown +0')
        self.plane.run(WEFT, 'delete', 'pod', 'again', 'never')
        self.await_that('none is left', lambda: sleepers() == 0)

    def test_killing_all_leaves_nothing_for_ever(self):
        self.plane.run(WEFT, 'apply', '-f', '-', stdin=PODS)
        self.await_that('all run', lambda: sleepers() == 6)
        guards = subprocess.run(['pgrep', '-P', str(self.plane.process.pid), '-x', pathlib.Path(WEFT).name], capture_output=True, text=True).stdout.split()
        self.assertEqual(len(guards), 1)
        os.kill(int(guards[0]), signal.SIGKILL)
        self.plane.stop(signal.SIGKILL)
        self.plane.start()
        self.await_that('one pod begins anew, the other has failed', lambda: sleepers() == 3)

    def test_a_second_one_says_who_has_the_folder(self):
        state = str(self.plane.folder / 'state')
        for words in (('up', '--state', state), ('up', '--state', state + '/../state')):
            code, output = self.plane.run(WEFT, *words, check=False, timeout=60)
            self.assertEqual(code, 1)
            self.assertIn('in use by process %d' % self.plane.process.pid, output)
            self.assertIn('state', output)
        self.assertEqual(self.client.call('GET', MAPS)[0], 200)


if __name__ == '__main__':
    # What those left behind that were killed comes to us, not to who knows whom.
    ctypes.CDLL(None).prctl(36, 1)
    unittest.main(argv=sys.argv[:1], verbosity=2)
