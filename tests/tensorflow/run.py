#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs TensorFlow's own test files, in graph mode, on TensorFlow's gRPC server and then on `weft server`.

    run.py WEFT FOLDER --out results.jsonl [--under kernel_tests] [--every 4] [--package keras=keras.src]

FOLDER holds test files as they lie in TensorFlow's repository (FOLDER/tensorflow/python/...), in Estimator's or in
Keras'; it stays outside this project. Files are drawn by a rule that nobody can bend: those whose path has a CRC-32
divisible by --every. Each case runs with every session of it on a server of the job `localhost`; a case counts if it
ran steps there and passed on TensorFlow's server. Each line of the results is one case; table.py sums them up.
"""
import argparse
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import zlib

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'conformance'))
import processes  # noqa: E402

BACKENDS = 'tensorflow', 'weft'


class Server:
    """One of the two servers, started when first asked for and again when it is gone."""

    def __init__(self, command):
        self.command, self.process, self.port, self.deaths = command, None, 0, 0

    def ended(self):
        """How often it ended unasked."""
        if self.process is not None and self.process.poll() is not None:
            self.deaths += 1
            self.process = None
        return self.deaths

    def target(self):
        self.ended()
        if self.process is None:
            self.port, = processes.free_ports(1)
            spec = json.dumps({'localhost': ['127.0.0.1:%d' % self.port]})
            self.process = subprocess.Popen(
                [*self.command, 'server', '--cluster', spec, '--job_name', 'localhost', '--task_index', '0', '--root', '/'],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=processes.die_with_parent)
            processes.wait_for_port(self.port, self.process)
        return 'grpc://127.0.0.1:%d' % self.port

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def drawn(folder, under, every):
    """The test files below `under`, as paths relative to `folder`, that the rule draws."""
    found = sorted(str(path.relative_to(folder)) for path in folder.rglob('*_test.py'))
    return [path for path in found if any(part in path for part in under) and zlib.crc32(path.encode()) % every == 0]


def draw_up_report(out, lines):
    with open(out, 'a') as results:
        for line in lines:
            results.write(json.dumps(line) + '\n')


def run_file(options, path, servers):
    """Runs one file in children of this process until every case of it has an outcome."""
    done, deadline = {}, time.monotonic() + options.file_seconds
    while True:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            run_child(options, path, {name: server.target() for name, server in servers.items()}, set(done), writer)
        os.close(writer)
        finished, current = follow(reader, child, done, options.case_seconds, deadline)
        os.close(reader)
        if finished or time.monotonic() > deadline:
            return list(done.values())
        for server in servers.values():
            server.stop()
        if current is None:
            return list(done.values()) + [{'file': path, 'case': '', 'tensorflow': 'no import'}]
        line = done.setdefault(current['case'], dict(current, file=path))
        line[current['backend']] = 'stuck'
        line.pop('backend', None)


def follow(reader, child, done, case_seconds, deadline):
    """Reads what a child says until it ends or says nothing for too long; (did it end well, what it was at)."""
    current, rest, well = None, b'', False
    while True:
        wait = min(case_seconds if current else 180, max(1, deadline - time.monotonic()))
        ready, _, _ = select.select([reader], [], [], wait)
        piece = os.read(reader, 1 << 16) if ready else b''
        if not piece:
            break
        *lines, rest = (rest + piece).split(b'\n')
        for line in map(json.loads, lines):
            if line.get('finished'):
                well = True
            elif 'backend' in line:
                current = line
            else:
                done[line['case']], current = line, None
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return well, current


def run_child(options, path, targets, done, writer):
    """In a child: loads the file, runs its cases, writes a line for each; never returns."""
    code = 1
    try:
        os.setsid()
        processes.die_with_parent()
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(os.open(options.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND) if options.log else quiet, 2)
        import cases
        sys.argv = [path]
        with os.fdopen(writer, 'w', buffering=1) as out:
            cases.run(pathlib.Path(options.folder), path, options.cases, targets, done, dict(options.packages),
                      lambda line: out.write(json.dumps(line) + '\n'))
        code = 0
    except BaseException:  # A file that does not load is an outcome too.
        traceback.print_exc()
    finally:
        os._exit(code)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('weft')
    parser.add_argument('folder')
    parser.add_argument('--out', required=True)
    parser.add_argument('--under', action='append', default=[], help='run files with this in their path; may be repeated')
    parser.add_argument('--every', type=int, default=1)
    parser.add_argument('--shard', default='0/1', help='this part of the files drawn, as 0/2')
    parser.add_argument('--packages', '--package', action='append', default=[], type=lambda text: tuple(text.split('=')),
                        help='imports of the first are imports of the second')
    parser.add_argument('--cases', default='', help='run cases whose name has this regular expression')
    parser.add_argument('--case_seconds', type=int, default=60)
    parser.add_argument('--file_seconds', type=int, default=900)
    parser.add_argument('--log', default='', help='what the cases print')
    options = parser.parse_args()
    folder = pathlib.Path(options.folder).resolve()
    options.folder = str(folder)
    index, count = map(int, options.shard.split('/'))
    stand_in = [sys.executable, str(pathlib.Path(processes.HERE) / 'stand_in.py')]
    with tempfile.TemporaryDirectory() as scratch:
        os.environ['TEST_TMPDIR'] = scratch
        import cases
        cases.prepare()
        # TensorFlow's takes long to start, so it serves many files; its containers are emptied before each case.
        theirs = Server(stand_in)
        for path in drawn(folder, options.under or [''], options.every)[index::count]:
            servers = {'tensorflow': theirs, 'weft': Server([os.path.abspath(options.weft)])}
            started = time.monotonic()
            try:
                lines = run_file(options, path, servers)
            finally:
                deaths = servers['weft'].ended()
                servers['weft'].stop()
            draw_up_report(options.out, lines or [{'file': path, 'case': '', 'tensorflow': 'no cases'}])
            good = sum(line.get('weft') == 'passed' for line in lines)
            print('%-90s %4d of %4d, %d cases, %d s%s' % (
                path, good, sum('weft' in line for line in lines), len(lines), time.monotonic() - started,
                ', weft ended %d times' % deaths if deaths else ''), flush=True)
        theirs.stop()


if __name__ == '__main__':
    main()
