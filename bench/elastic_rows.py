# SPDX-License-Identifier: Apache-2.0
"""Jobs whose size changes, beside torchelastic: what ElasticDL and torchelastic show, with the times of both.

A job of two grows to four, loses one of four, loses its first rank, and loses all but one; each with its agent, by SIGKILL.
"""
import json
import os
import pathlib
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

PEERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'peers')
CHANGES = ['2 ranks become 4', 'one of 4 is lost', 'the first of 3 is lost', 'all but one are lost']
# As impatient as torchelastic can be set without taking living agents for dead; by itself it waits 30 s for more ranks after a loss, and finds
# an agent dead after 15 s.
IMPATIENT = 'is_host=0,last_call_timeout=1,keep_alive_interval=1,keep_alive_max_attempt=5'
BY_ITSELF = 'is_host=0'


def free_port():
    with socket.create_server(('127.0.0.1', 0)) as probe:
        return probe.getsockname()[1]


def kill_with_children(process):
    """An agent and the rank that it has started."""
    children = pathlib.Path('/proc/%d/task/%d/children' % (process.pid, process.pid)).read_text().split()
    for pid in [process.pid, *map(int, children)]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.wait()


class Job:
    """Ranks by number, and when each told which step; a job says by `start` what a rank is, and `world_of` a line."""

    def __init__(self):
        self.processes, self.times = {}, {}

    def add(self, rank):
        self.times[rank] = []
        self.processes[rank] = self.start(rank)

    def lose(self, rank):
        kill_with_children(self.processes.pop(rank))

    def wait_for(self, is_so, what, seconds=180):
        deadline = time.monotonic() + seconds
        while not is_so():
            if time.monotonic() > deadline:
                raise RuntimeError('%s: no %s' % (type(self).__name__, what))
            time.sleep(0.005)

    def end(self):
        for rank in list(self.processes):
            self.lose(rank)


class Ours(Job):
    def __init__(self, bench):
        super().__init__()
        self.program = os.path.join(os.path.dirname(bench.weft), 'together')
        self.cluster = {'worker': ['127.0.0.1:%d' % free_port() for _ in range(4)]}

    def start(self, rank):
        config = json.dumps({'cluster': self.cluster, 'task': {'type': 'worker', 'index': rank}})
        process = subprocess.Popen([self.program, '--steps', '1000000', '--sleep_ms', '10', '--log_every', '1'], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=dict(os.environ, TF_CONFIG=config, WEFT_ELASTIC='1:4'))
        times = self.times[rank]

        def read():
            with process.stdout as lines:
                for line in lines:
                    if ', step ' in line:
                        times.append(time.monotonic())
        threading.Thread(target=read, daemon=True).start()
        return process


