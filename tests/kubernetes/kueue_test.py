#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TFJobs in queues of the real Kueue: suspended when they come, admitted, preempted, and admitted again, on `weft node`.

    kueue_test.py WEFT
"""
import base64
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

import yaml

import cluster

WEFT = sys.argv[1]
QUEUE = 'kueue.x-k8s.io/queue-name'
PRIORITY = 'kueue.x-k8s.io/priority-class'
CONFIGURATION = '''apiVersion: config.kueue.x-k8s.io/v1beta1
kind: Configuration
namespace: kueue-system
health: {healthProbeBindAddress: "127.0.0.1:%(health)d"}
metrics: {bindAddress: "0"}
webhook: {port: %(webhook)d, certDir: %(certificates)s}
leaderElection: {leaderElect: false}
internalCertManagement: {enable: true, webhookServiceName: kueue-webhook-service, webhookSecretName: kueue-webhook-server-cert}
integrations: {frameworks: [kubeflow.org/tfjob]}
'''
# Room for one job of two tasks; who is of a lower priority makes room.
QUEUES = '''
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: small}
spec: {nodeLabels: {pool: small}}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: all}
spec:
  namespaceSelector: {}
  preemption: {withinClusterQueue: LowerPriority}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: small, resources: [{name: cpu, nominalQuota: 200m}]}]
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: research, namespace: default}
spec: {clusterQueue: all}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: WorkloadPriorityClass
metadata: {name: urgent}
value: 1000
'''


def kueue_sources():
    """The folder of the module from which the program is built: its definitions and webhooks are installed."""
    module = (cluster.HERE / 'kueue' / 'go.mod').read_text()
    version = next(line.split('sigs.k8s.io/kueue ')[1].split()[0] for line in module.splitlines() if 'sigs.k8s.io/kueue v' in line)
    said = subprocess.run(['go', 'mod', 'download', '-json', 'sigs.k8s.io/kueue@' + version], cwd='/', check=True,
                          capture_output=True, text=True).stdout
    return pathlib.Path(json.loads(said)['Dir']) / 'config' / 'components'


class KueueTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.cluster = cluster.Cluster(cls.temporary.name)
        try:
            # Services lead to their endpoints: there is no network of pods here.
            cls.cluster.start('--enable-aggregator-routing=true')
            cls.api = cls.cluster.api
            cls.install()
            cls.cluster.spawn('node', WEFT, 'node', '--bind_pods', '--state', str(cls.folder / 'state'))
            cls.cluster.spawn_operator(WEFT)
            cluster.wait_for(lambda: cls.api.request('GET', '/api/v1/nodes')['items'], 'node')
            cls.cluster.k('label', 'node', 'local', 'pool=small')
            cluster.wait_for(cls.takes_queues, 'queues')
        except BaseException:
            cls.tearDownClass()
            raise

    @classmethod
    def tearDownClass(cls):
        cls.cluster.stop()
        cls.temporary.cleanup()

    @classmethod
    def install(cls):
        sources = kueue_sources()
        for file in sorted((sources / 'crd' / 'bases').glob('*.yaml')):
            cls.cluster.k('apply', '--server-side', '-f', str(file))
        cluster.wait_for(cls.cluster.has_kinds, 'kind of Kueue')
        cls.cluster.k('create', 'namespace', 'kueue-system')
        port, health = (cluster.real_control_plane.free_port() for _ in range(2))
        objects = [
            {'apiVersion': 'v1', 'kind': 'Secret', 'metadata': {'name': 'kueue-webhook-server-cert', 'namespace': 'kueue-system'}},
            {'apiVersion': 'v1', 'kind': 'Service', 'metadata': {'name': 'kueue-webhook-service', 'namespace': 'kueue-system'},
             'spec': {'ports': [{'name': 'https', 'port': 443, 'targetPort': port}]}},
            {'apiVersion': 'v1', 'kind': 'Endpoints', 'metadata': {'name': 'kueue-webhook-service', 'namespace': 'kueue-system'},
             'subsets': [{'addresses': [{'ip': cluster.own_address()}], 'ports': [{'name': 'https', 'port': port}]}]}]
        for each in yaml.safe_load_all((sources / 'webhook' / 'manifests.yaml').read_text()):
            each['metadata']['name'] = 'kueue-' + each['metadata']['name']
            # Those of kinds that this test has: the others would refuse all pods while Kueue starts.
            each['webhooks'] = [webhook for webhook in each['webhooks'] if all(
                rule['apiGroups'] == ['kueue.x-k8s.io'] or rule['resources'] == ['tfjobs'] for rule in webhook['rules'])]
            for webhook in each['webhooks']:
                webhook['clientConfig']['service'].update(name='kueue-webhook-service', namespace='kueue-system')
            objects.append(each)
        cls.cluster.k('apply', '-f', '-', stdin=yaml.safe_dump_all(objects))
        certificates = cls.folder / 'certificates'
        certificates.mkdir()
        configuration = cls.folder / 'kueue.yaml'
        configuration.write_text(CONFIGURATION % {'health': health, 'webhook': port, 'certificates': certificates})
        cls.kueue = cls.cluster.spawn('kueue', cluster.build('kueue'), '--config', str(configuration),
                                      '--feature-gates', 'VisibilityOnDemand=false')
        # A kubelet would mount the secret that it fills.
        data = cluster.wait_for(lambda: cls.api.request(
            'GET', '/api/v1/namespaces/kueue-system/secrets/kueue-webhook-server-cert').get('data'), 'certificate')
        for name, value in data.items():
            (certificates / name).write_bytes(base64.b64decode(value))

        def is_ready():
            if cls.kueue.poll() is not None:
                raise AssertionError('Kueue ended: ' + cls.said_kueue())
            try:
                return urllib.request.urlopen('http://127.0.0.1:%d/readyz' % health, timeout=10).status == 200
            except (urllib.error.URLError, OSError):
                return False
        cluster.wait_for(is_ready, lambda: 'Kueue: ' + cls.said_kueue(), 180, 0.5)

    @classmethod
    def said_kueue(cls):
        return (cls.folder / 'kueue.log').read_text()[-2000:]

    @classmethod
    def takes_queues(cls):
        """Its webhooks answer a moment after it says so."""
        try:
            cls.cluster.k('apply', '-f', '-', stdin=QUEUES)
            return True
        except AssertionError:
            return False

    def submit(self, name, done, **labels):
        def task(replicas):
            return {'replicas': replicas, 'restartPolicy': 'Never', 'template': {'spec': {
                'terminationGracePeriodSeconds': 1, 'containers': [{
                    'name': 'tensorflow', 'image': 'i', 'resources': {'requests': {'cpu': '100m'}},
                    'command': ['sh', '-c', 'while [ ! -e %s ]; do sleep 0.1; done' % done]}]}}}
        self.api.create('default', 'tfjobs', {
            'apiVersion': 'kubeflow.org/v1', 'kind': 'TFJob', 'metadata': {'name': name, 'labels': {QUEUE: 'research', **labels}},
            'spec': {'runPolicy': {'cleanPodPolicy': 'All'}, 'tfReplicaSpecs': {'PS': task(1), 'Worker': task(1)}}})

    def job(self, name):
        return self.api.get('default', 'tfjobs', name)

    def state(self, name):
        """Of the job: whether it is suspended, its true conditions, and the phases of its pods."""
        job = self.job(name)
        pods = self.api.list('default', 'pods', 'training.kubeflow.org/job-name=' + name)
        return (job['spec']['runPolicy'].get('suspend', False),
                {each['type'] for each in job.get('status', {}).get('conditions') or [] if each['status'] == 'True'},
                sorted(pod['status'].get('phase', '') for pod in pods))

    def await_state(self, name, is_there, what):
        cluster.wait_for(lambda: is_there(*self.state(name)),
                         lambda: '%s of %s: %s; Kueue: %s' % (what, name, self.state(name), self.said_kueue()))

    def await_running(self, name):
        self.await_state(name, lambda suspended, conditions, pods: not suspended and 'Running' in conditions and pods == ['Running'] * 2,
                         'run')

    def await_suspended(self, name):
        self.await_state(name, lambda suspended, conditions, pods: suspended and 'Suspended' in conditions and pods == [], 'suspension')

    def workload_conditions(self, name):
        """Of what Kueue keeps of the job; it may not be there yet."""
        uid = self.job(name)['metadata']['uid']
        all_of = self.api.request('GET', '/apis/kueue.x-k8s.io/v1beta1/namespaces/default/workloads')['items']
        return [condition for each in all_of if each['metadata'].get('ownerReferences', [{}])[0].get('uid') == uid
                for condition in each.get('status', {}).get('conditions') or []]

    def await_reason(self, name, reason):
        cluster.wait_for(lambda: any(each['reason'] == reason for each in self.workload_conditions(name)),
                         lambda: '%s of %s: %s' % (reason, name, self.workload_conditions(name)))

    def tearDown(self):
        for job in self.api.list('default', 'tfjobs'):
            self.api.delete('default', 'tfjobs', job['metadata']['name'])
        cluster.wait_for(lambda: not self.api.list('default', 'pods'), 'end of all pods')

    def test_a_job_is_admitted_preempted_and_admitted_again(self):
        done, urgent_done = self.folder / 'done', self.folder / 'urgent.done'
        self.submit('first', done)
        self.await_running('first')
        # Kueue says on which nodes; the pods carry it.
        pods = self.api.list('default', 'pods', 'training.kubeflow.org/job-name=first')
        self.assertEqual([pod['spec']['nodeSelector'] for pod in pods], [{'pool': 'small'}] * 2)
        # The quota is spent: the next waits without a pod, and its condition says so.
        self.submit('second', done)
        self.await_suspended('second')
        self.await_reason('second', 'Pending')
        # One that is urgent takes the place of the first, which keeps nothing.
        self.submit('urgent', urgent_done, **{PRIORITY: 'urgent'})
        self.await_running('urgent')
        self.await_suspended('first')
        suspended = self.job('first')
        self.assertEqual([each.get('active', 0) for each in suspended['status']['replicaStatuses'].values()], [0, 0])
        self.assertNotIn('nodeSelector', suspended['spec']['tfReplicaSpecs']['Worker']['template']['spec'])
        self.await_reason('first', 'Preempted')
        self.await_suspended('second')
        # When it has ended, the first runs again to its end, and then the second.
        urgent_done.touch()
        self.await_state('urgent', lambda _, conditions, pods: 'Succeeded' in conditions and pods == [], 'end')
        self.await_running('first')
        self.await_suspended('second')
        done.touch()
        for name in ('first', 'second'):
            self.await_state(name, lambda _, conditions, pods: 'Succeeded' in conditions and pods == [], 'end')
            cluster.wait_for(lambda: any(each['type'] == 'Finished' for each in self.workload_conditions(name)), 'finish')

    def test_a_queue_that_is_stopped_gives_its_jobs_back(self):
        done = self.folder / 'never'
        self.submit('held', done)
        self.await_running('held')
        queue = '/apis/kueue.x-k8s.io/v1beta1/clusterqueues/all'
        self.api.request('PATCH', queue, {'spec': {'stopPolicy': 'HoldAndDrain'}}, cluster.api_client.MERGE)
        self.await_suspended('held')
        self.api.request('PATCH', queue, {'spec': {'stopPolicy': 'None'}}, cluster.api_client.MERGE)
        self.await_running('held')
        # A job that goes gives back what it had.
        self.api.delete('default', 'tfjobs', 'held')
        self.submit('next', done)
        self.await_running('next')


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2, warnings='ignore')
