#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kubectl, built from its own module, against `weft up`: its daily commands, then the digits.

    kubectl_test.py WEFT DIGITS EXAMPLE_FOLDER
"""
import json
import pathlib
import sys
import unittest

import yaml

import control_plane

WEFT, DIGITS, EXAMPLE = sys.argv[1:4]
HERE = pathlib.Path(__file__).parent

POD = '''apiVersion: v1
kind: Pod
metadata: {name: talker, labels: {app: talk}}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: busybox:1
    command: [sh, -c, "echo hello; sleep 1000"]
'''
CONFIG = '''apiVersion: v1
kind: ConfigMap
metadata: {name: conf}
data: {a: "1"}
'''
SPACE = '''apiVersion: v1
kind: Namespace
metadata: {name: team}
'''
JOB = '''apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: held}
spec:
  runPolicy: {suspend: true}
  tfReplicaSpecs:
    Worker:
      replicas: 2
      template:
        spec:
          containers:
          - name: tensorflow
            image: i
            command: [sleep, "1000"]
'''


class KubectlTest(control_plane.PlaneTest):
    WEFT, PROGRAMS = WEFT, DIGITS

    def k(self, *words, stdin=None):
        return self.plane.run(self.kubectl, *words, stdin=stdin)

    def fails(self, text, *words, stdin=None):
        code, output = self.plane.run(self.kubectl, *words, stdin=stdin, check=False)
        self.assertNotEqual(code, 0, output)
        self.assertIn(text, output)

    def test_discovery(self):
        self.assertIn('Server Version: v1.33', self.k('version'))
        resources = self.k('api-resources')
        for word in ('tfjobs', 'configmaps', 'leases', 'deployments'):
            self.assertIn(word, resources)
        self.assertIn('cleanPodPolicy\t<string>', self.k('explain', 'tfjob.spec.runPolicy'))
        self.fails("doesn't have a resource type", 'get', 'frogs')

    def test_clusters_explain_the_same(self):
        """What `kubectl explain` says here of a job's fields stands in the CRDs too."""
        definitions = json.loads(self.k('get', '--raw', '/openapi/v2'))['definitions']

        for file, kind in ('tfjobs', 'TFJob'), ('tensorflows', 'Tensorflow'):
            crd = yaml.safe_load((HERE.parents[1] / 'deploy' / 'crds' / (file + '.yaml')).read_text())
            ours = next(value for name, value in definitions.items() if name.endswith('.v1.' + kind))
            theirs = next(version for version in crd['spec']['versions'] if version['name'] == 'v1')
            theirs = theirs['schema']['openAPIV3Schema']
            self.assertEqual(theirs['description'], ours['description'])
            self.assertEqual(theirs['properties']['spec'], ours['properties']['spec'])

    def test_config_maps(self):
        self.assertIn('configmap/conf created', self.k('apply', '-f', '-', stdin=CONFIG))
        self.assertIn('configmap/conf unchanged', self.k('apply', '-f', '-', stdin=CONFIG))
        self.assertIn('configmap/conf configured', self.k('apply', '-f', '-', stdin=CONFIG.replace('a: "1"', 'b: "2"')))
        self.assertEqual(json.loads(self.k('get', 'cm', 'conf', '-o', 'json'))['data'], {'b': '2'})
        self.assertIn('configmap/conf labeled', self.k('label', 'cm', 'conf', 'x=y'))
        self.assertEqual(self.k('get', 'cm', '-l', 'x=y', '-o', 'name'), 'configmap/conf\n')
        self.k('annotate', 'cm', 'conf', 'note=n')
        self.k('patch', 'cm', 'conf', '--type=json', '-p', '[{"op":"add","path":"/data/c","value":"3"}]')
        self.k('patch', 'cm', 'conf', '--type=strategic', '-p', '{"data":{"d":"4"}}')
        self.k('patch', 'cm', 'conf', '--type=merge', '-p', '{"data":{"b":null}}')
        self.assertEqual(self.k('get', 'cm', 'conf', '-o', 'jsonpath={.data}'), '{"c":"3","d":"4"}')
        self.assertIn('configmap/dry created (server dry run)',
                      self.k('apply', '--dry-run=server', '-f', '-', stdin=CONFIG.replace('conf', 'dry')))
        self.fails('NotFound', 'get', 'cm', 'dry')
        shared = CONFIG.replace('conf', 'shared')
        apply = ['apply', '--server-side', '-f', '-', '--field-manager']
        self.assertIn('configmap/shared serverside-applied', self.k(*apply, 'one', stdin=shared))
        self.fails('conflict with "one"', *apply, 'two', stdin=shared.replace('a: "1"', 'a: "2"'))
        self.k(*apply, 'two', '--force-conflicts', stdin=shared.replace('a: "1"', 'a: "2"'))
        self.assertEqual(self.k('get', 'cm', 'shared', '-o', 'jsonpath={.data.a}'), '2')
        managed = self.k('get', 'cm', 'shared', '--show-managed-fields', '-o', 'jsonpath={.metadata.managedFields}')
        self.assertEqual([entry['manager'] for entry in json.loads(managed)], ['two'])
        self.assertIn('configmap "conf" deleted', self.k('delete', 'cm', 'conf'))
        # These send protobuf.
        self.k('create', 'configmap', 'made', '--from-literal=a=1')
        self.k('create', 'priorityclass', 'made', '--value=7', '--preemption-policy=Never')
        self.assertEqual(self.k('get', 'priorityclass', 'made', '-o', 'jsonpath={.value} {.preemptionPolicy}'), '7 Never')
        self.k('create', 'job', 'made', '--image=i', '--', 'true')
        self.k('wait', '--for=condition=Complete', 'job/made', '--timeout=60s')
        self.k('delete', 'job/made', 'priorityclass/made')
        self.k('create', 'secret', 'generic', 'made', '--from-literal=k=word')
        self.assertEqual(self.k('get', 'cm', 'made', '-o', 'jsonpath={.data}'), '{"a":"1"}')
        self.assertEqual(self.k('get', 'secret', 'made', '-o', 'jsonpath={.data.k}'), 'd29yZA==')
        self.k('create', 'deployment', 'made', '--image=i', '--replicas=2', '--port=80', '--', 'sleep', '1')
        self.k('scale', 'deployment', 'made', '--replicas=3')
        self.assertEqual(self.k('get', 'deployment', 'made', '-o', 'jsonpath={.spec.replicas} '
                                '{.spec.template.spec.containers[0].command}'), '3 ["sleep","1"]')
        self.k('create', 'service', 'clusterip', 'made', '--tcp=80:8080')
        self.k('create', 'namespace', 'made')
        self.k('create', 'serviceaccount', 'made')
        self.k('delete', 'cm,secret,deployment,service,namespace,serviceaccount', 'made')
        self.fails('NotFound', 'get', 'cm', 'conf')

    def test_a_list(self):
        """kubectl itself looks for the kinds of its items."""
        text = CONFIG.replace('conf', 'first')
        self.k('apply', '-f', '-', stdin=text)
        listed = 'apiVersion: v1\nkind: List\nitems:\n- ' + text.rstrip('\n').replace('\n', '\n  ') + '\n'
        self.assertEqual(self.k('apply', '-f', '-', stdin=listed), 'configmap/first unchanged\n')
        self.fails('no matches for kind "Frog"', 'apply', '-f', '-', stdin=listed.replace('kind: ConfigMap', 'kind: Frog'))
        self.k('delete', 'cm', 'first')

    def test_callers_ask_about_themselves(self):
        self.assertRegex(self.k('auth', 'whoami'), r'Username +weft\n')
        self.assertEqual(self.k('auth', 'can-i', 'create', 'tfjobs'), 'yes\n')
        self.assertRegex(self.k('auth', 'can-i', '--list'), r'\*\.\* +\[\] +\[\] +\[\*\]')

    def test_namespaces(self):
        self.assertIn('namespace/team created', self.k('apply', '-f', '-', stdin=SPACE))
        self.k('apply', '-n', 'team', '-f', '-', stdin=CONFIG)
        self.assertIn('team', self.k('get', 'cm', '-A'))
        self.k('delete', 'ns', 'team')
        self.fails('NotFound', 'get', 'ns', 'team')
        self.fails('not found', 'apply', '-n', 'team', '-f', '-', stdin=CONFIG)

    def test_pods(self):
        self.assertIn('pod/talker created', self.k('apply', '-f', '-', stdin=POD))
        self.k('wait', '--for=condition=Ready', 'pod/talker', '--timeout=60s')
        self.assertEqual(self.k('logs', 'talker'), 'hello\n')
        wide = self.k('get', 'pods', '-o', 'wide')
        self.assertRegex(wide, r'NAME +READY +STATUS +RESTARTS +AGE +IP +NODE +NOMINATED NODE +READINESS GATES')
        self.assertRegex(wide, r'talker +1/1 +Running +0 +\S+ +127.0.0.1 +local')
        described = self.k('describe', 'pod', 'talker')
        self.assertIn('Node:', described)
        self.assertIn('Successfully assigned default/talker to local', described)
        self.k('get', 'pod', 'talker', '-o', 'yaml')
        self.fails('pod updates may not change fields', 'patch', 'pod', 'talker', '-p',
                   '{"spec":{"restartPolicy":"Always"}}')
        self.assertIn('pod "talker" deleted', self.k('delete', 'pod', 'talker'))
        self.fails('NotFound', 'get', 'pod', 'talker')

    def test_jobs_are_checked(self):
        self.fails('spec.tfReplicaSpecs.Worker.replicas', 'apply', '-f', '-', stdin=JOB.replace('replicas: 2', 'replicas: two'))
        self.fails("Did you mean 'runPolicy'", 'apply', '-f', '-', stdin=JOB.replace('runPolicy', 'runPolisy'))

    def test_jobs_suspended_and_scaled(self):
        self.assertIn('tfjob.kubeflow.org/held created', self.k('apply', '-f', '-', stdin=JOB))
        self.k('wait', '--for=condition=Suspended', 'tfjob/held', '--timeout=60s')
        self.assertIn('No resources', self.plane.run(self.kubectl, 'get', 'pods', '-l',
                                                     'training.kubeflow.org/job-name=held', check=False)[1])
        self.assertIn('scaled', self.k('scale', 'tfjob/held', '--replicas=3'))
        self.k('patch', 'tfjob', 'held', '--type=merge', '-p', '{"spec":{"runPolicy":{"suspend":false}}}')
        self.k('wait', '--for=condition=Running', 'tfjob/held', '--timeout=60s')
        self.k('wait', '--for=condition=Ready', 'pod/held-worker-2', '--timeout=60s')
        self.assertRegex(self.k('get', 'tfjob'), r'held +Running')
        self.assertIn('tfjob.kubeflow.org "held" deleted', self.k('delete', 'tfjob', 'held'))
        self.k('wait', '--for=delete', 'pod/held-worker-0', 'pod/held-worker-1', 'pod/held-worker-2', '--timeout=60s')

    def test_the_digits_train(self):
        self.assertIn('tfjob.kubeflow.org/digits created', self.k('apply', '-f', '-', stdin=self.plane.digits(EXAMPLE)))
        self.assertIn('condition met', self.k('wait', '--for=condition=Succeeded', 'tfjob/digits', '--timeout=100s'))
        self.assertIn('accuracy', self.k('logs', 'digits-worker-0'))
        described = self.k('describe', 'tfjob', 'digits')
        for text in ('Created pod: digits-worker-0', 'TFJob default/digits successfully completed.'):
            self.assertIn(text, described)
        self.k('delete', 'tfjob', 'digits')


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)
