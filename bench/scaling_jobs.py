# SPDX-License-Identifier: Apache-2.0
"""A mix of trainings for `weft simulate --scaling`, of the rates that Pollux' authors measured (OSDI 2021) and their workloads.

  scaling_jobs.py [--servers] TRACES/pollux [WORKLOAD ...] > jobs.json

Of each application and count of GPUs the fastest placement there is, at the batch of the workload spread over them. How long a
training is, is not published: an hour of so many GPUs by application, below, times a drawn factor. Deadlines are drawn, from just what the fastest
count takes to a third more than one GPU takes; what is predicted is off by a factor drawn from 0.8 to 1.25, and each count by 5% more.

With --servers parameter servers take the place of the all-reduce: a step is what the GPU computes, as measured, and twice the time in which
two nodes exchanged the gradients, as measured, times the workers that the busiest of so many servers has. A server is a node without a GPU.
"""
import argparse
import collections
import csv
import json
import pathlib
import random
import sys

GPU_HOURS = {'cifar10': 2, 'ncf': 0.5, 'deepspeech2': 6, 'yolov3': 20, 'bert': 4, 'imagenet': 60}
PRICES = {'V100': 3.06, 'c5.4xlarge': 0.68}  # dollars an hour
WORKERS = [1, 2, 3, 4, 6, 8, 12, 16]
SERVERS = [1, 2, 4, 8]


def rates_of(folder, application):
    """By GPUs: (examples a second, GPU's batch) of each placement."""
    rates = collections.defaultdict(list)
    with open(folder / (application + '-placements.csv')) as table:
        for row in csv.DictReader(table):
            gpus = sum(map(int, row['placement']))
            batch = int(row['local_bsz'])
            rates[gpus].append((batch, gpus * batch / float(row['step_time'])))
    return rates


def with_servers(folder, application, batch):
    """Options (workers, servers, rate): what a GPU computes, and how long two nodes exchange gradients."""
    with open(folder / (application + '-placements.csv')) as table:
        rows = list(csv.DictReader(table))

    def nearest(placement, local):
        return min((row for row in rows if row['placement'] == placement), key=lambda row: abs(int(row['local_bsz']) - local))
    for workers in WORKERS:
        alone = nearest('1', batch / workers)
        local, seconds = int(alone['local_bsz']), float(alone['step_time']) - float(alone['sync_time'])
        exchange = float(nearest('11', local)['sync_time'])
        for servers in SERVERS:
            yield workers, servers, workers * local / (seconds + 2 * exchange * max(1, workers / servers))


def with_rings(folder, application, batch):
    """Options (workers, 0, rate) of the placements that were measured."""
    rates = rates_of(folder, application)
    for gpus in sorted(rates):
        share = batch / gpus
        # The batch that is nearest to a GPU's share of the workload's.
        local = min({batch for batch, _ in rates[gpus]}, key=lambda batch: abs(batch - share))
        yield gpus, 0, max(rate for batch, rate in rates[gpus] if batch == local)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--servers', action='store_true')
    parser.add_argument('folder', type=pathlib.Path)
    parser.add_argument('workloads', nargs='*', default=['workloads-workload-1', 'workloads-workload-3'])
    flags = parser.parse_args()
    draw = random.Random(1)
    jobs = []
    for workload in flags.workloads:
        with open(flags.folder / (workload + '.csv')) as table:
            rows = list(csv.DictReader(table))
        for row in rows:
            options = []
            off = draw.uniform(.8, 1.25)
            ways = with_servers if flags.servers else with_rings
            for workers, servers, rate in ways(flags.folder, row['application'], int(row['batch_size'])):
                options.append({'kind': 'V100', 'workers': workers, 'rate': rate, 'predicted': rate * off * draw.uniform(.95, 1.05)})
                if servers:
                    options[-1].update(servers=servers, server_kind='c5.4xlarge')
            alone, fastest = options[0]['rate'], max(option['rate'] for option in options)
            examples = alone * 3600 * GPU_HOURS[row['application']] * draw.uniform(.5, 2)
            deadline = examples / fastest * 1.02 + draw.uniform(0, 1.3) * (examples / alone - examples / fastest)
            jobs.append({'name': '%s/%s' % (workload, row['name']), 'examples': examples, 'deadline': deadline, 'options': options})
    json.dump({'format': 'weft.dev/scaling', 'version': 1, 'prices': PRICES, 'jobs': jobs}, sys.stdout)


if __name__ == '__main__':
    main()
