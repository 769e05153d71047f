# SPDX-License-Identifier: Apache-2.0
"""Random tasks of examples/together are killed at random moments: together_kills_test.py BIN_FOLDER [--kills N] [-k TEST].

Of a group of a fixed size the killed rank is started again, and the losses of the whole run are those of a run without kills, bit for bit.
A group whose ranks come and go goes on meanwhile; a rank that stands still for half a second is not taken for dead. One that stands still
for longer, or is cut off from the network, is lost, and comes back when it goes on or is reached again.
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

    def __init__(self, cluster, index, steps, prefix=(), **variables):
        self.index, self.losses, self.last, self.longest = index, {}, time.monotonic(), 0.0
        config = json.dumps({'cluster': cluster, 'task': {'type': 'worker', 'index': index}})
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


class KillsTest(unittest.TestCase):
    def setUp(self):
        self.ranks = []
        self.addCleanup(lambda: [rank.kill() for rank in self.ranks if rank.process.poll() is None])

    def start(self, count, steps, **variables):
        cluster = {'worker': ['127.0.0.1:%d' % port for port in free_ports(count)]}
        self.make = lambda index: Rank(cluster, index, steps, **variables)
        self.ranks = [self.make(index) for index in range(count)]

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

    def others_go_on(self, victim, losing, back):
        """`losing` takes the victim away: the others' next step comes within seconds, and `back` makes it one of them again."""
        other = self.ranks[(victim + 1) % 3]
        self.wait_for_step(other, other.step() + random.randrange(5, 20))
        other.longest, other.last = 0.0, time.monotonic()
        losing()
        stopped, begun = self.ranks[victim].step(), time.monotonic()
        while time.monotonic() < begun + 6:
            time.sleep(0.05)
        took = other.longest
        self.assertGreater(other.step(), stopped + 5, ''.join(other.said)[-2000:])
        self.assertLess(self.ranks[victim].step(), stopped + 5, 'it went on alone')
        back()
        self.wait_for_step(self.ranks[victim], other.step() + 5)
        return took

    def tell(self, what, recoveries):
        recoveries.sort()
        print('%d %s: the others\' next step came after %.0f ms (median), %.0f ms (at most)' % (
            len(recoveries), what, recoveries[len(recoveries) // 2] * 1e3, recoveries[-1] * 1e3))
        self.assertLess(recoveries[-1], 6)

    def test_one_that_stands_still_is_lost_and_comes_back(self):
        self.start(3, 1000000, WEFT_ELASTIC='2:3')
        for rank in self.ranks:
            self.wait_for_step(rank, 5)
        recoveries = []
        for _ in range(max(1, KILLS // 10)):
            victim = random.randrange(3)
            process = self.ranks[victim].process
            recoveries.append(self.others_go_on(victim, lambda: process.send_signal(signal.SIGSTOP), lambda: process.send_signal(signal.SIGCONT)))
        self.tell('stops of 6 s', recoveries)

    def test_one_that_is_cut_off_is_lost_and_comes_back(self):
        """In a network of its own: each rank in a namespace, on a bridge."""
        if 'WEFT_TEST_NETWORK' not in os.environ:
            word = ['unshare', '--user', '--map-root-user', '--net', '--mount']
            if subprocess.run(word + ['ip', 'link', 'add', 'type', 'bridge'], stderr=subprocess.DEVNULL).returncode != 0:
                self.skipTest('no network namespaces to be had (unshare, ip)')
            again = subprocess.run(word + [sys.executable, __file__, BIN, '--kills', str(KILLS), '-k', self._testMethodName],
                                   env=dict(os.environ, WEFT_TEST_NETWORK='1'))
            self.assertEqual(again.returncode, 0)
            return
        lines = ['mount -t tmpfs none /run', 'ip link set lo up', 'ip link add bridge type bridge', 'ip link set bridge up']
        for i in range(3):
            lines += ['ip netns add rank%d' % i, 'ip link add port%d type veth peer name eth0 netns rank%d' % (i, i),
                      'ip link set port%d master bridge up' % i, 'ip -n rank%d address add 10.9.8.%d/24 dev eth0' % (i, i + 1),
                      'ip -n rank%d link set eth0 up' % i, 'ip -n rank%d link set lo up' % i]
        subprocess.run(['sh', '-ec', '\n'.join(lines)], check=True)
        cluster = {'worker': ['10.9.8.%d:2222' % (i + 1) for i in range(3)]}
        self.ranks = [Rank(cluster, i, 1000000, prefix=('ip', 'netns', 'exec', 'rank%d' % i), WEFT_ELASTIC='2:3', WEFT_INSECURE='1')
                      for i in range(3)]
        for rank in self.ranks:
            self.wait_for_step(rank, 5)
        recoveries = []
        for _ in range(max(1, KILLS // 10)):
            victim = random.randrange(3)

            def set_link(state):
                subprocess.run(['ip', 'link', 'set', 'port%d' % victim, state], check=True)

            recoveries.append(self.others_go_on(victim, lambda: set_link('down'), lambda: set_link('up')))
        self.tell('cuts of 6 s', recoveries)


if __name__ == '__main__':
    if '--kills' in sys.argv:
        at = sys.argv.index('--kills')
        KILLS = int(sys.argv[at + 1])
        del sys.argv[at:at + 2]
    unittest.main()
