# SPDX-License-Identifier: Apache-2.0
"""Tasks of examples/together are killed, stand still and are cut off from the network at random moments.

    together_faults_test.py BIN_FOLDER [--kills N] [--json FILE] [-k TEST]

Each task is in a network namespace of its own, on a bridge, in a network that only the test has. Of a synchronous job of a fixed size the
losses are those of a run without faults, bit for bit; elastic jobs and those with a parameter server go on meanwhile; all of them end.
"""
import json
import os
import random
import signal
import subprocess
import sys
import time

import together_kills_test as kills
from together_kills_test import Rank, Ranks, unittest

JSON = None
kills.KILLS = 3
FAULTS = 'SIGKILL', 'SIGSTOP', 'cut off'
SHORT, LOST = 1.0, 4.0  # seconds: pauses below the first kill nobody; from the second on a task is lost for sure


def enter_network(test):
    """Runs the test again in a network of its own; True in there."""
    if 'WEFT_TEST_NETWORK' in os.environ:
        return True
    word = ['unshare', '--user', '--map-root-user', '--net', '--mount']
    if subprocess.run(word + ['ip', 'link', 'add', 'type', 'bridge'], stderr=subprocess.DEVNULL).returncode != 0:
        test.skipTest('no network namespaces to be had (unshare, ip)')
    more = ['--json', JSON] if JSON else []
    again = subprocess.run(word + [sys.executable, __file__, kills.BIN, '--kills', str(kills.KILLS), *more, '-k', test._testMethodName],
                           env=dict(os.environ, WEFT_TEST_NETWORK='1'))
    test.assertEqual(again.returncode, 0)
    return False


