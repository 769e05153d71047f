#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Workers that come and go: examples/elastic with workers that are killed and added, and leases whose keeper is killed.

    elastic_test.py SERVER_BINARY
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

import grpc

import processes

BINARY = processes.binary_from(sys.argv)
sys.path.insert(0, os.path.join(processes.ROOT, 'python'))
EXAMPLE = os.path.join(processes.ROOT, 'examples', 'elastic', 'train.py')


class Tasks(unittest.TestCase):
    def setUp(self):
        self.running = []
        self.addCleanup(lambda: [processes.stop(process) for process in self.running])
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.addresses = {}

    def environment(self, job, index):
        """Each task knows itself and the parameter server."""
        for task in ('ps', 0), (job, index):
            if task not in self.addresses:
                self.addresses[task] = '127.0.0.1:%d' % processes.free_ports(1)[0]
        cluster = {'ps': [self.addresses['ps', 0]]}
        if job != 'ps':
            cluster[job] = {str(index): self.addresses[job, index]}
        return dict(os.environ, TF_CONFIG=json.dumps({'cluster': cluster, 'task': {'type': job, 'index': index}}), WEFT_MEMBERSHIP='1',
                    WEFT_LEASE_FOLDER=os.path.join(self.folder.name, 'leases'), WEFT_BINARY=BINARY, PYTHONUNBUFFERED='1',
                    PYTHONPATH=os.path.join(processes.ROOT, 'python'), TF_CPP_MIN_LOG_LEVEL='3')

    def start(self, job, index, *command):
        self.running.append(subprocess.Popen(command, env=self.environment(job, index), preexec_fn=processes.die_with_parent,
                                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        return self.running[-1]

    def program(self, job, index, epochs):
        return self.start(job, index, sys.executable, '-m', 'weft', EXAMPLE, str(epochs))

    def lines_until(self, process, pattern):
        said = []
        for line in process.stdout:
            said.append(line)
            if re.search(pattern, line):
                return said
        self.fail('it ended with code %s:\n%s' % (process.wait(), ''.join(said)[-3000:]))

    def test_a_worker_is_killed_and_others_come(self):
        epochs = 6
        self.program('ps', 0, epochs)
        first, second = (self.program('worker', index, epochs) for index in range(2))
        self.lines_until(second, 'records')
        second.kill()
        third = self.program('worker', 2, epochs)
        ends = []
        for worker in first, third:
            said = ''.join(self.lines_until(worker, r'loss [0-9.]+;'))
            ends.append(re.search(r'loss ([0-9.]+); (\d+) records, (\d+) ranges leased again', said).groups())
            self.assertEqual(worker.wait(60), 0)
        for loss, records, again in ends:
            self.assertLess(float(loss), 0.001)
            self.assertEqual(int(records), 20000 * epochs)
            self.assertGreaterEqual(int(again), 0)

    def states(self, index):
        """What worker `index` says of each worker, by index."""
        with grpc.insecure_channel(self.addresses['worker', index], options=[('grpc.enable_http_proxy', 0)]) as channel:
            view = json.loads(channel.unary_unary('/weft.Membership/View')(b'', timeout=20, wait_for_ready=True))
        return {int(member['task'].rsplit(':', 1)[1]): member['state'] for member in view['members'] if '/job:worker/' in member['task']}

    def wait_for(self, worker, state, others=(0, 1)):
        """How long it took until all of them said that of the worker."""
        began = time.monotonic()
        while any(self.states(other).get(worker) != state for other in others):
            self.assertLess(time.monotonic() - began, 30, [self.states(other) for other in others])
            time.sleep(0.02)
        return time.monotonic() - began

    def test_who_lives(self):
        server = [BINARY, 'server', '--threads', '1']
        self.start('ps', 0, *server)
        workers = [self.start('worker', index, *server) for index in range(3)]
        self.wait_for(2, 'alive')
        workers[2].send_signal(signal.SIGSTOP)
        silent = self.wait_for(2, 'dead')
        workers[2].send_signal(signal.SIGCONT)
        back = self.wait_for(2, 'alive')
        workers[2].kill()
        killed = self.wait_for(2, 'dead')
        self.start('worker', 2, *server)
        again = self.wait_for(2, 'alive')
        self.running[-1].terminate()
        self.wait_for(2, 'left')
        print('a worker that stood still was lost after %.2f s and back after %.2f s; one that was killed was lost after %.3f s, and its '
              'successor a member after %.2f s' % (silent, back, killed, again))
        self.assertLess(silent, 10)  # the machine may be busy
        self.assertLess(killed, 1.5)

    def test_the_keeper_of_leases_is_killed(self):
        from weft import leases
        server = [BINARY, 'server', '--threads', '1']
        keeper = self.start('ps', 0, *server)
        workers = [self.start('worker', index, *server) for index in range(3)]
        targets = ['grpc://' + self.addresses['worker', index] for index in range(3)]
        queues = [leases.Queue('train', 100, 10, epochs=2, target=target) for target in targets]
        parts = [queues[0].take() for _ in range(5)]
        self.assertTrue(all(queues[0].finish(part) for part in parts[:3]))
        keeper.send_signal(signal.SIGKILL)
        keeper.wait()
        self.start('ps', 0, *server)
        counts = queues[1].counts()
        self.assertEqual((counts['records_done'], counts['held']), (30, 0))
        self.assertTrue(queues[0].finish(parts[3]))  # nobody else has it yet
        self.assertFalse(queues[0].finish(parts[3]))
        # The second worker gets what is left, and what the others hold when one leaves and one is killed.
        held = queues[0].take(), queues[2].take()
        records = {(epoch, row): 0 for epoch in range(2) for row in range(100)}
        for part in parts[:4]:
            for row in range(part.begin, part.end):
                records[part.epoch, row] += 1
        killed = False
        began = time.monotonic()
        while True:
            if not killed and queues[1].counts()['to_do'] == 0:
                workers[0].terminate()
                workers[2].kill()
                killed = True
            part = queues[1].take()
            if part is None:
                break
            for row in range(part.begin, part.end):
                records[part.epoch, row] += 1
            self.assertTrue(queues[1].finish(part))
        self.assertEqual(set(records.values()), {1})
        self.assertTrue(killed and queues[1].counts()['is_over'])
        self.assertGreaterEqual(queues[1].counts()['leased_again'], 2)
        self.assertTrue(all(held))
        self.assertLess(time.monotonic() - began, 60)
        with self.assertRaisesRegex(ValueError, 'is there already'):
            leases.Queue('train', 100, 11, target=targets[1])


if __name__ == '__main__':
    unittest.main()
