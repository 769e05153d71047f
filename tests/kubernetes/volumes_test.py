#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Volumes of pods on `weft up` and of jobs under `weft run`, at the places where programs expect them.

    volumes_test.py WEFT
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import control_plane

WEFT = sys.argv[1]

OBJECTS = '''apiVersion: v1
kind: ConfigMap
metadata: {name: conf}
data: {rate: "0.1", deep: hidden}
binaryData: {raw: AAEC}
---
apiVersion: v1
kind: Secret
metadata: {name: hub}
stringData: {token: s3cret}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
'''

# A job as people have it, and what it prints.
JOB = '''apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: reader}
spec:
  tfReplicaSpecs:
    Worker:
      replicas: 2
      restartPolicy: Never
      template:
        spec:
          containers:
          - name: tensorflow
            image: i
            command: [sh, -c, "cat /weft-test/conf/rate; echo; echo $(POD) > /weft-test/data/$(POD)"]
            env: [{name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
            volumeMounts:
            - {name: data, mountPath: /weft-test/data}
            - {name: conf, mountPath: /weft-test/conf}
          volumes:
          - {name: data, persistentVolumeClaim: {claimName: data}}
          - {name: conf, configMap: {name: conf}}
'''


def pod(name, containers, volumes, policy='Never', **spec):
    return json.dumps({
        'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': name, 'labels': {'app': 'a', 'tier': 'b'}},
        'spec': dict({'restartPolicy': policy, 'terminationGracePeriodSeconds': 1, 'volumes': volumes, 'containers': [
            dict({'name': 'c%d' % n, 'image': 'i', 'command': ['sh', '-c', script],
                  'volumeMounts': mounts}, **more)
            for n, (script, mounts, more) in enumerate(containers)]}, **spec)})


def at(name, path, **more):
    return dict({'name': name, 'mountPath': path}, **more)


def has_mounts():
    found = json.loads(subprocess.run([WEFT, 'doctor', '--json'], capture_output=True, text=True).stdout)
    verdict, = [finding for finding in found if finding['check'] == 'volumes']
    return verdict['verdict'] == 'good'


class VolumesTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.plane = control_plane.ControlPlane(WEFT, self.temporary.name, WEFT)
        self.plane.start()
        self.kubectl('apply', '-f', '-', stdin=OBJECTS)

    def tearDown(self):
        self.plane.stop()
        self.temporary.cleanup()

    def kubectl(self, *words, stdin=None):
        return self.plane.run(KUBECTL, *words, stdin=stdin)

    def await_that(self, what, is_so):
        deadline = time.monotonic() + 60
        while not is_so():
            self.assertLess(time.monotonic(), deadline, what + '\n' + self.kubectl('get', 'pods', '-o', 'yaml'))
            time.sleep(0.05)

    def run_pod(self, *words, phase='Succeeded', **more):
        """The lines that its first container prints."""
        self.kubectl('apply', '-f', '-', stdin=pod('p', *words, **more))
        self.kubectl('wait', '--for=jsonpath={.status.phase}=' + phase, 'pod/p', '--timeout=60s')
        lines = self.kubectl('logs', 'p', '-c', 'c0').split('\n')[:-1]
        self.kubectl('delete', 'pod', 'p')
        return lines

    def left(self):
        folder = self.plane.folder / 'state' / 'volumes'
        return list(folder.iterdir()) if folder.exists() else []

    def test_where_nothing_can_be_mounted_nothing_runs(self):
        # As in a container that may do nothing.
        bare = ['unshare', '-Ur', 'sh', '-c', 'echo 0 > /proc/sys/user/max_mnt_namespaces && exec "$0" "$@"'] if has_mounts() else []
        if subprocess.run([*bare, 'true'], capture_output=True).returncode != 0:
            return  # this machine mounts, but has no user namespaces in which it could be kept from that
        path = self.plane.folder / 'job.yaml'
        text = JOB.replace('persistentVolumeClaim: {claimName: data}', 'hostPath: {path: %s}' % self.plane.folder)
        text = text.replace('configMap: {name: conf}', 'emptyDir: {}').replace('replicas: 2', 'replicas: 1')
        path.write_text(re.sub('command: .*', 'command: [touch, ran]', text))
        code, output = self.plane.run(*bare, WEFT, 'run', str(path), check=False)
        self.assertNotEqual(code, 0)
        self.assertIn('no mount namespace', output)
        self.assertIn('`weft doctor` says how to get one', output)
        self.assertFalse((self.plane.folder / 'ran').exists())
        # What is at its place already needs no mount.
        path.write_text(re.sub('command: .*', 'command: [touch, ran]', text).replace('/weft-test/data', str(self.plane.folder))
                        .replace('            - {name: conf, mountPath: /weft-test/conf}\n', ''))
        self.plane.run(*bare, WEFT, 'run', str(path))
        self.assertTrue((self.plane.folder / 'ran').exists())

    def test_a_job_reads_and_writes_its_volumes(self):
        if not has_mounts():
            return
        self.kubectl('apply', '-f', '-', stdin=JOB)
        self.kubectl('wait', '--for=condition=Succeeded', 'tfjob/reader', '--timeout=60s')
        self.assertEqual(self.kubectl('logs', 'reader-worker-0'), '0.1\n')
        folder = self.plane.folder / 'state' / 'claims' / 'default' / 'data'
        self.await_that('both have written', lambda: sorted(f.name for f in folder.iterdir()) == ['reader-worker-0', 'reader-worker-1'])
        self.assertRegex(self.kubectl('get', 'pvc', 'data', '--no-headers'), r'^data +Bound +1Gi +RWO ')
        self.assertIn(str(folder), self.kubectl('describe', 'pvc', 'data'))
        self.kubectl('delete', 'tfjob', 'reader')
        self.await_that('its own volumes go', lambda: self.left() == [])
        self.assertTrue((folder / 'reader-worker-0').exists())
        self.assertFalse(os.path.exists('/weft-test'))
        self.kubectl('delete', 'pvc', 'data')
        self.await_that('the data go with the claim', lambda: not folder.exists())

    def test_files_of_objects(self):
        if not has_mounts():
            return
        volumes = [
            {'name': 'conf', 'configMap': {'name': 'conf', 'defaultMode': 0o640, 'items': [
                {'key': 'rate', 'path': 'a/rate', 'mode': 0o400}, {'key': 'raw', 'path': 'raw'}]}},
            {'name': 'hub', 'secret': {'secretName': 'hub', 'defaultMode': 0o400}},
            {'name': 'none', 'configMap': {'name': 'none', 'optional': True}},
            {'name': 'info', 'downwardAPI': {'items': [
                {'path': 'labels', 'fieldRef': {'fieldPath': 'metadata.labels'}},
                {'path': 'cpu', 'resourceFieldRef': {'containerName': 'c0', 'resource': 'limits.cpu'}}]}},
            {'name': 'all', 'projected': {'sources': [
                {'configMap': {'name': 'conf', 'items': [{'key': 'deep', 'path': 'deep'}]}},
                {'secret': {'name': 'hub'}}, {'downwardAPI': {'items': [{'path': 'name', 'fieldRef': {'fieldPath': 'metadata.name'}}]}}]}}]
        script = ('cat /w/conf/a/rate; echo; od -An -tx1 /w/conf/raw; stat -Lc %a /w/conf/a/rate /w/conf/raw /w/hub/token; '
                  'cat /w/hub/token; echo; ls /w/none; cat /w/info/labels; echo; cat /w/info/cpu; echo; ls /w/all; '
                  'cat /w/one; echo; touch /w/conf/x 2>&1 | grep -o Read-only.*')
        mounts = [at('conf', '/w/conf'), at('hub', '/w/hub'), at('none', '/w/none'), at('info', '/w/info'), at('all', '/w/all'),
                  at('hub', '/w/one', subPath='token')]
        self.assertEqual(self.run_pod([(script, mounts, {'resources': {'limits': {'cpu': '2'}}})], volumes), [
            '0.1', ' 00 01 02', '400', '640', '400', 's3cret', 'app="a"', 'tier="b"', '2', 'deep', 'name', 'token',
            's3cret', 'Read-only file system'])
        self.assertNotIn('s3cret', self.plane.log.read_text())

    def test_what_is_missing_is_waited_for(self):
        if not has_mounts():
            return
        self.kubectl('apply', '-f', '-', stdin=pod('p', [('cat /w/late/k', [at('v', '/w/late')], {})],
                                                   [{'name': 'v', 'configMap': {'name': 'late'}}]))
        self.await_that('it says so', lambda: 'FailedMount' in self.kubectl('describe', 'pod', 'p'))
        self.assertRegex(self.kubectl('describe', 'pod', 'p'), r'FailedMount .*Volume "v": configmaps "late" not found')
        self.assertEqual(self.kubectl('get', 'pod', 'p', '--no-headers').split()[2], 'ContainerCreating')
        self.kubectl('create', 'configmap', 'late', '--from-literal=k=come')
        self.kubectl('wait', '--for=jsonpath={.status.phase}=Succeeded', 'pod/p', '--timeout=60s')
        self.assertEqual(self.kubectl('logs', 'p'), 'come\n')

    def test_an_empty_folder_outlives_its_containers(self):
        if not has_mounts():
            return
        first = 'test -e /w/shared/tried && exec cat /w/shared/tried /w/shared/other; echo tried > /w/shared/tried; exit 1'
        other = 'echo other > /w/elsewhere/other; until test -e /w/elsewhere/tried; do sleep 0.02; done'
        lines = self.run_pod([(first, [at('v', '/w/shared')], {}), (other, [at('v', '/w/elsewhere')], {})],
                             [{'name': 'v', 'emptyDir': {}}], policy='OnFailure')
        self.assertEqual(lines, ['tried', 'other'])
        self.await_that('it goes with the pod', lambda: self.left() == [])

    def test_memory_is_bounded_and_shared(self):
        if not has_mounts():
            return
        script = ('df -T /dev/shm | grep -o tmpfs; head -c 2m /dev/zero > /dev/shm/big || rm /dev/shm/big; '
                  'until test -e /dev/shm/other; do sleep 0.02; done; echo seen')
        lines = self.run_pod([(script, [at('m', '/dev/shm')], {}), ('touch /w/m/other', [at('m', '/w/m')], {})],
                             [{'name': 'm', 'emptyDir': {'medium': 'Memory', 'sizeLimit': '1Mi'}}])
        self.assertEqual([line for line in lines if 'No space' not in line], ['tmpfs', 'seen'])
        self.assertEqual(len(lines), 3)

    def test_host_paths_and_what_is_in_them(self):
        if not has_mounts():
            return
        host = self.plane.folder / 'host'
        (host / 'in').mkdir(parents=True)
        (host / 'in' / 'file').write_text('here\n')
        script = ('cat /w/h/file; (echo more > /w/h/more) 2>/dev/null || echo sealed; cat /w/f; pwd; echo $0; ls /w/sub; '
                  'test -d /w/made && ls / | grep -c "^proc$"')
        mounts = [at('h', '/w/h', readOnly=True), at('f', '/w/f'), at('w', '/w/sub', subPathExpr='$(NAME)/x'), at('d', '/w/made'), at('e', '/w/new')]
        volumes = [{'name': 'h', 'hostPath': {'path': str(host / 'in'), 'type': 'Directory'}},
                   {'name': 'f', 'hostPath': {'path': str(host / 'in/file'), 'type': 'File'}},
                   {'name': 'w', 'hostPath': {'path': str(host)}},
                   {'name': 'd', 'hostPath': {'path': str(host / 'made'), 'type': 'DirectoryOrCreate'}},
                   {'name': 'e', 'hostPath': {'path': str(host / 'new')}}]
        more = {'env': [{'name': 'NAME', 'value': 'of-env'}], 'workingDir': '/w/h'}
        self.assertEqual(self.run_pod([(script, mounts, more)], volumes), ['here', 'sealed', 'here', '/w/h', 'sh', '1'])
        self.assertTrue((host / 'of-env' / 'x').is_dir())
        self.assertTrue((host / 'made').is_dir())
        self.assertTrue((host / 'new').is_dir())
        self.assertIn("/new' was not there: volume 'e' begins empty", self.kubectl('get', 'events', '-o', 'custom-columns=M:.message'))

    def test_a_program_in_a_volume(self):
        if not has_mounts():
            return
        program = self.plane.folder / 'bin' / 'greet'
        program.parent.mkdir()
        program.write_text('#!/bin/sh\necho greeting from $PWD\n')
        program.chmod(0o755)
        text = json.loads(pod('p', [('', [at('b', '/w/bin')], {'workingDir': '/w/bin', 'livenessProbe': {
            'exec': {'command': ['/w/bin/greet']}}})], [{'name': 'b', 'hostPath': {'path': str(program.parent)}}]))
        for command in (['/w/bin/greet'], ['./greet'], ['greet']):
            text['spec']['containers'][0].update(command=command, env=[{'name': 'PATH', 'value': '/w/bin:/usr/bin:/bin'}])
            self.kubectl('apply', '-f', '-', stdin=json.dumps(text))
            self.kubectl('wait', '--for=jsonpath={.status.phase}=Succeeded', 'pod/p', '--timeout=60s')
            self.assertEqual(self.kubectl('logs', 'p'), 'greeting from /w/bin\n')
            self.kubectl('delete', 'pod', 'p')

    def test_what_cannot_be_mounted_says_why(self):
        if not has_mounts():
            return
        file = self.plane.folder / 'file'
        file.write_text('')
        for source, place, why in [
                ({'hostPath': {'path': '/weft-none', 'type': 'Directory'}}, '/w', 'hostPath \'/weft-none\' is not there on this machine: make it, or write type: DirectoryOrCreate'),
                ({'hostPath': {'path': str(file), 'type': 'Directory'}}, '/w', 'hostPath type check failed: %s is not a directory' % file),
                ({'persistentVolumeClaim': {'claimName': 'other'}}, '/w', 'persistentvolumeclaim "other" not found'),
                ({'nfs': {'server': 's', 'path': '/'}}, '/w', 'is of kind nfs, which weft does not mount'),
                ({'emptyDir': {}}, '/proc/none', 'the system alone makes folders in /proc'),
                ({'emptyDir': {}}, str(file), "'%s' is a file" % file)]:
            self.kubectl('apply', '-f', '-', stdin=pod('p', [('touch ran', [at('v', place)], {})], [dict(source, name='v')]))
            self.await_that(why, lambda: why in re.sub(r'\s+', ' ', self.kubectl('get', 'events', '-o', 'custom-columns=M:.message')))
            self.kubectl('delete', 'pod', 'p')
        self.assertFalse((self.plane.folder / 'ran').exists())

    def test_wrong_mounts_are_refused(self):
        for mount, volumes, why in [
                (at('dta', '/w'), [{'name': 'data', 'emptyDir': {}}],
                 'spec.containers[0].volumeMounts[0].name: Not found: "dta"'),
                (at('data', '/w'), [], 'spec.containers[0].volumeMounts[0].name: Not found: "data"'),
                (at('v', '/w', subPath='../x'), [{'name': 'v', 'emptyDir': {}}], 'volumeMounts.subPath: Invalid value: "../x"'),
                ({'name': 'v'}, [{'name': 'v', 'emptyDir': {}}], 'volumeMounts[0].mountPath: Required value'),
                (at('v', '/w'), [{'name': 'v', 'emptyDir': {}, 'hostPath': {'path': '/'}}], 'may not specify more than 1 volume type')]:
            code, output = self.plane.run(KUBECTL, 'apply', '-f', '-', stdin=pod('p', [('', [mount], {})], volumes), check=False)
            self.assertEqual(code, 1)
            self.assertIn(why, output)

    def test_files_follow_their_object_and_restarts_find_theirs(self):
        if not has_mounts():
            return
        script = 'test -e /w/e/kept && echo again; touch /w/e/kept; until grep -q 0.2 /w/conf/rate; do sleep 0.05; done'
        self.kubectl('apply', '-f', '-', stdin=pod('p', [(script, [at('conf', '/w/conf'), at('e', '/w/e')], {})], [
            {'name': 'conf', 'configMap': {'name': 'conf'}}, {'name': 'e', 'emptyDir': {}}], policy='OnFailure'))
        self.await_that('it has begun', lambda: list(self.plane.folder.glob('state/volumes/*/volumes/e/kept')))
        (self.plane.folder / 'state' / 'volumes' / 'stranger').mkdir()
        self.plane.stop(signal.SIGKILL)
        self.plane.start()
        self.kubectl('wait', '--for=condition=Ready', 'pod/p', '--timeout=60s')
        self.assertFalse((self.plane.folder / 'state' / 'volumes' / 'stranger').exists())
        self.kubectl('patch', 'cm', 'conf', '-p', '{"data":{"rate":"0.2"}}')
        self.kubectl('wait', '--for=jsonpath={.status.phase}=Succeeded', 'pod/p', '--timeout=60s')
        self.assertEqual(self.kubectl('logs', 'p'), 'again\n')

    def test_weft_run_takes_them_from_the_file(self):
        if not has_mounts():
            return
        path = self.plane.folder / 'job.yaml'
        path.write_text(OBJECTS.split('---')[0] + '---\n' + JOB)
        state = str(self.plane.folder / 'run')
        code, output = self.plane.run(WEFT, 'run', str(path), '--state', state, check=False)
        self.assertEqual(code, 0, output)
        self.assertIn('0.1', output)
        self.assertIn("the data of claim 'data' lie in %s/claims/default/data" % state, output)
        self.assertEqual((self.plane.folder / 'run/claims/default/data/reader-worker-0').read_text(), 'reader-worker-0\n')
        path.write_text(JOB)
        code, output = self.plane.run(WEFT, 'run', str(path), '--state', state, check=False)
        self.assertEqual(code, 2)
        self.assertIn("the ConfigMap 'conf' is not in this file", output)


if __name__ == '__main__':
    KUBECTL = control_plane.build('kubectl')
    unittest.main(argv=sys.argv[:1], verbosity=2)
