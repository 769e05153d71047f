#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft operator` beside the reference operator on one API server: the same jobs, the same fates of their pods.

    differential_test.py WEFT [CASE PATTERN]

Each operator has a namespace. What they make of a job is compared after each step; a difference that
docs/differential.md does not list fails, and so does a row there that no difference needs.
"""
import concurrent.futures
import fnmatch
import pathlib
import re
import sys
import tempfile
import time
import unittest
import urllib.request

import api_client
import audit_match
import cluster
import differential_cases
import differential_fates
import differential_state

WEFT = sys.argv[1]
PATTERN = sys.argv[2] if len(sys.argv) > 2 else '*'
PAGE = cluster.HERE.parent.parent / 'docs' / 'differential.md'
OURS, THEIRS = 'ours', 'theirs'
# What the reference asks for in a second is of no matter here.
FAST = ('--qps', '1000', '--burst', '1000')
QUIET = 1.5


class DifferentialTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        reference = cluster.build('reference')
        cls.temporary = tempfile.TemporaryDirectory()
        cls.cluster = cluster.Cluster(cls.temporary.name)
        try:
            cls.cluster.start()
            cls.api = cls.cluster.api
            for namespace in (OURS, THEIRS):
                cls.api.request('POST', '/api/v1/namespaces', {'metadata': {'name': namespace}})
            cls.ports = {namespace: cluster.real_control_plane.free_port() for namespace in (OURS, THEIRS)}
            metrics = {each: ('--metrics-bind-address', '127.0.0.1:%d' % port) for each, port in cls.ports.items()}
            cls.cluster.spawn_operator(WEFT, '--namespace', OURS, *metrics[OURS])
            cls.cluster.spawn('reference', reference, '--namespace', THEIRS, '--controller-threads', '4', *FAST,
                              *metrics[THEIRS])
        except BaseException:
            cls.tearDownClass()
            raise
        cls.pool = concurrent.futures.ThreadPoolExecutor(8)

    @classmethod
    def tearDownClass(cls):
        cls.cluster.stop()
        cls.temporary.cleanup()

    def both(self, call, cases):
        """call(namespace, case) for all at once."""
        done = [self.pool.submit(call, namespace, case) for case in cases for namespace in (OURS, THEIRS)]
        for each in done:
            each.result()

    def rest(self):
        """Both operators have seen what came before, and nothing has changed for a while."""
        for namespace in (OURS, THEIRS):
            differential_fates.await_sentinel(self.api, namespace)
        before, since = None, time.monotonic()
        deadline = since + 60
        while before is None or time.monotonic() - since < QUIET:
            now = set().union(*(differential_state.versions(self.api, namespace) for namespace in (OURS, THEIRS)))
            if now != before:
                changed = sorted({each[:3] for each in now.symmetric_difference(before or now)})
                self.assertLess(time.monotonic(), deadline, 'the operators come to no rest: %s change' % changed)
                before, since = now, time.monotonic()
            time.sleep(0.3)
        return [differential_state.Snapshot(self.api, namespace) for namespace in (OURS, THEIRS)]

    def compare(self, table, cases, step, again):
        ours, theirs = self.rest()
        found = {}
        for name, _, _ in cases:
            for where, here, there in differential_state.differences(ours.flat(name + again), theirs.flat(name + again)):
                if not table.knows(name, where):
                    told = '%s, step %d: %s\n    here:  %s\n    there: %s' % (name, step, where, here, there)
                    found.setdefault(name, []).append(told)
        return found

    def play(self, table, cases, again=''):
        """Each case from its job's creation to its last step: what differs, by case. `again` ends the jobs' names."""
        begun = time.monotonic()
        self.both(lambda namespace, case: differential_fates.create(self.api, namespace, (case[0] + again, *case[1:])), cases)
        found = {}
        for step in range(max(len(steps) for _, _, steps in cases)):
            now = [case for case in cases if step < len(case[2])]
            self.both(lambda namespace, case: differential_fates.befall(self.api, namespace, case[0] + again, case[2][step]),
                      now)
            unknown = self.compare(table, now, step, again)
            print('step %d: %d jobs, %.0f s' % (step, len(now), time.monotonic() - begun), file=sys.stderr)
            if unknown:
                # Maybe one of them is slow today.
                time.sleep(5)
                unknown = self.compare(table, now, step, again)
            for name, told in unknown.items():
                found.setdefault(name, []).extend(told)
        return found

    def test_the_same_becomes_of_every_job(self):
        """What differs when a case is played alone again is no race between an operator and the fates of its pods."""
        table = differential_state.Table(PAGE)
        cases = [case for case in differential_cases.all_cases() if fnmatch.fnmatchcase(case[0], PATTERN)]
        found = self.play(table, cases)
        for again in ('-again', '-once-more'):
            if not found:
                break
            print('\n'.join(['played%s:' % again.replace('-', ' ')] + sum(found.values(), [])), file=sys.stderr)
            found = self.play(table, [case for case in cases if case[0] in found], again)
        if found:
            told = sum(found.values(), [])
            self.fail('%d differences that %s does not list:\n%s' % (len(told), PAGE.name, '\n'.join(told)))
        if PATTERN == '*':
            self.assertFalse(table.unused(), 'rows of %s that nothing needs' % PAGE.name)

    def make(self, name, spec):
        case = (name, spec, [])
        self.both(lambda namespace, case: differential_fates.create(self.api, namespace, case), [case])
        return case

    def await_condition(self, namespace, name, kind, seconds=60):
        cluster.wait_for(lambda: differential_fates.has_condition(self.api.get(namespace, 'tfjobs', name), kind),
                         '%s of %s/%s' % (kind, namespace, name), seconds)

    def test_a_deadline_needs_no_other_event(self):
        """There its timer goes to a queue that does nothing."""
        name = 'silent'
        case = self.make(name, differential_cases.spec({'Worker': 1}, run={'activeDeadlineSeconds': 4}))
        self.both(lambda namespace, _: differential_fates.befall_pod(self.api, namespace, name + '-worker-0', 'run'), [case])
        self.await_condition(OURS, name, 'Failed')
        time.sleep(8)
        self.assertFalse(differential_fates.has_condition(self.api.get(THEIRS, 'tfjobs', name), 'Failed'))
        differential_fates.befall_job(self.api, THEIRS, name, 'touch')
        self.await_condition(THEIRS, name, 'Failed')

    def test_a_back_off_limit_bounds_restarts_with_new_pods(self):
        """There each new pod begins to count at zero."""
        name, pod = 'again', 'again-worker-0'
        self.make(name, differential_cases.spec({'Worker': 1}, 'ExitCode', {'backoffLimit': 1}))

        def fail_until(namespace, failures):
            last = None
            for count in range(failures):
                def fresh():
                    held = self.api.get(namespace, 'pods', pod)
                    return held if held and held['metadata']['uid'] != last else None
                held = cluster.wait_for(fresh, 'pod %d of %s/%s' % (count, namespace, name))
                last = held['metadata']['uid']
                differential_fates.befall_pod(self.api, namespace, pod, 'exit 137')

        fail_until(OURS, 2)
        self.await_condition(OURS, name, 'Failed')
        fail_until(THEIRS, 6)
        self.assertFalse(differential_fates.has_condition(self.api.get(THEIRS, 'tfjobs', name), 'Failed'))
        self.api.delete(THEIRS, 'tfjobs', name)

    def test_pods_of_a_job_are_made_together(self):
        """There they are made one by one."""
        name = 'wide'
        self.make(name, differential_cases.spec({'Worker': 40}))
        for namespace in (OURS, THEIRS):
            cluster.wait_for(lambda: len(self.api.list(namespace, 'pods', 'training.kubeflow.org/job-name=' + name)) == 40,
                             'pods of %s/%s' % (namespace, name))
        calls = {namespace: audit_match.creations(self.cluster, namespace, name + '-') for namespace in (OURS, THEIRS)}
        self.assertEqual({namespace: len(each) for namespace, each in calls.items()}, {OURS: 40, THEIRS: 40})
        self.assertEqual(audit_match.most_at_once(calls[THEIRS]), 1)
        self.assertGreater(audit_match.most_at_once(calls[OURS]), 1)

    def test_a_type_of_no_replicas_has_no_pods(self):
        """There its first pod is made and deleted without an end."""
        name, pod = 'empty', 'empty-ps-0'
        self.make(name, differential_cases.spec({'PS': 0, 'Worker': 1}))
        for namespace in (OURS, THEIRS):
            cluster.wait_for(lambda: self.api.get(namespace, 'pods', name + '-worker-0'), 'worker of ' + namespace)
        cluster.wait_for(lambda: len(audit_match.creations(self.cluster, THEIRS, pod)) > 3, 'pods of the reference')
        self.assertEqual(audit_match.creations(self.cluster, OURS, pod), [])
        self.api.delete(THEIRS, 'tfjobs', name)

    def quota(self, namespace, used, hard):
        """As the controller of quotas would keep it, which does not run here."""
        path = '/api/v1/namespaces/%s/resourcequotas' % namespace
        spec = {'metadata': {'name': 'few'}, 'spec': {'hard': {'pods': str(hard)}}}
        made = self.api.request('POST', path, spec)
        made['status'] = {'hard': {'pods': str(hard)}, 'used': {'pods': str(used)}}
        self.api.request('PUT', path + '/few/status', made)
        pod = {'metadata': {'name': 'tried'}, 'spec': {'containers': [{'name': 'c', 'image': 'i'}]}}

        def is_known():
            try:
                self.api.request('POST', self.api.path(namespace, 'pods') + '?dryRun=All', pod)
            except api_client.ApiError as error:
                return error.code == 403
            return False
        cluster.wait_for(is_known, 'quota of ' + namespace)

    def test_a_refused_pod_shows_in_the_job(self):
        """There in events alone."""
        name = 'refused'
        for namespace in (OURS, THEIRS):
            self.quota(namespace, 10000, 10000)
        self.make(name, differential_cases.spec({'Worker': 1}))

        def condition(namespace):
            job = self.api.get(namespace, 'tfjobs', name)
            found = [each for each in job.get('status', {}).get('conditions', []) if each['type'] == 'ReplicaFailure']
            return found[0] if found else None
        told = cluster.wait_for(lambda: condition(OURS), 'the condition')
        self.assertEqual((told['status'], told['reason']), ('True', 'FailedCreate'))
        self.assertIn('exceeded quota: few, requested: pods=1, used: pods=10k, limited: pods=10k', told['message'])
        self.assertEqual(self.api.get(OURS, 'tfjobs', name)['status']['conditions'][-1]['type'], 'Created')
        cluster.wait_for(lambda: [each for each in self.api.list(THEIRS, 'events') if each['reason'] == 'FailedCreatePod'
                                  and each['involvedObject']['name'] == name], 'the event of the reference')
        self.assertIsNone(condition(THEIRS))
        for namespace in (OURS, THEIRS):
            self.api.delete(namespace, 'resourcequotas', 'few')
        cluster.wait_for(lambda: self.api.get(OURS, 'pods', name + '-worker-0'), 'the pod', 120)
        cluster.wait_for(lambda: condition(OURS) is None, 'the end of the condition')
        for namespace in (OURS, THEIRS):
            self.api.delete(namespace, 'tfjobs', name)

    def metrics(self, namespace):
        """Name and labels of each line that its operator serves."""
        with urllib.request.urlopen('http://127.0.0.1:%d/metrics' % self.ports[namespace], timeout=60) as page:
            return {line.rsplit(' ', 1)[0] for line in page.read().decode().splitlines() if not line.startswith('#')}

    def test_the_metrics_have_the_known_names(self):
        """A job of each fate has been there by then, so that all are served that come with the first of a kind."""
        name = 'counted'
        self.make(name, differential_cases.spec({'Worker': 1}, 'ExitCode'))
        for namespace in (OURS, THEIRS):
            for fate in ('exit 137', 'exit 0'):
                def is_ready():
                    pod = self.api.get(namespace, 'pods', name + '-worker-0')
                    return pod and pod['status'].get('phase') in (None, 'Pending')
                cluster.wait_for(is_ready, 'pod of %s' % namespace)
                differential_fates.befall_pod(self.api, namespace, name + '-worker-0', fate)
            self.await_condition(namespace, name, 'Succeeded')
            self.api.delete(namespace, 'tfjobs', name)

        def names(namespace):
            return {each.split('{')[0] for each in self.metrics(namespace)}
        gone = 'training_operator_jobs_deleted_total'
        cluster.wait_for(lambda: gone in names(OURS), 'deleted jobs')
        allowed = [pattern.strip() for row in re.findall(r'^\| `([^`]*)` \| [^|]* \|$', PAGE.read_text(), re.M)
                   for pattern in row.split(',')]
        missing = names(THEIRS) - names(OURS)
        unlisted = {each for each in missing if not any(fnmatch.fnmatchcase(each, pattern) for pattern in allowed)}
        self.assertEqual(unlisted, set(), 'names that %s does not list' % PAGE.name)
        unneeded = [pattern for pattern in allowed if not any(fnmatch.fnmatchcase(each, pattern) for each in missing)]
        self.assertEqual(unneeded, [], 'rows of %s that nothing needs' % PAGE.name)
        # With the same labels, where they are the controller's.
        labels = {namespace: {each for each in self.metrics(namespace) if 'name="tfjob-controller"' in each and
                              'bucket' not in each} for namespace in (OURS, THEIRS)}
        self.assertTrue(labels[THEIRS])
        self.assertEqual({each for each in labels[THEIRS] - labels[OURS] if each.split('{')[0] not in missing}, set())

    def test_what_it_may_do_is_what_it_does(self):
        """After the tests above: the rights of deploy/rbac and the calls in the audit log, both ways."""
        if PATTERN != '*':
            return
        self.run_a_compact_job()
        may, does, refused = audit_match.rights(self.api), audit_match.used(self.cluster), audit_match.refused(self.cluster)
        self.assertEqual(refused, set())
        self.assertEqual(does - may, set(), 'calls without a rule')
        self.assertEqual(may - does - audit_match.WITHOUT_A_CALL, set(), 'rules without a call')
        self.assertEqual(audit_match.WITHOUT_A_CALL - may, set())

    def run_a_compact_job(self):
        """Of the seeds' kind, to its end and away."""
        self.api.create(OURS, 'tensorflows', {
            'apiVersion': 'krallistic.github.com/v1', 'kind': 'Tensorflow', 'metadata': {'name': 'compact'},
            'spec': {'image': 'i', 'ps_count': 1, 'worker_count': 1, 'ttl_seconds_after_finished': 0}})
        differential_fates.befall_pod(self.api, OURS, 'compact-worker-0', 'exit 0')
        cluster.wait_for(lambda: self.api.get(OURS, 'tensorflows', 'compact') is None, 'end of the compact job')

    def test_what_needs_a_right_without_a_call(self):
        """An owner that blocks deletion needs the right to its finalizers, which admission asks for by itself."""
        audit_match.check_finalizers(self)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2, warnings='ignore')