class TorchElastic(Job):
    def __init__(self, bench, folder, settings):
        super().__init__()
        self.python, self.folder, self.settings, self.port = bench.torch_python, folder, settings, free_port()
        # Its agents meet in a process of its own, which is not killed: by itself it is in the first of them, whose end is the job's.
        self.store = subprocess.Popen([self.python, os.path.join(PEERS, 'torch_elastic.py'), folder, 'store', str(self.port)],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.store.stdout.readline()
        self.is_over = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        path = os.path.join(self.folder, 'steps')
        while not os.path.exists(path) and not self.is_over.is_set():
            time.sleep(0.01)
        with open(path, encoding='utf-8') as lines:
            while not self.is_over.is_set():
                line = lines.readline()
                if line:
                    self.times[int(line.split()[0])].append(time.monotonic())
                else:
                    time.sleep(0.001)

    def start(self, rank):
        with open(os.path.join(self.folder, 'agent-%d.log' % rank), 'w', encoding='utf-8') as log:
            return subprocess.Popen([self.python, '-m', 'torch.distributed.run', '--nnodes', '1:4', '--nproc-per-node', '1', '--max-restarts', '100',
                                     '--rdzv-backend', 'c10d', '--rdzv-endpoint', '127.0.0.1:%d' % self.port, '--rdzv-conf', self.settings,
                                     os.path.join(PEERS, 'torch_elastic.py'), self.folder],
                                    stdout=log, stderr=log,
                                    # Who comes later waits without end for the address of a store that the first rank shares since the first
                                    # round (2.15): its own way out is not to share it.
                                    env=dict(os.environ, AGENT=str(rank), OMP_NUM_THREADS='1', TORCH_DISABLE_SHARE_RDZV_TCP_STORE='1'))

    def end(self):
        super().end()
        self.is_over.set()
        self.store.kill()
        self.store.wait()
        self.store.stdin.close()
        self.store.stdout.close()


def _longest_silence(times, since, until):
    seen = [since] + [at for at in times if since < at <= until]
    return max(later - earlier for earlier, later in zip(seen, seen[1:] + [until]))


def changes(job):
    """[(seconds that the second rank stands still, its steps a second before, after)] of each of CHANGES."""
    found = []

    def measure(change, ranks):
        before = [len(job.times[1])]
        time.sleep(2)
        before.append(len(job.times[1]))
        begun, heard = time.monotonic(), {rank: len(job.times.get(rank, [])) for rank in ranks}
        change()
        # All that shall be there have come ten steps farther, and nobody has stood still for two seconds.
        job.wait_for(lambda: all(len(job.times[rank]) >= heard[rank] + 10 for rank in ranks) and
                     job.times[1][-1] > begun + 2 and job.times[1][-1] - job.times[1][-10] < 1, 'step of ranks %s' % (ranks,))
        settled = time.monotonic()
        time.sleep(2)
        after = sum(at > settled for at in job.times[1]) / (time.monotonic() - settled)
        found.append((_longest_silence(job.times[1], begun, settled), (before[1] - before[0]) / 2, after))

    for rank in (0, 1):
        job.add(rank)
    job.wait_for(lambda: all(len(job.times[rank]) > 50 for rank in (0, 1)), 'step of two ranks')
    measure(lambda: [job.add(rank) for rank in (2, 3)], (0, 1, 2, 3))
    measure(lambda: job.lose(3), (0, 1, 2))
    measure(lambda: job.lose(0), (1, 2))
    measure(lambda: job.lose(2), (1,))
    return found


def elastic(bench, settings=IMPATIENT):
    bench.table.section('A job whose size changes, beside torchelastic: how long a rank that stays stands still')
    if bench.torch_python is None:
        return bench.table.say('without torch')
    runs = {'weft': [], 'torchrun': []}
    for _ in range(max(1, bench.rounds // 3)):
        for name in runs:
            with tempfile.TemporaryDirectory() as folder:
                job = Ours(bench) if name == 'weft' else TorchElastic(bench, folder, settings)
                try:
                    runs[name].append(changes(job))
                finally:
                    job.end()
    for at, change in enumerate(CHANGES):
        times = {name: [one[at][0] * 1e6 for one in found] for name, found in runs.items()}
        medians = {name: (statistics.median(found), min(found)) for name, found in times.items()}
        bench.table.add(change, medians['weft'], 'torchrun', medians['torchrun'], 1)
        bench.table.say('%s, steps a second before and after: %s' % (change, ', '.join(
            '%s %.0f, %.0f' % (name, *(statistics.median(one[at][side] for one in found) for side in (1, 2))) for name, found in runs.items())))


if __name__ == '__main__':
    # By hand: elastic_rows.py WEFT PYTHON_WITH_TORCH [by itself], one round.
    import types
    table = types.SimpleNamespace(section=print, say=print, add=lambda what, ours, peer, theirs, goal: print(
        '%s: %.3f s, %s %.3f s' % (what, ours[0] / 1e6, peer, theirs[0] / 1e6), flush=True))
    elastic(types.SimpleNamespace(table=table, weft=os.path.abspath(sys.argv[1]), torch_python=os.path.abspath(sys.argv[2]), rounds=1),
            BY_ITSELF if len(sys.argv) > 3 else IMPATIENT)
