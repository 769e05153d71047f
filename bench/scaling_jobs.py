# SPDX-License-Identifier: Apache-2.0
"""A mix of trainings for `weft simulate --scaling`, of the rates that Pollux' authors measured (OSDI 2021) and their workloads.

  scaling_jobs.py TRACES/pollux [WORKLOAD ...] > jobs.json

Of each application and count of GPUs the fastest placement there is, at the batch of the workload spread over them. How long a
training is, is not published: an hour of so many GPUs by application, below, times a drawn factor. Deadlines are drawn, from just what the fastest
count takes to a third more than one GPU takes; what is predicted is off by a factor drawn from 0.8 to 1.25, and each count by 5% more.
"""
import collections
import csv
import json
import pathlib
import random
import sys

GPU_HOURS = {'cifar10': 2, 'ncf': 0.5, 'deepspeech2': 6, 'yolov3': 20, 'bert': 4, 'imagenet': 60}
PRICE = 3.06  # dollars an hour of one V100


def rates_of(folder, application):
    """By GPUs: (examples a second, GPU's batch) of each placement."""
    rates = collections.defaultdict(list)
    with open(folder / (application + '-placements.csv')) as table:
        for row in csv.DictReader(table):
            gpus = sum(map(int, row['placement']))
            batch = int(row['local_bsz'])
            rates[gpus].append((batch, gpus * batch / float(row['step_time'])))
    return rates


def main():
    folder = pathlib.Path(sys.argv[1])
    draw = random.Random(1)
    jobs = []
    for workload in sys.argv[2:] or ['workloads-workload-1', 'workloads-workload-3']:
        with open(folder / (workload + '.csv')) as table:
            rows = list(csv.DictReader(table))
        for row in rows:
            rates = rates_of(folder, row['application'])
            options = []
            off = draw.uniform(.8, 1.25)
            for gpus in sorted(rates):
                share = int(row['batch_size']) / gpus
                # The batch that is nearest to a GPU's share of the workload's.
                local = min({batch for batch, _ in rates[gpus]}, key=lambda batch: abs(batch - share))
                rate = max(rate for batch, rate in rates[gpus] if batch == local)
                options.append({'kind': 'V100', 'workers': gpus, 'rate': rate, 'predicted': rate * off * draw.uniform(.95, 1.05)})
            alone, fastest = options[0]['rate'], max(option['rate'] for option in options)
            examples = alone * 3600 * GPU_HOURS[row['application']] * draw.uniform(.5, 2)
            deadline = examples / fastest * 1.02 + draw.uniform(0, 1.3) * (examples / alone - examples / fastest)
            jobs.append({'name': '%s/%s' % (workload, row['name']), 'examples': examples, 'deadline': deadline, 'options': options})
    json.dump({'format': 'weft.dev/scaling', 'version': 1, 'prices': {'V100': PRICE}, 'jobs': jobs}, sys.stdout)


if __name__ == '__main__':
    main()
