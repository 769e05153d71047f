# SPDX-License-Identifier: Apache-2.0
"""Starts servers and programs for the conformance tests and leaves none behind. Standard library only."""
import contextlib
import ctypes
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def free_ports(count):
    """Below those that outgoing connections get, one of which could be taken before the server starts."""
    with contextlib.ExitStack() as stack:
        ports = []
        while len(ports) < count:
            one = stack.enter_context(socket.socket())
            port = random.SystemRandom().randrange(10000, 32768)  # whatever seed a test sets
            with contextlib.suppress(OSError):
                one.bind(('127.0.0.1', port))
                ports.append(port)
        return ports


def own_address():
    """An address of this machine that is not loopback, or None. Nothing is sent."""
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as probe:
        try:
            probe.connect(('198.51.100.1', 9))
        except OSError:
            return None
        return probe.getsockname()[0]


def binary_from(argv):
    """The server program: the first argument, or the real TensorFlow's server in this interpreter."""
    if len(argv) > 1 and not argv[1].startswith('-'):
        return os.path.abspath(argv.pop(1))
    wrapper = os.path.join(tempfile.mkdtemp(prefix='weft-stand-in-'), 'server')
    with open(wrapper, 'w') as out:
        out.write('#!/bin/sh\nexec %s %s/stand_in.py "$@"\n' % (sys.executable, HERE))
    os.chmod(wrapper, 0o755)
    return wrapper


def numbers_from(argv, *names):
    """For each of the names for which argv has `--name N`: N. They are taken out of argv."""
    found = {}
    for name in names:
        flag = '--' + name.lower()
        if flag in argv:
            at = argv.index(flag)
            found[name] = int(argv[at + 1])
            del argv[at:at + 2]
    return found


def with_flags(binary, *flags):
    """A server program that adds `flags` to its arguments."""
    wrapper = os.path.join(tempfile.mkdtemp(prefix='weft-flags-'), os.path.basename(binary))
    with open(wrapper, 'w') as out:
        out.write('#!/bin/sh\nexec %s "$@" %s\n' % (binary, ' '.join(flags)))
    os.chmod(wrapper, 0o755)
    return wrapper


def talkative():
    """The environment for a server whose log is read: tests keep TensorFlow quiet, and it with it."""
    return {key: value for key, value in os.environ.items() if key != 'TF_CPP_MIN_LOG_LEVEL'}


def wait_for_port(port, process, seconds=60):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError('the process for port %d ended with code %s' % (port, process.returncode))
        try:
            return socket.create_connection(('127.0.0.1', port), timeout=1).close()
        except OSError:
            time.sleep(0.02)
    raise RuntimeError('nothing listens on port %d after %d s' % (port, seconds))


def die_with_parent():
    """For preexec_fn: a test that is killed takes its servers along."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def stop(process):
    for number in signal.SIGTERM, signal.SIGKILL:
        if process.poll() is None:
            process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)


@contextlib.contextmanager
def cluster(binary, folder=None, flags=(), log=None, **jobs):
    """cluster(binary, ps=1, worker=2): yields {job: [grpc target, ...]}; `processes` of the dict has the rest.

    File ops of graphs may use `folder`. `log`, a file, gets what the servers say.
    """
    ports = {job: free_ports(count) for job, count in jobs.items()}
    spec = json.dumps({job: ['127.0.0.1:%d' % p for p in numbers] for job, numbers in ports.items()})
    targets = {job: ['grpc://127.0.0.1:%d' % p for p in numbers] for job, numbers in ports.items()}
    started = {}
    try:
        for job, numbers in ports.items():
            for index in range(len(numbers)):
                command = [binary, 'server', '--cluster', spec, '--job_name', job, '--task_index', str(index)]
                if folder:
                    command += ['--root', folder]
                started[job, index] = subprocess.Popen(command + list(flags), preexec_fn=die_with_parent, stderr=log,
                                                       env=talkative() if log else None)
        for (job, index), process in started.items():
            wait_for_port(ports[job][index], process)
        yield dict(targets, processes=started)
    finally:
        for process in started.values():
            stop(process)


def program(binary, script, *args, variables=None, **popen):
    """A TensorFlow program under the shim, its output captured as text; `variables` are added to its environment."""
    environment = dict(os.environ, WEFT_BINARY=binary, PYTHONPATH=os.path.join(ROOT, 'python'),
                       TF_CPP_MIN_LOG_LEVEL='3', PYTHONUNBUFFERED='1', **(variables or {}))
    return subprocess.Popen([sys.executable, '-m', 'weft', os.path.join(HERE, script), *args], env=environment,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=die_with_parent,
                            **popen)
