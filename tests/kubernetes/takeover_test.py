#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two operators at a real API server: the leader is killed, or stands still beyond its lease, while it makes pods.

    takeover_test.py WEFT

Who led when, and who wrote when, is what the API server's audit log says: nobody writes after another one leads.
"""
import pathlib
import signal
import sys
import tempfile
import threading
import unittest

import cluster
import differential_cases

WEFT = sys.argv[1]
TIMES = ('--leader-elect-lease-duration', '4s', '--leader-elect-renew-deadline', '3s',
         '--leader-elect-retry-period', '500ms')
USERS = ('first', 'second', 'third')
LEASE = '/apis/coordination.k8s.io/v1/namespaces/weft-system/leases/weft-operator'
WRITES = ('create', 'update', 'patch', 'delete')
WORKERS = 3


class Stream(threading.Thread):
    """Makes a job every now and then until it is ended, so that a leader always has something to write."""

    def __init__(self, api):
        super().__init__(daemon=True)
        self.api = api
        self.names = []
        self.is_over = threading.Event()

    def run(self):
        while not self.is_over.wait(0.1):
            name = 'job-%d' % len(self.names)
            self.api.create('default', 'tfjobs', {
                'apiVersion': 'kubeflow.org/v1', 'kind': 'TFJob', 'metadata': {'name': name},
                'spec': differential_cases.spec({'Worker': WORKERS})})
            self.names.append(name)

    def end(self):
        self.is_over.set()
        self.join()


class TakeoverTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        self.cluster = cluster.Cluster(self.temporary.name)
        self.cluster.plane.users = USERS
        self.addCleanup(self.temporary.cleanup)
        self.addCleanup(self.cluster.stop)
        self.cluster.start()
        self.api = self.cluster.api
        self.operators = {}

    def start(self, user):
        """Each as a user of its own, by whom the audit log knows it."""
        config = self.folder / (user + '.kubeconfig')
        token = self.cluster.plane.tokens[user]
        config.write_text(self.cluster.plane.kubeconfig.read_text().replace(self.cluster.plane.token, token))
        self.operators[user] = self.cluster.spawn(user, WEFT, 'operator', '--leader-elect', *TIMES,
                                                  '--leader-elect-resource-namespace', 'weft-system', kubeconfig=config)

    def entries(self):
        """(begin, end, user, is of the lease) of each write that the server did; times of one format, as text."""
        for entry in self.cluster.audited():
            user = entry['user']['username']
            target = entry.get('objectRef', {})
            if user in USERS and entry['verb'] in WRITES and entry.get('responseStatus', {}).get('code', 500) < 300:
                yield (entry['requestReceivedTimestamp'], entry['stageTimestamp'], user,
                       target.get('resource') == 'leases')

    def leader(self):
        """Who has written the lease last."""
        holders = [user for _, _, user, is_lease in sorted(self.entries(), key=lambda each: each[1]) if is_lease]
        return holders[-1] if holders else None

    def await_leader_beside(self, *others):
        return cluster.wait_for(lambda: (lambda user: user not in others and user)(self.leader()), 'other leader')

    def await_writes(self, user, count=30):
        """So many more than there are now."""
        def writes():
            return sum(1 for _, _, who, is_lease in self.entries() if who == user and not is_lease)
        before = writes()
        cluster.wait_for(lambda: writes() >= before + count, 'writes of ' + user)

    def check_pods(self, names):
        wanted = {'%s-worker-%d' % (name, i) for name in names for i in range(WORKERS)}

        def found():
            return {pod['metadata']['name'] for pod in self.api.list('default', 'pods')}
        cluster.wait_for(lambda: found() == wanted, lambda: 'pods %s' % sorted(wanted ^ found()))

    def check_writes(self):
        """None ends after another one's lease has begun."""
        entries = sorted(self.entries(), key=lambda each: each[1])
        terms = []
        for begin, end, user, is_lease in entries:
            if is_lease and (not terms or terms[-1][1] != user):
                terms.append((end, user))
        for begin, end, user, is_lease in entries:
            leaders = [who for since, who in terms if since <= end]
            if not is_lease:
                self.assertTrue(leaders, '%s writes at %s, before anybody leads' % (user, end))
                self.assertEqual(user, leaders[-1], 'it writes at %s to %s; the terms are %s' % (begin, end, terms))
        return [user for _, user in terms]

    def test_nobody_writes_after_another_one_leads(self):
        self.start('first')
        self.assertEqual(self.await_leader_beside(None), 'first')
        self.start('second')
        stream = Stream(self.api)
        stream.start()
        try:
            self.await_writes('first')
            self.operators['first'].send_signal(signal.SIGKILL)
            self.assertEqual(self.await_leader_beside('first'), 'second')
            self.await_writes('second')
            self.start('third')
            # In the middle of its work, and beyond its lease; what it had begun it would now go on with.
            rounds = {}
            for stopped, other in (('second', 'third'), ('third', 'second'), ('second', 'third')):
                self.operators[stopped].send_signal(signal.SIGSTOP)
                try:
                    self.assertEqual(self.await_leader_beside(stopped), other)
                    self.await_writes(other)
                finally:
                    self.operators[stopped].send_signal(signal.SIGCONT)
                times = rounds.setdefault(stopped, 0) + 1
                rounds[stopped] = times
                log = self.folder / (stopped + '.log')
                cluster.wait_for(lambda: log.read_text().count('leads no more') == times,
                                 'word of %s that it leads no more' % stopped)
                self.await_writes(other)
        finally:
            stream.end()
        self.check_pods(stream.names)
        self.assertEqual(self.check_writes(), ['first', 'second', 'third', 'second', 'third'])


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2, warnings='ignore')
