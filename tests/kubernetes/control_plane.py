# SPDX-License-Identifier: Apache-2.0
"""`weft up` in a folder of its own, for tests."""
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest


class ControlPlane:
    def __init__(self, weft, folder, programs):
        self.weft = weft
        self.folder = pathlib.Path(folder)
        self.kubeconfig = self.folder / 'kubeconfig'
        self.log = self.folder / 'up.log'
        path = os.pathsep.join([str(pathlib.Path(programs).parent), os.environ['PATH']])
        self.environment = dict(os.environ, PATH=path, KUBECONFIG=str(self.kubeconfig))
        self.process = None

    def start(self, *flags):
        log = self.log.open('w')
        self.process = subprocess.Popen(
            [self.weft, 'up', '--state', str(self.folder / 'state'), '--kubeconfig', str(self.kubeconfig), *flags],
            stdout=log, stderr=subprocess.STDOUT, env=self.environment, cwd=self.folder)
        log.close()
        deadline = time.monotonic() + 60
        while 'weft is up' not in self.log.read_text():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError('weft up does not come up: ' + self.log.read_text())
            time.sleep(0.02)

    def stop(self, by=signal.SIGTERM):
        if self.process is None:
            return None
        self.process.send_signal(by)
        code = self.process.wait(60)
        self.process = None
        return code

    def run(self, *words, stdin=None, check=True, timeout=300):
        """The stdout of a command; with check=False (code, stdout + stderr)."""
        done = subprocess.run(words, input=stdin, env=self.environment, capture_output=True, text=True,
                              timeout=timeout, cwd=self.folder)
        if not check:
            return done.returncode, done.stdout + done.stderr
        if done.returncode != 0:
            raise AssertionError('%s exits with %d:\n%s%s\n%s' % (' '.join(map(str, words)), done.returncode, done.stdout,
                                                                done.stderr, self.log.read_text() if self.log.exists() else ''))
        return done.stdout

    def digits(self, example):
        """The example's job, short, with a model folder of its own."""
        text = (pathlib.Path(example) / 'tfjob.yaml').read_text()
        command = 'command: [digits, --data, %s, --model_dir, %s, --steps, "400"]' % (
            pathlib.Path(example) / 'digits.csv', self.folder / 'model')
        assert text.count('command: ["digits"]') == 2, text
        return text.replace('command: ["digits"]', command)


def build(program):
    """The path of a program that build.sh makes."""
    return subprocess.run([pathlib.Path(__file__).parent / 'build.sh', program], check=True, capture_output=True,
                          text=True).stdout.strip()


class PlaneTest(unittest.TestCase):
    """Tests that share one `weft up`, with kubectl: classes name WEFT, and may prepare more."""
    WEFT = None
    PROGRAMS = None  # beside which others are found; None: WEFT
    FLAGS = ()
    VARIABLES = {}

    @classmethod
    def setUpClass(cls):
        cls.kubectl = build('kubectl')
        cls.temporary = tempfile.TemporaryDirectory()
        cls.plane = ControlPlane(cls.WEFT, cls.temporary.name, cls.PROGRAMS or cls.WEFT)
        cls.plane.environment.update(cls.VARIABLES)
        try:
            cls.plane.start(*cls.FLAGS)
            cls.prepare()
        except BaseException:
            cls.tearDownClass()
            raise

    @classmethod
    def prepare(cls):
        """When it is up."""

    @classmethod
    def tearDownClass(cls):
        cls.plane.stop()
        cls.temporary.cleanup()
