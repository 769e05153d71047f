#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft exec` from outside: exec_test.py PATH_OF_WEFT [unittest arguments]."""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

WEFT = None
LONG = 60


# For a program that is to be the first process of its namespace.
UNSHARE = ['unshare', '--pid', '--fork', '--mount-proc']


def has_namespaces():
    """A root folder that is no mount of its own has none of these."""
    return subprocess.run([*UNSHARE, 'true'], capture_output=True).returncode == 0


class ExecTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return pathlib.Path(self.folder.name) / name

    def wait_for(self, condition, what):
        deadline = time.monotonic() + LONG
        while not condition():
            self.assertLess(time.monotonic(), deadline, 'waited too long for ' + what)
            time.sleep(0.02)

    def start(self, *args, prefix=(), **variables):
        environment = dict(os.environ, D=self.folder.name, **variables)
        process = subprocess.Popen([*prefix, WEFT, 'exec', *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, env=environment, cwd=self.folder.name)
        self.addCleanup(process.kill)
        return process

    def run_exec(self, *args, **variables):
        process = self.start(*args, **variables)
        out, err = process.communicate(timeout=LONG)
        return process.returncode, out, err

    def shell(self, script, *flags, **variables):
        return self.run_exec(*flags, '--', 'sh', '-c', script, **variables)

    def state(self):
        try:
            return json.loads(self.path('state').read_text())
        except OSError:
            return {'processes': []}

    def test_passes_output_and_codes_on(self):
        for script, code in ('echo one; echo two >&2', 0), ('exit 3', 3), ('kill -9 $$', 137), ('kill -ABRT $$', 134):
            got, out, err = self.shell(script, '--restart', 'Never')
            self.assertEqual(got, code, err)
            if code == 0:
                self.assertEqual((out, err), ('one\n', 'two\n'))
        code, _, err = self.run_exec('--', 'no-such-program')
        self.assertEqual(code, 127)
        self.assertRegex(err, "cannot run: .*'no-such-program'")
        code, _, err = self.run_exec('--', '/etc/passwd')
        self.assertEqual(code, 126)
        self.assertRegex(err, "cannot run: .*'/etc/passwd'.*[Pp]ermission")
        code, _, err = self.run_exec()
        self.assertEqual(code, 2)
        self.assertIn('weft exec -- python train.py', err)

    def test_starts_one_again_in_its_place(self):
        once = 'echo run; test -e $D/mark || { touch $D/mark; kill -9 $$; }'
        code, out, err = self.shell(once)
        self.assertEqual((code, out), (0, 'run\nrun\n'), err)
        self.assertIn('ended with exit code 137; starting it again in 500ms (restart 1)', err)

    def test_gives_up_after_its_limit(self):
        code, out, _ = self.shell('echo run; exit 5', '--restart', 'OnFailure', '--restart_limit', '1')
        self.assertEqual((code, out), (5, 'run\nrun\n'))
        # An error of the program is none that goes by itself.
        self.assertEqual(self.shell('echo run; exit 5')[:2], (5, 'run\n'))

    def test_says_what_is_wrong_with_its_words(self):
        code, _, err = self.run_exec('python', 'train.py')
        self.assertEqual((code, err), (2, 'weft exec: the program comes after two dashes: weft exec -- python train.py\n'))
        code, _, err = self.run_exec('--', 'true', WEFT_PROCESSES='{"wroker": 2}')
        self.assertEqual(code, 2)
        self.assertIn("names the task type 'wroker', which the job has not: did you mean 'worker'?", err)
        # Types of TF_CONFIG are known, also those that nobody else has.
        config = '{"cluster": {"sampler": ["a:1"], "worker": ["b:1"]}, "task": {"type": "worker", "index": 0}}'
        self.assertEqual(self.run_exec('--', 'true', TF_CONFIG=config, WEFT_PROCESSES='{"sampler": 2, "ps": 3}')[0], 0)

    def test_passes_signals_on(self):
        trap = 'trap "echo got usr1" USR1; trap "echo bye; exit 7" TERM; echo ready; while :; do sleep 0.02; done'
        process = self.start('--', 'sh', '-c', trap)
        self.assertEqual(process.stdout.readline(), 'ready\n')
        process.send_signal(signal.SIGUSR1)
        self.assertEqual(process.stdout.readline(), 'got usr1\n')
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=LONG)
        self.assertEqual((process.returncode, out), (7, 'bye\n'))

    def test_kills_who_does_not_listen(self):
        process = self.start('--grace', '0.2', '--', 'sh', '-c',
                             'trap "" TERM; setsid sleep 1000.25 & echo ready; while :; do sleep 0.02; done')
        self.assertEqual(process.stdout.readline(), 'ready\n')
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=LONG)
        self.assertEqual(process.returncode, 137)
        listed = subprocess.run(['ps', '-eo', 'args'], capture_output=True, text=True, check=True).stdout
        self.assertNotIn('sleep 1000.25\n', listed)

    def test_reaps_as_the_first_process(self):
        # Fifty orphans end while the program runs; a first process that does not reap leaves zombies.
        # Their name is theirs alone: without namespaces ps shows the whole machine.
        name = 'orphan%d' % os.getpid()
        self.path(name).symlink_to(shutil.which('sleep'))
        script = ('for i in $(seq 50); do ($D/{0} 0.05 & ) ; done; '
                  'for i in $(seq 100); do sleep 0.1; left=$(ps -eo comm= | grep -c "^{0}"); [ $left = 0 ] && break; done; '
                  'echo $left > $D/zombies').format(name)
        prefix = UNSHARE if has_namespaces() else []
        process = self.start('--', 'sh', '-c', script, prefix=prefix)
        process.communicate(timeout=LONG)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(self.path('zombies').read_text(), '0\n')

    CONFIG = json.dumps({'cluster': {'worker': ['a:2222', 'b:2222'], 'ps': ['c:2222']},
                         'task': {'type': 'worker', 'index': 1}})

    def test_several_processes_of_one_program(self):
        code, out, err = self.shell('echo $WEFT_PROCESS_INDEX $TF_CONFIG', WEFT_PROCESSES='{"worker": 2}',
                                    TF_CONFIG=self.CONFIG)
        self.assertEqual(code, 0, err)
        for line in out.splitlines():
            name, index, config = re.fullmatch(r'\[(worker-[23])\] ([01]) (.*)', line).groups()
            config = json.loads(config)
            self.assertEqual(config['task']['index'], 2 + int(index))
            self.assertEqual(name, 'worker-%d' % config['task']['index'])
            self.assertEqual(config['cluster']['worker'], ['a:2222', 'a:2223', 'b:2222', 'b:2223'])
            self.assertEqual(config['cluster']['ps'], ['c:2222'])
        self.assertEqual(len(out.splitlines()), 2)

    def test_a_list_of_programs_with_one_that_serves(self):
        processes = json.dumps([
            {'name': 'ps', 'serves': True, 'command': ['sh', '-c', 'trap "echo bye; exit 0" TERM; touch $D/up; '
                                                       'while :; do sleep 0.02; done']},
            {'name': 'worker', 'command': ['sh', '-c', 'while [ ! -e $D/up ]; do sleep 0.02; done; echo $WORD'],
             'env': {'WORD': 'done'}}])
        code, out, err = self.run_exec('--processes', processes)
        self.assertEqual(code, 0, err)
        self.assertEqual(out, '[worker] done\n[ps] bye\n')

    def test_the_first_failure_ends_the_others(self):
        code, _, err = self.shell('test $WEFT_PROCESS_INDEX = 1 && exit 4; exec sleep 1000', WEFT_PROCESSES='3')
        self.assertEqual(code, 4)
        self.assertIn('sh-1 ended with exit code 4; ending the others', err)

    def test_reports(self):
        log = self.path('message')
        log.touch()
        script = ('echo "step 3/10 loss 0.5"; test -e $D/again || { touch $D/again; kill -9 $$; }; '
                  'while [ ! -e $D/end ]; do sleep 0.02; done; echo last words >&2; exit 9')
        process = self.start('--status_file', 'state', '--termination_log', str(log), '--', 'sh', '-c', script)
        self.wait_for(lambda: any(p.get('restarts') == 1 and 'progress' in p for p in self.state()['processes']),
                      'the restart in the state')
        state = self.state()
        self.assertTrue(state['healthy'])
        self.assertEqual(state['processes'][0]['progress'], {'step': 3, 'steps': 10, 'loss': 0.5})
        self.path('end').touch()
        process.communicate(timeout=LONG)
        self.assertEqual(process.returncode, 9)
        message = json.loads(log.read_text())
        self.assertEqual((message['state'], message['exitCode']), ('Failed', 9))
        self.assertEqual(message['processes'][0]['lastLine'], 'last words')

    def test_a_page_tells_its_health(self):
        port = 0
        with socket.create_server(('127.0.0.1', 0)) as free:
            port = free.getsockname()[1]
        process = self.start('--status_port', str(port), '--grace', '60', '--', 'sh', '-c',
                             'trap "" TERM; echo ready; while [ ! -e $D/end ]; do sleep 0.02; done')
        self.assertEqual(process.stdout.readline(), 'ready\n')

        def get(page):
            try:
                with urllib.request.urlopen('http://127.0.0.1:%d%s' % (port, page), timeout=LONG) as answer:
                    return answer.status, answer.read().decode()
            except urllib.error.HTTPError as error:
                return error.code, error.read().decode()
        self.assertEqual(get('/healthz'), (200, 'ok\n'))
        self.assertEqual(json.loads(get('/status')[1])['processes'][0]['state'], 'Running')
        process.send_signal(signal.SIGTERM)
        self.wait_for(lambda: get('/healthz')[0] == 503, 'bad health')
        self.path('end').touch()
        process.communicate(timeout=LONG)
        self.assertEqual(process.returncode, 0)


if __name__ == '__main__':
    WEFT = os.path.abspath(sys.argv.pop(1))
    unittest.main(argv=sys.argv, verbosity=2)
