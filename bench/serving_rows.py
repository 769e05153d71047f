# SPDX-License-Identifier: Apache-2.0
"""The row `serving`: `weft serve` beside TensorFlow behind a gRPC server of its own and TensorFlow in process (peers/tensorflow_serving_rounds.py).

The same clients ask both servers. CPU time is that of the server's process for each request; of a load, of the whole process.
"""
import contextlib
import json
import os
import re
import socket
import statistics
import subprocess
import tempfile
import time

PEER = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'peers', 'tensorflow_serving_rounds.py')
QUIET = dict(os.environ, TF_CPP_MIN_LOG_LEVEL='3', CUDA_VISIBLE_DEVICES='')
# Batch, clients, requests of a round, milliseconds between an answer and the next request, width of the model.
LATENCY = {1: '1 4 400 10 784', 32: '32 4 400 10 784'}
THROUGHPUT = '1 32 3200 0 784'


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def cpu_us(pid):
    with open('/proc/%d/stat' % pid) as file:
        fields = file.read().rsplit(')', 1)[1].split()
    return 1e6 * (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


@contextlib.contextmanager
def started(command, port):
    """(process, seconds and CPU microseconds until it listens)."""
    begin = time.perf_counter()
    process = subprocess.Popen([*command], env=QUIET, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while True:
            if process.poll() is not None:
                raise RuntimeError('%s ended with %s' % (' '.join(command), process.returncode))
            with contextlib.suppress(OSError), socket.create_connection(('127.0.0.1', port), timeout=1):
                break
            time.sleep(0.005)
        yield process, time.perf_counter() - begin, cpu_us(process.pid)
    finally:
        process.kill()
        process.wait()


class Lines:
    """A program that answers each line with figures."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, env=QUIET, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        text=True)

    def ask(self, line):
        self.process.stdin.write(line + '\n')
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError('%s ended with %s' % (self.process.args, self.process.wait()))
        return json.loads(answer)

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def of_server(clients, process, port, line):
    """A round, with the server's CPU time for each request."""
    begin = cpu_us(process.pid)
    told = clients.ask('%d %s' % (port, line))
    told['cpu_us'] = (cpu_us(process.pid) - begin) / int(line.split()[2])
    return told


def middle(rounds, name):
    values = [one[name] for one in rounds]
    return statistics.median(values), min(values)


def add(table, what, ours, peer, theirs, figure, goal):
    cpu = middle(ours, 'cpu_us')[0] / max(1, middle(theirs, 'cpu_us')[0])
    table.add(what, middle(ours, figure), peer, middle(theirs, figure), goal, 'CPU %.3f' % cpu)
    table.lines[-1].update(cpu_ratio=cpu, ours=ours, theirs=theirs)


def check_same(ours, theirs):
    if abs(ours[0]['check'] - theirs[0]['check']) > 1e-5:
        raise RuntimeError('weft answers %g, TensorFlow %g' % (ours[0]['check'], theirs[0]['check']))


def weft_command(bench, base, port, *flags):
    return [bench.weft, 'serve', '--model_name=model', '--model_base_path=' + base, '--port=%d' % port, *flags]


def latency_rows(bench, python, base):
    ports = free_port(), free_port()
    clients, inside = Lines(python, PEER, 'clients'), Lines(python, PEER, 'process', base + '/1')
    with started(weft_command(bench, base, ports[0]), ports[0]) as (weft, _, _), \
            started([python, PEER, 'serve', str(ports[1]), base + '/1'], ports[1]) as (peer, _, _):
        for batch, line in LATENCY.items():
            rounds = {'weft': [], 'server': [], 'process': []}
            for _ in range(bench.rounds + 1):
                rounds['weft'].append(of_server(clients, weft, ports[0], line))
                rounds['server'].append(of_server(clients, peer, ports[1], line))
                rounds['process'].append(inside.ask('%d %s' % (batch, line.split()[2])))
            ours, server, process = (rounds[name][1:] for name in rounds)  # the first warms up
            check_same(ours, server)
            check_same(ours, process)
            load = 'batch %d, 4 clients that pause 10 ms' % batch
            for figure in 'p50_us', 'p99_us':
                add(bench.table, '%s, %s' % (load, figure[:3]), ours, "TensorFlow's own server", server, figure, 1)
                add(bench.table, '%s, %s' % (load, figure[:3]), ours, 'TensorFlow in process', process, figure, 3)
    clients.end()
    inside.end()


def throughput_row(bench, python, base):
    ports = free_port(), free_port()
    clients = Lines(python, PEER, 'clients')
    flags = '--enable_batching', '--batching_parameters=max_batch_size { value: 64 } max_enqueued_batches { value: 1000 }'
    with started(weft_command(bench, base, ports[0], *flags), ports[0]) as (weft, _, _), \
            started([python, PEER, 'serve', str(ports[1]), base + '/1'], ports[1]) as (peer, _, _):
        ours, theirs = [], []
        for _ in range(bench.rounds + 1):
            ours.append(of_server(clients, weft, ports[0], THROUGHPUT))
            theirs.append(of_server(clients, peer, ports[1], THROUGHPUT))
    clients.end()
    check_same(ours[1:], theirs[1:])
    add(bench.table, 'time a request, 32 clients, batching', ours[1:], "TensorFlow's own server", theirs[1:], 'us', 1 / 1.5)


FLAGS = {'weft': (), 'mapped': ('--map_weights',)}


def load_rows(bench, python, base):
    """A server answers when it listens: its start is the load and what the program itself costs."""
    starts, loads = {'weft': [], 'mapped': [], 'server': []}, {'weft': [], 'mapped': [], 'TensorFlow': []}
    for _ in range(min(bench.rounds, 3)):
        for name in starts:
            port = free_port()
            command = [python, PEER, 'serve', str(port), base + '/1'] if name == 'server' else weft_command(bench, base, port, *FLAGS[name])
            with started(command, port) as (_, seconds, cpu):
                starts[name].append(dict(us=1e6 * seconds, cpu_us=cpu))
        for name in FLAGS:
            loads[name].append(weft_load(bench, base, *FLAGS[name]))
        loads['TensorFlow'].append(json.loads(subprocess.run([python, PEER, 'load', base + '/1'], env=QUIET, check=True, text=True,
                                                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout))
    for name, what in ('weft', ''), ('mapped', ', --map_weights'):
        add(bench.table, 'load of 500 MB' + what, loads[name], 'TensorFlow', loads['TensorFlow'], 'us', 0.3)
        add(bench.table, 'start of a server with them' + what, starts[name], "TensorFlow's own server", starts['server'], 'us', 0.3)


def weft_load(bench, base, *flags):
    """What the log says of the time; CPU time with that of the program's start, which is little."""
    port = free_port()
    with tempfile.TemporaryFile(mode='w+') as log:
        process = subprocess.Popen(weft_command(bench, base, port, *flags), env=dict(os.environ, TF_CPP_MIN_LOG_LEVEL='0'), stderr=log)
        try:
            found = None
            while found is None and process.poll() is None:
                time.sleep(0.01)
                log.seek(0)
                found = re.search(r'loaded in (?:(\d+)m)?([\d.]+)(ms|s|us)', log.read())
            cpu = cpu_us(process.pid)
        finally:
            process.kill()
            process.wait()
    scale = {'us': 1, 'ms': 1e3, 's': 1e6}[found[3]]
    return dict(us=60e6 * int(found[1] or 0) + float(found[2]) * scale, cpu_us=cpu)


def run(bench):
    python = bench.tensorflows[0][1]
    bench.table.section("Serving: a perceptron of 784, 512, 512 and 10, TensorFlow %s beside it" % bench.tensorflows[0][0])
    with tempfile.TemporaryDirectory() as folder:
        for kind in 'small', 'large':
            subprocess.run([python, PEER, 'make', '%s/%s/1' % (folder, kind), kind], env=QUIET, check=True, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
        latency_rows(bench, python, folder + '/small')
        throughput_row(bench, python, folder + '/small')
        load_rows(bench, python, folder + '/large')
