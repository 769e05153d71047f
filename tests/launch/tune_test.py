# SPDX-License-Identifier: Apache-2.0
"""`weft tune` with real programs: tables, refusals, SIGINT and SIGKILL in the middle of a search."""
import csv
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

WEFT = sys.argv.pop(1)

# Prints a metric that is best at lr=0.01 and two layers, in the order of a training's log.
TRAIN = '''
import math, sys, time
flags = dict(word[2:].split('=') for word in sys.argv[1:])
time.sleep(float(flags.pop('pause', 0)))
score = 1 - abs(math.log10(float(flags['lr'])) + 2) / 4 - abs(int(flags['num-layers']) - 2) / 10
print('epoch 1: Validation-accuracy=%.6f accuracy=0.1' % (score - 0.2))
print('epoch 2: Validation-accuracy=%.6f accuracy=0.2 (optimizer %s)' % (score, flags['optimizer']))
'''
SPACE = 'lr=log(1e-4,1e-1) num-layers=2..5 optimizer={sgd,adam,ftrl}'


class TuneTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.program = os.path.join(self.folder, 'train.py')
        with open(self.program, 'w') as out:
            out.write(TRAIN)

    def command(self, *flags, program=()):
        return [WEFT, 'tune', '--space', SPACE, '--maximize', 'Validation-accuracy', '--metric', 'accuracy', *flags,
                '--', sys.executable, self.program, *(program or ())]

    def run_tune(self, *flags, **kwargs):
        return subprocess.run(self.command(*flags), capture_output=True, text=True, cwd=self.folder, timeout=240, **kwargs)

    def test_the_table_of_the_seed(self):
        done = self.run_tune('--trials', '12', '--parallel', '3', '--output', 'csv')
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = list(csv.DictReader(io.StringIO(done.stdout)))
        self.assertEqual(list(rows[0]), ['trialName', 'Validation-accuracy', 'accuracy', 'lr', 'num-layers', 'optimizer', 'status'])
        self.assertEqual(len(rows), 12)
        scores = [float(row['Validation-accuracy']) for row in rows]
        self.assertEqual(scores, sorted(scores, reverse=True))
        for row in rows:
            self.assertEqual(row['accuracy'], '0.2')
            with open(os.path.join(self.folder, 'weft-tune', row['trialName'] + '.log')) as log:
                self.assertIn('optimizer ' + row['optimizer'], log.read())
        # The same words again: all is known, nothing runs.
        again = self.run_tune('--trials', '12', '--parallel', '3', '--output', 'json')
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual([row['trialName'] for row in json.loads(again.stdout)], [row['trialName'] for row in rows])
        self.assertNotIn('trial-0 ', again.stderr)

    def test_a_search_goes_on_after_ctrl_c_and_after_a_kill(self):
        flags = ('--trials', '10', '--out', os.path.join(self.folder, 'out'))
        # Like the shell's, a group of its own whose trials must not survive.
        for number in signal.SIGINT, signal.SIGKILL:
            running = subprocess.Popen(self.command(*flags, program=['--pause=0.4']), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       text=True, cwd=self.folder)
            for line in running.stderr:
                if line.startswith('trial-'):
                    break
            running.send_signal(number)
            output, errors = running.communicate(timeout=60)
            self.assertNotEqual(running.returncode, 0)
            if number == signal.SIGINT:
                self.assertIn('goes on where', errors)
                self.assertIn('trial-0', output)
        deadline = time.monotonic() + 30
        while subprocess.run(['pgrep', '-f', self.program], capture_output=True).returncode == 0:
            self.assertLess(time.monotonic(), deadline, 'a trial has survived')
            time.sleep(0.1)
        done = subprocess.run(self.command(*flags, '--output', 'csv', program=['--pause=0.4']), capture_output=True, text=True,
                              cwd=self.folder, timeout=240)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('goes on after', done.stderr)
        rows = list(csv.DictReader(io.StringIO(done.stdout)))
        self.assertEqual(sorted(row['trialName'] for row in rows), sorted('trial-%d' % i for i in range(10)))
        self.assertEqual({row['status'] for row in rows}, {'Succeeded'})

    def test_refusals_name_what_is_wrong(self):
        for flags, words in (
                (['--space', 'lr=7', '--minimize', 'loss', '--', 'true'], "parameter 'lr': '7' is no range"),
                (['--space', 'lr=1..7', '--', 'true'], 'one of --maximize METRIC and --minimize METRIC'),
                (['--space', 'lr=1..7', '--minimize', 'loss'], 'no program'),
                (['--space', 'lr=1..7', '--minimize', 'loss', '--algorithm', 'magic', '--', 'true'], 'tpe'),
                (['--space', 'lr=1..7', '--minimize', 'loss', '--output', 'xml', '--', 'true'], 'text, csv or json'),
                (['--space', 'lr=1..7', '--minimize', 'loss', '--', 'no-such-program-anywhere'], 'no-such-program-anywhere'),
                (['--space', 'lr=1..7', '--minimize', 'loss', '--max_failed', '1', '--', 'false'], '2 trials failed')):
            done = subprocess.run([WEFT, 'tune', '--out', tempfile.mkdtemp(dir=self.folder), *flags], capture_output=True, text=True,
                                  timeout=60)
            self.assertNotEqual(done.returncode, 0, flags)
            self.assertIn(words, done.stderr, flags)


if __name__ == '__main__':
    unittest.main()
