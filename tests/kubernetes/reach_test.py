#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kubectl reaches into the pods of `weft up`: exec, attach, cp, port-forward, top, over WebSockets and over SPDY; and weft's own
scale, suspend, resume, top and wait.

    reach_test.py WEFT
"""
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

import control_plane

WEFT, = sys.argv[1:2]
OVER_SPDY = {'KUBECTL_REMOTE_COMMAND_WEBSOCKETS': 'false', 'KUBECTL_PORT_FORWARD_WEBSOCKETS': 'false'}

PODS = '''apiVersion: v1
kind: ConfigMap
metadata: {name: conf}
data: {greeting: "hello from a volume"}
---
apiVersion: v1
kind: Pod
metadata: {name: box}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: i
    command: [sh, -c, "echo up; while true; do :; done"]
    env: [{name: COLOUR, value: blue}]
    volumeMounts: [{name: conf, mountPath: /conf}]
  - name: second
    image: i
    command: [sleep, "1000"]
    env: [{name: COLOUR, value: red}]
  volumes: [{name: conf, configMap: {name: conf}}]
'''

JOB = '''apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: lower}
spec:
  tfReplicaSpecs:
    worker:
      replicas: 1
      template:
        spec:
          terminationGracePeriodSeconds: 1
          containers: [{name: tensorflow, image: i, command: [sleep, "1000"]}]
'''


class ReachTest(control_plane.PlaneTest):
    WEFT = WEFT
    FLAGS = ('--pass_env', 'GIVEN_*')
    VARIABLES = {'A_SECRET_OF_MINE': 'hush', 'GIVEN_TO_PODS': 'passed'}

    @classmethod
    def prepare(cls):
        cls.plane.run(WEFT, 'apply', '-f', '-', stdin=PODS)
        cls.plane.run(WEFT, 'wait', '--for=condition=Ready', 'pod/box', '--timeout=60s')

    def k(self, *words, stdin=None, **variables):
        environment = dict(self.plane.environment, **variables)
        return subprocess.run([self.kubectl, *words], input=stdin, env=environment, capture_output=True, text=True,
                              timeout=120, cwd=self.plane.folder)

    def good(self, *words, **more):
        done = self.k(*words, **more)
        self.assertEqual(done.returncode, 0, done.stderr + self.plane.log.read_text())
        return done.stdout

    def test_exec(self):
        for variables in {}, OVER_SPDY:
            with self.subTest(variables=variables):
                done = self.k('exec', 'box', '-c', 'main', '--', 'sh', '-c', 'echo $COLOUR; echo oops >&2; exit 3', **variables)
                self.assertEqual((done.returncode, done.stdout), (3, 'blue\n'), done.stderr)
                self.assertIn('oops\n', done.stderr)
                self.assertIn('exit code 3', done.stderr)
                self.assertEqual(self.good('exec', 'box', '-c', 'second', '--', 'printenv', 'COLOUR', **variables), 'red\n')
                # The words as they were typed, with all that a URL means something by.
                odd = 'a b&c=d+e%20?#/\u00e9'
                self.assertEqual(self.good('exec', 'box', '-c', 'main', '--', 'printf', '%s', odd, '', **variables), odd)
                # What is mounted is there; here it is not.
                self.assertEqual(self.good('exec', 'box', '-c', 'main', '--', 'cat', '/conf/greeting', **variables),
                                 'hello from a volume')
                text = ''.join('%06d\n' % i for i in range(200000))
                self.assertEqual(self.good('exec', '-i', 'box', '-c', 'main', '--', 'cat', stdin=text, **variables), text)
                done = self.k('exec', 'box', '-c', 'main', '--', 'no-such-program', **variables)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn("There is no program 'no-such-program'", done.stderr)
        self.assertFalse(os.path.exists('/conf/greeting'))

    def test_wrong_execs_say_why(self):
        for words, text in ((('box', '-c', 'third'), 'container third is not valid for pod box'),
                            (('nobody',), 'pods "nobody" not found')):
            done = self.k('exec', *words, '--', 'true')
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(text, done.stderr)

    def test_a_terminal(self):
        command = [self.kubectl, 'exec', '-it', 'box', '-c', 'main', '--', 'sh', '-c', 'tty; stty size; echo $TERM']
        done = subprocess.run(['script', '-qec', 'stty rows 33 cols 77; ' + ' '.join("'%s'" % word for word in command), '/dev/null'],
                              env=dict(self.plane.environment, TERM='xterm'), capture_output=True, text=True, timeout=60)
        self.assertIn('/dev/pts/', done.stdout)

    def pod(self, name, command, *more):
        text = ('{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "%s"}, "spec": {"restartPolicy": "Never", '
                '"terminationGracePeriodSeconds": 0, "containers": [{"name": "main", "image": "i", "command": '
                '["sh", "-c", "%s"]%s}]}}' % (name, command, ''.join(', "%s": true' % each for each in more)))
        self.plane.run(WEFT, 'apply', '-f', '-', stdin=text)
        self.plane.run(WEFT, 'wait', '--for=condition=Ready', 'pod/' + name, '--timeout=60s')

    def attach(self, name, *flags, **variables):
        held = subprocess.Popen([self.kubectl, 'attach', '-q', *flags, name], env=dict(self.plane.environment, **variables),
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=0)
        self.addCleanup(held.kill)
        return held

    def test_attach_hears_what_is_printed_from_then_on(self):
        for variables in {}, OVER_SPDY:
            with self.subTest(variables=variables):
                name = 'talks%d' % len(variables)
                done = self.plane.folder / (name + '-done')
                self.pod(name, 'while ! test -e %s; do echo out; echo err >&2; sleep 0.05; done' % done)
                held = self.attach(name, **variables)
                self.assertEqual(held.stdout.readline(), 'out\n')
                self.assertEqual(held.stderr.readline(), 'err\n')
                done.touch()
                held.communicate(timeout=60)
                self.assertEqual(held.returncode, 0)

    def test_attach_writes_to_the_program(self):
        """Whoever goes leaves the input open, but where the container is given one writer."""
        for variables in {}, OVER_SPDY:
            with self.subTest(variables=variables):
                name = 'reads%d' % len(variables)
                self.pod(name, 'while read line; do echo got $line; done; echo end', 'stdin')
                for word in ('one', 'two'):
                    held = self.attach(name, '-i', **variables)
                    held.stdin.write(word + '\n')
                    self.assertEqual(held.stdout.readline(), 'got %s\n' % word)
                    held.kill()
                    held.wait(60)
                self.assertEqual(self.good('get', 'pod', name, '-o', 'jsonpath={.status.phase}'), 'Running')
                once = 'once%d' % len(variables)
                self.pod(once, 'while read line; do echo got $line; done; echo end', 'stdin', 'stdinOnce')
                held = self.attach(once, '-i', **variables)
                self.assertEqual(held.communicate('three\n', timeout=60)[0], 'got three\nend\n')
                self.assertEqual(held.returncode, 0)
                self.plane.run(WEFT, 'wait', '--for=jsonpath={.status.phase}=Succeeded', 'pod/' + once, '--timeout=60s')

    def test_attach_to_a_terminal(self):
        self.pod('shell', 'exec sh -i', 'stdin', 'tty')
        script = "stty rows 33 cols 77; exec '%s' attach -it -q shell" % self.kubectl
        held = subprocess.Popen(['script', '-qec', script, '/dev/null'], env=dict(self.plane.environment, TERM='xterm'),
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=0)
        self.addCleanup(held.kill)
        # Until the size has come, which is told after the connection.
        held.stdin.write('until stty size | grep 33; do sleep 0.1; done; tty; exit\n')
        output, _ = held.communicate(timeout=60)
        self.assertIn('33 77', output)
        self.assertIn('/dev/pts/', output)
        self.plane.run(WEFT, 'wait', '--for=jsonpath={.status.phase}=Succeeded', 'pod/shell', '--timeout=60s')

    def test_run_attaches(self):
        done = self.k('run', 'echoes', '--image=i', '-i', '--rm', '-q', '--restart=Never', '--pod-running-timeout=60s', '--command',
                      '--', 'sh', '-c', 'read line; echo heard $line', stdin='hello\n')
        self.assertIn('heard hello\n', done.stdout, done.stderr)

    def test_wrong_attaches_say_why(self):
        for words, text in ((('box', '-c', 'third'), 'container third not found in pod box'),
                            (('box', '-c', 'second', '-i'), 'container second reads no input'),
                            (('nobody',), 'pods "nobody" not found')):
            done = self.k('attach', *words)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(text, done.stderr)

    def test_pods_of_another_machine(self):
        """`weft node` serves logs alone."""
        pod = {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'far'},
               'spec': {'nodeName': 'elsewhere', 'containers': [{'name': 'main', 'image': 'i', 'command': ['sleep', '9']}]}}
        self.good('create', '-f', '-', stdin=json.dumps(pod))
        self.good('patch', 'pod', 'far', '--subresource=status', '--type=merge', '-p', '{"status": {"phase": "Running"}}')
        for words in ('exec', 'far', '--', 'true'), ('attach', 'far'):
            done = self.k(*words)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn('runs on node elsewhere', done.stderr)

    def test_events_in_both_forms(self):
        self.assertIn('events.k8s.io/v1', self.good('api-versions'))
        core = json.loads(self.good('get', 'events', '-o', 'json', '--field-selector', 'involvedObject.name=box'))['items']
        newer = json.loads(self.good('get', 'events.events.k8s.io', '-o', 'json', '--field-selector', 'regarding.name=box'))['items']
        self.assertTrue(core)
        self.assertEqual({(each['metadata']['uid'], each['message'], each['count']) for each in core},
                         {(each['metadata']['uid'], each['note'], each['deprecatedCount']) for each in newer})
        self.assertEqual({each['apiVersion'] for each in newer}, {'events.k8s.io/v1'})
        self.assertIn('pod/box', self.good('get', 'events.events.k8s.io').lower())
        self.assertIn('Pod/box', self.good('events', '--for', 'pod/box'))
        self.assertIn('regarding', self.good('explain', 'events', '--api-version=events.k8s.io/v1'))

    def test_what_is_left_behind_ends_with_its_container(self):
        self.plane.run(WEFT, 'apply', '-f', '-', stdin=PODS.split('---')[1].replace('name: box', 'name: brief').replace(
            'volumeMounts: [{name: conf, mountPath: /conf}]', '').replace('volumes: [{name: conf, configMap: {name: conf}}]', ''))
        self.plane.run(WEFT, 'wait', '--for=condition=Ready', 'pod/brief', '--timeout=60s')
        held = subprocess.Popen([self.kubectl, 'exec', 'brief', '-c', 'second', '--', 'sleep', '4242'], env=self.plane.environment,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

        def sleepers():
            return subprocess.run(['pgrep', '-xf', 'sleep 4242'], capture_output=True, text=True).stdout.split()
        deadline = time.monotonic() + 60
        while not sleepers():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        self.plane.run(WEFT, 'delete', 'pod', 'brief')
        output, _ = held.communicate(timeout=60)
        self.assertEqual(held.returncode, 137, output)
        self.assertEqual(sleepers(), [])

    def test_cp(self):
        source = self.plane.folder / 'source'
        source.mkdir()
        (source / 'a.txt').write_text('a\n')
        (source / 'big.bin').write_bytes(os.urandom(5 << 20))
        there = self.plane.folder / 'there'
        there.mkdir()
        for variables in {}, OVER_SPDY:
            with self.subTest(variables=variables):
                self.good('cp', 'source', 'box:%s' % there, '-c', 'main', **variables)
                self.assertEqual((there / 'source' / 'big.bin').read_bytes(), (source / 'big.bin').read_bytes())
                back = 'back' + str(len(variables))
                self.good('cp', 'box:%s' % (there / 'source'), back, '-c', 'main', **variables)
                self.assertEqual((self.plane.folder / back / 'a.txt').read_text(), 'a\n')
                self.assertEqual((self.plane.folder / back / 'big.bin').read_bytes(), (source / 'big.bin').read_bytes())

    def test_port_forward(self):
        folder = self.plane.folder / 'served'
        folder.mkdir()
        (folder / 'big').write_bytes(os.urandom(3 << 20))
        with socket.socket() as free:
            free.bind(('127.0.0.1', 0))
            port = free.getsockname()[1]
        server = subprocess.Popen([sys.executable, '-m', 'http.server', str(port), '--bind', '127.0.0.1', '--directory', str(folder)],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + 60
            while True:
                try:
                    socket.create_connection(('127.0.0.1', port)).close()
                    break
                except OSError:
                    self.assertLess(time.monotonic(), deadline)
                    time.sleep(0.05)
            for variables in {}, OVER_SPDY:
                with self.subTest(variables=variables):
                    forward = subprocess.Popen([self.kubectl, 'port-forward', 'pod/box', ':%d' % port, ':1'],
                                               env=dict(self.plane.environment, **variables), stdout=subprocess.PIPE,
                                               stderr=subprocess.STDOUT, text=True)
                    try:
                        ports = {}
                        while len(ports) < 2:
                            line = forward.stdout.readline()
                            self.assertTrue(line)
                            if found := re.match(r'Forwarding from 127.0.0.1:(\d+) -> (\d+)', line):
                                ports[int(found[2])] = int(found[1])
                        for _ in range(4):
                            url = 'http://127.0.0.1:%d/big' % ports[port]
                            self.assertEqual(urllib.request.urlopen(url, timeout=60).read(), (folder / 'big').read_bytes())
                        # Nobody listens there: this connection ends, the others go on.
                        with self.assertRaises(OSError):
                            urllib.request.urlopen('http://127.0.0.1:%d/' % ports[1], timeout=60).read()
                    finally:
                        forward.kill()
                        output, _ = forward.communicate()
                    self.assertIn('Cannot connect to', output)
        finally:
            server.kill()
            server.wait()

    def test_top(self):
        self.good('top', 'pods')
        time.sleep(1)
        rows = {line.split()[0]: line.split()[1:] for line in self.good('top', 'pods').splitlines()[1:]}
        self.assertGreater(int(rows['box'][0].rstrip('m')), 20)  # it counts in a loop
        containers = self.good('top', 'pod', 'box', '--containers')
        self.assertRegex(containers, r'box +second +[01]m')
        self.assertIn('local', self.good('top', 'nodes'))
        self.assertRegex(self.plane.run(WEFT, 'top'), r'^NAME +CPU\(cores\) +MEMORY\(bytes\)\nbox +\d+m +\d+Mi\n')
        self.assertIn('local', self.plane.run(WEFT, 'top', 'nodes'))

    def test_a_pod_does_not_inherit_everything(self):
        text = self.good('exec', 'box', '-c', 'main', '--', 'env')
        self.assertNotIn('A_SECRET_OF_MINE', text)
        self.assertIn('GIVEN_TO_PODS=passed', text)
        self.assertIn('PATH=', text)

    def test_jobs_are_scaled_suspended_and_resumed(self):
        def run(*words):
            return self.plane.run(WEFT, *words)
        self.plane.run(WEFT, 'apply', '-f', '-', stdin=JOB)
        run('wait', '--for=condition=Running', 'tfjob/lower', '--timeout=60s')
        self.assertEqual(run('scale', 'tfjob', 'lower', '--replicas=2'), 'tfjob.kubeflow.org/lower scaled\n')
        run('wait', '--for=condition=Ready', 'pod', '-l', 'training.kubeflow.org/job-name=lower', '--timeout=60s')
        run('wait', '--for=jsonpath={.status.phase}=Running', 'pod/lower-worker-1', '--timeout=60s')
        code, output = self.plane.run(WEFT, 'scale', 'tfjob', 'lower', '--replicas=2', '--replica_type=PS', check=False)
        self.assertEqual(code, 1)
        self.assertIn("has no replicas of type PS; it has worker", output)
        # kubectl knows the path with a capital letter alone.
        self.assertIn('scaled', self.good('scale', 'tfjob/lower', '--replicas=1'))
        self.assertEqual(self.good('get', 'tfjob', 'lower', '-o', 'jsonpath={.spec.tfReplicaSpecs}').count('replicas'), 1)
        run('wait', '--for=delete', 'pod/lower-worker-1', '--timeout=60s')
        self.assertIn('lower-worker-0', run('top', 'tfjob/lower'))
        self.assertEqual(run('suspend', 'tfjob', 'lower'), 'tfjob.kubeflow.org/lower suspended\n')
        run('wait', '--for=condition=Suspended', 'tfjob/lower', '--timeout=60s')
        run('wait', '--for=delete', 'pod/lower-worker-0', '--timeout=60s')
        self.assertEqual(run('resume', 'tfjob', 'lower'), 'tfjob.kubeflow.org/lower resumed\n')
        run('wait', '--for=condition=Running', 'tfjob/lower', '--timeout=60s')
        run('delete', 'tfjob', 'lower')

    def test_the_local_control_plane_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            environment = {name: value for name, value in os.environ.items() if name not in ('KUBECONFIG', 'XDG_STATE_HOME')}
            environment['HOME'] = folder
            up = subprocess.Popen([WEFT, 'up'], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder)
            try:
                while (line := up.stdout.readline()) and 'weft is up' not in line:
                    pass
                done = subprocess.run([WEFT, 'get', 'nodes'], env=environment, capture_output=True, text=True, timeout=60)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn('local', done.stdout)
                # Beside another cluster's file it is found by its name.
                (pathlib.Path(folder) / '.kube').mkdir()
                (pathlib.Path(folder) / '.kube' / 'config').write_text('apiVersion: v1\nkind: Config\n')
                done = subprocess.run([WEFT, 'get', 'nodes', '--context', 'weft'], env=environment, capture_output=True, text=True,
                                      timeout=60)
                self.assertEqual(done.returncode, 0, done.stderr)
            finally:
                up.terminate()
                up.communicate(timeout=60)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)
