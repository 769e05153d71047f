# SPDX-License-Identifier: Apache-2.0
"""The row `products`: matrix products, square and those of the models' layers, beside every library that is installed.

Ours run on a weft server with all that a node costs there; OpenBLAS and MKL are called in a loop.
"""
import os
import sys

import op_rows

PEERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'peers')
SQUARE = [64, 128, 256, 512, 1024, 2048, 4096]
# m, n, k of the models: recurrent layers, a transformer's, embeddings', dense ones of LeNet and VGG16, 1 x 1 convolutions.
SMALL = [(1, 1024, 1024), (1, 512, 256), (8, 512, 256), (8, 256, 64), (16, 512, 512), (16, 10, 512), (32, 512, 128), (32, 512, 256),
         (32, 384, 128), (32, 10, 128), (64, 10, 1024), (64, 1024, 3136), (64, 256, 416), (100, 100, 784), (100, 10, 100),
         (128, 512, 128), (256, 256, 416), (256, 128, 256), (512, 256, 256), (512, 1024, 256), (512, 256, 1024), (512, 64, 64),
         (1024, 768, 768), (1024, 3072, 768), (1024, 768, 3072), (392, 1024, 256), (392, 256, 1024), (1568, 128, 512), (6272, 64, 256),
         (25088, 64, 64)]
GOAL, GOAL_SMALL = 1 / 0.97, 1 / 1.3


def run(bench, side, refuse):
    sys.path.insert(0, PEERS)
    from ops import product_name
    libraries = [('OpenBLAS', 'numpy')] + ([('MKL (torch)', 'torch')] if bench.torch_python is not None else [])
    with bench.cluster('weft', worker=1) as (targets, _, _):
        ours, peers = op_rows.server_and_peers(bench, side, targets['worker'][0])
        peers += [side('%s, %d threads' % (text, threads), [bench.torch_python or sys.executable, os.path.join(PEERS, 'plain_products.py'),
                                                            library, str(threads)])
                  for text, library in libraries for threads in (1, os.cpu_count())]
        try:
            for shape in [(size, size, size) for size in SQUARE] + SMALL:
                for form in 'nn', 'nt', 'tn':
                    is_square = shape[0] == shape[1] == shape[2]
                    for dtype in ('float32', 'float64') if is_square and shape[0] <= 2048 else ('float32',):
                        name = product_name(*shape, form, dtype)
                        if bench.ops and not any(part in name for part in bench.ops):
                            continue
                        op_rows.measure(bench, name, ours, peers, refuse)
                        words, copies = name.rsplit(' ', 1)
                        rate = 2e-3 * shape[0] * shape[1] * shape[2] * int(copies) / ours.median
                        op_rows.add(bench.table, words, int(copies), ours, peers, GOAL if is_square and shape[0] >= 256 else GOAL_SMALL,
                                    ', %.0f Gflop/s' % rate)
        finally:
            for one in (ours, *peers):
                one.end()
