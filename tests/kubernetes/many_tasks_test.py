#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A job of many tasks on `weft up`: all run, a short pod among their starts is told of promptly, and all stop.

    many_tasks_test.py WEFT [TASKS]
"""
import json
import subprocess
import sys
import tempfile
import time
import unittest

import control_plane

WEFT = sys.argv[1]
TASKS = int(sys.argv[2]) if len(sys.argv) > 2 else 3000

JOB = '''apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: many}
spec:
  tfReplicaSpecs:
    Worker:
      replicas: %d
      template:
        spec:
          terminationGracePeriodSeconds: 0
          containers: [{name: tensorflow, image: i, command: [sleep, "31234"]}]
'''
SHORT = '''apiVersion: v1
kind: Pod
metadata: {name: short}
spec:
  restartPolicy: Never
  containers: [{name: main, image: i, command: ["true"]}]
'''


def sleepers():
    return len(subprocess.run(['pgrep', '-xf', 'sleep 31234'], capture_output=True, text=True).stdout.split())


class ManyTasksTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.plane = control_plane.ControlPlane(WEFT, self.temporary.name, WEFT)
        self.plane.start('--node', 'local,cpu=100000,memory=100Ti')

    def tearDown(self):
        self.plane.stop()
        self.temporary.cleanup()

    def await_count(self, count, seconds):
        deadline = time.monotonic() + seconds
        while sleepers() != count:
            self.assertLess(time.monotonic(), deadline, sleepers())
            time.sleep(0.5)

    def test_many_tasks_run_and_stop(self):
        begun = time.monotonic()
        self.plane.run(WEFT, 'apply', '-f', '-', stdin=JOB % TASKS)
        while sleepers() < TASKS // 3:
            self.assertLess(time.monotonic(), begun + 600, sleepers())
            time.sleep(0.1)
        # While two thirds have not begun.
        self.plane.run(WEFT, 'apply', '-f', '-', stdin=SHORT)
        applied = time.monotonic()
        self.plane.run(WEFT, 'wait', '--for=jsonpath={.status.phase}=Succeeded', 'pod/short', '--timeout=120s')
        short, meanwhile = time.monotonic() - applied, sleepers()
        self.await_count(TASKS, 900)
        running = time.monotonic() - begun
        self.plane.run(WEFT, 'wait', '--for=condition=Running', 'tfjob/many', '--timeout=60s')
        pods = json.loads(self.plane.run(WEFT, 'get', 'pods', '-o', 'json'))['items']
        self.assertEqual(len(pods), TASKS + 1)
        ended = time.monotonic()
        self.plane.run(WEFT, 'delete', 'tfjob', 'many', timeout=900)
        self.await_count(0, 600)
        print('%d tasks ran after %.1f s; the short pod was told of after %.1f s, with %d running; all had ended after %.1f s'
              % (TASKS, running, short, meanwhile, time.monotonic() - ended), flush=True)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)
