# SPDX-License-Identifier: Apache-2.0
"""Training that loses its processes: kills_test.py WEFT DIGITS FOLDER [unittest arguments]."""
import json
import os
import pathlib
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import uuid

WEFT, DIGITS, FOLDER = sys.argv[1:4]
LONG = 120
EVERY = 100  # steps between two checkpoints of the example


class Job:
    """One `weft run` of the digits, its lines and its processes."""

    def __init__(self, folder, *flags, workers=2):
        # Whoever has this in its environment is of our job.
        self.token = uuid.uuid4().hex
        command = [WEFT, 'run', '--grace', '2', '--ps', '1', '--workers', str(workers), '--', DIGITS, '--data',
                   FOLDER + '/digits.csv', '--model_dir', folder + '/model', *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        env=dict(os.environ, KILLS_TOKEN=self.token))
        self.lines, self.arrived = [], queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.arrived.put(line)
        self.arrived.put(None)

    def text(self):
        return ''.join(self.lines)

    def wait_for(self, condition, what):
        """Reads lines until condition(line) gives something."""
        deadline = time.monotonic() + LONG
        while True:
            try:
                line = self.arrived.get(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                line = None
            if line is None:
                raise AssertionError('no %s in:\n%s' % (what, self.text()[-6000:]))
            self.lines.append(line)
            found = condition(line)
            if found:
                return found

    def wait_for_step(self, step):
        """The step that a line tells, once it is at least `step`."""
        def reached(line):
            found = re.search(r'step (\d+)/', line)
            return int(found[1]) if found and int(found[1]) >= step else None
        return self.wait_for(reached, 'step %d' % step)

    def finish(self):
        """The exit code, once all output is read."""
        deadline = time.monotonic() + LONG
        while True:
            try:
                line = self.arrived.get(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError('it does not end:\n%s' % self.text()[-6000:])
            if line is None:
                return self.process.wait(timeout=LONG)
            self.lines.append(line)

    def processes(self):
        """pid -> ('worker', 0), or None for weft and its guard."""
        found = {}
        for entry in pathlib.Path('/proc').iterdir():
            if not entry.name.isdigit():
                continue
            try:
                environment = (entry / 'environ').read_bytes().split(b'\0')
                state = (entry / 'stat').read_text().rsplit(')', 1)[1].split()[0]
            except OSError:
                continue
            if b'KILLS_TOKEN=' + self.token.encode() not in environment or state == 'Z':
                continue
            config = [e[10:] for e in environment if e.startswith(b'TF_CONFIG=')]
            task = json.loads(config[0])['task'] if config else None
            found[int(entry.name)] = task and (task['type'], task['index'])
        return found

    def send(self, signal_number, job, index=0):
        """To one task, once it is there: it may just be starting again."""
        deadline = time.monotonic() + LONG
        while True:
            pids = [pid for pid, task in self.processes().items() if task == (job, index)]
            if pids:
                return os.kill(pids[0], signal_number)
            assert time.monotonic() < deadline, (job, index, self.processes())
            time.sleep(0.02)

    def kill_rest(self):
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


# Alone a worker is through with 4,000 steps before the other is back.
AT_THEIR_OWN_PACE = '--async', '--steps', '12000'


class Kills(unittest.TestCase):
    def start(self, *flags, workers=2):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        job = Job(folder.name, *flags, workers=workers)
        self.addCleanup(job.process.stdout.close)
        self.addCleanup(job.process.wait)
        self.addCleanup(job.kill_rest)
        return job

    def assert_good(self, job, least):
        self.assertEqual(job.finish(), 0, job.text()[-6000:])
        found = re.search(r'Test accuracy: ([0-9.]+)', job.text())
        self.assertTrue(found, job.text()[-6000:])
        self.assertGreaterEqual(float(found[1]), least, job.text()[-6000:])
        self.assertEqual(job.processes(), {})

    def kill_and_finish(self, job, task, index, least, at=(600, 1800)):
        for step in at:
            job.wait_for_step(step)
            job.send(signal.SIGKILL, task, index)
            job.wait_for(lambda line: 'killed by SIGKILL' in line and 'starting it again' in line, 'restart')
        self.assert_good(job, least)

    def test_a_worker_in_step(self):
        self.kill_and_finish(self.start(), 'worker', 1, 0.95)

    def test_a_worker_at_its_own_pace(self):
        self.kill_and_finish(self.start(*AT_THEIR_OWN_PACE), 'worker', 1, 0.93)

    def test_the_chief_in_step(self):
        self.kill_and_finish(self.start(), 'worker', 0, 0.95)

    def test_the_chief_at_its_own_pace(self):
        self.kill_and_finish(self.start(*AT_THEIR_OWN_PACE), 'worker', 0, 0.93)

    def kill_server(self, *flags, least):
        job = self.start(*flags)
        step = job.wait_for_step(1000)
        job.send(signal.SIGKILL, 'ps')
        restored = job.wait_for(lambda line: re.search(r'Restored .*-(\d+)$', line), 'restored checkpoint')
        # A checkpoint is written every EVERY steps, and the last line is no newer than the kill.
        self.assertGreaterEqual(int(restored[1]), step - EVERY - 10)
        self.assert_good(job, least)

    def test_the_server_in_step(self):
        self.kill_server(least=0.95)

    def test_the_server_at_the_workers_own_pace(self):
        self.kill_server('--async', least=0.93)

    def test_nobody_waits_for_a_worker_that_stands_still(self):
        job = self.start('--backups', '1', '--steps', '3000', workers=3)
        job.wait_for_step(300)
        job.send(signal.SIGSTOP, 'worker', 2)
        self.assert_good(job, 0.95)

    def test_ctrl_c_leaves_nothing(self):
        for flags in (), ('--async',):
            job = self.start(*flags)
            job.wait_for_step(100)
            self.assertEqual(len([task for task in job.processes().values() if task]), 3)
            job.process.send_signal(signal.SIGINT)
            self.assertEqual(job.finish(), 128 + signal.SIGINT)
            self.assertEqual(job.processes(), {})
            # The next run goes on from what the last checkpoint holds.
            self.assertIn('nothing of it is left running', job.text())


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[4:], verbosity=2)
