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
        self.flags = ['--data', FOLDER + '/digits.csv', '--model_dir', self.folder.name + '/model', '--async']

    def test_trains_alone_and_resumes(self):
        self.assertGreaterEqual(accuracy(run(DIGITS, *self.flags, '--steps', '3000')), 0.93)
        self.assertIn('Resuming at step 3000', run(DIGITS, *self.flags, '--steps', '3100'))

    def test_trains_on_a_cluster(self):
        text = run(WEFT, 'run', '--ps', '1', '--workers', '2', '--', DIGITS, *self.flags, '--steps', '4000')
        self.assertGreaterEqual(accuracy(text), 0.93)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)
