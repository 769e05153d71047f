# SPDX-License-Identifier: Apache-2.0
"""A rank that is killed in the middle of an all-reduce ends the others: all_reduce_kills_test.py WEFT [-k TEST].

Ranks of one host meet in shared memory, or with --copy send messages; whichever it is, nobody waits for the dead.
"""
import os
import random
import signal
import subprocess
import sys
import time
import unittest

WEFT = sys.argv.pop(1)
RANKS = 3
PATIENCE = 20  # seconds, in which the others must have ended


def children(pid):
    with open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as file:
        return [int(child) for child in file.read().split()]


def rank_of(pid):
    with open(f'/proc/{pid}/cmdline', 'rb') as file:
        words = file.read().decode().split('\0')
    return int(words[words.index('--rank') + 1])


class KilledRank(unittest.TestCase):
    def kill_one(self, size, *flags):
        with subprocess.Popen([WEFT, 'bench', 'all-reduce', '--ranks', str(RANKS), *[word for _ in range(200) for word in ('--size', size)], *flags],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as bench:
            try:
                bench.stdout.readline()
                self.assertTrue(bench.stdout.readline(), 'nothing was measured')  # they are in the middle of it now
                time.sleep(random.uniform(0, 0.05))
                victim = random.choice(children(bench.pid))
                rank = rank_of(victim)
                os.kill(victim, signal.SIGKILL)
                said = bench.communicate(timeout=PATIENCE)[1]
            finally:
                bench.kill()
        self.assertNotEqual(bench.returncode, 0)
        self.assertIn(f'task:{rank}', said)

    def test_small_ones(self):
        for _ in range(2):
            self.kill_one('1K')

    def test_parts(self):
        for _ in range(2):
            self.kill_one('512K')

    def test_messages(self):
        self.kill_one('1K', '--copy')


if __name__ == '__main__':
    unittest.main()