class FaultsTest(Ranks):
    def start_apart(self, count, steps, tasks=None, **variables):
        """`tasks`: (type, index) of each, all workers without it; task i is 10.9.8.(i + 1)."""
        tasks = tasks or [('worker', index) for index in range(count)]
        cluster = {}
        for place, (job, _) in enumerate(tasks):
            cluster.setdefault(job, []).append('10.9.8.%d:2222' % (place + 1))

        def make(place):
            rank = Rank(cluster, tasks[place][1], steps, prefix=('ip', 'netns', 'exec', 'rank%d' % place), job=tasks[place][0],
                        WEFT_INSECURE='1', **variables)
            rank.place = place
            return rank
        self.make = make
        self.ranks = [make(place) for place in range(count)]

    def lay_network(self, count):
        lines = ['mount -t tmpfs none /run', 'ip link set lo up', 'ip link add bridge type bridge', 'ip link set bridge up']
        for i in range(count):
            lines += ['ip netns add rank%d' % i, 'ip link add port%d type veth peer name eth0 netns rank%d' % (i, i),
                      'ip link set port%d master bridge up' % i, 'ip -n rank%d address add 10.9.8.%d/24 dev eth0' % (i, i + 1),
                      'ip -n rank%d link set eth0 up' % i, 'ip -n rank%d link set lo up' % i]
        subprocess.run(['sh', '-ec', '\n'.join(lines)], check=True)

    @staticmethod
    def set_link(place, state):
        subprocess.run(['ip', 'link', 'set', 'port%d' % place, state], check=True)

    def fault(self, kind, victim, seconds):
        """One fault, and its end; a killed task is started again."""
        rank = self.ranks[victim]
        if kind == 'SIGKILL':
            rank.kill()
            return
        begin, end = ((lambda: rank.process.send_signal(signal.SIGSTOP), lambda: rank.process.send_signal(signal.SIGCONT))
                      if kind == 'SIGSTOP' else (lambda: self.set_link(victim, 'down'), lambda: self.set_link(victim, 'up')))
        begin()
        time.sleep(seconds)
        end()

    def tell(self, what, recoveries):
        for kind, times in recoveries.items():
            times.sort()
            if times:
                print('%s: %d of %s: the next step came after %.0f ms (p50), %.0f ms (p99)' % (
                    what, len(times), kind, times[len(times) // 2] * 1e3, times[len(times) * 99 // 100] * 1e3), flush=True)
        if JSON:
            with open(JSON, 'w') as file:
                json.dump(recoveries, file)

    def test_a_fixed_group_computes_what_it_would_without_faults(self):
        if not enter_network(self):
            return
        self.lay_network(2)
        steps = 30 * (kills.KILLS + 1)
        self.start_apart(2, steps)
        self.end(steps)
        expected = self.ranks[0].losses
        self.assertEqual(len(expected), steps)
        self.start_apart(2, steps)
        losses = {}
        for number in range(kills.KILLS):
            victim, kind = random.randrange(2), FAULTS[number % 3]
            self.wait_for_step(self.ranks[1 - victim], 30 * number + random.randrange(5, 25))
            time.sleep(random.uniform(0, 0.02))
            self.fault(kind, victim, random.choice((random.uniform(0.1, SHORT), random.uniform(SHORT, LOST + 2))))
            if kind == 'SIGKILL':
                losses.update(self.ranks[victim].losses)
                self.ranks[victim] = self.make(victim)
        self.end(steps)
        for rank in self.ranks:
            losses.update(rank.losses)
        different = {step: (loss, expected[step]) for step, loss in losses.items() if loss != expected[step]}
        self.assertEqual(different, {})
        self.assertEqual(sorted(losses), sorted(expected))

    def test_an_elastic_job_goes_on_and_ends(self):
        if not enter_network(self):
            return
        self.lay_network(3)
        steps = 600 * kills.KILLS + 200
        self.start_apart(3, steps, WEFT_ELASTIC='2:3')
        for rank in self.ranks:
            self.wait_for_step(rank, 5)
        recoveries = {kind: [] for kind in FAULTS}
        for number in range(kills.KILLS):
            victim, kind = random.randrange(3), FAULTS[number % 3]
            other = self.ranks[(victim + 1) % 3]
            self.wait_for_step(other, other.step() + random.randrange(5, 20))
            other.longest, other.last = 0.0, time.monotonic()
            self.fault(kind, victim, LOST + 2)
            self.wait_for_step(other, other.step() + 3)
            recoveries[kind].append(other.longest)
            if kind == 'SIGKILL':
                self.ranks[victim] = self.make(victim)
            self.wait_for_step(self.ranks[victim], other.step() + 5)  # it is one of them again
        self.tell('elastic', recoveries)
        self.end(steps)
        for rank in self.ranks:
            self.assertLess(float(rank.losses[steps]), 0.1)

    def test_workers_at_their_own_pace_end(self):
        """A parameter server and two workers. The server may stand still or be cut off; what it loses when it dies, kills_test.py says."""
        if not enter_network(self):
            return
        self.lay_network(3)
        steps = 500 * kills.KILLS + 200
        self.start_apart(3, steps, tasks=[('worker', 0), ('worker', 1), ('ps', 0)])
        workers = lambda: self.ranks[:2]
        for rank in workers():
            self.wait_for_step(rank, 5)
        for number in range(kills.KILLS):
            kind = FAULTS[number % 3]
            victim = random.randrange(2 if kind == 'SIGKILL' else 3)
            step = max(rank.step() for rank in workers())
            self.fault(kind, victim, random.choice((random.uniform(0.1, SHORT), random.uniform(SHORT, LOST + 2))))
            if kind == 'SIGKILL':
                self.ranks[victim] = self.make(victim)
            for rank in workers():
                self.wait_for_step(rank, step + 5)
        server = self.ranks.pop()
        self.end(steps)
        for rank in self.ranks:
            self.assertLess(float(rank.losses[max(rank.losses)]), 0.1)
        server.process.terminate()
        self.assertEqual(server.wait(20), 0, ''.join(server.said)[-2000:])


if __name__ == '__main__':
    for flag in '--kills', '--json':
        if flag in sys.argv:
            at = sys.argv.index(flag)
            if flag == '--kills':
                kills.KILLS = int(sys.argv[at + 1])
            else:
                JSON = sys.argv[at + 1]
            del sys.argv[at:at + 2]
    unittest.main()
