# SPDX-License-Identifier: Apache-2.0
"""The row `wire` of run.py: a tensor from the worker to the parameter server and back, on one host and between two networks."""
import contextlib
import os
import re
import shutil
import subprocess

SIZES = ('1 KB', 256), ('1 MB', 262144), ('128 MB', 33554432)


class Networks:
    """Two network namespaces with a cable (veth) between them: what two hosts have, less the wire."""

    NAMES = 'weft-bench-worker', 'weft-bench-ps'
    ADDRESSES = '10.213.77.1', '10.213.77.2'

    def __enter__(self):
        self.leave()
        for command in ('ip netns add %s', 'ip -n %s link set lo up'):
            for name in self.NAMES:
                self.do(command % name)
        self.do('ip link add wire netns %s type veth peer name wire netns %s' % self.NAMES)
        for name, address in zip(self.NAMES, self.ADDRESSES):
            self.do('ip -n %s address add %s/24 dev wire' % (name, address))
            self.do('ip -n %s link set wire up' % name)
        return self

    def __exit__(self, *_):
        self.leave()

    @staticmethod
    def do(command):
        done = subprocess.run(command.split(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise OSError('%s: %s' % (command, done.stdout.strip()))

    def leave(self):
        for name in self.NAMES:
            subprocess.run(['ip', 'netns', 'delete', name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    @property
    def option(self):
        return '--across=/run/netns/%s,/run/netns/%s,%s' % (*self.NAMES, self.ADDRESSES[1])


def placed(network, command):
    """The command in a network namespace, or as it is."""
    return command if network is None else ['ip', 'netns', 'exec', network, *command]


def transport(bench, form, *options):
    """transport_roundtrip's figures: {(KB, who): (median, least)}."""
    program = os.path.join(os.path.dirname(bench.weft), 'transport_roundtrip')
    out = subprocess.run([program, '--rounds=%d' % bench.rounds, *options], stdout=subprocess.PIPE, text=True, check=True).stdout
    found = re.findall(r'(\d+) KB +(%s|weft, handler) +median +([\d.]+) us +p10 +([\d.]+)' % form, out)
    return {(int(size), who): (float(median), float(least)) for size, who, median, least in found}


def alone(bench, what, peer, form, goal, *options):
    times = transport(bench, form, *options)
    for size in sorted({size for size, _ in times}):
        # Small ones cost a wake-up more than a socket program's; large ones have a goal.
        bench.table.add('%d KB, %s' % (size, what), times[size, 'weft, handler'], peer, times[size, form], goal if size >= 1024 else 2)


def bounce(bench, ours, theirs, measure, figures, inside_of=None):
    """`ours` and `theirs` are the worker's targets."""
    device = '/job:worker/task:0'
    for size, elements in SIZES:
        sides = [bench.mine('bounce', ours, device, elements, name='weft, C++ client', place=inside_of),
                 bench.tensorflow('bounce', ours, device, elements, name='weft, Python client', place=inside_of),
                 bench.tensorflow('bounce', theirs, device, elements, place=inside_of)]
        measure(sides, bench.rounds, tolerance=1e-6)
        for side in sides[:2]:
            bench.table.add('%s, %s' % (size, side.name), figures(side), sides[2].name, figures(sides[2]), 1 / 5)


def wait_for(networks, process, address):
    host, port = address.split(':')
    knock = placed(networks.NAMES[0], ['bash', '-c', 'exec 3<>/dev/tcp/%s/%s' % (host, port)])
    while subprocess.run(knock, stderr=subprocess.DEVNULL).returncode:
        if process.poll() is not None:
            raise RuntimeError('a server ended before it listened')


@contextlib.contextmanager
def servers(networks, command_of, ports):
    """One parameter server and one worker, each in its network: yields the worker's target."""
    addresses = {job: ['%s:%d' % (address, port)]
                 for job, address, port in zip(('worker', 'ps'), networks.ADDRESSES, ports)}
    started = []
    try:
        for job, name in zip(('worker', 'ps'), networks.NAMES):
            started.append(subprocess.Popen(placed(name, command_of(addresses, job)), stdout=subprocess.DEVNULL,
                                            stderr=subprocess.DEVNULL))
        for process, job in zip(started, ('worker', 'ps')):
            wait_for(networks, process, addresses[job][0])
        yield 'grpc://' + addresses['worker'][0]
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait(20)


@contextlib.contextmanager
def made(bench, title):
    """Begins a section and yields its two networks, or says why there are none and yields nothing."""
    bench.table.section(title)
    if os.geteuid() != 0 or shutil.which('ip') is None:
        bench.table.say('not measured: namespaces need root and the program ip (Debian: iproute2)')
        yield None
        return
    networks = Networks()
    try:
        networks.__enter__()
    except OSError as error:
        networks.leave()
        bench.table.say('not measured: no namespaces can be made here (%s)' % error)
        yield None
        return
    with contextlib.ExitStack() as stack:
        stack.push(networks)
        yield networks


def across(bench, measure, figures, commands):
    """`commands`: (cluster as a dict, job) -> command, of weft's and of TensorFlow's servers."""
    with made(bench, 'The same between two network namespaces (row 9)') as networks, contextlib.ExitStack() as stack:
        if networks is None:
            return
        alone(bench, 'transport alone', 'a plain socket program', 'plain sockets', 1 / 0.9, networks.option)
        alone(bench, 'transport alone with TLS', 'an OpenSSL socket program', 'OpenSSL sockets', 1 / 0.8, '--tls=1', networks.option)
        ours = stack.enter_context(servers(networks, commands[0], (2222, 2223)))
        theirs = stack.enter_context(servers(networks, commands[1], (2224, 2225)))
        bounce(bench, ours, theirs, measure, figures, networks.NAMES[0])


def run(bench, measure, figures, commands):
    bench.table.section('A tensor from the worker to the parameter server and back over TCP (row 8)')
    with bench.cluster('weft', ps=1, worker=1) as (ours, _, _), bench.cluster('tensorflow', ps=1, worker=1) as (theirs, _, _):
        bounce(bench, ours['worker'][0], theirs['worker'][0], measure, figures)
    alone(bench, 'transport alone', 'a plain socket program', 'plain sockets', 1 / 0.8)
    across(bench, measure, figures, commands)
