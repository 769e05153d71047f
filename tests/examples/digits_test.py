# SPDX-License-Identifier: Apache-2.0
"""The digits: alone, as a job of one parameter server and two workers, and going on from a checkpoint."""
import re
import subprocess
import sys
import tempfile
import unittest

WEFT, DIGITS, FOLDER = sys.argv[1:4]


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-3000:]
    return done.stdout


def accuracy(text):
    return float(re.search(r'Test accuracy: ([0-9.]+)', text).group(1))


class Digits(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.flags = ['--data', FOLDER + '/digits.csv', '--model_dir', self.folder.name + '/model']
        self.job = [WEFT, 'run', '--ps', '1', '--workers', '2', '--', DIGITS, *self.flags]

    def test_trains_alone_and_resumes(self):
        self.assertGreaterEqual(accuracy(run(DIGITS, *self.flags, '--steps', '4000')), 0.93)
        self.assertIn('Resuming at step 4000 of 4100', run(DIGITS, *self.flags, '--steps', '4100'))

    def test_trains_in_step_and_finds_the_work_done(self):
        text = run(*self.job)
        self.assertGreaterEqual(accuracy(text), 0.95)
        self.assertRegex(text, r'step \d+/4000  loss \d\.\d{4}  \d+ examples/s  \d+s left\n')
        self.assertIn('tensorboard --logdir ' + self.folder.name, text)
        again = run(*self.job)
        self.assertIn('Trained already, to step 4000', again)
        self.assertEqual(accuracy(again), accuracy(text))

    def test_trains_at_the_workers_own_pace(self):
        self.assertGreaterEqual(accuracy(run(*self.job, '--async')), 0.93)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)
