# SPDX-License-Identifier: Apache-2.0
"""Rows of training together: all-reduces beside Gloo and Open MPI, and what a killed task costs the others."""
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

PEERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'peers')
SIZES = [1 << 10, 32 << 10, 1 << 20, 16 << 20, 100 << 20]


def _lines(command, **env):
    """{bytes: (median, least)} of a peer that prints these."""
    out = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=600, env=dict(os.environ, **env)).stdout
    return {int(size): (float(median), float(least)) for size, median, least in re.findall(r'^(\d+) ([\d.]+) ([\d.]+)$', out, re.M)}


def _ours(bench, ranks):
    command = [bench.weft, 'bench', 'all-reduce', '--ranks', str(ranks)] + [word for size in SIZES for word in ('--size', str(size))]
    out = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=600).stdout
    return {int(size): (float(median), float(least)) for size, median, least in re.findall(r'^ *(\d+)  \S+ +([\d.]+) +([\d.]+) ', out, re.M)}


def _mpi(folder, ranks):
    """Open MPI as Debian has it. On one host it takes shared memory with single copies (vader, CMA) by itself; more ranks than cores
    are let run, and then yield when they wait."""
    program = os.path.join(folder, 'mpi_allreduce')
    if not os.path.exists(program):
        subprocess.run(['mpicc', '-O2', os.path.join(PEERS, 'mpi_allreduce.c'), '-o', program], check=True)
    return _lines(['mpirun', '--allow-run-as-root', '--oversubscribe', '-n', str(ranks), program] + [str(size) for size in SIZES])


def allreduce(bench):
    bench.table.section('All-reduces of float among processes of this host')
    with tempfile.TemporaryDirectory() as folder:
        for ranks in 2, 4, 8:
            runs = {'weft': lambda: _ours(bench, ranks)}
            if bench.torch_python is not None:
                runs['Gloo (torch)'] = lambda: _lines([bench.torch_python, os.path.join(PEERS, 'torch_allreduce.py'), str(ranks)] +
                                                      [str(size) for size in SIZES])
            if shutil.which('mpicc') and shutil.which('mpirun'):
                runs['Open MPI'] = lambda: _mpi(folder, ranks)
            # In turn, so that all see the same machine.
            rounds = [{name: run() for name, run in runs.items()} for _ in range(max(1, bench.rounds // 3))]
            for size in SIZES:
                def figures(name):
                    return (statistics.median(one[name][size][0] for one in rounds), min(one[name][size][1] for one in rounds))
                goal = 1 / 6 if size >= 100 << 20 else 1 / 5 if size >= 1 << 20 else 0.5 if size <= 1 << 10 and ranks == 2 else 1
                for peer in list(runs)[1:]:
                    bench.table.add('%d ranks, %d KB' % (ranks, size >> 10), figures('weft'), peer, figures(peer), goal)


def _worker(program, cluster, index, steps, **env):
    config = json.dumps({'cluster': cluster, 'task': {'type': 'worker', 'index': index}})
    # Only the first is read: another's lines would fill their pipe, and it would wait for ever.
    return subprocess.Popen([program, '--steps', str(steps), '--log_every', '1'], stdout=subprocess.PIPE if index == 0 else subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL, text=True, env=dict(os.environ, TF_CONFIG=config, **env))


def recovery(bench):
    """From SIGKILL to the next step of the others, of three ranks that average their gradients, two of which are enough."""
    bench.table.section('What a killed rank costs the others')
    program = os.path.join(os.path.dirname(bench.weft), 'together')
    times = []
    for _ in range(bench.rounds):
        held = [socket.create_server(('127.0.0.1', 0)) for _ in range(3)]
        cluster = {'worker': ['127.0.0.1:%d' % one.getsockname()[1] for one in held]}
        for one in held:
            one.close()
        workers = [_worker(program, cluster, index, 100000, WEFT_ELASTIC='2:3') for index in range(3)]
        try:
            for _ in range(50):
                workers[0].stdout.readline()
            workers[2].send_signal(signal.SIGKILL)
            killed = last = time.monotonic()
            longest = 0.0
            # The longest silence after the kill: steps come every few milliseconds.
            while last < killed + 3:
                if not workers[0].stdout.readline():
                    sys.exit('a rank ended with the one that was killed')
                now = time.monotonic()
                longest, last = max(longest, now - last), now
            times.append(longest * 1e6)
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
            workers[0].stdout.close()
    bench.table.add('a rank of three is killed', (statistics.median(times), min(times)), 'a step, at most', (0.2e6, 0.2e6), 1)
