#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The published TensorBoard beside a job on `weft up`: one run a task, also when the job is over.

    tensorboard_test.py WEFT DIGITS EXAMPLE_FOLDER FOLDER_OF_TENSORBOARD
"""
import json
import os
import pathlib
import re
import sys
import tempfile
import time
import unittest
import urllib.request

import control_plane

WEFT, DIGITS, EXAMPLE, TENSORBOARD = sys.argv[1:5]
SECONDS = 120

# Each task writes below the shared folder, so that each is a run.
JOB = '''apiVersion: krallistic.github.com/v1
kind: Tensorflow
metadata: {name: board}
spec:
  image: krallistic/mnist-between:v1
  ps_count: 1
  worker_count: 2
  tensorboard: {active: true, folder: %(folder)s}
  command: [sh, -c, 'exec digits --steps 200 --data %(data)s --model_dir %(folder)s/model', sh]
'''


class TensorBoardTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.plane = control_plane.ControlPlane(WEFT, self.temporary.name, DIGITS)
        self.plane.environment['PATH'] += os.pathsep + TENSORBOARD
        self.plane.start()
        self.addCleanup(self.plane.stop)

    def await_(self, find, what):
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            found = find()
            if found:
                return found
            time.sleep(0.2)
        self.fail('no %s; the log: %s' % (what, self.plane.run(WEFT, 'logs', 'board-tensorboard', check=False)))

    def address(self):
        found = re.search(r'http://127\.0\.0\.1:\d+/', self.plane.run(WEFT, 'logs', 'board-tensorboard', check=False)[1])
        return found and found.group()

    def test_it_shows_one_run_a_task(self):
        data = pathlib.Path(EXAMPLE).resolve() / 'digits.csv'
        self.plane.run(WEFT, 'apply', '-f', '-', stdin=JOB % {'folder': self.plane.folder / 'summary', 'data': data})
        self.plane.run(WEFT, 'wait', '--for=condition=Succeeded', 'tensorflow/board', '--timeout=100s')
        # The job is over; what it wrote is looked at now.
        address = self.await_(self.address, 'address')
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

        def runs():
            with opener.open(address + 'data/runs', timeout=SECONDS) as reply:
                return json.load(reply)
        workers = ['board-worker-0', 'board-worker-1']
        self.await_(lambda: sorted(runs()) == workers, 'run of each worker')
        with opener.open(address + 'data/plugin/scalars/tags', timeout=SECONDS) as reply:
            tags = json.load(reply)
        for run in workers:
            self.assertIn('loss', tags[run])
            # What its reader draws: the nodes of the graph, with the tasks that they run at.
            with opener.open(address + 'data/plugin/graphs/graph?run=' + run, timeout=SECONDS) as reply:
                nodes = dict(re.findall(r'node \{\s*name: "([^"]+)"\s*op: "([^"]+)"', reply.read().decode()))
            self.assertEqual((nodes['first/w'], nodes['images']), ('VarHandleOp', 'Placeholder'))
        self.plane.run(WEFT, 'delete', 'tensorflow', 'board')
        self.plane.run(WEFT, 'wait', '--for=delete', 'pod/board-tensorboard', '--timeout=60s')


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)
