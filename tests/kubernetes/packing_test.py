#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tasks of a job that share a pod on `weft up`: they train, one that is killed comes back, GPUs are dealt out.

    packing_test.py WEFT DIGITS EXAMPLE_FOLDER
"""
import json
import os
import pathlib
import signal
import sys
import tempfile
import time
import unittest

import control_plane

WEFT, DIGITS, EXAMPLE = sys.argv[1:4]


def job(name, packing, replicas, command, resources=None):
    container = {'name': 'tensorflow', 'image': 'i', 'command': command, 'resources': resources or {}}
    specs = {kind: {'replicas': count, 'restartPolicy': 'ExitCode', 'template': {'spec': {
        'terminationGracePeriodSeconds': 2, 'containers': [container]}}} for kind, count in replicas.items()}
    return {'apiVersion': 'kubeflow.org/v1', 'kind': 'TFJob',
            'metadata': {'name': name, 'annotations': {'weft.dev/packing': packing}},
            'spec': {'runPolicy': {'cleanPodPolicy': 'None'}, 'tfReplicaSpecs': specs}}


class PackingTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.plane = control_plane.ControlPlane(WEFT, self.temporary.name, DIGITS)
        self.plane.start('--node', 'a,cpu=8,memory=8Gi,gpu=4')

    def tearDown(self):
        self.plane.stop()
        self.temporary.cleanup()

    def weft(self, *words, stdin=None):
        return self.plane.run(WEFT, *words, stdin=stdin)

    def get(self, kind, name):
        return json.loads(self.weft('get', kind, name, '-o', 'json'))

    def pods(self):
        return [line.split()[0] for line in self.weft('get', 'pods').splitlines()[1:]]

    def await_(self, is_done, what, seconds=100):
        deadline = time.monotonic() + seconds
        while not is_done():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.1)

    def test_a_server_and_three_workers_train_in_one_pod(self):
        command = ['digits', '--data', str(pathlib.Path(EXAMPLE).resolve() / 'digits.csv'), '--model_dir',
                   str(self.plane.folder / 'model'), '--steps', '400']
        self.weft('apply', '-f', '-', stdin=json.dumps(job('digits', 'auto', {'PS': 1, 'Worker': 3}, command)))
        self.weft('wait', '--for=condition=Succeeded', 'tfjob/digits', '--timeout=200s')
        self.assertEqual(self.pods(), ['digits-worker-0'])
        logs = self.weft('logs', 'digits-worker-0')
        self.assertIn('accuracy', logs)
        for task in ('[worker-0] ', '[worker-1] ', '[worker-2] '):
            self.assertIn(task, logs)
        status = self.get('tfjob', 'digits')['status']
        self.assertEqual(status['replicaStatuses']['Worker']['succeeded'], 3)
        self.assertEqual(status['progress']['percent'], '100%')
        self.assertEqual(status['packing']['pods'], ['worker-0,worker-1,worker-2,ps-0'])
        described = self.weft('describe', 'tfjob', 'digits')
        self.assertIn('4 tasks share one pod: node a has room for', described)

    def test_a_process_that_is_killed_starts_again_beside_the_others(self):
        folder = self.plane.folder
        # Each writes who it is; the second run of worker 1 ends well, and so do the others then.
        script = ('import json, os, sys, time\n'
                  'task = json.loads(os.environ["TF_CONFIG"])["task"]\n'
                  'name = "%%s-%%d" %% (task["type"], task["index"])\n'
                  'path = %r + "/" + name\n'
                  'open(path, "a").write("%%d %%s\\n" %% (os.getpid(), os.environ.get("CUDA_VISIBLE_DEVICES")))\n'
                  'while not os.path.exists(%r + "/end"): time.sleep(0.05)\n') % (str(folder), str(folder))
        (folder / 'task.py').write_text(script)
        self.weft('apply', '-f', '-', stdin=json.dumps(job(
            'four', 'node', {'PS': 1, 'Worker': 3}, [sys.executable, str(folder / 'task.py')])))
        names = ['worker-0', 'worker-1', 'worker-2', 'ps-0']
        self.await_(lambda: all((folder / name).exists() and (folder / name).read_text().endswith('\n') for name in names), 'four processes')
        os.kill(int((folder / 'worker-1').read_text().split()[0]), signal.SIGKILL)
        self.await_(lambda: len((folder / 'worker-1').read_text().splitlines()) == 2, 'a second run of worker 1')
        self.assertEqual([len((folder / name).read_text().splitlines()) for name in names], [1, 2, 1, 1])
        (folder / 'end').write_text('')
        self.weft('wait', '--for=condition=Succeeded', 'tfjob/four', '--timeout=60s')
        self.assertEqual(self.get('tfjob', 'four')['status']['replicaStatuses']['Worker']['succeeded'], 3)

    def test_gpus_of_the_pod_are_dealt_out(self):
        command = ['sh', '-c', 'echo "sees $CUDA_VISIBLE_DEVICES"']
        self.weft('apply', '-f', '-', stdin=json.dumps(job('many', 'auto', {'Worker': 3}, command, {'limits': {'nvidia.com/gpu': '1'}})))
        self.weft('wait', '--for=condition=Succeeded', 'tfjob/many', '--timeout=60s')
        given = self.get('pod', 'many-worker-0')['metadata']['annotations']['weft.dev/gpu-indices'].split(',')
        self.assertEqual(len(given), 3)
        logs = self.weft('logs', 'many-worker-0')
        for index, gpu in enumerate(given):
            self.assertIn('[worker-%d] sees %s\n' % (index, gpu), logs)

    def test_what_does_not_fit_together_is_apart_and_says_why(self):
        self.weft('apply', '-f', '-', stdin=json.dumps(job('wide', 'auto', {'Worker': 3}, ['true'], {'limits': {'cpu': '4'}})))
        self.await_(lambda: len(self.pods()) == 3, 'three pods')
        self.assertIn('no node is large enough for 12 cpu', self.get('tfjob', 'wide')['status']['packing']['reason'])


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)
