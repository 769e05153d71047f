#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A hundred jobs of eleven pods on a real API server: none lost, none made twice, nothing written without need.

    many_jobs_test.py WEFT

bench/jobs.py measures the same with more of them.
"""
import collections
import concurrent.futures
import signal
import sys
import tempfile
import unittest

import cluster
import differential_cases
import differential_fates

WEFT = sys.argv[1]
JOBS = 100
REPLICAS = {'Chief': 1, 'PS': 2, 'Worker': 8}
TASKS = sum(REPLICAS.values())
SPACE = 'many'


class ManyJobsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.cluster = cluster.Cluster(cls.temporary.name)
        try:
            cls.cluster.start()
        except BaseException:
            cls.tearDownClass()
            raise
        cls.api = cls.cluster.api
        cls.pool = concurrent.futures.ThreadPoolExecutor(8)

    @classmethod
    def tearDownClass(cls):
        cls.cluster.stop()
        cls.temporary.cleanup()

    def start_operator(self):
        return self.cluster.spawn_operator(WEFT, '--namespace', SPACE)

    def stop_operator(self, process, by=signal.SIGTERM):
        process.send_signal(by)
        process.wait(60)
        self.cluster.processes.remove(process)

    def conditions(self, kind):
        return sum(differential_fates.has_condition(job, kind) for job in self.api.list(SPACE, 'tfjobs'))

    def for_all(self, call, items):
        list(self.pool.map(call, items))

    def audited_writes(self):
        return [entry for entry in self.cluster.audited()
                if entry['user']['username'] == cluster.ACCOUNT and entry['verb'] in ('create', 'update', 'patch', 'delete')]

    def writes(self):
        """Of the operator, by verb and resource; not what was refused: a killed operator's last call may be made again."""
        return collections.Counter((entry['verb'], entry['objectRef']['resource']) for entry in self.audited_writes()
                                   if entry['responseStatus'].get('code', 500) < 300)

    def cut_off(self, resource):
        """Creations that may have been made for an operator that was killed before it was told."""
        return sum(entry['verb'] == 'create' and entry['objectRef']['resource'] == resource
                   and entry['responseStatus'].get('code', 500) >= 499 for entry in self.audited_writes())

    def test_a_hundred_jobs(self):
        self.api.request('POST', '/api/v1/namespaces', {'metadata': {'name': SPACE}})
        spec = differential_cases.spec(REPLICAS, 'ExitCode', {'cleanPodPolicy': 'All'})
        self.for_all(lambda index: differential_fates.create(self.api, SPACE, ('job-%d' % index, spec, [])), range(JOBS))
        operator = self.start_operator()
        # Killed in the middle, it goes on where it was.
        cluster.wait_for(lambda: len(self.api.list(SPACE, 'pods')) > JOBS * TASKS // 4, 'quarter of the pods', period=0.05)
        self.stop_operator(operator, signal.SIGKILL)
        operator = self.start_operator()
        cluster.wait_for(lambda: len(self.api.list(SPACE, 'pods')) >= JOBS * TASKS, '%d pods' % (JOBS * TASKS), 300, 0.5)
        pods = self.api.list(SPACE, 'pods')
        owners = collections.Counter(pod['metadata']['ownerReferences'][0]['name'] for pod in pods)
        self.assertEqual(set(owners.values()), {TASKS})
        self.assertEqual(len(owners), JOBS)
        self.for_all(lambda pod: differential_fates.befall_pod(self.api, SPACE, pod['metadata']['name'], 'run'), pods)
        cluster.wait_for(lambda: self.conditions('Running') == JOBS, 'running of all jobs', 300, 0.5)
        self.assertEqual(len(self.api.list(SPACE, 'services')), JOBS * TASKS)
        self.for_all(lambda index: differential_fates.befall_pod(self.api, SPACE, 'job-%d-chief-0' % index, 'exit 0'),
                     range(JOBS))
        cluster.wait_for(lambda: self.conditions('Succeeded') == JOBS, 'success of all jobs', 300, 0.5)
        cluster.wait_for(lambda: not self.api.list(SPACE, 'pods') and not self.api.list(SPACE, 'services'), 'clean-up', 300)
        writes = self.writes()
        for resource in ('pods', 'services'):
            self.assertLessEqual(writes['create', resource], JOBS * TASKS, writes)
            self.assertGreaterEqual(writes['create', resource], JOBS * TASKS - self.cut_off(resource), writes)
        self.assertEqual(writes['delete', 'pods'], JOBS * TASKS, writes)
        self.stop_operator(operator)
        self.nothing_to_do(writes)

    def nothing_to_do(self, before):
        """An operator that starts when all is done writes nothing: by the time it has made a new job's pod it has seen
        all the others."""
        operator = self.start_operator()
        differential_fates.create(self.api, SPACE, ('last', differential_cases.spec({'Worker': 1}), []))
        cluster.wait_for(lambda: self.api.get(SPACE, 'pods', 'last-worker-0'), 'pod of the last job')
        cluster.wait_for(lambda: differential_fates.has_condition(self.api.get(SPACE, 'tfjobs', 'last'), 'Created'), 'status')
        self.stop_operator(operator)
        after = self.writes()
        after.subtract(before)
        self.assertEqual((after['create', 'pods'], after['create', 'services'], after['update', 'tfjobs']), (1, 1, 1), after)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2, warnings='ignore')
