#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hub, parts (a parameter server at every task) and ring over links of known speed, beside a model of latency and bandwidth.

    bench/crossover.py measure [--weft build/bin/weft] [--megabits 200] [--ranks 2,4,8]     as root, with ip and tc
    bench/crossover.py replay

`measure` puts every rank into a network namespace of its own, on a bridge; each one's cable passes so many bits a second, each way. It
takes the latency of a message from the smallest size, and the rest from the model alone. `replay` computes how much of their computation
workers would keep at 16 to 512 ranks, beside what Horovod published.
"""
import argparse
import os
import re
import subprocess

SIZES = [1 << 10, 16 << 10, 128 << 10, 512 << 10]
ALGORITHMS = 'hub', 'parts', 'ring'


def modelled(algorithm, ranks, size, latency, bandwidth):
    """Seconds of an all-reduce of `size` bytes; `bandwidth` in bytes a second, each way, of each rank's link."""
    if algorithm == 'hub':  # two rounds; all that the others have goes through one link
        return 2 * (latency + (ranks - 1) * size / bandwidth)
    if algorithm == 'parts':  # two rounds; each link carries what the others' parts are
        return 2 * (latency + (ranks - 1) / ranks * size / bandwidth)
    return 2 * (ranks - 1) * (latency + size / ranks / bandwidth)  # a ring


def do(*lines):
    subprocess.run(['sh', '-ec', '\n'.join(lines)], check=True)


class Star:
    """A namespace for each rank, on a bridge in one of its own."""

    def __init__(self, ranks, megabits):
        self.names = ['weft-star-%d' % rank for rank in range(ranks)]
        self.hub, self.rate = 'weft-star', 'tbf rate %dmbit burst 32kb latency 400ms' % megabits

    def __enter__(self):
        self.leave()
        lines = ['ip netns add %s' % self.hub, 'ip -n %s link add bridge type bridge' % self.hub, 'ip -n %s link set bridge up' % self.hub]
        for rank, name in enumerate(self.names):
            lines += ['ip netns add %s' % name,
                      'ip link add port%d netns %s type veth peer name eth0 netns %s' % (rank, self.hub, name),
                      'ip -n %s link set port%d master bridge up' % (self.hub, rank),
                      'ip -n %s address add 10.213.78.%d/24 dev eth0' % (name, rank + 1),
                      'ip -n %s link set lo up' % name, 'ip -n %s link set eth0 up' % name,
                      'tc -n %s qdisc add dev eth0 root %s' % (name, self.rate),
                      'tc -n %s qdisc add dev port%d root %s' % (self.hub, rank, self.rate)]
        do(*lines)
        return self

    def __exit__(self, *_):
        self.leave()

    def leave(self):
        for name in [self.hub, *self.names]:
            subprocess.run(['ip', 'netns', 'delete', name], stderr=subprocess.DEVNULL)

    def time(self, weft, algorithm):
        """{bytes: seconds}, the least of each."""
        command = [weft, 'bench', 'all-reduce', '--ranks', str(len(self.names)), '--algorithm', algorithm]
        for rank, name in enumerate(self.names):
            command += ['--networks', '/run/netns/%s,10.213.78.%d' % (name, rank + 1)]
        command += [word for size in SIZES for word in ('--size', str(size))]
        out = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=600).stdout
        return {int(size): float(least) * 1e-6 for size, least in re.findall(r'^ *(\d+)  \S+ +[\d.]+ +([\d.]+) ', out, re.M)}


def measure(flags):
    bandwidth = flags.megabits * 1e6 / 8
    print('| ranks, bytes | %s | fastest | of the model |' % ' | '.join('%s, ms (model)' % name for name in ALGORITHMS))
    print('|---|' + '---|' * (len(ALGORITHMS) + 2))
    for ranks in flags.ranks:
        with Star(ranks, flags.megabits) as star:
            times = {name: star.time(flags.weft, name) for name in ALGORITHMS}
        latency = {name: (times[name][SIZES[0]] - modelled(name, ranks, SIZES[0], 0, bandwidth)) / (2 if name != 'ring' else 2 * (ranks - 1))
                   for name in ALGORITHMS}
        for size in SIZES:
            told = {name: modelled(name, ranks, size, latency[name], bandwidth) for name in ALGORITHMS}
            cells = ['%.2f (%.2f)' % (times[name][size] * 1e3, told[name] * 1e3) for name in ALGORITHMS]
            print('| %d, %d KB | %s | %s | %s |' % (ranks, size >> 10, ' | '.join(cells), min(ALGORITHMS, key=lambda name: times[name][size]),
                                                   min(ALGORITHMS, key=lambda name: told[name])), flush=True)


# Parameters in millions, and seconds of a step of 64 images on one P100. Horovod's docs/benchmarks.rst: 512 Pascal GPUs, four a server,
# 25 Gbit/s; TensorFlow's published figures of one P100: 142 images a second of Inception V3, 154 of VGG-16; Horovod's 1656.8 of 16 GPUs for
# ResNet-101.
MODELS = {'Inception V3': (23.8, 64 / 142, 0.90), 'ResNet-101': (44.6, 64 / (1656.8 / 16), 0.90), 'VGG-16': (138.4, 64 / 154, 0.68)}


def replay(_):
    """Each server of four GPUs has one link: first they reduce among themselves."""
    bandwidth, latency = 25e9 / 8, 30e-6
    print('| model, GPUs | hub | parts | ring, nothing hidden | ring, half of the step hides it | published, 512 |')
    print('|---|---|---|---|---|---|')
    for name, (millions, step, published) in MODELS.items():
        for gpus in 16, 64, 128, 512:
            cost = {kind: modelled(kind, gpus // 4, millions * 4e6, latency, bandwidth) for kind in ALGORITHMS}
            kept = [step / (step + cost[kind]) for kind in ALGORITHMS]
            hidden = step / (step + max(0.0, cost['ring'] - step / 2))
            print('| %s, %d | %s | %.2f | %s |' % (name, gpus, ' | '.join('%.2f' % one for one in kept), hidden,
                                                  '%.2f' % published if gpus == 512 else ''))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('what', choices=['measure', 'replay'])
    parser.add_argument('--weft', default=os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'build', 'bin', 'weft'))
    parser.add_argument('--megabits', type=int, default=200)
    parser.add_argument('--ranks', type=lambda text: [int(word) for word in text.split(',')], default=[2, 4, 8])
    flags = parser.parse_args()
    {'measure': measure, 'replay': replay}[flags.what](flags)


if __name__ == '__main__':
    main()
