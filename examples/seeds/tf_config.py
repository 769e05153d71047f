# SPDX-License-Identifier: Apache-2.0
"""Listings: TF_CONFIG, which tells every task of an Estimator's job the cluster and which task it is; here with a chief,
workers and parameter servers, and as all-reduce has it, without parameter servers.

tf_config.py prints the three words that the platform sets for each task; `tf_config.py --all-reduce` those of the other.
"""
import json
import sys

WITH_PS = {
    'chief': ['host0.example.com:2222'],
    'worker': ['host1.example.com:2222', 'host2.example.com:2222'],
    'ps': ['host3.example.com:2222', 'host4.example.com:2222'],
}
ALL_REDUCE = {
    'chief': ['host0.example.com:2222'],
    'worker': ['host1.example.com:2222', 'host2.example.com:2222'],
}


def of_every_task(cluster):
    """TF_CONFIG of each task, in the order of the cluster."""
    return [json.dumps({'cluster': cluster, 'task': {'type': job, 'index': index}})
            for job, addresses in cluster.items() for index in range(len(addresses))]


if __name__ == '__main__':
    for text in of_every_task(ALL_REDUCE if '--all-reduce' in sys.argv else WITH_PS):
        print("export TF_CONFIG='%s'" % text)
