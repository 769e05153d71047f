#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's own server behind the command line of `weft server`.

The suites here run against it too: a test that the real server fails is a wrong test.
"""
import argparse
import json
import os

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('command', choices=['server'])
    parser.add_argument('--cluster', type=json.loads, required=True)
    parser.add_argument('--job_name', required=True)
    parser.add_argument('--task_index', type=int, default=0)
    parser.add_argument('--cpu_devices', type=int)
    args, _ = parser.parse_known_args()
    import tensorflow as tf
    cluster = {job: {int(k): v for k, v in tasks.items()} if isinstance(tasks, dict) else tasks
               for job, tasks in args.cluster.items()}
    config = tf.compat.v1.ConfigProto()
    first = min((job, min(map(int, tasks)) if isinstance(tasks, dict) else 0) for job, tasks in args.cluster.items())
    config.experimental.collective_group_leader = '/job:%s/replica:0/task:%d' % first
    if args.cpu_devices:
        config.device_count['CPU'] = args.cpu_devices
    tf.distribute.Server(tf.train.ClusterSpec(cluster), args.job_name, args.task_index, config=config).join()


if __name__ == '__main__':
    main()
