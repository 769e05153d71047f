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

import elastic_rows
import wire_rows

PEERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'peers')
SIZES = [1 << 10, 32 << 10, 1 << 20, 16 << 20, 100 << 20, 256 << 20]
ACROSS = [1 << 10, 1 << 20, 16 << 20, 100 << 20]
# What Open MPI of Debian (vader in shared memory, coll tuned; no xpmem or knem in its build) is tried with; the best of each size counts. CMA,
# one copy by the kernel, is its default.
MPI_SETTINGS = {
    'CMA': [],
    'no CMA': ['btl_vader_single_copy_mechanism', 'none'],
    'no CMA, yielding': ['btl_vader_single_copy_mechanism', 'none', 'mpi_yield_when_idle', '1'],
    'segmented ring': ['coll_tuned_use_dynamic_rules', '1', 'coll_tuned_allreduce_algorithm', '5'],
}
LINE = re.compile(r'^(\d+) ([\d.]+) ([\d.]+)$', re.M)


def _words(sizes):
    return [str(size) for size in sizes]


def _times(pattern, text):
    return {int(size): (float(median), float(least)) for size, median, least in re.findall(pattern, text)}


def _run(*commands, **env):
    """{bytes: (median, least)} that the first of several programs that run together prints."""
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=dict(os.environ, **env))
               for command in commands]
    try:
        texts = [process.communicate(timeout=600)[0] for process in started]
    finally:
        for process in started:
            process.kill()
    for process, command in zip(started, commands):
        if process.wait():
            raise RuntimeError('%s ended with %d' % (command[0], process.returncode))
    return _times(LINE, texts[0])


def _ours(bench, ranks, sizes, *options):
    command = [bench.weft, 'bench', 'all-reduce', '--ranks', str(ranks), *options] + [word for size in sizes for word in ('--size', str(size))]
    out = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=600).stdout
    return _times(re.compile(r'^ *(\d+)  \S+ +([\d.]+) +([\d.]+) ', re.M), out)


def mpi_version():
    if shutil.which('mpirun') is None:
        return None
    found = re.search(r'[\d.]+', subprocess.run(['mpirun', '--version'], stdout=subprocess.PIPE, text=True).stdout)
    return found and found[0]


def _mpi(program, ranks, settings):
    pairs = [word for at in range(0, len(settings), 2) for word in ('--mca', *settings[at:at + 2])]
    return _run(['mpirun', '--allow-run-as-root', '--oversubscribe', '--bind-to', 'none', *pairs, '-n', str(ranks), program, *_words(SIZES)])


