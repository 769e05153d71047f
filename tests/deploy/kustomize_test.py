#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What deploy/ becomes by `kubectl kustomize`: kustomize_test.py DEPLOY_FOLDER BUILD_SH."""
import pathlib
import subprocess
import sys
import unittest

import yaml

DEPLOY, BUILD = pathlib.Path(sys.argv[1]), sys.argv[2]
DEFINITIONS = {'tfjobs.kubeflow.org', 'tensorflows.krallistic.github.com', 'experiments.kubeflow.org', 'suggestions.kubeflow.org',
               'trials.kubeflow.org', 'modelservers.weft.dev'}


class KustomizeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kubectl, cls.helm = (subprocess.run(['bash', BUILD, program], stdout=subprocess.PIPE, text=True,
                                                check=True).stdout.strip() for program in ('kubectl', 'helm'))

    def build(self, overlay):
        done = subprocess.run([self.kubectl, 'kustomize', str(DEPLOY / overlay)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [item for item in yaml.safe_load_all(done.stdout) if item]

    def one(self, items, kind):
        found = [item for item in items if item['kind'] == kind]
        self.assertEqual(len(found), 1, kind)
        return found[0]

    def check_operator(self, items, namespace):
        deployment = self.one(items, 'Deployment')
        self.assertEqual(deployment['metadata']['namespace'], namespace)
        pod = deployment['spec']['template']['spec']
        self.assertTrue(pod['securityContext']['runAsNonRoot'])
        self.assertEqual(pod['securityContext']['seccompProfile'], {'type': 'RuntimeDefault'})
        container, = pod['containers']
        self.assertEqual(container['securityContext'], {
            'allowPrivilegeEscalation': False, 'readOnlyRootFilesystem': True, 'capabilities': {'drop': ['ALL']}})
        self.assertIn('memory', container['resources']['limits'])
        self.assertIn('cpu', container['resources']['requests'])
        ports = {port['name']: port['containerPort'] for port in container['ports']}
        for probe, path in (('livenessProbe', '/healthz'), ('readinessProbe', '/readyz')):
            self.assertEqual(container[probe]['httpGet'], {'path': path, 'port': 'health', 'scheme': 'HTTPS'})
        self.assertIn('--health-probe-bind-address=:%d' % ports['health'], container['command'])
        account = self.one(items, 'ServiceAccount')
        self.assertEqual((account['metadata']['name'], account['metadata']['namespace']),
                         (pod['serviceAccountName'], namespace))
        return container

    def check_rules(self, items):
        rules = [rule for item in items if item['kind'] in ('Role', 'ClusterRole') for rule in item['rules']]
        self.assertTrue(rules)
        for rule in rules:
            words = rule['apiGroups'] + rule['resources'] + rule['verbs']
            self.assertFalse([word for word in words if '*' in word], rule)
            if 'secrets' in rule['resources']:  # those of jobs are made, and never read
                self.assertEqual((rule['resources'], rule['verbs']), (['secrets'], ['create']))
            self.assertFalse({'escalate', 'bind', 'impersonate'} & set(rule['verbs']), rule)
        return rules

    def test_the_agent_has_the_folders_that_it_needs_and_no_more(self):
        items = self.build('agent')
        pod = self.one(items, 'DaemonSet')['spec']['template']['spec']
        self.assertFalse({'hostNetwork', 'hostPID', 'hostIPC'} & set(pod))
        container, = pod['containers']
        self.assertEqual(container['securityContext'], {
            'runAsUser': 0, 'runAsGroup': 0, 'allowPrivilegeEscalation': False, 'readOnlyRootFilesystem': True,
            'capabilities': {'drop': ['ALL']}, 'seccompProfile': {'type': 'RuntimeDefault'}})
        paths = {volume['name']: volume['hostPath']['path'] for volume in pod['volumes']}
        self.assertEqual([paths[mount['name']] for mount in container['volumeMounts'] if not mount.get('readOnly')],
                         ['/var/lib/kubelet/device-plugins'])
        rules = self.check_rules(items)
        self.assertFalse([rule for rule in rules if 'nodes' in rule['resources'] and set(rule['verbs']) - {'get', 'patch'}])
        policy = self.one(items, 'ValidatingAdmissionPolicy')
        self.assertEqual(policy['spec']['failurePolicy'], 'Fail')
        binding = self.one(items, 'ValidatingAdmissionPolicyBinding')
        self.assertEqual((binding['spec']['policyName'], binding['spec']['validationActions']), (policy['metadata']['name'], ['Deny']))
        account = self.one(items, 'ServiceAccount')['metadata']
        self.assertIn('"system:serviceaccount:%s:%s"' % (account['namespace'], account['name']),
                      policy['spec']['matchConditions'][0]['expression'])

    def test_for_a_whole_cluster(self):
        items = self.build('cluster')
        container = self.check_operator(items, 'weft-system')
        self.assertEqual(container['command'][5:7], ['weft', 'operator'])
        names = {item['metadata']['name'] for item in items if item['kind'] == 'CustomResourceDefinition'}
        self.assertEqual(names, DEFINITIONS)
        self.check_rules(items)
        subjects = [subject for item in items if item['kind'].endswith('RoleBinding') for subject in item['subjects']]
        self.assertEqual({(s['name'], s['namespace']) for s in subjects}, {('weft-operator', 'weft-system')})

    def test_for_one_namespace_without_a_right_outside_of_it(self):
        items = self.build('namespaced')
        self.assertEqual({item['kind'] for item in items}, {'Deployment', 'ServiceAccount', 'Role', 'RoleBinding'})
        self.assertEqual({item['metadata']['namespace'] for item in items}, {'default'})
        container = self.check_operator(items, 'default')
        self.assertEqual(container['command'][-1], '--namespace=$(POD_NAMESPACE)')
        self.assertEqual(self.one(items, 'RoleBinding')['subjects'][0]['namespace'], 'default')
        self.check_rules(items)

    def test_with_a_webhook(self):
        items = self.build('webhook_cluster')
        container = self.check_operator(items, 'weft-system')
        self.check_rules(items)
        configuration = self.one(items, 'ValidatingWebhookConfiguration')
        service = self.one(items, 'Service')
        webhook, = configuration['webhooks']
        self.assertEqual(webhook['clientConfig'], {'service': {
            'name': service['metadata']['name'], 'namespace': service['metadata']['namespace'], 'path': '/validate', 'port': 443}})
        port, = [port['containerPort'] for port in container['ports'] if port['name'] == 'webhook']
        for flag in ('--webhook_port=%d' % port, '--webhook_host=%s.$(POD_NAMESPACE).svc' % service['metadata']['name'],
                     '--webhook_configuration=' + configuration['metadata']['name'],
                     '--webhook_folder=' + container['volumeMounts'][0]['mountPath']):
            self.assertIn(flag, container['command'])

    def test_both_allow_the_same(self):
        def allowed(items):
            # What users may do is another matter than what the operator may.
            items = [item for item in items if not item['metadata']['name'].startswith('weft-jobs-')]
            return {(group, resource, verb) for rule in self.check_rules(items) for group in rule['apiGroups']
                    for resource in rule['resources'] for verb in rule['verbs']}
        self.assertEqual(allowed(self.build('cluster')), allowed(self.build('namespaced')))

    def test_users_view_and_edit_jobs(self):
        """With the cluster's own roles: what a job's kinds allow is added to view, edit and admin by their labels."""
        roles = {item['metadata']['name']: item for item in self.build('cluster') if item['kind'] == 'ClusterRole'}

        def labels(name):
            return {label.rpartition('-')[2] for label, value in roles[name]['metadata']['labels'].items() if value == 'true'}

        def verbs(name, resource):
            return {verb for rule in roles[name]['rules'] for verb in rule['verbs'] if resource in rule['resources']}
        self.assertEqual((labels('weft-jobs-view'), labels('weft-jobs-edit')), ({'view'}, {'edit', 'admin'}))
        for kind in 'tfjobs', 'tensorflows', 'experiments', 'trials', 'suggestions', 'modelservers':
            self.assertEqual(verbs('weft-jobs-view', kind), {'get', 'list', 'watch'})
            self.assertEqual(verbs('weft-jobs-edit', kind),
                             {'get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection'})
            if kind in ('tfjobs', 'tensorflows', 'modelservers'):
                self.assertIn('update', verbs('weft-jobs-edit', kind + '/scale'))
            # The status is the operator's.
            self.assertEqual(verbs('weft-jobs-edit', kind + '/status'), {'get'})

    def chart(self, namespace, values=''):
        done = subprocess.run([self.helm, str(DEPLOY / 'chart'), namespace, values], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [item for item in yaml.safe_load_all(done.stdout) if item]

    def check_chart(self, overlay, namespace, values):
        def by_name(items):
            # The namespace of a release is there before its chart, and rules may stand in any order.
            found = {(item['kind'], item['metadata']['name']): item for item in items if item['kind'] != 'Namespace'}
            for item in found.values():
                if 'rules' in item:
                    item['rules'].sort(key=str)
            return found
        ours, theirs = by_name(self.build(overlay)), by_name(self.chart(namespace, values))
        self.assertEqual(set(ours), set(theirs))
        for name in ours:
            self.assertEqual(ours[name], theirs[name], name)

    def test_the_chart_is_the_same(self):
        self.check_chart('cluster', 'weft-system', '')
        self.check_chart('webhook_cluster', 'weft-system', 'webhook: true')

    def test_the_chart_for_one_namespace_is_the_same(self):
        definitions = {('CustomResourceDefinition', name) for name in DEFINITIONS}
        items = [item for item in self.chart('default', 'namespaced: true')
                 if (item['kind'], item['metadata']['name']) not in definitions]
        self.chart = lambda namespace, values: items
        self.check_chart('namespaced', 'default', '')

    def test_experiments_model_servers_and_the_page_by_a_switch(self):
        rules, _ = yaml.safe_load_all((DEPLOY / 'rbac' / 'tuning.yaml').read_text())
        serving, _ = yaml.safe_load_all((DEPLOY / 'rbac' / 'serving.yaml').read_text())
        for namespaced, kind in (('false', 'ClusterRole'), ('true', 'Role')):
            items = self.chart('weft-system', 'experiments: true\nmodelServers: true\npage: true\nnamespaced: ' + namespaced)
            found = {(item['kind'], item['metadata']['name']): item for item in items}
            self.assertEqual(found[kind, 'weft-operator-tuning']['rules'], rules['rules'])
            self.assertEqual(found[kind + 'Binding', 'weft-operator-tuning']['roleRef']['kind'], kind)
            self.assertEqual(found[kind, 'weft-operator-serving']['rules'], serving['rules'])
            self.assertEqual(found[kind + 'Binding', 'weft-operator-serving']['roleRef']['kind'], kind)
            self.assertIn('--model_servers', found['Deployment', 'weft-operator']['spec']['template']['spec']['containers'][0]['command'])
            self.assertIn('--experiments', found['Deployment', 'weft-operator']['spec']['template']['spec']['containers'][0]['command'])
            for item in self.build('page'):
                self.assertEqual(found[item['kind'], item['metadata']['name']], item)
        # Nothing binds a right to the page.
        self.assertFalse([item for item in items if 'weft-page' in str(item.get('subjects', ''))])

    def test_the_values_of_the_chart(self):
        items = self.chart('elsewhere', 'image: "registry.example/weft:1"\nreplicas: 3\nflags: ["--job_selector=team=vision"]\n'
                                        'nodeSelector: {disk: ssd}\ntolerations: [{key: a, operator: Exists}]')
        container = self.check_operator(items, 'elsewhere')
        self.assertEqual((container['image'], container['command'][-1]), ('registry.example/weft:1', '--job_selector=team=vision'))
        deployment = self.one(items, 'Deployment')
        self.assertEqual(deployment['spec']['replicas'], 3)
        self.assertEqual(deployment['spec']['template']['spec']['nodeSelector'], {'disk': 'ssd'})
        self.assertEqual(deployment['spec']['template']['spec']['tolerations'], [{'key': 'a', 'operator': 'Exists'}])


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)
