#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft up` holds containers to the processors and the memory of their resources, as kubectl shows.

    limits_test.py WEFT
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

import control_plane

WEFT = sys.argv[1]

EATER = '''apiVersion: v1
kind: Pod
metadata: {name: %(name)s}
spec:
  restartPolicy: %(policy)s
  containers:
  - name: main
    image: i
    command: [python3, -c, "%(program)s"]
    resources: {limits: {memory: 96Mi}}
'''
EATS = 'import time; held = bytearray(300 << 20); time.sleep(1000)'
# Neither of the two is over the limit.
EATS_BY_CHILDREN = 'import os, time; os.fork(); held = bytearray(60 << 20); time.sleep(1000)'
# Memory that is shared counts once, files do not.
SHARES = ('import mmap, os, time; held = mmap.mmap(-1, 60 << 20); '
          '[held.__setitem__(at, 1) for at in range(0, len(held), 4096)]; '
          '[os.fork() for _ in range(2)]; sum(held[::4096]); print(1, flush=True); time.sleep(1000)')

PINNED = '''apiVersion: v1
kind: Pod
metadata: {name: %(name)s}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: i
    command: [sh, -c, "sleep 1000 & exec sleep 1000"]
    resources: %(resources)s
'''


class LimitsTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.plane = control_plane.ControlPlane(WEFT, self.temporary.name, WEFT)
        self.plane.start()

    def tearDown(self):
        self.plane.stop()
        self.temporary.cleanup()

    def kubectl(self, *words, stdin=None):
        return self.plane.run(KUBECTL, *words, stdin=stdin)

    def await_that(self, what, is_so):
        deadline = time.monotonic() + 60
        while not is_so():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.05)

    def field(self, pod, path):
        return self.kubectl('get', 'pod', pod, '-o', 'jsonpath={.status.containerStatuses[0].%s}' % path)

    def test_too_much_memory_is_the_end(self):
        self.kubectl('apply', '-f', '-', stdin=EATER % {'name': 'eater', 'policy': 'Never', 'program': EATS})
        self.kubectl('wait', '--for=jsonpath={.status.phase}=Failed', 'pod/eater', '--timeout=60s')
        described = self.kubectl('describe', 'pod', 'eater')
        self.assertRegex(described, r'Reason: +OOMKilled')
        self.assertRegex(described, r'Exit Code: +137')
        self.assertRegex(described, r'Container main: at most 96 MiB of memory')

    def test_who_was_killed_starts_again(self):
        self.kubectl('apply', '-f', '-', stdin=EATER % {'name': 'eater', 'policy': 'OnFailure', 'program': EATS})
        self.await_that('it starts again', lambda: self.field('eater', 'restartCount') == '1')
        self.assertEqual(self.field('eater', 'lastState.terminated.reason'), 'OOMKilled')

    def test_all_processes_of_a_container_count(self):
        self.kubectl('apply', '-f', '-', stdin=EATER % {'name': 'two', 'policy': 'Never', 'program': EATS_BY_CHILDREN})
        self.kubectl('wait', '--for=jsonpath={.status.phase}=Failed', 'pod/two', '--timeout=60s')
        self.assertEqual(self.field('two', 'state.terminated.reason'), 'OOMKilled')

    def test_shared_memory_counts_once(self):
        self.kubectl('apply', '-f', '-', stdin=EATER % {'name': 'sharers', 'policy': 'Never', 'program': SHARES})
        self.await_that('all run', lambda: self.kubectl('logs', 'pod/sharers').count('1') == 4
                        if self.field('sharers', 'state.running') else False)
        time.sleep(1)
        self.assertNotEqual(self.field('sharers', 'state.running'), '')

    def processors_of(self, pod):
        """Of every thread of the pod's two processes; empty while it has not begun."""
        found = []
        listed = subprocess.run(['ps', '-eo', 'pid,args'], capture_output=True, text=True, check=True).stdout
        for line in listed.splitlines():
            pid, arguments = line.strip().split(' ', 1)
            if arguments.strip() == 'sleep 1000' and pid.isdigit():
                environment = pathlib.Path('/proc/%s/environ' % pid).read_text()
                if 'HOSTNAME=%s\0' % pod in environment:
                    found.append(os.sched_getaffinity(int(pid)))
        return found

    def begin(self, name, resources):
        self.kubectl('apply', '-f', '-', stdin=PINNED % {'name': name, 'resources': resources})
        self.await_that(name + ' runs', lambda: len(self.processors_of(name)) == 2)

    def test_own_processors(self):
        ours = os.sched_getaffinity(0)
        self.begin('free', '{}')
        self.assertEqual(self.processors_of('free'), [ours, ours])
        self.begin('own', '{limits: {cpu: 1, memory: 96Mi}, requests: {cpu: 1000m}}')
        own = self.processors_of('own')[0]
        if len(ours) == 1:
            self.assertEqual(self.processors_of('own') + self.processors_of('free'), [ours] * 4)
            return
        self.assertEqual(len(own), 1)
        self.await_that('others make room', lambda: self.processors_of('free') == [ours - own] * 2)
        self.assertIn('of its own', self.kubectl('describe', 'pod', 'own'))
        self.begin('half', '{limits: {cpu: 500m}}')
        self.assertEqual(len(self.processors_of('half')[0]), 1)
        self.assertFalse(own & self.processors_of('half')[0])
        self.kubectl('delete', 'pod', 'own')
        self.await_that('it is given back', lambda: self.processors_of('free') == [ours] * 2)


if __name__ == '__main__':
    KUBECTL = control_plane.build('kubectl')
    unittest.main(argv=sys.argv[:1], verbosity=2)
