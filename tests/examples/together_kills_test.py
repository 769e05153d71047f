# SPDX-License-Identifier: Apache-2.0
"""Random tasks of examples/together are killed at random moments: together_kills_test.py BIN_FOLDER [--kills N] [-k TEST].

Of a group of a fixed size the killed rank is started again, and the losses of the whole run are those of a run without kills, bit for bit.
A group whose ranks come and go goes on meanwhile; a rank that stands still for half a second is not taken for dead. Longer stops and cut
networks are in together_faults_test.py.
"""
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

BIN = sys.argv.pop(1)
KILLS = 4
SLEEP_MS = 10


def free_ports(count):
    sockets = [socket.create_server(('127.0.0.1', 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Rank:
    """A worker, whose steps and losses are read as they come."""

    def __init__(self, cluster, index, steps, prefix=(), job='worker', **variables):
        self.index, self.losses, self.last, self.longest = index, {}, time.monotonic(), 0.0
        config = json.dumps({'cluster': cluster, 'task': {'type': job, 'index': index}})
        self.process = subprocess.Popen([*prefix, BIN + '/together', '--steps', str(steps), '--sleep_ms', str(SLEEP_MS), '--log_every', '1'],
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        env=dict(os.environ, TF_CONFIG=config, **variables))
        self.said = []
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            found = re.match(r'worker \d+, step (\d+): loss (\S+)', line)
            if found:
                now = time.monotonic()
                self.longest, self.last = max(self.longest, now - self.last), now
                self.losses[int(found[1])] = found[2]
            else:
                self.said.append(line)

    def step(self):
        return max(self.losses, default=0)

    def kill(self):
        self.process.kill()
        self.wait()

    def wait(self, seconds=120):
        code = self.process.wait(seconds)
        self.reader.join()
        self.process.stdout.close()
        return code


class Ranks(unittest.TestCase):
    def setUp(self):
        self.ranks = []
        self.addCleanup(lambda: [rank.kill() for rank in self.ranks if rank.process.poll() is None])

    def start(self, count, steps, first=None, **variables):
        """`count` ranks; of these only `first` at once, if it is given."""
        cluster = {'worker': ['127.0.0.1:%d' % port for port in free_ports(count)]}
        self.make = lambda index: Rank(cluster, index, steps, **variables)
        self.ranks = [self.make(index) for index in range(first or count)]

    def stacks(self):
        """Where every rank stands: what it said last, and its threads where there is a debugger."""
        told = []
        for one in self.ranks:
            told.append('rank %d, at step %d:\n%s' % (one.index, one.step(), ''.join(one.said)[-2000:]))
            if one.process.poll() is None and shutil.which('gdb'):
                told.append(subprocess.run(['gdb', '-p', str(one.process.pid), '-batch', '-ex', 'thread apply all bt 24'],
                                           capture_output=True, text=True).stdout[-60000:])
        return '\n'.join(told)

    def wait_for_step(self, rank, step):
        deadline = time.monotonic() + 60
        while rank.step() < step:
            self.assertIsNone(rank.process.poll(), ''.join(rank.said)[-3000:])
            if time.monotonic() > deadline:
                self.fail('rank %d stands:\n%s' % (rank.index, self.stacks()))
            time.sleep(0.005)

    def end(self, steps=0):
        deadline = time.monotonic() + 120 + steps
        while any(rank.process.poll() is None for rank in self.ranks):
            if time.monotonic() > deadline:
                self.fail('not all ranks end:\n%s' % self.stacks())
            time.sleep(0.01)
        codes = [rank.wait() for rank in self.ranks]
        self.assertEqual(codes, [0] * len(codes), [''.join(rank.said)[-1500:] for rank in self.ranks])


class KillsTest(Ranks):
    def test_a_fixed_group_computes_what_it_would_without_kills(self):
        steps = 30 * (KILLS + 1)
        self.start(2, steps)
        self.end(steps)
        expected = self.ranks[0].losses
        self.assertEqual(len(expected), steps)
        self.start(2, steps)
        losses = {}
        for kill in range(KILLS):
            victim = random.randrange(2)
            self.wait_for_step(self.ranks[1 - victim], 30 * kill + random.randrange(5, 25))
            time.sleep(random.uniform(0, 0.02))
            self.ranks[victim].kill()
            losses.update(self.ranks[victim].losses)
            self.ranks[victim] = self.make(victim)
        self.end()
        for rank in self.ranks:
            losses.update(rank.losses)
        different = {step: (loss, expected[step]) for step, loss in losses.items() if loss != expected[step]}
        self.assertEqual(different, {})
        self.assertEqual(sorted(losses), sorted(expected))

    def test_others_go_on_when_one_of_them_is_gone(self):
        steps = 60 * (KILLS + 2)
        self.start(3, steps, WEFT_ELASTIC='2:3')
        for rank in self.ranks:
            self.wait_for_step(rank, 5)
        recoveries, pauses = [], 0
        for kill in range(KILLS):
            victim = random.randrange(3)
            other = self.ranks[(victim + 1) % 3]
            self.wait_for_step(other, 60 * kill + random.randrange(20, 40))
            other.longest, other.last = 0.0, time.monotonic()
            if kill % 4 == 3:
                self.ranks[victim].process.send_signal(signal.SIGSTOP)
                time.sleep(0.5)
                self.ranks[victim].process.send_signal(signal.SIGCONT)
                time.sleep(0.5)
                self.assertIsNone(self.ranks[victim].process.poll())
                pauses += 1
                continue
            self.ranks[victim].kill()
            self.wait_for_step(other, other.step() + 3)
            recoveries.append(other.longest)
            self.ranks[victim] = self.make(victim)
            self.wait_for_step(self.ranks[victim], 1)
        self.end()
        for rank in self.ranks:
            self.assertLess(float(rank.losses[steps]), 0.1)
        recoveries.sort()
        print('%d kills, %d pauses of 0.5 s: the others\' next step came after %.0f ms (median), %.0f ms (at most)' % (
            len(recoveries), pauses, recoveries[len(recoveries) // 2] * 1e3, recoveries[-1] * 1e3))

    def test_a_job_grows_and_shrinks_as_others_show_it(self):
        """What ElasticDL and torchelastic show: a job of 2 grows to 4, loses one of 4, loses its first rank, loses all but one."""
        def next_step_after(what, loser, witness, ahead=5):
            witness.longest, witness.last = 0.0, time.monotonic()
            loser()
            self.wait_for_step(witness, witness.step() + ahead)
            print('%s: %.0f ms until the next step' % (what, witness.longest * 1e3), flush=True)
            self.assertLess(witness.longest, 3)

        def grow():
            self.ranks += [self.make(2), self.make(3)]
            for rank in self.ranks[2:]:
                self.wait_for_step(rank, 1)

        self.start(4, 800, first=2, WEFT_ELASTIC='1:4')
        for rank in self.ranks:
            self.wait_for_step(rank, 20)
        self.assertEqual(self.ranks[0].losses[20], self.ranks[1].losses[20])
        next_step_after('2 to 4', grow, self.ranks[1])
        self.assertLess(abs(self.ranks[3].step() - self.ranks[1].step()), 20, 'it joined at another step')
        next_step_after('one of 4 is lost', self.ranks[3].kill, self.ranks[1])
        next_step_after('the first of 3 is lost', self.ranks[0].kill, self.ranks[1])
        next_step_after('all but one are lost', self.ranks[2].kill, self.ranks[1])
        self.assertEqual(self.ranks[1].wait(60), 0, ''.join(self.ranks[1].said)[-2000:])
        self.assertLess(float(self.ranks[1].losses[800]), 0.1)


if __name__ == '__main__':
    if '--kills' in sys.argv:
        at = sys.argv.index('--kills')
        KILLS = int(sys.argv[at + 1])
        del sys.argv[at:at + 2]
    unittest.main()
