#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft operator` and `weft node` on a real control plane: the digits train by a TFJob there.

    operator_test.py WEFT DIGITS EXAMPLE_FOLDER
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

import control_plane
import real_control_plane

WEFT, DIGITS, EXAMPLE = sys.argv[1:4]
HERE = pathlib.Path(__file__).parent
DEPLOY = HERE.parent.parent / 'deploy'

SLEEPER = '''apiVersion: kubeflow.org/%s
kind: TFJob
metadata: {name: sleeper}
spec:
  tfReplicaSpecs:
    Worker:
      replicas: 2
      restartPolicy: ExitCode
      template:
        spec:
          terminationGracePeriodSeconds: 1
          containers:
          - name: tensorflow
            image: i
            command: [sleep, "1000.25"]
'''

COMPACT = '''apiVersion: krallistic.github.com/v1
kind: Tensorflow
metadata: {name: compact}
spec:
  image: i
  ps_count: 1
  worker_count: 2
  command: [sh, -c, "exec sleep 1000.25"]
'''


VOLUMES = '''apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {rate: "0.1"}}
- {apiVersion: v1, kind: Secret, metadata: {name: hub}, stringData: {token: hidden}}
- apiVersion: kubeflow.org/v1
  kind: TFJob
  metadata: {name: volumes}
  spec:
    tfReplicaSpecs:
      Worker:
        template:
          metadata: {labels: {team: blue}}
          spec:
            initContainers:
            - {name: fetch, image: i, command: [sh, -c, "echo data > /weft-test/scratch/d"], volumeMounts: [&scratch {name: scratch, mountPath: /weft-test/scratch}]}
            containers:
            - name: helper
              image: i
              command: ["true"]
            - name: tensorflow
              image: i
              command: [sh, -c]
              args:
              - |
                cd /weft-test && grep team=.blue info/labels && cp info/labels host/found &&
                [ "$(cat conf/rate) $(cat hub/token) $(cat scratch/d) $(cat all/rate)" = "0.1 hidden data 0.1" ]
              volumeMounts:
              - *scratch
              - {name: conf, mountPath: /weft-test/conf}
              - {name: hub, mountPath: /weft-test/hub, readOnly: true}
              - {name: info, mountPath: /weft-test/info}
              - {name: all, mountPath: /weft-test/all}
              - {name: host, mountPath: /weft-test/host}
            volumes:
            - {name: scratch, emptyDir: {}}
            - {name: conf, configMap: {name: settings}}
            - {name: hub, secret: {secretName: hub, defaultMode: 0400}}
            - {name: info, downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}
            - {name: all, projected: {sources: [{configMap: {name: settings}}]}}
            - {name: host, hostPath: {path: FOLDER, type: DirectoryOrCreate}}
'''


class OperatorTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kubectl = control_plane.build('kubectl')
        cls.temporary = tempfile.TemporaryDirectory()
        cls.real = real_control_plane.RealControlPlane(control_plane.build('controlplane'), cls.temporary.name)
        cls.ours = []
        # Only for its commands and its environment: nothing of `weft up` runs here.
        cls.plane = control_plane.ControlPlane(WEFT, cls.temporary.name, DIGITS)
        try:
            cls.real.start()
            cls.real.await_(lambda: cls.plane.run(cls.kubectl, 'get', '--raw', '/readyz', check=False)[0] == 0, 'API')
            cls.real.start_controllers()
            cls.k('apply', '-f', str(DEPLOY / 'crds'))
            cls.real.await_(lambda: cls.plane.run(cls.kubectl, 'wait', '--for=condition=Established', 'crd', '--all',
                                                  '--timeout=60s', check=False)[0] == 0, 'kinds')
            cls.real.await_(lambda: cls.plane.run(cls.kubectl, 'get', 'ns', 'default', check=False)[0] == 0, 'namespace')
            cls.log = (pathlib.Path(cls.temporary.name) / 'ours.out').open('w')
            # With its own rights and no more.
            cls.k('apply', '-f', str(DEPLOY / 'rbac' / 'operator.yaml'))
            token = cls.k('create', 'token', 'weft-operator', '-n', 'weft-system').strip()
            cls.operator = pathlib.Path(cls.temporary.name) / 'operator.kubeconfig'
            cls.operator.write_text(cls.real.kubeconfig.read_text().replace(cls.real.token, token))
            cls.operator_flags = ['--kubeconfig', str(cls.operator), '--webhook_port', str(real_control_plane.free_port()),
                                  '--webhook_folder', str(pathlib.Path(cls.temporary.name) / 'webhook')]
            cls.spawn('operator', *cls.operator_flags)
            cls.spawn('node', '--bind_pods', '--state', str(pathlib.Path(cls.temporary.name) / 'node'))
        except BaseException:
            cls.tearDownClass()
            raise

    @classmethod
    def spawn(cls, *words):
        cls.ours.append(subprocess.Popen([WEFT, *words], env=cls.plane.environment, cwd=cls.temporary.name,
                                         stdout=cls.log, stderr=subprocess.STDOUT))

    @classmethod
    def tearDownClass(cls):
        for process in cls.ours:
            process.terminate()
            process.wait(60)
        if cls.ours:
            cls.log.close()
        cls.real.stop()
        cls.temporary.cleanup()

    @classmethod
    def k(cls, *words, stdin=None):
        return cls.plane.run(cls.kubectl, *words, stdin=stdin)

    def setUp(self):
        self.plane.log = pathlib.Path(self.temporary.name) / 'ours.out'

    def test_the_operator_may_not_read_secrets(self):
        code, output = self.plane.run(self.kubectl, '--kubeconfig', str(self.operator), 'get', 'secrets', check=False)
        self.assertNotEqual(code, 0)
        self.assertIn('Forbidden', output)

    def test_a_job_of_servers_gets_a_secret_or_a_network_policy(self):
        servers = (SLEEPER % 'v1').replace('command: [sleep, "1000.25"]', 'command: [weft, server]').replace(
            '          containers:', '          nodeName: nowhere\n          containers:')
        for name, security in ('safe', None), ('open', 'insecure'):
            job = servers.replace('name: sleeper', 'name: ' + name)
            if security:
                job = job.replace('{name: open}', '{name: open, annotations: {weft.dev/task-security: insecure, '
                                                  'weft.dev/insecure-clients: app=notebook}}')
            self.k('apply', '-f', '-', stdin=job)
            self.real.await_(lambda: len(self.k('get', 'pods', '-o', 'name', '-l', 'training.kubeflow.org/job-name=' + name).split()) == 2, 'pods')
        secret, = [item for item in json.loads(self.k('get', 'secrets', '-o', 'json'))['items']
                   if item['metadata']['name'].startswith('safe-')]
        self.assertEqual(secret['type'], 'kubernetes.io/tls')
        self.assertEqual(sorted(secret['data']), ['ca.crt', 'tls.crt', 'tls.key'])
        self.assertEqual(secret['metadata']['ownerReferences'][0]['name'], 'safe')
        pod = json.loads(self.k('get', 'pod', 'safe-worker-1', '-o', 'json'))
        volume, = [volume for volume in pod['spec']['volumes'] if volume['name'] == 'weft-task-tls']
        self.assertEqual(volume['secret']['secretName'], secret['metadata']['name'])
        policy, = json.loads(self.k('get', 'networkpolicies', '-o', 'json'))['items']
        self.assertTrue(policy['metadata']['name'].startswith('open-insecure-'))
        self.assertEqual(policy['spec']['ingress'][0]['from'][1], {'podSelector': {'matchLabels': {'app': 'notebook'}}})
        self.assertIn('WEFT_INSECURE', self.k('get', 'pod', 'open-worker-0', '-o', 'yaml'))
        # What a task that starts again mounts is the same.
        self.k('delete', 'pod', 'safe-worker-1', '--grace-period=0', '--force')
        self.real.await_(lambda: self.plane.run(self.kubectl, 'get', 'pod', 'safe-worker-1', check=False)[0] == 0, 'pod')
        again = json.loads(self.k('get', 'secret', secret['metadata']['name'], '-o', 'json'))
        self.assertEqual(again['metadata']['uid'], secret['metadata']['uid'])
        self.k('delete', 'tfjob', 'safe', 'open')
        self.k('wait', '--for=delete', 'secret/' + secret['metadata']['name'], 'networkpolicy/' + policy['metadata']['name'],
               '--timeout=60s')
        log = (pathlib.Path(self.temporary.name) / 'ours.out').read_text()
        self.assertNotIn(secret['data']['tls.key'][:40], log)

    def test_the_digits_train(self):
        self.assertEqual(self.k('apply', '-f', '-', stdin=self.plane.digits(EXAMPLE)),
                         'tfjob.kubeflow.org/digits created\n')
        self.assertIn('condition met', self.k('wait', '--for=condition=Succeeded', 'tfjob/digits', '--timeout=100s'))
        self.assertRegex(self.k('get', 'tfjob'), r'digits +Succeeded')
        self.assertIn('successfully completed', self.k('describe', 'tfjob', 'digits'))
        self.assertIn('Succeeded', self.plane.run(WEFT, 'get', 'tfjob'))
        self.assertIn('Created pod: digits-ps-0', self.k('describe', 'tfjob', 'digits'))
        self.k('delete', 'tfjob', 'digits')
        self.k('wait', '--for=delete', 'pod/digits-worker-0', 'pod/digits-worker-1', '--timeout=60s')

    def test_a_killed_operator_goes_on(self):
        self.k('apply', '-f', '-', stdin=SLEEPER % 'v1')
        self.ours[0].send_signal(signal.SIGKILL)
        self.ours[0].wait()
        del self.ours[0]
        self.spawn('operator', *self.operator_flags)
        self.ours.insert(0, self.ours.pop())
        self.k('wait', '--for=condition=Running', 'tfjob/sleeper', '--timeout=60s')
        self.k('scale', 'tfjob/sleeper', '--replicas=3')
        self.plane.run(WEFT, 'wait', '--for=condition=Ready', 'pod/sleeper-worker-2', '--timeout=60s')
        self.k('delete', 'tfjob', 'sleeper')
        self.k('wait', '--for=delete', 'pod/sleeper-worker-0', 'pod/sleeper-worker-2', '--timeout=60s')

    def test_the_old_version_keeps_its_meaning(self):
        self.k('apply', '-f', '-', stdin=(SLEEPER % 'v1beta1').replace('sleeper', 'old'))
        self.k('wait', '--for=condition=Running', 'tfjob/old', '--timeout=60s')
        job = json.loads(self.k('get', 'tfjob', 'old', '-o', 'json'))
        self.assertEqual(job['spec']['cleanPodPolicy'], 'Running')
        pod = json.loads(self.k('get', 'pod', 'old-worker-0', '-o', 'json'))
        self.assertEqual(pod['metadata']['labels']['tf-replica-type'], 'worker')
        self.k('delete', 'tfjob', 'old')

    def test_the_compact_kind(self):
        self.k('apply', '-f', '-', stdin=COMPACT)
        self.k('wait', '--for=condition=Running', 'tensorflow/compact', '--timeout=60s')
        self.assertRegex(self.k('get', 'tensorflow'), r'^NAME +STATE +PS +WORKERS +PROGRESS +LEFT +AGE\ncompact +Running +1 +2 +')
        pod = json.loads(self.k('get', 'pod', 'compact-worker-1', '-o', 'json'))
        self.assertIn('--task_index=1', pod['spec']['containers'][0]['args'])
        self.k('scale', 'tensorflow/compact', '--replicas=1')
        self.k('wait', '--for=delete', 'pod/compact-worker-1', '--timeout=60s')
        self.k('delete', 'tensorflow', 'compact')
        self.k('wait', '--for=delete', 'pod/compact-ps-0', 'pod/compact-worker-0', '--timeout=60s')
        for wrong, text in (('worker_count: 2', 'worker_count: two'), ('image: i', 'immage: i'),
                            ('name: compact', 'name: 1compact'), ('name: compact', 'name: c' + 54 * 'o'),
                            ('ps_count: 1', 'tensorboard: {active: true}')):
            code, output = self.plane.run(self.kubectl, 'apply', '-f', '-', stdin=COMPACT.replace(wrong, text),
                                          check=False)
            self.assertNotEqual(code, 0, output)

    def test_a_slip_in_an_edit_ends_nothing(self):
        self.k('apply', '-f', '-', stdin=(SLEEPER % 'v1').replace('sleeper', 'slip'))
        self.k('wait', '--for=condition=Running', 'tfjob/slip', '--timeout=60s')
        before = self.k('get', 'pods', '-l', 'training.kubeflow.org/job-name=slip', '-o', 'jsonpath={.items[*].metadata.uid}')
        place = '/spec/tfReplicaSpecs/Worker/template/spec/containers/0/ports'
        self.k('patch', 'tfjob', 'slip', '--type=json', '-p', json.dumps([{'op': 'add', 'path': place, 'value': [{'containerPort': 70000}]}]))
        self.k('wait', '--for=condition=Invalid', 'tfjob/slip', '--timeout=60s')
        self.assertIn('ports[0].containerPort: Invalid value: 70000', self.k('describe', 'tfjob', 'slip'))
        self.k('patch', 'tfjob', 'slip', '--type=json', '-p', json.dumps([{'op': 'remove', 'path': place}]))
        self.real.await_(lambda: re.search(r'slip +Running', self.k('get', 'tfjob')), 'job that runs again')
        self.assertEqual(before, self.k('get', 'pods', '-l', 'training.kubeflow.org/job-name=slip',
                                        '-o', 'jsonpath={.items[*].metadata.uid}'))
        self.k('delete', 'tfjob', 'slip')

    def test_volumes_of_a_node(self):
        folder = pathlib.Path(self.temporary.name) / 'host'
        self.k('apply', '-f', '-', stdin=VOLUMES.replace('FOLDER', str(folder)))
        doctor = json.loads(self.plane.run(WEFT, 'doctor', '--json', check=False)[1])
        if any(finding['check'] == 'volumes' and finding['verdict'] != 'good' for finding in doctor):
            self.real.await_(lambda: 'no mount namespace' in self.k('get', 'events'), 'word of missing mounts')
        else:
            self.k('wait', '--for=condition=Succeeded', 'tfjob/volumes', '--timeout=60s')
            self.assertIn('team="blue"', (folder / 'found').read_text())
        self.k('delete', 'tfjob/volumes', 'cm/settings', 'secret/hub')

    def test_the_webhook_sees_what_the_schema_does_not(self):
        wrong = (SLEEPER % 'v1').replace('sleeper', 'wrong').replace(
            'command:', 'ports: [{containerPort: 70000}]\n            command:')
        written = pathlib.Path(self.temporary.name) / 'webhook' / 'webhook.yaml'
        self.real.await_(written.exists, 'webhook.yaml')
        # A busy machine shall not let it pass.
        patient = written.read_text().replace('Ignore', 'Fail').replace('timeoutSeconds: 5', 'timeoutSeconds: 30')
        self.addCleanup(self.k, 'delete', 'validatingwebhookconfiguration', 'weft-jobs')
        self.k('apply', '-f', '-', stdin=patient)

        def refused():
            code, self.answer = self.plane.run(self.kubectl, 'create', '--dry-run=server', '-f', '-', stdin=wrong,
                                               check=False)
            return code != 0
        self.real.await_(refused, 'refusal')
        self.assertIn('spec.tfReplicaSpecs.Worker.template.spec.containers[0].ports[0].containerPort: Invalid value: 70000',
                      self.answer)
        self.k('create', '--dry-run=server', '-f', '-', stdin=wrong.replace('70000', '7000'))

    def test_the_schema_refuses_nonsense(self):
        for wrong, text in (('replicas: 2', 'replicas: two'), ('Worker:', 'Wroker:'), ('ExitCode', 'Sometimes'),
                            ('name: tensorflow', 'name: tf'), ('- name: tensorflow', 'name: tensorflow'),
                            ('image: i', 'resources: {limits: {alpha.kubernetes.io/gpuset: "0,1,3"}}'),
                            ('command: [sleep, "1000.25"]', 'command: sleep'), ('command:', 'comand:'),
                            ('containers:', 'tolerations: [{operater: Exists}]\n          containers:'), ('name: sleeper', 'name: 1sleeper'),
                            ('name: sleeper', 'name: s' + 54 * 'l'),
                            ('spec:\n  tf', 'spec:\n  runPolicy: {managedBy: me}\n  tf')):
            code, output = self.plane.run(self.kubectl, 'apply', '-f', '-', stdin=(SLEEPER % 'v1').replace(wrong, text),
                                          check=False)
            self.assertNotEqual(code, 0, output)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)
