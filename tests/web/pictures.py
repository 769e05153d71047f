#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pictures of docs/page.md, of a made-up cluster: pictures.py WEFT FOLDER"""
import base64
import math
import pathlib
import random
import sys
import tempfile
import time

import browser
import cluster_stand_in as stand_in

WEFT, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
EXPERIMENT = '/experiments/default/digits-search'
SHOTS = [
    ('experiment', EXPERIMENT, 1200, 860, False),
    ('parallel', EXPERIMENT + '?view=parallel', 1200, 800, True),
    ('trials', EXPERIMENT + '?view=trials&trial=digits-search-00150', 1200, 800, False),
    ('cluster', '/cluster', 1000, 700, False),
    ('phone', '/', 390, 700, True),
]


def fill(cluster):
    waits = '0/3 nodes are available: 3 Insufficient nvidia.com/gpu. It needs 4 GPUs on one node: node-a has 3 free; job digits ends in about 4m'
    search = stand_in.experiment('digits-search', stand_in.PARAMETERS, trials=180)
    other = stand_in.experiment('wide-and-deep', stand_in.PARAMETERS[:2], trials=43, most=40, state='Succeeded', algorithm='cmaes')
    for found, best in ((search, '0.9674'), (other, '0.8821')):
        found['status']['currentOptimalTrial'] = {'observation': {'metrics': [{'name': 'accuracy', 'min': best, 'max': best, 'latest': best}]}}
    search['status'].update(trialsSucceeded=170, trialsEarlyStopped=5, trialsFailed=2)
    cluster.put(search, other, *stand_in.search('digits-search', 180))
    cluster.put(stand_in.node('node-a', 8), stand_in.node('node-b', 4, 'T4', cpu='16', memory='64Gi'), stand_in.node('node-c'))
    cluster.put(stand_in.job('digits', 1240, 3000, loss=0.213, accuracy=0.941), stand_in.job('nightly', 3000, 3000, 'Succeeded', loss=0.08), stand_in.job('wide-deep', 0, 0, 'Created'))
    cluster.put(*[stand_in.pod('digits-worker-%d' % i, 'digits', index=i, gpus=1) for i in range(4)], stand_in.pod('digits-ps-0', 'digits', kind='PS', cpu='4', memory='16Gi'))
    cluster.put(*[stand_in.pod('wide-deep-worker-%d' % i, 'wide-deep', phase='Pending', gpus=4, index=i, priority=10, why=waits) for i in range(2)])
    rng = random.Random(2)
    cluster.logs['digits-worker-0'] = ''.join('step %d/3000  loss %.4f\n' % (i, 0.2 + 2 * math.exp(-i / 300) + rng.gauss(0, .02)) for i in range(10, 1250, 10))


def main():
    # Only here: the test runs when it is a program.
    from page_test import Page, StandInTest
    cluster = stand_in.StandIn()
    fill(cluster)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        page = Page(cluster.kubeconfig(pathlib.Path(folder) / 'kubeconfig'))
        b = browser.Browser()
        try:
            StandInTest.enter(b, page)
            for name, address, width, height, is_dark in SHOTS:
                b.resize(width, height, mobile=width < 500)
                b.dark(is_dark)
                b.open(page.url + '/#' + address)
                time.sleep(2)
                b.js('document.activeElement.blur()')
                data = b.call('Page.captureScreenshot', format='webp', quality=82)['data']
                (FOLDER / (name + '.webp')).write_bytes(base64.b64decode(data))
        finally:
            b.close()
            page.close()


main()
