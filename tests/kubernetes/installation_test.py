#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""deploy/namespaced on a real API server, what weft doctor says of it, and credentials that are wrong or change.

    installation_test.py WEFT
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import cluster
import differential_cases

WEFT = sys.argv[1]
TEAM, OTHERS = 'team', 'others'
ACCOUNT = 'system:serviceaccount:team:weft-operator'


def job(name, command, **more):
    spec = differential_cases.spec({'Worker': 1})
    spec['tfReplicaSpecs']['Worker']['template']['spec']['containers'][0].update(command=command, **more)
    return {'apiVersion': 'kubeflow.org/v1', 'kind': 'TFJob', 'metadata': {'name': name}, 'spec': spec}


def conditions(held):
    return {each['type']: each for each in (held or {}).get('status', {}).get('conditions', []) if each['status'] == 'True'}


class Authority:
    """Of client certificates, by openssl."""

    def __init__(self, folder, name):
        self.folder = folder / name
        (self.folder / 'issued').mkdir(parents=True)
        (self.folder / 'index').touch()
        (self.folder / 'serial').write_text('01\n')
        (self.folder / 'settings').write_text('''[ca]
default_ca = own
[own]
dir = %s
database = $dir/index
serial = $dir/serial
new_certs_dir = $dir/issued
default_md = sha256
policy = any
[any]
commonName = supplied
organizationName = supplied
''' % self.folder)
        self.certificate = self.folder / 'ca.crt'
        self.openssl('req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', 'ca.key', '-out', 'ca.crt', '-days', '2',
                     '-subj', '/CN=' + name)

    def openssl(self, *words):
        subprocess.run(['openssl', *words], check=True, capture_output=True, cwd=self.folder)

    def issue(self, name, begin='20200101000000Z', end='20990101000000Z'):
        """The files of certificate and key, of one who may do everything."""
        self.openssl('req', '-newkey', 'rsa:2048', '-nodes', '-keyout', name + '.key', '-out', name + '.csr', '-subj',
                     '/O=system:masters/CN=' + name)
        self.openssl('ca', '-batch', '-config', 'settings', '-cert', 'ca.crt', '-keyfile', 'ca.key', '-in', name + '.csr',
                     '-out', name + '.crt', '-startdate', begin, '-enddate', end, '-notext')
        return {'client-certificate': str(self.folder / (name + '.crt')), 'client-key': str(self.folder / (name + '.key'))}


class InstallationTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.authority = Authority(cls.folder, 'clients')
        cls.cluster = cluster.Cluster(cls.temporary.name)
        try:
            cls.cluster.start('--client-ca-file', str(cls.authority.certificate))
            cls.api = cls.cluster.api
            for namespace in (TEAM, OTHERS):
                cls.api.request('POST', '/api/v1/namespaces', {'metadata': {'name': namespace}})
            # As an overlay of people would.
            overlay = cls.folder / 'overlay'
            overlay.mkdir()
            shutil.copytree(cluster.DEPLOY, cls.folder / 'deploy')
            (overlay / 'kustomization.yaml').write_text('namespace: %s\nresources: [../deploy/namespaced]\n' % TEAM)
            cls.cluster.k('apply', '-k', str(overlay))
            cls.cluster.spawn('node', WEFT, 'node', '--bind_pods', '--state', str(cls.folder / 'node'))
        except BaseException:
            cls.tearDownClass()
            raise

    @classmethod
    def tearDownClass(cls):
        cls.cluster.stop()
        cls.temporary.cleanup()

    def config(self, name, user, namespace=TEAM):
        path = self.folder / (name + '.kubeconfig')
        path.write_text(json.dumps({
            'apiVersion': 'v1', 'kind': 'Config', 'current-context': 'c', 'users': [{'name': 'someone', 'user': user}],
            'clusters': [{'name': 'c', 'cluster': {'server': self.cluster.plane.server,
                                                   'certificate-authority': str(self.cluster.plane.authority)}}],
            'contexts': [{'name': 'c', 'context': {'cluster': 'c', 'user': 'someone', 'namespace': namespace}}]}))
        path.chmod(0o600)
        return path

    def token(self, *words):
        return self.cluster.k('create', 'token', 'weft-operator', '-n', TEAM, *words).strip()

    def start_operator(self, name, config):
        """With the words of the Deployment, but for the port that the kubelet asks at."""
        deployment = self.api.request('GET', '/apis/apps/v1/namespaces/%s/deployments/weft-operator' % TEAM)
        command = deployment['spec']['template']['spec']['containers'][0]['command']
        words = [word.replace('$(POD_NAMESPACE)', TEAM) for word in command[6:] if 'health-probe' not in word]
        self.assertEqual(words, ['operator', '--namespace=' + TEAM])
        # Inside of a cluster this is the default.
        return self.cluster.spawn(name, WEFT, *words, '--leader-elect', kubeconfig=config)

    def stop(self, process):
        process.terminate()
        process.wait(60)
        self.cluster.processes.remove(process)

    def weft(self, *words, config=None):
        done = subprocess.run([WEFT, *words], env=dict(os.environ, KUBECONFIG=str(config or self.cluster.plane.kubeconfig)),
                              capture_output=True, text=True, timeout=120, cwd=self.folder)
        return done.returncode, done.stdout + done.stderr

    def doctor(self, *words, config=None):
        """Exit code, and what is not good: by what it is about, what was found and what to type."""
        code, text = self.weft('doctor', 'cluster', '--json', *words, config=config)
        findings = json.loads(text)
        self.assertTrue(findings)
        return code, {each['check']: (each['found'], each.get('next', '')) for each in findings
                      if each['verdict'] != 'good'}

    def await_condition(self, namespace, name, kind):
        return cluster.wait_for(lambda: conditions(self.api.get(namespace, 'tfjobs', name)).get(kind),
                                lambda: '%s: %s' % (kind, self.api.get(namespace, 'tfjobs', name)))

    def test_it_has_one_namespace_and_no_right_outside(self):
        config = self.config('account', {'token': self.token()})
        operator = self.start_operator('operator', config)
        self.api.create(OTHERS, 'tfjobs', job('left-alone', ['sleep', '1']))
        self.api.create(TEAM, 'tfjobs', job('sleeps', ['sleep', '1']))
        self.await_condition(TEAM, 'sleeps', 'Succeeded')
        # No webhook can be had without rights on the cluster: what the schema lets pass fails here, with the same words.
        self.api.create(TEAM, 'tfjobs', job('wrong', ['sleep', '1'], ports=[{'containerPort': 70000}]))
        failed = self.await_condition(TEAM, 'wrong', 'Failed')
        self.assertEqual(failed['reason'], 'TFJobFailedValidation')
        self.assertIn('completionTime', self.api.get(TEAM, 'tfjobs', 'wrong')['status'])
        self.assertIn('containers[0].ports[0].containerPort: Invalid value: 70000', failed['message'])
        self.assertEqual(self.doctor('--as_operator', '-n', TEAM, config=config), (0, {}))
        self.assertNotIn('status', self.api.get(OTHERS, 'tfjobs', 'left-alone'))
        self.assertEqual(self.api.list(OTHERS, 'pods'), [])
        self.stop(operator)
        calls = [entry for entry in self.cluster.audited() if entry['user']['username'] == ACCOUNT]
        refused = [entry['requestURI'] for entry in calls if entry['responseStatus']['code'] in (401, 403)]
        self.assertEqual(refused, [])
        where = {entry['objectRef'].get('namespace') for entry in calls if 'resource' in entry.get('objectRef', {})}
        self.assertLessEqual(where, {TEAM, None})
        self.assertIn(TEAM, where)
        self.check_what_is_missing(config)

    def check_what_is_missing(self, config):
        binding = '/apis/rbac.authorization.k8s.io/v1/namespaces/%s/rolebindings/weft-operator' % TEAM
        held = self.api.request('GET', binding)
        self.api.request('DELETE', binding)

        def lacks():
            code, found = self.doctor('--as_operator', '-n', TEAM, config=config)
            return 'rights' in found and (code, found['rights'])
        code, (found, following) = cluster.wait_for(lacks, 'word of missing rights')
        self.assertEqual(code, 1)
        self.assertIn('get/list/watch/create/delete pods', found)
        # Nor may it lead any more.
        code, all_found = self.doctor('--as_operator', '-n', TEAM, config=config)
        self.assertIn('get/create/update leases.coordination.k8s.io in namespace ' + TEAM, all_found['lease'][0])
        self.assertIn('update tfjobs/status.kubeflow.org', found)
        self.assertEqual(following, 'kubectl apply -k deploy/namespaced')
        del held['metadata']['resourceVersion'], held['metadata']['uid']
        self.api.request('POST', binding.rsplit('/', 1)[0], held)
        cluster.wait_for(lambda: self.doctor('--as_operator', '-n', TEAM, config=config)[0] == 0, 'rights')
        # For a user: nobody acts as yet.
        code, found = self.doctor()
        self.assertEqual(code, 1)
        self.assertEqual(found['operator'], ('no pod of weft-operator: nobody acts on jobs, unless a `weft operator` outside of the cluster does',
                                             'kubectl apply -k deploy/cluster'))
        self.cluster.k('delete', 'crd', 'tensorflows.krallistic.github.com', '--wait=true')

        def lacks_kind():
            return self.doctor('--as_operator', '-n', TEAM, config=config)[1].get('Tensorflow')
        found, following = cluster.wait_for(lacks_kind, 'word of a missing kind')
        self.assertIn('tensorflows', found)
        code, said = self.weft('get', 'tensorflow')
        self.assertEqual(code, 1)
        self.assertIn('/tensorflows: `weft doctor cluster` says what is not installed', said)
        # The operator says both at once, and what to type.
        operator = self.cluster.spawn('half', WEFT, 'operator', '--namespace', TEAM, '--gang_scheduler_name', 'volcano',
                                      kubeconfig=config)
        log = self.folder / 'half.log'
        for line in ('does not know the kind Tensorflow .*kubectl apply -f deploy/crds/tensorflows.yaml',
                     'may not list the kind PodGroup .*kubectl apply -f deploy/rbac/gang.yaml'):
            cluster.wait_for(lambda: re.search(line, log.read_text()), log.read_text)
        self.stop(operator)
        self.assertEqual(following, 'kubectl apply -f deploy/crds/tensorflows.yaml')

    def check_refusal(self, name, user, *told):
        config = self.config(name, user)
        for words in (('get', 'pods'), ('operator',)):
            code, said = self.weft(*words, config=config)
            self.assertEqual(code, 1, said)
            for part in ("user 'someone' of %s" % config, *told):
                self.assertIn(part, said)

    def test_credentials_that_are_refused_are_named(self):
        others = Authority(self.folder, 'others')
        whoami = 'auth whoami'
        code, said = self.weft('get', 'pods', config=self.config('good', self.authority.issue('good')))
        self.assertEqual(code, 0, said)
        self.check_refusal('late', self.authority.issue('late', end='20200102000000Z'),
                           'its client certificate ended at 2020-01-02T00:00:00Z', whoami)
        self.check_refusal('foreign', others.issue('foreign'), "its client certificate is not of the server's authority", whoami)
        self.check_refusal('guessed', {'token': 'guessed'}, 'its token is not of this cluster, or was withdrawn', whoami)
        self.check_refusal('ended', {'token': 'e30.eyJleHAiOjE1Nzc4MzY4MDB9.c2ln'}, 'its token ended at 2020-01-01T00:00:00Z')
        self.check_refusal('file', {'tokenFile': str(self.folder / 'no-such-token')}, str(self.folder / 'no-such-token'))
        plugin = {'apiVersion': 'client.authentication.k8s.io/v1', 'command': 'sh', 'interactiveMode': 'Never'}
        self.check_refusal('plugin', {'exec': dict(plugin, args=['-c', 'echo no ticket >&2; exit 3'])},
                           "The credential plug-in 'sh' failed, exit code 3: no ticket", 'To see it fail: sh -c')
        self.check_refusal('none', {'exec': dict(plugin, command='no-such-plugin')}, 'no-such-plugin')

    def test_a_token_that_is_rotated_is_read_again(self):
        self.api.request('POST', '/api/v1/namespaces/%s/secrets' % TEAM, {'metadata': {'name': 'first'}})
        file = self.folder / 'rotated'
        file.write_text(self.token('--bound-object-kind', 'Secret', '--bound-object-name', 'first'))
        operator = self.start_operator('rotating', self.config('rotating', {'tokenFile': str(file)}))
        self.api.create(TEAM, 'tfjobs', job('before', ['sleep', '1']))
        self.await_condition(TEAM, 'before', 'Succeeded')
        # The old one holds no more from here.
        file.write_text(self.token())
        self.api.delete(TEAM, 'secrets', 'first')
        self.api.create(TEAM, 'tfjobs', job('after', ['sleep', '1']))
        self.await_condition(TEAM, 'after', 'Succeeded')
        self.stop(operator)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2, warnings='ignore')
