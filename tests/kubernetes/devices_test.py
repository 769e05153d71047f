#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Devices and processors of pods on `weft up`, with a stand-in for the driver: a GPU that vanishes, processors of one's own,
and nodes that may tell of themselves alone.

    devices_test.py WEFT STAND_IN_NVML
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

import control_plane
import stand_in_machine

WEFT, LIBRARY = sys.argv[1:3]
# Of four signs Kubernetes leaves two, and the shell its own number.
TELL = 'echo $$$$ > %s; exec sleep 1000'


def pod(name, script='exec sleep 1000', limits=None, annotations=None, owner=None):
    metadata = {'name': name, 'annotations': annotations or {}}
    if owner:
        metadata['ownerReferences'] = [{'apiVersion': 'v1', 'kind': 'ConfigMap', 'name': owner['metadata']['name'],
                                        'uid': owner['metadata']['uid'], 'controller': True}]
    return {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': metadata, 'spec': {
        'restartPolicy': 'Never', 'terminationGracePeriodSeconds': 0,
        'containers': [{'name': 'main', 'image': 'i', 'command': ['sh', '-c', script], 'resources': {'limits': limits or {}}}]}}


class DevicesTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        self.plane = control_plane.ControlPlane(WEFT, self.folder, WEFT)
        self.machine = stand_in_machine.StandInMachine(self.folder / 'machine', LIBRARY)
        library = self.folder / 'lib'
        library.mkdir()
        (library / 'libnvidia-ml.so.1').symlink_to(LIBRARY)
        self.plane.environment.update(self.machine.environment(), LD_LIBRARY_PATH=str(library))

    def tearDown(self):
        self.plane.stop()
        self.temporary.cleanup()

    def weft(self, *words, stdin=None):
        return self.plane.run(WEFT, *words, stdin=stdin)

    def apply(self, *pods):
        for each in pods:
            self.weft('apply', '-f', '-', stdin=json.dumps(each))

    def get(self, kind, name):
        return json.loads(self.weft('get', kind, name, '-o', 'json'))

    def await_(self, is_so, what):
        deadline = time.monotonic() + 60
        while not is_so():
            self.assertLess(time.monotonic(), deadline, 'no %s: %s\n%s' % (what, self.weft('get', 'pods', '-o', 'json')[-3000:],
                                                                        self.plane.log.read_text()[-2000:]))
            time.sleep(0.1)

    def await_phase(self, name, phase):
        self.await_(lambda: self.get('pod', name)['status'].get('phase') == phase, '%s that is %s' % (name, phase))

    def conditions(self, name):
        return {each['type']: each for each in self.get('pod', name)['status'].get('conditions', [])}

    def affinity(self, name):
        """Of the process of the pod's container, which wrote its number."""
        path = self.folder / name
        self.await_(lambda: path.exists() and path.read_text().strip(), 'process of ' + name)
        return os.sched_getaffinity(int(path.read_text()))

    def test_a_gpu_that_vanishes(self):
        self.plane.start()
        self.await_(lambda: self.get('node', 'local')['status']['allocatable'].get('nvidia.com/gpu') == '3', 'GPUs')
        self.apply(pod('holds', 'echo $CUDA_VISIBLE_DEVICES; exec sleep 1000', {'nvidia.com/gpu': '2'}))
        self.await_phase('holds', 'Running')
        index = int(self.get('pod', 'holds')['metadata']['annotations']['weft.dev/gpu-indices'].split(',')[1])
        self.machine.lose(index)
        self.await_(lambda: self.get('node', 'local')['status']['allocatable']['nvidia.com/gpu'] == '2', 'smaller node')
        self.await_(lambda: 'weft.dev/DeviceLost' in self.conditions('holds'), 'condition')
        self.assertIn('GPU %d (%s) of this pod is lost' % (index, self.machine.uuid(index)),
                      self.conditions('holds')['weft.dev/DeviceLost']['message'])
        self.assertIn('DeviceLost', self.weft('describe', 'pod', 'holds'))
        self.assertEqual(self.get('pod', 'holds')['status']['phase'], 'Running')
        # Nobody gets it, though its holder ends.
        self.weft('delete', 'pod', 'holds')
        self.apply(pod('next', limits={'nvidia.com/gpu': '2'}), pod('more', limits={'nvidia.com/gpu': '1'}))
        self.await_phase('next', 'Running')
        given = self.get('pod', 'next')['metadata']['annotations']['weft.dev/gpu-indices'].split(',')
        self.assertEqual(sorted(given), sorted({'0', '1', '2'} - {str(index)}))
        self.await_(lambda: self.conditions('more').get('PodScheduled', {}).get('reason') == 'Unschedulable', 'reason')

    def spawn(self, name, kubeconfig, *words):
        log = self.folder / (name + '.log')
        with log.open('w') as output:
            process = subprocess.Popen([WEFT, *words], env=dict(self.plane.environment, KUBECONFIG=str(kubeconfig)), cwd=self.folder,
                                       stdout=output, stderr=subprocess.STDOUT)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        return log

    def gpus(self, node):
        return json.loads(self.get('node', node)['metadata'].get('annotations', {}).get('weft.dev/gpus', '[]'))

    def test_a_node_tells_of_itself_alone(self):
        mine = self.folder / 'mine.kubeconfig'
        self.plane.start('--node_kubeconfig', 'mine=%s' % mine)
        self.assertEqual(mine.stat().st_mode & 0o777, 0o600)
        self.apply(*({'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': name}} for name in ('mine', 'victim')))
        agent = ['agent', '--plugin_folder', '', '--holders_socket', '', '--period', '100ms', *self.machine.flags(), '--node']
        self.spawn('agent', mine, *agent, 'mine')
        self.await_(lambda: len(self.gpus('mine')) == 3, 'inventory')
        self.await_(lambda: self.get('node', 'mine')['status']['allocatable']['nvidia.com/gpu'] == '3', 'amount')
        log = self.spawn('forger', mine, *agent, 'victim')
        self.await_(lambda: 'is not allowed to modify node "victim"' in log.read_text(), 'refusal')
        self.assertEqual(self.gpus('victim'), [])

    def test_a_node_runs_pods_with_its_own_rights(self):
        joined = self.folder / 'joined.kubeconfig'
        self.plane.start('--node_kubeconfig', 'joined=%s' % joined)
        self.apply({'apiVersion': 'v1', 'kind': 'Secret', 'metadata': {'name': 'word'}, 'stringData': {'it': 'swordfish'}})
        log = self.spawn('node', joined, 'node', '--name', 'joined', '--state', str(self.folder / 'node'))
        wanted = pod('p', 'test "$WORD" = swordfish')
        wanted['spec']['nodeName'] = 'joined'
        wanted['spec']['containers'][0]['env'] = [{'name': 'WORD', 'valueFrom': {'secretKeyRef': {'name': 'word', 'key': 'it'}}}]
        self.apply(wanted)
        self.await_phase('p', 'Succeeded')
        self.await_(lambda: any(each['type'] == 'Ready' for each in self.get('node', 'joined')['status'].get('conditions', [])), 'node')
        self.assertNotIn('orbidden', log.read_text())

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, 'one processor is not to be shared out')
    def test_processors_of_a_job(self):
        self.plane.start()
        own = {'weft.dev/job-processors': '1'}
        self.apply({'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'a'}})
        job = self.get('configmap', 'a')
        self.apply(pod('a-ps', TELL % 'a-ps', annotations=own, owner=job),
                   pod('a-worker', TELL % 'a-worker', annotations=own, owner=job))
        first = self.affinity('a-ps')
        self.assertEqual(len(first), 1)
        self.assertEqual(self.affinity('a-worker'), first)
        self.apply(pod('free', TELL % 'free'))
        self.assertEqual(self.affinity('free'), os.sched_getaffinity(0) - first)
        self.await_(lambda: 'of its job\'s own on NUMA node' in self.weft('describe', 'pod', 'a-ps'), 'event')
        # An executor that starts again gives them back: its pods have ended with it.
        self.plane.stop()
        for name in ('a-ps', 'a-worker', 'free'):
            (self.folder / name).unlink()
        self.plane.start()
        self.apply(pod('late', TELL % 'late'))
        self.assertEqual(self.affinity('late'), os.sched_getaffinity(0))

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, 'one processor is not to be shared out')
    def test_whole_processors_in_the_guaranteed_class(self):
        self.plane.start()
        limits = {'cpu': '1', 'memory': '64Mi'}
        self.apply(pod('own', TELL % 'own', limits))
        mine = self.affinity('own')
        self.assertEqual(len(mine), 1)
        self.apply(pod('free', TELL % 'free'))
        self.assertEqual(self.affinity('free'), os.sched_getaffinity(0) - mine)
        self.weft('delete', 'pod', 'own')
        self.await_(lambda: self.affinity('free') == os.sched_getaffinity(0), 'processors that are free again')


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)
