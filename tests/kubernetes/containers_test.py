#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Init containers, sidecars and gRPC probes of pods on `weft up`, as kubectl shows them.

    containers_test.py WEFT PYTHON_WITH_GRPC
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

import control_plane

WEFT, PYTHON = sys.argv[1:3]

# Answers NOT_SERVING until the file `ready` is there, and while `broken` is.
HEALTH = '''
import concurrent.futures, grpc, os, sys
class Health(grpc.GenericRpcHandler):
    def service(self, call):
        if call.method != '/grpc.health.v1.Health/Check':
            return None
        return grpc.unary_unary_rpc_method_handler(self.check)
    def check(self, request, context):
        good = os.path.exists('ready') and not os.path.exists('broken')
        return bytes([8, 1 if good and request == bytes([10, 1]) + b's' else 2])
server = grpc.server(concurrent.futures.ThreadPoolExecutor(2), handlers=[Health()])
server.add_insecure_port('127.0.0.1:%s' % sys.argv[1])
server.start()
server.wait_for_termination()
'''


def pod(name, policy='Never', inits=(), mains=(), grace=5):
    def container(named, script, **more):
        return dict({'name': named, 'image': 'i', 'command': ['sh', '-c', script]}, **more)
    return json.dumps({
        'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': name},
        'spec': {'restartPolicy': policy, 'terminationGracePeriodSeconds': grace,
                 'initContainers': [container(*words, **more) for *words, more in inits],
                 'containers': [container(*words, **more) for *words, more in mains]}})


SIDECAR = {'restartPolicy': 'Always'}
SERVES = "trap 'echo %s ends >> trace; exit 0' TERM; echo %s begins >> trace; while :; do sleep 0.02; done"


class ContainersTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.plane = control_plane.ControlPlane(WEFT, self.temporary.name, WEFT)
        self.plane.start()

    def tearDown(self):
        self.plane.stop()
        self.temporary.cleanup()

    def kubectl(self, *words, stdin=None):
        return self.plane.run(KUBECTL, *words, stdin=stdin)

    def apply(self, text):
        self.kubectl('apply', '-f', '-', stdin=text)

    def await_phase(self, name, phase):
        self.kubectl('wait', '--for=jsonpath={.status.phase}=' + phase, 'pod/' + name, '--timeout=60s')

    def await_that(self, what, is_so):
        deadline = time.monotonic() + 60
        while not is_so():
            self.assertLess(time.monotonic(), deadline, what + '\n' + self.kubectl('get', 'pods', '-o', 'yaml'))
            time.sleep(0.05)

    def row(self, name):
        return self.kubectl('get', 'pod', name, '--no-headers').split()

    def trace(self):
        path = self.plane.folder / 'trace'
        return path.read_text().split('\n')[:-1] if path.exists() else []

    def test_inits_come_in_order(self):
        self.apply(pod('p', inits=[('a', 'echo a >> trace', {}), ('b', 'until test -e go; do sleep 0.02; done; echo b >> trace', {})],
                       mains=[('main', 'echo main >> trace', {})]))
        self.await_that('the second runs', lambda: self.row('p')[2] == 'Init:1/2')
        state = self.kubectl('get', 'pod', 'p', '-o', 'jsonpath={.status.phase} {.status.containerStatuses[0].state.waiting.reason}')
        self.assertEqual(state, 'Pending PodInitializing')
        (self.plane.folder / 'go').touch()
        self.await_phase('p', 'Succeeded')
        self.assertEqual(self.trace(), ['a', 'b', 'main'])

    def test_logs_of_each_container(self):
        self.apply(pod('p', inits=[('first', 'echo from first', {})], mains=[
            ('main', 'echo from main', {}), ('other', 'echo from other', {})]))
        self.await_phase('p', 'Succeeded')
        for name in ('first', 'main', 'other'):
            self.assertEqual(self.kubectl('logs', 'p', '-c', name), 'from %s\n' % name)
        # The first one where none is named, as kubectl.
        self.assertEqual(self.plane.run(WEFT, 'logs', 'p'), 'from main\n')
        self.assertEqual(self.plane.run(WEFT, 'logs', 'p', '-c', 'other'), 'from other\n')
        self.apply(pod('runs', grace=0, mains=[('main', 'sleep 1000', {})]))
        self.await_phase('runs', 'Running')
        code, output = self.plane.run(KUBECTL, 'attach', '-i', 'runs', check=False)
        self.assertEqual(code, 1)
        self.assertIn('container main reads no input', output)

    def test_an_init_that_fails(self):
        self.apply(pod('never', inits=[('a', 'exit 3', {})], mains=[('main', 'echo main >> trace', {})]))
        self.await_phase('never', 'Failed')
        self.assertEqual(self.row('never')[1:3], ['0/1', 'Init:Error'])
        self.apply(pod('again', 'Always', inits=[('a', 'test -e tried || { touch tried; exit 3; }', {})],
                       mains=[('main', 'sleep 1000', {})], grace=0))
        self.await_phase('again', 'Running')
        restarts = self.kubectl('get', 'pod', 'again', '-o', 'jsonpath={.status.initContainerStatuses[0].restartCount}')
        self.assertEqual(restarts, '1')
        self.assertEqual(self.trace(), [])

    def test_sidecars_run_beside_and_end_last(self):
        self.apply(pod('p', inits=[('one', SERVES % ('one', 'one'), SIDECAR),
                                   ('check', 'until grep -q one trace; do sleep 0.02; done; echo check >> trace', {}),
                                   ('two', SERVES % ('two', 'two'), SIDECAR)],
                       mains=[('main', 'until grep -q two trace; do sleep 0.02; done; echo main >> trace; until test -e go; do sleep 0.02; done; exit 0', {})]))
        self.await_that('all three run', lambda: self.row('p')[1:3] == ['3/3', 'Running'])
        (self.plane.folder / 'go').touch()
        self.await_phase('p', 'Succeeded')
        self.assertEqual(self.trace(), ['one begins', 'check', 'two begins', 'main', 'two ends', 'one ends'])
        self.assertEqual(self.row('p')[2], 'Completed')

    def test_a_sidecar_starts_again_whatever_the_policy(self):
        self.apply(pod('p', inits=[('side', 'test -e died || { touch died; exit 1; }; sleep 1000', SIDECAR)],
                       mains=[('main', 'sleep 1000', {})], grace=0))
        self.await_that('it starts again', lambda: self.row('p')[1:4] == ['2/2', 'Running', '1'])
        self.kubectl('delete', 'pod', 'p')

    def test_a_sidecar_that_does_not_listen_is_killed(self):
        self.apply(pod('p', inits=[('side', "trap '' TERM; while :; do sleep 0.02; done", SIDECAR)],
                       mains=[('main', 'exit 4', {})], grace=1))
        self.await_phase('p', 'Failed')
        code = self.kubectl('get', 'pod', 'p', '-o', 'jsonpath={.status.containerStatuses[0].state.terminated.exitCode}')
        self.assertEqual(code, '4')

    def test_what_is_done_stays_done_over_a_restart(self):
        self.apply(pod('p', 'OnFailure', inits=[('a', 'echo a >> trace', {}), ('side', 'sleep 1000', SIDECAR)],
                       mains=[('short', 'echo short >> trace', {}), ('long', 'echo long >> trace; sleep 1000', {})], grace=0))
        self.await_that('it runs', lambda: sorted(self.trace()) == ['a', 'long', 'short'] and self.row('p')[1] == '2/3')
        self.plane.stop(signal.SIGKILL)
        self.plane.start()
        self.await_that('the rest goes on', lambda: sorted(self.trace()) == ['a', 'long', 'long', 'short'] and self.row('p')[1] == '2/3')

    def terminated(self, name, container=0):
        statuses = json.loads(self.kubectl('get', 'pod', name, '-o', 'json'))['status']['containerStatuses']
        return statuses[container]['state']['terminated']

    def test_what_follows_a_start_and_precedes_an_end(self):
        loop = "trap 'echo term >> trace; exit 0' TERM; echo main >> trace; while :; do sleep 0.02; done"
        self.apply(pod('p', grace=20, mains=[('main', loop, {'lifecycle': {
            'postStart': {'exec': {'command': ['sh', '-c', 'until grep -q main trace; do sleep 0.02; done; echo post >> trace; head -c 200000 /dev/zero']}},
            'preStop': {'exec': {'command': ['sh', '-c', 'echo pre >> trace; sleep 0.2; echo stop >> trace']}}}})]))
        self.await_that('it is ready', lambda: self.row('p')[1] == '1/1')
        self.assertEqual(self.trace(), ['main', 'post'])
        self.kubectl('delete', 'pod', 'p')
        self.assertEqual(self.trace(), ['main', 'post', 'pre', 'stop', 'term'])
        self.apply(pod('bad', grace=1, mains=[('main', 'sleep 1000', {'lifecycle': {'postStart': {'exec': {'command': ['false']}}}})]))
        self.await_phase('bad', 'Failed')
        self.assertRegex(self.kubectl('describe', 'pod', 'bad'), 'FailedPostStartHook .*Container main: exit code 1')
        # What does not end in time goes with the container.
        self.apply(pod('slow', grace=1, mains=[('main', 'sleep 1000', {'lifecycle': {'preStop': {'exec': {'command': ['sleep', '1000']}}}})]))
        self.await_phase('slow', 'Running')
        begun = time.monotonic()
        self.kubectl('delete', 'pod', 'slow')
        self.assertLess(time.monotonic() - begun, 60)

    def test_messages_of_an_end(self):
        message = str(self.plane.folder / 'none' / 'message')
        self.apply(pod('p', mains=[('file', 'echo why > %s; exit 3' % message, {'terminationMessagePath': message}),
                                   ('log', 'echo first; echo last >&2; exit 4', {'terminationMessagePolicy': 'FallbackToLogsOnError'}),
                                   ('good', 'echo first', {'terminationMessagePolicy': 'FallbackToLogsOnError'})]))
        self.await_phase('p', 'Failed')
        doctor = json.loads(subprocess.run([WEFT, 'doctor', '--json'], capture_output=True, text=True).stdout)
        if any(finding['check'] == 'volumes' and finding['verdict'] == 'good' for finding in doctor):
            self.assertEqual(self.terminated('p')['message'], 'why\n')
            self.assertFalse((self.plane.folder / 'none').exists())
        self.assertEqual(sorted(self.terminated('p', 1)['message'].split()), ['first', 'last'])
        self.assertNotIn('message', self.terminated('p', 2))

    def test_a_pod_ends_at_its_deadline(self):
        text = json.loads(pod('p', 'Always', grace=1, mains=[('main', 'sleep 1000', {})]))
        text['spec']['activeDeadlineSeconds'] = 1
        self.apply(json.dumps(text))
        self.await_phase('p', 'Failed')
        self.assertEqual(self.kubectl('get', 'pod', 'p', '-o', 'jsonpath={.status.reason}'), 'DeadlineExceeded')
        self.assertEqual(self.terminated('p')['exitCode'], 143)

    def test_whose_rights_a_container_has(self):
        show = 'echo $(id -u) $(id -g) $(id -G)'
        text = json.loads(pod('p', mains=[
            ('one', show, {'workingDir': '/', 'securityContext': {'runAsUser': 12345}}), ('two', show, {'workingDir': '/'}),
            ('not-root', show, {'workingDir': '/', 'securityContext': {'runAsUser': 0, 'runAsNonRoot': True}})]))
        text['spec']['securityContext'] = {'runAsUser': 23456, 'runAsGroup': 23457, 'supplementalGroups': [23458], 'fsGroup': 23459}
        self.apply(json.dumps(text))
        if os.geteuid() != 0:
            self.await_that('it says that it stays', lambda: 'RunsAsOurselves' in self.kubectl('describe', 'pod', 'p'))
            return
        self.await_that('it waits', lambda: 'runAsNonRoot holds true and it would run as root' in self.kubectl('describe', 'pod', 'p'))
        self.await_that('both have run', lambda: self.row('p')[2] == 'CreateContainerConfigError')
        self.assertEqual(self.kubectl('logs', 'p', '-c', 'one'), '12345 23457 23457 23458 23459\n')
        self.assertEqual(self.kubectl('logs', 'p', '-c', 'two'), '23456 23457 23457 23458 23459\n')
        self.kubectl('delete', 'pod', 'p')

    def test_grpc_probes(self):
        (self.plane.folder / 'health.py').write_text(textwrap.dedent(HEALTH))
        port = subprocess.run([PYTHON, '-c', 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'],
                              check=True, capture_output=True, text=True).stdout.strip()
        action = {'grpc': {'port': int(port), 'service': 's'}, 'periodSeconds': 1, 'timeoutSeconds': 5}
        self.apply(pod('p', 'Always', grace=0, mains=[('main', 'rm -f broken; exec %s health.py %s' % (PYTHON, port), {
            'startupProbe': dict(action, failureThreshold=120), 'livenessProbe': dict(action, failureThreshold=2)})]))
        self.await_phase('p', 'Running')
        self.assertEqual(self.row('p')[1], '0/1')
        (self.plane.folder / 'ready').touch()
        self.await_that('it is ready', lambda: self.row('p')[1] == '1/1')
        (self.plane.folder / 'broken').touch()
        self.await_that('it starts again', lambda: self.row('p')[1:4] == ['1/1', 'Running', '1'])


if __name__ == '__main__':
    KUBECTL = control_plane.build('kubectl')
    unittest.main(argv=sys.argv[:1], verbosity=2)
