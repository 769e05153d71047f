#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft run` from outside: run_test.py PATH_OF_WEFT [unittest arguments]."""
import json
import os
import pathlib
import pty
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

WEFT = None
LONG = 60

JOB = '''apiVersion: kubeflow.org/{version}
kind: TFJob
metadata:
  name: shell
spec:
  tfReplicaSpecs:
    PS:
      replicas: 1
      restartPolicy: {policy}
      template:
        spec:
          containers:
          - name: tensorflow
            image: trainer:1.0
            command: ["sh", "-c", {ps}]
    Worker:
      replicas: 2
      restartPolicy: {policy}
      template:
        spec:
          containers:
          - name: tensorflow
            image: trainer:1.0
            command: ["sh", "-c", {worker}]
            env:
            - name: STEPS
              value: "100"
            args: ["--steps=$(STEPS)"]
'''


class RunTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        # Whoever has this in its environment descends from our run, wherever it went.
        self.token = uuid.uuid4().hex
        self.environment = dict(os.environ, LAUNCH_TOKEN=self.token, D=self.folder.name)
        self.addCleanup(self.kill_rest)

    def path(self, name):
        return pathlib.Path(self.folder.name) / name

    def rest(self):
        found = []
        for entry in pathlib.Path('/proc').iterdir():
            if entry.name.isdigit():
                try:
                    if self.token.encode() in (entry / 'environ').read_bytes():
                        found.append(int(entry.name))
                except OSError:
                    pass
        return found

    def kill_rest(self):
        for pid in self.rest():
            os.kill(pid, signal.SIGKILL)

    def assert_nothing_left(self):
        self.wait_for(lambda: not self.rest(), 'the end of all processes')

    def wait_for(self, condition, what):
        deadline = time.monotonic() + LONG
        while not condition():
            self.assertLess(time.monotonic(), deadline, 'waited too long for ' + what)
            time.sleep(0.02)

    def start(self, *args, **kwargs):
        return subprocess.Popen([WEFT, 'run', *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=self.environment, cwd=self.folder.name, **kwargs)

    def finish(self, process):
        out, err = process.communicate(timeout=LONG)
        return process.returncode, out, err

    def run_weft(self, *args):
        return self.finish(self.start(*args))

    def job(self, worker, ps='sleep 1000', version='v1', policy='ExitCode'):
        path = self.path('job.yaml')
        # As in a cluster, two dollars of a file are one for the program.
        ps, worker = ps.replace('$', '$$'), worker.replace('$', '$$')
        path.write_text(JOB.format(version=version, policy=policy, ps=json.dumps(ps), worker=json.dumps(worker)))
        return str(path)

    def read_pid(self, name):
        path = self.path(name)
        self.wait_for(lambda: path.exists() and path.read_text().endswith('\n'), name)
        return int(path.read_text())

    def test_a_task_that_wants_too_much_memory(self):
        path = self.path('job.yaml')
        path.write_text(JOB.format(version='v1', policy='Never', ps='"sleep 1000"', worker='"exec python3 $D/eat.py"').replace(
            '            env:', '            resources: {limits: {memory: 64Mi, cpu: 1}}\n            env:'))
        self.path('eat.py').write_text('import time\nheld = bytearray(200 << 20)\ntime.sleep(1000)\n')
        done = subprocess.run([WEFT, 'run', str(path)], env=self.environment, capture_output=True, text=True, timeout=LONG)
        self.assertEqual(done.returncode, 137, done.stderr)
        self.assertRegex(done.stderr, r'failed: killed by SIGKILL \(9\): it .* limit (is|of) 64 MiB')
        self.assertIn('more memory: resources.limits.memory', done.stderr)

    def test_runs_a_file_of_each_version(self):
        for version in 'v1', 'v1beta1':
            code, out, err = self.run_weft(self.job('echo "$0 $TF_CONFIG"', version=version))
            self.assertEqual(code, 0, err)
            line = next(line for line in out.splitlines() if line.startswith('[worker-1] '))
            words = line.split(' ', 2)
            self.assertEqual(words[1], '--steps=100')
            config = json.loads(words[2])
            self.assertEqual(list(config), ['cluster', 'task', 'environment'])
            self.assertEqual(config['task'], {'type': 'worker', 'index': 1})
            self.assertEqual(len(config['cluster']['ps']), 1)
            self.assertEqual(len(set(config['cluster']['worker'])), 2)
            self.assertIn('[weft] images are not used on this machine', err)
            self.assertIn("job 'shell' succeeded", err)
            self.assert_nothing_left()

    def test_a_killed_worker_and_a_killed_server_are_started_again(self):
        for policy in 'ExitCode', 'OnFailure', 'Always':
            for victim, index in ('worker', 1), ('ps', 0):
                with self.subTest(policy=policy, victim=victim):
                    for name in 'pid', 'done':
                        self.path(name).unlink(missing_ok=True)
                    is_victim = 'case $TF_CONFIG in *\'"type":"%s","index":%d\'*)' % (victim, index)
                    script = (is_victim + ' if [ -e $D/pid ]; then touch $D/done; else echo $$ > $D/pid; fi;; esac; '
                              'while [ ! -e $D/done ]; do sleep 0.02; done')
                    process = self.start(self.job(script, ps=script + '; sleep 1000', policy=policy))
                    os.kill(self.read_pid('pid'), signal.SIGKILL)
                    code, _, err = self.finish(process)
                    self.assertEqual(code, 0, err)
                    self.assertIn('%s-%d ended: killed by SIGKILL (9); starting it again' % (victim, index), err)
                    self.assert_nothing_left()

    def test_never_reports_the_kill(self):
        process = self.start(self.job('echo $$ > $D/pid; sleep 1000', policy='Never'))
        os.kill(self.read_pid('pid'), signal.SIGKILL)
        code, _, err = self.finish(process)
        self.assertEqual(code, 137)
        self.assertIn('failed: killed by SIGKILL (9)', err)
        self.assertIn('--restart OnFailure', err)
        self.assert_nothing_left()

    def test_the_first_failure_fills_one_screen(self):
        worker = ('case $TF_CONFIG in *\'"worker","index":1\'*) for i in $(seq 50); do echo line $i; done; '
                  'echo Traceback >&2; exit 3;; esac; trap "echo terminated; exit 0" TERM; sleep 1000 & wait')
        code, out, err = self.run_weft(self.job(worker))
        self.assertEqual(code, 3)
        self.assertIn('[worker-1] line 1\n', out)
        screen = err[err.index('\n---'):]
        self.assertLess(len(screen.splitlines()), 45)
        for text in ('worker-1 failed: exit code 3', '  | Traceback', '  | line 50', '  worker-0  ', 'Next: ',
                     'weft\'s exit code is 3', 'run --log_dir logs'):
            self.assertIn(text, screen)
        self.assertNotIn('  | line 30\n', screen)
        self.assert_nothing_left()

    def test_logs_are_kept_when_asked(self):
        code, _, _ = self.run_weft('--log_dir', 'logs', self.job('echo one; echo two >&2'))
        self.assertEqual(code, 0)
        self.assertEqual(sorted(self.path('logs/worker-0.log').read_text().split()), ['one', 'two'])

    STUBBORN = 'trap "" TERM INT HUP; (trap "" TERM INT; sleep 1000) & setsid sleep 1000 & echo $$ > $D/pid; wait; sleep 1000'

    def test_signals_end_everything_also_who_ignores_them(self):
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            with self.subTest(signal=number):
                self.path('pid').unlink(missing_ok=True)
                process = self.start('--grace', '0.2', self.job(self.STUBBORN, ps=self.STUBBORN))
                self.read_pid('pid')
                self.assertGreater(len(self.rest()), 3)
                process.send_signal(number)
                code, _, err = self.finish(process)
                self.assertEqual(code, 128 + number)
                self.assertIn('nothing of it is left running', err)
                self.assert_nothing_left()

    def test_a_second_interrupt_kills_at_once(self):
        process = self.start('--grace', '1000', self.job(self.STUBBORN))
        self.read_pid('pid')
        process.send_signal(signal.SIGINT)
        self.assertIn('ending all tasks', self.read_until(process.stderr, 'interrupted'))
        process.send_signal(signal.SIGINT)
        code, _, _ = self.finish(process)
        self.assertEqual(code, 130)
        self.assert_nothing_left()

    def read_until(self, stream, text):
        for line in stream:
            if text in line:
                return line
        self.fail('no line with ' + text)

    def test_nothing_outlives_a_killed_launcher(self):
        process = self.start(self.job('(sleep 1000 & sleep 1000) & echo $$ > $D/pid; sleep 1000'))
        self.read_pid('pid')
        process.kill()
        process.communicate(timeout=LONG)
        self.assert_nothing_left()

    def on_a_terminal(self, *args, interrupted=None):
        """Exit code and text of `weft run` in front of a terminal; Ctrl-C once interrupted() is over."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(WEFT, [WEFT, 'run', *args], dict(self.environment, TERM='xterm'))
        if interrupted is not None:
            interrupted()
            os.write(terminal, b'\x03')
        text = b''
        try:
            while chunk := os.read(terminal, 4096):
                text += chunk
        except OSError:
            pass
        _, status = os.waitpid(pid, 0)
        os.close(terminal)
        return os.waitstatus_to_exitcode(status), text

    def test_a_progress_line_stays_at_the_foot_of_a_terminal(self):
        code, text = self.on_a_terminal(
            '--workers', '1', '--', 'sh', '-c',
            'printf "1 of 3\\r"; sleep 1.5; echo aside >&2; sleep 1.5; printf "2 of 3\\r"; sleep 1.5; echo "3 of 3"; echo live=$WEFT_LIVE')
        self.assertEqual(code, 0, text)
        name = b'[worker-0] ' if b'[worker-0] ' in text else b'[worker-0]\x1b[0m '
        clear, first, second = b'\r\x1b[K', name + b'1 of 3', name + b'2 of 3'
        for part in first, clear, name + b'aside\r\n', first, clear, second, clear, name + b'3 of 3\r\n', b'live=1':
            self.assertIn(part, text)
            text = text[text.index(part) + len(part):]
        self.assertNotIn(b' of 3', text)

    def test_ctrl_c_on_a_terminal(self):
        job = self.job('echo $$ > $D/pid; sleep 1000')
        code, text = self.on_a_terminal(job, interrupted=lambda: self.read_pid('pid'))
        self.assertEqual(code, 130, text)
        self.assertIn(b'interrupted by SIGINT', text)
        self.assert_nothing_left()

    def test_a_program_without_a_file(self):
        code, out, err = self.run_weft(
            '--ps', '1', '--workers', '2', '--chief', '--evaluator', '--',
            'sh', '-c', 'echo "$1 $TF_CONFIG"; case $TF_CONFIG in *\'"chief","index"\'*) sleep 0.3;; *) sleep 1000;; esac',
            'sh', '--ps')
        self.assertEqual(code, 0, err)
        names = sorted(line.split()[0] for line in out.splitlines())
        self.assertEqual(names, ['[chief-0]', '[evaluator-0]', '[ps-0]', '[worker-0]', '[worker-1]'])
        self.assertIn('[chief-0] --ps {', out)
        evaluator = next(line for line in out.splitlines() if line.startswith('[evaluator-0]'))
        config = json.loads(evaluator[evaluator.index('{'):])
        self.assertEqual(sorted(config['cluster']), ['chief', 'ps', 'worker'])
        self.assert_nothing_left()

    def test_tasks_find_this_weft(self):
        code, out, _ = self.run_weft('--workers', '1', '--', 'weft', '--version')
        self.assertEqual(code, 0)
        self.assertRegex(out, r'^\[worker-0\] weft \d+\.\d+')

    def test_servers_of_a_file_serve(self):
        # A worker that reaches the server which another task of the same file started as `weft server`.
        probe = ("import json, os, socket, time\n"
                 "host, port = json.loads(os.environ['TF_CONFIG'])['cluster']['ps'][0].split(':')\n"
                 "for _ in range(3000):\n"
                 "    try:\n"
                 "        socket.create_connection((host, int(port))); break\n"
                 "    except OSError: time.sleep(0.02)\n"
                 "else: raise SystemExit(1)\n"
                 "print('reached')\n")
        self.path('probe.py').write_text(probe)
        code, out, err = self.run_weft(self.job(sys.executable + ' probe.py', ps='exec weft server'))
        self.assertEqual(code, 0, err)
        self.assertIn('[worker-0] reached', out)
        self.assert_nothing_left()

    def test_progress_bars_become_lines(self):
        code, out, _ = self.run_weft(
            '--workers', '1', '--',
            'sh', '-c', 'for i in 1 2 3 4 5 6 7 8 9; do printf "\\rstep $i"; sleep 0.02; done; printf "\\rstep 10\\ndone\\n"')
        self.assertEqual(code, 0)
        self.assertEqual(out, '[worker-0] step 1\n[worker-0] step 10\n[worker-0] done\n')

    def test_a_closed_pipe_ends_the_job(self):
        process = self.start(self.job('while :; do echo much; done'))
        process.stdout.readline()
        process.stdout.close()
        process.stderr.read()
        process.stderr.close()
        process.wait(timeout=LONG)
        self.assertNotEqual(process.returncode, 0)
        self.assert_nothing_left()

    def test_says_how_to_write_what_the_slide_misprints(self):
        text = pathlib.Path(self.job('true')).read_text()
        broken = text.replace('          - name: tensorflow\n', '            name: tensorflow\n')
        self.path('broken.yaml').write_text(broken)
        code, _, err = self.run_weft('broken.yaml')
        self.assertEqual(code, 2)
        self.assertIn('broken.yaml:', err)
        self.assertIn('put a dash before its first field', err)

    def test_says_what_is_wrong_with_its_arguments(self):
        for args, text in [
                ([], 'What shall run?'), (['nowhere.yaml'], "Cannot open 'nowhere.yaml'"),
                (['--workers', '1'], 'There is no program to run'), ([WEFT], 'write two dashes before it'),
                (['--ps', '1', '--', 'true'], 'nothing would end the job'),
                ([self.job('true'), '--workers', '3'], 'Either a file or a program'),
                # Without the two dashes: the line as it should be.
                (['sh', 'train.sh'], 'two dashes: weft run -- sh train.sh\n'),
                (['--ps', '1', 'sh', 'a', '--steps', '3'], 'two dashes: weft run --ps 1 -- sh a --steps 3\n'),
                (['train.py'], '-- python train.py`'), (['sh'], '-- sh`'), (['/dev/null'], "'/dev/null' is empty")]:
            code, _, err = self.run_weft(*args)
            self.assertEqual(code, 2, args)
            self.assertIn(text, err)
        done = subprocess.run([WEFT, 'rnu'], capture_output=True, text=True, timeout=LONG)
        self.assertIn("Did you mean 'weft run'?", done.stderr)
        self.assertEqual(done.returncode, 2)

    def test_reads_a_job_from_stdin(self):
        job = pathlib.Path(self.job('echo from stdin', ps='sleep 1000')).read_text()
        done = subprocess.run([WEFT, 'run', '-'], input=job, capture_output=True, text=True, env=self.environment,
                              cwd=self.folder.name, timeout=LONG)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('from stdin\n', done.stdout)
        done = subprocess.run([WEFT, 'render', '-'], input=job, capture_output=True, text=True, timeout=LONG)
        self.assertIn('kind: Pod\n', done.stdout)
        done = subprocess.run([WEFT, 'render', '-'], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LONG)
        self.assertEqual(done.returncode, 1)
        self.assertIn('stdin is empty', done.stderr)

    def test_a_deadline_is_met_to_the_second(self):
        job = pathlib.Path(self.job('sleep 1000'))
        job.write_text(job.read_text().replace('spec:\n  tf', 'spec:\n  runPolicy: {activeDeadlineSeconds: 2}\n  tf'))
        began = time.monotonic()
        code, _, err = self.run_weft(str(job))
        self.assertEqual(code, 124)
        self.assertGreaterEqual(time.monotonic() - began, 2)
        self.assertIn('is over its deadline (activeDeadlineSeconds: 2)', err)
        self.assert_nothing_left()

    def test_a_file_without_commands_says_what_to_write(self):
        text = pathlib.Path(self.job('true')).read_text()
        self.path('image.yaml').write_text('\n'.join(line for line in text.splitlines() if 'command:' not in line))
        code, _, err = self.run_weft('image.yaml')
        self.assertEqual(code, 2)
        self.assertIn('command: ["python", "train.py"]', err)


if __name__ == '__main__':
    WEFT = os.path.abspath(sys.argv.pop(1))
    unittest.main(argv=sys.argv, verbosity=2)
