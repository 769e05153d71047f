#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""deploy/webhook_cluster on a real API server: what it installs is what runs here, with its flags and its rights.

    webhook_test.py WEFT
"""
import json
import pathlib
import signal
import ssl
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

import yaml

import cluster
import differential_cases

WEFT = sys.argv[1]
GROUP = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/weft-jobs'
HOST = 'weft-webhook.weft-system.svc'
WRONG = 'ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive'


def bad_job(name='wrong'):
    """The schema lets it pass."""
    spec = differential_cases.spec({'Worker': 1})
    spec['tfReplicaSpecs']['Worker']['template']['spec']['containers'][0]['ports'] = [{'containerPort': 70000}]
    return {'apiVersion': 'kubeflow.org/v1', 'kind': 'TFJob', 'metadata': {'name': name}, 'spec': spec}


class WebhookTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.cluster = cluster.Cluster(cls.temporary.name)
        try:
            # Services lead to their endpoints: there is no network of pods here.
            cls.cluster.start('--enable-aggregator-routing=true')
            cls.cluster.k('apply', '--server-side', '-k', str(cluster.DEPLOY / 'webhook_cluster'))
            token = cls.cluster.k('create', 'token', 'weft-operator', '-n', 'weft-system').strip()
            cls.config = cls.folder / 'webhook.kubeconfig'
            cls.config.write_text(cls.cluster.plane.kubeconfig.read_text().replace(cls.cluster.plane.token, token))
            cls.api = cls.cluster.api
        except BaseException:
            cls.tearDownClass()
            raise

    @classmethod
    def tearDownClass(cls):
        cls.cluster.stop()
        cls.temporary.cleanup()

    def setUp(self):
        self.operator = None

    def tearDown(self):
        if self.operator is not None:
            self.stop(signal.SIGKILL)

    def start(self, folder, **more):
        """As the Deployment says, but on free ports, in `folder` and with other flags (None: without). The service leads to it."""
        deployment = self.api.request('GET', '/apis/apps/v1/namespaces/weft-system/deployments/weft-operator')
        command = deployment['spec']['template']['spec']['containers'][0]['command']
        self.assertEqual(command[:6], ['weft', 'exec', '--restart', 'Never', '--', 'weft'])
        port = cluster.real_control_plane.free_port()
        self.health = cluster.real_control_plane.free_port()
        self.held = self.folder / folder
        changed = {'--webhook_port': port, '--webhook_folder': self.held, '--health-probe-bind-address': ':%d' % self.health}
        changed.update(('--' + name, value) for name, value in more.items())
        words = [word.replace('$(POD_NAMESPACE)', 'weft-system') for word in command[6:]]
        words = [word for word in words if word.split('=')[0] not in changed]
        words += ['%s=%s' % each for each in changed.items() if each[1] is not None]
        self.operator = self.cluster.spawn('operator', WEFT, *words, kubeconfig=self.config)
        self.cluster.k('apply', '-f', '-', stdin=json.dumps({
            'apiVersion': 'v1', 'kind': 'Endpoints', 'metadata': {'name': 'weft-webhook', 'namespace': 'weft-system'},
            'subsets': [{'addresses': [{'ip': cluster.own_address()}], 'ports': [{'name': 'https', 'port': port}]}]}))

    def stop(self, by=signal.SIGTERM):
        self.operator.send_signal(by)
        self.operator.wait(60)
        self.cluster.processes.remove(self.operator)
        self.operator = None

    def set_policy(self, policy):
        self.cluster.k('patch', 'validatingwebhookconfiguration', 'weft-jobs', '--type=json', '-p', json.dumps([
            {'op': 'replace', 'path': '/webhooks/0/failurePolicy', 'value': policy},
            {'op': 'replace', 'path': '/webhooks/0/timeoutSeconds', 'value': 30}]))

    def create(self, job, dry=True):
        """What the API server says to it; None: it took it."""
        try:
            self.api.request('POST', '/apis/kubeflow.org/v1/namespaces/default/tfjobs%s' % ('?dryRun=All' if dry else ''), job)
        except cluster.api_client.ApiError as error:
            return str(error)
        return None

    def await_refusal(self):
        said = cluster.wait_for(lambda: (lambda said: said and WRONG in said and said)(self.create(bad_job())), 'refusal')
        self.assertIn('containers[0].' + WRONG, said)

    def bundle(self):
        return self.api.request('GET', GROUP)['webhooks'][0]['clientConfig'].get('caBundle', '')

    def healthy(self, path):
        trusting = ssl.create_default_context()
        trusting.check_hostname = False
        trusting.verify_mode = ssl.CERT_NONE
        try:
            with urllib.request.urlopen('https://localhost:%d%s' % (self.health, path), timeout=30, context=trusting) as page:
                return page.read() == b'ok\n'
        except (urllib.error.URLError, OSError):
            return False

    def await_ready(self):
        def is_ready():
            self.assertIsNone(self.operator.poll(), (self.folder / 'operator.log').read_text()[-2000:])
            return self.healthy('/readyz')
        cluster.wait_for(is_ready, 'readiness')

    def test_wrong_jobs_are_refused(self):
        self.set_policy('Fail')
        self.start('first')
        self.await_ready()
        self.assertTrue(self.healthy('/healthz'))
        self.await_refusal()
        good = bad_job()
        del good['spec']['tfReplicaSpecs']['Worker']['template']['spec']['containers'][0]['ports']
        self.assertIsNone(self.create(good))
        # A pod that lost its folder makes another certificate; both are trusted.
        before = self.bundle()
        self.stop(signal.SIGKILL)
        self.start('second')
        self.await_ready()
        self.await_refusal()
        self.assertGreater(len(self.bundle()), len(before))

    def test_a_certificate_is_renewed_while_jobs_come(self):
        self.set_policy('Fail')
        self.start('short', webhook_validity='40s')
        self.await_ready()
        self.await_refusal()
        seen = set()

        def renewed_twice():
            # Not once is it out of reach.
            self.assertIn(WRONG, self.create(bad_job()))
            seen.add((self.held / 'tls.crt').read_text())
            return len(seen) == 3
        cluster.wait_for(renewed_twice, 'third certificate', 300)

    def test_without_an_operator_the_policy_holds(self):
        self.start('gone')
        self.await_ready()
        self.set_policy('Fail')
        self.await_refusal()
        self.stop(signal.SIGKILL)
        said = cluster.wait_for(lambda: self.create(bad_job()), 'failure')
        self.assertIn('failed calling webhook', said)
        self.set_policy('Ignore')
        cluster.wait_for(lambda: self.create(bad_job()) is None, 'job that is taken')
        # What got past fails for the same reason.
        self.assertIsNone(self.create(bad_job('past'), dry=False))
        self.start('back')
        job = cluster.wait_for(lambda: (lambda job: job.get('status', {}).get('conditions') and job)(
            self.api.get('default', 'tfjobs', 'past')), 'conditions')
        self.assertIn(WRONG, job['status']['conditions'][-1]['message'])

    def test_it_says_what_is_missing(self):
        self.start('lost', webhook_configuration='other')
        log = self.folder / 'operator.log'
        cluster.wait_for(lambda: 'other' in log.read_text() and 'forbidden' in log.read_text(), 'warning')
        self.assertFalse(self.healthy('/readyz'))
        self.assertTrue(self.healthy('/healthz'))

    def test_the_file_for_people_says_the_same(self):
        """What the operator writes without --webhook_configuration, but for the way to it."""
        deployed = next(item for item in yaml.safe_load_all((cluster.DEPLOY / 'webhook' / 'webhook.yaml').read_text())
                        if item['kind'] == 'ValidatingWebhookConfiguration')
        self.start('people', webhook_configuration=None)
        written = self.held / 'webhook.yaml'
        self.await_ready()
        written = yaml.safe_load(written.read_text())
        for each in (deployed, written):
            del each['webhooks'][0]['clientConfig']
        self.assertEqual(written, deployed)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2, warnings='ignore')