def _in_turn(bench, runs):
    """All of `runs` in turn, so that all see the same machine: {name: {bytes: (median, least)}}."""
    rounds = [{name: run() for name, run in runs.items()} for _ in range(max(1, bench.rounds // 3))]
    return {name: {size: (statistics.median(one[name][size][0] for one in rounds), min(one[name][size][1] for one in rounds))
                   for size in rounds[0][name]} for name in runs}


def _text(size):
    return '%d MB' % (size >> 20) if size >= 1 << 20 else '%d KB' % (size >> 10)


def _goal(ranks, size, peer):
    """The part of a peer's time that is wanted."""
    if size >= 100 << 20:
        return 1 / 6
    if size >= 1 << 20:
        return 1 / 5
    return 0.5 if size <= 1 << 10 and ranks == 2 and peer != 'Gloo' else 1


def _on_one_host(bench, folder):
    bench.table.section('All-reduces of float among processes of one host')
    has_mpi = shutil.which('mpicc') and shutil.which('mpirun')
    if has_mpi:
        program = os.path.join(folder, 'mpi_allreduce')
        subprocess.run(['mpicc', '-O2', os.path.join(PEERS, 'mpi_allreduce.c'), '-o', program], check=True)
    else:
        bench.table.say('without Open MPI: install openmpi-bin and libopenmpi-dev')
    floor = os.path.join(os.path.dirname(bench.weft), 'memory_floor')
    for ranks in 2, 4, 8:
        runs = {'weft': lambda: _ours(bench, ranks, SIZES)}
        if bench.torch_python is not None:
            runs['Gloo'] = lambda: _run([bench.torch_python, os.path.join(PEERS, 'torch_allreduce.py'), str(ranks), *_words(SIZES)])
        for name, settings in MPI_SETTINGS.items() if has_mpi else ():
            runs['Open MPI, ' + name] = lambda settings=settings: _mpi(program, ranks, settings)
        runs['floor'] = lambda: _run([floor, str(ranks), str(100 << 20)])
        times = _in_turn(bench, runs)
        for size in SIZES:
            peers = [name for name in times if name == 'Gloo']
            peers += sorted((name for name in times if name.startswith('Open')), key=lambda name: times[name][size][0])[:1]
            for peer in peers:
                bench.table.add('%d ranks, %s' % (ranks, _text(size)), times['weft'][size], peer, times[peer][size], _goal(ranks, size, peer))
        bench.table.add('%d ranks, 100 MB' % ranks, times['weft'][100 << 20], 'memory traffic alone', times['floor'][100 << 20], 1 / 0.85)


def _gloo_across(bench, networks, ranks):
    with socket.create_server(('127.0.0.1', 0)) as probe:  # free there is free here, most likely
        port = probe.getsockname()[1]
    return _run(*[wire_rows.placed(networks.NAMES[rank % 2], [
        bench.torch_python, os.path.join(PEERS, 'torch_allreduce.py'), '%d/%d/%s:%d/wire' % (ranks, rank, networks.ADDRESSES[0], port),
        *_words(ACROSS)]) for rank in range(ranks)])


def _across(bench, folder):
    with wire_rows.made(bench, 'All-reduces between two network namespaces, ranks in turn') as networks:
        if networks is None:
            return
        places = [word for name, address in zip(networks.NAMES, networks.ADDRESSES)
                  for word in ('--networks', '/run/netns/%s,%s' % (name, address))]
        sockets = [os.path.join(os.path.dirname(bench.weft), 'socket_allreduce'),
                   '--across=/run/netns/%s,/run/netns/%s,%s' % (*networks.NAMES, networks.ADDRESSES[0]), *_words(ACROSS)]
        for ranks in 2, 4:
            runs = {'weft': lambda: _ours(bench, ranks, ACROSS, *places)}
            if bench.torch_python is not None:
                runs['Gloo'] = lambda: _gloo_across(bench, networks, ranks)
            if ranks == 2:
                runs['plain sockets'] = lambda: _run(sockets)
            times = _in_turn(bench, runs)
            for peer in list(runs)[1:]:
                for size in ACROSS:
                    goal = 1 / 0.85 if peer != 'Gloo' else 1 / 1.8 if size >= 1 << 20 else 1
                    bench.table.add('%d ranks, %s' % (ranks, _text(size)), times['weft'][size], peer, times[peer][size], goal)
        secret = os.path.join(folder, 'secret')
        subprocess.run([bench.weft, 'secret', secret], check=True, stdout=subprocess.DEVNULL)
        times = _in_turn(bench, {'weft': lambda: _ours(bench, 2, ACROSS, *places, '--task_tls', secret),
                                 'OpenSSL sockets': lambda: _run([sockets[0], '--tls=1', *sockets[1:]])})
        for size in ACROSS:
            bench.table.add('2 ranks, %s, TLS' % _text(size), times['weft'][size], 'OpenSSL sockets', times['OpenSSL sockets'][size], 1 / 0.8)


def allreduce(bench):
    with tempfile.TemporaryDirectory() as folder:
        _on_one_host(bench, folder)
        _across(bench, folder)


def _worker(program, cluster, index, steps, **env):
    config = json.dumps({'cluster': cluster, 'task': {'type': 'worker', 'index': index}})
    # Only the first is read: another's lines would fill their pipe, and it would wait for ever.
    return subprocess.Popen([program, '--steps', str(steps), '--log_every', '1'], stdout=subprocess.PIPE if index == 0 else subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL, text=True, env=dict(os.environ, TF_CONFIG=config, **env))


def _quantiles(bench, backups, slow_percent, steps=200):
    """(median, p99) of the steps in us of four workers that compute 100 ms each; the last is slow in some of its steps."""
    held = [socket.create_server(('127.0.0.1', 0)) for _ in range(5)]
    addresses = ['127.0.0.1:%d' % one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    cluster = {'ps': addresses[:1], 'worker': addresses[1:]}
    tasks = [{'type': 'worker', 'index': index} for index in range(4)] + [{'type': 'ps', 'index': 0}]
    program = os.path.join(os.path.dirname(bench.weft), 'backup_rounds')
    started = [subprocess.Popen([program, str(steps), str(backups), '100', str(slow_percent)], text=True, stderr=subprocess.DEVNULL,
                                stdout=subprocess.PIPE if index == 0 else subprocess.DEVNULL,
                                env=dict(os.environ, TF_CONFIG=json.dumps({'cluster': cluster, 'task': task})))
               for index, task in enumerate(tasks)]
    try:
        micros = sorted(float(line) for line in started[0].communicate(timeout=600)[0].split()[5:])  # the first wait for others to start
    finally:
        for process in started:
            process.kill()
            process.wait()
    return micros[len(micros) // 2], micros[len(micros) * 99 // 100]


def backup(bench):
    """Of four workers one takes five times as long in a tenth of its steps, and three are waited for."""
    bench.table.section('A step of four workers, one of which is slow in a tenth of its steps')
    rounds = [[_quantiles(bench, *case) for case in ((0, 0), (0, 10), (1, 10))] for _ in range(max(1, bench.rounds // 3))]
    even = [one[0][0] for one in rounds]
    for what, case, goal in ('p99, all are waited for', 1, 5), ('p99, one is a backup', 2, 1.15):
        p99 = [one[case][1] for one in rounds]
        bench.table.add(what, (statistics.median(p99), min(p99)), 'median of a step where none is slow', (statistics.median(even), min(even)),
                        goal)


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
    _faults(bench)
    elastic_rows.elastic(bench)


def _faults(bench):
    """The same in network namespaces, by tests/examples/together_faults_test.py: a rank is killed, stands still or is cut off for 6 s."""
    test = os.path.join(os.path.dirname(PEERS), '..', 'tests', 'examples', 'together_faults_test.py')
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, 'recoveries.json')
        subprocess.run([sys.executable, test, os.path.dirname(bench.weft), '--kills', str(3 * bench.rounds), '--json', out, '-k', 'elastic'],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if not os.path.exists(out):
            return bench.table.say('no network namespaces to be had (unshare, ip): stops and cuts are not measured')
        with open(out, encoding='utf-8') as file:
            recoveries = json.load(file)
    for kind, times in recoveries.items():
        times.sort()
        p50, p99 = times[len(times) // 2] * 1e6, times[len(times) * 99 // 100] * 1e6
        wanted, at_most = (0.2e6, 3e6) if kind == 'SIGKILL' else (2e6, 5e6)
        bench.table.add('%s, p50 of %d' % (kind, len(times)), (p50, times[0] * 1e6), 'a step, at most', (wanted, wanted), 1)
        bench.table.add('%s, p99' % kind, (p99, p99), 'a step, at most', (at_most, at_most), 1)
