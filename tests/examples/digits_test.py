# SPDX-License-Identifier: Apache-2.0
"""The digits: alone, as a job of one parameter server and two workers, and going on from a checkpoint."""
import json
import os
import re
import subprocess
import sys
import tempfile
import time
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

    def test_five_seeds(self):
        for seed in '12345':
            for flags, least in ([], 0.95), (['--async'], 0.93):
                with self.subTest(seed=seed, flags=flags):
                    started = time.monotonic()
                    model = os.path.join(self.folder.name, 'seed-' + seed + ''.join(flags))
                    text = run(WEFT, 'run', '--ps', '1', '--workers', '2', '--', DIGITS, '--data', FOLDER + '/digits.csv',
                               '--model_dir', model, '--seed', seed, *flags)
                    self.assertGreaterEqual(accuracy(text), least)
                    self.assertLess(time.monotonic() - started, 60)

    def test_the_files_of_jobs(self):
        for name, flags in ('tfjob.yaml', []), ('tfjob-async.yaml', ['--async']):
            with open(os.path.join(FOLDER, name)) as file:
                text = file.read()
            command = json.dumps([DIGITS, '--data', FOLDER + '/digits.csv', '--steps', '200', *flags,
                                  '--model_dir', os.path.join(self.folder.name, name)])
            text, count = re.subn(r'command: \["digits".*\]', lambda _: 'command: ' + command, text)
            self.assertEqual(count, 2, text)
            path = os.path.join(self.folder.name, 'of-' + name)
            with open(path, 'w') as file:
                file.write(text)
            self.assertIn('step 200/200', run(WEFT, 'run', path))

    def test_a_job_with_a_volume(self):
        with open(os.path.join(FOLDER, 'tfjob-volume.yaml')) as file:
            text = file.read()
        words = '"--model_dir", "/model"]'
        self.assertEqual(text.count('["digits", ' + words), 1)
        text = text.replace('["digits", ' + words, json.dumps([DIGITS, '--data', FOLDER + '/digits.csv', '--steps', '200'])[:-1]
                            + ', ' + words)
        path = os.path.join(self.folder.name, 'volume.yaml')
        with open(path, 'w') as file:
            file.write(text)
        state = os.path.join(self.folder.name, 'state')
        doctor = json.loads(subprocess.run([WEFT, 'doctor', '--json'], capture_output=True, text=True).stdout)
        if any(finding['check'] == 'volumes' and finding['verdict'] != 'good' for finding in doctor):
            done = subprocess.run([WEFT, 'run', path, '--state', state], capture_output=True, text=True, timeout=300)
            self.assertIn('no mount namespace', done.stdout + done.stderr)
            return
        self.assertIn('step 200/200', run(WEFT, 'run', path, '--state', state))
        self.assertIn('checkpoint', os.listdir(os.path.join(state, 'claims/default/digits-model')))
        self.assertFalse(os.path.exists('/model'))


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)
