#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures weft beside TensorFlow and PyTorch, and its operator beside the reference's, and prints ratios.

    ./dev bench [--rows dispatch,mlp,...] [--rounds 7] [--json FILE]
    ./dev bench --rows models [--models lenet,lstm] [--modes train,infer] [--torch_forms eager]

Every line is one table row: our time, each peer's best setting, and the ratio of the two in this run. Sides take turns, round by
round, so that all see the same machine; a round is the fastest burst of a quarter of a second, a figure the median of
the rounds with the smallest beside it. Results are checked against the peers' before anything counts.
"""
import argparse
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import high_level_rows
import jobs
import model_rows
import op_rows
import product_rows
import record
import serving_rows
import size_rows
import together_rows
import wire_rows

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)


SETTLED = 0.25  # seconds: threads of the side before still spin for 0.2 after their work, waiting for more


class Side:
    """A program that measures a round for each line it reads."""

    def __init__(self, name, command, **env):
        self.name, self.times, self.cpus, self.check, self.answer = name, [], [], None, {}
        self.log = tempfile.TemporaryFile(mode='w+')  # what it says is shown only if it fails
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True,
                                        env=dict(os.environ, **env))

    def start_round(self, case=''):
        with contextlib.suppress(OSError):  # end_round tells what happened
            self.process.stdin.write(case + '\n')
            self.process.stdin.flush()

    def end_round(self):
        try:
            answer = json.loads(self.process.stdout.readline())
        except (ValueError, OSError) as error:
            self.log.seek(0)
            raise RuntimeError('%s gave no figure (exit code %s):\n%s' % (self.name, self.process.wait(), self.log.read()[-2000:])) from error
        self.times.append(answer['us'])
        self.cpus.append(answer.get('cpu_us', 0))
        self.check, self.answer = answer['check'], answer

    def round(self, case=''):
        time.sleep(SETTLED)
        self.start_round(case)
        self.end_round()

    def forget(self):
        """The rounds so far do not count."""
        self.times.clear()
        self.cpus.clear()

    def end(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    @property
    def median(self):
        return statistics.median(self.times)

    @property
    def least(self):
        return min(self.times)


class Together:
    """Several programs whose rounds run at the same time; its figures are the mean of theirs."""

    def __init__(self, sides):
        self.name, self.sides = sides[0].name, sides

    def round(self):
        time.sleep(SETTLED)
        for side in self.sides:
            side.start_round()
        for side in self.sides:
            side.end_round()

    def forget(self):
        for side in self.sides:
            side.forget()

    def end(self):
        for side in self.sides:
            side.end()

    @property
    def check(self):
        return self.sides[0].check

    @property
    def median(self):
        return statistics.mean(side.median for side in self.sides)

    @property
    def least(self):
        return statistics.mean(side.least for side in self.sides)


def measure(sides, rounds, tolerance=1e-3):
    """Rounds of all sides in turn; refuses a side whose result differs from the first's. One round before them is not counted: while
    the first program measures in it, the others are still starting on the same processors."""
    try:
        for side in sides:
            side.round()
        for side in sides:
            side.forget()
        for _ in range(rounds):
            for side in sides:
                side.round()
    finally:
        for side in sides:
            side.end()
    if tolerance is not None:
        refuse_others(sides, tolerance)
    return sides


def refuse_others(sides, tolerance):
    """An error where a side computes something else than the first."""
    for side in sides[1:]:
        scale = max(1.0, abs(sides[0].check))
        if abs(side.check - sides[0].check) > tolerance * scale:
            raise RuntimeError('%s computes %g, %s computes %g' % (side.name, side.check, sides[0].name, sides[0].check))


def best(sides):
    return min(sides, key=lambda side: side.median)


def figures(side):
    return side.median, side.least


class Bench:
    def __init__(self, arguments):
        self.weft = os.path.abspath(arguments.weft)
        self.ours = os.path.join(os.path.dirname(self.weft), 'session_rounds')
        self.rounds, self.job_count = arguments.rounds, arguments.jobs
        self.ops, self.models, self.modes, self.torch_forms = (
            arguments.ops, arguments.models, arguments.modes, arguments.torch_forms)
        self.tensorflows = [(version, python) for python in (arguments.tf215, sys.executable)
                            if (version := model_rows.version_of(python, 'tensorflow_cpu'))]
        self.torch_python = arguments.torch if model_rows.version_of(arguments.torch, 'torch') else None
        self.megabytes, self.scale = arguments.megabytes, arguments.scale
        self.server_pids = []  # of the cluster that was started last
        self.table = record.Table()

    def peer_versions(self, row):
        found = {'TensorFlow': ' and '.join(version for version, _ in self.tensorflows)}
        if self.torch_python is not None:
            found['PyTorch'] = model_rows.version_of(self.torch_python, 'torch')
        if row == 'allreduce':
            found['Open MPI'] = together_rows.mpi_version()
        return {name: version for name, version in found.items() if version}

    def mine(self, *args, name='weft', place=None):
        return Side(name, wire_rows.placed(place, [self.ours, *map(str, args)]))

    @staticmethod
    def tensorflow(*args, name='TensorFlow', place=None, **env):
        return Side(name, wire_rows.placed(place, [sys.executable, os.path.join(HERE, 'peers', 'tensorflow_rounds.py'), *map(str, args)]),
                    **env)

    @staticmethod
    def torch(*args, name='PyTorch'):
        return Side(name, [sys.executable, os.path.join(HERE, 'peers', 'torch_rounds.py'), *map(str, args)])

    def dispatch(self):
        self.table.section('Dispatch: 1,000 nodes on 4x4 a step, fed and fetched (row 1)')
        for threads in 1, 2:
            for form in 'plain', 'fused':
                for kind in 'matmul', 'add':
                    for shape in 'chain', 'wide':
                        what = ('dispatch', kind, shape, threads, form)
                        sides = measure([self.mine(*what)] + [
                            self.tensorflow(*what, setting, name='TensorFlow, ' + setting)
                            for setting in ('executor', 'single', 'function')], self.rounds)
                        peer = best(sides[1:])
                        note = '%.0f ns a node' % sides[0].median  # us for 1,000 nodes
                        self.table.add('%s, %s, %d threads, %s' % (kind, shape, threads, form), figures(sides[0]), peer.name,
                                       figures(peer), 0.1, note)

    def kernels(self):
        self.table.section('Chains of 50 kernels of some 50 us that do not share themselves out')
        one = {}
        for chains, threads, devices in (1, 1, 1), (1, 2, 1), (8, 1, 1), (8, 2, 1), (8, 2, 2):
            what = ('kernels', chains, threads, devices)
            sides = measure([self.mine(*what), self.tensorflow(*what, 'executor')], self.rounds)
            note = ''
            if threads == 1:
                one[chains] = sides[0].median
            else:
                note = '%.2f times one thread' % (one[chains] / sides[0].median)
            self.table.add('%d chains, %d threads, %d devices' % (chains, threads, devices), figures(sides[0]), sides[1].name,
                           figures(sides[1]), 1, note)

    def mlp(self):
        self.table.section('One step of an MLP 784-100-10 with SGD (row 2)')
        for batch, goal in (1, 0.2), (100, 0.5):
            sides = [self.mine('mlp', batch, threads, name='weft, %d threads' % threads) for threads in (1, 2)]
            peers = [self.torch('mlp', batch, threads, name='PyTorch, %d threads' % threads) for threads in (1, 2)]
            peers += [self.tensorflow('mlp', batch, threads, setting, name='TensorFlow %s %d %s' % (
                          setting, threads, 'oneDNN' if library == '1' else 'Eigen'), TF_ENABLE_ONEDNN_OPTS=library)
                      for threads in (1, 2) for setting in ('executor', 'function') for library in '01']
            measure(sides + peers, self.rounds)
            ours = best(sides)
            for name, group in ('PyTorch', peers[:2]), ('TensorFlow', peers[2:]):
                peer = best(group)
                self.table.add('batch %d (%s)' % (batch, ours.name), figures(ours), peer.name, figures(peer), goal)

    @contextlib.contextmanager
    def cluster(self, kind, start=None, **jobs):
        """Servers of `kind` (weft or tensorflow) for the jobs named in `start` (all if None): yields {job: [target]}, the
        cluster as JSON, and the seconds until all listened."""
        with contextlib.ExitStack() as stack:
            ports = {}
            for job, count in jobs.items():
                held = [stack.enter_context(socket.socket()) for _ in range(count)]
                for one in held:
                    one.bind(('127.0.0.1', 0))
                ports[job] = [one.getsockname()[1] for one in held]
        spec = {job: ['127.0.0.1:%d' % port for port in numbers] for job, numbers in ports.items()}
        started = []
        self.server_pids = []
        begin = time.perf_counter()
        try:
            mine = {job: numbers for job, numbers in ports.items() if start is None or job in start}
            for job, numbers in mine.items():
                for index in range(len(numbers)):
                    if kind == 'weft':
                        command = [self.weft, 'server', '--cluster', json.dumps(spec), '--job_name', job, '--task_index', str(index)]
                    else:
                        command = [sys.executable, os.path.join(HERE, 'peers', 'tensorflow_server.py'), json.dumps(spec), job,
                                   str(index)]
                    started.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
                    self.server_pids.append(started[-1].pid)
            for port in [port for numbers in mine.values() for port in numbers]:
                while True:
                    try:
                        socket.create_connection(('127.0.0.1', port), timeout=1).close()
                        break
                    except OSError:
                        if any(process.poll() is not None for process in started):
                            raise RuntimeError('a %s server ended before it listened' % kind) from None
                        time.sleep(0.0005)
            yield {job: ['grpc://' + address for address in addresses] for job, addresses in spec.items()}, \
                json.dumps(spec), time.perf_counter() - begin
        finally:
            for process in started:
                process.terminate()
            for process in started:
                try:
                    process.wait(5)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    def whole_models(self):
        self.table.section('Whole models, one step of the same graph: a weft server beside TensorFlow and PyTorch in their own process')
        if not self.tensorflows:
            raise RuntimeError('no TensorFlow in %s: run this by ./dev bench' % sys.executable)
        model_rows.run(self, Side, measure)

    def single_ops(self):
        self.table.section('Single ops and their gradients, the time of one: a weft server beside TensorFlow in its own process')
        if not self.tensorflows:
            raise RuntimeError('no TensorFlow in %s: run this by ./dev bench' % sys.executable)
        op_rows.run(self, Side, refuse_others)

    def products(self):
        self.table.section('Products of matrices, the time of one: a weft server beside TensorFlow, OpenBLAS and MKL in their own processes (row 5)')
        if not self.tensorflows:
            raise RuntimeError('no TensorFlow in %s: run this by ./dev bench' % sys.executable)
        product_rows.run(self, Side, refuse_others)

    def first(self):
        size_rows.first(self, Side, measure)

    def checkpoint(self):
        size_rows.checkpoint(self, Side, measure)
        size_rows.stalls(self, Side, measure)

    def big(self):
        size_rows.big(self, Together, Side, measure)

    def eager(self):
        high_level_rows.eager(self, Side, measure)

    def tape(self):
        high_level_rows.tape(self, Side, measure)

    def fit(self):
        high_level_rows.fit(self, Side, measure)

    def ps(self):
        self.table.section("The seeds' MLP on 1 parameter server and 2 workers, asynchronous, batch 100 (row 7)")
        with self.cluster('weft', ps=1, worker=2) as (ours, _, _), \
                self.cluster('tensorflow', ps=1, worker=2) as (theirs, _, _), \
                self.cluster('weft', start=['ps'], ps=1, worker=2) as (_, alone, _):
            def workers(make, *more, name):
                return Together([make(i, *more, name=name) for i in (0, 1)])

            def python(targets):
                return lambda i, *more, name: self.tensorflow('cluster', targets['worker'][i], '/job:worker/task:%d' % i, 100, *more,
                                                              name=name)
            # Workers share the variables: what they compute depends on who came first.
            sides = measure([workers(python(ours), name='weft servers, Python'),
                             workers(python(theirs), name='TensorFlow servers'),
                             workers(lambda i, name: self.mine('worker', alone, i, 100, name=name), name='C++ workers'),
                             workers(python(ours), 'empty', name='weft, empty step'),
                             workers(python(theirs), 'empty', name='TensorFlow, empty step')], self.rounds, tolerance=None)
        python, peer, native, empty, peer_empty = sides
        self.table.add('the same Python client', figures(python), peer.name, figures(peer), 1 / 3)
        self.table.add('less an empty RunStep of each', (python.median - empty.median, python.least - empty.least), peer.name,
                       (peer.median - peer_empty.median, peer.least - peer_empty.least), 1 / 5)
        self.table.add('C++ workers', figures(native), peer.name, figures(peer), 1 / 10)
        self.table.say('an empty step of the Python client: %s (weft), %s (TensorFlow)' % (
            record.text_of(empty.median), record.text_of(peer_empty.median)))

    def wire(self):
        def ours(cluster, job):
            return [self.weft, 'server', '--cluster', json.dumps(cluster), '--job_name', job, '--insecure', '--transport', 'tcp']

        def theirs(cluster, job):
            return [sys.executable, os.path.join(HERE, 'peers', 'tensorflow_server.py'), json.dumps(cluster), job, '0']
        wire_rows.run(self, measure, figures, (ours, theirs))

    def start(self):
        self.table.section('Start: server processes of a job of 1 parameter server and 2 workers, and its first step (row 16)')
        ready = {'weft': [], 'tensorflow': []}
        first = {'weft': [], 'tensorflow': []}
        for _ in range(self.rounds if self.rounds < 5 else 5):
            for kind in ready:
                begin = time.perf_counter()
                with self.cluster(kind, ps=1, worker=2) as (targets, _, seconds):
                    ready[kind].append(seconds * 1e6)
                    make = self.mine if kind == 'weft' else self.tensorflow
                    side = make('cluster', targets['worker'][0], '/job:worker/task:0', 100, name=kind)
                    side.round()
                    first[kind].append((time.perf_counter() - begin) * 1e6 - 0.25e6)
                    side.end()
        for what, times, goal in ('all three listen', ready, 1 / 20), ('and a client has done 10 steps', first, 1 / 7):
            self.table.add(what, (statistics.median(times['weft']), min(times['weft'])), 'TensorFlow',
                           (statistics.median(times['tensorflow']), min(times['tensorflow'])), goal)

    def data(self):
        self.table.section('Pipelines of datasets, 16 batches (row 17)')
        peer = os.path.join(HERE, 'peers', 'tensorflow_data_rounds.py')
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, peer, 'write', folder], check=True, stderr=subprocess.DEVNULL)
            # The decoders of pictures are the same.
            for kind, goal in ('records', 0.5), ('examples', 0.5), ('jpeg', 1), ('shuffle', 0.5), ('map', 0.5):
                program = os.path.join(os.path.dirname(self.ours), 'data_rounds')
                sides = [Side('weft', [program, kind, folder, '2'])]
                sides += [Side('TensorFlow, ' + setting, [sys.executable, peer, kind, folder, '2', setting])
                          for setting in ('session', 'eager')]
                measure(sides, self.rounds, tolerance=0.01)
                them = best(sides[1:])
                self.table.add(kind, figures(sides[0]), them.name, figures(them), goal)

    def jobs(self):
        self.table.section('Jobs of 11 pods on a real API server with nodes of KWOK: the operator beside training-operator 1.9')
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, 'figures.json')
            subprocess.run([sys.executable, os.path.join(HERE, 'jobs.py'), '--weft', self.weft, '--kwok', '--jobs', str(self.job_count),
                            '--default_jobs', str(min(100, self.job_count)), '--restart_jobs', str(10 * self.job_count), '--rounds',
                            str(min(self.rounds, 3)), '--json', out], check=True)
            with open(out) as file:
                lines = jobs.verdicts(json.load(file))
        self.table.lines += [dict(section=self.table.title, what=what, ratio=ratio, goal=goal, met=met) for what, ratio, goal, met in lines]


ROWS = {'dispatch': Bench.dispatch, 'kernels': Bench.kernels, 'mlp': Bench.mlp, 'ops': Bench.single_ops, 'products': Bench.products,
        'models': Bench.whole_models, 'ps': Bench.ps, 'wire': Bench.wire, 'first': Bench.first,
        'checkpoint': Bench.checkpoint, 'big': Bench.big, 'start': Bench.start, 'data': Bench.data, 'jobs': Bench.jobs,
        'eager': Bench.eager, 'tape': Bench.tape, 'fit': Bench.fit, 'serving': serving_rows.run,
        'allreduce': together_rows.allreduce, 'backup': together_rows.backup, 'recovery': together_rows.recovery}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--weft', default=os.path.join(ROOT, 'build', 'bin', 'weft'))
    parser.add_argument('--rows', type=lambda text: text.split(','), default=list(ROWS), help='some of ' + ','.join(ROWS))
    parser.add_argument('--rounds', type=int, default=7)
    parser.add_argument('--jobs', type=int, default=1000, help='of the row jobs; ten times as many lie there at a restart')
    parser.add_argument('--ops', type=lambda text: text.split(','), help='parts of the names of the row ops: softmax,pool, ...')
    parser.add_argument('--megabytes', type=int, default=2048, help='of the checkpoint of the row checkpoint')
    parser.add_argument('--scale', type=float, default=1, help='divides the sizes of the row big')
    parser.add_argument('--models', type=lambda text: text.split(','), help='some of the row models: lenet, vgg16, ...')
    parser.add_argument('--modes', type=lambda text: text.split(','), default=['train', 'infer'])
    parser.add_argument('--torch_forms', type=lambda text: text.split(','), default=['eager', 'compiled'])
    parser.add_argument('--tf215', default=os.path.join(ROOT, 'build', 'venv-tf215', 'bin', 'python'),
                        help="an interpreter with TensorFlow 2.15, beside this one's")
    parser.add_argument('--torch', default=sys.executable, help='an interpreter with PyTorch')
    parser.add_argument('--json', help='also keep the figures here, row by row (bench/record.py writes the page from it)')
    arguments = parser.parse_args()
    unknown = set(arguments.rows) - set(ROWS)
    if unknown:
        parser.error('there is no row %s: expected some of %s' % (', '.join(sorted(unknown)), ', '.join(ROWS)))
    bench = Bench(arguments)
    for row in arguments.rows:
        before, waiting = len(bench.table.lines), record.others()
        ROWS[row](bench)
        lines = bench.table.lines[before:]
        if arguments.json and lines:
            record.keep(arguments.json, row, lines, bench.rounds, bench.peer_versions(row), waiting)
    met = sum(line['met'] for line in bench.table.lines)
    print('\n%d of %d goals met on %d cores' % (met, len(bench.table.lines), os.cpu_count()))


if __name__ == '__main__':
    main()
